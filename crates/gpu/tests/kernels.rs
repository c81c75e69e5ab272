//! What becomes of kernels, as text.

use expect_test::{Expect, expect};
use ferrozyme_gpu::{Abilities, GpuProgram};
use ferrozyme_ir::print_function;
use programs::{ABILITIES, program_for};

mod programs;

/// The program of a kernel `@kernel(%to, %from)` of which one pointer is written.
fn program_of(kernel: &str) -> GpuProgram {
    program_for(kernel, &ABILITIES)
}

fn check(kernel: &str, expected: Expect) {
    check_for(kernel, &ABILITIES, expected);
}

fn check_for(kernel: &str, abilities: &Abilities, expected: Expect) {
    let program = program_for(kernel, abilities);
    let mut text = String::new();
    for kernel in &program.kernels {
        let (groups, items, local) = (kernel.groups, kernel.items, kernel.local);
        let name = &kernel.name;
        text += &format!("; {name}: {groups} groups of {items} items, {local} bytes\n");
    }
    for kernel in &program.kernels {
        text += &print_function(&program.module, kernel.function);
    }
    expected.assert_eq(&text);
}

/// Groups, items and local memory of each kernel.
fn extents(kernel: &str) -> Vec<(u32, u32, usize)> {
    let program = program_of(kernel);
    let kernels = program.kernels.iter();
    kernels.map(|k| (k.groups, k.items, k.local)).collect()
}

