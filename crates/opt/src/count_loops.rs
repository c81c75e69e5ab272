//! Turns general loops whose turns can be counted on entry into counted loops.
//!
//! ```text
//! %e = loop with (%i: i64 = 0) {                  for %k: i64 = 0 to %n step 1 with (%i: i64 = 0) {
//!   …                                               …
//!   %j = add i64 %i, 1                     →        %j = add i64 %i, 1
//!   %c = icmp ne i64 %j, %n                         %c = icmp ne i64 %j, %n
//!   again %c, %j                                    yield %j
//! }                                               }
//! ```
//!
//! The condition must compare a carried integer or pointer that grows by a constant, before or after it grew, with a value
//! from outside. Pointers must stay within one object, which `slice::Iter` promises by `inbounds`. The loop runs at least once whatever the values are; where nothing proves that the distance is positive,
//! the number of turns is written so that it comes out right anyway. Where the arithmetic could wrap around, the loop
//! stays as it is. A loop of 2⁶³ turns or more that nothing else can end would not end in a lifetime, and counts as one
//! that is not met.
//!
//! What grows evenly in all turns but the last is [made regular](crate::regular_growth) first. The carried value stays; [`rewrite_induction`](crate::rewrite_induction) makes a function of the counter of it.

use crate::alias::Aliases;
use crate::behaviour::Behaviours;
use crate::detach::with_function;
use crate::facts::Facts;
use crate::regular_growth::make_growth_regular;
use crate::symbolic::Symbolic;
use crate::trip_count::build_trip_count;
use ferrozyme_ir::{
    Builder, Flags, Function, FunctionId, IntPredicate, Module, Op, Opcode, Payload, Region,
    Scalar, Type, Value, ValueData, ValueDef, all_ops,
};
use rustc_hash::FxHashMap;

/// Turns general loops into counted ones; gives the number of loops changed.
pub fn count_loops(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |module, function| {
        let Some(body) = function.body else { return 0 };
        let changed = make_growth_regular(function);
        let mut plans = find(module, function);
        let count = plans.len();
        if count > 0 {
            let scratch = function.new_region(&[]);
            apply(function, body, scratch, &mut plans);
        }
        changed + count - plans.len()
    })
}

/// How the turns of a loop are counted.
enum Count {
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
        /// Whether a test around the loop says that the distance is not 0. Where it is, and the count is computed ahead of the test, there are no turns.
        apart: bool,
    },
    /// The turns of `for from to to step step`, but at least 1.
    AtLeastOne { from: Value, to: Limit, step: i128 },
    /// One more than the turns of `for from to to step step`.
    OneMore { from: Value, to: Limit, step: i128 },
    /// Up from a number that is not negative to a limit without sign, but at least one turn.
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
        /// Whether there is one more turn where it comes out even.
        inclusive: bool,
        /// Whether nothing proves that `by` is not 0.
        doubtful: bool,
    },
    /// An expression.
    Known {
        turns: Symbolic,
        /// Whether nothing proves that it is at least 1, and the loop can end by other means than its condition.
        doubtful: bool,
        /// As for `Wrapping`.
        apart: bool,
    },
}

/// A value plus a number; the sum does not overflow.
#[derive(Clone, Copy)]
struct Limit {
    value: Value,
    plus: i64,
}

fn find(module: &Module, function: &Function) -> FxHashMap<Op, Count> {
    let loops: Vec<Op> = all_ops(function)
        .into_iter()
        .filter(|&op| function.ops[op].opcode == Opcode::Loop)
        .collect();
    let mut plans = FxHashMap::default();
    if loops.is_empty() {
        return plans;
    }
    let finder = Finder {
        aliases: &Aliases::new(module, function),
        behaviours: Behaviours::of(module, function),
    };
    for op in loops {
        if let Some(count) = finder.count(op) {
            plans.insert(op, count);
        }
    }
    plans
}

struct Finder<'a, 'm> {
    aliases: &'a Aliases<'m>,
    behaviours: Behaviours,
}

/// A carried value that grows by a constant.
struct Growing {
    initial: Value,
    step: i128,
    flags: Flags,
    /// Whether it is compared before it grows.
    before: bool,
}

