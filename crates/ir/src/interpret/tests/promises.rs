//! What functions promise of memory is held against what they do.

use super::*;

/// The first line of the fault when `@f` runs with promises checked, or `kept`.
#[track_caller]
fn outcome(text: &str) -> String {
    let module = program(text);
    let mut machine = Machine::new(&module);
    machine.check_promises();
    match machine.call_named("f", &[]) {
        Ok(_) => "kept".to_owned(),
        Err(fault) => fault.kind.to_string(),
    }
}

/// Checks what becomes of a call of `@g` with two pieces of memory, in the second of which there is a pointer to a third.
#[track_caller]
fn check_promise(head: &str, body: &str, expected: &str) {
    let text = format!(
        "global @table: 8 bytes align 8 const = x\"000000000000f03f\"
         func @f() {{
           %a = stack 16 align 8
           %b = stack 16 align 8
           %c = stack 16 align 8
           store f64 1.0, %a align 8
           store f64 2.0, %c align 8
           store ptr %c, %b align 8
           call @g(%a, %b)
           return
         }}
         func @g{head} {{
           {body}
           return
         }}"
    );
    assert_eq!(outcome(&text), expected, "{head} {body}");
}

#[test]
fn memory_of_callers_is_left_alone() {
    let read = "%x = load f64 %a align 8";
    let write = "store f64 1.0, %a align 8";
    check_promise(
        "(%a: ptr, %b: ptr) memory(none)",
        read,
        "@g breaks its promise `memory(none)`",
    );
    check_promise(
        "(%a: ptr, %b: ptr) memory(none)",
        "%x = load f64 @table align 8",
        "kept",
    );
    check_promise(
        "(%a: ptr, %b: ptr) memory(none)",
        "%p = stack 8 align 8  store f64 1.0, %p align 8",
        "kept",
    );
    check_promise("(%a: ptr, %b: ptr) memory(read)", read, "kept");
    check_promise(
        "(%a: ptr, %b: ptr) memory(read)",
        write,
        "@g breaks its promise `memory(read)`",
    );
    check_promise("(%a: ptr, %b: ptr) memory(args)", write, "kept");
    check_promise(
        "(%a: ptr, %b: ptr) memory(args)",
        "%c = load ptr %b align 8  store f64 1.0, %c align 8",
        "@g breaks its promise `memory(args)`",
    );
}

#[test]
fn parameters_are_used_as_promised() {
    let write = "store f64 1.0, %a align 8";
    check_promise(
        "(%a: ptr readonly, %b: ptr)",
        write,
        "@g breaks its promise `readonly`",
    );
    check_promise("(%a: ptr, %b: ptr readonly)", write, "kept");
    // There are other ways to what %c points to.
    check_promise(
        "(%a: ptr readonly, %b: ptr readonly)",
        "%c = load ptr %b align 8  store f64 1.0, %c align 8",
        "kept",
    );
    check_promise(
        "(%a: ptr writeonly, %b: ptr)",
        "%x = load f64 %a align 8",
        "@g breaks its promise `writeonly`",
    );
}

#[test]
fn pointers_are_not_kept() {
    check_promise(
        "(%a: ptr nocapture, %b: ptr)",
        "store ptr %a, %b align 8",
        "@g breaks its promise `nocapture`",
    );
    check_promise(
        "(%a: ptr nocapture, %b: ptr)",
        "%p = stack 8 align 8  store ptr %a, %p align 8",
        "kept",
    );
    check_promise(
        "(%a: ptr nocapture, %b: ptr)",
        "%c = load ptr %b align 8
         store ptr %a, %b align 8
         store ptr %c, %b align 8",
        "kept",
    );
}
