//! Integer arithmetic with overflow detection or saturation.

use super::body::{At, Leaves};
use super::error::{Result, unknown};
use ferrozyme_ir::{self as ir, IntPredicate, Opcode, Scalar, Type};
use ferrozyme_llvm::Value;
use smallvec::smallvec;

impl<'c> At<'_, '_, 'c, '_, '_> {
    /// `llvm.uadd.with.overflow` and its kind: the wrapped result, and whether it wrapped.
    pub(super) fn with_overflow(&mut self, call: Value<'c>, operation: &str) -> Result<Leaves> {
        let (a, b) = self.two(call)?;
        let (result, overflow) = self.overflowing(operation, a, b)?;
        Ok(smallvec![result, overflow])
    }

    /// `llvm.uadd.sat` and its kind.
    pub(super) fn saturating(&mut self, call: Value<'c>, operation: &str) -> Result<Leaves> {
        let (a, b) = self.two(call)?;
        let mut builder = self.builder();
        let ty = builder.ty(a);
        Ok(smallvec![match operation {
            "uadd" => {
                // Adding at most what is left to the largest number.
                let ones = builder.function.int(ty, -1);
                let left = builder.binary(Opcode::Xor, b, ones);
                let least = builder.binary(Opcode::Umin, a, left);
                builder.binary(Opcode::Add, least, b)
            }
            "usub" => {
                let most = builder.binary(Opcode::Umax, a, b);
                builder.binary(Opcode::Sub, most, b)
            }
            "sadd" | "ssub" => {
                let (result, overflow) = self.overflowing(operation, a, b)?;
                let mut builder = self.builder();
                let bits = i128::from(ty.scalar().bits());
                let smallest = builder.function.int(ty, 1 << (bits - 1));
                let shift = builder.function.int(ty, bits - 1);
                // The sign of the wrapped result is the opposite of the true one: all ones for a true one that is too large.
                let sign = builder.binary(Opcode::Ashr, result, shift);
                let limit = builder.binary(Opcode::Xor, sign, smallest);
                builder.select(overflow, limit, result)
            }
            _ => return Err(unknown(format!("the saturating operation {operation}"))),
        }])
    }

    fn two(&mut self, call: Value<'c>) -> Result<(ir::Value, ir::Value)> {
        let arguments = call.arguments();
        Ok((self.value(arguments[0])?, self.value(arguments[1])?))
    }

    fn overflowing(
        &mut self,
        operation: &str,
        a: ir::Value,
        b: ir::Value,
    ) -> Result<(ir::Value, ir::Value)> {
        let mut builder = self.builder();
        let ty = builder.ty(a);
        Ok(match operation {
            "uadd" => {
                let sum = builder.binary(Opcode::Add, a, b);
                (sum, builder.icmp(IntPredicate::Ult, sum, a))
            }
            "usub" => {
                let difference = builder.binary(Opcode::Sub, a, b);
                (difference, builder.icmp(IntPredicate::Ult, a, b))
            }
            "sadd" => {
                // It wrapped if both operands have a sign that the sum does not have.
                let sum = builder.binary(Opcode::Add, a, b);
                let from_a = builder.binary(Opcode::Xor, sum, a);
                let from_b = builder.binary(Opcode::Xor, sum, b);
                let both = builder.binary(Opcode::And, from_a, from_b);
                let zero = builder.zero(ty);
                (sum, builder.icmp(IntPredicate::Slt, both, zero))
            }
            "ssub" => {
                let difference = builder.binary(Opcode::Sub, a, b);
                let signs = builder.binary(Opcode::Xor, a, b);
                let from_a = builder.binary(Opcode::Xor, a, difference);
                let both = builder.binary(Opcode::And, signs, from_a);
                let zero = builder.zero(ty);
                (difference, builder.icmp(IntPredicate::Slt, both, zero))
            }
            "umul" | "smul" if ty.scalar().bits() <= 64 => {
                let extend = if operation == "umul" {
                    Opcode::Zext
                } else {
                    Opcode::Sext
                };
                let wide = ty.with_scalar(Scalar::Int(ty.scalar().bits() as u8 * 2));
                let (wide_a, wide_b) =
                    (builder.cast(extend, a, wide), builder.cast(extend, b, wide));
                let exact = builder.binary(Opcode::Mul, wide_a, wide_b);
                let product = builder.cast(Opcode::TruncInt, exact, ty);
                let again = builder.cast(extend, product, wide);
                (product, builder.icmp(IntPredicate::Ne, exact, again))
            }
            "umul" => self.wide_unsigned_product(a, b, ty),
            "smul" => self.wide_signed_product(a, b, ty),
            _ => {
                return Err(unknown(format!(
                    "the operation {operation} of {ty} with overflow"
                )));
            }
        })
    }

