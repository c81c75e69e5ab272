//! Rewrites secondary induction variables: carried values of counted loops that grow by the same amount in each iteration become functions of the counter.
//!
//! ```text
//! %e = for %i: i64 = 0 to %n step 1 with (%q: ptr = %p) {        for %i: i64 = 0 to %n step 1 {
//!   %a = load f64 %q align 8                                       %q = offset %p, %i * 8
//!   …                                                       →      %a = load f64 %q align 8
//!   %q1 = offset %q, 1 * 8                                         …
//!   yield %q1                                                    }
//! }
//! ```
//!
//! With the counter as their only source, addresses can be analysed, and iterations become independent of each other. The
//! amount must be the same in all iterations; for loops with a step other than 1 or -1 both it and the step must be constants
//! that divide. Integers and pointers only: sums of floats are rounded in each iteration. Values that are not computed from themselves
//! but from the counter of the iteration before are taken, too (see [`recurrence`](crate::recurrence)).

use crate::carried::{Carried, carried_by, remove_results};
use crate::recurrence::{Step, build_trip_count, distance, find_steps};
use crate::substitution::Substitution;
use crate::with_function::with_function;
use ferrozyme_ir::{Builder, Cursor, Function, FunctionId, Module, Op, Opcode, Region, Value};
use rustc_hash::FxHashMap;

/// Rewrites induction variables of a function; returns the number of carried values removed.
pub fn rewrite_induction(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |module, function| {
        let Some(body) = function.body else { return 0 };
        let steps = find_steps(module, function);
        if steps.is_empty() {
            return 0;
        }
        let mut rewriter = Rewriter {
            steps,
            scratch: function.new_region(&[]),
            substitution: Substitution::new(),
            rewritten: 0,
        };
        rewriter.visit(function, body);
        rewriter.rewritten
    })
}

struct Rewriter {
    steps: FxHashMap<(Op, usize), Step>,
    /// A region in which operations are built before they are put in place.
    scratch: Region,
    substitution: Substitution,
    rewritten: usize,
}

impl Rewriter {
    fn visit(&mut self, function: &mut Function, region: Region) {
        for op in function.take_ops(region) {
            self.substitution.apply(function, op);
            // The values of the outer loop are known before the inner ones are looked at.
            let after = if function.ops[op].opcode == Opcode::For {
                self.rewrite(function, op)
            } else {
                Vec::new()
            };
            for inner in function.ops[op].regions.clone() {
                self.visit(function, inner);
            }
            function.append(region, op);
            Cursor::at_end(region).insert_all(function, after);
        }
    }

    /// Rewrites what one loop carries; returns the operations that compute final values behind it.
    fn rewrite(&mut self, function: &mut Function, op: Op) -> Vec<Op> {
        let body = function.ops[op].regions[0];
        let carried = carried_by(function, op);
        let mut keep = vec![true; carried.len()];
        let mut before = Vec::new();
        let mut after = Vec::new();
        for (index, carried) in carried.iter().enumerate() {
            let Some(mut step) = self.steps.get(&(op, index)).copied() else {
                continue;
            };
            step.amount = step.amount.map(|amount| self.substitution.resolve(amount));
            let Some([inside, behind]) = self.replace(function, op, carried, &step) else {
                continue;
            };
            before.extend(inside);
            after.extend(behind);
            keep[index] = false;
            self.rewritten += 1;
        }
        if keep.iter().any(|&kept| !kept) {
            Cursor::at_start(body).insert_all(function, before);
            remove_results(function, op, &keep);
        }
        after
    }

    /// Puts functions of the counter in the place of a carried value; returns the operations that compute it inside and behind the loop.
    fn replace(
        &mut self,
        function: &mut Function,
        op: Op,
        carried: &Carried,
        growth: &Step,
    ) -> Option<[Vec<Op>; 2]> {
        let data = &function.ops[op];
        let [from, to, step] = data.bounds();
        let (location, counter) = (data.location, function.counter(op));
        let number = function.int_of(step).filter(|&number| number != 0)?;
        if function.ty(counter).scalar().bits() > 64 {
            return None;
        }
        let scratch = self.scratch;
        let mut build = |make: &dyn Fn(&mut Builder<'_>) -> Option<Value>| {
            let mut builder = Builder::new(function, scratch);
            builder.location = location;
            let value = make(&mut builder);
            let ops = function.take_ops(scratch);
            value.map(|value| (value, ops))
        };
        // Inside: initial + (counter - from) / step · amount.
        let (inside, before) = build(&|builder| {
            let (low, high) = if number > 0 {
                (from, counter)
            } else {
                (counter, from)
            };
            let span = distance(builder, low, high);
            let step = i64::try_from(number.unsigned_abs()).ok()?;
            growth.build(builder, carried.initial, span, step)
        })?;
        // Behind: initial + iterations · amount.
        let (behind, after) = build(&|builder| {
            let iterations = build_trip_count(builder, from, to, step);
            growth.build(builder, carried.initial, iterations, 1)
        })?;
        for (old, new) in [(carried.argument, inside), (carried.result, behind)] {
            if !function.is_constant(new) && function.values[new].name.is_none() {
                function.values[new].name = function.values[old].name.take();
            }
            self.substitution.replace(old, new);
        }
        Some([before, after])
    }
}

