//! Makes one sum of several that a loop runs side by side, if they only meet in one sum behind it.
//!
//! ```text
//! %a, %b = for %i: i64 = 0 to %n step 1 with (%s: f64 = 0.0, %t: f64 = 0.0) {
//!   %s1 = fadd f64 %s, %x
//!   %t1 = fadd f64 %t, %y
//!   yield %s1, %t1
//! }
//! %r = fadd f64 %a, %b
//! ```
//! becomes
//! ```text
//! %a = for %i: i64 = 0 to %n step 1 with (%s: f64 = 0.0) {
//!   %s1 = fadd f64 %s, %x
//!   %s2 = fadd f64 %s1, %y
//!   yield %s2
//! }
//! ```
//!
//! Sums that may be reordered need no partial sums to be vectorised, and their derivatives are better off without: of one sum it is plain that all terms have the
//! same adjoint.
//!
//! Who needs it: people, who write partial sums so that compilers may use vectors. No pass of LLVM's that runs before us makes them. The smallest example is
//! `for (a, b) in a.chunks_exact(4).zip(b.chunks_exact(4)) { for l in 0..4 { sums[l] += a[l] * b[l] } }`; ndarray's `dot` has eight.
//!
//! The order of the additions changes, so this is for programs that gave leave to (design decision D10). A partial sum starts at zero, nothing
//! looks at it until the loop is over, and then it is added up, with the others, once.

use crate::carried::{Carried, carried_by, remove_results};
use crate::sums::{Addition, carried_sum};
use crate::uses::Uses;
use crate::with_function::with_function;
use ferrozyme_ir::{Cursor, Function, FunctionId, Module, Op, Opcode, Structure, returning_ops};
use rustc_hash::FxHashMap;

/// Merges partial sums; returns how many were merged.
pub fn merge_partial_sums(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |_, function| {
        if function.body.is_none() {
            return 0;
        }
        let mut loops = returning_ops(function);
        loops.retain(|&op| {
            let data = &function.ops[op];
            data.opcode == Opcode::For && data.results.len() >= 2
        });
        if loops.is_empty() {
            return 0;
        }
        let (uses, structure) = (Uses::of(function), Structure::of(function));
        let merged = loops.into_iter();
        merged
            .map(|op| merge(function, &structure, &uses, op))
            .sum()
    })
}

/// Merges the partial sums of one loop.
fn merge(function: &mut Function, structure: &Structure, uses: &Uses, op: Op) -> usize {
    let carried = carried_by(function, op);
    let sums: Vec<Option<PartialSum>> = carried
        .iter()
        .map(|carried| partial_sum(function, structure, uses, op, carried))
        .collect();
    let mut groups: FxHashMap<Op, usize> = FxHashMap::default();
    let mut keep = vec![true; sums.len()];
    let sums = sums.into_iter().enumerate();
    let mut sums: Vec<(usize, PartialSum)> =
        sums.filter_map(|(at, sum)| Some((at, sum?))).collect();
    // Terms that are computed one after the other are added so: they may be elements that lie one after the other.
    sums.sort_by_key(|(_, sum)| first_term(function, structure, sum));
    for (index, sum) in sums {
        let first = *groups.entry(sum.total).or_insert(index);
        if first != index {
            add_to_another(function, op, index, first, &sum.additions);
            // What is added once more behind the loop is nothing now, to which only a zero with a sign comes up.
            let nothing = function.float(function.ty(carried[index].result), -0.0);
            let (addition, place) = sum.added;
            function.ops[addition].operands[place] = nothing;
            keep[index] = false;
        }
    }
    let merged = keep.iter().filter(|&&keep| !keep).count();
    if merged > 0 {
        remove_results(function, op, &keep);
    }
    merged
}

/// A sum that starts at zero and becomes a part of another one behind its loop.
struct PartialSum {
    /// What an iteration adds.
    additions: Vec<Addition>,
    /// Where it is added to the others, and with which operand.
    added: (Op, usize),
    /// The last addition of the sum that it ends up in.
    total: Op,
}

fn partial_sum(
    function: &Function,
    structure: &Structure,
    uses: &Uses,
    op: Op,
    carried: &Carried,
) -> Option<PartialSum> {
    let additions = carried_sum(function, structure, uses, op, carried)?;
    if function.float_of(carried.initial) != Some(0.0) || additions.is_empty() {
        return None;
    }
    let region = structure.region_of(op)?;
    let added_up = |value| {
        uses.only(value).filter(|&(user, _)| {
            function.ops[user].opcode == Opcode::Fadd && structure.region_of(user) == Some(region)
        })
    };
    let added = added_up(carried.result)?;
    let mut total = added.0;
    while let Some((user, _)) = added_up(function.result(total)) {
        total = user;
    }
    Some(PartialSum {
        additions,
        added,
        total,
    })
}

