//! Contractions are differentiated as the loops that they stand for.
//!
//! The adjoints of `C += A·B` are `dA += dC·Bᵀ` and `dB += Aᵀ·dC`. The reverse sweep of the loops computes just these, and `raise_contractions` finds them there. So there
//! is one differentiator, of loops: activity, shadows and the caching plan know nothing of contractions, and what is saved of the operands is
//! decided as for all memory that loops read.

use ferrozyme_ir::{FunctionId, Module};
use ferrozyme_opt::expand_contractions;

/// Replaces all contractions of a module by loops, before something in it is differentiated.
pub(crate) fn see_loops(module: &mut Module) {
    let defined: Vec<FunctionId> = (module.functions.iter())
        .filter(|(_, function)| function.body.is_some())
        .map(|(id, _)| id)
        .collect();
    for id in defined {
        expand_contractions(module, id);
    }
}
