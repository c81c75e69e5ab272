//! A rough cost model of operations: is it cheaper to keep a value or to recompute it?

use ferrozyme_ir::{MathCost, Opcode};

/// The cost of an operation, in simple operations.
pub fn operation_cost(opcode: Opcode) -> u64 {
    if let Some(function) = opcode.math() {
        return match function.cost {
            MathCost::Simple => 2,
            MathCost::Slow => 5,
            MathCost::Call => 15,
        };
    }
    match opcode {
        Opcode::Sdiv | Opcode::Udiv | Opcode::Srem | Opcode::Urem => 5,
        Opcode::Select | Opcode::Fptrunc | Opcode::Fpext | Opcode::Sitofp | Opcode::Uitofp => 2,
        _ => 1,
    }
}
