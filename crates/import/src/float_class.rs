//! `llvm.is.fpclass`: what kind of number a float is, found from its bits.

use super::body::{At, Leaves};
use super::constant::unknown_type;
use super::error::{Result, unknown};
use ferrozyme_ir::{self as ir, IntPredicate, Opcode, Scalar, Type};
use ferrozyme_llvm::Value;
use smallvec::smallvec;

/// The bits of LLVM's mask.
const SIGNALLING: u32 = 1;
const QUIET: u32 = 1 << 1;
const NEGATIVE_INFINITY: u32 = 1 << 2;
const NEGATIVE_NORMAL: u32 = 1 << 3;
const NEGATIVE_SUBNORMAL: u32 = 1 << 4;
const NEGATIVE_ZERO: u32 = 1 << 5;
const POSITIVE_ZERO: u32 = 1 << 6;
const POSITIVE_SUBNORMAL: u32 = 1 << 7;
const POSITIVE_NORMAL: u32 = 1 << 8;
const POSITIVE_INFINITY: u32 = 1 << 9;

impl<'c> At<'_, '_, 'c, '_, '_> {
    pub(super) fn is_class(&mut self, call: Value<'c>) -> Result<Leaves> {
        let arguments = call.arguments();
        let value = self.value(arguments[0])?;
        let mask = arguments[1].as_unsigned();
        let mask = mask
            .ok_or_else(|| unknown("a test for a class of floats that is not constant"))?
            as u32;
        let ty = self.writer.function.ty(value);
        let mantissa = match ty.scalar() {
            Scalar::F64 => 52,
            Scalar::F32 => 23,
            Scalar::F16 => 10,
            Scalar::Bf16 => 7,
            _ => return Err(unknown_type(arguments[0].ty())),
        };
        let bits = ty.scalar().bits();
        let class = Class {
            word: ty.with_scalar(Scalar::Int(bits as u8)),
            sign: 1 << (bits - 1),
            infinity: ((1 << (bits - 1 - mantissa)) - 1) << mantissa,
            smallest_normal: 1 << mantissa,
            quiet: 1 << (mantissa - 1),
        };
        let word = self.builder().cast(Opcode::Bitcast, value, class.word);
        let result = self.belongs(&class, word, mask);
        Ok(smallvec![result])
    }

    fn belongs(&mut self, class: &Class, word: ir::Value, mask: u32) -> ir::Value {
        let ty = class.word;
        let mut builder = self.builder();
        let magnitude_mask = builder.function.int(ty, class.sign as i128 - 1);
        let magnitude = builder.binary(Opcode::And, word, magnitude_mask);
        let truth = ty.with_scalar(Scalar::Int(1));
        let mut result = builder.zero(truth);
        // Magnitudes from the first number up to but without the second.
        let quiet = class.infinity + class.quiet;
        let ranges = [
            (POSITIVE_ZERO, NEGATIVE_ZERO, 0, 1),
            (
                POSITIVE_SUBNORMAL,
                NEGATIVE_SUBNORMAL,
                1,
                class.smallest_normal,
            ),
            (
                POSITIVE_NORMAL,
                NEGATIVE_NORMAL,
                class.smallest_normal,
                class.infinity,
            ),
            (
                POSITIVE_INFINITY,
                NEGATIVE_INFINITY,
                class.infinity,
                class.infinity + 1,
            ),
            (SIGNALLING, SIGNALLING, class.infinity + 1, quiet),
            (QUIET, QUIET, quiet, class.sign),
        ];
        for (positive, negative, from, to) in ranges {
            let (positive, negative) = (mask & positive != 0, mask & negative != 0);
            if !positive && !negative {
                continue;
            }
            let number = if positive && negative {
                magnitude
            } else {
                word
            };
            let sign = if positive { 0 } else { class.sign };
            let start = if positive && negative {
                from
            } else {
                from | sign
            };
            let start = builder.function.int(ty, start as i128);
            let length = builder.function.int(ty, (to - from) as i128);
            let distance = builder.binary(Opcode::Sub, number, start);
            let inside = builder.icmp(IntPredicate::Ult, distance, length);
            result = builder.binary(Opcode::Or, result, inside);
        }
        result
    }
}

/// The bits of a floating-point type.
struct Class {
    word: Type,
    sign: u128,
    infinity: u128,
    smallest_normal: u128,
    quiet: u128,
}
