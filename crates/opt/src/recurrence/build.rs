//! Builds trip counts, numbers of iterations, and what carried values are after so many, as operations.

use super::Step;
use ferrozyme_ir::{Builder, Flags, IntPredicate, Opcode, Type, Value, ones};
use std::cmp::Ordering;

/// The trip count of `for … = from to to step step`, an `i64` of at least 0.
///
/// A loop of 2⁶³ iterations or more would not end in a lifetime, and counts as one that is not met.
pub fn build_trip_count(builder: &mut Builder<'_>, from: Value, to: Value, step: Value) -> Value {
    // Wider counters are only compared modulo 2⁶⁴.
    let is_wide = builder.ty(from).scalar().bits() > 64;
    let (from, to) = (widen(builder, from), widen(builder, to));
    let zero = builder.i64(0);
    let one = builder.i64(1);
    let number = builder.function.int_of(step).filter(|_| !is_wide);
    let size = number.and_then(|number| i64::try_from(number.unsigned_abs()).ok());
    let Some(size @ 1..) = size else {
        // Only the run knows which way the loop counts: (to - from) / step, rounded away from zero, or 0.
        let step = widen(builder, step);
        let minus_one = builder.i64(-1);
        let upward = builder.icmp(IntPredicate::Sgt, step, zero);
        let sign = builder.select(upward, one, minus_one);
        let distance = builder.binary(Opcode::Sub, to, from);
        let toward = builder.binary(Opcode::Sub, step, sign);
        let rounded = builder.binary(Opcode::Add, distance, toward);
        let count = builder.binary(Opcode::Sdiv, rounded, step);
        return builder.binary(Opcode::Smax, count, zero);
    };
    let (low, high) = if number > Some(0) {
        (from, to)
    } else {
        (to, from)
    };
    if let (Some(low), Some(high)) = (builder.function.int_of(low), builder.function.int_of(high)) {
        let whole = ((high - low).max(0) + i128::from(size) - 1) / i128::from(size);
        return builder.function.int(Type::I64, whole);
    }
    if size == 1 {
        if low == zero {
            return builder.binary(Opcode::Smax, high, zero);
        }
        let end = builder.binary(Opcode::Smax, high, low);
        return builder.binary(Opcode::Sub, end, low);
    }
    let runs = builder.icmp(IntPredicate::Slt, low, high);
    let span = distance(builder, low, high);
    let size = builder.i64(size);
    let last = builder.binary(Opcode::Sub, span, one);
    let whole = builder.binary(Opcode::Udiv, last, size);
    let trips = builder.binary(Opcode::Add, whole, one);
    builder.select(runs, trips, zero)
}

/// The number of the iteration in which a counted loop's counter is this, from 0 on.
pub fn build_iteration_number(
    builder: &mut Builder<'_>,
    counter: Value,
    from: Value,
    step: Value,
) -> Value {
    let [counter, from, step] = [counter, from, step].map(|value| widen(builder, value));
    let distance = distance(builder, from, counter);
    match builder.function.int_of(step) {
        Some(1) => distance,
        _ => builder.binary(Opcode::Sdiv, distance, step),
    }
}

impl Step {
    /// What a value that starts with `initial` is after `span / distance` such steps; `span` counts without sign. None, and nothing built, where that cannot be said without a division.
    pub(crate) fn build(
        &self,
        builder: &mut Builder<'_>,
        initial: Value,
        span: Value,
        distance: i64,
    ) -> Option<Value> {
        let ty = builder.ty(initial);
        let index_type = if ty.is_ptr() { Type::I64 } else { ty };
        let factor = match self.constant(builder.function) {
            Some(amount) if amount % i128::from(distance) == 0 => {
                Some(amount / i128::from(distance))
            }
            _ if distance != 1 => return None,
            _ => None,
        };
        let scale = match factor {
            Some(factor) if ty.is_ptr() => i64::try_from(factor).ok()?,
            _ => self.factor,
        };
        let span = resize(builder, span, index_type);
        let product = match factor {
            Some(1) => span,
            Some(_) if ty.is_ptr() => span,
            Some(factor) => {
                let factor = builder.function.int(index_type, factor);
                builder.binary(Opcode::Mul, span, factor)
            }
            None => builder.binary(Opcode::Mul, span, self.amount?),
        };
        if ty.is_ptr() {
            let address = builder.offset(initial, product, scale);
            let made = builder.function.def_op(address);
            let (op, _) = made.expect("the offset just built");
            builder.function.ops[op].flags = self.flags.intersection(Flags::INBOUNDS);
            return Some(address);
        }
        if self.factor < 0 && factor.is_none() {
            return Some(builder.binary(Opcode::Sub, initial, product));
        }
        Some(match builder.function.int_of(initial) {
            Some(0) => product,
            _ => builder.binary(Opcode::Add, initial, product),
        })
    }
}

/// A number without sign as one of another type.
fn resize(builder: &mut Builder<'_>, number: Value, ty: Type) -> Value {
    let (have, want) = (builder.ty(number).scalar().bits(), ty.scalar().bits());
    match (builder.function.int_of(number), have.cmp(&want)) {
        (_, Ordering::Equal) => number,
        (Some(constant), _) => {
            let unsigned = constant as u128 & ones(have);
            builder.function.int(ty, unsigned as i128)
        }
        (None, Ordering::Less) => builder.cast(Opcode::Zext, number, ty),
        (None, Ordering::Greater) => builder.cast(Opcode::TruncInt, number, ty),
    }
}

/// A number with sign as an `i64`.
pub(crate) fn widen(builder: &mut Builder<'_>, value: Value) -> Value {
    if let Some(number) = builder.function.int_of(value) {
        return builder.function.int(Type::I64, number);
    }
    match builder.ty(value) {
        Type::I64 => value,
        ty if ty.scalar().bits() < 64 => builder.cast(Opcode::Sext, value, Type::I64),
        _ => builder.cast(Opcode::TruncInt, value, Type::I64),
    }
}

/// How far one number is from a lower one.
pub(crate) fn distance(builder: &mut Builder<'_>, low: Value, high: Value) -> Value {
    match builder.function.int_of(low) {
        Some(0) => high,
        _ => builder.binary(Opcode::Sub, high, low),
    }
}
