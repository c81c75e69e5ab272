//! Memory of several objects.

use super::*;

#[test]
fn fields_of_structures() {
    // An array of structures of 24 bytes: field 0 is written, field 8 and the upper half of field 0 are read.
    let p = load_and_store(
        "0 to %n step 1",
        "%e = offset %x, %i * 24
         %q = offset %e, 1 * 8
         %a = load f64 %q align 8
         %h = offset %e, 1 * 4
         %b = load i32 %h align 4",
        "store f64 %v, %e align 8",
    );
    assert!(!p.stored_over("%a"));
    assert!(p.stored_over("%b"));
}

#[test]
fn constant_offsets() {
    let p = Program::body(
        "%p8 = offset %s, 1 * 8
         %p4 = offset %s, 1 * 4
         %a = load f64 %s align 8
         %b = load i64 %p4 align 4
         %c0 = load f64 %p8 align 8
         store f64 %v, %p8 align 8
         %d = load f64 %p8 align 8",
    );
    assert!(!p.stored_over("%a"));
    assert!(p.stored_over("%b"));
    assert!(p.stored_over("%c0"));
    assert!(!p.stored_over("%d"));
}

#[test]
fn parameters_without_noalias_may_meet() {
    let read = "%q = offset %s, %i * 8
                %a = load f64 %q align 8";
    for (pointer, expected) in [("%t", true), ("%x", false), ("@g", true)] {
        let p = load_and_store(
            "0 to %n step 1",
            read,
            &format!("%p = offset {pointer}, %i * 8\nstore f64 %v, %p align 8"),
        );
        assert_eq!(p.stored_over("%a"), expected, "{pointer}");
    }
}

#[test]
fn globals() {
    let p = Program::body(
        "%a = load f64 @g align 8
         %b = load f64 @k align 8
         store f64 %v, @h align 8",
    );
    assert!(!p.stored_over("%a"));
    assert!(!p.stored_over("%b"));
    // A constant stays what it is even if anybody may write anything.
    let p = Program::body(
        "%a = load f64 @g align 8
         %b = load f64 @k align 8
         call @any(%s)",
    );
    let clobbers = p.clobbers();
    assert_eq!(
        clobbers.clobber_of(p.op("%a")),
        Some(p.all(Opcode::Call)[0])
    );
    assert_eq!(clobbers.clobber_of(p.op("%b")), None);
}

#[test]
fn own_memory_is_nobody_elses_until_it_escapes() {
    let text = |escape: &str| {
        format!(
            "%o = alloc 64 align 8
             {escape}
             %a = load f64 %o align 8
             %b = load f64 %x align 8
             %u = load ptr %s align 8
             store f64 %v, %u align 8"
        )
    };
    let p = Program::body(&text(""));
    assert!(!p.stored_over("%a") && !p.stored_over("%b"));
    let p = Program::body(&text("store ptr %o, %y align 8"));
    assert!(p.clobbers().clobber_of(p.op("%a")).is_some());
    assert!(p.clobbers().clobber_of(p.op("%b")).is_none());
    let p = Program::body(&text("%z = ptrtoint ptr %x to i64"));
    assert!(p.clobbers().clobber_of(p.op("%a")).is_none());
    assert!(p.clobbers().clobber_of(p.op("%b")).is_some());
    let p = Program::body(&text("call @pass(%o)"));
    assert!(p.clobbers().clobber_of(p.op("%a")).is_none());
    let p = Program::body(&text("call @any(%o)"));
    assert!(p.clobbers().clobber_of(p.op("%a")).is_some());
}