impl Finder<'_, '_> {
    fn count(&self, op: Op) -> Option<Count> {
        let function = self.aliases.function();
        let body = function.ops[op].regions[0];
        let terminator = &function.ops[function.terminator(body)];
        if terminator.opcode != Opcode::Again {
            return None;
        }
        let (condition, _) = function.def_op(terminator.operands[0])?;
        let compare = &function.ops[condition];
        let Payload::IntPredicate(predicate) = compare.payload else {
            return None;
        };
        let (a, b) = (compare.operands[0], compare.operands[1]);
        let division = match predicate {
            IntPredicate::Ugt => self.count_division(op, a, b, false),
            IntPredicate::Uge => self.count_division(op, a, b, true),
            IntPredicate::Ult => self.count_division(op, b, a, false),
            IntPredicate::Ule => self.count_division(op, b, a, true),
            _ => None,
        };
        if division.is_some() {
            return division;
        }
        if let Some(growing) = self.growing(op, a)
            && self.is_outside(op, b)
        {
            return self.count_with(op, &growing, predicate, b);
        }
        let growing = self.growing(op, b)?;
        if !self.is_outside(op, a) {
            return None;
        }
        self.count_with(op, &growing, swap(predicate), a)
    }

    fn is_outside(&self, op: Op, value: Value) -> bool {
        self.aliases.indices().is_defined_outside(value, op)
    }

    /// The count of a loop that takes `by` away from a carried value as long as it was larger, or not smaller.
    fn count_division(&self, op: Op, rest: Value, by: Value, inclusive: bool) -> Option<Count> {
        let function = self.aliases.function();
        let data = &function.ops[op];
        let body = data.regions[0];
        let index = function.regions[body]
            .args
            .iter()
            .position(|&arg| arg == rest)?;
        let next = function.ops[function.terminator(body)].operands[1 + index];
        let (less, _) = function.def_op(next)?;
        let less = &function.ops[less];
        if less.opcode != Opcode::Sub
            || less.operands[..] != [rest, by]
            || !self.is_outside(op, by)
            || function.ty(rest) != Type::I64
        {
            return None;
        }
        let facts = Facts::at(self.aliases.indices(), op);
        let divisor = self.aliases.indices().exact_expression(by);
        Some(Count::Division {
            from: data.operands[index],
            by,
            inclusive,
            doubtful: !facts.prove_at_least(&divisor, 1),
        })
    }

    /// Whether a value is one that the loop carries, before or after it grows by a constant.
    fn growing(&self, op: Op, value: Value) -> Option<Growing> {
        let function = self.aliases.function();
        let data = &function.ops[op];
        let body = data.regions[0];
        let args = &function.regions[body].args;
        let next = &function.ops[function.terminator(body)].operands[1..];
        let (index, before) = match args.iter().position(|&arg| arg == value) {
            Some(index) => (index, true),
            None => (next.iter().position(|&next| next == value)?, false),
        };
        let (grow, _) = function.def_op(next[index])?;
        let grow = &function.ops[grow];
        let step = match (grow.opcode, &grow.payload) {
            (Opcode::Add, _) if grow.operands[0] == args[index] => {
                function.int_of(grow.operands[1])?
            }
            (Opcode::Offset, &Payload::Scale(scale)) if grow.operands[0] == args[index] => function
                .int_of(grow.operands[1])?
                .checked_mul(i128::from(scale))?,
            _ => return None,
        };
        (step != 0).then_some(Growing {
            initial: data.operands[index],
            step,
            flags: grow.flags,
            before,
        })
    }

    /// The count of a loop that runs again while the growing value compares so with `to`.
    fn count_with(
        &self,
        op: Op,
        growing: &Growing,
        predicate: IntPredicate,
        to: Value,
    ) -> Option<Count> {
        let function = self.aliases.function();
        let (from, step) = (growing.initial, growing.step);
        if function.ty(from) == Type::PTR {
            return self.count_pointers(op, growing, predicate, to);
        }
        if !matches!(function.ty(from).scalar(), Scalar::Int(2..=64))
            || function.ty(from).is_vector()
        {
            return None;
        }
        let down = step < 0;
        let single = step.abs() == 1;
        let (predicate, to) = self.without_equality(predicate, to)?;
        let runs = self.prove_distance(op, from, to, down, 1);
        let predicate = self.as_signed(op, predicate, from, to);
        match predicate {
            IntPredicate::Slt if !down => {}
            IntPredicate::Sgt if down => {}
            IntPredicate::Ult if !down => return self.count_unsigned(op, growing, to),
            // A value that does not wrap around meets its end exactly, or nothing would end the loop.
            IntPredicate::Ne
                if !single && growing.flags.contains(Flags::NSW) && !self.body_stops(op) =>
            {
                return Some(Count::Even {
                    from,
                    to,
                    step,
                    extra: i64::from(growing.before),
                });
            }
            IntPredicate::Ne if single => {
                let extra = i64::from(growing.before);
                if runs || (growing.before && self.prove_distance(op, from, to, down, 0)) {
                    return Some(Count::Distance {
                        from,
                        to,
                        down,
                        extra,
                    });
                }
                return Some(Count::Wrapping {
                    from,
                    to,
                    down,
                    extra,
                    stops: self.body_stops(op),
                    apart: !growing.before && self.are_apart_at(op, from, to),
                });
            }
            _ => return None,
        }
        let promised = growing.flags.contains(Flags::NSW);
        let extra = i64::from(growing.before);
        let distance = Count::Distance {
            from,
            to,
            down,
            extra,
        };
        match growing.before {
            true if single && self.prove_distance(op, from, to, down, 0) => Some(distance),
            true if promised || single => Some(Count::OneMore { from, to, step }),
            false if runs && single => Some(distance),
            false if promised => Some(Count::AtLeastOne { from, to, step }),
            _ => None,
        }
    }

