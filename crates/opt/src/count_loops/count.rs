//! Builds the trip count of a general loop from the values that it starts with.

use crate::recurrence::{build_trip_count, distance, widen};
use crate::symbolic::Symbolic;
use ferrozyme_ir::{Builder, Flags, Opcode, Type, Value};

/// The trip count of a loop that runs at least once, from its values on entry.
pub(super) enum Count {
    /// `to - from + extra`, which is at least 1; with the opposite distance for a step of -1.
    Distance {
        from: Value,
        to: Limit,
        down: bool,
        extra: i64,
    },
    /// As before, but the distance may be 0 or wrap around: then it is taken as a number without sign, with 0 for 2^width.
    Wrapping {
        from: Value,
        to: Limit,
        down: bool,
        /// What is added: 1 where the comparison comes before the growth.
        extra: i64,
        /// Whether the loop can end by other means than its condition, so that a distance below 1 must be kept apart.
        stops: bool,
        /// Whether a test around the loop says that the distance is not 0. Where it is, and the count is computed ahead of the test, there are no iterations.
        apart: bool,
    },
    /// The iterations of `for from to to step step`, but at least 1.
    AtLeastOne { from: Value, to: Limit, step: i128 },
    /// One more than the iterations of `for from to to step step`.
    OneMore { from: Value, to: Limit, step: i128 },
    /// Up from a number that is not negative to a limit without sign, but at least one iteration.
    Unsigned {
        from: Value,
        to: Limit,
        step: i64,
        /// Whether the comparison comes before the growth.
        before: bool,
        /// As for `Wrapping`.
        stops: bool,
    },
    /// The distance divided by the step, plus `extra`: promised to come out even.
    Even {
        from: Value,
        to: Limit,
        step: i128,
        extra: i64,
    },
    /// As often as `by` fits into `from`, rounded up, but at least once.
    Division {
        from: Value,
        by: Value,
        /// Whether there is one more iteration where it comes out even.
        inclusive: bool,
        /// Whether nothing proves that `by` is not 0.
        doubtful: bool,
    },
    /// An expression.
    Known {
        trips: Symbolic,
        /// Whether nothing proves that it is at least 1, and the loop can end by other means than its condition.
        doubtful: bool,
        /// As for `Wrapping`.
        apart: bool,
    },
}

/// A value plus a number; the sum does not overflow.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    pub value: Value,
    pub plus: i64,
}

/// Builds a trip count ahead of the loop.
pub(super) fn build_count(builder: &mut Builder<'_>, count: &Count) -> Option<Value> {
    match count {
        &Count::Distance {
            from,
            to,
            down,
            extra,
        } => {
            let to = build_limit(builder, to);
            let (from, to) = (widen(builder, from), widen(builder, to));
            if extra == 0 {
                return Some(between(builder, from, to, down));
            }
            // From 1 up to and including n is n trips.
            let (low, high) = if down { (to, from) } else { (from, to) };
            let low = match builder.function.int_of(low) {
                Some(low) => builder.function.int(Type::I64, low - i128::from(extra)),
                None => {
                    let less = builder.i64(-extra);
                    builder.binary(Opcode::Add, low, less)
                }
            };
            Some(distance(builder, low, high))
        }
        &Count::Wrapping {
            from,
            to,
            down,
            extra,
            stops,
            apart,
        } => {
            let ty = builder.ty(from);
            let to = build_limit(builder, to);
            let span = between(builder, from, to, down);
            if ty == Type::I64 && !stops {
                if extra == 0 {
                    return Some(span);
                }
                let extra = builder.i64(extra);
                return Some(builder.binary(Opcode::Add, span, extra));
            }
            if apart {
                return Some(without_sign(builder, span));
            }
            // Taken one less, the distance lies between 0 and 2^width - 1.
            let less = builder.function.int(ty, i128::from(extra) - 1);
            let less = builder.binary(Opcode::Add, span, less);
            Some(one_more_without_sign(builder, less))
        }
        &Count::AtLeastOne { from, to, step } => {
            let to = build_limit(builder, to);
            let step = builder.function.int(builder.ty(from), step);
            let trips = build_trip_count(builder, from, to, step);
            let one = builder.i64(1);
            Some(builder.binary(Opcode::Smax, trips, one))
        }
        &Count::OneMore { from, to, step } => {
            let to = build_limit(builder, to);
            let step = builder.function.int(builder.ty(from), step);
            let trips = build_trip_count(builder, from, to, step);
            let one = builder.i64(1);
            Some(builder.binary(Opcode::Add, trips, one))
        }
        &Count::Unsigned {
            from,
            to,
            step,
            before,
            stops,
        } => {
            let to = build_limit(builder, to);
            Some(count_unsigned(builder, (from, to, step), before, stops))
        }
        &Count::Even {
            from,
            to,
            step,
            extra,
        } => {
            let to = build_limit(builder, to);
            let (from, to) = (widen(builder, from), widen(builder, to));
            let span = between(builder, from, to, step < 0);
            let by = builder.i64(i64::try_from(step.unsigned_abs()).ok()?);
            let trips = builder.binary(Opcode::Udiv, span, by);
            if let Some((op, _)) = builder.function.def_op(trips) {
                builder.function.ops[op].flags = Flags::EXACT;
            }
            let extra = builder.i64(extra);
            Some(builder.binary(Opcode::Add, trips, extra))
        }
        &Count::Division {
            from,
            by,
            inclusive,
            doubtful,
        } => Some(count_division(builder, from, by, inclusive, doubtful)),
        Count::Known {
            trips,
            doubtful,
            apart,
        } => {
            let trips = trips.emit(builder)?;
            if !doubtful {
                return Some(trips);
            }
            if *apart {
                return Some(without_sign(builder, trips));
            }
            let ones = builder.i64(-1);
            let less = builder.binary(Opcode::Add, trips, ones);
            Some(one_more_without_sign(builder, less))
        }
    }
}