#[test]
fn independent_loops_become_the_index_space() {
    check(
        "func @kernel(%to: ptr noalias, %from: ptr noalias readonly) {
  for %i: i64 = 0 to 100 step 1 {
    for %j: i64 = 0 to 7 step 1 {
      %row = mul i64 %i, 7
      %at = add i64 %row, %j
      %p = offset %from, %at * 4
      %x = load f32 %p align 4
      %y = exp f32 %x
      %q = offset %to, %at * 4
      store f32 %y, %q align 4
      yield
    }
    yield
  }
  return
}",
        expect![[r#"
            ; kernel_0: 3 groups of 256 items, 0 bytes
            func @kernel_0(%to: ptr noalias align 16, %from: ptr noalias readonly align 16, %status: ptr noalias nocapture) {
              %0 = call @__ferrozyme_group()
              %1 = call @__ferrozyme_item()
              %2 = mul i64 %0, 256
              %3 = add i64 %2, %1
              %4 = icmp ult i64 %3, 700
              if %4 {
                %5 = trunc_int i64 %3 to i32
                %6 = urem i32 %5, 7
                %7 = udiv i32 %5, 7
                %8 = zext i32 %6 to i64
                %9 = zext i32 %7 to i64
                %row = mul i64 %9, 7
                %at = add i64 %row, %8
                %p = offset %from, %at * 4
                %x = load f32 %p align 4
                %y = exp f32 %x
                %q = offset %to, %at * 4
                store f32 %y, %q align 4
                yield
              }
              return
            }
        "#]],
    );
}

#[test]
fn a_sum_is_shared_by_a_group() {
    check(
        "func @kernel(%to: ptr noalias, %from: ptr noalias readonly) {
  for %i: i64 = 0 to 3 step 1 {
    %row = mul i64 %i, 50
    %sum = for %j: i64 = 0 to 50 step 1 with (%s: f32 = 0.0) {
      %at = add i64 %row, %j
      %p = offset %from, %at * 4
      %x = load f32 %p align 4
      %t = fadd reassoc f32 %s, %x
      yield %t
    }
    %q = offset %to, %i * 4
    store f32 %sum, %q align 4
    yield
  }
  return
}",
        expect![[r#"
            ; kernel_0: 3 groups of 64 items, 512 bytes
            func @kernel_0(%to: ptr noalias align 16, %from: ptr noalias readonly align 16, %status: ptr noalias nocapture) {
              %0 = call @__ferrozyme_group()
              %1 = call @__ferrozyme_item()
              %2 = and i64 %1, 63
              %3 = call @__ferrozyme_local(512)
              %row = mul i64 %0, 50
              %4 = for %j: i64 = %2 to 50 step 64 with (%s: f32 = 0.0) {
                %at = add i64 %row, %j
                %p = offset %from, %at * 4
                %x = load f32 %p align 4
                %t = fadd reassoc f32 %s, %x
                yield %t
              }
              %5 = offset %3, 0
              %6 = offset %5, %2 * 8
              store f32 %4, %6 align 4
              call @__ferrozyme_barrier()
              %7 = icmp ult i64 %2, 32
              if %7 {
                %8 = offset %3, 0
                %9 = offset %8, %2 * 8
                %10 = offset %9, 256
                %11 = load f32 %9 align 4
                %12 = load f32 %10 align 4
                %13 = fadd f32 %11, %12
                store f32 %13, %9 align 4
                yield
              }
              call @__ferrozyme_barrier()
              %14 = icmp ult i64 %2, 16
              if %14 {
                %15 = offset %3, 0
                %16 = offset %15, %2 * 8
                %17 = offset %16, 128
                %18 = load f32 %16 align 4
                %19 = load f32 %17 align 4
                %20 = fadd f32 %18, %19
                store f32 %20, %16 align 4
                yield
              }
              call @__ferrozyme_barrier()
              %21 = icmp ult i64 %2, 8
              if %21 {
                %22 = offset %3, 0
                %23 = offset %22, %2 * 8
                %24 = offset %23, 64
                %25 = load f32 %23 align 4
                %26 = load f32 %24 align 4
                %27 = fadd f32 %25, %26
                store f32 %27, %23 align 4
                yield
              }
              call @__ferrozyme_barrier()
              %28 = icmp ult i64 %2, 4
              if %28 {
                %29 = offset %3, 0
                %30 = offset %29, %2 * 8
                %31 = offset %30, 32
                %32 = load f32 %30 align 4
                %33 = load f32 %31 align 4
                %34 = fadd f32 %32, %33
                store f32 %34, %30 align 4
                yield
              }
              call @__ferrozyme_barrier()
              %35 = icmp ult i64 %2, 2
              if %35 {
                %36 = offset %3, 0
                %37 = offset %36, %2 * 8
                %38 = offset %37, 16
                %39 = load f32 %37 align 4
                %40 = load f32 %38 align 4
                %41 = fadd f32 %39, %40
                store f32 %41, %37 align 4
                yield
              }
              call @__ferrozyme_barrier()
              %42 = icmp ult i64 %2, 1
              if %42 {
                %43 = offset %3, 0
                %44 = offset %43, %2 * 8
                %45 = offset %44, 8
                %46 = load f32 %44 align 4
                %47 = load f32 %45 align 4
                %48 = fadd f32 %46, %47
                store f32 %48, %44 align 4
                yield
              }
              call @__ferrozyme_barrier()
              %49 = offset %3, 0
              %50 = offset %49, 0 * 8
              %51 = load f32 %50 align 4
              call @__ferrozyme_barrier()
              %52 = fadd f32 0.0, %51
              %q = offset %to, %0 * 4
              %53 = icmp eq i64 %2, 0
              if %53 {
                store f32 %52, %q align 4
                yield
              }
              return
            }
        "#]],
    );
}

/// Each element is made of the one before.
#[test]
fn a_loop_with_dependences_runs_in_one_item() {
    let kernel = "func @kernel(%to: ptr noalias, %from: ptr noalias readonly) {
  for %i: i64 = 1 to 100 step 1 {
    %p = offset %to, %i * 4
    %before = offset %p, -1 * 4
    %x = load f32 %before align 4
    store f32 %x, %p align 4
    yield
  }
  return
}";
    assert_eq!(extents(kernel), [(1, 1, 0)]);
    let described = program_of(&kernel.replace("= 1 to", "= 0 to")).describe();
    assert_eq!(described, "1 kernels, 1 of them in one item (kernel_0)");
    let from_zero = kernel.replace("= 1 to 100", "= 0 to 100");
    assert_eq!(extents(&from_zero), [(1, 1, 0)]);
}

/// Buffers that may overlap: what one iteration writes, another may read.
#[test]
fn loops_over_buffers_that_may_overlap_run_in_one_item() {
    let kernel = "func @kernel(%to: ptr noalias, %from: ptr noalias readonly) {
  for %i: i64 = 0 to 300 step 1 {
    %p = offset %from, %i * 4
    %x = load f32 %p align 4
    %q = offset %to, %i * 4
    store f32 %x, %q align 4
    yield
  }
  return
}";
    assert_eq!(extents(kernel), [(2, 256, 0)]);
    assert_eq!(extents(&kernel.replace(" noalias", "")), [(1, 1, 0)]);
}