    /// A comparison that excludes equality, where moving the limit by one does not overflow.
    fn without_equality(
        &self,
        predicate: IntPredicate,
        to: Value,
    ) -> Option<(IntPredicate, Limit)> {
        let interval = self.aliases.indices().interval_of_value(to);
        let bits = self.aliases.function().ty(to).scalar().bits();
        let largest = (1i128 << (bits - 1)) - 1;
        let (predicate, plus, fits) = match predicate {
            IntPredicate::Sle => (IntPredicate::Slt, 1, interval.max < largest),
            IntPredicate::Sge => (IntPredicate::Sgt, -1, interval.min > -largest - 1),
            IntPredicate::Ule => (
                IntPredicate::Ult,
                1,
                interval.min >= 0 && interval.max < largest,
            ),
            IntPredicate::Uge => (IntPredicate::Ugt, -1, interval.min >= 1),
            other => (other, 0, true),
        };
        fits.then_some((predicate, Limit { value: to, plus }))
    }

    /// An unsigned comparison of numbers that are known not to be negative is a signed one.
    fn as_signed(&self, op: Op, predicate: IntPredicate, from: Value, to: Limit) -> IntPredicate {
        let signed = match predicate {
            IntPredicate::Ult => IntPredicate::Slt,
            IntPredicate::Ugt => IntPredicate::Sgt,
            other => return other,
        };
        let known =
            self.is_not_negative(op, from, 0) && self.is_not_negative(op, to.value, to.plus);
        if known { signed } else { predicate }
    }

    fn is_not_negative(&self, op: Op, value: Value, plus: i64) -> bool {
        let expression = self.aliases.indices().exact_expression(value).plus(plus);
        let facts = Facts::at(self.aliases.indices(), op);
        expression.is_some_and(|expression| facts.prove_at_least(&expression, 0))
    }

    /// The count of a loop that goes up to a limit without sign.
    fn count_unsigned(&self, op: Op, growing: &Growing, to: Limit) -> Option<Count> {
        let function = self.aliases.function();
        let word = function.ty(growing.initial) == Type::I64;
        let exact = growing.step == 1 || growing.flags.contains(Flags::NUW);
        if !word || !exact || !self.is_not_negative(op, growing.initial, 0) {
            return None;
        }
        Some(Count::Unsigned {
            from: growing.initial,
            to,
            step: i64::try_from(growing.step).ok()?,
            before: growing.before,
            stops: self.body_stops(op),
        })
    }

    /// The count of a loop that moves a pointer until it meets another one into the same object.
    fn count_pointers(
        &self,
        op: Op,
        growing: &Growing,
        predicate: IntPredicate,
        to: Value,
    ) -> Option<Count> {
        let pointers = self.aliases.pointers();
        let from = growing.initial;
        if predicate != IntPredicate::Ne || pointers.root(from) != pointers.root(to) {
            return None;
        }
        let distance = pointers.offset(to).sub(&pointers.offset(from))?;
        let apart = !growing.before && self.is_tested_at(op, &distance);
        let turns = distance.divide_exactly(i64::try_from(growing.step).ok()?)?;
        let turns = turns.plus(i64::from(growing.before))?;
        if !self.aliases.indices().can_emit(&turns)
            || !turns.variables().all(|value| self.is_outside(op, value))
        {
            return None;
        }
        let mut facts = Facts::at(self.aliases.indices(), op);
        for index in self.indices_behind(to) {
            // With the test before the loop that it is not 0, it is at least 1.
            let nonzero = index
                .is_value()
                .is_some_and(|index| self.is_nonzero_at(op, index));
            let least = index.plus(-i64::from(nonzero));
            facts.assume(&least.unwrap_or(index));
        }
        let proven = facts.prove_at_least(&turns, 1);
        // Without a proof, it has to be sure that the pointer does not come around to its end the long way.
        if !proven && !growing.flags.contains(Flags::INBOUNDS) {
            return None;
        }
        Some(Count::Known {
            turns,
            doubtful: !proven && self.body_stops(op),
            apart,
        })
    }

