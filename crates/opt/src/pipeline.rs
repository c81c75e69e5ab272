//! The passes in the order in which they serve each other, and by name.

use crate::{
    InlinePolicy, forward_stores, hoist_invariants, inline_calls, merge_common_subexpressions,
    normalise_loops, promote_stack, remove_dead_code, remove_dead_stores, rewrite_induction,
    select_branches, simplify,
};
use ferrozyme_ir::{FunctionId, Module, verify_function};

/// A pass: changes one function, and gives the number of changes.
pub type Pass = fn(&mut Module, FunctionId) -> usize;

/// Every pass by the name that test files and the command line use.
pub const PASSES: &[(&str, Pass)] = &[
    ("simplify", simplify),
    ("cse", merge_common_subexpressions),
    ("dce", remove_dead_code),
    ("dead_stores", remove_dead_stores),
    ("forward_stores", forward_stores),
    ("promote_stack", promote_stack),
    ("hoist", hoist_invariants),
    ("induction", rewrite_induction),
    ("normalise_loops", normalise_loops),
    ("inline", inline_by_default),
    ("select_branches", select_branches),
    ("optimise", optimise),
];

/// What the pipeline is to do besides the passes themselves.
#[derive(Clone, Debug)]
pub struct OptimiseOptions {
    /// Whether the function is verified after each pass. A failure is a bug of the pass, and panics with its name.
    pub verify: bool,
    /// Which calls are inlined; none if no calls are to be.
    pub inline: Option<InlinePolicy>,
}

impl Default for OptimiseOptions {
    fn default() -> OptimiseOptions {
        OptimiseOptions {
            verify: cfg!(debug_assertions),
            inline: Some(InlinePolicy::default()),
        }
    }
}

/// How often the passes that make work for each other are repeated.
const ROUNDS: usize = 3;

/// Runs all passes on a function; gives the number of changes.
pub fn optimise(module: &mut Module, id: FunctionId) -> usize {
    optimise_with(module, id, &OptimiseOptions::default())
}

/// Runs all passes on a function in a given way; gives the number of changes.
pub fn optimise_with(module: &mut Module, id: FunctionId, options: &OptimiseOptions) -> usize {
    if module.functions[id].body.is_none() {
        return 0;
    }
    let mut changes = 0;
    if let Some(policy) = &options.inline {
        changes += inline_calls(module, id, policy);
        check(module, id, "inline", options);
    }
    let mut run = |name: &str, pass: Pass| {
        let count = pass(module, id);
        check(module, id, name, options);
        changes += count;
        count
    };

    // First what makes values of memory and counters of carried values, since all else sees more then.
    run("simplify", simplify);
    run("promote_stack", promote_stack);
    run("dce", remove_dead_code);
    for _ in 0..ROUNDS {
        let mut round = 0;
        round += run("simplify", simplify);
        round += run("cse", merge_common_subexpressions);
        round += run("induction", rewrite_induction);
        round += run("hoist", hoist_invariants);
        round += run("forward_stores", forward_stores);
        round += run("dead_stores", remove_dead_stores);
        round += run("select_branches", select_branches);
        round += run("dce", remove_dead_code);
        if round == 0 {
            break;
        }
    }
    changes
}

fn inline_by_default(module: &mut Module, id: FunctionId) -> usize {
    inline_calls(module, id, &InlinePolicy::default())
}

fn check(module: &Module, id: FunctionId, pass: &str, options: &OptimiseOptions) {
    if options.verify
        && let Err(error) = verify_function(module, id)
    {
        panic!(
            "this is a bug of the pass `{pass}`: the function does not verify after it: {error}"
        );
    }
}