/// The sum of floats in the order of the program: nobody may add it up otherwise.
#[test]
fn a_sum_in_order_is_not_shared() {
    let kernel = "func @kernel(%to: ptr noalias, %from: ptr noalias readonly) {
  %sum = for %j: i64 = 0 to 500 step 1 with (%s: f32 = 0.0) {
    %p = offset %from, %j * 4
    %x = load f32 %p align 4
    %t = fadd f32 %s, %x
    yield %t
  }
  store f32 %sum, %to align 4
  return
}";
    assert_eq!(extents(kernel), [(1, 1, 0)]);
    // An item takes four neighbours at a time.
    let in_any_order = kernel.replace("fadd f32", "fadd reassoc f32");
    assert_eq!(extents(&in_any_order), [(1, 128, 128 * 8)]);
}

/// Two nests over the same points; the second reads what the first wrote, so many elements behind.
fn two_nests(behind: i64) -> String {
    format!(
        "func @kernel(%to: ptr noalias, %from: ptr noalias readonly) {{
  for %i: i64 = 0 to 300 step 1 {{
    %p = offset %from, %i * 4
    %x = load f32 %p align 4
    %y = fmul f32 %x, %x
    %q = offset %to, %i * 4
    store f32 %y, %q align 4
    yield
  }}
  for %j: i64 = 0 to 300 step 1 {{
    %at = add i64 %j, {behind}
    %r = offset %to, %at * 4
    %z = load f32 %r align 4
    %w = fadd f32 %z, 1.0
    %second = add i64 %j, 400
    %s = offset %to, %second * 4
    store f32 %w, %s align 4
    yield
  }}
  return
}}"
    )
}

/// What the second nest reads of other items must have been written by the first, so they are two launches.
#[test]
fn a_nest_that_reads_elsewhere_is_a_launch_of_its_own() {
    assert_eq!(extents(&two_nests(1)), [(2, 256, 0), (2, 256, 0)]);
}

/// An item goes on with what it has stored, which it does not read again.
#[test]
fn nests_over_the_same_points_are_one_launch() {
    check(
        &two_nests(0),
        expect![[r#"
            ; kernel_0: 2 groups of 256 items, 0 bytes
            func @kernel_0(%to: ptr noalias align 16, %from: ptr noalias readonly align 16, %status: ptr noalias nocapture) {
              %0 = call @__ferrozyme_group()
              %1 = call @__ferrozyme_item()
              %2 = mul i64 %0, 256
              %3 = add i64 %2, %1
              %4 = icmp ult i64 %3, 300
              if %4 {
                %p = offset %from, %3 * 4
                %x = load f32 %p align 4
                %y = fmul f32 %x, %x
                %q = offset %to, %3 * 4
                store f32 %y, %q align 4
                %w = fadd f32 %y, 1.0
                %second = add i64 %3, 400
                %s = offset %to, %second * 4
                store f32 %w, %s align 4
                yield
              }
              return
            }
        "#]],
    );
}

/// Loops in loops are merged, too; sums in them stay loops of their own.
#[test]
fn deep_nests_are_merged_level_by_level() {
    let nest = |name: &str, from: i64, to: i64, opcode: &str| {
        format!(
            "for %i{name}: i64 = 0 to 30 step 1 {{
    %row{name} = mul i64 %i{name}, 40
    for %j{name}: i64 = 0 to 40 step 1 {{
      %at{name} = add i64 %row{name}, %j{name}
      %sum{name} = for %k{name}: i64 = 0 to 5 step 1 with (%s{name}: f32 = 0.0) {{
        %far{name} = mul i64 %k{name}, 2000
        %element{name} = add i64 %at{name}, %far{name}
        %moved{name} = add i64 %element{name}, {from}
        %p{name} = offset %from, %moved{name} * 4
        %x{name} = load f32 %p{name} align 4
        %t{name} = {opcode} f32 %s{name}, %x{name}
        yield %t{name}
      }}
      %place{name} = add i64 %at{name}, {to}
      %q{name} = offset %to, %place{name} * 4
      store f32 %sum{name}, %q{name} align 4
      yield
    }}
    yield
  }}"
        )
    };
    let kernel = |offset: i64| {
        let (first, second) = (nest("_a", 0, 0, "fadd"), nest("_b", 10, offset, "fsub"));
        format!(
            "func @kernel(%to: ptr noalias, %from: ptr noalias readonly) {{\n  {first}\n  {second}\n  return\n}}"
        )
    };
    // The results are apart: one launch of 1200 items.
    assert_eq!(extents(&kernel(1200)), [(5, 256, 0)]);
    // The second overwrites what the first wrote a row further on.
    assert_eq!(extents(&kernel(40)), [(5, 256, 0), (5, 256, 0)]);
}

