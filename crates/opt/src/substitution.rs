//! Replacements of values, while a pass walks forward through a function.
//!
//! Definitions come before uses in the order of the text, so a pass that resolves the operands of each operation when
//! it meets it needs no second walk.

use ferrozyme_ir::entity::{SecondaryMap, packed_option::PackedOption};
use ferrozyme_ir::{Function, Op, Opcode, Value};

/// A map from values to what replaces them. A target is resolved when it is entered, so chains form only where a target
/// is itself replaced later, and stay short.
#[derive(Clone, Debug)]
pub struct Substitution {
    target: SecondaryMap<Value, PackedOption<Value>>,
}

impl Default for Substitution {
    fn default() -> Substitution {
        Substitution::new()
    }
}

impl Substitution {
    /// The map that replaces nothing.
    pub fn new() -> Substitution {
        Substitution {
            target: SecondaryMap::with_default(None.into()),
        }
    }

    /// From now on `old` is `new`.
    pub fn replace(&mut self, old: Value, new: Value) {
        let new = self.resolve(new);
        if new != old {
            self.target[old] = new.into();
        }
    }

    /// From now on `old` is itself again.
    pub fn restore(&mut self, old: Value) {
        self.target[old] = None.into();
    }

    /// The current replacement of a value.
    pub fn resolve(&self, value: Value) -> Value {
        let mut value = value;
        while let Some(next) = self.target[value].expand() {
            value = next;
        }
        value
    }

    /// Replaces the operands of one operation.
    ///
    /// A loop whose step turns out to be zero cannot run, and must not be written down with a constant for it: its step
    /// becomes `undef`, which is as wrong.
    pub fn apply(&self, function: &mut Function, op: Op) {
        for operand in &mut function.ops[op].operands {
            *operand = self.resolve(*operand);
        }
        if function.ops[op].opcode == Opcode::For {
            let step = function.ops[op].step();
            if function.int_of(step) == Some(0) {
                *function.ops[op].step_mut() = function.undef(function.ty(step));
            }
        }
    }
}
