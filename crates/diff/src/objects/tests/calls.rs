//! Memory that functions share with their callers and callees.

use super::*;

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
