//! Arrays: indices, periods and their bounds.

use super::*;

#[test]
fn an_array_of_floats_repeats() {
    check(
        "func @sum(%x: ptr, %n: i64) -> (f64) {
           %sum = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
             %p = offset %x, %i * 8
             %a = load f64 %p align 8
             %next = fadd f64 %acc, %a
             yield %next
           }
           return %sum
         }",
        expect![[r#"
            objects of @sum
            class0: parameter %x, every 8 bytes from 0 on
              0: f64
              %x: class0 at 0
              %p: class0 at 0 + 8k
        "#]],
    );
}

#[test]
fn a_header_before_an_array_is_not_part_of_it() {
    check(
        "func @f(%p: ptr) -> (f64) {
           %n = load i64 %p align 8
           %data = offset %p, 16 * 1
           %r = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
             %x = offset %data, %i * 8
             %v = load f64 %x align 8
             %w = fadd f64 %acc, %v
             yield %w
           }
           return %r
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p, every 8 bytes from 16 on
              0: integer (8 bytes)
              16: f64
              %p: class0 at 0
              %data: class0 at 16
              %x: class0 at 16 + 8k
        "#]],
    );
}

#[test]
fn multiples_of_the_counter_are_seen_through() {
    check(
        "func @f(%p: ptr, %n: i64) {
           for %j: i64 = 0 to %n step 1 {
             %t = mul i64 %j, 3
             %i = add i64 %t, 1
             %q = offset %p, %i * 8
             store f64 0.0, %q align 8
             %k = add i64 %t, 2
             %r = offset %p, %k * 8
             %v = load i64 %r align 8
             %u = add i64 %v, %j
             store i64 %u, %r align 8
             yield
           }
           return
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p, every 24 bytes from 8 on
              8: f64
              16: integer (8 bytes)
              %p: class0 at 0
              %q: class0 at 8 + 24k
              %r: class0 at 16 + 24k
        "#]],
    );
}

#[test]
fn remainders_are_below_the_divisor() {
    check(
        "func @f(%p: ptr, %n: i32) {
           %array = offset nuw inbounds %p, 16
           %rest = srem i32 %n, 4
           %i = sext i32 %rest to i64
           %q = offset nuw inbounds %array, %i * 8
           store f64 0.0, %q align 8
           %behind = offset nuw inbounds %p, 48
           store i64 %i, %behind align 8
           %before = offset nuw inbounds %p, 8
           store i64 %i, %before align 8
           %k = load i64 %before align 8
           %l = add i64 %k, 1
           store i64 %l, %before align 8
           return
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p
              8: integer (8 bytes)
              16: f64 x 4
              48: integer (8 bytes)
              %p: class0 at 0
              %array: class0 at 16
              %q: class0 at 16..=40 by 8
              %behind: class0 at 48
              %before: class0 at 8
        "#]],
    );
}

#[test]
fn vectors_are_read_lane_by_lane() {
    check(
        "func @f(%p: ptr, %n: i64) -> (<4 x f32>) {
           %v = load <4 x f32> %p align 4
           %q = offset %p, 16 * 1
           %w = load <2 x i64> %q align 8
           %a = extract <2 x i64> %w, 0
           %b = bitcast i64 %a to f64
           %k = extract <2 x i64> %w, 1
           %r = offset %p, %k * 1
           return %v
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p
              0: f32 x 4
              16: f64
              24: integer (8 bytes)
              %p: class0 at 0
              %q: class0 at 16
              %w: mixed, 0: f64, 8: integer
              %a: carries f64
              %r: class0 at 0 + 1z
        "#]],
    );
}

