//! Questions about small programs, with the answers that must be proven and those that must not.

use super::*;
use crate::clobbers::Clobbers;
use crate::hull::Hull;
use crate::indices::Counted;
use ferrozyme_ir::{FunctionId, Names, all_ops, parse_module};

struct Program {
    module: Module,
    id: FunctionId,
}

impl Program {
    fn new(text: &str) -> Program {
        let module = parse_module(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let id = module.function_named("f").expect("there is @f");
        Program { module, id }
    }

    /// A body with `%x` and `%y` exclusive, `%s` and `%t` shared, and some integers.
    fn body(body: &str) -> Program {
        Program::new(&format!(
            "global @g: 64 bytes align 8 = x\"00\"\n\
             global @h: 64 bytes align 8 = x\"00\"\n\
             global @k: 64 bytes align 8 const = x\"00\"\n\
             declare @any(ptr)\n\
             declare @look(ptr readonly nocapture) -> (f64) memory(read)\n\
             declare @pass(ptr nocapture)\n\
             declare @pure(f64) -> (f64) memory(none)\n\
             func @f(%x: ptr noalias, %y: ptr noalias, %s: ptr, %t: ptr, %n: i64, %m: i64, %c: i1, %v: f64) {{\n\
             {body}\n  return\n}}"
        ))
    }

    fn function(&self) -> &Function {
        &self.module.functions[self.id]
    }

    fn aliases(&self) -> Aliases<'_> {
        Aliases::new(&self.module, self.function())
    }

    fn clobbers(&self) -> Clobbers<'_> {
        Clobbers::compute(&self.module, self.function())
    }

    fn names(&self) -> Names {
        Names::of(self.function())
    }

    fn value(&self, name: &str) -> Value {
        let names = self.names();
        self.function()
            .values
            .keys()
            .find(|&value| names.get(value) == Some(name))
            .unwrap_or_else(|| panic!("there is {name}"))
    }

    /// The operation that defines a value.
    fn op(&self, name: &str) -> Op {
        let value = self.value(name);
        self.function().def_op(value).expect("an operation").0
    }

    /// All operations of a kind, in the order of the text.
    fn all(&self, opcode: Opcode) -> Vec<Op> {
        all_ops(self.function())
            .into_iter()
            .filter(|&op| self.function().ops[op].opcode == opcode)
            .collect()
    }

    /// Whether the first write by `opcode` may later overwrite what `%name` was loaded from.
    fn overwritten(&self, name: &str, opcode: Opcode) -> bool {
        let aliases = self.aliases();
        let read = self.op(name);
        let write = self.all(opcode)[0];
        let written = aliases.writes(write);
        aliases.reads(read).accesses.iter().any(|a| {
            (written.elsewhere && aliases.is_reachable_from_elsewhere(a.root))
                || written
                    .accesses
                    .iter()
                    .any(|b| aliases.may_overwrite_later((read, a), (write, b)))
        })
    }

    /// As `overwritten` by a store, after checking that the two ways to ask agree where there is one store only.
    fn stored_over(&self, name: &str) -> bool {
        let answer = self.overwritten(name, Opcode::Store);
        let clobber = self.clobbers().clobber_of(self.op(name));
        if self.all(Opcode::Store).len() == 1 {
            assert_eq!(answer, clobber.is_some());
        }
        answer
    }

    fn hull(&self, name: &str, loop_index: usize) -> Option<Hull> {
        let aliases = self.aliases();
        let op = self.op(name);
        let loop_op = self.all(Opcode::For)[loop_index];
        aliases.hull(&aliases.reads(op).accesses[0], op, loop_op)
    }

    /// `min, bytes if guards` of a hull, as text.
    fn hull_text(&self, name: &str, loop_index: usize) -> String {
        let names = self.names();
        let Some(hull) = self.hull(name, loop_index) else {
            return "none".to_owned();
        };
        let mut text = format!(
            "{}, {}",
            hull.min.to_text(&names),
            hull.bytes.to_text(&names)
        );
        for guard in hull.guards {
            text += &format!(" if {}", guard.to_text(&names));
        }
        text
    }
}

/// A loop over `%i` whose body loads `%a` from one place and stores to another.
fn load_and_store(range: &str, load: &str, store: &str) -> Program {
    Program::body(&format!(
        "for %i: i64 = {range} {{
           {load}
           {store}
           yield
         }}"
    ))
}

