//! Structures, what pointers in them lead to, and descriptions of types.

use super::*;

#[test]
fn the_example_of_the_documentation_holds() {
    check(
        "func @f(%p: ptr, %n: i64) {
           for %i: i64 = 0 to %n step 1 {
             %q = offset %p, %i * 16
             %x = load f64 %q align 8
             %a = offset %q, 8 * 1
             %r = load ptr %a align 8
             store f64 %x, %r align 8
             yield
           }
           return
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p, every 16 bytes from 0 on
              0: f64
              8: ptr to class1 at 0
            class1: loaded as %r
              0: f64
              %p: class0 at 0
              %q: class0 at 0 + 16k
              %a: class0 at 8 + 16k
              %r: class1 at 0
        "#]],
    );
}

#[test]
fn a_structure_has_fields_and_pointers_lead_on() {
    check(
        "func @f(%p: ptr) -> (f64) {
           %a = load f64 %p align 8
           %p8 = offset %p, 8 * 1
           %q = load ptr %p8 align 8
           %p16 = offset %p, 16 * 1
           %n = load i64 %p16 align 8
           %qi = offset %q, %n * 4
           %b = load f32 %qi align 4
           %c = fpext f32 %b to f64
           %d = fadd f64 %a, %c
           %m = offset %p, -8 * 1
           store f64 %d, %m align 8
           return %d
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p
              -8: f64 x 2
              8: ptr to class1 at 0
              16: integer (8 bytes)
            class1: loaded as %q, every 4 bytes
              0: f32
              %p: class0 at 0
              %p8: class0 at 8
              %q: class1 at 0
              %p16: class0 at 16
              %qi: class1 at 0 + 4z
              %m: class0 at -8
        "#]],
    );
}

#[test]
fn an_array_of_structures_repeats_as_a_whole() {
    check(
        "func @f(%p: ptr, %n: i64) {
           for %i: i64 = 0 to %n step 1 {
             %e = offset %p, %i * 24
             %x = load f64 %e align 8
             %e8 = offset %e, 8 * 1
             %y = load ptr %e8 align 8
             %e16 = offset %e, 1 * 16
             %k = load i64 %e16 align 8
             %yk = offset %y, %k * 8
             store f64 %x, %yk align 8
             yield
           }
           return
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p, every 24 bytes from 0 on
              0: f64
              8: ptr to class1 at 0
              16: integer (8 bytes)
            class1: loaded as %y, every 8 bytes
              0: f64
              %p: class0 at 0
              %e: class0 at 0 + 24k
              %e8: class0 at 8 + 24k
              %y: class1 at 0
              %e16: class0 at 16 + 24k
              %yk: class1 at 0 + 8z
        "#]],
    );
}

#[test]
fn arrays_within_structures_stay_apart_from_their_neighbours() {
    check(
        "func @f(%p: ptr, %n: i64) -> (f64) {
           %r = for %j: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
             %e = offset %p, %j * 40
             %kp = offset %e, 24 * 1
             %k = load i64 %kp align 8
             %c = icmp sgt i64 %k, 3
             %s = for %i: i64 = 0 to 3 step 1 with (%b: f64 = %acc) {
               %x = offset %e, %i * 8
               %v = load f64 %x align 8
               %w = fadd f64 %b, %v
               yield %w
             }
             %fp = offset %e, 32 * 1
             store f32 1.0, %fp align 4
             yield %s
           }
           return %r
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p, every 40 bytes from 0 on
              0: f64 x 3
              24: integer (8 bytes)
              32: f32
              %p: class0 at 0
              %e: class0 at 0 + 40k
              %kp: class0 at 24 + 40k
              %x: class0 at 0..=16 by 8 + 40k
              %fp: class0 at 32 + 40k
        "#]],
    );
}

