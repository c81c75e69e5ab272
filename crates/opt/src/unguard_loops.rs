//! Removes zero-trip guards: branches around counted loops that only test whether they run at all.
//!
//! ```text
//! %some = icmp eq i64 %n, 0
//! %s = if %some -> (f64) {                                     %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
//!   yield 0.0                                                    …
//! } else {                                             →       }
//!   %t = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
//!     …
//!   }
//!   yield %t
//! }
//! ```
//!
//! The results of a `for` that does not run are its initial values, so the branch is redundant. Without such guards, more nests are perfect.
//!
//! Who needs it: loop rotation, which LLVM does to every loop whose trip count may be zero. rustc's own optimiser has run before us in release builds
//! (`for &x in a { s += x }` arrives with its guard), and in debug builds and for C our preparation does the same, so no choice of passes avoids it.

use crate::carried::yielded;
use crate::indices::Indices;
use crate::speculation::{Speculation, speculation};
use crate::whole_parts::{WholeParts, with_constant};
use crate::with_function::with_function;
use ferrozyme_ir::{
    Cursor, Function, FunctionId, IntPredicate, Module, Op, OpView, Opcode, Structure, Value,
    returning_ops,
};
use rustc_hash::FxHashMap;

/// Takes loops out of branches; says how many.
pub fn unguard_loops(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |_, function| {
        if function.body.is_none() {
            return 0;
        }
        let branches: Vec<Op> = returning_ops(function)
            .into_iter()
            .filter(|&op| function.ops[op].opcode == Opcode::If)
            .collect();
        if branches.is_empty() {
            return 0;
        }
        let structure = Structure::of(function);
        let parts = WholeParts::of(&Indices::of(function));
        let mut replaced = FxHashMap::default();
        let mut changes = 0;
        // Inner branches first, so that those around them find loops where these were.
        for op in branches.into_iter().rev() {
            if let Some(found) = without_branch(function, &parts, &replaced, op) {
                *function.ops[found.loop_op].to_mut() = found.bound;
                let results = function.ops[op].results.clone();
                replaced.extend(results.into_iter().zip(found.values));
                dissolve(function, &structure, op);
                changes += 1;
            }
        }
        function.replace_operands(&replaced);
        changes
    })
}

/// The arm of a branch that has the loop.
fn loop_arm(function: &Function, op: Op) -> Option<usize> {
    let regions = &function.ops[op].regions;
    let has_loop = |index: usize| {
        let ops = &function.regions[regions[index]].ops;
        ops.len() >= 2 && function.ops[ops[ops.len() - 2]].opcode == Opcode::For
    };
    let is_empty = |index: usize| {
        function.regions[regions[index]].ops.len() == 1 && !function.ends_in_trap(regions[index])
    };
    [(0, 1), (1, 0)]
        .into_iter()
        .find(|&(one, other)| has_loop(one) && is_empty(other))
        .map(|(arm, _)| arm)
}

/// A loop that needs no branch.
struct Unguarded {
    loop_op: Op,
    /// What it counts to.
    bound: Value,
    /// What the branch gave.
    values: Vec<Value>,
}

/// The loop of a branch, if it can stand there without it.
fn without_branch(
    function: &Function,
    parts: &WholeParts,
    replaced: &FxHashMap<Value, Value>,
    op: Op,
) -> Option<Unguarded> {
    let data = &function.ops[op];
    let arm = loop_arm(function, op)?;
    let body = data.regions[arm];
    let ops = &function.regions[body].ops;
    let (before, loop_op) = (&ops[..ops.len() - 2], ops[ops.len() - 2]);
    let movable = before
        .iter()
        .all(|&op| speculation(function, op) == Speculation::Anywhere);
    if !movable {
        return None;
    }
    let bound = bound_without_branch(function, parts, loop_op, data.condition(), arm == 1)?;
    let resolve = |value: &Value| {
        let mut value = *value;
        while let Some(&other) = replaced.get(&value) {
            value = other;
        }
        value
    };
    let loop_data = &function.ops[loop_op];
    let initial = loop_data.initial();
    let with_loop = yielded(function, body)?;
    let without = yielded(function, data.regions[1 - arm])?;
    let pairs = with_loop
        .iter()
        .map(resolve)
        .zip(without.iter().map(resolve));
    let values: Option<Vec<Value>> = pairs
        .map(|(with, without)| {
            let from_loop = loop_data.results.iter().position(|&result| result == with);
            let same = match from_loop {
                Some(index) => resolve(&initial[index]) == without,
                None => with == without,
            };
            same.then_some(with)
        })
        .collect();
    Some(Unguarded {
        loop_op,
        bound,
        values: values?,
    })
}