#[test]
fn calls_touch_what_they_are_given() {
    let p = Program::body(
        "%a = load f64 %x align 8
         %b = load f64 %y align 8
         %d = load f64 %s align 8
         call @pass(%x)",
    );
    let clobbers = p.clobbers();
    assert!(clobbers.clobber_of(p.op("%a")).is_some());
    assert!(clobbers.clobber_of(p.op("%b")).is_none());
    assert!(clobbers.clobber_of(p.op("%d")).is_some());
    let p = Program::body(
        "%a = load f64 %x align 8
         %b = load f64 %s align 8
         %l = call @look(%x)
         %q = call @pure(%l)",
    );
    let clobbers = p.clobbers();
    assert!(clobbers.clobber_of(p.op("%a")).is_none());
    assert!(clobbers.clobber_of(p.op("%b")).is_none());
    // What the call looked at is overwritten afterwards.
    let p = Program::body(
        "%l = call @look(%x)
         store f64 %v, %x align 8",
    );
    assert!(p.clobbers().clobber_of(p.op("%l")).is_some());
    let p = Program::body(
        "%l = call @look(%x)
         store f64 %v, %y align 8",
    );
    assert!(p.clobbers().clobber_of(p.op("%l")).is_none());
    let p = Program::body(
        "%l = call @look(%x)
         store f64 %v, %s align 8",
    );
    assert!(p.clobbers().clobber_of(p.op("%l")).is_some());
}

#[test]
fn chosen_pointers() {
    let p = Program::body(
        "%q = select ptr %c, %x, %y
         %a = load f64 %x align 8
         %b = load f64 %s align 8
         store f64 %v, %q align 8",
    );
    assert!(p.stored_over("%a"));
    assert!(!p.stored_over("%b"));
    // Both choices lie in one object, but where is not known.
    let p = Program::body(
        "%x8 = offset %x, 1 * 8
         %q = if %c -> (ptr) { yield %x } else { yield %x8 }
         %a = load f64 %x8 align 8
         %b = load f64 %y align 8
         store f64 %v, %q align 8",
    );
    assert!(p.stored_over("%a"));
    assert!(!p.stored_over("%b"));
    let p = Program::body(
        "%o = alloc 8 align 8
         %q = select ptr %c, %o, null
         %a = load f64 %q align 8
         store f64 %v, %o align 8",
    );
    assert!(p.stored_over("%a"));
}

#[test]
fn carried_pointers() {
    // A pointer that walks through x, eight bytes at a time.
    let p = Program::body(
        "%e = for %i: i64 = 0 to %n step 1 with (%q: ptr = %x) {
           %p = offset %q, -1 * 8
           %a = load f64 %p align 8
           %b = load f64 %q align 8
           store f64 %v, %q align 8
           %z = offset %q, 1 * 8
           yield %z
         }",
    );
    assert!(!p.stored_over("%a"));
    assert!(p.stored_over("%b"));
    // One that swaps with another.
    let p = Program::body(
        "%e, %g = for %i: i64 = 0 to %n step 1 with (%q: ptr = %x, %p: ptr = %y) {
           store f64 %v, %q align 8
           %a = load f64 %p align 8
           %b = load f64 %s align 8
           yield %p, %q
         }",
    );
    assert!(p.stored_over("%a"));
    assert!(!p.stored_over("%b"));
    // One in a general loop, of which only the object is known.
    let p = Program::body(
        "%e = loop with (%q: ptr = %x) {
           store f64 %v, %q align 8
           %a = load f64 %q align 8
           %b = load f64 %y align 8
           %z = offset %q, 1 * 8
           %w = icmp ne ptr %z, %s
           again %w, %z
         }",
    );
    assert!(p.stored_over("%a"));
    assert!(!p.stored_over("%b"));
}

