//! Accesses of different iterations.

use super::*;

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
