//! Makes counted loops with a constant step count from 0 by 1; the old counter is computed inside.
//!
//! ```text
//! for %i: i64 = %n to -1 step -1 { … }     →     %trips = …
//!                                                for %k: i64 = 0 to %trips step 1 {
//!                                                  %d = mul i64 %k, -1
//!                                                  %i = add i64 %n, %d
//!                                                  …
//!                                                }
//! ```
//!
//! The new counter is an `i64` whatever the old one was.

use crate::recurrence::{Step, build_trip_count};
use crate::substitution::Substitution;
use crate::with_function::with_function;
use ferrozyme_ir::{
    Builder, Cursor, Function, FunctionId, Module, Op, OpView, Opcode, Region, Type, Value,
    ValueData, ValueDef,
};

/// Normalises the counted loops of a function; returns the number of loops changed.
pub fn normalise_loops(module: &mut Module, id: FunctionId) -> usize {
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
        if function.ops[op].opcode == Opcode::For
            && normalise(function, region, op, substitution).is_some()
        {
            changes += 1;
        }
        for inner in function.ops[op].regions.clone() {
            changes += visit(function, inner, substitution);
        }
        function.append(region, op);
    }
    changes
}

/// Normalises one loop, and appends what computes its trip count to the region that it is about to stand in; none if it stays as it is.
fn normalise(
    function: &mut Function,
    region: Region,
    op: Op,
    substitution: &mut Substitution,
) -> Option<()> {
    let data = &function.ops[op];
    let [from, to, step] = data.bounds();
    let (location, body) = (data.location, data.body());
    let number = function
        .int_of(step)
        .and_then(|step| i64::try_from(step).ok());
    let number = number.filter(|&number| number != 0 && number != i64::MIN)?;
    let ty = function.ty(from);
    if ty == Type::I64 && number == 1 && function.int_of(from) == Some(0) {
        return None;
    }
    if ty.scalar().bits() > 64 {
        return None;
    }
    let mut builder = Builder::new(function, region);
    builder.location = location;
    let trips = build_trip_count(&mut builder, from, to, step);

    let old = function.regions[body].args[0];
    let counter = replace_counter(function, body);
    let mut builder = Builder::at(function, Cursor::at_start(body));
    builder.location = location;
    let growth = Step::by(number);
    let value = growth.build(&mut builder, from, counter, 1)?;
    if value != counter {
        function.values[value].name = function.values[old].name.take();
        function.values[value].range = function.values[old].range;
    }
    substitution.replace(old, value);

    let zero = function.int(Type::I64, 0);
    let one = function.int(Type::I64, 1);
    if let OpView::For { from, to, step, .. } = function.ops[op].view_mut() {
        (*from, *to, *step) = (zero, trips, one);
    }
    Some(())
}

/// Puts a new `i64` in the place of the counter.
fn replace_counter(function: &mut Function, body: Region) -> Value {
    let counter = function.values.push(ValueData {
        ty: Type::I64,
        def: ValueDef::Argument {
            region: body,
            index: 0,
        },
        name: None,
        range: None,
    });
    function.regions[body].args[0] = counter;
    counter
}

#[cfg(test)]
mod tests {
    use super::normalise_loops;
    use crate::testing::{check, check_unchanged};
    use expect_test::expect;

    #[test]
    fn the_largest_step_is_left_alone() {
        check_unchanged(
            normalise_loops,
            "func @f() -> (i64) {
               %r = for %i: i64 = 0 to -5 step -9223372036854775808 with (%n: i64 = 0) {
                 %m = add i64 %n, 1
                 yield %m
               }
               return %r
             }",
        );
    }

    #[test]
    fn counting_down() {
        check(
            normalise_loops,
            "func @f(%p: ptr, %n: i64) {
               for %i: i64 = %n to -1 step -1 {
                 %q = offset %p, %i * 8
                 store f64 0.0, %q align 8
                 yield
               }
               return
             }",
            expect![[r#"
                func @f(%p: ptr, %n: i64) {
                  %0 = smax i64 %n, -1
                  %1 = sub i64 %0, -1
                  for %2: i64 = 0 to %1 step 1 {
                    %3 = mul i64 %2, -1
                    %i = add i64 %n, %3
                    %q = offset %p, %i * 8
                    store f64 0.0, %q align 8
                    yield
                  }
                  return
                }
            "#]],
        );
    }

    #[test]
    fn narrow_counters() {
        check(
            normalise_loops,
            "func @f(%p: ptr, %n: i32) {
               for %i: i32 = 1 to %n step 3 {
                 %k = sext i32 %i to i64
                 %q = offset %p, %k * 8
                 store f64 0.0, %q align 8
                 yield
               }
               return
             }",
            expect![[r#"
                func @f(%p: ptr, %n: i32) {
                  %0 = sext i32 %n to i64
                  %1 = icmp slt i64 1, %0
                  %2 = sub i64 %0, 1
                  %3 = sub i64 %2, 1
                  %4 = udiv i64 %3, 3
                  %5 = add i64 %4, 1
                  %6 = select i64 %1, %5, 0
                  for %7: i64 = 0 to %6 step 1 {
                    %8 = trunc_int i64 %7 to i32
                    %9 = mul i32 %8, 3
                    %i = add i32 1, %9
                    %k = sext i32 %i to i64
                    %q = offset %p, %k * 8
                    store f64 0.0, %q align 8
                    yield
                  }
                  return
                }
            "#]],
        );
    }

    #[test]
    fn constant_bounds() {
        check(
            normalise_loops,
            "func @f(%p: ptr) {
               for %i: i64 = 10 to 21 step 5 {
                 %q = offset %p, %i * 8
                 store f64 0.0, %q align 8
                 yield
               }
               return
             }",
            expect![[r#"
                func @f(%p: ptr) {
                  for %0: i64 = 0 to 3 step 1 {
                    %1 = mul i64 %0, 5
                    %i = add i64 10, %1
                    %q = offset %p, %i * 8
                    store f64 0.0, %q align 8
                    yield
                  }
                  return
                }
            "#]],
        );
    }

    #[test]
    fn normal_loops_and_unknown_steps_stay() {
        check_unchanged(
            normalise_loops,
            "func @f(%n: i64, %s: i64) -> (i64) {
               %r = for %i: i64 = 0 to %n step 1 with (%a: i64 = 0) {
                 yield %i
               }
               %t = for %j: i64 = 0 to %n step %s with (%b: i64 = 0) {
                 yield %j
               }
               %u = add i64 %r, %t
               return %u
             }",
        );
    }
}