#[test]
fn carried_pointers_step() {
    check(
        "func @f(%x: ptr, %y: ptr, %n: i64) -> (f64) {
           %px, %py, %sum = for %i: i64 = 0 to %n step 1 with (%a: ptr = %x, %b: ptr = %y, %acc: f64 = 0.0) {
             %v = load f64 %a align 8
             %w = load f64 %b align 8
             %b8 = offset %b, 8 * 1
             %k = load i64 %b8 align 8
             %m = sub i64 %k, 1
             store i64 %m, %b8 align 8
             %an = offset %a, 8 * 1
             %bn = offset %b, 16 * 1
             %s = fadd f64 %acc, %v
             yield %an, %bn, %s
           }
           return %sum
         }",
        expect![[r#"
            objects of @f
            class0: parameter %x, every 8 bytes from 0 on
              0: f64
            class1: parameter %y, every 16 bytes from 0 on
              0: f64
              8: integer (8 bytes)
              %x: class0 at 0
              %y: class1 at 0
              %px: class0 at 0 + 8k
              %py: class1 at 0 + 16k
              %a: class0 at 0 + 8k
              %b: class1 at 0 + 16k
              %b8: class1 at 8 + 16k
              %an: class0 at 8 + 8k
              %bn: class1 at 16 + 16k
        "#]],
    );
}

#[test]
fn a_bounds_check_keeps_an_index_within_its_array() {
    check(
        "func @f(%p: ptr, %i: i32, %k: i64) -> (f64) {
           %c = icmp ult i32 %i, 3
           if %c { yield } else { trap \"out of bounds\" }
           %w = zext i32 %i to i64
           %q = offset %p, %w * 8
           %v = load f64 %q align 8
           %below = icmp slt i64 %k, 4
           %above = icmp sge i64 %k, 2
           %both = and i1 %below, %above
           %r = if %both -> (f64) {
             %a = add i64 %k, 1
             %s = offset %p, %a * 8
             %n = load i64 %s align 8
             %m = add i64 %n, 1
             store i64 %m, %s align 8
             yield 1.0
           } else { yield %v }
           return %r
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p
              0: f64 x 3
              24: integer (8 bytes) x 2
              %p: class0 at 0
              %q: class0 at 0..=16 by 8
              %s: class0 at 24..=32 by 8
        "#]],
    );
}

#[test]
fn a_row_that_ends_at_a_number_ends_there() {
    // As iterators over small arrays do it: from one address to another, with `undef` handed on by the way out.
    check(
        "func @f(%p: ptr) -> (f64) {
           %a = stack 24 align 8
           store f64 1.0, %a align 8
           %b = offset %a, 8
           copy %b, %p, 16 align 8
           %last, %sum = loop with (%at: i64 = 24, %s: i64 = 0) {
             %end = icmp eq i64 %at, 8
             %ends = select i1 %end, 1, %end
             %back, %t, %more = if %ends -> (i64, i64, i1) {
               yield undef, undef, 0
             } else {
               %next = add nsw i64 %at, -8
               %q = offset %a, %next
               %i = load i64 %q align 8
               %u = add i64 %s, %i
               yield %next, %u, 1
             }
             again %more, %back, %t
           }
           %x = load f64 %a align 8
           return %x
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p
              0: integer (8 bytes) x 2
            class1: stack %a
              0: f64
              8: integer (8 bytes) x 2
              %p: class0 at 0
              %a: class1 at 0
              %b: class1 at 8
              %q: class1 at 8..=16 by 8
        "#]],
    );
}

#[test]
fn a_product_of_multiples_is_one() {
    check(
        "func @f(%p: ptr, %n: i64) {
           %rows = mul i64 %n, 8
           %stride = add i64 %rows, 8
           for %i: i64 = 0 to %n step 1 {
             %at = mul i64 %i, %stride
             %q = offset %p, %at
             store f64 1.0, %q align 8
             yield
           }
           return
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p, every 8 bytes
              0: f64
              %p: class0 at 0
              %q: class0 at 0 + 8z
        "#]],
    );
}

#[test]
fn a_product_that_is_checked_to_fit_keeps_its_step() {
    check(
        "func @f(%p: ptr, %n: i64) {
           %wide = zext i64 %n to i128
           %product = mul i128 %wide, 24
           %bytes = trunc_int i128 %product to i64
           %back = zext i64 %bytes to i128
           %lost = icmp ne i128 %product, %back
           if %lost {
             trap \"too much\"
           } else {
             yield
           }
           %q = offset nuw %p, %bytes
           store f64 1.0, %q align 8
           %r = offset %q, 16
           store i32 1, %r align 4
           return
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p, every 24 bytes from 0 on
              0: f64
              16: integer (4 bytes)
              %p: class0 at 0
              %q: class0 at 0 + 24k
              %r: class0 at 16 + 24k
        "#]],
    );
}
