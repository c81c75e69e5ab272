//! Functions of C's mathematical library, by name: they are operations of the Loop IR.
//!
//! The name of the version for `f32` ends in `f`; `__exp_finite` is what older headers call `exp` where nothing is infinite. A function counts
//! only if it has the types that C's has.

use super::arithmetic::PLAIN;
use super::body::{At, Leaves};
use super::error::Result;
use crate::signature::loop_type;
use crate::value::Value;
use ferrozyme_ir::{self as ir, Alignment, IntPredicate, MemoryEffect, Opcode, Type};
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
    ("drem", Opcode::Remainder),
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
    ("fmaximum", Opcode::Fmaximum),
    ("fmaximum_num", Opcode::Fmax),
    ("fmin", Opcode::Fmin),
    ("fminimum", Opcode::Fminimum),
    ("fminimum_num", Opcode::Fmin),
    ("fmod", Opcode::Frem),
    ("gamma", Opcode::Lgamma),
    ("hypot", Opcode::Hypot),
    ("lgamma", Opcode::Lgamma),
    ("log", Opcode::Log),
    ("log10", Opcode::Log10),
    ("log1p", Opcode::Log1p),
    ("log2", Opcode::Log2),
    ("logp1", Opcode::Log1p),
    ("logb", Opcode::Logb),
    ("nearbyint", Opcode::RoundEven),
    ("nextafter", Opcode::Nextafter),
    ("pow", Opcode::Pow),
    ("pow10", Opcode::Exp10),
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

/// Names that the C standard leaves to programs, which may mean something else by them.
const NOT_RESERVED: &[&str] = &[
    "drem", "gamma", "j0", "j1", "jn", "logp1", "pow10", "sincos", "y0", "y1", "yn",
];

/// Whether a function of this name, if it is only declared, is one of floats of C's library.
pub fn is_mathematical(name: &str) -> bool {
    base_name(name).any(|(base, _)| FUNCTIONS.iter().any(|(known, _)| *known == base))
}

/// The name without `f`, and the type that it says.
fn base_name(name: &str) -> impl Iterator<Item = (&str, Type)> {
    let finite = name
        .strip_prefix("__")
        .and_then(|name| name.strip_suffix("_finite"));
    let name = finite.unwrap_or(name);
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
        let defined = super::call::called_function(call).is_some_and(|f| !f.is_declaration());
        for (base, ty) in base_name(name) {
            if defined && NOT_RESERVED.contains(&base) {
                continue;
            }
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
            "scalbln" if types == [ty, Type::I64] && result == Some(ty) => {
                let (value, exponent) = (self.value(arguments[0])?, self.value(arguments[1])?);
                // Beyond these no exponent makes a difference.
                let mut builder = self.builder();
                let (most, least) = (builder.i64(10_000), builder.i64(-10_000));
                let exponent = builder.binary(Opcode::Smin, exponent, most);
                let exponent = builder.binary(Opcode::Smax, exponent, least);
                let exponent = builder.cast(Opcode::TruncInt, exponent, Type::I32);
                self.library_operation(call, Opcode::Ldexp, &[value, exponent])?
            }
            "lround" | "llround" if types == [ty] && result.is_some_and(Type::is_int) => {
                self.round_to_integer(call, Opcode::Round)?
            }
            "lrint" | "llrint" if types == [ty] && result.is_some_and(Type::is_int) => {
                self.round_to_integer(call, Opcode::RoundEven)?
            }
            "cabs" | "carg" if result == Some(ty) => {
                let Some([re, im]) = self.complex_argument(call, ty, types)? else {
                    return Ok(None);
                };
                match base {
                    "cabs" => self.library_operation(call, Opcode::Hypot, &[re, im])?,
                    _ => self.library_operation(call, Opcode::Atan2, &[im, re])?,
                }
            }
            "remquo" if types == [ty, ty, Type::PTR] && result == Some(ty) => {
                self.remainder_and_quotient(call)?
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

    /// The parts of a complex number, which is passed as two floats or as a vector of two.
    fn complex_argument(
        &mut self,
        call: Value<'c>,
        ty: Type,
        types: &[Type],
    ) -> Result<Option<[ir::Value; 2]>> {
        let arguments = call.arguments();
        if types == [ty, ty] {
            return Ok(Some([self.value(arguments[0])?, self.value(arguments[1])?]));
        }
        if types.len() != 1 || types[0].lanes() != 2 || types[0].scalar() != ty.scalar() {
            return Ok(None);
        }
        let both = self.value(arguments[0])?;
        let mut builder = self.builder();
        Ok(Some([0, 1].map(|lane| {
            let lane = builder.i64(lane);
            builder.value(Opcode::Extract, &[both, lane], PLAIN, ty)
        })))
    }

    /// `remquo`: the remainder is an operation; the function itself is called for the bits of the quotient that it stores, which have no derivative.
    fn remainder_and_quotient(&mut self, call: Value<'c>) -> Result<Leaves> {
        let mut operands = Vec::new();
        for argument in call.arguments() {
            operands.push(self.value(argument)?);
        }
        let importer = &mut *self.translator.importer;
        if let Some(function) = call.called_function() {
            let callee = importer.function(function);
            let facts = &mut importer.module.functions[callee].facts;
            facts.inactive = true;
            facts.memory = MemoryEffect::Args;
            facts.willreturn = true;
            let result = self.writer.function.ty(operands[0]);
            self.builder().call(callee, &operands, &[result]);
        }
        self.library_operation(call, Opcode::Remainder, &operands[..2])
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
        let odd = builder.fcmp(ir::FloatPredicate::One, halved, whole);
        let below = builder.fcmp(ir::FloatPredicate::Olt, value, zero);
        let bits = ty.with_scalar(ir::Scalar::Int(ty.scalar().bits() as u8));
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
        ir::Form::FloatTernary => 3,
        ir::Form::FloatBinary => 2,
        _ => 1,
    }
}
