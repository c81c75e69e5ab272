//! What a condition says of its parts where it holds, or where it does not.

use ferrozyme_ir::{Function, IntPredicate, Opcode, Payload, Value};
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
    let parts = function.def_op(condition).and_then(|(op, _)| {
        let data = &function.ops[op];
        let operand = |index: usize| data.operands[index];
        match data.opcode {
            _ if depth == 0 => None,
            Opcode::Xor if constant(operand(1)) == Some(true) => Some((operand(0), None, !wanted)),
            Opcode::And if wanted => Some((operand(0), Some(operand(1)), true)),
            Opcode::Or if !wanted => Some((operand(0), Some(operand(1)), false)),
            Opcode::Select if wanted && constant(operand(2)) == Some(false) => {
                Some((operand(0), Some(operand(1)), true))
            }
            Opcode::Select if !wanted && constant(operand(1)) == Some(true) => {
                Some((operand(0), Some(operand(2)), false))
            }
            _ => None,
        }
    });
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
    let (op, _) = function.def_op(condition)?;
    let data = &function.ops[op];
    let Payload::IntPredicate(predicate) = data.payload else {
        return None;
    };
    let predicate = match wanted {
        true => predicate,
        false => predicate.negated(),
    };
    Some((predicate, data.operands[0], data.operands[1]))
}