    /// The product of 128-bit numbers from those of their halves.
    fn wide_unsigned_product(
        &mut self,
        a: ir::Value,
        b: ir::Value,
        ty: Type,
    ) -> (ir::Value, ir::Value) {
        let mut builder = self.builder();
        let half = i128::from(ty.scalar().bits() / 2);
        let by = builder.function.int(ty, half);
        let mask = builder.function.int(ty, (1i128 << half) - 1);
        let zero = builder.zero(ty);
        let (high_a, high_b) = (
            builder.binary(Opcode::Lshr, a, by),
            builder.binary(Opcode::Lshr, b, by),
        );
        let (low_a, low_b) = (
            builder.binary(Opcode::And, a, mask),
            builder.binary(Opcode::And, b, mask),
        );
        let has_a = builder.icmp(IntPredicate::Ne, high_a, zero);
        let has_b = builder.icmp(IntPredicate::Ne, high_b, zero);
        let mut overflow = builder.binary(Opcode::And, has_a, has_b);
        let mut middle = zero;
        for (high, low) in [(high_a, low_b), (high_b, low_a)] {
            let part = builder.binary(Opcode::Mul, high, low);
            let above = builder.binary(Opcode::Lshr, part, by);
            let lost = builder.icmp(IntPredicate::Ne, above, zero);
            overflow = builder.binary(Opcode::Or, overflow, lost);
            let shifted = builder.binary(Opcode::Shl, part, by);
            middle = builder.binary(Opcode::Add, middle, shifted);
        }
        let low = builder.binary(Opcode::Mul, low_a, low_b);
        let product = builder.binary(Opcode::Add, low, middle);
        let wrapped = builder.icmp(IntPredicate::Ult, product, low);
        (product, builder.binary(Opcode::Or, overflow, wrapped))
    }

    /// The product of signed 128-bit numbers, which overflows if that of their magnitudes does not fit.
    fn wide_signed_product(
        &mut self,
        a: ir::Value,
        b: ir::Value,
        ty: Type,
    ) -> (ir::Value, ir::Value) {
        let mut builder = self.builder();
        let zero = builder.zero(ty);
        let mut magnitude = |value: ir::Value| {
            let negated = builder.binary(Opcode::Sub, zero, value);
            builder.binary(Opcode::Smax, value, negated)
        };
        let (size_a, size_b) = (magnitude(a), magnitude(b));
        let (size, lost) = self.wide_unsigned_product(size_a, size_b, ty);
        let mut builder = self.builder();
        let signs = builder.binary(Opcode::Xor, a, b);
        let negative = builder.icmp(IntPredicate::Slt, signs, zero);
        // A negative product may be one larger in magnitude.
        let more = builder.cast(Opcode::Zext, negative, ty);
        let largest = builder
            .function
            .int(ty, i128::MAX >> (128 - ty.scalar().bits()));
        let limit = builder.binary(Opcode::Add, largest, more);
        let beyond = builder.icmp(IntPredicate::Ugt, size, limit);
        let product = builder.binary(Opcode::Mul, a, b);
        (product, builder.binary(Opcode::Or, lost, beyond))
    }
}
