//! The passes by name, and the pipelines that run them in order.

use crate::{
    InlinePolicy, count_loops, distribute_tangents, expand_contractions, forward_stores,
    hand_out_values, hoist_checks, hoist_invariants, infer_facts, inline_calls, join_loops,
    join_words, keep_order, lower_contractions, merge_common_subexpressions, merge_partial_sums,
    move_words, parallelise_loops, place_words, promote_stack, raise_contractions, reload_carried,
    remove_dead_code, remove_dead_stores, reorder_sums, reroll_loops, rewrite_induction,
    select_branches, separate_pointers, simplify, unguard_loops,
};
use ferrozyme_ir::{FunctionId, Module, verify_function};

/// A pass: changes one function, and returns the number of changes.
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
    ("hoist_checks", hoist_checks),
    ("reorder_sums", reorder_sums),
    ("raise_contractions", raise_contractions),
    ("lower_contractions", lower_contractions),
    ("expand_contractions", expand_contractions),
    ("parallelise_loops", parallelise_loops),
    ("keep_order", keep_order),
    ("distribute_tangents", distribute_tangents),
    ("merge_partial_sums", merge_partial_sums),
    ("reroll_loops", reroll_loops),
    ("join_loops", join_loops),
    ("unguard_loops", unguard_loops),
    ("reload_carried", reload_carried),
    ("count_loops", count_loops),
    ("induction", rewrite_induction),
    ("inline", inline_by_default),
    ("select_branches", select_branches),
    ("hand_out", hand_out_values),
    ("separate_pointers", separate_pointers),
    ("move_words", move_words),
    ("join_words", join_words),
    ("place_words", place_words),
    ("infer_facts", infer_facts),
    ("optimise", optimise),
];

/// The passes that reorder sums whether or not they are marked: [`OptimiseOptions::reorder`] permits them.
pub const REORDERING: &[&str] = &[
    "merge_partial_sums",
    "join_loops",
    "raise_contractions",
    "parallelise_loops",
];

/// Options of the pipeline.
#[derive(Clone, Debug)]
pub struct OptimiseOptions {
    /// Whether the function is verified after each pass. A failure is a bug of the pass, and panics with its name.
    pub verify: bool,
    /// Which calls are inlined; none if no calls are to be.
    pub inline: Option<InlinePolicy>,
    /// Whether sums whose partial results are not used may be reordered, marked or not.
    pub reorder: bool,
}

impl Default for OptimiseOptions {
    fn default() -> OptimiseOptions {
        OptimiseOptions {
            verify: cfg!(debug_assertions),
            inline: Some(InlinePolicy::default()),
            reorder: false,
        }
    }
}

/// How often the passes that make work for each other are repeated.
const ROUNDS: usize = 3;

/// Runs all passes on a function; returns the number of changes.
pub fn optimise(module: &mut Module, id: FunctionId) -> usize {
    optimise_with(module, id, &OptimiseOptions::default())
}

