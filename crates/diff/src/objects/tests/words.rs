//! Words that transport floats, pointers and parts of them as integers.

use super::*;

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
fn addresses_go_where_words_are_moved_as_floats() {
    // Two places that a function reads have nothing in common, but the place to which words go from both.
    check(
        "func @get(%place: ptr) -> (f64) {
           %word = load f64 %place align 8
           return %word
         }
         func @f(%a: ptr, %b: ptr, %c: ptr, %list: ptr) -> (f64) {
           %behind_a = load ptr %a align 8
           %behind_b = load ptr %b align 8
           %x = call @get(%a)
           %y = call @get(%b)
           %z = call @get(%c)
           %sum = fadd f64 %x, %z
           store f64 %y, %list align 8
           %behind_list = load ptr %list align 8
           store f64 %sum, %behind_list align 8
           return %sum
         }",
        expect![[r#"
            objects of @f
            class0: parameter %a
              0: conflict, both f64 and pointer (8 bytes)
            class1: parameter %b
              0: conflict, both f64 and pointer (8 bytes)
            class2: parameter %c
              0: f64
            class3: parameter %list
              0: conflict, both f64 and pointer (8 bytes)
            class4: loaded as %behind_a
            class5: loaded as %behind_b, loaded as %behind_list
              0: conflict, both f64 and pointer (8 bytes)
              %a: class0 at 0
              %b: class1 at 0
              %c: class2 at 0
              %list: class3 at 0
              %behind_a: class4 at 0
              %behind_b: class5 at 0
              %behind_list: class5 at 0
        "#]],
    );
}