    /// Whether a test around an operation says that a value is not 0.
    fn is_nonzero_at(&self, op: Op, value: Value) -> bool {
        let value = self.aliases.indices().exact_expression(value);
        self.is_tested_at(op, &value)
    }

    /// Whether a test around an operation says that a value is not a limit.
    fn are_apart_at(&self, op: Op, value: Value, limit: Limit) -> bool {
        let indices = self.aliases.indices();
        let distance = indices
            .exact_expression(limit.value)
            .plus(limit.plus)
            .and_then(|limit| limit.sub(&indices.exact_expression(value)));
        distance.is_some_and(|distance| self.is_tested_at(op, &distance))
    }

    /// Whether a test around an operation says that an expression is not 0.
    fn is_tested_at(&self, op: Op, expression: &Symbolic) -> bool {
        let function = self.aliases.function();
        let structure = self.aliases.indices().structure();
        let opposite = expression.scale(-1);
        let mut region = structure.region_of(op);
        for _ in 0..8 {
            let Some(inner) = region else { return false };
            let Some(holder) = structure.op_of(inner) else {
                return false;
            };
            let data = &function.ops[holder];
            if data.opcode == Opcode::If
                && let Some((compare, _)) = function.def_op(data.operands[0])
            {
                let wanted = match function.ops[compare].payload {
                    Payload::IntPredicate(IntPredicate::Ne) => Some(data.regions[0]),
                    Payload::IntPredicate(IntPredicate::Eq) => Some(data.regions[1]),
                    _ => None,
                };
                if wanted == Some(inner) {
                    let compared = &function.ops[compare].operands;
                    let difference = self.distance_between(compared[0], compared[1]);
                    if difference.is_some()
                        && (difference.as_ref() == Some(expression) || difference == opposite)
                    {
                        return true;
                    }
                }
            }
            region = structure.region_of(holder);
        }
        false
    }

    /// The difference of two integers, or the bytes between two pointers into one object.
    fn distance_between(&self, left: Value, right: Value) -> Option<Symbolic> {
        let (indices, pointers) = (self.aliases.indices(), self.aliases.pointers());
        if !self.aliases.function().ty(left).is_ptr() {
            let [left, right] = [left, right].map(|value| indices.exact_expression(value));
            return left.sub(&right);
        }
        let same = pointers.root(left) == pointers.root(right);
        same.then(|| pointers.offset(left).sub(&pointers.offset(right)))?
    }

    /// What is added to the object's address to get to a pointer that the loop's condition depends on: by the promise that no
    /// unsigned sum overflows, none of it is negative.
    fn indices_behind(&self, mut pointer: Value) -> Vec<Symbolic> {
        let function = self.aliases.function();
        let mut found = Vec::new();
        while let Some((op, _)) = function.def_op(pointer) {
            let data = &function.ops[op];
            let (Opcode::Offset, &Payload::Scale(scale)) = (data.opcode, &data.payload) else {
                break;
            };
            if data.flags.contains(Flags::NUW) && scale > 1 {
                found.push(self.aliases.indices().exact_expression(data.operands[1]));
            }
            pointer = data.operands[0];
        }
        found
    }

    /// Whether there is a proof that the distance from one value to another is at least this.
    fn prove_distance(&self, op: Op, from: Value, to: Limit, down: bool, least: i64) -> bool {
        let indices = self.aliases.indices();
        let from = indices.exact_expression(from);
        let distance = indices
            .exact_expression(to.value)
            .plus(to.plus)
            .and_then(|to| if down { from.sub(&to) } else { to.sub(&from) });
        distance.is_some_and(|distance| Facts::at(indices, op).prove_at_least(&distance, least))
    }

    fn body_stops(&self, op: Op) -> bool {
        let function = self.aliases.function();
        let body = function.ops[op].regions[0];
        function.regions[body]
            .ops
            .iter()
            .any(|&inner| self.behaviours.op(inner).stops)
    }
}

