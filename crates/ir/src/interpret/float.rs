//! Floating-point operations on the bits of any of the four formats.
//!
//! Doubles are computed as such. Narrower formats are computed in double precision and rounded once more: that is
//! the correctly rounded result for `+ − × ÷ √`, because a double has more than twice their digits, and an error of
//! hardly more than half a unit for the other functions. `fma` is rounded once in all of them.

use crate::function::{float_from_bits, float_to_bits, ones};
use crate::mathematics::{MathFunction, MathValue};
use crate::opcode::Opcode;
use crate::types::Scalar;

/// The number with these bits, exactly.
#[inline]
pub(super) fn widen(scalar: Scalar, raw: u128) -> f64 {
    match scalar {
        Scalar::F64 => f64::from_bits(raw as u64),
        _ => float_from_bits(scalar, raw).expect("a verified operation has floats here"),
    }
}

/// The bits of a number, rounded to nearest, ties to even.
#[inline]
pub(super) fn narrow(scalar: Scalar, value: f64) -> u128 {
    match scalar {
        Scalar::F64 => u128::from(value.to_bits()),
        Scalar::F32 => u128::from((value as f32).to_bits()),
        _ => float_to_bits(scalar, value),
    }
}

/// The same number in another format, rounded.
pub(super) fn convert(from: Scalar, to: Scalar, raw: u128) -> u128 {
    narrow(to, widen(from, raw))
}

/// One lane of the result of a function of the table, where it has one result.
#[inline]
pub(super) fn compute(opcode: Opcode, scalar: Scalar, [a, b, c]: [u128; 3]) -> u128 {
    let sign = 1 << (scalar.bits() - 1);
    let function = function(opcode);
    let number = |raw: u128| widen(scalar, raw);
    match (opcode, function.value) {
        // These change only the sign, of NaNs too.
        (Opcode::Fneg, _) => a ^ sign,
        (Opcode::Fabs, _) => a & !sign,
        (Opcode::Copysign, _) => (a & !sign) | (b & sign),
        // Nothing that is rounded once more.
        (Opcode::Nextafter, _) => next_after(scalar, a, b),
        (Opcode::Fma, _) => fma(scalar, a, b, c),
        (_, MathValue::FloatBinary(f)) => narrow(scalar, f(number(a), number(b))),
        (_, MathValue::FloatUnary(f)) => narrow(scalar, f(number(a))),
        (_, MathValue::FloatAndInt(f)) => narrow(scalar, f(number(a), b as u32 as i32)),
        (_, MathValue::IntAndFloat(f)) => narrow(scalar, f(b as u32 as i32, number(a))),
        (_, MathValue::FloatToExponent(f)) => u128::from(f(number(a)) as u32),
        (_, MathValue::Composite(_)) => narrow(scalar, function.at(&[number(a)]).0),
        (_, MathValue::CompositeBinary(_)) => {
            narrow(scalar, function.at(&[number(a), number(b)]).0)
        }
        (_, MathValue::FloatTernary(f)) => narrow(scalar, f(number(a), number(b), number(c))),
        (_, MathValue::FloatSplit(_) | MathValue::FloatPair(_)) => {
            unreachable!("{opcode} has two results")
        }
    }
}

/// The row of an operation on floats.
#[inline]
fn function(opcode: Opcode) -> &'static MathFunction {
    let Some(function) = opcode.math() else {
        unreachable!("{opcode} is no function of floats")
    };
    function
}