#[test]
fn memory_made_in_a_loop() {
    let p = load_and_store(
        "0 to %n step 1",
        "%o = alloc 8 align 8
         store f64 %v, %o align 8
         %a = load f64 %o align 8",
        "",
    );
    assert!(!p.stored_over("%a"));
    // It is released in the same iteration.
    let p = load_and_store(
        "0 to %n step 1",
        "%o = alloc 8 align 8
         store f64 %v, %o align 8
         %a = load f64 %o align 8
         free %o",
        "",
    );
    assert!(!p.stored_over_by_first("%a"));
    assert_eq!(
        p.clobbers().clobber_of(p.op("%a")),
        Some(p.all(Opcode::Free)[0])
    );
    // What one iteration makes, the next one writes.
    let p = Program::body(
        "%e = for %i: i64 = 0 to %n step 1 with (%q: ptr = %x) {
           store f64 %v, %q align 8
           %o = alloc 8 align 8
           %a = load f64 %o align 8
           yield %o
         }",
    );
    assert!(p.stored_over("%a"));
}

#[test]
fn branches_exclude_each_other() {
    let p = Program::body(
        "if %c {
           %a = load f64 %s align 8
           yield
         } else {
           store f64 %v, %s align 8
           yield
         }",
    );
    assert!(!p.stored_over("%a"));
    let p = load_and_store(
        "0 to %n step 1",
        "if %c {
           %a = load f64 %s align 8
           yield
         } else {
           store f64 %v, %s align 8
           yield
         }",
        "",
    );
    assert!(p.stored_over("%a"));
}

#[test]
fn conditions_of_branches_help() {
    // Only j > i is written once x[i] was read.
    let p = Program::body(
        "for %i: i64 = 0 to %n step 1 {
           %q = offset %x, %i * 8
           %a = load f64 %q align 8
           for %j: i64 = 0 to %n step 1 {
             %more = icmp sgt i64 %j, %i
             if %more {
               %p = offset %x, %j * 8
               store f64 %v, %p align 8
               yield
             }
             yield
           }
           yield
         }",
    );
    assert!(!p.stored_over("%a"));
    // A test for overflow says nothing about the numbers that do not overflow.
    let p = Program::body(
        "for %i: i64 = 0 to %n step 1 {
           %q = offset %x, %i * 8
           %a = load f64 %q align 8
           %sum = add i64 %i, %m
           %over = icmp slt i64 %sum, %i
           if %over {
             %k = sub i64 %i, %m
             %p = offset %x, %k * 8
             store f64 %v, %p align 8
             yield
           }
           yield
         }",
    );
    assert!(p.stored_over("%a"));
}

#[test]
fn code_that_traps_clobbers_nothing() {
    let p = Program::body(
        "%a = load f64 %s align 8
         if %c {
           store f64 %v, %s align 8
           call @any(%s)
           trap \"out of bounds\"
         }",
    );
    assert_eq!(p.clobbers().clobber_of(p.op("%a")), None);
}

#[test]
fn stretches_of_memory() {
    // Rows are copied one after the other.
    let p = load_and_store(
        "0 to %m step 1",
        "%bytes = mul nsw i64 %n, 8
         %row = mul i64 %i, %bytes
         %q = offset %x, %row * 1
         %a = load f64 %q align 8",
        "%next = offset %q, %bytes * 1
         copy %next, %y, %bytes align 8",
    );
    // Row i + 1 is written after row i was read, but row i is read again never.
    assert!(!p.overwritten("%a", Opcode::Copy));
    let p = Program::body(
        "%a = load f64 %x align 8
         move %x, %y, %n align 1",
    );
    assert!(p.overwritten("%a", Opcode::Move));
    let p = Program::body(
        "%p = offset %x, 1 * 8
         %a = load f64 %x align 8
         fill %p, 0, %n align 1",
    );
    assert!(!p.overwritten("%a", Opcode::Fill));
}

#[test]
fn a_move_overwrites_what_it_read() {
    let p = Program::body("%p = offset %x, 1 * 8\n move %x, %p, 16 align 8");
    let op = p.all(Opcode::Move)[0];
    assert_eq!(p.clobbers().clobber_of(op), Some(op));
    let p = Program::body("%p = offset %x, 1 * 8\n copy %x, %p, 8 align 8");
    let op = p.all(Opcode::Copy)[0];
    assert_eq!(p.clobbers().clobber_of(op), None);
}