#[test]
fn in_place_recurrence() {
    // x[i] = x[i] * x[i - 1]
    let p = Program::body(
        "for %i: i64 = 1 to %n step 1 {
           %pi = offset %x, %i * 8
           %j = sub i64 %i, 1
           %pj = offset %x, %j * 8
           %a = load f64 %pi align 8
           %b = load f64 %pj align 8
           %ab = fmul f64 %a, %b
           store f64 %ab, %pi align 8
           yield
         }",
    );
    assert!(p.stored_over("%a"));
    assert!(!p.stored_over("%b"));
    let nest = p.all(Opcode::For)[0];
    let clobbers = p.clobbers();
    assert!(!clobbers.clobbered_in_loop(p.op("%b"), nest));
    assert!(clobbers.written_in_loop(p.op("%b"), nest));
    assert!(clobbers.clobbered_in_loop(p.op("%a"), nest));
}

#[test]
fn backward_recurrence() {
    // Counting down, x[i - 1] is written after it was read, x[i + 1] before.
    let p = load_and_store(
        "%n to 0 step -1",
        "%q = offset %x, %i * 8
         %below = offset %q, -1 * 8
         %above = offset %q, 1 * 8
         %a = load f64 %below align 8
         %b = load f64 %above align 8",
        "store f64 %v, %q align 8",
    );
    assert!(p.stored_over("%a"));
    assert!(!p.stored_over("%b"));
}

#[test]
fn rows_of_a_matrix() {
    let p = Program::body(
        "for %i: i64 = 0 to %m step 1 {
           for %j: i64 = 0 to %n step 1 {
             %r = mul i64 %i, %n
             %k = add i64 %r, %j
             %q = offset %x, %k * 8
             %a = load f64 %q align 8
             store f64 %v, %q align 8
             %b = load f64 %q align 8
             yield
           }
           yield
         }",
    );
    // The store follows the first load at once, and nothing ever comes back to the place of the second.
    assert!(p.stored_over("%a"));
    assert!(!p.stored_over("%b"));
}

#[test]
fn rows_of_a_matrix_need_the_bound_of_the_column() {
    // With m columns in a row of n the rows may run into each other.
    let p = Program::body(
        "for %i: i64 = 0 to %m step 1 {
           for %j: i64 = 0 to %m step 1 {
             %r = mul i64 %i, %n
             %k = add i64 %r, %j
             %q = offset %x, %k * 8
             store f64 %v, %q align 8
             %b = load f64 %q align 8
             yield
           }
           yield
         }",
    );
    assert!(p.stored_over("%b"));
}

#[test]
fn triangle_in_place() {
    // for i { for j < i { … l[i*n + j] … }; l[i*n + i] = … }: the diagonal is written after the row was read.
    let p = Program::body(
        "for %i: i64 = 0 to %n step 1 {
           %r = mul i64 %i, %n
           for %j: i64 = 0 to %i step 1 {
             %k = add i64 %r, %j
             %q = offset %x, %k * 8
             %a = load f64 %q align 8
             yield
           }
           %d = add i64 %r, %i
           %p = offset %x, %d * 8
           store f64 %v, %p align 8
           yield
         }",
    );
    assert!(!p.stored_over("%a"));
}

#[test]
fn elimination_in_place() {
    // for k { for i > k { for j > k { a[i,j] -= a[i,k]·a[k,j] } } }: column k and row k are done with.
    let p = Program::body(
        "for %k: i64 = 0 to %n step 1 {
           %k1 = add i64 %k, 1
           for %i: i64 = %k1 to %n step 1 {
             for %j: i64 = %k1 to %n step 1 {
               %in = mul i64 %i, %n
               %kn = mul i64 %k, %n
               %ij = add i64 %in, %j
               %ik = add i64 %in, %k
               %kj = add i64 %kn, %j
               %pij = offset %x, %ij * 8
               %pik = offset %x, %ik * 8
               %pkj = offset %x, %kj * 8
               %a = load f64 %pij align 8
               %b = load f64 %pik align 8
               %d = load f64 %pkj align 8
               store f64 %v, %pij align 8
               yield
             }
             yield
           }
           yield
         }",
    );
    assert!(p.stored_over("%a"));
    assert!(!p.stored_over("%b"));
    assert!(!p.stored_over("%d"));
}

