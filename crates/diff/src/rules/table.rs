//! The table itself: one rule for each operation of the IR.
//!
//! What computes floats from floats has its derivative in the table of mathematical functions (`ir/src/mathematics/rows.rs`); here is the rest.

use super::{Rule, Zero};
use ferrozyme_ir::{Derivative, Opcode};
use std::sync::LazyLock;

/// The rule of an operation.
pub fn rule(opcode: Opcode) -> &'static Rule {
    static TABLE: LazyLock<Vec<Rule>> =
        LazyLock::new(|| Opcode::ALL.iter().map(|&opcode| row(opcode)).collect());
    // The variants of the enum and `ALL` follow the order of the same table.
    &TABLE[opcode as usize]
}

fn row(opcode: Opcode) -> Rule {
    use Opcode::*;
    if let Some(function) = opcode.math() {
        return match function.derivative() {
            Derivative::Partials(partials) => Rule::Partials(partials),
            Derivative::Steps => Rule::Inactive(Zero::Steps),
        };
    }
    match opcode {
        // ---- linear operations that move lanes or change types
        Fpext => Rule::Linear("x' = fptrunc(r')"),
        Fptrunc => Rule::Linear("x' = fpext(r')"),
        Bitcast => Rule::Linear("x' = r', floats of one width on both sides"),
        Select => Rule::Linear("x' = select(c, r', 0), y' = select(c, 0, r')"),
        Splat => Rule::Linear("x' = reduce_fadd(r')"),
        ReduceFadd => Rule::Linear("x' = splat(r')"),
        Extract => Rule::Linear("v' = insert(0, r', i)"),
        Insert => Rule::Linear("v' = insert(r', 0, i), x' = extract(r', i)"),
        Shuffle => {
            Rule::Linear("each lane of x' and y' is the sum of the lanes of r' that it went to")
        }

        // ---- steps: constant between their jumps
        Fcmp | Fptosi | Fptoui | FptosiSat | FptouiSat => Rule::Inactive(Zero::Steps),

        // ---- whole numbers
        Add | Sub | Mul | Sdiv | Udiv | Srem | Urem | Shl | Lshr | Ashr | And | Or | Xor | Smin
        | Smax | Umin | Umax | Ctpop | Ctlz | Cttz | Bswap | Bitreverse | Freeze | Icmp
        | TruncInt | Zext | Sext | Sitofp | Uitofp => Rule::Inactive(Zero::Integers),

        // ---- memory, addresses, calls and control
        // A contraction is differentiated as the loops that it stands for (`contractions.rs`).
        Load | Store | Offset | Exclusive | Stack | Alloc | Free | Copy | Move | Fill
        | Contract | AtomicAdd | Ptrtoint | Inttoptr | Call | CallIndirect | If | Switch | For
        | Loop | Yield | Again | Return | Trap => Rule::Structural,
        _ => unreachable!("{opcode} is a function of the other table"),
    }
}
