//! What a condition implies for its parts where it is true, or where it is false.

use ferrozyme_ir::{Function, IntPredicate, OpView, Opcode, Value};
use smallvec::SmallVec;

/// A condition, and whether it holds.
pub type Truth = (Value, bool);

/// Conditions of which it is known whether they hold.
pub type Truths = SmallVec<[Truth; 4]>;

/// How many conditions within each other are looked through.
const MAX_DEPTH: usize = 8;

/// The conditions that must all be so for a condition to be as wanted: both operands of an `and` that holds, neither of an `or` that does not.
pub fn split_conjunction(function: &Function, truth: Truth) -> Truths {
    let mut parts = Truths::new();
    split_into(function, truth, &mut parts, MAX_DEPTH);
    parts
}

fn split_into(function: &Function, (condition, wanted): Truth, found: &mut Truths, depth: usize) {
    let constant = |value: Value| function.int_of(value).map(|bit| bit != 0);
    let parts = match function.definition(condition) {
        _ if depth == 0 => None,
        Some(OpView::Binary(Opcode::Xor, a, b)) if constant(b) == Some(true) => {
            Some((a, None, !wanted))
        }
        Some(OpView::Binary(Opcode::And, a, b)) if wanted => Some((a, Some(b), true)),
        Some(OpView::Binary(Opcode::Or, a, b)) if !wanted => Some((a, Some(b), false)),
        Some(OpView::Select {
            condition,
            then,
            otherwise,
        }) => {
            if wanted && constant(otherwise) == Some(false) {
                Some((condition, Some(then), true))
            } else if !wanted && constant(then) == Some(true) {
                Some((condition, Some(otherwise), false))
            } else {
                None
            }
        }
        _ => None,
    };
    match parts {
        Some((first, second, wanted)) => {
            split_into(function, (first, wanted), found, depth - 1);
            if let Some(second) = second {
                split_into(function, (second, wanted), found, depth - 1);
            }
        }
        None => found.push((condition, wanted)),
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
