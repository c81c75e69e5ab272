//! If-conversion: turns small `if`s that only choose between cheap values into `select`s.
//!
//! ```text
//! %r = if %c -> (f64) {               %a = fadd f64 %x, 1.0
//!   %a = fadd f64 %x, 1.0      →      %r = select f64 %c, %a, %x
//!   yield %a
//! } else { yield %x }
//! ```
//!
//! Both regions must hold nothing but a few operations that may run at any time (see [`speculation`]), so that neither a
//! fault nor an infinite derivative comes in from the branch that is not taken.

use crate::speculation::{Speculation, forget_ranges, speculation};
use crate::substitution::Substitution;
use crate::with_function::with_function;
use ferrozyme_ir::{Builder, Function, FunctionId, Module, Op, Opcode, Region, Value};
use smallvec::SmallVec;

/// Maximum number of operations in both regions: about the cost of a mispredicted branch.
const LIMIT: usize = 6;

/// Replaces small `if`s by `select`s; returns the number of `if`s replaced.
pub fn select_branches(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |_, function| {
        let Some(body) = function.body else { return 0 };
        let mut substitution = Substitution::new();
        visit(function, body, &mut substitution)
    })
}

fn visit(function: &mut Function, region: Region, substitution: &mut Substitution) -> usize {
    let mut changes = 0;
    for op in function.take_ops(region) {
        substitution.apply(function, op);
        for inner in function.ops[op].regions.clone() {
            changes += visit(function, inner, substitution);
        }
        if is_selectable(function, op) {
            changes += 1;
            replace_by_selects(function, region, op, substitution);
        } else {
            function.append(region, op);
        }
    }
    changes
}

fn is_selectable(function: &Function, op: Op) -> bool {
    let data = &function.ops[op];
    if data.opcode != Opcode::If || data.results.is_empty() {
        return false;
    }
    let mut count = 0;
    data.regions.iter().all(|&region| {
        let ops = &function.regions[region].ops;
        count += ops.len() - 1;
        count <= LIMIT
            && !function.ends_in_trap(region)
            && ops[..ops.len() - 1]
                .iter()
                .all(|&inner| speculation(function, inner) == Speculation::Anywhere)
    })
}

fn replace_by_selects(
    function: &mut Function,
    region: Region,
    op: Op,
    substitution: &mut Substitution,
) {
    let data = function.ops[op].clone();
    let mut choices: SmallVec<[SmallVec<[Value; 4]>; 2]> = SmallVec::new();
    for &arm in &data.regions {
        let mut ops = function.take_ops(arm);
        let terminator = ops.pop().expect("a region ends in a terminator");
        choices.push(SmallVec::from_slice(function.ops[terminator].values()));
        for inner in ops {
            forget_ranges(function, inner);
            function.append(region, inner);
        }
    }
    let mut b = Builder::new(function, region);
    b.location = data.location;
    for (index, &result) in data.results.iter().enumerate() {
        let selected = b.select(data.condition(), choices[0][index], choices[1][index]);
        let function = &mut *b.function;
        function.values[selected].name = function.values[result].name.take();
        function.values[selected].range = function.values[result].range;
        substitution.replace(result, selected);
    }
}

#[cfg(test)]
mod tests {
    use super::select_branches;
    use crate::testing::{check, check_same_results, check_unchanged};
    use expect_test::expect;
    use ferrozyme_ir::interpret::Datum;

    #[test]
    fn cheap_choices() {
        check(
            select_branches,
            "func @f(%c: i1, %x: f64) -> (f64, i64) {
               %r, %s = if %c -> (f64, i64) {
                 %a = fadd f64 %x, 1.0
                 yield %a, 1
               } else {
                 yield %x, 2
               }
               return %r, %s
             }",
            expect![[r#"
                func @f(%c: i1, %x: f64) -> (f64, i64) {
                  %a = fadd f64 %x, 1.0
                  %r = select f64 %c, %a, %x
                  %s = select i64 %c, 1, 2
                  return %r, %s
                }
            "#]],
        );
    }

    #[test]
    fn inner_choices_first() {
        check(
            select_branches,
            "func @f(%c: i1, %d: i1, %x: f64) -> (f64) {
               %r = if %c -> (f64) {
                 %a = if %d -> (f64) { yield 1.0 } else { yield %x }
                 yield %a
               } else {
                 %b = fneg f64 %x
                 yield %b
               }
               return %r
             }",
            expect![[r#"
                func @f(%c: i1, %d: i1, %x: f64) -> (f64) {
                  %a = select f64 %d, 1.0, %x
                  %b = fneg f64 %x
                  %r = select f64 %c, %a, %b
                  return %r
                }
            "#]],
        );
    }

    #[test]
    fn effects_faults_and_infinite_derivatives_stay() {
        check_unchanged(
            select_branches,
            r#"func @f(%c: i1, %x: f64, %n: i64, %p: ptr) -> (f64, f64, i64, f64, f64) {
               %r = if %c -> (f64) { %a = sqrt f64 %x yield %a } else { yield 0.0 }
               %s = if %c -> (f64) { %b = fmul f64 %x, %x yield %b } else { yield 0.0 }
               %t = if %c -> (i64) { %d = sdiv i64 1, %n yield %d } else { yield 0 }
               %u = if %c -> (f64) { %e = load f64 %p align 8 yield %e } else { yield 0.0 }
               %v = if %c -> (f64) { yield 1.0 } else { trap "no" }
               if %c { yield }
               return %r, %s, %t, %u, %v
             }"#,
        );
    }

    #[test]
    fn large_branches_stay() {
        check_unchanged(
            select_branches,
            "func @f(%c: i1, %x: f64) -> (f64) {
               %r = if %c -> (f64) {
                 %a = fadd f64 %x, 1.0
                 %b = fadd f64 %a, 1.0
                 %d = fadd f64 %b, 1.0
                 %e = fadd f64 %d, 1.0
                 %g = fadd f64 %e, 1.0
                 %h = fadd f64 %g, 1.0
                 %i = fadd f64 %h, 1.0
                 yield %i
               } else {
                 yield %x
               }
               return %r
             }",
        );
    }

    #[test]
    fn results_stay_the_same() {
        check_same_results(
            select_branches,
            "func @main(%x: f64, %n: i64) -> (f64) {
               %c = fcmp ogt f64 %x, 1.0
               %r = if %c -> (f64) {
                 %d = icmp slt i64 %n, 3
                 %a = if %d -> (f64) { yield 1.0 } else { yield %x }
                 yield %a
               } else {
                 %b = fneg f64 %x
                 yield %b
               }
               return %r
             }",
            &[
                &[Datum::f64(2.0), Datum::i64(1)],
                &[Datum::f64(2.0), Datum::i64(5)],
                &[Datum::f64(f64::NAN), Datum::i64(5)],
            ],
        );
    }
}