/// What a comparison asks of its operands the other way round.
pub(crate) fn swap(predicate: IntPredicate) -> IntPredicate {
    use IntPredicate::*;
    match predicate {
        Eq | Ne => predicate,
        Slt => Sgt,
        Sgt => Slt,
        Sle => Sge,
        Sge => Sle,
        Ult => Ugt,
        Ugt => Ult,
        Ule => Uge,
        Uge => Ule,
    }
}

/// Changes the loops; plans that could not be carried out stay in the map.
fn apply(
    function: &mut Function,
    region: Region,
    scratch: Region,
    plans: &mut FxHashMap<Op, Count>,
) {
    let ops = std::mem::take(&mut function.regions[region].ops);
    let mut done = Vec::with_capacity(ops.len());
    for op in ops {
        if let Some(count) = plans.get(&op) {
            let mut builder = Builder::new(function, scratch);
            builder.location = builder.function.ops[op].location;
            let turns = build_count(&mut builder, count);
            let before = std::mem::take(&mut function.regions[scratch].ops);
            if let Some(turns) = turns {
                done.extend(before);
                replace_loop(function, op, turns);
                plans.remove(&op);
            }
        }
        for inner in function.ops[op].regions.clone() {
            apply(function, inner, scratch, plans);
        }
        done.push(op);
    }
    function.regions[region].ops = done;
}

fn build_count(builder: &mut Builder<'_>, count: &Count) -> Option<Value> {
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
                return Some(distance(builder, from, to, down));
            }
            // From 1 up to and including n is n turns.
            let (low, high) = if down { (to, from) } else { (from, to) };
            let low = match builder.function.int_of(low) {
                Some(low) => builder.function.int(Type::I64, low - i128::from(extra)),
                None => {
                    let less = builder.i64(-extra);
                    builder.binary(Opcode::Add, low, less)
                }
            };
            Some(distance(builder, low, high, false))
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
            let span = distance(builder, from, to, down);
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
            let turns = build_trip_count(builder, from, to, step)?;
            let one = builder.i64(1);
            Some(builder.binary(Opcode::Smax, turns, one))
        }
        &Count::OneMore { from, to, step } => {
            let to = build_limit(builder, to);
            let turns = build_trip_count(builder, from, to, step)?;
            let one = builder.i64(1);
            Some(builder.binary(Opcode::Add, turns, one))
        }
        &Count::Unsigned {
            from,
            to,
            step,
            before,
            stops,
        } => {
            let to = build_limit(builder, to);
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
            let mut span = distance(builder, from, end, false);
            let one = builder.i64(1);
            let ones = builder.i64(-1);
            if step == 1 && !stops {
                let extra = builder.i64(i64::from(before));
                return Some(if before {
                    builder.binary(Opcode::Add, span, extra)
                } else {
                    span
                });
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
                return Some(builder.binary(Opcode::Add, whole, one));
            }
            Some(one_more_without_sign(builder, span))
        }
        &Count::Even {
            from,
            to,
            step,
            extra,
        } => {
            let to = build_limit(builder, to);
            let (from, to) = (widen(builder, from), widen(builder, to));
            let span = distance(builder, from, to, step < 0);
            let by = builder.i64(i64::try_from(step.unsigned_abs()).ok()?);
            let turns = builder.binary(Opcode::Udiv, span, by);
            if let Some((op, _)) = builder.function.def_op(turns) {
                builder.function.ops[op].flags = Flags::EXACT;
            }
            let extra = builder.i64(extra);
            Some(builder.binary(Opcode::Add, turns, extra))
        }
        &Count::Division {
            from,
            by,
            inclusive,
            doubtful,
        } => {
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
            Some(builder.binary(Opcode::Add, whole, one))
        }
        Count::Known {
            turns,
            doubtful,
            apart,
        } => {
            let turns = turns.emit(builder)?;
            if !doubtful {
                return Some(turns);
            }
            if *apart {
                return Some(without_sign(builder, turns));
            }
            let ones = builder.i64(-1);
            let less = builder.binary(Opcode::Add, turns, ones);
            Some(one_more_without_sign(builder, less))
        }
    }
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

fn widen(builder: &mut Builder<'_>, value: Value) -> Value {
    if builder.ty(value) == Type::I64 {
        return value;
    }
    match builder.function.int_of(value) {
        Some(constant) => builder.function.int(Type::I64, constant),
        None => builder.cast(Opcode::Sext, value, Type::I64),
    }
}

fn distance(builder: &mut Builder<'_>, from: Value, to: Value, down: bool) -> Value {
    let (low, high) = if down { (to, from) } else { (from, to) };
    if builder.function.int_of(low) == Some(0) {
        return high;
    }
    builder.binary(Opcode::Sub, high, low)
}

