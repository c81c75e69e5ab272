//! Builds the trip count of a counted loop as a value.

use ferrozyme_ir::{Builder, IntPredicate, Opcode, Scalar, Type, Value};

/// The trip count of `for … = from to to step step`, an `i64` of at least 0; none where the counter is wider than
/// that or the step is 0.
///
/// A loop of 2⁶³ iterations or more would not end in a lifetime, and counts as one that is not met.
pub fn build_trip_count(
    builder: &mut Builder<'_>,
    from: Value,
    to: Value,
    step: i128,
) -> Option<Value> {
    let Scalar::Int(bits) = builder.ty(from).scalar() else {
        return None;
    };
    if bits > 64 || step == 0 {
        return None;
    }
    let distance = i64::try_from(step.unsigned_abs()).ok()?;
    let mut widen = |value: Value| {
        if bits == 64 {
            return value;
        }
        match builder.function.int_of(value) {
            Some(constant) => builder.function.int(Type::I64, constant),
            None => builder.cast(Opcode::Sext, value, Type::I64),
        }
    };
    let (from, to) = (widen(from), widen(to));
    let (low, high) = if step > 0 { (from, to) } else { (to, from) };
    let zero = builder.i64(0);
    if let (Some(low), Some(high)) = (builder.function.int_of(low), builder.function.int_of(high)) {
        let trips = if low < high {
            (high - low - 1) / i128::from(distance) + 1
        } else {
            0
        };
        return Some(builder.i64(i64::try_from(trips).ok()?));
    }
    if low == zero && distance == 1 {
        return Some(builder.binary(Opcode::Smax, high, zero));
    }
    if distance == 1 {
        let end = builder.binary(Opcode::Smax, high, low);
        return Some(builder.binary(Opcode::Sub, end, low));
    }
    let runs = builder.icmp(IntPredicate::Slt, low, high);
    let span = if low == zero {
        high
    } else {
        builder.binary(Opcode::Sub, high, low)
    };
    let one = builder.i64(1);
    let distance = builder.i64(distance);
    let last = builder.binary(Opcode::Sub, span, one);
    let whole = builder.binary(Opcode::Udiv, last, distance);
    let trips = builder.binary(Opcode::Add, whole, one);
    Some(builder.select(runs, trips, zero))
}
