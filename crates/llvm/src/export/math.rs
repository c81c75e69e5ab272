//! Floating-point arithmetic and functions: an instruction or an intrinsic where LLVM has one, a function of C's library otherwise.
//!
//! C's library knows single and double precision and no vectors: narrower floats go through single precision, vectors lane by lane. The library is linked anyway, by Rust's standard
//! library. The polygamma functions are in no library and come along as a function of their own.

use ferrozyme_ir::{self as ir, Opcode};

use super::body::Body;
use super::symbols::MEMORY_NONE;
use super::{ExportError, Exporter};
use crate::attribute::Place;
use crate::opcode::{FloatPredicate, Linkage, Opcode as Llvm};
use crate::types::{Type, TypeKind};
use crate::value::Value;

/// How an operation is computed.
enum Means {
    /// An instruction on two floats.
    Instruction(Llvm),
    /// An intrinsic that every float type has code for.
    Intrinsic(&'static str),
    /// An intrinsic that may end in a call of C's library.
    Function(&'static str),
    /// A function of C's library, by its name in double precision.
    Library(&'static str),
    /// As `Library`, with the integer before the float.
    LibraryIntegerFirst(&'static str),
}

fn means(opcode: Opcode) -> Option<Means> {
    use Means::{Function, Instruction, Intrinsic, Library, LibraryIntegerFirst};
    Some(match opcode {
        Opcode::Fadd => Instruction(Llvm::FAdd),
        Opcode::Fsub => Instruction(Llvm::FSub),
        Opcode::Fmul => Instruction(Llvm::FMul),
        Opcode::Fdiv => Instruction(Llvm::FDiv),
        Opcode::Frem => Instruction(Llvm::FRem),
        Opcode::Fma => Intrinsic("llvm.fma"),
        Opcode::Fmin => Intrinsic("llvm.minnum"),
        Opcode::Fmax => Intrinsic("llvm.maxnum"),
        Opcode::Fminimum => Intrinsic("llvm.minimum"),
        Opcode::Fmaximum => Intrinsic("llvm.maximum"),
        Opcode::Fabs => Intrinsic("llvm.fabs"),
        Opcode::Copysign => Intrinsic("llvm.copysign"),
        Opcode::Floor => Intrinsic("llvm.floor"),
        Opcode::Ceil => Intrinsic("llvm.ceil"),
        Opcode::Trunc => Intrinsic("llvm.trunc"),
        Opcode::Round => Intrinsic("llvm.round"),
        Opcode::RoundEven => Intrinsic("llvm.roundeven"),
        Opcode::Sqrt => Intrinsic("llvm.sqrt"),
        Opcode::Exp => Function("llvm.exp"),
        Opcode::Exp2 => Function("llvm.exp2"),
        Opcode::Exp10 => Function("llvm.exp10"),
        Opcode::Log => Function("llvm.log"),
        Opcode::Log2 => Function("llvm.log2"),
        Opcode::Log10 => Function("llvm.log10"),
        Opcode::Pow => Function("llvm.pow"),
        Opcode::Sin => Function("llvm.sin"),
        Opcode::Cos => Function("llvm.cos"),
        Opcode::Tan => Function("llvm.tan"),
        Opcode::Asin => Function("llvm.asin"),
        Opcode::Acos => Function("llvm.acos"),
        Opcode::Atan => Function("llvm.atan"),
        Opcode::Atan2 => Function("llvm.atan2"),
        Opcode::Sinh => Function("llvm.sinh"),
        Opcode::Cosh => Function("llvm.cosh"),
        Opcode::Tanh => Function("llvm.tanh"),
        Opcode::Powi => Function("llvm.powi"),
        Opcode::Ldexp => Function("llvm.ldexp"),
        Opcode::Remainder => Library("remainder"),
        Opcode::Cbrt => Library("cbrt"),
        Opcode::Hypot => Library("hypot"),
        Opcode::Expm1 => Library("expm1"),
        Opcode::Log1p => Library("log1p"),
        Opcode::Asinh => Library("asinh"),
        Opcode::Acosh => Library("acosh"),
        Opcode::Atanh => Library("atanh"),
        Opcode::Erf => Library("erf"),
        Opcode::Erfc => Library("erfc"),
        Opcode::Tgamma => Library("tgamma"),
        Opcode::Lgamma => Library("lgamma"),
        Opcode::Logb => Library("logb"),
        Opcode::Nextafter => Library("nextafter"),
        Opcode::Ilogb => Library("ilogb"),
        Opcode::Jn => LibraryIntegerFirst("jn"),
        Opcode::Yn => LibraryIntegerFirst("yn"),
        _ => return None,
    })
}

/// The operations that have a function in `vectorisable.fz`.
const VECTORISABLE: &[Opcode] = &[Opcode::Exp, Opcode::Log, Opcode::Tanh];

/// Whether an operation is computed for one number at a time, so that the loop around it stays as it is.
pub(super) fn keeps_scalar(opcode: Opcode) -> bool {
    match opcode {
        Opcode::Frem | Opcode::Polygamma | Opcode::Sincos | Opcode::Modf | Opcode::Frexp => true,
        _ if VECTORISABLE.contains(&opcode) => false,
        _ => matches!(
            means(opcode),
            Some(Means::Function(_) | Means::Library(_) | Means::LibraryIntegerFirst(_))
        ),
    }
}

impl<'c> Body<'_, '_, 'c> {
    /// An operation on floats with one result.
    pub(super) fn math(
        &mut self,
        data: &ir::OpData,
        operands: &[Value<'c>],
    ) -> Result<Value<'c>, ExportError> {
        let flags = self.fast_math(data.flags);
        let builder = &self.exporter.builder;
        let fast = |value: Value<'c>| value.set_fast_math(flags);
        match data.opcode {
            Opcode::Fneg => return Ok(fast(builder.negate_float(operands[0]))),
            Opcode::Fdim => {
                // Where the comparison fails for NaN, the difference is NaN.
                let not_above =
                    fast(builder.compare_floats(FloatPredicate::Ole, operands[0], operands[1]));
                let difference = fast(builder.binary(Llvm::FSub, operands[0], operands[1]));
                return Ok(fast(builder.select(
                    not_above,
                    operands[0].ty().zero(),
                    difference,
                )));
            }
            Opcode::Nextafter if is_narrow(operands[0].ty()) => {
                return Err(self.problem("`nextafter` is known for f32 and f64 only"));
            }
            Opcode::Polygamma => {
                let function = polygamma(self.exporter)?;
                let double = self.exporter.context.double();
                return self.lane_by_lane(operands, double, |body, lanes| {
                    Ok(body.exporter.builder.call_function(function, lanes))
                });
            }
            _ => {}
        }
        if self.in_innermost
            && let Some(function) = vectorisable(self.exporter, data.opcode, operands[0].ty())?
        {
            return Ok(self.exporter.builder.call_function(function, operands));
        }
        let Some(means) = means(data.opcode) else {
            return Err(self.problem(format!(
                "the exporter does not know the operation {} (a bug in Ferrozyme)",
                data.opcode
            )));
        };
        match means {
            Means::Instruction(opcode) => {
                Ok(fast(builder.binary(opcode, operands[0], operands[1])))
            }
            Means::Intrinsic(name) => Ok(fast(self.call_intrinsic(name, operands)?)),
            Means::Function(name) => {
                let of = operands[0].ty();
                // Intrinsics with an integer are overloaded by its type, too; that of `powi` is one number for all lanes.
                let integer = operands
                    .get(1)
                    .map(|operand| operand.ty())
                    .filter(|other| *other != of);
                if is_narrow(of) || (data.opcode == Opcode::Powi && of.kind() == TypeKind::Vector) {
                    let wide = if is_narrow(of) {
                        self.exporter.context.float()
                    } else {
                        of.element()
                    };
                    return self.lane_by_lane(operands, wide, |body, lanes| {
                        let integer = integer.map(|_| body.exporter.context.integer(32));
                        let types: Vec<Type<'c>> = std::iter::once(wide).chain(integer).collect();
                        let intrinsic = body.intrinsic(name, &types)?;
                        Ok(body
                            .exporter
                            .builder
                            .call_function(intrinsic, lanes)
                            .set_fast_math(flags))
                    });
                }
                let types: Vec<Type<'c>> = std::iter::once(of).chain(integer).collect();
                let intrinsic = self.intrinsic(name, &types)?;
                Ok(fast(
                    self.exporter.builder.call_function(intrinsic, operands),
                ))
            }
            Means::Library(name) => self.library(name, false, operands, data, flags),
            Means::LibraryIntegerFirst(name) => self.library(name, true, operands, data, flags),
        }
    }

    fn library(
        &mut self,
        name: &str,
        integer_first: bool,
        operands: &[Value<'c>],
        data: &ir::OpData,
        flags: crate::FastMath,
    ) -> Result<Value<'c>, ExportError> {
        let scalar = scalar_of(operands[0].ty());
        let wide = if is_narrow(scalar) {
            self.exporter.context.float()
        } else {
            scalar
        };
        let integer_result = data.opcode == Opcode::Ilogb;
        self.lane_by_lane(operands, wide, |body, lanes| {
            let mut lanes = lanes.to_vec();
            if integer_first {
                lanes.reverse();
            }
            let types: Vec<Type<'c>> = lanes.iter().map(|lane| lane.ty()).collect();
            let result = if integer_result {
                body.exporter.context.integer(32)
            } else {
                wide
            };
            let function = library_function(body.exporter, name, result, &types, wide);
            Ok(body
                .exporter
                .builder
                .call(result.function(&types, false), function, &lanes)
                .set_fast_math(flags))
        })
    }

    /// Computes each lane by itself, floats converted to `wide` and back. Vectors of the operands have the same number of lanes.
    fn lane_by_lane(
        &mut self,
        operands: &[Value<'c>],
        wide: Type<'c>,
        compute: impl Fn(&mut Self, &[Value<'c>]) -> Result<Value<'c>, ExportError>,
    ) -> Result<Value<'c>, ExportError> {
        let of = operands[0].ty();
        let scalar = scalar_of(of);
        if of.kind() != TypeKind::Vector {
            let wide_operands: Vec<Value<'c>> = operands
                .iter()
                .map(|operand| self.convert_float(*operand, wide))
                .collect();
            let result = compute(self, &wide_operands)?;
            return Ok(if result.ty().is_float() {
                self.convert_float(result, scalar)
            } else {
                result
            });
        }
        let word = self.exporter.context.integer(64);
        let mut whole = None;
        for lane in 0..of.length() {
            let position = word.constant(i128::from(lane));
            let lanes: Vec<Value<'c>> = operands
                .iter()
                .map(|operand| self.exporter.builder.extract_element(*operand, position))
                .collect();
            let lanes: Vec<Value<'c>> = lanes
                .into_iter()
                .map(|operand| self.convert_float(operand, wide))
                .collect();
            let result = compute(self, &lanes)?;
            let result = if result.ty().is_float() {
                self.convert_float(result, scalar)
            } else {
                result
            };
            let before = whole.unwrap_or_else(|| result.ty().vector(of.length() as u32).poison());
            whole = Some(
                self.exporter
                    .builder
                    .insert_element(before, result, position),
            );
        }
        whole.ok_or_else(|| self.problem("a vector has no lanes (a bug in Ferrozyme)"))
    }

    fn convert_float(&self, value: Value<'c>, to: Type<'c>) -> Value<'c> {
        let rank = |of: Type<'c>| match of.kind() {
            TypeKind::Half | TypeKind::BFloat => 0,
            TypeKind::Float => 1,
            _ => 2,
        };
        let from = value.ty();
        if !from.is_float() || from == to {
            return value;
        }
        self.exporter.builder.cast(
            if rank(from) < rank(to) {
                Llvm::FPExt
            } else {
                Llvm::FPTrunc
            },
            value,
            to,
        )
    }

    /// `sincos`, `modf` and `frexp`: two results, which LLVM returns as a structure.
    pub(super) fn pair(&mut self, data: &ir::OpData) -> Result<(), ExportError> {
        let operand = self.get(data.operands[0])?;
        let flags = self.fast_math(data.flags);
        let (name, second) = match data.opcode {
            Opcode::Sincos => ("llvm.sincos", None),
            Opcode::Modf => ("llvm.modf", None),
            _ => ("llvm.frexp", Some(self.exporter.context.integer(32))),
        };
        let narrow = is_narrow(operand.ty());
        let scalar = scalar_of(operand.ty());
        let wide = if narrow {
            self.exporter.context.float()
        } else {
            scalar
        };
        let mut halves = Vec::new();
        for half in 0..2 {
            halves.push(self.lane_by_lane(&[operand], wide, |body, lanes| {
                let types: Vec<Type<'c>> = std::iter::once(wide).chain(second).collect();
                let intrinsic = body.intrinsic(name, &types)?;
                let both = body
                    .exporter
                    .builder
                    .call_function(intrinsic, lanes)
                    .set_fast_math(flags);
                let value = body.exporter.builder.extract_value(both, half);
                // LLVM leaves the exponent of infinity and NaN open; zero it is.
                if data.opcode == Opcode::Frexp && half == 1 {
                    return body.finite_or_zero(lanes[0], value);
                }
                Ok(value)
            })?);
        }
        self.set(data.results[0], halves[0]);
        self.set(data.results[1], halves[1]);
        Ok(())
    }

    fn finite_or_zero(&self, of: Value<'c>, exponent: Value<'c>) -> Result<Value<'c>, ExportError> {
        let magnitude = self.call_intrinsic("llvm.fabs", &[of])?;
        let builder = &self.exporter.builder;
        let finite = builder.compare_floats(
            FloatPredicate::Olt,
            magnitude,
            of.ty().float_constant(f64::INFINITY),
        );
        Ok(builder.select(finite, exponent, exponent.ty().zero()))
    }
}

fn scalar_of(of: Type<'_>) -> Type<'_> {
    if of.kind() == TypeKind::Vector {
        of.element()
    } else {
        of
    }
}

/// Half precision of either kind, or vectors of it.
fn is_narrow(of: Type<'_>) -> bool {
    matches!(scalar_of(of).kind(), TypeKind::Half | TypeKind::BFloat)
}

/// A function of C's library. These compute and do nothing else, if one forgets about `errno`, as the Loop IR does.
fn library_function<'c>(
    exporter: &Exporter<'_, 'c>,
    name: &str,
    result: Type<'c>,
    parameters: &[Type<'c>],
    wide: Type<'c>,
) -> Value<'c> {
    let name = if wide.kind() == TypeKind::Float {
        format!("{name}f")
    } else {
        name.to_owned()
    };
    if let Some(known) = exporter.into.symbol(&name) {
        return known;
    }
    let context = exporter.context;
    let function = exporter
        .into
        .add_function(&name, result.function(parameters, false));
    for attribute in ["nounwind", "willreturn", "nofree", "nosync", "nocallback"] {
        function.add_attribute(Place::Function, context.attribute(attribute, 0));
    }
    function.add_attribute(Place::Function, context.attribute("memory", MEMORY_NONE))
}

/// The function `double (double, i32)` that computes polygamma functions.
fn polygamma<'c>(exporter: &Exporter<'_, 'c>) -> Result<Value<'c>, ExportError> {
    own_function(
        exporter,
        include_str!("polygamma.fz"),
        "__ferrozyme_polygamma",
        ir::Flags::NONE,
    )
}

/// A function that computes an operation without keeping the loop around it from being vectorised, if there is one.
fn vectorisable<'c>(
    exporter: &Exporter<'_, 'c>,
    opcode: Opcode,
    of: Type<'c>,
) -> Result<Option<Value<'c>>, ExportError> {
    let ty = match of.kind() {
        TypeKind::Float => "f32",
        TypeKind::Double => "f64",
        _ => return Ok(None),
    };
    if !VECTORISABLE.contains(&opcode) {
        return Ok(None);
    }
    let name = format!("__ferrozyme_{opcode}_{ty}");
    let function = own_function(
        exporter,
        include_str!("vectorisable.fz"),
        &name,
        ir::Flags::CONTRACT,
    )?;
    Ok(Some(function.add_attribute(
        Place::Function,
        exporter.context.attribute("alwaysinline", 0),
    )))
}

/// A function that comes along as Loop IR, private to the module. The names start with underscores to be apart from what users write.
fn own_function<'c>(
    exporter: &Exporter<'_, 'c>,
    text: &str,
    name: &str,
    relaxed: ir::Flags,
) -> Result<Value<'c>, ExportError> {
    if let Some(known) = exporter.into.function(name) {
        return Ok(known);
    }
    let broken = |problem: String| ExportError {
        function: name.to_owned(),
        place: None,
        problem,
    };
    let module =
        ir::parse_module(text).map_err(|error| broken(format!("{error} (a bug in Ferrozyme)")))?;
    let main = module
        .function_named(name)
        .ok_or_else(|| broken("it has no body (a bug in Ferrozyme)".to_owned()))?;
    let options = super::ExportOptions {
        relaxed,
        strict: true,
        ..exporter.options
    };
    let functions = super::export(&module, &[main], exporter.into, &options)?;
    Ok(functions[0].set_linkage(Linkage::Internal))
}
