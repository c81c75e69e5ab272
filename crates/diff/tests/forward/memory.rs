//! Tangents in memory: shadows, copies and fills.

use super::*;

#[test]
fn arrays_in_place() {
    check(
        "func @f(%x: ptr layout [f64], %n: i64) {
           for %i: i64 = 1 to %n step 1 {
             %p = offset %x, %i * 8
             %j = sub i64 %i, 1
             %q = offset %x, %j * 8
             %a = load f64 %p align 8
             %b = load f64 %q align 8
             %c = fmul f64 %a, %b
             store f64 %c, %p align 8
             yield
           }
           %first = offset %x, 0 * 8
           store f64 4.0, %first align 8
           return
         }",
        &[Floats(vec![1.5, 0.5, -2.0, 3.0]), Int(4)],
    );
}

#[test]
fn gather_by_index() {
    check(
        "func @f(%x: ptr layout [f64], %at: ptr readonly layout [i64], %n: i64) -> (f64) {
           %sum = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
             %p = offset %at, %i * 8
             %k = load i64 %p align 8
             %q = offset %x, %k * 8
             %a = load f64 %q align 8
             %s = fmul f64 %a, %a
             %next = fadd f64 %acc, %s
             yield %next
           }
           return %sum
         }",
        &[Floats(vec![1.5, 0.5, -2.0]), Ints(vec![2, 0, 2, 1]), Int(4)],
    );
}

#[test]
fn allocation_and_release() {
    check(
        "func @f(%x: f64, %n: i64) -> (f64) {
           %bytes = mul i64 %n, 8
           %p = alloc %bytes align 8
           for %i: i64 = 0 to %n step 1 {
             %q = offset %p, %i * 8
             %k = sitofp i64 %i to f64
             %v = fmul f64 %k, %x
             store f64 %v, %q align 8
             yield
           }
           %s = stack 8 align 8
           store f64 %x, %s align 8
           %sum = for %j: i64 = 0 to %n step 1 with (%acc: f64 = 1.0) {
             %r = offset %p, %j * 8
             %a = load f64 %r align 8
             %b = load f64 %s align 8
             %c = fadd f64 %a, %b
             %next = fmul f64 %acc, %c
             yield %next
           }
           free %p
           return %sum
         }",
        &[Float(1.1), Int(3)],
    );
}

#[test]
fn pointers_in_memory() {
    check(
        "func @f(%x: f64, %y: ptr layout [f64]) -> (f64) {
           %node = alloc 24 align 8
           %value = alloc 8 align 8
           store f64 %x, %value align 8
           store ptr %value, %node align 8
           %second = offset %node, 8 * 1
           store ptr %y, %second align 8
           %third = offset %node, 16 * 1
           store i64 5, %third align 8
           %p = load ptr %node align 8
           %q = load ptr %second align 8
           %c = fcmp ogt f64 %x, 0.0
           %r = select ptr %c, %p, %q
           %a = load f64 %r align 8
           %b = load f64 %q align 8
           %ab = fmul f64 %a, %b
           store f64 %ab, %q align 8
           %k = load i64 %third align 8
           %kf = sitofp i64 %k to f64
           %s = fmul f64 %ab, %kf
           free %p
           free %node
           return %s
         }",
        &[Float(1.1), Floats(vec![0.5, 2.0])],
    );
}

#[test]
fn linked_list() {
    check(
        "func @f(%x: f64, %n: i64) -> (f64) {
           %head = for %i: i64 = 0 to %n step 1 with (%list: ptr = null) {
             %node = alloc 16 align 8
             %k = sitofp i64 %i to f64
             %v = fmul f64 %k, %x
             store f64 %v, %node align 8
             %at = offset %node, 1 * 8
             store ptr %list, %at align 8
             yield %node
           }
           %some = icmp ne ptr %head, null
           %r = if %some -> (f64) {
             %sum, %end = loop with (%acc: f64 = 0.0, %here: ptr = %head) {
               %u = load f64 %here align 8
               %w = fmul f64 %u, %u
               %next = fadd f64 %acc, %w
               %link = offset %here, 1 * 8
               %rest = load ptr %link align 8
               free %here
               %more = icmp ne ptr %rest, null
               again %more, %next, %rest
             }
             yield %sum
           } else {
             yield 0.0
           }
           return %r
         }",
        &[Float(1.1), Int(4)],
    );
}

#[test]
fn copies_and_fills() {
    check(
        "global @start: 16 bytes align 8 const layout [f64] = x\"000000000000f03f0000000000000040\"
         func @f(%x: ptr layout [f64], %n: i64) -> (f64) {
           %bytes = mul i64 %n, 8
           %t = alloc %bytes align 8
           copy %t, %x, %bytes align 8
           %next = offset %x, 1 * 8
           move %next, %x, 16 align 8
           fill %x, 0, 8 align 8
           copy %t, @start, 16 align 8
           %p = offset %t, 2 * 8
           %a = load f64 %p align 8
           %b = load f64 %t align 8
           %c = fmul f64 %a, %b
           %last = offset %x, 3 * 8
           fill %last, 64, 8 align 8
           free %t
           return %c
         }",
        &[Floats(vec![1.5, 0.5, -2.0, 7.0]), Int(4)],
    );
}

