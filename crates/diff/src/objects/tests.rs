//! Tests of the analysis by what it prints.

use super::{Bytes, Class, Kind, Known, Objects, ObjectsCache};
use expect_test::{Expect, expect};
use ferrozyme_ir::{Module, Scalar, parse_module};

fn module(text: &str) -> Module {
    let module = parse_module(text).unwrap_or_else(|error| panic!("{error}"));
    if let Err(error) = ferrozyme_ir::verify_module(&module) {
        panic!("{error:?}");
    }
    module
}

/// Compares what is found for the last function of a module.
fn check(text: &str, expect: Expect) {
    let module = module(text);
    let function = module
        .functions
        .keys()
        .next_back()
        .expect("there is a function");
    let objects = Objects::analyse(&module, function, &mut ObjectsCache::new(), None);
    expect.assert_eq(&objects.print(&module));
}

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
fn functions_that_call_each_other_share_one_answer() {
    check(
        "func @even(%p: ptr, %n: i64) -> (f64) {
           %v = load f64 %p align 8
           %q = offset %p, 8 * 1
           %m = sub i64 %n, 1
           %r = call @odd(%q, %m)
           %s = fadd f64 %v, %r
           return %s
         }
         func @odd(%p: ptr, %n: i64) -> (f64) {
           %c = icmp sgt i64 %n, 0
           %r = if %c -> (f64) { 
             %v = load i64 %p align 8
             %u = and i64 %v, 1
             %w = sitofp i64 %u to f64
             %q = offset %p, 8 * 1
             %x = call @even(%q, %n)
             %z = fadd f64 %w, %x
             yield %z
           } else { yield 0.0 }
           return %r
         }",
        expect![[r#"
            objects of @odd
            class0: parameter %p, every 16 bytes from 0 on
              0: f64
              8: integer (8 bytes)
              %p: class0 at 8 + 16k
              %q: class0 at 16 + 16k
        "#]],
    );
}

#[test]
fn a_copy_of_mixed_memory_links_fields_and_not_classes() {
    check(
        "func @f(%to: ptr, %from: ptr) -> (f64) {
           %q = load ptr %from align 8
           %f16 = offset %from, 16 * 1
           %n = load i64 %f16 align 8
           %qn = offset %q, %n * 4
           %x = load f32 %qn align 4
           copy %to, %from, 24 align 8
           %t8 = offset %to, 8 * 1
           %v = load f64 %t8 align 8
           return %v
         }",
        expect![[r#"
            objects of @f
            class0: parameter %to
              0: ptr to class2 at 0
              8: f64
              16: integer (8 bytes)
            class1: parameter %from
              0: ptr to class2 at 0
              8: f64
              16: integer (8 bytes)
            class2: loaded as %q, every 4 bytes
              0: f32
              %to: class0 at 0
              %from: class1 at 0
              %q: class2 at 0
              %f16: class1 at 16
              %qn: class2 at 0 + 4z
              %t8: class0 at 8
        "#]],
    );
}

#[test]
fn a_copy_of_unknown_length_carries_the_period_over() {
    check(
        "func @f(%to: ptr, %from: ptr, %n: i64) {
           copy %to, %from, %n align 8
           for %i: i64 = 0 to %n step 1 {
             %p = offset %from, %i * 16
             %v = load f64 %p align 8
             %p8 = offset %p, 8 * 1
             %k = load i64 %p8 align 8
             %c = icmp eq i64 %k, 7
             yield
           }
           return
         }",
        expect![[r#"
            objects of @f
            class0: parameter %to, every 16 bytes from 0 on
              0: f64
              8: integer (8 bytes)
            class1: parameter %from, every 16 bytes from 0 on
              0: f64
              8: integer (8 bytes)
              %to: class0 at 0
              %from: class1 at 0
              %p: class1 at 0 + 16k
              %p8: class1 at 8 + 16k
        "#]],
    );
}

#[test]
fn a_short_copy_from_an_array_does_not_make_a_structure_an_array() {
    check(
        "func @f(%s: ptr, %x: ptr, %n: i64) {
           for %i: i64 = 0 to %n step 1 {
             %p = offset %x, %i * 8
             store f64 1.0, %p align 8
             yield
           }
           copy %s, %x, 24 align 8
           %s24 = offset %s, 24 * 1
           %k = mul i64 %n, %n
           store i64 %k, %s24 align 8
           return
         }",
        expect![[r#"
            objects of @f
            class0: parameter %s
              0: f64 x 3
              24: integer (8 bytes)
            class1: parameter %x, every 8 bytes from 0 on
              0: f64
              %s: class0 at 0
              %x: class1 at 0
              %p: class1 at 0 + 8k
              %s24: class0 at 24
        "#]],
    );
}

#[test]
fn doubles_moved_as_integers_are_floats() {
    check(
        "func @f(%to: ptr, %from: ptr, %c: i1) -> (f64) {
           %bits = load i64 %from align 8
           %other = offset %from, 8 * 1
           %more = load i64 %other align 8
           %chosen = select i64 %c, %bits, %more
           store i64 %chosen, %to align 8
           %v = load f64 %to align 8
           return %v
         }",
        expect![[r#"
            objects of @f
            class0: parameter %to
              0: f64
            class1: parameter %from
              0: f64 x 2
              %to: class0 at 0
              %from: class1 at 0
              %bits: carries f64
              %other: class1 at 8
              %more: carries f64
              %chosen: carries f64
        "#]],
    );
}

#[test]
fn integers_nobody_looks_at_are_unknown() {
    check(
        "func @f(%to: ptr, %from: ptr) {
           %bits = load i64 %from align 8
           store i64 %bits, %to align 8
           %t8 = offset %to, 8 * 1
           store i64 0, %t8 align 8
           %t16 = offset %to, 16 * 1
           store i64 42, %t16 align 8
           %t24 = offset %to, 24 * 1
           store i64 4607182418800017408, %t24 align 8
           return
         }",
        expect![[r#"
            objects of @f
            class0: parameter %to
              0: unknown (8 bytes) x 2
              16: integer (8 bytes)
              24: unknown (8 bytes)
            class1: parameter %from
              0: unknown (8 bytes)
              %to: class0 at 0
              %from: class1 at 0
              %bits: unknown
              %t8: class0 at 8
              %t16: class0 at 16
              %t24: class0 at 24
        "#]],
    );
}

#[test]
fn a_union_of_float_and_computed_integer_is_a_conflict() {
    check(
        "func @f(%p: ptr, %n: i64) -> (f64) {
           %v = load f64 %p align 8
           %m = add i64 %n, 1
           store i64 %m, %p align 8
           %q = offset %p, 8 * 1
           %w = load f32 %q align 4
           %u = load f64 %q align 8
           return %v
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p
              0: conflict, both f64 and integer (8 bytes)
              8: conflict, part of f64 (4 bytes) x 2
              %p: class0 at 0
              %m: conflict, both f64 and integer
              %q: class0 at 8
        "#]],
    );
}

#[test]
fn bits_of_a_float_may_be_looked_at() {
    check(
        "func @f(%p: ptr) -> (i64) {
           %v = load f64 %p align 8
           %bits = bitcast f64 %v to i64
           %sign = ashr i64 %bits, 63
           %again = load i64 %p align 8
           %sum = add i64 %again, %sign
           return %sum
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p
              0: f64
              %p: class0 at 0
              %bits: carries f64
              %again: carries f64
        "#]],
    );
}

#[test]
fn two_floats_travel_in_one_integer() {
    check(
        "func @f(%p: ptr, %q: ptr) -> (f32) {
           %pair = load i64 %p align 4
           %low = trunc_int i64 %pair to i32
           %x = bitcast i32 %low to f32
           %shifted = lshr i64 %pair, 32
           %high = trunc_int i64 %shifted to i32
           %y = bitcast i32 %high to f32
           %z = fadd f32 %x, %y
           %zi = bitcast f32 %z to i32
           %l = zext i32 %zi to i64
           %k = load i32 %q align 4
           %h = zext i32 %k to i64
           %hs = shl i64 %h, 32
           %both = or i64 %l, %hs
           %q8 = offset %q, 8 * 1
           store i64 %both, %q8 align 4
           return %z
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p
              0: f32 x 2
            class1: parameter %q
              0: unknown (4 bytes)
              8: f32
              12: unknown (4 bytes)
              %p: class0 at 0
              %q: class1 at 0
              %pair: mixed, 0: f32, 4: f32
              %low: carries f32
              %high: carries f32
              %zi: carries f32
              %k: unknown
              %both: mixed, 0: f32, 4: unknown
              %q8: class1 at 8
        "#]],
    );
}

#[test]
fn a_pair_of_floats_is_moved_as_one_integer() {
    check(
        "func @f(%to: ptr, %from: ptr) -> (f32) {
           %pair = load i64 %from align 4
           store i64 %pair, %to align 4
           %x = load f32 %to align 4
           %t4 = offset %to, 4 * 1
           %y = load f32 %t4 align 4
           %z = fadd f32 %x, %y
           return %z
         }",
        expect![[r#"
            objects of @f
            class0: parameter %to
              0: f32 x 2
            class1: parameter %from
              0: f32 x 2
              %to: class0 at 0
              %from: class1 at 0
              %pair: mixed, 0: f32, 4: f32
              %t4: class0 at 4
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
fn each_call_has_its_own_layout() {
    check(
        "func @move(%to: ptr, %from: ptr) -> (ptr) {
           %a = load i64 %from align 8
           store i64 %a, %to align 8
           %t = offset %to, 8 * 1
           return %t
         }
         func @caller(%x: ptr, %y: ptr) -> (f64) {
           %s = stack 16 align 8
           %t = stack 16 align 8
           %e = call @move(%s, %x)
           %g = call @move(%t, %y)
           %v = load f64 %s align 8
           %k = load i64 %t align 8
           %k1 = add i64 %k, 1
           store i64 %k1, %g align 8
           return %v
         }",
        expect![[r#"
            objects of @caller
            class0: parameter %x
              0: f64
            class1: parameter %y
              0: integer (8 bytes)
            class2: stack %s
              0: f64
            class3: stack %t
              0: integer (8 bytes) x 2
              %x: class0 at 0
              %y: class1 at 0
              %s: class2 at 0
              %t: class3 at 0
              %e: class2 at 8
              %g: class3 at 8
        "#]],
    );
}

#[test]
fn rows_passed_to_a_callee_make_a_matrix() {
    check(
        "func @dot(%x: ptr, %n: i64) -> (f64, ptr) {
           %r = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
             %p = offset %x, %i * 8
             %v = load f64 %p align 8
             %w = fadd f64 %acc, %v
             yield %w
           }
           return %r, %x
         }
         func @caller(%m: ptr, %n: i64) {
           for %i: i64 = 0 to %n step 1 {
             %row = offset %m, %i * 80
             %v, %same = call @dot(%row, %n)
             yield
           }
           return
         }",
        expect![[r#"
            objects of @caller
            class0: parameter %m, every 8 bytes from 0 on
              0: f64
              %m: class0 at 0
              %row: class0 at 0 + 80k
              %same: class0 at 0 + 80k
        "#]],
    );
}

#[test]
fn memory_made_by_callees_belongs_to_the_call() {
    check(
        "func @make(%n: i64) -> (ptr) {
           %p = alloc %n align 8
           %q = alloc 8 align 8
           store ptr %q, %p align 8
           store f64 1.0, %q align 8
           return %p
         }
         func @caller(%n: i64) -> (f64) {
           %a = call @make(%n)
           %b = call @make(%n)
           %q = load ptr %a align 8
           %v = load f64 %q align 8
           return %v
         }",
        expect![[r#"
            objects of @caller
            class0: made by call of @make as %a
              0: ptr to class2 at 0
            class1: made by call of @make as %b
              0: ptr to class3 at 0
            class2: made by call of @make as %a
              0: f64
            class3: made by call of @make as %b
              0: f64
              %a: class0 at 0
              %b: class1 at 0
              %q: class2 at 0
        "#]],
    );
}

#[test]
fn globals_are_shared_with_callees() {
    check(
        "global @table: 32 bytes align 8 = zero { 8: @other }
         global @other: 8 bytes align 8 layout [f64] = zero
         func @set(%x: f64) {
           store f64 %x, @table align 8
           return
         }
         func @caller(%x: f64) -> (i64) {
           call @set(%x)
           %p = offset @table, 0 * 1
           %bits = load i64 %p align 8
           %p8 = offset @table, 8 * 1
           %q = load ptr %p8 align 8
           %more = load i64 %q align 8
           return %more
         }",
        expect![[r#"
            objects of @caller
            class0: global @table
              0: f64
              8: ptr to class1 at 0
            class1: global @other, every 8 bytes
              0: f64
              %p: class0 at 0
              %bits: carries f64
              %p8: class0 at 8
              %q: class1 at 0
              %more: carries f64
        "#]],
    );
}

#[test]
fn external_code_lets_memory_escape() {
    check(
        "declare @keep(ptr)
         declare @look(ptr nocapture readonly) -> (f64) memory(read)
         declare @find(i64) -> (ptr)
         func @f(%x: ptr) -> (f64) {
           %s = stack 16 align 8
           %t = stack 8 align 8
           %u = alloc 8 align 8
           store ptr %t, %s align 8
           call @keep(%s)
           %v = call @look(%u)
           %q = call @find(3)
           %w = load f32 %q align 4
           free %u
           return %v
         }",
        expect![[r#"
            objects of @f
            class0: parameter %x
            class1: stack %s, escapes
              0: ptr to class2 at 0
            class2: stack %t, escapes, unknown origin
            class3: alloc %u
            class4: result of call of @find as %q, escapes, unknown origin
              0: f32
              %x: class0 at 0
              %s: class1 at 0
              %t: class2 at 0
              %u: class3 at 0
              %q: class4 at 0
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
fn addresses_travel_in_integers() {
    check(
        "func @f(%p: ptr, %q: ptr, %n: i64) -> (f64) {
           %a = ptrtoint ptr %p to i64
           %b = add i64 %a, 16
           %r = inttoptr i64 %b to ptr
           %v = load f64 %r align 8
           store i64 %a, %q align 8
           %back = load ptr %q align 8
           store f32 1.0, %back align 4
           %wild = inttoptr i64 %n to ptr
           store f64 2.0, %wild align 8
           return %v
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p
              0: f32
              16: f64
            class1: parameter %q
              0: ptr to class0 at 0
            class2: address %wild, escapes, unknown origin
              0: f64
              %p: class0 at 0
              %q: class1 at 0
              %n: carries class2 at 0
              %a: carries class0 at 0
              %b: carries class0 at 16
              %r: class0 at 16
              %back: class0 at 0
              %wild: class2 at 0
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
fn a_float_over_every_byte_is_torn() {
    check(
        "func @f(%x: ptr, %k: i64) -> (f64) {
           %p = offset %x, %k * 1
           %v = load f64 %p align 1
           return %v
         }",
        expect![[r#"
            objects of @f
            class0: parameter %x, every 1 bytes
              0: conflict, part of f64 (1 byte)
              %x: class0 at 0
              %p: class0 at 0 + 1z
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
fn what_a_caller_sees_is_not_local() {
    let module = module(
        "func @f(%out: ptr, %n: i64) -> (ptr) {
           %kept = alloc 8 align 8
           %returned = alloc 8 align 8
           %stored = alloc 8 align 8
           %inner = alloc 8 align 8
           store ptr %inner, %stored align 8
           store ptr %stored, %out align 8
           store f64 1.0, %kept align 8
           free %kept
           return %returned
         }",
    );
    let id = module.function_named("f").expect("it is there");
    let function = &module.functions[id];
    let objects = Objects::analyse(&module, id, &mut ObjectsCache::new(), None);
    let local: Vec<&str> = function
        .values
        .iter()
        .filter(|(value, _)| {
            let class = objects.class_of(function, *value);
            class.is_some_and(|(class, _)| objects.is_local(class))
        })
        .filter_map(|(_, data)| data.name.as_deref())
        .collect();
    assert_eq!(local, ["kept"]);
    let classes: Vec<Class> = objects.classes().collect();
    assert!(objects.may_overlap(classes[0], classes[2]));
    assert!(!objects.may_overlap(classes[0], classes[1]));
}

#[test]
fn a_call_is_analysed_with_what_its_caller_knows() {
    let module = module(
        "func @copy(%to: ptr, %from: ptr, %bits: i64) {
           copy %to, %from, 24 align 8
           %t = offset %to, 24 * 1
           store i64 %bits, %t align 8
           return
         }
         func @caller(%to: ptr, %x: ptr layout [0: f64, 8: ptr [f32], 16: i64; 24], %v: f64, %i: i64) {
           %bits = bitcast f64 %v to i64
           %from = offset %x, %i * 24
           call @copy(%to, %from, %bits)
           return
         }",
    );
    let mut cache = ObjectsCache::new();
    let id = module.function_named("copy").expect("it is there");
    let alone = Objects::analyse(&module, id, &mut cache, None);
    expect![[r#"
        objects of @copy
        class0: parameter %to
          0: unknown (24 bytes)
          24: unknown (8 bytes)
        class1: parameter %from
          0: unknown (24 bytes)
          %to: class0 at 0
          %from: class1 at 0
          %bits: unknown
          %t: class0 at 24
    "#]]
    .assert_eq(&alone.print(&module));
    let outer = module.function_named("caller").expect("it is there");
    let caller = Objects::analyse(&module, outer, &mut cache, None);
    let function = &module.functions[outer];
    let call = ferrozyme_ir::all_ops(function)[2];
    let arguments = &function.ops[call].operands;
    let called = Objects::analyse_call(&module, id, &mut cache, &caller, arguments);
    expect![[r#"
        objects of @copy
        class0: parameter %to
          0: f64
          8: ptr to class2 at 0
          16: integer (8 bytes)
          24: f64
        class1: parameter %from, every 24 bytes
          0: f64
          8: ptr to class2 at 0
          16: integer (8 bytes)
        class2: every 4 bytes
          0: f32
          %to: class0 at 0
          %from: class1 at 0 + 24z
          %bits: carries f64
          %t: class0 at 24
    "#]]
    .assert_eq(&called.print(&module));
    let (class, offset) = caller.class_of(function, arguments[1]).expect("a place");
    let layout = caller.layout_of(class, offset).expect("it is known");
    assert_eq!(layout.to_string(), "[0: f64, 8: ptr [f32], 16: i64; 24]");
    let layouts = [None, Some(layout), None];
    let described = Objects::analyse(
        &module,
        id,
        &mut cache,
        Some(Known {
            layouts: &layouts,
            unions: &[],
        }),
    );
    expect![[r#"
        objects of @copy
        class0: parameter %to
          0: f64
          8: ptr to class2 at 0
          16: integer (8 bytes)
          24: unknown (8 bytes)
        class1: parameter %from, every 24 bytes
          0: f64
          8: ptr to class2 at 0
          16: integer (8 bytes)
        class2: every 4 bytes
          0: f32
          %to: class0 at 0
          %from: class1 at 0
          %bits: unknown
          %t: class0 at 24
    "#]]
    .assert_eq(&described.print(&module));
}

#[test]
fn cells_are_told_for_copies() {
    let module = module(
        "func @f(%p: ptr, %q: ptr layout [f32], %n: i64) {
           %k = load i64 %p align 8
           %a = add i64 %k, 1
           store i64 %a, %p align 8
           %data = offset %p, 16 * 1
           for %i: i64 = 0 to %n step 1 {
             %x = offset %data, %i * 16
             store f64 1.0, %x align 8
             yield
           }
           return
         }",
    );
    let id = module.function_named("f").expect("it is there");
    let function = &module.functions[id];
    let objects = Objects::analyse(&module, id, &mut ObjectsCache::new(), None);
    let arguments = function.arguments();
    let (class, offset) = objects.class_of(function, arguments[0]).expect("a place");
    let cells = objects.cells(class, offset);
    let list = |fields: &[Bytes]| -> Vec<String> {
        fields
            .iter()
            .map(|field| format!("{}+{}: {}", field.offset, field.bytes, field.kind))
            .collect()
    };
    assert_eq!(list(&cells.head), ["0+8: integer", "8+8: unknown"]);
    assert_eq!(list(&cells.body), ["16+8: f64", "24+8: unknown"]);
    assert_eq!((cells.period, cells.homogeneous()), (16, None));
    assert!(cells.covers(None));
    assert_eq!(
        list(&objects.kind_at(class, 28, 16)),
        ["0+4: unknown", "4+8: f64", "12+4: unknown"]
    );
    assert_eq!(
        list(&objects.kind_at(class, 36, 4)),
        ["0+4: conflict, part of f64"]
    );
    assert_eq!(
        objects.kind_of_access(class, 32, 8),
        Kind::Float(Scalar::F64)
    );
    assert_eq!(objects.kind_of_access(class, 4, 8), Kind::Unknown);
    let (class, offset) = objects.class_of(function, arguments[1]).expect("a place");
    assert_eq!(
        objects.cells(class, offset).homogeneous(),
        Some(Scalar::F32)
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
fn bytes_moved_from_anywhere_in_a_description_are_torn_between_its_kinds() {
    check(
        "func @f(%p: ptr layout [0: f64, 8: i64; 16], %q: ptr layout [0: f64, 8: f64; 16], %to: ptr, %n: i64) {
           %a = offset %p, %n * 8
           %x = load i64 %a align 8
           store i64 %x, %to align 8
           %b = offset %q, %n * 8
           %y = load i64 %b align 8
           %to8 = offset %to, 8 * 1
           store i64 %y, %to8 align 8
           return
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p, every 8 bytes
              0: conflict, both f64 and integer (8 bytes)
            class1: parameter %q, every 16 bytes
              0: f64 x 2
            class2: parameter %to
              0: conflict, both f64 and integer (8 bytes)
              8: f64
              %p: class0 at 0
              %q: class1 at 0
              %to: class2 at 0
              %a: class0 at 0 + 8z
              %x: conflict, both f64 and integer
              %b: class1 at 0 + 8z
              %y: carries f64
              %to8: class2 at 8
        "#]],
    );
}

#[test]
fn memory_moved_within_itself_is_alike_at_every_step() {
    check(
        "func @f(%p: ptr, %q: ptr, %n: i64) {
           %p8 = offset %p, 8 * 1
           store f64 1.0, %p align 8
           move %p8, %p, %n align 8
           %q16 = offset %q, 16 * 1
           store f64 1.0, %q align 8
           move %q16, %q, 40 align 8
           return
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p, every 8 bytes from 0 on
              0: f64
            class1: parameter %q
              0: f64
              8: unknown (8 bytes)
              16: f64
              24: unknown (8 bytes)
              32: f64
              40: unknown (8 bytes)
              48: f64
              %p: class0 at 0
              %q: class1 at 0
              %p8: class0 at 8
              %q16: class1 at 16
        "#]],
    );
}

#[test]
fn copies_in_a_circle_come_to_an_end() {
    check(
        "func @f(%p: ptr, %q: ptr, %n: i64) {
           %q8 = offset %q, 8 * 1
           store f64 1.0, %p align 8
           copy %q8, %p, %n align 8
           copy %p, %q, %n align 8
           return
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p, every 8 bytes from 0 on
              0: f64
            class1: parameter %q, every 8 bytes from 0 on
              0: f64
              %p: class0 at 0
              %q: class1 at 0
              %q8: class1 at 8
        "#]],
    );
}

/// A function with as many operations as asked, of all sorts that matter here.
fn long_function(operations: usize) -> String {
    let mut text = String::from(
        "func @f(%p: ptr, %q: ptr, %n: i64) -> (f64) {\n  for %i: i64 = 0 to %n step 1 {\n",
    );
    for number in 0..operations / 10 {
        let field = 8 * (number % 1000);
        text.push_str(&format!(
            "%a{number} = offset %p, %i * 8000
             %b{number} = offset %a{number}, {field} * 1
             %x{number} = load i64 %b{number} align 8
             %c{number} = offset %q, {number} * 8
             store i64 %x{number}, %c{number} align 8
             %y{number} = load f64 %c{number} align 8
             %s{number} = stack 8 align 8
             store f64 %y{number}, %s{number} align 8
             %t{number} = stack 8 align 8
             store ptr %s{number}, %t{number} align 8\n"
        ));
    }
    text.push_str("yield }\n  return 0.0\n}");
    text
}

#[test]
fn classes_grow_with_the_number_of_operations() {
    let classes = |operations: usize| {
        let module = module(&long_function(operations));
        let function = module.functions.keys().next().expect("there is a function");
        let objects = Objects::analyse(&module, function, &mut ObjectsCache::new(), None);
        objects.classes().count()
    };
    let (few, many) = (classes(5_000), classes(50_000));
    assert!(few > 500 && many > 5_000, "{few} and {many}");
    assert!(many <= 10 * few, "{few} and {many}");
}

#[test]
fn copies_of_copies_stay_within_bounds() {
    let mut text = String::from(
        "func @f0(%x: f64) -> (ptr) {
           %p = alloc 8 align 8
           store f64 %x, %p align 8
           return %p
         }\n",
    );
    for level in 1..24 {
        let below = level - 1;
        text.push_str(&format!(
            "func @f{level}(%x: f64) -> (ptr) {{
               %p = alloc 16 align 8
               %a = call @f{below}(%x)
               %b = call @f{below}(%x)
               store ptr %a, %p align 8
               %p8 = offset %p, 8 * 1
               store ptr %b, %p8 align 8
               return %p
             }}\n"
        ));
    }
    let module = module(&text);
    let function = module
        .functions
        .keys()
        .next_back()
        .expect("there is a function");
    let objects = Objects::analyse(&module, function, &mut ObjectsCache::new(), None);
    assert!(objects.classes().count() < 200_000);
}

#[test]
fn a_pointer_that_is_torn_still_leads_to_its_memory() {
    check(
        "func @f(%p: ptr, %x: ptr) -> (f64) {
           store ptr %x, %p align 8
           %q = offset %p, 4
           %half = load i32 %q align 4
           store i32 %half, %q align 4
           %y = load ptr %p align 8
           %v = load f64 %y align 8
           return %v
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p
              0: conflict, part of ptr (4 bytes) x 2
            class1: parameter %x
              0: f64
              %p: class0 at 0
              %x: class1 at 0
              %q: class0 at 4
              %half: conflict, part of ptr
              %y: class1 at 0
        "#]],
    );
}

#[test]
fn torn_pointers_come_to_an_end() {
    // Nothing is ever stored there but null, and what is read overlaps it.
    check(
        "declare @keep(ptr layout [1: ptr [f64]; 24])
         func @f(%p: ptr) -> (ptr) {
           store ptr null, %p align 8
           call @keep(%p)
           %q = offset %p, 1
           %x = load ptr %q align 1
           return %x
         }",
        expect![[r#"
            objects of @f
            class0: parameter %p, escapes, every 24 bytes
              0: conflict, part of ptr (1 byte)
              1: conflict, part of ptr (7 bytes)
              8: conflict, part of ptr (1 byte)
              9: padding (15 bytes)
            class1: escapes, unknown origin, every 8 bytes
              0: f64
              %p: class0 at 0
              %q: class0 at 1
              %x: class1 at 0
        "#]],
    );
    // A list of blocks that leads from one to the next by an address that overlaps others.
    check(
        "func @f(%x: ptr, %n: i64) {
           %first = alloc 16 align 8
           %last = for %i: i64 = 0 to %n step 1 with (%block: ptr = %first) {
             %next = offset %block, 1
             %follower = load ptr %next align 1
             store ptr %x, %block align 8
             %count = offset %block, 8
             store ptr %block, %count align 8
             yield %follower
           }
           store ptr %last, %first align 8
           return
         }",
        expect![[r#"
            objects of @f
            class0: parameter %x, alloc %first, loaded as %follower
              0: conflict, part of ptr (1 byte)
              1: conflict, part of ptr (7 bytes)
              8: conflict, part of ptr (1 byte)
              9: conflict, part of ptr (7 bytes)
              %x: class0 at 0
              %first: class0 at 0
              %last: class0 at 0
              %block: class0 at 0
              %next: class0 at 1
              %follower: class0 at 0
              %count: class0 at 8
        "#]],
    );
}

#[test]
fn what_is_given_up_may_be_anything() {
    let module = module(
        "global @table: 8 bytes align 8 = zero
         func @inner(%p: ptr) -> (ptr, i64) {
           %q = load ptr %p align 8
           %n = load i64 @table align 8
           return %q, %n
         }
         func @outer(%p: ptr, %other: ptr) -> (f64) {
           %q, %n = call @inner(%p)
           %x = load f64 %other align 8
           return %x
         }",
    );
    let mut ids = module.functions.keys();
    let (inner, outer) = (ids.next().expect("inner"), ids.next().expect("outer"));
    let given_up = super::gather::give_up(&module, inner);
    expect![[r#"
        objects of @inner
        class0: parameter %p, global @table, escapes, unknown origin, every 1 bytes
          0: conflict, part of ptr (1 byte)
          %p: class0 at 0 + 1z
          %q: class0 at 0 + 1z
          %n: conflict, part of ptr
    "#]]
    .assert_eq(&given_up.print(&module));
    // A caller shares the fate of what it hands over, and only of that.
    let mut cache = ObjectsCache::new();
    cache.finished.insert(inner, given_up.into());
    expect![[r#"
        objects of @outer
        class0: parameter %p, global @table, escapes, unknown origin, every 1 bytes
          0: conflict, part of ptr (1 byte)
        class1: parameter %other
          0: f64
          %p: class0 at 0
          %other: class1 at 0
          %q: class0 at 0 + 1z
          %n: conflict, part of ptr
    "#]]
    .assert_eq(&cache.get(&module, outer).print(&module));
}

#[test]
fn memory_that_is_filled_at_once_may_be_huge() {
    for bytes in [1u64 << 30, 1 << 40] {
        check(
            &format!(
                "func @f(%n: i64) -> (f64) {{
                   %p = alloc {bytes} align 8
                   %other = alloc {bytes} align 8
                   fill %p, 0, {bytes}
                   copy %other, %p, {bytes}
                   %sum = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {{
                     %q = offset %p, %i * 8
                     %x = load f64 %q align 8
                     %b = fadd f64 %a, %x
                     yield %b
                   }}
                   return %sum
                 }}"
            ),
            expect![[r#"
                objects of @f
                class0: alloc %p, every 8 bytes from 0 on
                  0: f64
                class1: alloc %other, every 8 bytes from 0 on
                  0: f64
                  %p: class0 at 0
                  %other: class1 at 0
                  %q: class0 at 0 + 8k
            "#]],
        );
    }
    // Two that go on at paces of their own and are copies of each other: too much to find out.
    check(
        "func @f(%n: i64) {
           %p = alloc 1073741824 align 8
           %other = alloc 1073741824 align 8
           copy %other, %p, 1073741824
           for %i: i64 = 0 to %n step 1 {
             %q = offset %p, %i * 8
             store f64 1.0, %q align 8
             %r = offset %other, %i * 12
             store f32 1.0, %r align 4
             yield
           }
           return
         }",
        expect![[r#"
            objects of @f
            class0: alloc %p, alloc %other, escapes, unknown origin, every 1 bytes
              0: conflict, part of ptr (1 byte)
              %n: conflict, part of ptr
              %p: class0 at 0 + 1z
              %other: class0 at 0 + 1z
              %i: conflict, part of ptr
              %q: class0 at 0 + 1z
              %r: class0 at 0 + 1z
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
