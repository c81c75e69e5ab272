//! LLVM's intrinsics in terms of the Loop IR.

use super::arithmetic::{PLAIN, float_flags};
use super::body::{At, Leaves};
use super::error::{Result, unknown};
use super::memory::to_word;
use ferrozyme_ir::{self as ir, Form, MathFunction, Opcode, Scalar, Type};
use ferrozyme_library::{Known, find};
use ferrozyme_llvm::{IntPredicate as LlvmInt, Value};
use smallvec::smallvec;

/// Whether calls of an intrinsic can be imported.
pub(super) fn is_known(name: &str) -> bool {
    let base = base_name(name);
    known_of(base).is_some() || At::translation(base).is_some()
}

/// Whether an intrinsic does nothing.
pub(super) fn is_note(name: &str) -> bool {
    known_of(base_name(name)) == Some(Known::Note)
}

/// What is known of an intrinsic by its name without types.
fn known_of(base: &str) -> Option<Known> {
    let function = MathFunction::named_in_llvm(base);
    let operation = function.map(|function| Known::Operation(function.opcode));
    operation.or_else(|| find(&format!("llvm.{base}"), |known| Some(known.clone())))
}

/// How a call of an intrinsic is imported, given its name without types.
type Translation<At, Call> = fn(&mut At, Call, &str) -> Result<Leaves>;

/// The name of an intrinsic without `llvm.` and without the types at its end.
pub(super) fn base_name(name: &str) -> &str {
    let name = name.strip_prefix("llvm.").unwrap_or(name);
    let mut end = 0;
    for part in name.split('.') {
        let is_type = |part: &str| {
            let part = part.trim_start_matches("nx");
            let (kind, digits) = match part.strip_prefix("bf") {
                Some(digits) => ("bf", digits),
                None => part.split_at(
                    part.find(|c: char| c.is_ascii_digit())
                        .unwrap_or(part.len()),
                ),
            };
            let numbers = !digits.is_empty() && digits.starts_with(|c: char| c.is_ascii_digit());
            part.starts_with("sl_")
                || (numbers && matches!(kind, "i" | "f" | "bf" | "p" | "v" | "a"))
        };
        if is_type(part) {
            break;
        }
        end += part.len() + 1;
    }
    &name[..end.saturating_sub(1).min(name.len())]
}

impl<'c> At<'_, '_, 'c, '_, '_> {
    /// What a call of an intrinsic gives.
    pub(super) fn intrinsic(&mut self, call: Value<'c>, name: &str) -> Result<Leaves> {
        let base = base_name(name);
        match known_of(base) {
            Some(Known::Operation(opcode)) => match opcode.form() {
                Form::FloatAndInt => self.power(call, opcode),
                _ => self.plain_operation(call, opcode),
            },
            Some(Known::Note) => Ok(Leaves::new()),
            Some(Known::FirstArgument) => self.leaves(call.arguments()[0]),
            _ => match Self::translation(base) {
                Some(translate) => translate(self, call, base),
                None => Err(unknown(format!("the intrinsic {name}"))),
            },
        }
    }

