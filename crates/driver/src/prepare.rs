//! Optimises the working module before it is imported: whatever the profile says, what is differentiated is optimised code.
//!
//! Inlined, in SSA form, loops rotated and simplified; but neither vectorised nor unrolled, since the Loop IR wants to see the loops.

use crate::report::Diagnostic;
use ferrozyme_llvm::{Module, PassOptions, TargetMachine};

/// What runs over the working module.
///
/// Tiny loops of constant length are unrolled: swapping two vectors moves their words in a loop, and what is a pointer and what a number shows only
/// behind it. Vectors, which the standard library's bitcode holds here and there, become scalars.
const PASSES: &str = "thinlto-pre-link<O2>,\
    function(loop(loop-unroll-full),sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg),\
    function(scalarizer<load-store>,sroa,instcombine<no-verify-fixpoint>,simplifycfg),\
    globaldce";

/// How much larger than LLVM's own the limit for inlining is: calls that remain are differentiated separately, which costs more than code size.
const INLINER_THRESHOLD: i32 = 1000;

/// Runs LLVM's passes that come before differentiation.
pub(crate) fn prepare(module: Module<'_>, machine: &TargetMachine) -> Result<(), Diagnostic> {
    let options = PassOptions {
        inliner_threshold: Some(INLINER_THRESHOLD),
        ..PassOptions::before_differentiation()
    };
    module
        .run_passes(PASSES, Some(machine), options)
        .map_err(|error| Diagnostic {
            notes: vec![error.to_string()],
            ..Diagnostic::error("LLVM could not optimise what is to be differentiated")
        })
}
