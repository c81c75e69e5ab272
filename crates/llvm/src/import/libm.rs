//! Functions of C's mathematical library, by name: they are operations of the Loop IR.
//!
//! The name of the version for `f32` ends in `f`. A function counts only if it has the types that C's has.

use super::arithmetic::PLAIN;
use super::body::{At, Leaves};
use super::error::Result;
use crate::signature::loop_type;
use crate::value::Value;
use ferrozyme_ir::{Alignment, IntPredicate, Opcode, Type};
use smallvec::smallvec;

/// Functions from floats to one float.
const FUNCTIONS: &[(&str, Opcode)] = &[
    ("acos", Opcode::Acos),
    ("acosh", Opcode::Acosh),
    ("asin", Opcode::Asin),
    ("asinh", Opcode::Asinh),
    ("atan", Opcode::Atan),
    ("atan2", Opcode::Atan2),
    ("atanh", Opcode::Atanh),
    ("cbrt", Opcode::Cbrt),
    ("ceil", Opcode::Ceil),
    ("copysign", Opcode::Copysign),
    ("cos", Opcode::Cos),
    ("cosh", Opcode::Cosh),
    ("erf", Opcode::Erf),
    ("erfc", Opcode::Erfc),
    ("exp", Opcode::Exp),
    ("exp10", Opcode::Exp10),
    ("exp2", Opcode::Exp2),
    ("expm1", Opcode::Expm1),
    ("fabs", Opcode::Fabs),
    ("fdim", Opcode::Fdim),
    ("floor", Opcode::Floor),
    ("fma", Opcode::Fma),
    ("fmax", Opcode::Fmax),
    ("fmin", Opcode::Fmin),
    ("fmod", Opcode::Frem),
    ("hypot", Opcode::Hypot),
    ("lgamma", Opcode::Lgamma),
    ("log", Opcode::Log),
    ("log10", Opcode::Log10),
    ("log1p", Opcode::Log1p),
    ("log2", Opcode::Log2),
    ("logb", Opcode::Logb),
    ("nearbyint", Opcode::RoundEven),
    ("nextafter", Opcode::Nextafter),
    ("pow", Opcode::Pow),
    ("remainder", Opcode::Remainder),
    ("rint", Opcode::RoundEven),
    ("round", Opcode::Round),
    ("roundeven", Opcode::RoundEven),
    ("sin", Opcode::Sin),
    ("sinh", Opcode::Sinh),
    ("sqrt", Opcode::Sqrt),
    ("tan", Opcode::Tan),
    ("tanh", Opcode::Tanh),
    ("tgamma", Opcode::Tgamma),
    ("trunc", Opcode::Trunc),
];

/// The name without `f`, and the type that it says.
fn base_name(name: &str) -> impl Iterator<Item = (&str, Type)> {
    let single = name.strip_suffix('f').map(|base| (base, Type::F32));
    [Some((name, Type::F64)), single].into_iter().flatten()
}

impl<'c> At<'_, '_, 'c, '_, '_> {
    /// What a call of a function of this name gives, if it is one of the library's.
    pub(super) fn library_call(&mut self, call: Value<'c>, name: &str) -> Result<Option<Leaves>> {
        let types: Option<Vec<Type>> = call
            .arguments()
            .iter()
            .map(|argument| loop_type(argument.ty()))
            .collect();
        let Some(types) = types else { return Ok(None) };
        let result = loop_type(call.ty());
        for (base, ty) in base_name(name) {
            let known = FUNCTIONS.iter().find(|(known, _)| *known == base);
            if let Some(&(_, opcode)) = known
                && types.iter().all(|&given| given == ty)
                && types.len() == operand_count(opcode)
                && result == Some(ty)
            {
                let mut operands = Vec::new();
                for argument in call.arguments() {
                    operands.push(self.value(argument)?);
                }
                return self.library_operation(call, opcode, &operands).map(Some);
            }
            if let Some(leaves) = self.special_function(call, base, ty, &types)? {
                return Ok(Some(leaves));
            }
        }
        Ok(None)
    }