/// Where the first term of a sum is computed, in the order of the text.
fn first_term(function: &Function, structure: &Structure, sum: &PartialSum) -> Option<u32> {
    let terms = sum.additions[0].terms(function);
    let ops = terms.iter().filter_map(|&term| function.def_op(term));
    ops.map(|(op, _)| structure.order(op)).max()
}

/// What one partial sum adds goes to another one, behind what is added there.
fn add_to_another(
    function: &mut Function,
    op: Op,
    index: usize,
    first: usize,
    additions: &[Addition],
) {
    let body = function.ops[op].body();
    let end = function.terminator(body);
    let values = function.ops[end].values_mut();
    let (sum, so_far) = (values[index], values[first]);
    values[first] = sum;
    function.ops[additions[0].op].operands[additions[0].place] = so_far;
    // What is added there may stand behind these additions.
    let moved: Vec<Op> = additions.iter().map(|addition| addition.op).collect();
    function.retain_ops(body, |_, op| !moved.contains(&op));
    Cursor::before_terminator(function, body).insert_all(function, moved);
}

#[cfg(test)]
mod tests {
    use super::merge_partial_sums;
    use crate::testing::{check, check_unchanged};
    use expect_test::expect;

    #[test]
    fn sums_that_meet_become_one() {
        check(
            merge_partial_sums,
            "func @f(%x: f64, %y: f64, %z: f64, %n: i64) -> (f64, f64) {
               %a, %b, %c, %d = for %i: i64 = 0 to %n step 1 with (%p: f64 = 0.0, %q: f64 = 0.0, %r: f64 = 0.0, %s: f64 = 0.0) {
                 %p1 = fadd f64 %p, %x
                 %q1 = fma f64 %y, %y, %q
                 %r1 = fadd f64 %z, %r
                 %s1 = fadd f64 %s, %y
                 yield %p1, %q1, %r1, %s1
               }
               %t = fadd f64 %z, %b
               %u = fadd f64 %c, %a
               %v = fadd f64 %t, %u
               %w = fmul f64 %v, 2.0
               return %w, %d
             }",
            expect![[r#"
                func @f(%x: f64, %y: f64, %z: f64, %n: i64) -> (f64, f64) {
                  %a, %d = for %i: i64 = 0 to %n step 1 with (%p: f64 = 0.0, %s: f64 = 0.0) {
                    %p1 = fadd f64 %p, %x
                    %s1 = fadd f64 %s, %y
                    %q1 = fma f64 %y, %y, %p1
                    %r1 = fadd f64 %z, %q1
                    yield %r1, %s1
                  }
                  %t = fadd f64 %z, -0.0
                  %u = fadd f64 -0.0, %a
                  %v = fadd f64 %t, %u
                  %w = fmul f64 %v, 2.0
                  return %w, %d
                }
            "#]],
        );
    }

    #[test]
    fn terms_are_added_in_the_order_in_which_they_are_computed() {
        check(
            merge_partial_sums,
            "func @f(%x: f64, %y: f64, %n: i64) -> (f64) {
               %a, %b = for %i: i64 = 0 to %n step 1 with (%p: f64 = 0.0, %q: f64 = 0.0) {
                 %u = fmul f64 %x, %x
                 %v = fmul f64 %y, %y
                 %p1 = fadd f64 %p, %v
                 %q1 = fadd f64 %q, %u
                 yield %p1, %q1
               }
               %s = fadd f64 %a, %b
               return %s
             }",
            expect![[r#"
                func @f(%x: f64, %y: f64, %n: i64) -> (f64) {
                  %b = for %i: i64 = 0 to %n step 1 with (%q: f64 = 0.0) {
                    %u = fmul f64 %x, %x
                    %v = fmul f64 %y, %y
                    %q1 = fadd f64 %q, %u
                    %p1 = fadd f64 %q1, %v
                    yield %p1
                  }
                  %s = fadd f64 -0.0, %b
                  return %s
                }
            "#]],
        );
    }

    #[test]
    fn sums_that_somebody_looks_at_stay() {
        check_unchanged(
            merge_partial_sums,
            "func @f(%x: f64, %n: i64) -> (f64) {
               %a, %b, %c = for %i: i64 = 0 to %n step 1 with (%p: f64 = 0.0, %q: f64 = 0.0, %r: f64 = 1.0) {
                 %p1 = fadd f64 %p, %x
                 %y = fmul f64 %q, %x
                 %q1 = fadd f64 %q, %y
                 %r1 = fadd f64 %r, %x
                 yield %p1, %q1, %r1
               }
               %d = fadd f64 %a, %b
               %e = fadd f64 %d, %c
               return %e
             }",
        );
    }
}
