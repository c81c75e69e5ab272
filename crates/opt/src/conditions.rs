//! What a condition implies for its parts, and for the integers that it compares, where it is true or where it is false.

use crate::interval::Interval;
use ferrozyme_ir::{Function, IntPredicate, OpView, Opcode, Value};
use smallvec::SmallVec;

/// A condition, and whether it holds.
pub type Truth = (Value, bool);

/// Conditions of which it is known whether they hold.
pub type Truths = SmallVec<[Truth; 4]>;

/// How many parts a condition is split into.
const MAX_PARTS: usize = 64;

/// The conditions that must all be so for a condition to be as wanted: both operands of an `and` that holds, neither of an `or` that does not. From left to right.
pub fn split_conjunction(function: &Function, truth: Truth) -> Truths {
    let mut found = Truths::new();
    let mut open = vec![truth];
    while let Some(truth) = open.pop() {
        let parts = match found.len() + open.len() < MAX_PARTS {
            true => parts_of(function, truth),
            false => None,
        };
        match parts {
            // The first is looked at first.
            Some((first, second)) => open.extend(second.into_iter().chain([first])),
            None => found.push(truth),
        }
    }
    found
}

/// The one or two conditions that a condition is made of, if all of them must be so.
fn parts_of(function: &Function, (condition, wanted): Truth) -> Option<(Truth, Option<Truth>)> {
    let constant = |value: Value| function.int_of(value).map(|bit| bit != 0);
    let both = |a, b, wanted| Some(((a, wanted), Some((b, wanted))));
    match function.definition(condition)? {
        OpView::Binary(Opcode::Xor, a, b) if constant(b) == Some(true) => {
            Some(((a, !wanted), None))
        }
        OpView::Binary(Opcode::And, a, b) if wanted => both(a, b, true),
        OpView::Binary(Opcode::Or, a, b) if !wanted => both(a, b, false),
        // `select c, d, false` is `c and d`, `select c, true, d` is `c or d`.
        OpView::Select {
            condition,
            then,
            otherwise,
        } => match (constant(then), constant(otherwise)) {
            (_, Some(false)) if wanted => both(condition, then, true),
            (Some(true), _) if !wanted => both(condition, otherwise, false),
            _ => None,
        },
        _ => None,
    }
}

/// A comparison of integers or pointers.
pub type Comparison = (IntPredicate, Value, Value);

/// The comparison that holds where a condition is as wanted.
pub fn comparison(function: &Function, (condition, wanted): Truth) -> Option<Comparison> {
    let OpView::Icmp(predicate, a, b) = function.definition(condition)? else {
        return None;
    };
    let predicate = match wanted {
        true => predicate,
        false => predicate.negated(),
    };
    Some((predicate, a, b))
}

/// What a comparison that holds says of two signed numbers.
#[derive(Clone, Copy, Default)]
pub(crate) struct Meaning {
    /// By how much the left one is smaller, at least.
    pub below: Option<i64>,
    /// By how much the left one is larger, at least.
    pub above: Option<i64>,
    /// Whether the left one is not negative.
    pub not_negative: bool,
}

/// What a comparison says of numbers of which it is known what they may be.
pub(crate) fn meaning(predicate: IntPredicate, left: Interval, right: Interval) -> Meaning {
    let limited = right.min >= 0;
    // Of numbers that are not negative, an unsigned comparison is a signed one.
    let plain = limited && left.min >= 0;
    let (below, above) = match predicate {
        IntPredicate::Slt => (Some(1), None),
        IntPredicate::Sle => (Some(0), None),
        IntPredicate::Sgt => (None, Some(1)),
        IntPredicate::Sge => (None, Some(0)),
        IntPredicate::Eq => (Some(0), Some(0)),
        // Without sign, nothing negative is below what is not.
        IntPredicate::Ult if limited => (Some(1), None),
        IntPredicate::Ule if limited => (Some(0), None),
        IntPredicate::Ugt if plain => (None, Some(1)),
        IntPredicate::Uge if plain => (None, Some(0)),
        // What is not equal to its own limit is beyond it.
        IntPredicate::Ne if left.min >= right.max => (None, Some(1)),
        IntPredicate::Ne if left.max <= right.min => (Some(1), None),
        _ => (None, None),
    };
    let unsigned = matches!(predicate, IntPredicate::Ult | IntPredicate::Ule);
    Meaning {
        below,
        above,
        not_negative: unsigned && limited,
    }
}

/// What the left one of two numbers may be where a comparison of them holds; none if it cannot hold.
pub(crate) fn narrow(predicate: IntPredicate, left: Interval, right: Interval) -> Option<Interval> {
    let meaning = meaning(predicate, left, right);
    let max = meaning
        .below
        .map_or(left.max, |gap| right.max.saturating_sub(gap.into()));
    let min = meaning
        .above
        .map_or(left.min, |gap| right.min.saturating_add(gap.into()));
    left.cut(
        if meaning.not_negative {
            min.max(0)
        } else {
            min
        },
        max,
    )
}

/// Whether a comparison surely holds, or surely does not.
pub(crate) fn decide(predicate: IntPredicate, left: Interval, right: Interval) -> Option<bool> {
    match narrow(predicate, left, right).is_none() {
        true => Some(false),
        false => narrow(predicate.negated(), left, right)
            .is_none()
            .then_some(true),
    }
}