    /// Functions with integers, or with results in memory.
    fn special_function(
        &mut self,
        call: Value<'c>,
        base: &str,
        ty: Type,
        types: &[Type],
    ) -> Result<Option<Leaves>> {
        let float_and_int = [ty, Type::I32];
        let float_and_pointer = [ty, Type::PTR];
        let result = loop_type(call.ty());
        let arguments = call.arguments();
        Ok(Some(match base {
            "ldexp" | "scalbn" if types == float_and_int && result == Some(ty) => {
                let operands = [self.value(arguments[0])?, self.value(arguments[1])?];
                self.library_operation(call, Opcode::Ldexp, &operands)?
            }
            "jn" | "yn" if types == [Type::I32, ty] && result == Some(ty) => {
                let opcode = if base == "jn" { Opcode::Jn } else { Opcode::Yn };
                let operands = [self.value(arguments[1])?, self.value(arguments[0])?];
                self.library_operation(call, opcode, &operands)?
            }
            "j0" | "j1" | "y0" | "y1" if types == [ty] && result == Some(ty) => {
                let opcode = if base.starts_with('j') {
                    Opcode::Jn
                } else {
                    Opcode::Yn
                };
                let order = i128::from(base.ends_with('1'));
                let order = self.writer.function.int(Type::I32, order);
                let operands = [self.value(arguments[0])?, order];
                self.library_operation(call, opcode, &operands)?
            }
            "ilogb" if types == [ty] && result == Some(Type::I32) => {
                let operands = [self.value(arguments[0])?];
                self.library_operation(call, Opcode::Ilogb, &operands)?
            }
            "frexp" if types == float_and_pointer && result == Some(ty) => {
                let (value, place) = (self.value(arguments[0])?, self.value(arguments[1])?);
                let parts = self.library_operation(call, Opcode::Frexp, &[value])?;
                self.builder()
                    .store(parts[1], place, Alignment::natural(Type::I32));
                smallvec![parts[0]]
            }
            "modf" if types == float_and_pointer && result == Some(ty) => {
                let (value, place) = (self.value(arguments[0])?, self.value(arguments[1])?);
                let parts = self.library_operation(call, Opcode::Modf, &[value])?;
                self.builder()
                    .store(parts[1], place, Alignment::natural(ty));
                smallvec![parts[0]]
            }
            "sincos" if types == [ty, Type::PTR, Type::PTR] => {
                let angle = self.value(arguments[0])?;
                for (place, opcode) in [(arguments[1], Opcode::Sin), (arguments[2], Opcode::Cos)] {
                    let place = self.value(place)?;
                    let mut builder = self.builder();
                    let value = builder.unary(opcode, angle);
                    builder.store(value, place, Alignment::natural(ty));
                }
                Leaves::new()
            }
            _ => return self.log_gamma_with_sign(call, base, ty, types),
        }))
    }

    /// `lgamma_r` (of `f32`, `lgammaf_r`), which also tells the sign of the gamma function: Rust's `ln_gamma`.
    fn log_gamma_with_sign(
        &mut self,
        call: Value<'c>,
        base: &str,
        ty: Type,
        types: &[Type],
    ) -> Result<Option<Leaves>> {
        let ty = match (base, ty) {
            ("lgamma_r", Type::F64) => Type::F64,
            ("lgammaf_r", Type::F64) => Type::F32,
            _ => return Ok(None),
        };
        if types != [ty, Type::PTR] || loop_type(call.ty()) != Some(ty) {
            return Ok(None);
        }
        let arguments = call.arguments();
        let (value, place) = (self.value(arguments[0])?, self.value(arguments[1])?);
        let result = self.library_operation(call, Opcode::Lgamma, &[value])?;
        let mut builder = self.builder();
        // Below zero the sign changes from each whole number to the next; it is negative just below zero.
        let zero = builder.zero(ty);
        let floor = builder.unary(Opcode::Floor, value);
        let half = builder.float(ty, 0.5);
        let halved = builder.binary(Opcode::Fmul, floor, half);
        let whole = builder.unary(Opcode::Floor, halved);
        let odd = builder.fcmp(ferrozyme_ir::FloatPredicate::One, halved, whole);
        let below = builder.fcmp(ferrozyme_ir::FloatPredicate::Olt, value, zero);
        let bits = ty.with_scalar(ferrozyme_ir::Scalar::Int(ty.scalar().bits() as u8));
        let word = builder.cast(Opcode::Bitcast, value, bits);
        let minus_zero = builder.function.int(bits, 1 << (ty.scalar().bits() - 1));
        let at_minus_zero = builder.icmp(IntPredicate::Eq, word, minus_zero);
        let negative = builder.binary(Opcode::And, below, odd);
        let negative = builder.binary(Opcode::Or, negative, at_minus_zero);
        let (minus, plus) = (
            builder.function.int(Type::I32, -1),
            builder.function.int(Type::I32, 1),
        );
        let sign = builder.value(Opcode::Select, &[negative, minus, plus], PLAIN, Type::I32);
        builder.store(sign, place, Alignment::natural(Type::I32));
        Ok(Some(result))
    }
}

fn operand_count(opcode: Opcode) -> usize {
    match opcode.form() {
        ferrozyme_ir::Form::FloatTernary => 3,
        ferrozyme_ir::Form::FloatBinary => 2,
        _ => 1,
    }
}
