//! Functions of C's mathematical library, by name: they are operations of the Loop IR.
//!
//! A function counts only if it has the types that C's has.

use super::arithmetic::PLAIN;
use super::body::{At, Leaves};
use super::error::Result;
use ferrozyme_convention::signature::loop_type;
use ferrozyme_ir::{
    self as ir, Alignment, IntPredicate, MathFunction, MathValue, MemoryEffect, Opcode, Type,
};
use ferrozyme_library::{Known, Variant, base_name, is, variant_of_base};
use ferrozyme_llvm::Value;

impl<'c> At<'_, '_, 'c, '_, '_> {
    /// What a call of a function of this name gives, if it is one of the library's.
    pub(super) fn library_call(&mut self, call: Value<'c>, name: &str) -> Result<Option<Leaves>> {
        let types: Option<Vec<Type>> = call
            .arguments()
            .iter()
            .map(|argument| loop_type(argument.ty()))
            .collect();
        let Some(types) = types else { return Ok(None) };
        let defined = super::call::called_function(call).is_some_and(|f| !f.is_declaration());
        for (base, ty) in base_name(name) {
            if let Some(function) = MathFunction::named_in_c(base)
                && !(defined && function.not_reserved.contains(&base))
                && let Some(leaves) = self.function_of_table(call, function, ty, &types)?
            {
                return Ok(Some(leaves));
            }
            if let Some(variant) = variant_of_base(base)
                && !(defined && is(base, &Known::NotReserved))
                && let Some(leaves) = self.special_function(call, variant, ty, &types)?
            {
                return Ok(Some(leaves));
            }
        }
        Ok(None)
    }

    /// A function with the types that C's has. A second result is behind a pointer, the last argument.
    fn function_of_table(
        &mut self,
        call: Value<'c>,
        function: &MathFunction,
        ty: Type,
        types: &[Type],
    ) -> Result<Option<Leaves>> {
        let (parameters, result): (&[Type], Type) = match function.value {
            MathValue::FloatUnary(_) | MathValue::Composite(_) => (&[ty], ty),
            MathValue::FloatBinary(_) | MathValue::CompositeBinary(_) => (&[ty, ty], ty),
            MathValue::FloatTernary(_) => (&[ty, ty, ty], ty),
            MathValue::FloatAndInt(_) => (&[ty, Type::I32], ty),
            MathValue::IntAndFloat(_) => (&[Type::I32, ty], ty),
            MathValue::FloatToExponent(_) => (&[ty], Type::I32),
            MathValue::FloatSplit(_) | MathValue::FloatPair(_) => (&[ty, Type::PTR], ty),
        };
        if types != parameters || loop_type(call.ty()) != Some(result) {
            return Ok(None);
        }
        let mut operands = Vec::new();
        for argument in call.arguments() {
            operands.push(self.value(argument)?);
        }
        if matches!(function.value, MathValue::IntAndFloat(_)) {
            operands.reverse();
        }
        let place = operands.pop_if(|_| parameters.last() == Some(&Type::PTR));
        let mut results = self.library_operation(call, function.opcode, &operands)?;
        if let Some(place) = place
            && let Some(second) = results.pop()
        {
            let alignment = Alignment::natural(self.writer.function.ty(second));
            self.builder().store(second, place, alignment);
        }
        Ok(Some(results))
    }

    /// Functions that are more or less than an operation.
    fn special_function(
        &mut self,
        call: Value<'c>,
        variant: Variant,
        ty: Type,
        types: &[Type],
    ) -> Result<Option<Leaves>> {
        let result = loop_type(call.ty());
        let arguments = call.arguments();
        Ok(Some(match variant {
            Variant::LongExponent if types == [ty, Type::I64] && result == Some(ty) => {
                let (value, exponent) = (self.value(arguments[0])?, self.value(arguments[1])?);
                // Beyond these no exponent makes a difference.
                let mut builder = self.builder();
                let (most, least) = (builder.i64(10_000), builder.i64(-10_000));
                let exponent = builder.binary(Opcode::Smin, exponent, most);
                let exponent = builder.binary(Opcode::Smax, exponent, least);
                let exponent = builder.cast(Opcode::TruncInt, exponent, Type::I32);
                self.library_operation(call, Opcode::Ldexp, &[value, exponent])?
            }
            Variant::ToInteger(opcode) if types == [ty] && result.is_some_and(Type::is_int) => {
                self.round_to_integer(call, opcode)?
            }
            Variant::Magnitude | Variant::Angle if result == Some(ty) => {
                let Some([re, im]) = self.complex_argument(call, ty, types)? else {
                    return Ok(None);
                };
                match variant {
                    Variant::Magnitude => self.library_operation(call, Opcode::Hypot, &[re, im])?,
                    _ => self.library_operation(call, Opcode::Atan2, &[im, re])?,
                }
            }
            Variant::RemainderAndQuotient if types == [ty, ty, Type::PTR] && result == Some(ty) => {
                self.remainder_and_quotient(call)?
            }
            Variant::OfOrder(opcode, order) if types == [ty] && result == Some(ty) => {
                let order = self.writer.function.int(Type::I32, i128::from(order));
                let operands = [self.value(arguments[0])?, order];
                self.library_operation(call, opcode, &operands)?
            }
            Variant::SineAndCosine if types == [ty, Type::PTR, Type::PTR] => {
                let angle = self.value(arguments[0])?;
                for (place, opcode) in [(arguments[1], Opcode::Sin), (arguments[2], Opcode::Cos)] {
                    let place = self.value(place)?;
                    let mut builder = self.builder();
                    let value = builder.unary(opcode, angle);
                    builder.store(value, place, Alignment::natural(ty));
                }
                Leaves::new()
            }
            Variant::LogGammaAndSign(of)
                if ty == Type::F64 && types == [of, Type::PTR] && result == Some(of) =>
            {
                self.log_gamma_with_sign(call, of)?
            }
            _ => return Ok(None),
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
    fn log_gamma_with_sign(&mut self, call: Value<'c>, ty: Type) -> Result<Leaves> {
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
        Ok(result)
    }
}