#[test]
fn copies_of_structures() {
    check(
        "global @template: 24 bytes align 8 const layout [0: f64, 8: i64, 16: f64; 24] = x\"000000000000f03f03000000000000000000000000000040\"
         func @f(%x: f64, %y: ptr layout [f64]) -> (f64) {
           %a = stack 48 align 8
           %b = stack 48 align 8
           copy %a, @template, 24 align 8
           %second = offset %a, 24 * 1
           copy %second, @template, 24 align 8
           %slot = offset %second, 16 * 1
           store f64 %x, %slot align 8
           copy %b, %a, 48 align 8
           copy %a, @template, 24 align 8
           %count_at = offset %b, 32 * 1
           %count = load i64 %count_at align 8
           %k = sitofp i64 %count to f64
           %from = offset %b, 40 * 1
           %v = load f64 %from align 8
           %w = load f64 %y align 8
           %vw = fmul f64 %v, %w
           %r = fmul f64 %vw, %k
           %first = load f64 %b align 8
           %s = fadd f64 %r, %first
           return %s
         }",
        &[Float(1.1), Floats(vec![0.5])],
    );
}

#[test]
fn atomic_sums() {
    check(
        "func @f(%x: f64, %y: ptr layout [f64]) -> (f64) {
           %old = atomic_add f64 %y, %x align 8
           %older = atomic_add f64 %y, 1.0 align 8
           %p = fmul f64 %old, %older
           return %p
         }",
        &[Float(1.1), Floats(vec![0.5])],
    );
}

#[test]
fn integers_that_transport_floats() {
    check(
        "func @f(%x: f64, %y: ptr layout [f64], %n: i64) -> (f64) {
           %bits = bitcast f64 %x to i64
           %first = load i64 %y align 8
           %c = icmp sgt i64 %n, 0
           %chosen = select i64 %c, %first, %bits
           %second = offset %y, 1 * 8
           store i64 %chosen, %second align 8
           %carried = for %i: i64 = 0 to %n step 1 with (%b: i64 = %bits) {
             %third = offset %y, 2 * 8
             %new = load i64 %third align 8
             store i64 %b, %third align 8
             yield %new
           }
           %z = bitcast i64 %carried to f64
           store i64 4607182418800017408, %y align 8
           %w = fmul f64 %z, %x
           return %w
         }",
        &[Float(1.1), Floats(vec![0.5, 0.25, 2.0]), Int(3)],
    );
}

#[test]
fn an_integer_over_a_float_and_an_integer() {
    check(
        "func @f(%x: f64, %y: f64) -> (f64) {
           %p = stack 8 align 8
           %q = stack 8 align 8
           %x32 = fptrunc f64 %x to f32
           %zero = fsub f32 %x32, %x32
           store f32 %zero, %p align 4
           %high = offset %p, 4 * 1
           store i32 7, %high align 4
           copy %q, %p, 8 align 8
           store f32 %x32, %q align 4
           store i64 34359738368, %q align 8
           %a = load f32 %q align 4
           %at = offset %q, 4 * 1
           %k = load i32 %at align 4
           %kf = sitofp i32 %k to f64
           %low = load f32 %p align 4
           %both = fadd f32 %a, %low
           %wide = fpext f32 %both to f64
           %ky = fmul f64 %kf, %y
           %r = fadd f64 %wide, %ky
           return %r
         }",
        &[Float(1.25), Float(2.0)],
    );
}

// ---- calls

#[test]
fn memory_made_without_derivatives_gets_them_later() {
    check(
        "func @new() -> (ptr) {
           %p = alloc 8 align 8
           store f64 2.0, %p align 8
           return %p
         }
         func @f(%x: f64) -> (f64) {
           %p = call @new()
           %a = load f64 %p align 8
           store f64 %x, %p align 8
           %b = load f64 %p align 8
           %c = fmul f64 %a, %b
           free %p
           return %c
         }",
        &[Float(1.1)],
    );
}

#[test]
fn memory_made_with_integers_gets_floats_later() {
    check(
        "func @new() -> (ptr) {
           %p = alloc 16 align 8
           %at = offset %p, 1 * 8
           store i64 3, %at align 8
           return %p
         }
         func @f(%x: f64) -> (f64) {
           %p = call @new()
           store f64 %x, %p align 8
           %at = offset %p, 1 * 8
           %n = load i64 %at align 8
           %k = sitofp i64 %n to f64
           %v = load f64 %p align 8
           %r = fmul f64 %v, %k
           free %p
           return %r
         }",
        &[Float(1.1)],
    );
}

#[test]
fn globals_hold_tangents() {
    check(
        "global @state: 16 bytes align 8 layout [f64] = x\"000000000000f03f0000000000000040\"
         func @f(%x: f64) -> (f64) {
           %second = offset @state, 1 * 8
           %a = load f64 @state align 8
           store f64 %x, @state align 8
           %b = load f64 @state align 8
           %c = load f64 %second align 8
           %ab = fmul f64 %a, %b
           %abc = fmul f64 %ab, %c
           return %abc
         }",
        &[Float(1.1)],
    );
}
