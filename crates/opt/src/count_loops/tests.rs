use super::count_loops;
use crate::testing::{check, check_same_outcomes, check_same_results, check_unchanged};
use expect_test::expect;
use ferrozyme_ir::interpret::Datum;

#[test]
fn a_loop_behind_its_guard() {
    check(
        count_loops,
        "func @f(%p: ptr, %n: i64) {
           %c = icmp sgt i64 %n, 0
           if %c {
             %e = loop with (%i: i64 = 0) {
               %q = offset %p, %i * 8
               store f64 0.0, %q align 8
               %j = add i64 %i, 1
               %d = icmp ne i64 %j, %n
               again %d, %j
             }
             yield
           }
           return
         }",
        expect![[r#"
            func @f(%p: ptr, %n: i64) {
              %c = icmp sgt i64 %n, 0
              if %c {
                %e = for %0: i64 = 0 to %n step 1 with (%i: i64 = 0) {
                  %q = offset %p, %i * 8
                  store f64 0.0, %q align 8
                  %j = add i64 %i, 1
                  %d = icmp ne i64 %j, %n
                  yield %j
                }
                yield
              }
              return
            }
        "#]],
    );
}

#[test]
fn pointers_that_run_to_an_end() {
    check(
        count_loops,
        "func @f(%p: ptr, %n: i64 range 1..=1000) {
           %end = offset %p, %n * 8
           %e = loop with (%q: ptr = %p) {
             store f64 0.0, %q align 8
             %r = offset %q, 8
             %d = icmp ne ptr %r, %end
             again %d, %r
           }
           return
         }",
        expect![[r#"
            func @f(%p: ptr, %n: i64 range 1..=1000) {
              %end = offset %p, %n * 8
              %e = for %0: i64 = 0 to %n step 1 with (%q: ptr = %p) {
                store f64 0.0, %q align 8
                %r = offset %q, 8
                %d = icmp ne ptr %r, %end
                yield %r
              }
              return
            }
        "#]],
    );
}

#[test]
fn at_least_one_iteration() {
    check(
        count_loops,
        r#"func @f(%a: i64, %n: i64, %m: i32) {
           %e = loop with (%i: i64 = %a) {
             %j = add nsw i64 %i, 2
             %c = icmp slt i64 %j, %n
             again %c, %j
           }
           %g = loop with (%k: i32 = %m) {
             %l = add i32 %k, -1
             %d = icmp ne i32 %l, 0
             again %d, %l
           }
           %h = loop with (%o: i64 = 0) {
             %b = icmp eq i64 %o, 100
             if %b { trap "too long" }
             %q = add i64 %o, 1
             %r = icmp ne i64 %q, %n
             again %r, %q
           }
           return
         }"#,
        expect![[r#"
            func @f(%a: i64, %n: i64, %m: i32) {
              %0 = icmp slt i64 %a, %n
              %1 = sub i64 %n, %a
              %2 = sub i64 %1, 1
              %3 = udiv i64 %2, 2
              %4 = add i64 %3, 1
              %5 = select i64 %0, %4, 0
              %6 = smax i64 %5, 1
              %e = for %7: i64 = 0 to %6 step 1 with (%i: i64 = %a) {
                %j = add nsw i64 %i, 2
                %c = icmp slt i64 %j, %n
                yield %j
              }
              %8 = add i32 %m, -1
              %9 = zext i32 %8 to i64
              %10 = add i64 %9, 1
              %g = for %11: i64 = 0 to %10 step 1 with (%k: i32 = %m) {
                %l = add i32 %k, -1
                %d = icmp ne i32 %l, 0
                yield %l
              }
              %12 = add i64 %n, -1
              %13 = umin i64 %12, 9223372036854775806
              %14 = add i64 %13, 1
              %h = for %15: i64 = 0 to %14 step 1 with (%o: i64 = 0) {
                %b = icmp eq i64 %o, 100
                if %b {
                  trap "too long"
                }
                %q = add i64 %o, 1
                %r = icmp ne i64 %q, %n
                yield %q
              }
              return
            }
        "#]],
    );
}

#[test]
fn what_a_test_keeps_away_counts_as_no_iterations() {
    check(
        count_loops,
        r#"func @f(%a: i64, %n: i64) {
           %same = icmp eq i64 %a, %n
           if %same {
             yield
           } else {
             %h = loop with (%i: i64 = %a) {
               %b = icmp eq i64 %i, 100
               if %b { trap "too long" }
               %j = add i64 %i, 1
               %r = icmp ne i64 %j, %n
               again %r, %j
             }
             yield
           }
           return
         }"#,
        expect![[r#"
            func @f(%a: i64, %n: i64) {
              %same = icmp eq i64 %a, %n
              if %same {
                yield
              } else {
                %0 = sub i64 %n, %a
                %1 = umin i64 %0, 9223372036854775807
                %h = for %2: i64 = 0 to %1 step 1 with (%i: i64 = %a) {
                  %b = icmp eq i64 %i, 100
                  if %b {
                    trap "too long"
                  }
                  %j = add i64 %i, 1
                  %r = icmp ne i64 %j, %n
                  yield %j
                }
                yield
              }
              return
            }
        "#]],
    );
}

#[test]
fn loops_that_cannot_be_counted_stay() {
    check_unchanged(
        count_loops,
        "func @f(%a: i64, %n: i64, %x: f64) {
           %e = loop with (%i: i64 = %a) {
             %j = add i64 %i, 1
             %c = icmp slt i64 %j, %n
             again %c, %j
           }
           %g = loop with (%k: i64 = %a) {
             %l = add i64 %k, 2
             %d = icmp ne i64 %l, %n
             again %d, %l
           }
           %h = loop with (%y: f64 = %x) {
             %z = fmul f64 %y, 0.5
             %b = fcmp ogt f64 %z, 1.0
             again %b, %z
           }
           %r = loop with (%s: i64 = 1) {
             %t = mul i64 %s, 2
             %v = icmp slt i64 %t, %n
             again %v, %t
           }
           return
         }",
    );
}

#[test]
fn results_stay_the_same() {
    let text = r#"func @main(%a: i64, %n: i64, %m: i32) -> (i64, i64, i32, i64) {
           %e, %s = loop with (%i: i64 = %a, %t: i64 = 0) {
             %u = mul i64 %i, %i
             %t1 = add i64 %t, %u
             %j = add nsw i64 %i, 3
             %c = icmp slt i64 %j, %n
             again %c, %j, %t1
           }
           %g = loop with (%k: i32 = %m) {
             %l = add i32 %k, -1
             %d = icmp ne i32 %l, 0
             again %d, %l
           }
           %h = loop with (%o: i64 = %a) {
             %q = add i64 %o, 1
             %r = icmp slt i64 %o, %n
             again %r, %q
           }
           return %e, %s, %g, %h
         }"#;
    let inputs: Vec<[Datum; 3]> = [(0, 0, 1), (0, 10, 5), (-3, 7, 100), (5, 2, 2), (6, 7, 3)]
        .into_iter()
        .map(|(a, n, m)| [Datum::i64(a), Datum::i64(n), Datum::i32(m)])
        .collect();
    let inputs: Vec<&[Datum]> = inputs.iter().map(|input| &input[..]).collect();
    check_same_results(count_loops, text, &inputs);
}

/// A loop that counts with one comparison, and stops the program at 20 if `stops`.
fn counting(start: &str, grow: &str, compare: &str, stops: bool) -> String {
    let stop = if stops {
        "%bad = icmp eq i64 %a, 20
         if %bad { trap \"stop\" } else { yield }"
    } else {
        ""
    };
    format!(
        "func @main(%n: i64) -> (i64, i64) {{
           %s, %e = loop with (%a: i64 = 0, %i: i64 = {start}) {{
             {stop}
             %a1 = add i64 %a, 1
             %j = {grow}
             %c = icmp {compare}
             again %c, %a1, %j
           }}
           return %s, %e
         }}"
    )
}

#[test]
fn comparisons_without_sign() {
    let inputs = [0, 1, 2, 3, 4, 7, 11, 12, 13].map(|n| [Datum::i64(n)]);
    let inputs: Vec<&[Datum]> = inputs.iter().map(|input| &input[..]).collect();
    for stops in [false, true] {
        for (start, grow, compare) in [
            ("0", "add i64 %i, 1", "ult i64 %j, %n"),
            ("0", "add i64 %i, 1", "ult i64 %i, %n"),
            ("3", "add i64 %i, 1", "ugt i64 %n, %j"),
            ("0", "add nuw i64 %i, 3", "ult i64 %j, %n"),
            ("2", "add nuw i64 %i, 3", "ult i64 %i, %n"),
            ("1", "add nsw i64 %i, 2", "sle i64 %j, 9"),
            ("12", "add nsw i64 %i, -1", "uge i64 %j, 3"),
            ("12", "add nsw i64 %i, -2", "sge i64 %i, 3"),
        ] {
            let text = counting(start, grow, compare, stops);
            check_same_outcomes(count_loops, &text, &inputs);
        }
    }
    // Nothing but the program's own end comes before the end of these.
    let text = counting("0", "add i64 %i, 1", "ult i64 %j, %n", true);
    let inputs = [-1, i64::MIN, i64::MAX].map(|n| [Datum::i64(n)]);
    let inputs: Vec<&[Datum]> = inputs.iter().map(|input| &input[..]).collect();
    check_same_outcomes(count_loops, &text, &inputs);
}

#[test]
fn steps_that_meet_their_end() {
    let text = counting("%n", "add nsw i64 %i, -4", "ne i64 %i, 4", false);
    let inputs = [4, 8, 12, 40].map(|n| [Datum::i64(n)]);
    let inputs: Vec<&[Datum]> = inputs.iter().map(|input| &input[..]).collect();
    check_same_outcomes(count_loops, &text, &inputs);
    // Where something else may end it, or it may wrap around, it need not come out even.
    check_unchanged(
        count_loops,
        &counting("%n", "add nsw i64 %i, -4", "ne i64 %i, 4", true),
    );
    check_unchanged(
        count_loops,
        &counting("%n", "add i64 %i, -4", "ne i64 %i, 4", false),
    );
}

#[test]
fn a_slice_of_unknown_length() {
    check(
        count_loops,
        "func @f(%v: ptr) -> (f64) {
           %p = load ptr %v align 8
           %l = offset nuw inbounds %v, 8
           %n = load i64 %l align 8
           %end = offset nuw inbounds %p, %n * 8
           %none = icmp eq i64 %n, 0
           %r = if %none -> (f64) {
             yield 0.0
           } else {
             %s, %e = loop with (%a: f64 = 0.0, %q: ptr = %p) {
               %x = load f64 %q align 8
               %bad = fcmp olt f64 %x, 0.0
               if %bad { trap \"negative\" } else { yield }
               %b = fadd f64 %a, %x
               %q1 = offset nuw inbounds %q, 8
               %c = icmp ne ptr %end, %q1
               again %c, %b, %q1
             }
             yield %s
           }
           return %r
         }",
        expect![[r#"
            func @f(%v: ptr) -> (f64) {
              %p = load ptr %v align 8
              %l = offset nuw inbounds %v, 8
              %n = load i64 %l align 8
              %end = offset nuw inbounds %p, %n * 8
              %none = icmp eq i64 %n, 0
              %r = if %none -> (f64) {
                yield 0.0
              } else {
                %s, %e = for %0: i64 = 0 to %n step 1 with (%a: f64 = 0.0, %q: ptr = %p) {
                  %x = load f64 %q align 8
                  %bad = fcmp olt f64 %x, 0.0
                  if %bad {
                    trap "negative"
                  }
                  %b = fadd f64 %a, %x
                  %q1 = offset nuw inbounds %q, 8
                  %c = icmp ne ptr %end, %q1
                  yield %b, %q1
                }
                yield %s
              }
              return %r
            }
        "#]],
    );
}