/// Makes a counted loop of a general one, with this number of turns.
fn replace_loop(function: &mut Function, op: Op, turns: Value) {
    let zero = function.int(Type::I64, 0);
    let one = function.int(Type::I64, 1);
    let data = &mut function.ops[op];
    data.opcode = Opcode::For;
    data.operands.insert_many(0, [zero, turns, one]);
    let body = data.regions[0];
    let counter = function.values.push(ValueData {
        ty: Type::I64,
        def: ValueDef::Argument {
            region: body,
            index: 0,
        },
        name: None,
        range: None,
    });
    function.regions[body].args.insert(0, counter);
    for (index, arg) in function.regions[body].args.clone().into_iter().enumerate() {
        function.values[arg].def = ValueDef::Argument {
            region: body,
            index: index as u32,
        };
    }
    let terminator = function.terminator(body);
    let data = &mut function.ops[terminator];
    data.opcode = Opcode::Yield;
    data.operands.remove(0);
}

#[cfg(test)]
mod tests {
    use super::count_loops;
    use crate::testing::{check, check_same_outcomes, check_same_results, check_unchanged};
    use expect_test::expect;
    use ferrozyme_ir::interpret::Datum;

    #[test]
    fn a_loop_behind_its_guard() {
        check(
            count_loops,
            "func @f(%p: ptr, %n: i64) {
               %c = icmp sgt i64 %n, 0
               if %c {
                 %e = loop with (%i: i64 = 0) {
                   %q = offset %p, %i * 8
                   store f64 0.0, %q align 8
                   %j = add i64 %i, 1
                   %d = icmp ne i64 %j, %n
                   again %d, %j
                 }
                 yield
               }
               return
             }",
            expect![[r#"
                func @f(%p: ptr, %n: i64) {
                  %c = icmp sgt i64 %n, 0
                  if %c {
                    %e = for %0: i64 = 0 to %n step 1 with (%i: i64 = 0) {
                      %q = offset %p, %i * 8
                      store f64 0.0, %q align 8
                      %j = add i64 %i, 1
                      %d = icmp ne i64 %j, %n
                      yield %j
                    }
                    yield
                  }
                  return
                }
            "#]],
        );
    }

    #[test]
    fn pointers_that_run_to_an_end() {
        check(
            count_loops,
            "func @f(%p: ptr, %n: i64 range 1..=1000) {
               %end = offset %p, %n * 8
               %e = loop with (%q: ptr = %p) {
                 store f64 0.0, %q align 8
                 %r = offset %q, 8
                 %d = icmp ne ptr %r, %end
                 again %d, %r
               }
               return
             }",
            expect![[r#"
                func @f(%p: ptr, %n: i64 range 1..=1000) {
                  %end = offset %p, %n * 8
                  %e = for %0: i64 = 0 to %n step 1 with (%q: ptr = %p) {
                    store f64 0.0, %q align 8
                    %r = offset %q, 8
                    %d = icmp ne ptr %r, %end
                    yield %r
                  }
                  return
                }
            "#]],
        );
    }

    #[test]
    fn at_least_one_turn() {
        check(
            count_loops,
            r#"func @f(%a: i64, %n: i64, %m: i32) {
               %e = loop with (%i: i64 = %a) {
                 %j = add nsw i64 %i, 2
                 %c = icmp slt i64 %j, %n
                 again %c, %j
               }
               %g = loop with (%k: i32 = %m) {
                 %l = add i32 %k, -1
                 %d = icmp ne i32 %l, 0
                 again %d, %l
               }
               %h = loop with (%o: i64 = 0) {
                 %b = icmp eq i64 %o, 100
                 if %b { trap "too long" }
                 %q = add i64 %o, 1
                 %r = icmp ne i64 %q, %n
                 again %r, %q
               }
               return
             }"#,
            expect![[r#"
                func @f(%a: i64, %n: i64, %m: i32) {
                  %0 = icmp slt i64 %a, %n
                  %1 = sub i64 %n, %a
                  %2 = sub i64 %1, 1
                  %3 = udiv i64 %2, 2
                  %4 = add i64 %3, 1
                  %5 = select i64 %0, %4, 0
                  %6 = smax i64 %5, 1
                  %e = for %7: i64 = 0 to %6 step 1 with (%i: i64 = %a) {
                    %j = add nsw i64 %i, 2
                    %c = icmp slt i64 %j, %n
                    yield %j
                  }
                  %8 = add i32 %m, -1
                  %9 = zext i32 %8 to i64
                  %10 = add i64 %9, 1
                  %g = for %11: i64 = 0 to %10 step 1 with (%k: i32 = %m) {
                    %l = add i32 %k, -1
                    %d = icmp ne i32 %l, 0
                    yield %l
                  }
                  %12 = add i64 %n, -1
                  %13 = umin i64 %12, 9223372036854775806
                  %14 = add i64 %13, 1
                  %h = for %15: i64 = 0 to %14 step 1 with (%o: i64 = 0) {
                    %b = icmp eq i64 %o, 100
                    if %b {
                      trap "too long"
                    }
                    %q = add i64 %o, 1
                    %r = icmp ne i64 %q, %n
                    yield %q
                  }
                  return
                }
            "#]],
        );
    }

    #[test]
    fn what_a_test_keeps_away_counts_as_no_turns() {
        check(
            count_loops,
            r#"func @f(%a: i64, %n: i64) {
               %same = icmp eq i64 %a, %n
               if %same {
                 yield
               } else {
                 %h = loop with (%i: i64 = %a) {
                   %b = icmp eq i64 %i, 100
                   if %b { trap "too long" }
                   %j = add i64 %i, 1
                   %r = icmp ne i64 %j, %n
                   again %r, %j
                 }
                 yield
               }
               return
             }"#,
            expect![[r#"
                func @f(%a: i64, %n: i64) {
                  %same = icmp eq i64 %a, %n
                  if %same {
                    yield
                  } else {
                    %0 = sub i64 %n, %a
                    %1 = umin i64 %0, 9223372036854775807
                    %h = for %2: i64 = 0 to %1 step 1 with (%i: i64 = %a) {
                      %b = icmp eq i64 %i, 100
                      if %b {
                        trap "too long"
                      }
                      %j = add i64 %i, 1
                      %r = icmp ne i64 %j, %n
                      yield %j
                    }
                    yield
                  }
                  return
                }
            "#]],
        );
    }

    #[test]
    fn loops_that_cannot_be_counted_stay() {
        check_unchanged(
            count_loops,
            "func @f(%a: i64, %n: i64, %x: f64) {
               %e = loop with (%i: i64 = %a) {
                 %j = add i64 %i, 1
                 %c = icmp slt i64 %j, %n
                 again %c, %j
               }
               %g = loop with (%k: i64 = %a) {
                 %l = add i64 %k, 2
                 %d = icmp ne i64 %l, %n
                 again %d, %l
               }
               %h = loop with (%y: f64 = %x) {
                 %z = fmul f64 %y, 0.5
                 %b = fcmp ogt f64 %z, 1.0
                 again %b, %z
               }
               %r = loop with (%s: i64 = 1) {
                 %t = mul i64 %s, 2
                 %v = icmp slt i64 %t, %n
                 again %v, %t
               }
               return
             }",
        );
    }

    #[test]
    fn results_stay_the_same() {
        let text = r#"func @main(%a: i64, %n: i64, %m: i32) -> (i64, i64, i32, i64) {
               %e, %s = loop with (%i: i64 = %a, %t: i64 = 0) {
                 %u = mul i64 %i, %i
                 %t1 = add i64 %t, %u
                 %j = add nsw i64 %i, 3
                 %c = icmp slt i64 %j, %n
                 again %c, %j, %t1
               }
               %g = loop with (%k: i32 = %m) {
                 %l = add i32 %k, -1
                 %d = icmp ne i32 %l, 0
                 again %d, %l
               }
               %h = loop with (%o: i64 = %a) {
                 %q = add i64 %o, 1
                 %r = icmp slt i64 %o, %n
                 again %r, %q
               }
               return %e, %s, %g, %h
             }"#;
        let inputs: Vec<[Datum; 3]> = [(0, 0, 1), (0, 10, 5), (-3, 7, 100), (5, 2, 2), (6, 7, 3)]
            .into_iter()
            .map(|(a, n, m)| [Datum::i64(a), Datum::i64(n), Datum::i32(m)])
            .collect();
        let inputs: Vec<&[Datum]> = inputs.iter().map(|input| &input[..]).collect();
        check_same_results(count_loops, text, &inputs);
    }

    /// A loop that counts with one comparison, and stops the program at 20 if `stops`.
    fn counting(start: &str, grow: &str, compare: &str, stops: bool) -> String {
        let stop = if stops {
            "%bad = icmp eq i64 %a, 20
             if %bad { trap \"stop\" } else { yield }"
        } else {
            ""
        };
        format!(
            "func @main(%n: i64) -> (i64, i64) {{
               %s, %e = loop with (%a: i64 = 0, %i: i64 = {start}) {{
                 {stop}
                 %a1 = add i64 %a, 1
                 %j = {grow}
                 %c = icmp {compare}
                 again %c, %a1, %j
               }}
               return %s, %e
             }}"
        )
    }

    #[test]
    fn comparisons_without_sign() {
        let inputs = [0, 1, 2, 3, 4, 7, 11, 12, 13].map(|n| [Datum::i64(n)]);
        let inputs: Vec<&[Datum]> = inputs.iter().map(|input| &input[..]).collect();
        for stops in [false, true] {
            for (start, grow, compare) in [
                ("0", "add i64 %i, 1", "ult i64 %j, %n"),
                ("0", "add i64 %i, 1", "ult i64 %i, %n"),
                ("3", "add i64 %i, 1", "ugt i64 %n, %j"),
                ("0", "add nuw i64 %i, 3", "ult i64 %j, %n"),
                ("2", "add nuw i64 %i, 3", "ult i64 %i, %n"),
                ("1", "add nsw i64 %i, 2", "sle i64 %j, 9"),
                ("12", "add nsw i64 %i, -1", "uge i64 %j, 3"),
                ("12", "add nsw i64 %i, -2", "sge i64 %i, 3"),
            ] {
                let text = counting(start, grow, compare, stops);
                check_same_outcomes(count_loops, &text, &inputs);
            }
        }
        // Nothing but the program's own end comes before the end of these.
        let text = counting("0", "add i64 %i, 1", "ult i64 %j, %n", true);
        let inputs = [-1, i64::MIN, i64::MAX].map(|n| [Datum::i64(n)]);
        let inputs: Vec<&[Datum]> = inputs.iter().map(|input| &input[..]).collect();
        check_same_outcomes(count_loops, &text, &inputs);
    }

    #[test]
    fn steps_that_meet_their_end() {
        let text = counting("%n", "add nsw i64 %i, -4", "ne i64 %i, 4", false);
        let inputs = [4, 8, 12, 40].map(|n| [Datum::i64(n)]);
        let inputs: Vec<&[Datum]> = inputs.iter().map(|input| &input[..]).collect();
        check_same_outcomes(count_loops, &text, &inputs);
        // Where something else may end it, or it may wrap around, it need not come out even.
        check_unchanged(
            count_loops,
            &counting("%n", "add nsw i64 %i, -4", "ne i64 %i, 4", true),
        );
        check_unchanged(
            count_loops,
            &counting("%n", "add i64 %i, -4", "ne i64 %i, 4", false),
        );
    }

    #[test]
    fn a_slice_of_unknown_length() {
        check(
            count_loops,
            "func @f(%v: ptr) -> (f64) {
               %p = load ptr %v align 8
               %l = offset nuw inbounds %v, 8
               %n = load i64 %l align 8
               %end = offset nuw inbounds %p, %n * 8
               %none = icmp eq i64 %n, 0
               %r = if %none -> (f64) {
                 yield 0.0
               } else {
                 %s, %e = loop with (%a: f64 = 0.0, %q: ptr = %p) {
                   %x = load f64 %q align 8
                   %bad = fcmp olt f64 %x, 0.0
                   if %bad { trap \"negative\" } else { yield }
                   %b = fadd f64 %a, %x
                   %q1 = offset nuw inbounds %q, 8
                   %c = icmp ne ptr %end, %q1
                   again %c, %b, %q1
                 }
                 yield %s
               }
               return %r
             }",
            expect![[r#"
                func @f(%v: ptr) -> (f64) {
                  %p = load ptr %v align 8
                  %l = offset nuw inbounds %v, 8
                  %n = load i64 %l align 8
                  %end = offset nuw inbounds %p, %n * 8
                  %none = icmp eq i64 %n, 0
                  %r = if %none -> (f64) {
                    yield 0.0
                  } else {
                    %s, %e = for %0: i64 = 0 to %n step 1 with (%a: f64 = 0.0, %q: ptr = %p) {
                      %x = load f64 %q align 8
                      %bad = fcmp olt f64 %x, 0.0
                      if %bad {
                        trap "negative"
                      }
                      %b = fadd f64 %a, %x
                      %q1 = offset nuw inbounds %q, 8
                      %c = icmp ne ptr %end, %q1
                      yield %b, %q1
                    }
                    yield %s
                  }
                  return %r
                }
            "#]],
        );
    }
}
