//! What operations cost, roughly: whether it pays to keep a value rather than to compute it again.

use ferrozyme_ir::{Form, Opcode};

/// What an operation costs, in simple operations.
pub fn operation_cost(opcode: Opcode) -> u64 {
    match opcode {
        Opcode::Offset
        | Opcode::Bitcast
        | Opcode::Zext
        | Opcode::Sext
        | Opcode::TruncInt
        | Opcode::Ptrtoint
        | Opcode::Inttoptr => 1,
        Opcode::Fdiv | Opcode::Sqrt | Opcode::Sdiv | Opcode::Udiv | Opcode::Srem | Opcode::Urem => {
            5
        }
        Opcode::Fadd
        | Opcode::Fsub
        | Opcode::Fmul
        | Opcode::Fneg
        | Opcode::Fma
        | Opcode::Fabs
        | Opcode::Fmin
        | Opcode::Fmax
        | Opcode::Fminimum
        | Opcode::Fmaximum
        | Opcode::Copysign
        | Opcode::Select
        | Opcode::Floor
        | Opcode::Ceil
        | Opcode::Trunc
        | Opcode::RoundEven
        | Opcode::Fptrunc
        | Opcode::Fpext
        | Opcode::Sitofp
        | Opcode::Uitofp => 2,
        opcode => match opcode.form() {
            // Sine, exponential and their like.
            Form::FloatUnary
            | Form::FloatBinary
            | Form::FloatAndInt
            | Form::FloatPair
            | Form::FloatSplit => 15,
            _ => 1,
        },
    }
}
