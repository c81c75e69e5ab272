//! Copies and moves between memory of several kinds.

use super::*;

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