#[test]
fn a_linked_list_is_one_class() {
    check(
        "func @sum(%head: ptr) -> (f64) {
           %last, %sum = loop with (%p: ptr = %head, %acc: f64 = 0.0) {
             %v = load f64 %p align 8
             %next = fadd f64 %acc, %v
             %p8 = offset %p, 8 * 1
             %q = load ptr %p8 align 8
             %more = icmp ne ptr %q, null
             again %more, %q, %next
           }
           return %sum
         }",
        expect![[r#"
            objects of @sum
            class0: parameter %head, loaded as %q
              0: f64
              8: ptr to class0 at 0
              %head: class0 at 0
              %last: class0 at 0
              %p: class0 at 0
              %p8: class0 at 8
              %q: class0 at 0
        "#]],
    );
}

#[test]
fn a_recursive_tree_is_one_class() {
    check(
        "func @sum(%node: ptr) -> (f64) {
           %none = icmp eq ptr %node, null
           %r = if %none -> (f64) { yield 0.0 } else {
             %v = load f64 %node align 8
             %pl = offset %node, 8 * 1
             %left = load ptr %pl align 8
             %pr = offset %node, 16 * 1
             %right = load ptr %pr align 8
             %a = call @sum(%left)
             %b = call @sum(%right)
             %c = fadd f64 %a, %b
             %d = fadd f64 %c, %v
             yield %d
           }
           return %r
         }",
        expect![[r#"
            objects of @sum
            class0: parameter %node, loaded as %left, loaded as %right
              0: f64
              8: ptr to class0 at 0 x 2
              %node: class0 at 0
              %pl: class0 at 8
              %left: class0 at 0
              %pr: class0 at 16
              %right: class0 at 0
        "#]],
    );
}

#[test]
fn descriptions_say_what_usage_does_not() {
    check(
        "func @f(%to: ptr, %from: ptr layout [0: f64, 8: ptr [f32], 16: i32; 24], %n: i64) {
           %bytes = mul i64 %n, 24
           copy %to, %from, %bytes align 8
           return
         }",
        expect![[r#"
            objects of @f
            class0: parameter %to, every 24 bytes from 0 on
              0: f64
              8: ptr to class2 at 0
              16: integer (4 bytes)
              20: padding (4 bytes)
            class1: parameter %from, every 24 bytes
              0: f64
              8: ptr to class2 at 0
              16: integer (4 bytes)
              20: padding (4 bytes)
            class2: every 4 bytes
              0: f32
              %to: class0 at 0
              %from: class1 at 0
        "#]],
    );
}

#[test]
fn a_wrong_description_shows() {
    check(
        "func @f(%p: ptr layout [i64], %q: ptr layout [f32]) -> (f64) {
           %v = load f64 %p align 8
           %w = load f64 %q align 4
           %z = fadd f64 %v, %w
           return %z
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p, every 8 bytes
              0: conflict, both f64 and integer (8 bytes)
            class1: parameter %q, every 4 bytes
              0: conflict, part of f64 (4 bytes)
              %p: class0 at 0
              %q: class1 at 0
        "#]],
    );
}

#[test]
fn choices_merge_objects() {
    check(
        "func @f(%x: ptr, %y: ptr, %c: i1, %k: i64) -> (f64) {
           %y8 = offset %y, 8 * 1
           %p = select ptr %c, %x, %y8
           %v = load f64 %p align 8
           %q = switch i64 %k -> (ptr) { case 0 { yield %x } case 1, 2 { %x16 = offset %x, 16 * 1 yield %x16 } default { trap \"no\" } }
           %w = load f64 %q align 8
           %s = fadd f64 %v, %w
           return %s
         }",
        expect![[r#"
            objects of @f
            class0: parameter %x, parameter %y
              0: f64
              16: f64
              %x: class0 at 0
              %y: class0 at -8
              %y8: class0 at 0
              %p: class0 at 0
              %q: class0 at 0..=16 by 16
              %x16: class0 at 16
        "#]],
    );
}

#[test]
fn a_description_stands_against_indices_without_bounds() {
    check(
        "func @f(%p: ptr layout [0: f64, 8: f64, 16: ptr [f32], 24: i64; 32], %n: i64) -> (f64) {
           %r = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
             %q = offset %p, %i * 8
             %v = load f64 %q align 8
             %w = fadd f64 %acc, %v
             yield %w
           }
           %a = offset %p, %n * 8
           %t = load ptr %a align 8
           store f32 1.0, %t align 4
           return %r
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p, every 32 bytes
              0: f64 x 2
              16: ptr to class1 at 0
              24: integer (8 bytes)
            class1: every 4 bytes
              0: f32
              %p: class0 at 0
              %q: class0 at 0 + 8k
              %a: class0 at 0 + 8z
              %t: class1 at 0
        "#]],
    );
}

#[test]
fn parts_of_a_global_are_objects_of_their_own() {
    check(
        "global @lazy: 24 bytes align 8 thread_local parts 16, 17 = zero
         func @f(%n: i64) {
           %state = offset @lazy, 16
           store i8 1, %state align 1
           %q = offset @lazy, %n * 8
           store f64 1.0, %q align 8
           return
         }",
        expect![[r#"
            objects of @f
            class0: global @lazy
              16: integer (1 byte)
            class1: global @lazy, every 8 bytes
              0: f64
              %state: class0 at 16
              %q: class1 at 0 + 8z
        "#]],
    );
}
