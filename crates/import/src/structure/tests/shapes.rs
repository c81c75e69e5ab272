//! Common shapes come out clean.

use super::*;
use expect_test::{Expect, expect};

/// The form of a graph, without what its blocks note; both forms must do the same.
fn check(sketch: &Sketch, results: usize, expected: Expect) {
    let module = structured(&sketch.graph, results).expect("it does not nest too deep");
    for seed in 0..32 {
        let answers: Vec<i64> = (0..24)
            .map(|bit| ((seed * 2654435761u64) >> bit) as i64 & 3)
            .collect();
        check_same(&sketch.graph, &module, &answers);
    }
    expected.assert_eq(&form_of(&module));
}

#[test]
fn a_guarded_loop_with_its_test_at_the_end() {
    let mut sketch = Sketch::default();
    let (entry, body, exit) = (sketch.block(0), sketch.block(2), sketch.block(1));
    let start = sketch.mixture(entry);
    let next = sketch.mixture(body);
    let second = sketch.graph.blocks[body as usize].params[1];
    sketch.branch(entry, (body, &[start, start]), (exit, &[start]));
    sketch.branch(body, (body, &[next, second]), (exit, &[next]));
    let result = sketch.graph.blocks[exit as usize].params[0];
    sketch.ret(exit, &[result]);
    check(
        &sketch,
        1,
        expect![[r#"
        func @main() -> (i64) {
          %0 = call @ask()
          %1 = icmp ne i64 %0, 0
          %2 = if %1 -> (i64) {
            %3, %4 = loop with (%5: i64 = 0, %6: i64 = 0) {
              %11 = call @ask()
              %12 = icmp ne i64 %11, 0
              again %12, %10, %6
            }
            yield %3
          } else {
            yield 0
          }
          return %2
        }
    "#]],
    );
}

#[test]
fn a_loop_with_its_test_at_the_start() {
    let mut sketch = Sketch::default();
    let (entry, head, body, exit) = (
        sketch.block(0),
        sketch.block(1),
        sketch.block(0),
        sketch.block(0),
    );
    let (start, next) = (sketch.mixture(entry), sketch.mixture(body));
    sketch.jump(entry, head, &[start]);
    sketch.branch(head, (body, &[]), (exit, &[]));
    sketch.jump(body, head, &[next]);
    let result = sketch.graph.blocks[head as usize].params[0];
    sketch.ret(exit, &[result]);
    check(
        &sketch,
        1,
        expect![[r#"
        func @main() -> (i64) {
          %0, %1 = loop with (%2: i64 = 0, %3: i64 = undef) {
            %6 = call @ask()
            %7 = icmp ne i64 %6, 0
            if %7 {
              yield
            }
            again %7, 2, %2
          }
          return %1
        }
    "#]],
    );
}

#[test]
fn a_check_in_a_loop_is_no_exit() {
    let mut sketch = Sketch::default();
    let (entry, body, rest, exit, panic) = (
        sketch.block(0),
        sketch.block(1),
        sketch.block(0),
        sketch.block(0),
        sketch.block(0),
    );
    let (start, next) = (sketch.mixture(entry), sketch.mixture(rest));
    sketch.branch(entry, (body, &[start]), (panic, &[]));
    sketch.branch(body, (rest, &[]), (panic, &[]));
    sketch.branch(rest, (exit, &[]), (body, &[next]));
    sketch.ret(exit, &[]);
    check(
        &sketch,
        0,
        expect![[r#"
        func @main() {
          %0 = call @ask()
          %1 = icmp ne i64 %0, 0
          if %1 {
            yield
          } else {
            trap "end"
          }
          %2 = loop with (%3: i64 = 0) {
            %6 = call @ask()
            %7 = icmp ne i64 %6, 0
            if %7 {
              yield
            } else {
              trap "end"
            }
            %8 = call @ask()
            %9 = icmp ne i64 %8, 0
            %10 = xor i1 %9, 1
            again %10, 2
          }
          return
        }
    "#]],
    );
}

#[test]
fn a_loop_with_two_exits() {
    let mut sketch = Sketch::default();
    let (entry, head, body) = (sketch.block(0), sketch.block(1), sketch.block(0));
    let (found, missing) = (sketch.block(0), sketch.block(0));
    let (start, next) = (sketch.mixture(entry), sketch.mixture(body));
    sketch.jump(entry, head, &[start]);
    sketch.branch(head, (found, &[]), (body, &[]));
    sketch.branch(body, (missing, &[]), (head, &[next]));
    let (one, two) = (sketch.mixture(found), sketch.mixture(missing));
    sketch.ret(found, &[one]);
    sketch.ret(missing, &[two]);
    check(
        &sketch,
        1,
        expect![[r#"
        func @main() -> (i64) {
          %0, %1 = loop with (%2: i64 = 0, %3: i1 = undef) {
            %6 = call @ask()
            %7 = icmp ne i64 %6, 0
            %8 = if %7 -> (i1) {
              yield 0
            } else {
              %9 = call @ask()
              %10 = icmp ne i64 %9, 0
              if %10 {
                yield
              }
              %11 = xor i1 %10, 1
              yield %11
            }
            again %8, 2, %7
          }
          %12 = if %1 -> (i64) {
            yield 3
          } else {
            yield 4
          }
          return %12
        }
    "#]],
    );
}

#[test]
fn a_diamond_gives_a_result() {
    let mut sketch = Sketch::default();
    let (entry, left, right, join) = (
        sketch.block(0),
        sketch.block(0),
        sketch.block(0),
        sketch.block(1),
    );
    let (one, two) = (sketch.mixture(left), sketch.mixture(right));
    sketch.branch(entry, (left, &[]), (right, &[]));
    sketch.jump(left, join, &[one]);
    sketch.jump(right, join, &[two]);
    let result = sketch.graph.blocks[join as usize].params[0];
    sketch.ret(join, &[result]);
    check(
        &sketch,
        1,
        expect![[r#"
        func @main() -> (i64) {
          %0 = call @ask()
          %1 = icmp ne i64 %0, 0
          %2 = if %1 -> (i64) {
            yield 1
          } else {
            yield 2
          }
          return %2
        }
    "#]],
    );
}

#[test]
fn a_switch() {
    let mut sketch = Sketch::default();
    let (entry, a, b, c, join) = (
        sketch.block(0),
        sketch.block(0),
        sketch.block(0),
        sketch.block(0),
        sketch.block(1),
    );
    sketch.switch(entry, &[(a, &[]), (b, &[]), (c, &[])]);
    for arm in [a, b] {
        let value = sketch.mixture(arm);
        sketch.jump(arm, join, &[value]);
    }
    let result = sketch.graph.blocks[join as usize].params[0];
    sketch.ret(join, &[result]);
    check(
        &sketch,
        1,
        expect![[r#"
        func @main() -> (i64) {
          %0 = call @ask()
          %1 = switch i64 %0 -> (i64) {
            case 0 {
              yield 1
            }
            case 1 {
              yield 2
            }
            default {
              trap "end"
            }
          }
          return %1
        }
    "#]],
    );
}

#[test]
fn conditions_one_after_the_other_share_what_follows() {
    let mut sketch = Sketch::default();
    let (entry, second) = (sketch.block(0), sketch.block(0));
    let (yes, no, join) = (sketch.block(0), sketch.block(0), sketch.block(1));
    sketch.branch(entry, (second, &[]), (no, &[]));
    sketch.branch(second, (yes, &[]), (no, &[]));
    let (one, two) = (sketch.mixture(yes), sketch.mixture(no));
    sketch.jump(yes, join, &[one]);
    sketch.jump(no, join, &[two]);
    let result = sketch.graph.blocks[join as usize].params[0];
    sketch.ret(join, &[result]);
    check(
        &sketch,
        1,
        expect![[r#"
        func @main() -> (i64) {
          %0 = call @ask()
          %1 = icmp ne i64 %0, 0
          %2 = if %1 -> (i1) {
            %3 = call @ask()
            %4 = icmp ne i64 %3, 0
            if %4 {
              yield
            }
            %5 = xor i1 %4, 1
            yield %5
          } else {
            yield 1
          }
          %6 = if %2 -> (i64) {
            yield 3
          } else {
            yield 2
          }
          return %6
        }
    "#]],
    );
}

#[test]
fn an_endless_loop() {
    let mut sketch = Sketch::default();
    let (entry, body) = (sketch.block(0), sketch.block(0));
    sketch.jump(entry, body, &[]);
    sketch.branch(body, (body, &[]), (body, &[]));
    check(
        &sketch,
        0,
        expect![[r#"
        func @main() {
          loop {
            %0 = call @ask()
            %1 = icmp ne i64 %0, 0
            again 1
          }
          trap "unreachable"
        }
    "#]],
    );
}

#[test]
fn a_loop_with_two_entries() {
    let mut sketch = Sketch::default();
    let (entry, a, b, exit) = (
        sketch.block(0),
        sketch.block(1),
        sketch.block(1),
        sketch.block(0),
    );
    let start = sketch.mixture(entry);
    sketch.branch(entry, (a, &[start]), (b, &[start]));
    let (from_a, from_b) = (sketch.mixture(a), sketch.mixture(b));
    sketch.jump(a, b, &[from_a]);
    sketch.branch(b, (a, &[from_b]), (exit, &[]));
    sketch.ret(exit, &[from_b]);
    check(
        &sketch,
        1,
        expect![[r#"
        func @main() -> (i64) {
          %0 = call @ask()
          %1 = icmp ne i64 %0, 0
          %2 = if %1 -> (i32) {
            yield 1
          } else {
            yield 2
          }
          %3, %4, %5, %6 = loop with (%7: i64 = undef, %8: i64 = 0, %9: i64 = 0, %10: i32 = %2) {
            %11, %12, %13, %14, %15 = switch i32 %10 -> (i64, i64, i64, i32, i1) {
              case 1 {
                yield %7, %8, %17, 2, 1
              }
              default {
                %20 = call @ask()
                %21 = icmp ne i64 %20, 0
                %22, %23 = if %21 -> (i64, i32) {
                  yield %19, 1
                } else {
                  yield %8, 3
                }
                yield %19, %22, %9, %23, %21
              }
            }
            again %15, %11, %12, %13, %14
          }
          return %3
        }
    "#]],
    );
}

#[test]
fn long_rows_of_blocks_take_no_stack() {
    let mut sketch = Sketch::default();
    let panic = sketch.block(0);
    let mut last = panic;
    let count = 20_000;
    // The panic must not be the entry.
    sketch.graph.blocks.clear();
    sketch.graph.types.clear();
    for _ in 0..count {
        last = sketch.block(0);
    }
    let panic = sketch.block(0);
    for block in 0..last {
        sketch.branch(block, (block + 1, &[]), (panic, &[]));
    }
    sketch.ret(last, &[]);
    let module = structured(&sketch.graph, 0).expect("checks do not nest");
    check_same(&sketch.graph, &module, &[1, 1, 1, 0]);
}

#[test]
fn returns_that_nest_too_deep_are_refused() {
    let mut sketch = Sketch::default();
    for _ in 0..5000 {
        sketch.block(0);
    }
    let exit = sketch.block(0);
    for block in 0..exit - 1 {
        sketch.branch(block, (block + 1, &[]), (exit, &[]));
    }
    sketch.jump(exit - 1, exit, &[]);
    sketch.ret(exit, &[]);
    assert!(matches!(
        structured(&sketch.graph, 0),
        Err(StructureError::TooDeep)
    ));
}