#[test]
fn columns_of_a_matrix() {
    // Column 0 is read, column 1 is written; with rows of one element they would be the same.
    let text = |guard: &str| {
        format!(
            "%more = icmp sgt i64 %n, {guard}
             if %more {{
               for %i: i64 = 0 to %m step 1 {{
                 %r = mul i64 %i, %n
                 %q = offset %x, %r * 8
                 %a = load f64 %q align 8
                 yield
               }}
               for %j: i64 = 0 to %m step 1 {{
                 %r1 = mul i64 %j, %n
                 %c1 = add i64 %r1, 1
                 %p = offset %x, %c1 * 8
                 store f64 %v, %p align 8
                 yield
               }}
               yield
             }}"
        )
    };
    assert!(!Program::body(&text("1")).stored_over("%a"));
    assert!(Program::body(&text("0")).stored_over("%a"));
}

#[test]
fn time_steps() {
    // Layer t + 1 is computed from layer t of an array of layers of n + 2 elements.
    let p = Program::body(
        "%w = add i64 %n, 2
         for %t0: i64 = 0 to %m step 1 {
           %row = mul i64 %t0, %w
           for %i: i64 = 1 to %n step 1 {
             %k = add i64 %row, %i
             %q = offset %x, %k * 8
             %l = offset %q, -1 * 8
             %r = offset %q, 1 * 8
             %a = load f64 %l align 8
             %b = load f64 %r align 8
             %u = add i64 %k, %w
             %p = offset %x, %u * 8
             store f64 %v, %p align 8
             yield
           }
           yield
         }",
    );
    assert!(!p.stored_over("%a"));
    assert!(!p.stored_over("%b"));
}

#[test]
fn matrix_product_reads_are_kept() {
    let p = Program::body(
        "for %i: i64 = 0 to %n step 1 {
           for %j: i64 = 0 to %n step 1 {
             for %k: i64 = 0 to %n step 1 {
               %in = mul i64 %i, %n
               %kn = mul i64 %k, %n
               %ik = add i64 %in, %k
               %kj = add i64 %kn, %j
               %ij = add i64 %in, %j
               %pa = offset %s, %ik * 8
               %pb = offset %t, %kj * 8
               %pc = offset %x, %ij * 8
               %a = load f64 %pa align 8
               %b = load f64 %pb align 8
               %o = load f64 %pc align 8
               store f64 %v, %pc align 8
               yield
             }
             yield
           }
           yield
         }",
    );
    assert!(!p.stored_over("%a"));
    assert!(!p.stored_over("%b"));
    assert!(p.stored_over("%o"));
    assert_eq!(p.hull_text("%a", 0), "0, 8*%n*%n if %n");
    assert_eq!(p.hull_text("%b", 0), "0, 8*%n*%n if %n");
}

#[test]
fn even_and_odd() {
    let even = "%e = shl i64 %i, 1
                %p = offset %x, %e * 8
                store f64 %v, %p align 8";
    let p = load_and_store(
        "0 to %n step 1",
        "%d = shl i64 %i, 1
         %o = or i64 %d, 1
         %q = offset %x, %o * 8
         %a = load f64 %q align 8",
        even,
    );
    assert!(!p.stored_over("%a"));
    // A load of two words reaches into the next one.
    let p = load_and_store(
        "0 to %n step 1",
        "%d = shl i64 %i, 1
         %o = or i64 %d, 1
         %q = offset %x, %o * 8
         %a = load <2 x f64> %q align 8",
        even,
    );
    assert!(p.stored_over("%a"));
}

#[test]
fn steps_tell_places_apart() {
    // i = 0, 2, 4, …: x[i] and x[i + 1] are apart, x[i] and x[i + 2] are not.
    for (offset, expected) in [(1, false), (2, true), (-1, false), (-2, false), (3, false)] {
        let p = load_and_store(
            "0 to %n step 2",
            &format!(
                "%q = offset %x, %i * 8
                 %r = offset %q, {offset} * 8
                 %a = load f64 %r align 8"
            ),
            "store f64 %v, %q align 8",
        );
        assert_eq!(p.stored_over("%a"), expected, "{offset}");
    }
}

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

