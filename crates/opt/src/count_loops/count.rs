//! Builds the trip count of a general loop from the values that it starts with.

use crate::recurrence::{build_trip_count, distance, widen};
use crate::symbolic::Symbolic;
use ferrozyme_ir::{Builder, Flags, Opcode, Type, Value};

/// The trip count of a loop that runs at least once, from its values on entry.
pub(super) enum Count {
    /// Until a number meets a limit.
    Span(Span, Distance),
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
        /// As for [`Distance::Wrapping`].
        apart: bool,
    },
}

/// A number that grows by a constant until it meets a limit.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub from: Value,
    pub to: Limit,
    pub step: i128,
    /// Whether the comparison comes before the growth, which makes one iteration more.
    pub before: bool,
}

/// What is known of the distance from a number to its limit.
pub(super) enum Distance {
    /// The step is 1 or -1, and the loop runs as often as the distance says, which is at least once.
    Exact,
    /// The step is 1 or -1, and the distance may be 0 or wrap around: then it is taken as a number without sign, with 0 for 2^width.
    Wrapping {
        /// Whether the loop can end by other means than its condition, so that a distance below 1 must be kept apart.
        stops: bool,
        /// Whether a test around the loop says that the distance is not 0. Where it is, and the count is computed ahead of the test, there are no iterations.
        apart: bool,
    },
    /// As that of a `for`, which would not run where it is not positive.
    Signed,
    /// Up from a number that is not negative to a limit without sign.
    Unsigned {
        /// As for `Wrapping`.
        stops: bool,
    },
    /// Promised to be a multiple of the step.
    Multiple,
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
        Count::Span(span, known) => build_span(builder, *span, known),
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

fn build_span(builder: &mut Builder<'_>, span: Span, known: &Distance) -> Option<Value> {
    let (from, to) = (span.from, build_limit(builder, span.to));
    let ty = builder.ty(from);
    let between = |builder: &mut Builder<'_>, from: Value, to: Value| {
        let (low, high) = if span.step < 0 {
            (to, from)
        } else {
            (from, to)
        };
        distance(builder, low, high)
    };
    let one = builder.i64(1);
    match *known {
        Distance::Exact => {
            let (from, to) = (widen(builder, from), widen(builder, to));
            let (low, high) = if span.step < 0 {
                (to, from)
            } else {
                (from, to)
            };
            // From 1 up to and including n is n trips.
            let low = match builder.function.int_of(low) {
                _ if !span.before => low,
                Some(low) => builder.function.int(Type::I64, low - 1),
                None => {
                    let less = builder.i64(-1);
                    builder.binary(Opcode::Add, low, less)
                }
            };
            Some(distance(builder, low, high))
        }
        Distance::Wrapping { stops, apart } => {
            let distance = between(builder, from, to);
            Some(match (ty == Type::I64 && !stops, apart) {
                (true, _) if !span.before => distance,
                (true, _) => builder.binary(Opcode::Add, distance, one),
                (false, true) => without_sign(builder, distance),
                (false, false) => {
                    // Taken one less, the distance lies between 0 and 2^width - 1.
                    let less = builder.function.int(ty, i128::from(span.before) - 1);
                    let less = builder.binary(Opcode::Add, distance, less);
                    one_more_without_sign(builder, less)
                }
            })
        }
        Distance::Signed => {
            let step = builder.function.int(ty, span.step);
            if builder.function.int_of(step) != Some(span.step) {
                return None;
            }
            let trips = build_trip_count(builder, from, to, step);
            let opcode = if span.before {
                Opcode::Add
            } else {
                Opcode::Smax
            };
            Some(builder.binary(opcode, trips, one))
        }
        Distance::Unsigned { stops } => {
            let step = i64::try_from(span.step).ok()?;
            Some(count_unsigned(
                builder,
                (from, to, step),
                span.before,
                stops,
            ))
        }
        Distance::Multiple => {
            let (from, to) = (widen(builder, from), widen(builder, to));
            let distance = between(builder, from, to);
            let by = builder.i64(i64::try_from(span.step.unsigned_abs()).ok()?);
            let trips = builder.binary(Opcode::Udiv, distance, by);
            if let Some((op, _)) = builder.function.def_op(trips) {
                builder.function.ops[op].flags = Flags::EXACT;
            }
            let extra = builder.i64(i64::from(span.before));
            Some(builder.binary(Opcode::Add, trips, extra))
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

/// As [`Distance::Unsigned`] says.
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
