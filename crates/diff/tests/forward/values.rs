//! Tangents of values: formulas, branches and loops.

use super::*;

#[test]
fn text_of_a_product() {
    check_text(
        "file 0 \"source.rs\"
         func @f(%x: f64, %y: f64) -> (f64) {
           %p = fmul contract nnan f64 %x, %y loc(0:3:9)
           %q = fadd f64 %p, 1.0
           return %q
         }",
        1,
        expect![[r#"
            func @f.fwd(%x: f64, %x': f64, %y: f64, %y': f64) -> (f64, f64) memory(none) willreturn {
              %p = fmul nnan contract f64 %x, %y loc(0:3:9)
              %0 = fmul contract f64 %x', %y loc(0:3:9)
              %1 = fmul contract f64 %y', %x loc(0:3:9)
              %p' = fadd contract f64 %0, %1 loc(0:3:9)
              %q = fadd f64 %p, 1.0
              return %q, %p'
            }
        "#]],
    );
}

#[test]
fn text_of_two_directions_shares_the_formulas() {
    check_text(
        "func @f(%x: f64) -> (f64) {
           %s = sin f64 %x
           return %s
         }",
        2,
        expect![[r#"
            func @f.fwd(%x: f64, %x'0: f64, %x'1: f64) -> (f64, f64, f64) memory(none) willreturn {
              %s = sin f64 %x
              %0 = cos nsz f64 %x
              %s'0 = fmul nsz f64 %x'0, %0
              %s'1 = fmul nsz f64 %x'1, %0
              return %s, %s'0, %s'1
            }
        "#]],
    );
}

#[test]
fn text_of_a_loop_over_memory() {
    check_text(
        "func @f(%x: ptr noalias readonly layout [f64], %n: i64) -> (f64) {
           %sum = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
             %p = offset inbounds %x, %i * 8
             %a = load f64 %p align 8
             %next = fadd fast f64 %acc, %a
             yield %next
           }
           return %sum
         }",
        1,
        expect![[r#"
            func @f.fwd(%x: ptr noalias readonly nocapture layout [f64], %x': ptr noalias readonly nocapture layout [f64], %n: i64) -> (f64, f64) memory(read) willreturn {
              %sum, %sum' = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0, %acc': f64 = 0.0) {
                %p = offset inbounds %x, %i * 8
                %p' = offset inbounds %x', %i * 8
                %a = load f64 %p align 8
                %a' = load f64 %p' align 8
                %next = fadd fast f64 %acc, %a
                %next' = fadd nsz arcp contract afn reassoc f64 %acc', %a'
                yield %next, %next'
              }
              return %sum, %sum'
            }
        "#]],
    );
}

// ---- arithmetic and regions

#[test]
fn closed_forms() {
    check(
        "func @f(%x: f64, %y: f64) -> (f64, f64) {
           %a = sin f64 %x
           %b = exp f64 %y
           %c = fdiv f64 %a, %b
           %d = pow f64 %x, %y
           %e = fma f64 %c, %d, %x
           %g = sqrt f64 %e
           %h = fneg f64 %g
           return %h, %c
         }",
        &[Float(1.3), Float(0.7)],
    );
}

#[test]
fn results_without_derivative_have_zero_tangents() {
    check(
        "func @f(%x: f64) -> (f64, f64, f64) {
           %n = floor f64 %x
           return 3.0, %n, %x
         }",
        &[Float(1.4)],
    );
}

#[test]
fn narrow_floats() {
    check(
        "func @f(%x: f64) -> (f64) {
           %a = fptrunc f64 %x to f32
           %b = fmul f32 %a, 0.0
           %c = fpext f32 %b to f64
           %d = fmul f64 %x, %x
           %e = fadd f64 %c, %d
           return %e
         }",
        &[Float(1.25)],
    );
}

#[test]
fn vectors() {
    check(
        "func @f(%x: f64, %y: f64) -> (f64) {
           %v = splat <2 x f64> %x
           %w = insert <2 x f64> %v, %y, 1
           %u = fmul <2 x f64> %w, <2.0, 3.0>
           %t = shuffle <2 x f64> %u, %w [1, 2]
           %c = fcmp ogt <2 x f64> %t, splat(1.0)
           %s = select <2 x f64> %c, %t, %w
           %a = extract <2 x f64> %s, 0
           %b = reduce_fadd <2 x f64> %s
           %r = fmul f64 %a, %b
           return %r
         }",
        &[Float(1.25), Float(0.5)],
    );
}

#[test]
fn branches() {
    let source = "func @f(%x: f64, %y: f64, %n: i64) -> (f64, f64) {
           %c = fcmp olt f64 %x, %y
           %a, %b = if %c -> (f64, f64) {
             %p = fmul f64 %x, %y
             yield %p, 2.0
           } else {
             %q = fdiv f64 %x, %y
             yield %y, %q
           }
           %s = switch i64 %n -> (f64) {
             case 0 { yield %a }
             case 1, 2 { %t = fmul f64 %a, %a yield %t }
             case 7 { trap \"never\" }
             default { yield 1.0 }
           }
           return %s, %b
         }";
    for n in [0, 1, 5] {
        check(source, &[Float(0.5), Float(1.5), Int(n)]);
        check(source, &[Float(1.5), Float(0.5), Int(n)]);
    }
}

#[test]
fn loops_carry_tangents() {
    check(
        "func @f(%x: f64, %n: i64) -> (f64, f64) {
           %a, %b, %k = for %i: i64 = 0 to %n step 1 with (%p: f64 = %x, %q: f64 = 1.0, %c: i64 = 0) {
             %s = sin f64 %p
             %t = fmul f64 %q, %x
             %d = add i64 %c, 2
             yield %s, %t, %d
           }
           %r = loop with (%u: f64 = %a) {
             %h = fmul f64 %u, 1.5
             %again = fcmp olt f64 %h, 10.0
             again %again, %h
           }
           return %r, %b
         }",
        &[Float(1.25), Int(3)],
    );
}

#[test]
fn carried_values_that_change_places() {
    check(
        "func @f(%x: f64, %y: f64) -> (f64) {
           %a, %b, %c = for %i: i64 = 0 to 5 step 1 with (%p: f64 = %x, %q: f64 = %y, %r: f64 = 0.0) {
             %s = fmul f64 %q, %x
             yield %q, %s, %p
           }
           return %c
         }",
        &[Float(1.25), Float(0.75)],
    );
}

#[test]
fn loops_that_do_not_run() {
    check(
        "func @f(%x: f64) -> (f64) {
           %a = for %i: i64 = 0 to 0 step 1 with (%p: f64 = %x) {
             %s = sin f64 %p
             yield %s
           }
           return %a
         }",
        &[Float(1.25)],
    );
}

// ---- memory
