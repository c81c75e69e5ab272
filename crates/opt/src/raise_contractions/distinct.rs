//! Are the elements of a destination distinct, whatever the indices?
//!
//! They are if the indices can be ordered so that each moves farther than all those before it together: a row-major matrix, a column-major one, both also with
//! padding. That is proven from what is known of strides and trip counts, or else tested when the program runs.

use super::Index;
use super::arrays::{emit, is_visible};
use crate::alias::Aliases;
use crate::inequalities::Inequalities;
use crate::symbolic::Symbolic;
use ferrozyme_ir::{Builder, IndexClass, IntPredicate, Op, Opcode, Type, Value};

/// How many indices of a destination are ordered.
const MAX_INDICES: usize = 3;

/// What the elements of a destination being distinct rests on.
pub(super) enum Distinct {
    /// They are.
    Always,
    /// They are if the conditions of one of these orders hold.
    If(Vec<Vec<Farther>>),
}

/// The condition that an index moves at least as far as the indices before it in an order, and an element.
pub(super) struct Farther {
    stride: Symbolic,
    /// The strides and trip counts of the indices before it.
    before: Vec<(Symbolic, Vec<Symbolic>)>,
    /// The size of an element.
    size: i64,
}

/// What the elements of a contraction's destination being distinct rests on; none if that cannot be told.
pub(super) fn are_distinct(
    aliases: &Aliases<'_>,
    nest: Op,
    indices: &[Index],
    element: Type,
) -> Option<Distinct> {
    let counting: Vec<&Index> = (indices.iter())
        .filter(|index| index.class != IndexClass::Sum)
        .collect();
    if counting.len() > MAX_INDICES {
        return None;
    }
    let size = i64::try_from(element.bytes()).ok()?;
    let orders: Vec<Vec<Farther>> = (permutations(counting.len()).into_iter())
        .map(|order| conditions(&counting, &order, size))
        .collect();
    let mut known = Inequalities::at(aliases.indices(), nest);
    for count in counting.iter().flat_map(|index| &index.counts) {
        // Where a loop does not run, there are no elements at all.
        if let Some(runs) = count.plus(-1) {
            known.assume(&runs);
        }
    }
    let is_proven = |order: &Vec<Farther>| order.iter().all(|one| one.is_proven(&known));
    if orders.iter().any(is_proven) {
        return Some(Distinct::Always);
    }
    let of_order = |index: &&Index| {
        let mut counts = index.counts.iter();
        counts.all(|count| count.is_constant().is_some())
            && index.strides[0].is_constant().is_some()
    };
    // What is all constant, and not proven, does not hold.
    let testable = |index: &&Index| is_visible(aliases, &index.strides[0], nest);
    let test = !counting.iter().all(of_order) && counting.iter().all(testable);
    test.then_some(Distinct::If(orders))
}

/// What must hold for an order of indices, the one that moves least first.
fn conditions(indices: &[&Index], order: &[usize], size: i64) -> Vec<Farther> {
    // The direction does not matter.
    let stride_of = |position: usize| {
        let stride = &indices[position].strides[0];
        let size = stride.is_constant().and_then(i64::checked_abs);
        size.map_or_else(|| stride.clone(), Symbolic::constant)
    };
    let of = |&position: &usize| (stride_of(position), indices[position].counts.clone());
    (order.iter().enumerate())
        .map(|(place, &position)| Farther {
            stride: stride_of(position),
            before: order[..place].iter().map(of).collect(),
            size,
        })
        .collect()
}

impl Farther {
    /// Whether it is known to hold; strides that are known to be positive only.
    fn is_proven(&self, known: &Inequalities<'_, '_>) -> bool {
        let reach =
            self.before
                .iter()
                .try_fold(self.stride.plus(-self.size), |rest, (stride, counts)| {
                    let mut trips = Symbolic::constant(1);
                    for count in counts {
                        trips = trips.mul(count)?;
                    }
                    Some(rest?.sub(&stride.mul(&trips.plus(-1)?)?))
                });
        matches!(reach, Some(Some(rest)) if known.prove_at_least(&rest, 0))
            && self
                .before
                .iter()
                .all(|(stride, _)| known.prove_at_least(stride, 1))
    }

    /// Builds the condition, for trip counts that are positive.
    fn build(&self, b: &mut Builder<'_>) -> Value {
        let stride = build_size(b, &self.stride);
        let mut reach = b.i64(self.size);
        let one = b.i64(1);
        for (other, counts) in &self.before {
            let mut trips = b.i64(1);
            for count in counts {
                let count = emit(count, b);
                trips = b.binary(Opcode::Mul, trips, count);
            }
            let steps = b.binary(Opcode::Sub, trips, one);
            let other = build_size(b, other);
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
        let Distinct::If(orders) = self else {
            return None;
        };
        let mut any = b.function.int(Type::I1, 0);
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