/// Neighbouring columns have a group together, so that neighbouring items read neighbouring elements; a column is summed up by the items of its lane.
#[test]
fn a_group_has_several_neighbouring_columns() {
    check(
        "func @kernel(%to: ptr noalias, %from: ptr noalias readonly) {
  for %c: i64 = 0 to 24 step 1 {
    %sum = for %r: i64 = 0 to 64 step 1 with (%s: f32 = 0.0) {
      %row = mul i64 %r, 24
      %at = add i64 %row, %c
      %p = offset %from, %at * 4
      %x = load f32 %p align 4
      %t = fadd reassoc f32 %s, %x
      yield %t
    }
    %q = offset %to, %c * 4
    store f32 %sum, %q align 4
    yield
  }
  return
}",
        expect![[r#"
            ; kernel_0: 6 groups of 64 items, 512 bytes
            func @kernel_0(%to: ptr noalias align 16, %from: ptr noalias readonly align 16, %status: ptr noalias nocapture) {
              %0 = call @__ferrozyme_group()
              %1 = call @__ferrozyme_item()
              %2 = and i64 %1, 63
              %3 = udiv i64 %2, 4
              %4 = urem i64 %2, 4
              %5 = mul i64 %0, 4
              %6 = add i64 %5, %4
              %7 = call @__ferrozyme_local(512)
              %8 = for %r: i64 = %3 to 64 step 16 with (%s: f32 = 0.0) {
                %row = mul i64 %r, 24
                %at = add i64 %row, %6
                %p = offset %from, %at * 4
                %x = load f32 %p align 4
                %t = fadd reassoc f32 %s, %x
                yield %t
              }
              %9 = offset %7, 0
              %10 = offset %9, %2 * 8
              store f32 %8, %10 align 4
              call @__ferrozyme_barrier()
              %11 = icmp ult i64 %3, 8
              if %11 {
                %12 = offset %7, 0
                %13 = offset %12, %2 * 8
                %14 = offset %13, 256
                %15 = load f32 %13 align 4
                %16 = load f32 %14 align 4
                %17 = fadd f32 %15, %16
                store f32 %17, %13 align 4
                yield
              }
              call @__ferrozyme_barrier()
              %18 = icmp ult i64 %3, 4
              if %18 {
                %19 = offset %7, 0
                %20 = offset %19, %2 * 8
                %21 = offset %20, 128
                %22 = load f32 %20 align 4
                %23 = load f32 %21 align 4
                %24 = fadd f32 %22, %23
                store f32 %24, %20 align 4
                yield
              }
              call @__ferrozyme_barrier()
              %25 = icmp ult i64 %3, 2
              if %25 {
                %26 = offset %7, 0
                %27 = offset %26, %2 * 8
                %28 = offset %27, 64
                %29 = load f32 %27 align 4
                %30 = load f32 %28 align 4
                %31 = fadd f32 %29, %30
                store f32 %31, %27 align 4
                yield
              }
              call @__ferrozyme_barrier()
              %32 = icmp ult i64 %3, 1
              if %32 {
                %33 = offset %7, 0
                %34 = offset %33, %2 * 8
                %35 = offset %34, 32
                %36 = load f32 %34 align 4
                %37 = load f32 %35 align 4
                %38 = fadd f32 %36, %37
                store f32 %38, %34 align 4
                yield
              }
              call @__ferrozyme_barrier()
              %39 = offset %7, 0
              %40 = offset %39, %4 * 8
              %41 = load f32 %40 align 4
              call @__ferrozyme_barrier()
              %42 = fadd f32 0.0, %41
              %q = offset %to, %6 * 4
              %43 = icmp eq i64 %3, 0
              if %43 {
                store f32 %42, %q align 4
                yield
              }
              return
            }
        "#]],
    );
}

/// Where an index from memory says is added to: by atomic additions if the device has them for the type.
#[test]
fn sums_into_memory_are_atomic() {
    let kernel = "func @kernel(%to: ptr noalias, %from: ptr noalias readonly) {
  for %i: i64 = 0 to 300 step 1 {
    %p = offset %from, %i * 8
    %index = load i64 %p align 8
    %q = offset %to, %index * 8
    %old = load f32 %q align 4
    %new = fadd f32 %old, 1.0
    store f32 %new, %q align 4
    yield
  }
  return
}";
    assert_eq!(extents(kernel), [(2, 256, 0)]);
    let double = kernel
        .replace("f32", "f64")
        .replace("%q align 4", "%q align 8");
    assert_eq!(extents(&double), [(1, 1, 0)]);
}

