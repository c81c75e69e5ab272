//! Who uses which values.

use ferrozyme_ir::entity::SecondaryMap;
use ferrozyme_ir::{Function, Op, Value, all_ops};
use smallvec::SmallVec;

/// The uses of a function's values, as of when they were collected: each an operation and the position of the operand.
pub struct Uses {
    uses: SecondaryMap<Value, SmallVec<[(Op, usize); 2]>>,
}

impl Uses {
    /// Collects all uses, in the order of the text.
    pub fn of(function: &Function) -> Uses {
        Uses::by(function, all_ops(function))
    }

    /// Collects the uses by some operations.
    pub fn by(function: &Function, ops: impl IntoIterator<Item = Op>) -> Uses {
        let mut uses: SecondaryMap<Value, SmallVec<[(Op, usize); 2]>> = SecondaryMap::new();
        for op in ops {
            for (place, &operand) in function.ops[op].operands.iter().enumerate() {
                uses[operand].push((op, place));
            }
        }
        Uses { uses }
    }

    /// The uses of a value.
    pub fn of_value(&self, value: Value) -> &[(Op, usize)] {
        &self.uses[value]
    }

    /// The use of a value, if there is exactly one.
    pub fn only(&self, value: Value) -> Option<(Op, usize)> {
        match self.of_value(value) {
            &[only] => Some(only),
            _ => None,
        }
    }

    /// The operations that use results of an operation.
    pub fn users<'a>(&'a self, function: &'a Function, op: Op) -> impl Iterator<Item = Op> + 'a {
        let results = function.ops[op].results.iter();
        results.flat_map(|&result| self.of_value(result).iter().map(|&(user, _)| user))
    }
}
