//! Resolves the function to differentiate where an entry point is called in a wrapper that gets it from its callers.
//!
//! ```text
//! double gradient_of(double (*f)(double), double x) { return __enzyme_autodiff(f, x); }
//! ```
//!
//! Such wrappers are inlined until the function is known or there are no more callers. So are functions marked for inlining: they may get markers from their callers, too, as the templates of
//! `<enzyme/enzyme>` do. Only they and their callers are changed.

use super::entries::entry_calls;
use crate::trace::{first_argument, trace};
use ferrozyme_llvm::{Context, Linkage, Module, PassOptions, Place, Value};
use std::collections::{HashMap, HashSet};

/// How often callers are asked.
const MAX_ROUNDS: usize = 16;

/// What makes constants known that travel through memory.
const PASSES: &str = "sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg";

/// Inlines functions that call entry points with what they do not know.
pub(super) fn resolve_functions<'c>(context: &'c Context, module: Module<'c>) {
    for _ in 0..MAX_ROUNDS {
        let unresolved = functions_with_unresolved(module);
        if unresolved.is_empty() {
            return;
        }
        for function in &unresolved {
            simplify(*function);
        }
        let mut inlined = false;
        for function in functions_with_unresolved(module) {
            // Either its callers know, or something that it calls gives the function.
            let known_by_callers = called_elsewhere(function).then_some(function);
            let helpers = match is_to_be_inlined(function) {
                true => Vec::new(),
                false => helpers_of(function),
            };
            for other in known_by_callers.into_iter().chain(helpers) {
                if !is_to_be_inlined(other) {
                    other.remove_attribute(Place::Function, "noinline");
                    other.remove_attribute(Place::Function, "optnone");
                    other.add_attribute(Place::Function, context.attribute("alwaysinline", 0));
                }
                inlined = true;
            }
        }
        if !inlined {
            return;
        }
        let before = calls_by_function(module);
        let _ = module.run_passes("always-inline", None, PassOptions::default());
        for function in functions_with_unresolved(module) {
            if is_droppable(function) && !function.is_used() {
                function.erase();
            }
        }
        for (function, calls) in calls_by_function(module) {
            if calls > before.get(&function).copied().unwrap_or(0) {
                simplify(function);
            }
        }
    }
}

/// Lets constants reach the calls of a function. At worst it stays as it is, and is complained about.
fn simplify(function: Value<'_>) {
    let _ = function.run_passes(PASSES, None, PassOptions::default());
}

/// How many calls of entry points stand in each function.
fn calls_by_function(module: Module<'_>) -> HashMap<Value<'_>, usize> {
    let mut calls = HashMap::new();
    for (_, call) in entry_calls(module) {
        if let Some(block) = call.block() {
            *calls.entry(block.function()).or_default() += 1;
        }
    }
    calls
}

/// The functions with calls of entry points that are not known to be about a function, or that may get more from their callers.
fn functions_with_unresolved(module: Module<'_>) -> Vec<Value<'_>> {
    let mut seen = HashSet::new();
    entry_calls(module)
        .into_iter()
        .filter_map(|(entry, call)| Some((entry, call, call.block()?.function())))
        .filter(|(entry, call, function)| {
            let told = is_to_be_inlined(*function)
                && (called_elsewhere(*function) || is_droppable(*function));
            let unknown = |function| !trace(function).is_function();
            told || entry.takes_function() && first_argument(*call).is_some_and(unknown)
        })
        .map(|(_, _, function)| function)
        .filter(|function| seen.insert(*function))
        .collect()
}

fn is_to_be_inlined(function: Value<'_>) -> bool {
    function.has_attribute(Place::Function, "alwaysinline")
}

/// Whether another function calls it.
fn called_elsewhere(function: Value<'_>) -> bool {
    function.users().into_iter().any(|user| {
        user.is_instruction()
            && user.is_call()
            && user.called() == function
            && user
                .block()
                .is_some_and(|block| block.function() != function)
    })
}

/// The functions that it calls and that need not stay when nobody calls them any more.
fn helpers_of(function: Value<'_>) -> Vec<Value<'_>> {
    function
        .instructions()
        .filter(|instruction| instruction.is_call())
        .filter_map(|call| call.called_function())
        .filter(|callee| !callee.is_declaration() && *callee != function && is_droppable(*callee))
        .collect()
}

fn is_droppable(function: Value<'_>) -> bool {
    matches!(
        function.linkage(),
        Linkage::Internal | Linkage::Private | Linkage::LinkOnceOdr | Linkage::LinkOnceAny
    )
}
