//! What kernels look like in OpenCL C.

use expect_test::{Expect, expect};
use ferrozyme_opencl::print_program;
use programs::{ABILITIES, program_for};

#[path = "../../gpu/tests/programs/mod.rs"]
mod programs;

/// Compares the lines of a program that are loops, or conditions which always hold.
fn check_loops(kernel: &str, expected: Expect) {
    let source = print_program(&program_for(kernel, &ABILITIES)).unwrap();
    let (_, kernels) = source.split_once("__kernel").unwrap();
    let starts = ["for (", "do {", "if (get_local_id(0) <"];
    let is_wanted = |line: &&str| starts.iter().any(|start| line.trim().starts_with(start));
    let lines = || kernels.lines().filter(is_wanted);
    let indent = |line: &str| line.len() - line.trim_start().len();
    let least = lines().map(indent).min().unwrap_or(0);
    let found: String = lines()
        .map(|line| format!("{}\n", &line[least..]))
        .collect();
    expected.assert_eq(&found);
}

#[test]
fn loops_that_differ_from_item_to_item_stand_behind_a_condition_in_kernels_with_barriers() {
    check_loops(
        "func @kernel(%to: ptr noalias, %from: ptr noalias) {
  for %i: i64 = 0 to 2 step 1 {
    %sum = for %j: i64 = 0 to 40 step 1 with (%s: f32 = 0.0) {
      %row = mul i64 %j, 20
      %sum2 = for %k: i64 = 0 to 20 step 1 with (%s2: f32 = %s) {
        %at = add i64 %row, %k
        %p = offset %from, %at * 4
        %x = load f32 %p align 4
        %next = fadd reassoc f32 %s2, %x
        yield %next
      }
      yield %sum2
    }
    %q = offset %to, %i * 4
    store f32 %sum, %q align 4
    yield
  }
  return
}",
        expect![[r#"
              if (get_local_id(0) < get_local_size(0)) {
                for (long c9 = (long)v25; c9 < (long)40ul; c9 += (long)64ul) {
                  for (long c14 = (long)0ul; c14 < (long)20ul; c14 += (long)1ul) {
        "#]],
    );
}

#[test]
fn loops_stand_behind_no_condition_in_kernels_without_barriers() {
    check_loops(
        "func @kernel(%to: ptr noalias, %from: ptr noalias) {
  for %i: i64 = 0 to 1000 step 1 {
    %last = for %j: i64 = %i to 2000 step 3 with (%x: i64 = 0) {
      %next = xor i64 %x, %j
      yield %next
    }
    %q = offset %to, %i * 8
    store i64 %last, %q align 8
    yield
  }
  return
}",
        expect![[r#"
                for (long c9 = (long)v18; c9 < (long)2000ul; c9 += (long)3ul) {
        "#]],
    );
}