/// As [`Count::Division`] says.
fn count_division(
    builder: &mut Builder<'_>,
    from: Value,
    by: Value,
    inclusive: bool,
    doubtful: bool,
) -> Value {
    let one = builder.i64(1);
    let ones = builder.i64(-1);
    let by = match doubtful {
        true => builder.binary(Opcode::Umax, by, one),
        false => by,
    };
    let rest = match inclusive {
        true => from,
        false => {
            let some = builder.binary(Opcode::Umax, from, one);
            builder.binary(Opcode::Add, some, ones)
        }
    };
    let whole = builder.binary(Opcode::Udiv, rest, by);
    builder.binary(Opcode::Add, whole, one)
}

/// As [`Count::Unsigned`] says.
fn count_unsigned(
    builder: &mut Builder<'_>,
    (from, to, step): (Value, Value, i64),
    before: bool,
    stops: bool,
) -> Value {
    // The number that the loop at least gets to before it compares.
    let first = if before {
        from
    } else {
        let one = builder.i64(1);
        match builder.function.int_of(from) {
            Some(from) => builder.function.int(Type::I64, from + 1),
            None => builder.binary(Opcode::Add, from, one),
        }
    };
    let end = builder.binary(Opcode::Umax, to, first);
    let mut span = distance(builder, from, end);
    let one = builder.i64(1);
    let ones = builder.i64(-1);
    if step == 1 && !stops {
        let extra = builder.i64(i64::from(before));
        return if before {
            builder.binary(Opcode::Add, span, extra)
        } else {
            span
        };
    }
    if !before {
        span = builder.binary(Opcode::Add, span, ones);
    }
    if step != 1 {
        let by = builder.i64(step);
        let round = if before {
            // Whole steps up to the limit, the last of which may pass it.
            let less = builder.i64(step - 1);
            builder.binary(Opcode::Add, span, less)
        } else {
            span
        };
        let whole = builder.binary(Opcode::Udiv, round, by);
        return builder.binary(Opcode::Add, whole, one);
    }
    one_more_without_sign(builder, span)
}

/// A number without sign as an `i64`, but no more than the largest of these.
fn without_sign(builder: &mut Builder<'_>, number: Value) -> Value {
    limited_without_sign(builder, number, i64::MAX)
}

fn limited_without_sign(builder: &mut Builder<'_>, number: Value, most: i64) -> Value {
    if builder.ty(number) == Type::I64 {
        let most = builder.i64(most);
        builder.binary(Opcode::Umin, number, most)
    } else {
        builder.cast(Opcode::Zext, number, Type::I64)
    }
}

/// One more than a number without sign, but no more than the largest `i64`.
fn one_more_without_sign(builder: &mut Builder<'_>, less: Value) -> Value {
    let less = limited_without_sign(builder, less, i64::MAX - 1);
    let one = builder.i64(1);
    builder.binary(Opcode::Add, less, one)
}

fn build_limit(builder: &mut Builder<'_>, limit: Limit) -> Value {
    let ty = builder.ty(limit.value);
    if limit.plus == 0 {
        return limit.value;
    }
    if let Some(number) = builder.function.int_of(limit.value) {
        return builder.function.int(ty, number + i128::from(limit.plus));
    }
    let plus = builder.function.int(ty, i128::from(limit.plus));
    let sum = builder.binary(Opcode::Add, limit.value, plus);
    if let Some((op, _)) = builder.function.def_op(sum) {
        builder.function.ops[op].flags = Flags::NSW;
    }
    sum
}

fn between(builder: &mut Builder<'_>, from: Value, to: Value, down: bool) -> Value {
    let (low, high) = if down { (to, from) } else { (from, to) };
    distance(builder, low, high)
}