/// `a·b + c`, rounded once.
fn fma(scalar: Scalar, a: u128, b: u128, c: u128) -> u128 {
    if scalar == Scalar::F32 {
        let [a, b, c] = [a, b, c].map(|raw| f32::from_bits(raw as u32));
        return u128::from(a.mul_add(b, c).to_bits());
    }
    let [a, b, c] = [a, b, c].map(|raw| widen(scalar, raw));
    if scalar == Scalar::F64 {
        return u128::from(a.mul_add(b, c).to_bits());
    }
    // The product of two short numbers is exact; the sum is made odd where it is not, so that rounding it again is harmless.
    let product = a * b;
    let sum = product + c;
    let error = {
        let part = sum - product;
        (product - (sum - part)) + (c - part)
    };
    let odd = if error != 0.0 && error.is_finite() && sum.to_bits() & 1 == 0 {
        let towards = if (error > 0.0) == (sum > 0.0) { 1 } else { -1 };
        f64::from_bits(sum.to_bits().wrapping_add_signed(towards))
    } else {
        sum
    };
    narrow(scalar, odd)
}

/// One lane of both results of `sincos` and similar.
pub(super) fn split(opcode: Opcode, scalar: Scalar, a: u128) -> (u128, u128) {
    let value = widen(scalar, a);
    match function(opcode).value {
        MathValue::FloatPair(f) => {
            let (first, second) = f(value);
            (narrow(scalar, first), narrow(scalar, second))
        }
        MathValue::FloatSplit(f) => {
            let (mantissa, exponent) = f(value);
            (narrow(scalar, mantissa), u128::from(exponent as u32))
        }
        _ => unreachable!("{opcode} does not have two results"),
    }
}

/// Towards zero to an integer of this width; none where it does not fit.
pub(super) fn to_int(value: f64, bits: u32, signed: bool) -> Option<u128> {
    let whole = value.trunc();
    let (low, high) = limits(bits, signed);
    (whole >= low && whole < high).then(|| whole_to_bits(whole, bits))
}

/// Towards zero to an integer of this width, limited to its range; 0 for NaN.
pub(super) fn to_int_saturating(value: f64, bits: u32, signed: bool) -> u128 {
    let whole = value.trunc();
    let (low, high) = limits(bits, signed);
    if whole.is_nan() {
        0
    } else if whole < low {
        if signed { 1 << (bits - 1) } else { 0 }
    } else if whole >= high {
        ones(if signed { bits - 1 } else { bits })
    } else {
        whole_to_bits(whole, bits)
    }
}

/// An integer, as sign and magnitude, rounded to a float.
pub(super) fn from_int(to: Scalar, negative: bool, magnitude: u128) -> u128 {
    let rounded = match to {
        Scalar::F64 => magnitude as f64,
        Scalar::F32 => f64::from(magnitude as f32),
        // As above: 53 digits, the last of them made odd if any were lost.
        _ => {
            let lost = (128 - magnitude.leading_zeros()).saturating_sub(53);
            let sticky = u128::from(magnitude & ones(lost) != 0);
            libm::ldexp(((magnitude >> lost) | sticky) as f64, lost as i32)
        }
    };
    narrow(to, if negative { -rounded } else { rounded })
}

/// The smallest number that fits, and the first above that does not.
fn limits(bits: u32, signed: bool) -> (f64, f64) {
    let power = |exponent: u32| f64::from_bits(u64::from(exponent + 1023) << 52);
    if signed {
        (-power(bits - 1), power(bits - 1))
    } else {
        (0.0, power(bits))
    }
}

fn whole_to_bits(whole: f64, bits: u32) -> u128 {
    if whole < 0.0 {
        (whole as i128) as u128 & ones(bits)
    } else {
        whole as u128
    }
}

/// The next number of the format after `a` in the direction of `b`; in the order of their bits, numbers of one sign are neighbours.
fn next_after(scalar: Scalar, a: u128, b: u128) -> u128 {
    let sign = 1 << (scalar.bits() - 1);
    let (from, to) = (widen(scalar, a), widen(scalar, b));
    if from.is_nan() || to.is_nan() {
        narrow(scalar, f64::NAN)
    } else if from == to {
        b
    } else if from == 0.0 {
        (b & sign) | 1
    } else if (from < to) == (from > 0.0) {
        a + 1
    } else {
        a - 1
    }
}