impl Program {
    /// Whether the first store may overwrite a load, whatever other writes there are.
    fn stored_over_by_first(&self, name: &str) -> bool {
        self.overwritten(name, Opcode::Store)
    }
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

#[test]
fn addresses_that_wrap_around() {
    // 2^61 · 8 = 2^64: all iterations store to the same place.
    let p = load_and_store(
        "0 to 8 step 1",
        "%q = offset %x, %i * 2305843009213693952
         %z = offset %q, 1 * 8
         %a = load f64 %q align 8",
        "store f64 %v, %q align 8",
    );
    assert!(p.stored_over("%a"));
    let p = load_and_store(
        "0 to 100 step 1",
        "%k = mul i64 %i, 1152921504606846976
         %q = offset %x, %k * 8
         store f64 %v, %q align 8
         %a = load f64 %q align 8",
        "",
    );
    assert!(p.stored_over("%a"));
    // 16 bits wrap after 65536 iterations.
    let p = load_and_store(
        "0 to %n step 1",
        "%w = trunc_int i64 %i to i16
         %k = sext i16 %w to i64
         %q = offset %x, %k * 8
         store f64 %v, %q align 8
         %a = load f64 %q align 8",
        "",
    );
    assert!(p.stored_over("%a"));
}

#[test]
fn narrow_counters() {
    let text = |widen: &str, flags: &str| {
        format!(
            "%n4 = trunc_int i64 %n to i32
             for %i: i32 = 0 to %n4 step 1 {{
               %d = mul {flags} i32 %i, 3
               %k = {widen} i32 %d to i64
               %q = offset %x, %k * 8
               store f64 %v, %q align 8
               %a = load f64 %q align 8
               yield
             }}"
        )
    };
    assert!(!Program::body(&text("sext", "nsw")).stored_over("%a"));
    assert!(Program::body(&text("sext", "")).stored_over("%a"));
    assert!(!Program::body(&text("zext", "nsw")).stored_over("%a"));
    assert!(Program::body(&text("zext", "")).stored_over("%a"));
}

#[test]
fn gathers_and_scatters_may_meet() {
    let p = load_and_store(
        "0 to %n step 1",
        "%pk = offset %y, %i * 8
         %k = load i64 %pk align 8
         %q = offset %x, %k * 8
         store f64 %v, %q align 8
         %a = load f64 %q align 8",
        "",
    );
    assert!(p.stored_over("%a"));
    assert!(!p.stored_over("%k"));
}

#[test]
fn values_that_do_not_vary_are_the_same_everywhere() {
    // n/2 computed inside the loop is the same in each iteration.
    let p = load_and_store(
        "0 to %n step 1",
        "%h = sdiv i64 %n, 2
         %k = add i64 %i, %h
         %q = offset %x, %k * 8
         store f64 %v, %q align 8
         %a = load f64 %q align 8",
        "",
    );
    assert!(!p.stored_over("%a"));
}

#[test]
fn hulls() {
    let p = Program::body(
        "for %i: i64 = 0 to %m step 1 {
           for %j: i64 = 0 to %n step 1 {
             %r = mul i64 %i, %n
             %k = add i64 %r, %j
             %q = offset %s, %k * 8
             %a = load f64 %q align 8
             %ij = add i64 %i, %j
             %pd = offset %s, %ij * 8
             %d = load f64 %pd align 8
             %u = load ptr %q align 8
             %b = load f64 %u align 8
             if %c {
               %e = load f64 %q align 8
               yield
             }
             yield
           }
           for %l: i64 = 0 to %i step 1 {
             %pt = offset %s, %l * 8
             %g = load f64 %pt align 8
             yield
           }
           yield
         }
         for %z: i64 = 10 to 0 step -3 {
           %pz = offset %s, %z * 8
           %w = load f32 %pz align 4
           yield
         }",
    );
    assert_eq!(p.hull_text("%a", 0), "0, 8*%n*%m if %n if %m");
    assert_eq!(p.hull_text("%a", 1), "8*%n*%i, 8*%n if %n");
    // Without the guards these would be bytes that nobody touches: 8*(0 + 5 - 1) for n = 0.
    assert_eq!(p.hull_text("%d", 0), "0, 8*%n + 8*%m - 8 if %n if %m");
    // A pointer from memory, and a load that does not always run.
    assert_eq!(p.hull_text("%b", 0), "none");
    assert_eq!(p.hull_text("%e", 0), "none");
    // The inner loop does not run where the outer counter is 0, but then its largest counter is reached at the end.
    assert_eq!(p.hull_text("%g", 0), "0, 8*%m - 8 if %m - 1 if %m");
    // 10, 7, 4, 1
    assert_eq!(p.hull_text("%w", 3), "8, 76");
}

