//! Passes over derivatives as they will be compiled: contractions, their kernels, and threads.

use crate::explain::describe_threads;
use ferrozyme_ir::{FunctionId, Module, Scalar, all_ops};
use ferrozyme_opt::{
    ParallelOptions, forward_stores, hoist_invariants, lower_contractions,
    merge_common_subexpressions, parallelise_loops_with, raise_contractions, remove_dead_code,
    remove_dead_stores, simplify,
};
use std::collections::HashSet;

/// Runs loops of a function on several threads where they are meant for that; says what has become of each.
pub(crate) fn parallelise(module: &mut Module, id: FunctionId, strict: bool) -> Vec<String> {
    let options = ParallelOptions {
        reorder: !strict,
        ..ParallelOptions::default()
    };
    let first = module.functions.len();
    let outcomes = parallelise_loops_with(module, id, &options);
    let lines = outcomes.iter();
    let lines = lines
        .map(|outcome| describe_threads(module, id, outcome))
        .collect();
    let made: Vec<FunctionId> = module.functions.keys().skip(first).collect();
    if made.is_empty() {
        return lines;
    }
    for id in std::iter::once(id).chain(made) {
        for pass in [
            simplify,
            merge_common_subexpressions,
            hoist_invariants,
            remove_dead_code,
        ] {
            pass(module, id);
        }
    }
    lines
}

/// Raises loops of a function to contractions, and removes what is left of them.
pub(crate) fn raise(module: &mut Module, id: FunctionId) {
    if raise_contractions(module, id) == 0 {
        return;
    }
    for pass in [
        simplify,
        merge_common_subexpressions,
        hoist_invariants,
        forward_stores,
        remove_dead_stores,
        remove_dead_code,
    ] {
        pass(module, id);
    }
}

/// Replaces the contractions of a function by calls of kernels, which are added to the module.
pub(crate) fn call_kernels(module: &mut Module, id: FunctionId) {
    let function = &module.functions[id];
    let contractions = all_ops(function).into_iter();
    let elements: HashSet<Scalar> = contractions
        .filter_map(|op| function.ops[op].contraction())
        .map(|contraction| function.ty(contraction.factor).scalar())
        .collect();
    for element in elements {
        ferrozyme_kernels::contraction(module, element);
    }
    lower_contractions(module, id);
}
