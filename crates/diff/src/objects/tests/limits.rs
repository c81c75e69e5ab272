//! Large functions, and what is given up.

use super::*;

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
    let given_up = crate::objects::gather::give_up(&module, inner);
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