/// Tiles are as large as the result fills them, and there are enough of them for all units of the device.
#[test]
fn a_contraction_has_a_group_for_each_tile() {
    let extent_of = |m: usize, n: usize, k: usize| {
        let (row, column) = (4 * k, 4 * n);
        extents(&format!(
            "func @kernel(%to: ptr noalias, %from: ptr noalias readonly) {{
  contract set f32 %to, %from, %from, 1.0 over left {m} ({column}, {row}), right {n} (4, 4), sum {k} (4, {column}) align 4
  return
}}"
        ))
    };
    let bytes = |side: usize| 2 * 16 * (side + 1) * 4;
    assert_eq!(extent_of(1024, 512, 64), [(32, 256, bytes(128))]);
    assert_eq!(extent_of(256, 128, 64), [(8, 256, bytes(64))]);
    assert_eq!(extent_of(70, 130, 64), [(15, 256, bytes(32))]);
    assert_eq!(extent_of(3, 1000, 64), [(63, 256, bytes(16))]);
    assert_eq!(extent_of(1, 1, 5), [(1, 256, bytes(16))]);
}

/// Row by row is no order for a device: each column is a sum of its own, which a group shares.
#[test]
fn sums_of_columns_go_through_columns() {
    let kernel = "func @kernel(%to: ptr noalias, %from: ptr noalias readonly) {
  for %r: i64 = 0 to 16 step 1 {
    %row = mul i64 %r, 700
    for %c: i64 = 0 to 700 step 1 {
      %at = add i64 %row, %c
      %p = offset %from, %at * 4
      %x = load f32 %p align 4
      %q = offset %to, %c * 4
      %old = load f32 %q align 4
      %new = fadd reassoc f32 %old, %x
      store f32 %new, %q align 4
      yield
    }
    yield
  }
  return
}";
    check(
        kernel,
        expect![[r#"
            ; kernel_0: 3 groups of 256 items, 0 bytes
            func @kernel_0(%to: ptr noalias align 16, %from: ptr noalias readonly align 16, %status: ptr noalias nocapture) {
              %0 = call @__ferrozyme_group()
              %1 = call @__ferrozyme_item()
              %2 = mul i64 %0, 256
              %3 = add i64 %2, %1
              %4 = icmp ult i64 %3, 700
              if %4 {
                %q = offset %to, %3 * 4
                %5 = load f32 %q align 4
                %6 = for %c: i64 = 0 to 16 step 1 with (%7: f32 = %5) {
                  %row = mul i64 %c, 700
                  %at = add i64 %row, %3
                  %p = offset %from, %at * 4
                  %x = load f32 %p align 4
                  %new = fadd reassoc f32 %7, %x
                  yield %new
                }
                store f32 %6, %q align 4
                yield
              }
              return
            }
        "#]],
    );
    let tall = kernel.replace("0 to 16", "0 to 5000");
    // Four neighbouring columns are a group's.
    assert_eq!(extents(&tall), [(175, 256, 256 * 8)]);
    let odd = tall.replace("700", "701");
    assert_eq!(extents(&odd), [(701, 256, 256 * 8)]);
    // What a row adds to the next column is not a column's own.
    let skewed = kernel.replace(
        "%q = offset %to, %c * 4",
        "%place = add i64 %r, %c\n      %q = offset %to, %place * 4",
    );
    assert_eq!(extents(&skewed), [(1, 256, 0)]);
}

/// Two neighbours of eight bytes are one access of sixteen; enough items are left.
#[test]
fn an_item_takes_neighbours() {
    check(
        "func @kernel(%to: ptr noalias, %from: ptr noalias readonly) {
  for %i: i64 = 0 to 100 step 1 {
    for %j: i64 = 0 to 50 step 1 {
      %row = mul i64 %i, 50
      %at = add i64 %row, %j
      %p = offset %from, %at * 8
      %x = load f64 %p align 8
      %y = fneg f64 %x
      %q = offset %to, %at * 8
      store f64 %y, %q align 8
      yield
    }
    yield
  }
  return
}",
        expect![[r#"
            ; kernel_0: 10 groups of 256 items, 0 bytes
            func @kernel_0(%to: ptr noalias align 16, %from: ptr noalias readonly align 16, %status: ptr noalias nocapture) {
              %0 = call @__ferrozyme_group()
              %1 = call @__ferrozyme_item()
              %2 = mul i64 %0, 256
              %3 = add i64 %2, %1
              %4 = icmp ult i64 %3, 2500
              if %4 {
                %5 = mul i64 %3, 2
                %6 = trunc_int i64 %5 to i32
                %7 = urem i32 %6, 50
                %8 = udiv i32 %6, 50
                %9 = zext i32 %7 to i64
                %10 = zext i32 %8 to i64
                %11 = add i64 %9, 1
                %row = mul i64 %10, 50
                %12 = mul i64 %10, 50
                %at = add i64 %row, %9
                %13 = add i64 %12, %11
                %p = offset %from, %at * 8
                %14 = offset %from, %13 * 8
                %x = load f64 %p align 8
                %15 = load f64 %14 align 8
                %y = fneg f64 %x
                %16 = fneg f64 %15
                %q = offset %to, %at * 8
                %17 = offset %to, %13 * 8
                store f64 %y, %q align 8
                store f64 %16, %17 align 8
                yield
              }
              return
            }
        "#]],
    );
}

/// Neighbours exchange what they have added up; then only what each team has goes through local memory.
#[test]
fn a_group_adds_up_by_exchanging() {
    let kernel = "func @kernel(%to: ptr noalias, %from: ptr noalias readonly) {
  for %i: i64 = 0 to 3 step 1 {
    %row = mul i64 %i, 63
    %sum = for %j: i64 = 0 to 63 step 1 with (%s: f32 = 0.0) {
      %at = add i64 %row, %j
      %p = offset %from, %at * 4
      %x = load f32 %p align 4
      %t = fadd reassoc f32 %s, %x
      yield %t
    }
    %q = offset %to, %i * 4
    store f32 %sum, %q align 4
    yield
  }
  return
}";
    let exchanging = Abilities {
        exchange: true,
        ..ABILITIES
    };
    check_for(
        kernel,
        &exchanging,
        expect![[r#"
            ; kernel_0: 3 groups of 64 items, 512 bytes
            func @kernel_0(%to: ptr noalias align 16, %from: ptr noalias readonly align 16, %status: ptr noalias nocapture) {
              %0 = call @__ferrozyme_group()
              %1 = call @__ferrozyme_item()
              %2 = and i64 %1, 63
              %3 = call @__ferrozyme_local(512)
              %row = mul i64 %0, 63
              %4 = for %j: i64 = %2 to 63 step 64 with (%s: f32 = 0.0) {
                %at = add i64 %row, %j
                %p = offset %from, %at * 4
                %x = load f32 %p align 4
                %t = fadd reassoc f32 %s, %x
                yield %t
              }
              %5 = call @__ferrozyme_exchange_f32(%4, 16)
              %6 = fadd f32 %4, %5
              %7 = call @__ferrozyme_exchange_f32(%6, 8)
              %8 = fadd f32 %6, %7
              %9 = call @__ferrozyme_exchange_f32(%8, 4)
              %10 = fadd f32 %8, %9
              %11 = call @__ferrozyme_exchange_f32(%10, 2)
              %12 = fadd f32 %10, %11
              %13 = call @__ferrozyme_exchange_f32(%12, 1)
              %14 = fadd f32 %12, %13
              %15 = udiv i64 %2, 32
              %16 = urem i64 %2, 32
              %17 = icmp ult i64 %16, 1
              if %17 {
                %18 = mul i64 %15, 1
                %19 = add i64 %18, %16
                %20 = offset %3, %19 * 4
                %21 = offset %20, 0
                store f32 %14, %21 align 4
                yield
              }
              call @__ferrozyme_barrier()
              %22 = offset %3, 0 * 4
              %23 = offset %22, 0
              %24 = load f32 %23 align 4
              %25 = offset %3, 0 * 4
              %26 = offset %25, 4
              %27 = load f32 %26 align 4
              %28 = fadd f32 %24, %27
              call @__ferrozyme_barrier()
              %29 = fadd f32 0.0, %28
              %q = offset %to, %0 * 4
              %30 = icmp eq i64 %2, 0
              if %30 {
                store f32 %29, %q align 4
                yield
              }
              return
            }
        "#]],
    );
}