#[test]
fn trip_counts() {
    let p = Program::body(
        "for %a: i64 = 0 to %n step 1 { yield }
         for %b: i64 = %m to %n step -1 { yield }
         for %d: i64 = 0 to 10 step 3 { yield }
         for %e: i64 = 10 to 0 step -3 { yield }
         for %g: i64 = 0 to -5 step 1 { yield }
         %k = mul i64 %n, 4
         for %h: i64 = 0 to %k step 2 { yield }
         for %l: i64 = 0 to %n step 2 { yield }
         for %o: i64 = 0 to %n step %m { yield }",
    );
    let aliases = p.aliases();
    let names = p.names();
    let counts: Vec<String> = p
        .all(Opcode::For)
        .into_iter()
        .map(
            |op| match aliases.indices().counted(op).and_then(Counted::trip_count) {
                Some(count) => count.to_text(&names),
                None => "unknown".to_owned(),
            },
        )
        .collect();
    assert_eq!(
        counts,
        [
            "%n", "-%n + %m", "4", "4", "0", "2*%n", "unknown", "unknown"
        ]
    );
}

#[test]
fn bounds_of_expressions() {
    let p = Program::body(
        "for %i: i64 = 0 to %m step 1 {
           for %j: i64 = %i to %n step 1 {
             %r = mul i64 %i, %n
             %k = add i64 %r, %j
             %l = sub i64 %i, %j
             yield
           }
           yield
         }",
    );
    let aliases = p.aliases();
    let indices = aliases.indices();
    let names = p.names();
    let loops = p.all(Opcode::For);
    let text = |bound: Option<Symbolic>| bound.map(|bound| bound.to_text(&names));
    let k = indices.expression(p.value("%k"));
    let l = indices.expression(p.value("%l"));
    // i·n + j ≤ (m - 1)·n + n - 1; j ≥ i makes the lower bound 0.
    assert_eq!(
        text(indices.upper_bound(&k, &loops)),
        Some("%n*%m - 1".into())
    );
    assert_eq!(
        text(indices.lower_bound(&l, &loops)),
        Some("-%n + 1".into())
    );
    assert_eq!(text(indices.upper_bound(&l, &loops)), Some("0".into()));
    assert_eq!(
        text(indices.upper_bound(&k, &loops[1..])),
        Some("%n + %n*%i - 1".into())
    );
    assert!(!indices.is_invariant(&k, loops[1]));
    assert!(indices.is_invariant(&Symbolic::of_value(p.value("%i")), loops[1]));
}

#[test]
fn many_writes_and_loops_are_right() {
    // 30,000 loads, each followed by a store eight bytes further on, then two hundred loops.
    let mut body = String::new();
    for index in 0..30_000 {
        body += &format!(
            "%p{index} = offset %x, {index} * 8\n%a{index} = load f64 %p{index} align 8\n"
        );
        if index % 2 == 1 {
            body += &format!("store f64 %v, %p{index} align 8\n");
        }
    }
    for index in 0..200 {
        body += &format!(
            "for %i{index}: i64 = 0 to %n step 1 {{
               %k{index} = add i64 %i{index}, {}
               %q{index} = offset %x, %k{index} * 8
               %b{index} = load f64 %q{index} align 8
               store f64 %v, %q{index} align 8
               yield
             }}\n",
            50_000 + index
        );
    }
    let p = Program::body(&body);
    let clobbers = p.clobbers();
    let loads = p.all(Opcode::Load);
    // There are more loops than are looked at one by one, so that each load counts as clobbered by them.
    assert!(loads.iter().all(|&op| clobbers.clobber_of(op).is_some()));
}

#[test]
fn many_constant_writes_are_told_apart() {
    let mut body = String::new();
    for index in 0..30_000 {
        body += &format!(
            "%p{index} = offset %x, {index} * 8\n%a{index} = load f64 %p{index} align 8\n"
        );
        if index % 2 == 1 {
            body += &format!("store f64 %v, %p{index} align 8\n");
        }
    }
    let p = Program::body(&body);
    let clobbers = p.clobbers();
    for (index, op) in p.all(Opcode::Load).into_iter().enumerate() {
        assert_eq!(clobbers.clobber_of(op).is_some(), index % 2 == 1, "{index}");
    }
}
