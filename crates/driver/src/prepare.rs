//! Optimises the working module before it is imported: differentiated code is optimised in every profile.
//!
//! Inlined, in SSA form, loops rotated and simplified; but neither vectorised nor unrolled, since the Loop IR wants to see the loops.

use crate::opaque::is_opaque;
use crate::perturbation::{Inline, Perturbation, Preparation};
use crate::report::Diagnostic;
use crate::requests::FoundRequest;
use ferrozyme_library::{Known, is};
use ferrozyme_llvm::{Context, Module, PassOptions, Place, TargetMachine};
use std::collections::HashSet;

/// What runs over the working module behind LLVM's own pipeline.
///
/// Tiny loops of constant length are unrolled: swapping two vectors moves their words in a loop, and what is a pointer and what a number shows only
/// behind it. Vectors, which the standard library's bitcode holds here and there, become scalars.
const PASSES: &str = "function(loop(loop-unroll-full),sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg),\
    function(scalarizer<load-store>,sroa,instcombine<no-verify-fixpoint>,simplifycfg),\
    globaldce";

/// What runs where as little as possible is asked for.
const FEWEST_PASSES: &str = "always-inline,function(scalarizer<load-store>),globaldce";

/// How much larger than LLVM's own the limit for inlining is: calls that remain are differentiated separately, which costs more than code size.
const INLINER_THRESHOLD: i32 = 1000;

/// The limit where everything is to be inlined.
const HIGHEST_THRESHOLD: i32 = 100_000;

/// Marks the functions that must not be inlined by what the user chose. Whatever that is, the functions that are asked for are seen through, and so
/// are those that are always inlined.
pub(crate) fn choose_inlining<'c>(
    context: &'c Context,
    module: Module<'c>,
    requests: &[FoundRequest],
    inline: Inline,
) {
    if matches!(inline, Inline::Usual | Inline::All) {
        return;
    }
    let asked: HashSet<&str> = requests
        .iter()
        .map(|request| request.primal.as_str())
        .collect();
    for function in module.functions() {
        let name = function.name();
        if function.is_declaration()
            || asked.contains(name.as_str())
            || is_opaque(&name, function)
            || is(&name, &Known::TakesLayouts)
            || inline.considers(&name)
        {
            continue;
        }
        function.remove_attribute(Place::Function, "alwaysinline");
        function.remove_attribute(Place::Function, "inlinehint");
        function.add_attribute(Place::Function, context.attribute("noinline", 0));
    }
}

/// Runs LLVM's passes that come before differentiation.
pub(crate) fn prepare(
    module: Module<'_>,
    machine: &TargetMachine,
    perturbation: &Perturbation,
) -> Result<(), Diagnostic> {
    let threshold = match perturbation.inline {
        Inline::All => HIGHEST_THRESHOLD,
        _ => INLINER_THRESHOLD,
    };
    let options = PassOptions {
        inliner_threshold: Some(threshold),
        ..PassOptions::before_differentiation()
    };
    let passes = match perturbation.prepare {
        Preparation::O0 => FEWEST_PASSES.to_owned(),
        level => format!("thinlto-pre-link<{}>,{PASSES}", level.name()),
    };
    module
        .run_passes(&passes, Some(machine), options)
        .map_err(|error| Diagnostic {
            notes: vec![error.to_string()],
            ..Diagnostic::error("LLVM could not optimise the functions to differentiate")
        })
}