/// The bound of a loop without a branch around it, if the loop does not run where a condition is as given, and runs as before where it is not.
fn bound_without_branch(
    function: &Function,
    parts: &WholeParts,
    loop_op: Op,
    condition: Value,
    holds: bool,
) -> Option<Value> {
    let (predicate, value, limit) = match function.definition(condition)? {
        // Of conditions, there is no other way to change them with a constant but to negate them.
        OpView::Binary(Opcode::Xor, a, b) => {
            let negates = function.int_of(b)? != 0;
            return bound_without_branch(function, parts, loop_op, a, holds != negates);
        }
        OpView::Icmp(predicate, value, limit) => (predicate, value, limit),
        _ => return None,
    };
    let predicate = if holds {
        predicate
    } else {
        predicate.negated()
    };
    let limit = function.int_of(limit)?;

    let [from, to, step] = function.ops[loop_op].bounds();
    let (from, step) = (function.int_of(from)?, function.int_of(step)?);
    if step <= 0 {
        return None;
    }
    let largest = match predicate {
        IntPredicate::Eq | IntPredicate::Sle => Some(limit),
        IntPredicate::Slt => Some(limit - 1),
        _ => None,
    };
    if value == to && largest.is_some_and(|largest| largest <= from) {
        return Some(to);
    }
    if from != 0 {
        return None;
    }
    // A loop that surely runs in its branch may say that it runs once at least.
    let count = match with_constant(function, to, Opcode::Umax) {
        Some((count, 1)) => count,
        _ => to,
    };
    let (number, size) = parts.parts_of(function, count);
    let no_part = match predicate {
        IntPredicate::Ult => value == number && limit == 1 << size,
        IntPredicate::Ule => value == number && limit + 1 == 1 << size,
        IntPredicate::Eq if limit == 0 => match parts.rounded_down(value) {
            // A rounded number is zero as soon as it has no parts.
            Some(rounded) if value == number => size <= rounded.size,
            Some(rounded) => rounded.is_whole && (rounded.number, rounded.size) == (number, size),
            None => parts.parts_of(function, value) == (number, size),
        },
        _ => false,
    };
    no_part.then_some(count)
}

/// Puts what stands in the arm with the loop in the place of a branch.
fn dissolve(function: &mut Function, structure: &Structure, op: Op) {
    let arm = loop_arm(function, op).expect("there is a loop");
    let body = function.ops[op].regions[arm];
    let mut ops = function.take_ops(body);
    ops.pop();
    let region = structure
        .region_of(op)
        .expect("a branch stands in a region");
    Cursor::before(function, region, op).replace(function, ops);
}

#[cfg(test)]
mod tests {
    use super::unguard_loops;
    use crate::testing::{check, check_same_outcomes, check_unchanged};
    use expect_test::expect;
    use ferrozyme_ir::interpret::Datum;
    use ferrozyme_ir::{parse_module, print_module};