#[cfg(test)]
mod tests {
    use super::rewrite_induction;
    use crate::testing::{check, check_same_results, check_unchanged};
    use expect_test::expect;
    use ferrozyme_ir::interpret::Datum;

    #[test]
    fn pointers_become_functions_of_the_counter() {
        check(
            rewrite_induction,
            "func @f(%p: ptr, %n: i64) -> (f64) {
               %e, %s = for %i: i64 = 0 to %n step 1 with (%q: ptr = %p, %a: f64 = 0.0) {
                 %x = load f64 %q align 8
                 %a1 = fadd f64 %a, %x
                 %q1 = offset inbounds %q, 1 * 8
                 yield %q1, %a1
               }
               return %s
             }",
            expect![[r#"
                func @f(%p: ptr, %n: i64) -> (f64) {
                  %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                    %q = offset inbounds %p, %i * 8
                    %x = load f64 %q align 8
                    %a1 = fadd f64 %a, %x
                    %q1 = offset inbounds %q, 1 * 8
                    yield %a1
                  }
                  %0 = smax i64 %n, 0
                  %e = offset inbounds %p, %0 * 8
                  return %s
                }
            "#]],
        );
    }

    #[test]
    fn integers_of_other_widths_and_directions() {
        check(
            rewrite_induction,
            "func @f(%n: i64, %m: i32) -> (i32, i64) {
               %r, %s = for %i: i64 = %n to 0 step -1 with (%a: i32 = 5, %b: i64 = 0) {
                 %a1 = sub i32 %a, %m
                 %b1 = add i64 3, %b
                 yield %a1, %b1
               }
               return %r, %s
             }",
            expect![[r#"
                func @f(%n: i64, %m: i32) -> (i32, i64) {
                  for %i: i64 = %n to 0 step -1 {
                    %0 = sub i64 %n, %i
                    %1 = trunc_int i64 %0 to i32
                    %2 = mul i32 %1, %m
                    %a = sub i32 5, %2
                    %3 = sub i64 %n, %i
                    %b = mul i64 %3, 3
                    %a1 = sub i32 %a, %m
                    %b1 = add i64 3, %b
                    yield
                  }
                  %4 = smax i64 %n, 0
                  %5 = trunc_int i64 %4 to i32
                  %6 = mul i32 %5, %m
                  %r = sub i32 5, %6
                  %7 = smax i64 %n, 0
                  %s = mul i64 %7, 3
                  return %r, %s
                }
            "#]],
        );
    }

    #[test]
    fn nested_loops() {
        check(
            rewrite_induction,
            "func @f(%p: ptr, %n: i64, %m: i64) {
               %e = for %i: i64 = 0 to %n step 1 with (%q: ptr = %p) {
                 %g = for %j: i64 = 0 to %m step 1 with (%r: ptr = %q) {
                   store f64 1.0, %r align 8
                   %r1 = offset %r, 8
                   yield %r1
                 }
                 %q1 = offset %q, %m * 8
                 yield %q1
               }
               return
             }",
            expect![[r#"
                func @f(%p: ptr, %n: i64, %m: i64) {
                  for %i: i64 = 0 to %n step 1 {
                    %0 = mul i64 %i, %m
                    %q = offset %p, %0 * 8
                    for %j: i64 = 0 to %m step 1 {
                      %r = offset %q, %j * 8
                      store f64 1.0, %r align 8
                      %r1 = offset %r, 8
                      yield
                    }
                    %1 = smax i64 %m, 0
                    %g = offset %q, %1 * 8
                    %q1 = offset %q, %m * 8
                    yield
                  }
                  %2 = smax i64 %n, 0
                  %3 = mul i64 %2, %m
                  %e = offset %p, %3 * 8
                  return
                }
            "#]],
        );
    }

    /// An iterator that holds the next element, and a slice that it is in.
    const DELAYED: &str = "func @main(%n: i64, %size: i64) -> (i64, i64) {
       %e, %l, %s = for %i: i64 = 0 to %n step 1 with (%j: i64 = 0, %at: i64 = 7, %a: i64 = 0) {
         %x = mul i64 %at, %j
         %a1 = mul i64 %a, 3
         %a2 = add i64 %a1, %x
         %j1 = add i64 %i, 1
         %o = mul i64 %j1, %size
         %at1 = add i64 %o, 7
         yield %j1, %at1, %a2
       }
       return %s, %l
     }";

    #[test]
    fn values_of_the_turn_before() {
        check(
            rewrite_induction,
            DELAYED,
            expect![[r#"
            func @main(%n: i64, %size: i64) -> (i64, i64) {
              %s = for %i: i64 = 0 to %n step 1 with (%a: i64 = 0) {
                %0 = mul i64 %i, %size
                %at = add i64 7, %0
                %x = mul i64 %at, %i
                %a1 = mul i64 %a, 3
                %a2 = add i64 %a1, %x
                %j1 = add i64 %i, 1
                %o = mul i64 %j1, %size
                %at1 = add i64 %o, 7
                yield %a2
              }
              %e = smax i64 %n, 0
              %1 = smax i64 %n, 0
              %2 = mul i64 %1, %size
              %l = add i64 7, %2
              return %s, %l
            }
        "#]],
        );
        let inputs = [(0, 3), (1, 3), (2, -3), (9, 5)];
        let inputs = inputs.map(|(n, size)| [Datum::i64(n), Datum::i64(size)]);
        let inputs: Vec<&[Datum]> = inputs.iter().map(|input| &input[..]).collect();
        check_same_results(rewrite_induction, DELAYED, &inputs);
        // Downwards, and where the first iteration does not fit.
        let down = DELAYED.replace("0 to %n step 1", "%n to -1 step -1");
        check_same_results(rewrite_induction, &down, &inputs);
        check_unchanged(
            rewrite_induction,
            &DELAYED
                .replace("%j: i64 = 0", "%j: i64 = 1")
                .replace("%at: i64 = 7", "%at: i64 = 8"),
        );
        check(
            rewrite_induction,
            "func @f(%p: ptr, %n: i64, %size: i64) {
               %e = for %i: i64 = 0 to %n step 1 with (%q: ptr = %p) {
                 store f64 1.0, %q align 8
                 %j = add i64 %i, 1
                 %o = mul i64 %j, %size
                 %q1 = offset inbounds %p, %o * 8
                 yield %q1
               }
               return
             }",
            expect![[r#"
                func @f(%p: ptr, %n: i64, %size: i64) {
                  for %i: i64 = 0 to %n step 1 {
                    %0 = mul i64 %i, %size
                    %q = offset inbounds %p, %0 * 8
                    store f64 1.0, %q align 8
                    %j = add i64 %i, 1
                    %o = mul i64 %j, %size
                    %q1 = offset inbounds %p, %o * 8
                    yield
                  }
                  %1 = smax i64 %n, 0
                  %2 = mul i64 %1, %size
                  %e = offset inbounds %p, %2 * 8
                  return
                }
            "#]],
        );
    }

    #[test]
    fn floats_and_changing_amounts_stay() {
        check_unchanged(
            rewrite_induction,
            "func @f(%p: ptr, %n: i64) -> (f64, i64, i64) {
               %r, %s, %t = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0, %b: i64 = 0, %c: i64 = 1) {
                 %a1 = fadd f64 %a, 1.0
                 %b1 = add i64 %b, %i
                 %c1 = mul i64 %c, 3
                 yield %a1, %b1, %c1
               }
               return %r, %s, %t
             }",
        );
        check_unchanged(
            rewrite_induction,
            "func @f(%n: i64) -> (i64) {
               %r = for %i: i64 = 0 to %n step 3 with (%a: i64 = 0) {
                 %a1 = add i64 %a, 2
                 yield %a1
               }
               return %r
             }",
        );
    }

    #[test]
    fn results_stay_the_same() {
        let text = "func @main(%n: i64, %m: i32) -> (i32, i64, i64) {
               %r, %s, %t = for %i: i64 = %n to 0 step -2 with (%a: i32 = 5, %b: i64 = 1, %c: i64 = 0) {
                 %a1 = sub i32 %a, 6
                 %b1 = add i64 4, %b
                 %k = mul i64 %b, %i
                 %c1 = xor i64 %c, %k
                 yield %a1, %b1, %c1
               }
               %u, %v = for %j: i32 = %m to 100 step 1 with (%g: i64 = %t, %h: i32 = 0) {
                 %g1 = add i64 %g, %n
                 %w = trunc_int i64 %g to i32
                 %h1 = xor i32 %h, %w
                 yield %g1, %h1
               }
               %x = add i32 %r, %v
               return %x, %s, %u
             }";
        let inputs: Vec<[Datum; 2]> = [(0, 0), (1, 99), (-3, 100), (10, -5), (7, 200)]
            .into_iter()
            .map(|(n, m)| [Datum::i64(n), Datum::i32(m)])
            .collect();
        let inputs: Vec<&[Datum]> = inputs.iter().map(|input| &input[..]).collect();
        check_same_results(rewrite_induction, text, &inputs);
    }
}