/// Runs all passes on a function in a given way; returns the number of changes.
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

    // Promotion of memory and rewriting of induction variables come first, since all other passes profit.
    run("simplify", simplify);
    run("promote_stack", promote_stack);
    run("dce", remove_dead_code);
    // Before other passes see the parts.
    run("join_words", join_words);
    run("place_words", place_words);
    for _ in 0..ROUNDS {
        let mut round = 0;
        round += run("simplify", simplify);
        round += run("cse", merge_common_subexpressions);
        round += run("count_loops", count_loops);
        round += run("induction", rewrite_induction);
        round += run("unguard_loops", unguard_loops);
        round += run("reload_carried", reload_carried);
        round += run("hoist", hoist_invariants);
        round += run("forward_stores", forward_stores);
        round += run("dead_stores", remove_dead_stores);
        round += run("select_branches", select_branches);
        round += run("dce", remove_dead_code);
        if round == 0 {
            break;
        }
    }
    // Undo partial sums and unrolling, by hand or by LLVM.
    if options.reorder && run("merge_partial_sums", merge_partial_sums) > 0 {
        run("simplify", simplify);
    }
    if run("reroll_loops", reroll_loops) > 0 {
        run("dce", remove_dead_code);
        if options.reorder {
            run("join_loops", join_loops);
        }
        run("simplify", simplify);
        run("cse", merge_common_subexpressions);
        run("hoist", hoist_invariants);
        run("dce", remove_dead_code);
    }
    if run("reorder_sums", reorder_sums) > 0 {
        run("hoist", hoist_invariants);
        run("cse", merge_common_subexpressions);
        run("dce", remove_dead_code);
        run("hoist", hoist_invariants);
    }
    // Last, since it copies loops.
    if run("hoist_checks", hoist_checks) > 0 {
        run("simplify", simplify);
        run("cse", merge_common_subexpressions);
        run("dce", remove_dead_code);
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

#[cfg(test)]
mod tests {
    use super::{PASSES, optimise};
    use crate::testing::{check, check_same_results};
    use expect_test::expect;
    use ferrozyme_ir::interpret::Datum;

    #[test]
    fn a_pointer_loop_over_a_local_sum_becomes_a_counted_reduction() {
        check(
            optimise,
            "func @sum(%p: ptr noalias readonly, %n: i64) -> (f64) {
               %s = stack 8 align 8
               store f64 0.0, %s align 8
               %end = offset inbounds %p, %n * 8
               %some = icmp sgt i64 %n, 0
               if %some {
                 %e = loop with (%q: ptr = %p) {
                   %a = load f64 %q align 8
                   %b = call @square(%a)
                   %t = load f64 %s align 8
                   %t1 = fadd f64 %t, %b
                   store f64 %t1, %s align 8
                   %q1 = offset inbounds %q, 1 * 8
                   %more = icmp ne ptr %q1, %end
                   again %more, %q1
                 }
                 yield
               }
               %r = load f64 %s align 8
               return %r
             }
             func @square(%x: f64) -> (f64) {
               %y = fmul f64 %x, %x
               return %y
             }",
            expect![[r#"
                func @sum(%p: ptr noalias readonly, %n: i64) -> (f64) {
                  %0 = for %1: i64 = 0 to %n step 1 with (%2: f64 = 0.0) {
                    %q = offset inbounds %p, %1 * 8
                    %a = load f64 %q align 8
                    %y = fmul f64 %a, %a
                    %t1 = fadd f64 %2, %y
                    yield %t1
                  }
                  return %0
                }

                func @square(%x: f64) -> (f64) {
                  %y = fmul f64 %x, %x
                  return %y
                }
            "#]],
        );
    }

    #[test]
    fn bounds_checks_stay_but_are_made_once() {
        check(
            optimise,
            r#"func @f(%p: ptr noalias, %n: i64, %i: i64) -> (f64) {
               %c = icmp ult i64 %i, %n
               if %c { yield } else { trap "out of bounds" }
               %q = offset %p, %i * 8
               %a = load f64 %q align 8
               %d = icmp ult i64 %i, %n
               %b = if %d -> (f64) {
                 %r = offset %p, %i * 8
                 %x = load f64 %r align 8
                 yield %x
               } else {
                 trap "out of bounds"
               }
               %s = fadd f64 %a, %b
               return %s
             }"#,
            expect![[r#"
                func @f(%p: ptr noalias, %n: i64, %i: i64) -> (f64) {
                  %c = icmp ult i64 %i, %n
                  if %c {
                    yield
                  } else {
                    trap "out of bounds"
                  }
                  %q = offset %p, %i * 8
                  %a = load f64 %q align 8
                  %s = fadd f64 %a, %a
                  return %s
                }
            "#]],
        );
    }

    #[test]
    fn every_pass_keeps_what_a_program_computes() {
        let text = r#"
             func @step(%p: ptr, %i: i64, %x: f64) -> (f64) {
               %q = offset %p, %i * 8
               %a = load f64 %q align 8
               %b = fadd f64 %a, %x
               store f64 %b, %q align 8
               store f64 %b, %q align 8
               return %a
             }
             func @main(%n: i64 range 0..=10, %x: f64) -> (f64, f64, i64) {
               %p = alloc 80 align 8 zeroed
               %t = stack 16 align 8
               store f64 1.0, %t align 8
               %s, %k = for %i: i64 = 0 to %n step 1 with (%u: f64 = 0.0, %j: i64 = 7) {
                 %a = call @step(%p, %i, %x)
                 %c = icmp slt i64 %i, 3
                 %v = if %c -> (f64) {
                   %d = load f64 %t align 8
                   %e = fmul f64 %d, 2.0
                   store f64 %e, %t align 8
                   yield %e
                 } else {
                   %g = shl i64 %i, 2
                   %h = sitofp i64 %g to f64
                   yield %h
                 }
                 %w = fadd f64 %a, %v
                 %u1 = fadd f64 %u, %w
                 %j1 = add i64 %j, 5
                 yield %u1, %j1
               }
               %m = load f64 %t align 8
               free %p
               return %s, %m, %k
             }"#;
        let inputs: Vec<[Datum; 2]> = [0, 1, 3, 10]
            .into_iter()
            .map(|n| [Datum::i64(n), Datum::f64(0.75)])
            .collect();
        let inputs: Vec<&[Datum]> = inputs.iter().map(|input| &input[..]).collect();
        for &(_, pass) in PASSES {
            check_same_results(pass, text, &inputs);
        }
    }
}