    /// How intrinsics are imported that are more than a row of the table of library functions can say.
    fn translation(base: &str) -> Option<Translation<Self, Value<'c>>> {
        Some(match base {
            "fmuladd" => |at, call, _| at.multiply_add(call),
            "abs" => |at, call, _| at.absolute(call),
            "fshl" => |at, call, _| at.funnel_shift(call, true),
            "fshr" => |at, call, _| at.funnel_shift(call, false),
            "scmp" => |at, call, _| at.three_way(call, LlvmInt::Slt, LlvmInt::Sgt),
            "ucmp" => |at, call, _| at.three_way(call, LlvmInt::Ult, LlvmInt::Ugt),
            "fptosi.sat" => |at, call, _| at.cast_by(call, Opcode::FptosiSat),
            "fptoui.sat" => |at, call, _| at.cast_by(call, Opcode::FptouiSat),
            "sadd.sat" | "ssub.sat" | "uadd.sat" | "usub.sat" => {
                |at, call, base| at.saturating(call, base.trim_end_matches(".sat"))
            }
            "sincospi" => |at, call, _| {
                let operand = at.value(call.arguments()[0])?;
                let mut builder = at.builder();
                let sine = builder.unary(Opcode::Sinpi, operand);
                Ok(smallvec![sine, builder.unary(Opcode::Cospi, operand)])
            },
            "is.fpclass" => |at, call, _| at.is_class(call),
            "memcpy" | "memcpy.inline" => |at, call, _| at.copy_or_fill(call, Opcode::Copy),
            "memmove" => |at, call, _| at.copy_or_fill(call, Opcode::Move),
            "memset" | "memset.inline" => |at, call, _| at.copy_or_fill(call, Opcode::Fill),
            "ptrmask" => |at, call, _| at.mask_pointer(call),
            "is.constant" => |at, call, _| {
                let ty = at.result_type(call)?;
                Ok(smallvec![at.writer.function.int(ty, 0)])
            },
            "objectsize" => |at, call, _| at.object_size(call),
            "stacksave" | "invariant.start" => {
                |at, _, _| Ok(smallvec![at.writer.function.zero(Type::PTR)])
            }
            "threadlocal.address" => |at, call, _| Ok(smallvec![at.value(call.arguments()[0])?]),
            "llround" | "lround" => |at, call, _| at.round_to_integer(call, Opcode::Round),
            "llrint" | "lrint" => |at, call, _| at.round_to_integer(call, Opcode::RoundEven),
            // Where they end the program they are told by who ends the block.
            "debugtrap" | "trap" | "ubsantrap" => {
                |_, _, base| Err(unknown(format!("the intrinsic llvm.{base}")))
            }
            _ if base.starts_with("vector.reduce.") => {
                |at, call, base| at.reduce(call, base.trim_start_matches("vector.reduce."))
            }
            _ if base.ends_with(".with.overflow") => {
                |at, call, base| at.with_overflow(call, base.trim_end_matches(".with.overflow"))
            }
            _ => return None,
        })
    }

    /// An operation on the arguments that it takes; further ones are flags for the optimiser.
    fn plain_operation(&mut self, call: Value<'c>, opcode: Opcode) -> Result<Leaves> {
        let count = match opcode.form() {
            Form::IntUnary | Form::FloatUnary | Form::FloatSplit | Form::FloatPair => 1,
            Form::FloatTernary => 3,
            _ => 2,
        };
        let mut operands = Vec::new();
        for argument in call.arguments().into_iter().take(count) {
            operands.push(self.value(argument)?);
        }
        self.library_operation(call, opcode, &operands)
    }

    /// An operation on floats or integers with the flags of a call.
    pub(super) fn library_operation(
        &mut self,
        call: Value<'c>,
        opcode: Opcode,
        operands: &[ir::Value],
    ) -> Result<Leaves> {
        let ty = self.writer.function.ty(operands[0]);
        let exponent = ty.with_scalar(Scalar::Int(32));
        let results: &[Type] = match opcode.form() {
            Form::FloatSplit => &[ty, exponent],
            Form::FloatPair => &[ty, ty],
            Form::FloatToExponent => &[exponent],
            _ => &[ty],
        };
        let flags = float_flags(call);
        let op = self.builder().op(opcode, operands, PLAIN, results);
        let data = &mut self.writer.function.ops[op];
        data.flags = data.flags.union(flags);
        Ok(data.results.iter().copied().collect())
    }

    /// `a·b + c`, rounded once or twice as the machine likes: twice, and free to be contracted.
    fn multiply_add(&mut self, call: Value<'c>) -> Result<Leaves> {
        let arguments = call.arguments();
        let (a, b) = (self.value(arguments[0])?, self.value(arguments[1])?);
        let c = self.value(arguments[2])?;
        let flags = float_flags(call).union(ir::Flags::CONTRACT);
        let product = self.builder().binary(Opcode::Fmul, a, b);
        self.add_flags(product, flags);
        let sum = self.builder().binary(Opcode::Fadd, product, c);
        self.add_flags(sum, flags);
        Ok(smallvec![sum])
    }

    fn absolute(&mut self, call: Value<'c>) -> Result<Leaves> {
        let value = self.value(call.arguments()[0])?;
        let mut builder = self.builder();
        let ty = builder.ty(value);
        let zero = builder.zero(ty);
        let negated = builder.binary(Opcode::Sub, zero, value);
        Ok(smallvec![builder.binary(Opcode::Smax, value, negated)])
    }

    /// The upper (or lower) half of two integers side by side, shifted by an amount modulo the width.
    fn funnel_shift(&mut self, call: Value<'c>, left: bool) -> Result<Leaves> {
        let arguments = call.arguments();
        let (high, low) = (self.value(arguments[0])?, self.value(arguments[1])?);
        let amount = self.value(arguments[2])?;
        let mut builder = self.builder();
        let ty = builder.ty(high);
        let bits = i128::from(ty.scalar().bits());
        let width = builder.function.int(ty, bits);
        let amount = builder.binary(Opcode::Urem, amount, width);
        // One shift by one and one by the rest, so that no amount reaches the width.
        let one = builder.function.int(ty, 1);
        let most = builder.function.int(ty, bits - 1);
        let rest = builder.binary(Opcode::Sub, most, amount);
        let (upper, lower) = if left {
            let upper = builder.binary(Opcode::Shl, high, amount);
            let lower = builder.binary(Opcode::Lshr, low, one);
            (upper, builder.binary(Opcode::Lshr, lower, rest))
        } else {
            let upper = builder.binary(Opcode::Shl, high, one);
            let upper = builder.binary(Opcode::Shl, upper, rest);
            (upper, builder.binary(Opcode::Lshr, low, amount))
        };
        Ok(smallvec![builder.binary(Opcode::Or, upper, lower)])
    }

    /// −1, 0 or 1.
    fn three_way(&mut self, call: Value<'c>, less: LlvmInt, greater: LlvmInt) -> Result<Leaves> {
        let arguments = call.arguments();
        let (a, b) = (self.value(arguments[0])?, self.value(arguments[1])?);
        let ty = self.result_type(call)?;
        let mut builder = self.builder();
        let less = builder.icmp(super::arithmetic::int_predicate(less), a, b);
        let greater = builder.icmp(super::arithmetic::int_predicate(greater), a, b);
        let (minus, zero) = (builder.function.int(ty, -1), builder.function.int(ty, 0));
        let one = builder.function.int(ty, 1);
        let upper = builder.select(greater, one, zero);
        Ok(smallvec![builder.select(less, minus, upper)])
    }

    fn cast_by(&mut self, call: Value<'c>, opcode: Opcode) -> Result<Leaves> {
        let value = self.value(call.arguments()[0])?;
        let ty = self.result_type(call)?;
        Ok(smallvec![self.builder().cast(opcode, value, ty)])
    }

    /// An operation on a float and an `i32`, given an integer of any width.
    fn power(&mut self, call: Value<'c>, opcode: Opcode) -> Result<Leaves> {
        let arguments = call.arguments();
        let (base, exponent) = (self.value(arguments[0])?, self.value(arguments[1])?);
        let mut builder = self.builder();
        let of = builder.ty(base);
        let wanted = of.with_scalar(Scalar::Int(32));
        let exponent = match builder.ty(exponent) {
            ty if ty == wanted => exponent,
            // One exponent for all lanes.
            Type::I32 => builder.value(Opcode::Splat, &[exponent], PLAIN, wanted),
            ty if !ty.is_vector() && !of.is_vector() && ty.scalar().bits() < 32 => {
                builder.cast(Opcode::Sext, exponent, wanted)
            }
            ty => return Err(unknown(format!("a power with an exponent of type {ty}"))),
        };
        self.library_operation(call, opcode, &[base, exponent])
    }

    /// An address with some of its low bits cleared, as an offset from itself, so that it is known where it leads.
    fn mask_pointer(&mut self, call: Value<'c>) -> Result<Leaves> {
        let arguments = call.arguments();
        let (pointer, mask) = (self.value(arguments[0])?, self.value(arguments[1])?);
        let mut builder = self.builder();
        let mask = to_word(&mut builder, mask);
        let address = builder.cast(Opcode::Ptrtoint, pointer, Type::I64);
        let masked = builder.binary(Opcode::And, address, mask);
        let distance = builder.binary(Opcode::Sub, masked, address);
        Ok(smallvec![builder.offset(pointer, distance, 1)])
    }

    /// The size of the object is not known: the largest or smallest possible one, as asked.
    fn object_size(&mut self, call: Value<'c>) -> Result<Leaves> {
        let smallest = call.arguments()[1]
            .as_signed()
            .is_some_and(|flag| flag != 0);
        let ty = self.result_type(call)?;
        let size = if smallest { 0 } else { -1 };
        Ok(smallvec![self.writer.function.int(ty, size)])
    }

    /// Rounds, and makes an integer of the result.
    pub(super) fn round_to_integer(&mut self, call: Value<'c>, opcode: Opcode) -> Result<Leaves> {
        let value = self.value(call.arguments()[0])?;
        let ty = self.result_type(call)?;
        let mut builder = self.builder();
        let rounded = builder.unary(opcode, value);
        Ok(smallvec![builder.cast(Opcode::Fptosi, rounded, ty)])
    }
}

#[cfg(test)]
mod tests {
    use super::base_name;

    #[test]
    fn types_at_the_end_are_left_out() {
        for (name, base) in [
            ("llvm.fma.f64", "fma"),
            ("llvm.exp2.v4f32", "exp2"),
            ("llvm.memcpy.inline.p0.p0.i64", "memcpy.inline"),
            ("llvm.uadd.with.overflow.i64", "uadd.with.overflow"),
            ("llvm.vector.reduce.fadd.nxv4bf16", "vector.reduce.fadd"),
            ("llvm.fptosi.sat.i64.f64", "fptosi.sat"),
            ("llvm.assume", "assume"),
            ("llvm.log10.bf16", "log10"),
            ("llvm.atan2.f32", "atan2"),
        ] {
            assert_eq!(base_name(name), base);
        }
    }
}