    #[test]
    fn results_stay_the_same() {
        let text = "func @main(%n: i64, %k: i64) -> (f64, f64) {
               %p = alloc 16 align 8
               store f64 1.5, %p align 8
               %second = offset %p, 8
               store f64 2.5, %second align 8
               %m = lshr i64 %n, 4
               %none = icmp eq i64 %m, 0
               %s, %k1 = if %none -> (f64, f64) {
                 yield 0.0, 2.0
               } else {
                 %q = offset %p, 8
                 %t = for %i: i64 = 0 to %m step 1 with (%a: f64 = 0.0) {
                   %few = icmp ult i64 %k, 16
                   %parts = lshr i64 %k, 4
                   %c = if %few -> (f64) {
                     yield %a
                   } else {
                     %e = for %j: i64 = 0 to %parts step 1 with (%b: f64 = %a) {
                       %x = load f64 %q align 8
                       %d = fadd f64 %b, %x
                       yield %d
                     }
                     yield %e
                   }
                   yield %c
                 }
                 yield %t, 2.0
               }
               free %p
               return %s, %k1
             }";
        let sizes = [0, 1, 15, 16, 17, 33];
        let both = sizes.map(|n| sizes.map(|k| [Datum::i64(n), Datum::i64(k)]));
        let inputs: Vec<&[Datum]> = both.iter().flatten().map(|input| &input[..]).collect();
        check_same_outcomes(unguard_loops, text, &inputs);
    }

    #[test]
    fn the_loop_says_it_all() {
        check(
            unguard_loops,
            "func @f(%p: ptr, %n: i64, %k: i64) -> (f64, f64) {
               %m = lshr i64 %n, 4
               %none = icmp eq i64 %m, 0
               %s, %k1 = if %none -> (f64, f64) {
                 yield 0.0, 2.0
               } else {
                 %q = offset %p, 8
                 %t = for %i: i64 = 0 to %m step 1 with (%a: f64 = 0.0) {
                   %few = icmp ult i64 %k, 16
                   %parts = lshr i64 %k, 4
                   %c = if %few -> (f64) {
                     yield %a
                   } else {
                     %e = for %j: i64 = 0 to %parts step 1 with (%b: f64 = %a) {
                       %x = load f64 %q align 8
                       %d = fadd f64 %b, %x
                       yield %d
                     }
                     yield %e
                   }
                   yield %c
                 }
                 yield %t, 2.0
               }
               return %s, %k1
             }",
            expect![[r#"
                func @f(%p: ptr, %n: i64, %k: i64) -> (f64, f64) {
                  %m = lshr i64 %n, 4
                  %none = icmp eq i64 %m, 0
                  %q = offset %p, 8
                  %t = for %i: i64 = 0 to %m step 1 with (%a: f64 = 0.0) {
                    %few = icmp ult i64 %k, 16
                    %parts = lshr i64 %k, 4
                    %e = for %j: i64 = 0 to %parts step 1 with (%b: f64 = %a) {
                      %x = load f64 %q align 8
                      %d = fadd f64 %b, %x
                      yield %d
                    }
                    yield %e
                  }
                  return %t, 2.0
                }
            "#]],
        );
    }

    fn masked(length: &str, mask: i64, count: &str) -> String {
        format!(
            "func @f(%n: i64{length}, %x: f64) -> (f64) {{
               %m = lshr i64 %n, 4
               %some = umax i64 %m, 1
               %whole = and i64 %n, {mask}
               %parts = lshr exact i64 %whole, 4
               %none = icmp eq i64 %whole, 0
               %s = if %none -> (f64) {{
                 yield 0.0
               }} else {{
                 %t = for %i: i64 = 0 to {count} step 1 with (%a: f64 = 0.0) {{
                   %d = fadd f64 %a, %x
                   yield %d
                 }}
                 yield %t
               }}
               return %s
             }}"
        )
    }

    #[test]
    fn masks_without_the_highest_bits() {
        // Only numbers without such bits are as they are when masked; but a masked number is the same in both places.
        let mask = (1 << 61) - 16;
        check_unchanged(unguard_loops, &masked("", mask, "%some"));
        check_unchanged(unguard_loops, &masked("", mask, "%m"));
        for (program, bound) in [
            (
                masked(" range 0..=1152921504606846975", mask, "%some"),
                "%m",
            ),
            (masked("", -16, "%some"), "%m"),
            (masked("", mask, "%parts"), "%parts"),
        ] {
            let mut module = parse_module(&program).unwrap();
            let id = module.function_named("f").unwrap();
            assert_eq!(unguard_loops(&mut module, id), 1, "{program}");
            let text = print_module(&module);
            let header = format!("%t = for %i: i64 = 0 to {bound} step 1");
            assert!(text.contains(&header), "{text}");
        }
    }

    #[test]
    fn branches_that_say_more_stay() {
        let branch = |condition: &str, without: &str| {
            format!(
                "func @f(%n: i64, %x: f64) -> (f64) {{
                   %m = lshr i64 %n, 4
                   %none = icmp {condition}
                   %s = if %none -> (f64) {{
                     yield {without}
                   }} else {{
                     %t = for %i: i64 = 0 to %m step 1 with (%a: f64 = 0.0) {{
                       %d = fadd f64 %a, %x
                       yield %d
                     }}
                     yield %t
                   }}
                   return %s
                 }}"
            )
        };
        check_unchanged(unguard_loops, &branch("eq i64 %m, 0", "1.0"));
        check_unchanged(unguard_loops, &branch("eq i64 %m, 1", "0.0"));
        check_unchanged(unguard_loops, &branch("ult i64 %n, 32", "0.0"));
        check_unchanged(unguard_loops, &branch("slt i64 %n, 16", "0.0"));
        check_unchanged(unguard_loops, &branch("ne i64 %m, 0", "0.0"));
    }
}
