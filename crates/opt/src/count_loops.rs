//! Turns general loops whose iterations can be counted on entry into counted loops.
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
//! the trip count is written so that it comes out right anyway. Where the arithmetic could wrap around, the loop
//! stays as it is. A loop of 2⁶³ iterations or more that nothing else can end would not end in a lifetime, and counts as one
//! that is not met.
//!
//! What is passed to the next iteration is [simplified](crate::simplify_next) first. The carried value stays; [`rewrite_induction`](crate::rewrite_induction) makes a function of the counter of it.

mod count;

use crate::alias::Aliases;
use crate::behaviour::Behaviours;
use crate::carried::carried_by;
use crate::inequalities::Inequalities;
use crate::recurrence::step_of;
use crate::simplify_next::simplify_next;
use crate::symbolic::Symbolic;
use crate::with_function::with_function;
use count::{Count, Distance, Limit, Span, build_count};
use ferrozyme_ir::{
    Builder, Cursor, Flags, Function, FunctionId, IntPredicate, Module, Op, OpView, Opcode, Region,
    Scalar, Type, Value, ValueData, ValueDef, all_ops,
};
use rustc_hash::FxHashMap;

/// Turns general loops into counted ones; returns the number of loops changed.
pub fn count_loops(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |module, function| {
        let Some(body) = function.body else { return 0 };
        let changed = simplify_next(function);
        let mut plans = find(module, function);
        let count = plans.len();
        if count > 0 {
            let scratch = function.new_region(&[]);
            apply(function, body, scratch, &mut plans);
        }
        changed + count - plans.len()
    })
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
        let OpView::Icmp(predicate, a, b) = function.definition(terminator.condition())? else {
            return None;
        };
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
        self.count_with(op, &growing, predicate.swapped(), a)
    }

    fn is_outside(&self, op: Op, value: Value) -> bool {
        self.aliases.indices().is_defined_outside(value, op)
    }

    /// The count of a loop that takes `by` away from a carried value as long as it was larger, or not smaller.
    fn count_division(&self, op: Op, rest: Value, by: Value, inclusive: bool) -> Option<Count> {
        let function = self.aliases.function();
        let carried = carried_by(function, op);
        let carried = carried.iter().find(|carried| carried.argument == rest)?;
        let step = step_of(function, rest, carried.next)?;
        if (step.amount, step.factor) != (Some(by), -1)
            || !self.is_outside(op, by)
            || function.ty(rest) != Type::I64
        {
            return None;
        }
        let known = Inequalities::at(self.aliases.indices(), op);
        let divisor = self.aliases.indices().exact_expression(by);
        Some(Count::Division {
            from: carried.initial,
            by,
            inclusive,
            doubtful: !known.prove_at_least(&divisor, 1),
        })
    }

    /// Whether a value is one that the loop carries, before or after it grows by a constant.
    fn growing(&self, op: Op, value: Value) -> Option<Growing> {
        let function = self.aliases.function();
        let all = carried_by(function, op);
        let at_start = all.iter().find(|carried| carried.argument == value);
        let carried = at_start.or_else(|| all.iter().find(|carried| carried.next == value))?;
        let step = step_of(function, carried.argument, carried.next)?;
        let constant = step.constant(function).filter(|&step| step != 0)?;
        Some(Growing {
            initial: carried.initial,
            step: constant,
            flags: step.flags,
            before: at_start.is_some(),
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
        let (down, single, before) = (step < 0, step.abs() == 1, growing.before);
        let promised = growing.flags.contains(Flags::NSW);
        let toward = match down {
            true => IntPredicate::Sgt,
            false => IntPredicate::Slt,
        };
        let (predicate, to) = self.without_equality(predicate, to)?;
        let predicate = self.as_signed(op, predicate, from, to);
        let least = i64::from(!before);
        let known = match predicate {
            IntPredicate::Ne if !single && promised && !self.body_stops(op) => {
                // A value that does not wrap around meets its end exactly, or nothing would end the loop.
                Distance::Multiple
            }
            _ if single
                && (predicate == toward || predicate == IntPredicate::Ne)
                && self.prove_distance(op, from, to, down, least) =>
            {
                Distance::Exact
            }
            IntPredicate::Ne if single => Distance::Wrapping {
                stops: self.body_stops(op),
                apart: !before && self.are_apart_at(op, from, to),
            },
            _ if predicate == toward && (promised || before && single) => Distance::Signed,
            IntPredicate::Ult if !down && self.counts_unsigned(op, growing) => Distance::Unsigned {
                stops: self.body_stops(op),
            },
            _ => return None,
        };
        let span = Span {
            from,
            to,
            step,
            before,
        };
        Some(Count::Span(span, known))
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
        let known = Inequalities::at(self.aliases.indices(), op);
        expression.is_some_and(|expression| known.prove_at_least(&expression, 0))
    }

    /// Whether a value that grows goes up from a number that is not negative without wrapping around as one without sign.
    fn counts_unsigned(&self, op: Op, growing: &Growing) -> bool {
        self.aliases.function().ty(growing.initial) == Type::I64
            && (growing.step == 1 || growing.flags.contains(Flags::NUW))
            && self.is_not_negative(op, growing.initial, 0)
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
        let trips = distance.divide_exactly(i64::try_from(growing.step).ok()?)?;
        let trips = trips.plus(i64::from(growing.before))?;
        if !self.aliases.indices().can_emit(&trips)
            || !trips.variables().all(|value| self.is_outside(op, value))
        {
            return None;
        }
        let mut known = Inequalities::at(self.aliases.indices(), op);
        for index in self.indices_behind(to) {
            // With the test before the loop that it is not 0, it is at least 1.
            let nonzero = index
                .is_value()
                .is_some_and(|index| self.is_nonzero_at(op, index));
            let least = index.plus(-i64::from(nonzero));
            known.assume(&least.unwrap_or(index));
        }
        let proven = known.prove_at_least(&trips, 1);
        // Without a proof, it has to be sure that the pointer does not come around to its end the long way.
        if !proven && !growing.flags.contains(Flags::INBOUNDS) {
            return None;
        }
        Some(Count::Known {
            trips,
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
                && let Some(OpView::Icmp(predicate, a, b)) = function.definition(data.condition())
            {
                let wanted = match predicate {
                    IntPredicate::Ne => Some(data.regions[0]),
                    IntPredicate::Eq => Some(data.regions[1]),
                    _ => None,
                };
                if wanted == Some(inner) {
                    let difference = self.distance_between(a, b);
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
            let OpView::Offset { base, index, scale } = data.view() else {
                break;
            };
            if data.flags.contains(Flags::NUW) && scale > 1 {
                found.push(self.aliases.indices().exact_expression(index));
            }
            pointer = base;
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
        distance
            .is_some_and(|distance| Inequalities::at(indices, op).prove_at_least(&distance, least))
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

/// Changes the loops; plans that could not be carried out stay in the map.
fn apply(
    function: &mut Function,
    region: Region,
    scratch: Region,
    plans: &mut FxHashMap<Op, Count>,
) {
    for op in function.take_ops(region) {
        if let Some(count) = plans.get(&op) {
            let mut builder = Builder::new(function, scratch);
            builder.location = builder.function.ops[op].location;
            let trips = build_count(&mut builder, count);
            let before = function.take_ops(scratch);
            if let Some(trips) = trips {
                Cursor::at_end(region).insert_all(function, before);
                replace_loop(function, op, trips);
                plans.remove(&op);
            }
        }
        for inner in function.ops[op].regions.clone() {
            apply(function, inner, scratch, plans);
        }
        function.append(region, op);
    }
}

/// Makes a counted loop of a general one, with this trip count.
fn replace_loop(function: &mut Function, op: Op, trips: Value) {
    let zero = function.int(Type::I64, 0);
    let one = function.int(Type::I64, 1);
    let data = &mut function.ops[op];
    data.opcode = Opcode::For;
    data.operands.insert_many(0, [zero, trips, one]);
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
mod tests;
