//! Finds the loops that LLVM may vectorise: counted loops without inner loops, calls, frees and scalar library functions.

use super::math::keeps_scalar;
use ferrozyme_ir::{Effect, Function, Op, Opcode, Structure, all_ops};
use rustc_hash::FxHashSet;

/// The counted loops of a function that nothing keeps from being vectorised as far as can be seen here. `is_wide` says whether it is compiled for vectors of 32 bytes or more.
pub(super) fn innermost_loops(function: &Function, is_wide: bool) -> FxHashSet<Op> {
    let structure = Structure::of(function);
    let ops = all_ops(function);
    let mut innermost: FxHashSet<Op> = ops
        .iter()
        .copied()
        .filter(|&op| function.ops[op].opcode == Opcode::For)
        .collect();
    let mut seen: FxHashSet<Op> = FxHashSet::default();
    for &op in &ops {
        let data = &function.ops[op];
        let in_the_way = matches!(data.opcode, Opcode::For | Opcode::Loop)
            || keeps_scalar(function, data, is_wide)
            || matches!(
                data.opcode.effect(),
                Effect::Call | Effect::Allocate | Effect::Release
            );
        if !in_the_way {
            continue;
        }
        // All loops around it are out; once one was seen, so were those around it.
        let mut current = op;
        while let Some(holder) = structure
            .region_of(current)
            .and_then(|region| structure.op_of(region))
        {
            innermost.remove(&holder);
            if !seen.insert(holder) {
                break;
            }
            current = holder;
        }
    }
    innermost
}
