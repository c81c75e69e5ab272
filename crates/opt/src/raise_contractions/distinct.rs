//! Are the elements of an array distinct, whatever the indices?
//!
//! They are if the indices can be ordered so that each moves farther than all those before it together: a row-major matrix, a column-major one, both also with
//! padding. That is proven from what is known of strides and trip counts, or else tested when the program runs.

use super::arrays::{emit, is_visible};
use crate::alias::Aliases;
use crate::inequalities::Inequalities;
use crate::symbolic::Symbolic;
use ferrozyme_ir::{Builder, IntPredicate, Op, Opcode, Type, Value};

/// How many indices of a destination are ordered.
const MAX_INDICES: usize = 3;

/// How an index moves in an array.
#[derive(Clone, PartialEq)]
pub(crate) struct Moves {
    /// By how many bytes.
    pub stride: Symbolic,
    /// The trip counts of the loops that it stands for.
    pub counts: Vec<Symbolic>,
    /// How often it runs at least where it matters whether elements are distinct.
    pub least: i64,
}

/// What the elements of an array being distinct rests on.
#[derive(Clone, PartialEq)]
pub(crate) enum Distinct {
    /// They are.
    Always,
    /// They are if the conditions of one of these orders hold, or if there are none since one of these loops does not run.
    If(Vec<Vec<Farther>>, Vec<Symbolic>),
}

/// The condition that an index moves at least as far as the indices before it in an order, and an element.
#[derive(Clone, PartialEq)]
pub(crate) struct Farther {
    stride: Symbolic,
    /// The indices before it.
    before: Vec<Moves>,
    /// The size of an element.
    size: i64,
}

/// What the elements of an array being distinct rests on; none if that cannot be told.
pub(super) fn are_distinct(
    aliases: &Aliases<'_>,
    nest: Op,
    indices: &[Moves],
    size: i64,
) -> Option<Distinct> {
    if indices.len() > MAX_INDICES {
        return None;
    }
    let orders: Vec<Vec<Farther>> = (permutations(indices.len()).into_iter())
        .map(|order| conditions(indices, &order, size))
        .collect();
    let counts: Vec<Symbolic> = (indices.iter())
        .flat_map(|index| index.counts.clone())
        .collect();
    let mut known = Inequalities::at(aliases.indices(), nest);
    for assumed in aliases.assumed() {
        known.assume(assumed);
    }
    for count in &counts {
        // Where a loop does not run, there are no elements at all.
        if let Some(runs) = count.plus(-1) {
            known.assume(&runs);
        }
    }
    let is_proven = |order: &Vec<Farther>| order.iter().all(|one| one.is_proven(&known));
    if orders.iter().any(is_proven) {
        return Some(Distinct::Always);
    }
    // An order that cannot be is not tested.
    for index in indices {
        if let [count] = &index.counts[..]
            && let Some(runs) = count.plus(-index.least)
        {
            known.assume(&runs);
        }
    }
    let is_possible = |order: &Vec<Farther>| !order.iter().any(|one| one.is_refuted(&known));
    let orders: Vec<Vec<Farther>> = orders.into_iter().filter(is_possible).collect();
    let numbers = || {
        counts
            .iter()
            .chain(indices.iter().map(|index| &index.stride))
    };
    // What is all constant, and not proven, does not hold.
    let is_known = numbers().all(|number| number.is_constant().is_some());
    let testable = numbers().all(|number| is_visible(aliases, number, nest));
    (testable && !is_known && !orders.is_empty()).then_some(Distinct::If(orders, counts))
}

/// What must hold for an order of indices, the one that moves least first.
fn conditions(indices: &[Moves], order: &[usize], size: i64) -> Vec<Farther> {
    // The direction does not matter.
    let of = |&position: &usize| {
        let mut index = indices[position].clone();
        if let Some(known) = index.stride.is_constant().and_then(i64::checked_abs) {
            index.stride = Symbolic::constant(known);
        }
        index
    };
    (order.iter().enumerate())
        .map(|(place, position)| Farther {
            stride: of(position).stride,
            before: order[..place].iter().map(of).collect(),
            size,
        })
        .collect()
}

impl Farther {
    /// Whether it is known to hold; strides that are known to be positive only.
    fn is_proven(&self, known: &Inequalities<'_, '_>) -> bool {
        let rest = self.rest().filter(|rest| known.prove_at_least(rest, 0));
        rest.is_some() && (self.before.iter()).all(|index| known.prove_at_least(&index.stride, 1))
    }

    /// Whether it is known not to hold; strides that are known to be positive only.
    fn is_refuted(&self, known: &Inequalities<'_, '_>) -> bool {
        let mut strides = self.before.iter().map(|index| &index.stride);
        strides.all(|stride| known.prove_at_least(stride, 1))
            && known.prove_at_least(&self.stride, 1)
            && self.rest().is_some_and(|rest| known.prove_negative(&rest))
    }

    /// How much farther it moves than those before it do.
    fn rest(&self) -> Option<Symbolic> {
        let mut rest = self.stride.plus(-self.size)?;
        for index in &self.before {
            let mut trips = Symbolic::constant(1);
            for count in &index.counts {
                trips = trips.mul(count)?;
            }
            rest = rest.sub(&index.stride.mul(&trips.plus(-1)?)?)?;
        }
        Some(rest)
    }

    /// Builds the condition, for trip counts that are positive.
    fn build(&self, b: &mut Builder<'_>) -> Value {
        let stride = build_size(b, &self.stride);
        let mut reach = b.i64(self.size);
        let one = b.i64(1);
        for index in &self.before {
            let mut trips = b.i64(1);
            for count in &index.counts {
                let count = emit(count, b);
                trips = b.binary(Opcode::Mul, trips, count);
            }
            let steps = b.binary(Opcode::Sub, trips, one);
            let other = build_size(b, &index.stride);
            let distance = b.binary(Opcode::Mul, other, steps);
            reach = b.binary(Opcode::Add, reach, distance);
        }
        b.icmp(IntPredicate::Sge, stride, reach)
    }
}

/// Builds a stride without its sign.
fn build_size(b: &mut Builder<'_>, stride: &Symbolic) -> Value {
    let stride = emit(stride, b);
    let zero = b.i64(0);
    let negative = b.binary(Opcode::Sub, zero, stride);
    b.binary(Opcode::Smax, stride, negative)
}

impl Distinct {
    /// Builds the condition under which elements are distinct; none if they always are.
    pub(super) fn build(&self, b: &mut Builder<'_>) -> Option<Value> {
        let Distinct::If(orders, counts) = self else {
            return None;
        };
        let mut any = b.function.int(Type::I1, 0);
        let zero = b.i64(0);
        for count in counts {
            let count = emit(count, b);
            let idle = b.icmp(IntPredicate::Sle, count, zero);
            any = b.binary(Opcode::Or, any, idle);
        }
        for order in orders {
            let mut all = b.function.int(Type::I1, 1);
            for condition in order {
                let holds = condition.build(b);
                all = b.binary(Opcode::And, all, holds);
            }
            any = b.binary(Opcode::Or, any, all);
        }
        Some(any)
    }
}

/// All orders of so many indices, the order of a nest (the last index moves least) first.
fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut found = Vec::new();
    for last in 0..count {
        for rest in permutations(count - 1) {
            let mut order: Vec<usize> = rest
                .into_iter()
                .map(|index| index + usize::from(index >= last))
                .collect();
            order.push(last);
            found.push(order);
        }
    }
    found
}
