//! Loops come out in a form that LLVM vectorises, and sums are reordered only where that is allowed.

use ferrozyme_export::{ExportOptions, export};
use ferrozyme_ir::{FunctionId, parse_module, verify_module};
use ferrozyme_llvm::compile::{OptimisationLevel, optimise};
use ferrozyme_llvm::{Context, Linkage, TargetDescription, TargetMachine};

/// The LLVM IR of a module, as exported and optimised.
fn llvm_of(text: &str, strict: bool) -> (String, String) {
    let module = parse_module(text).unwrap();
    verify_module(&module).unwrap();
    let context = Context::new().unwrap();
    let machine = TargetMachine::new(&TargetDescription::default()).unwrap();
    let into = context.create_module("test");
    into.set_triple(machine.triple());
    into.set_data_layout(&machine.data_layout());
    let functions: Vec<FunctionId> = module.functions.keys().collect();
    for function in export(
        &module,
        &functions,
        into,
        &ExportOptions {
            strict,
            ..ExportOptions::default()
        },
    )
    .unwrap()
    {
        function.set_linkage(Linkage::External);
    }
    into.verify().unwrap();
    let exported = into.to_string();
    let into = optimise(into, OptimisationLevel::O3, &machine).unwrap();
    (exported, into.to_string())
}

fn is_vectorised(optimised: &str) -> bool {
    optimised.contains("x double>")
}

const DOT: &str = "
func @dot(%x: ptr noalias readonly, %y: ptr noalias readonly, %n: i64) -> (f64) {
  %sum = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
    %px = offset inbounds %x, %i * 8
    %a = load f64 %px align 8
    %py = offset inbounds %y, %i * 8
    %b = load f64 %py align 8
    %ab = fmul f64 %a, %b
    %next = fadd f64 %acc, %ab
    yield %next
  }
  return %sum
}";

#[test]
fn a_sum_is_vectorised() {
    let (exported, optimised) = llvm_of(DOT, false);
    assert!(
        exported.contains("fadd reassoc contract double"),
        "{exported}"
    );
    assert!(is_vectorised(&optimised), "{optimised}");
}

#[test]
fn strictly_a_sum_keeps_its_order() {
    let (exported, _) = llvm_of(DOT, true);
    assert!(!exported.contains("reassoc"), "{exported}");
}

#[test]
fn a_sum_that_passes_through_loops_and_branches_is_one() {
    let (exported, _) = llvm_of(
        "
func @f(%x: ptr noalias readonly, %n: i64) -> (f64) {
  %sum = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
    %row = offset inbounds %x, %i * 800
    %inner = for %j: i64 = 0 to 100 step 1 with (%part: f64 = %acc) {
      %p = offset inbounds %row, %j * 8
      %a = load f64 %p align 8
      %positive = fcmp ogt f64 %a, 0.0
      %next = if %positive -> (f64) {
        %more = fadd f64 %part, %a
        yield %more
      } else {
        yield %part
      }
      yield %next
    }
    yield %inner
  }
  return %sum
}",
        false,
    );
    assert!(
        exported.contains("fadd reassoc contract double"),
        "{exported}"
    );
}

#[test]
fn compensated_summation_is_left_alone() {
    let (exported, _) = llvm_of(
        "
func @kahan(%x: ptr noalias readonly, %n: i64) -> (f64) {
  %sum, %lost = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0, %c: f64 = 0.0) {
    %p = offset inbounds %x, %i * 8
    %a = load f64 %p align 8
    %y = fsub f64 %a, %c
    %t = fadd f64 %acc, %y
    %big = fsub f64 %t, %acc
    %rest = fsub f64 %big, %y
    yield %t, %rest
  }
  return %sum
}",
        false,
    );
    assert!(!exported.contains("reassoc"), "{exported}");
}

/// A gradient's inner loop: two arrays read, one added to.
#[test]
fn additions_in_memory_are_vectorised() {
    let (_, optimised) = llvm_of(
        "
func @axpy(%y: ptr noalias, %x: ptr noalias readonly, %a: f64, %n: i64) {
  for %i: i64 = 0 to %n step 1 {
    %px = offset inbounds %x, %i * 8
    %py = offset inbounds %y, %i * 8
    %u = load f64 %px align 8
    %v = load f64 %py align 8
    %au = fmul f64 %a, %u
    %w = fadd f64 %v, %au
    store f64 %w, %py align 8
    yield
  }
  return
}",
        false,
    );
    assert!(is_vectorised(&optimised), "{optimised}");
}

/// Reverse sweeps count down.
#[test]
fn loops_that_count_down_are_vectorised() {
    let (_, optimised) = llvm_of(
        "
func @scale(%y: ptr noalias, %x: ptr noalias readonly, %n: i64) {
  for %i: i64 = %n to 0 step -1 {
    %px = offset inbounds %x, %i * 8
    %py = offset inbounds %y, %i * 8
    %u = load f64 %px align 8
    %v = fmul f64 %u, 3.0
    store f64 %v, %py align 8
    yield
  }
  return
}",
        false,
    );
    assert!(is_vectorised(&optimised), "{optimised}");
}

/// C's library would keep the loop from being vectorised; strictly, it is called.
#[test]
fn loops_with_mathematical_functions_are_vectorised() {
    for function in ["exp", "tanh", "log"] {
        let text = format!(
            "
func @f(%y: ptr noalias, %x: ptr noalias readonly, %n: i64) {{
  for %i: i64 = 0 to %n step 1 {{
    %px = offset inbounds %x, %i * 8
    %py = offset inbounds %y, %i * 8
    %u = load f64 %px align 8
    %v = {function} f64 %u
    store f64 %v, %py align 8
    yield
  }}
  return
}}"
        );
        let (_, optimised) = llvm_of(&text, false);
        assert!(is_vectorised(&optimised), "{function}:\n{optimised}");
        let (exported, _) = llvm_of(&text, true);
        assert!(
            exported.contains(&format!("@llvm.{function}.f64")),
            "{exported}"
        );
    }
}

/// Rows of two matrices that lie between each other in memory: whether they overlap is asked before each inner loop, not once for all of them, where the answer would be yes.
#[test]
fn rows_that_lie_between_each_other_are_told_apart() {
    let (_, optimised) = llvm_of(
        "
func @f(%x: ptr noalias, %n: i64, %m: i64, %q: i64) {
  %row = offset inbounds %x, %q * 8
  for %i: i64 = 0 to %m step 1 {
    %start = mul i64 %i, 3000
    %other = offset inbounds %x, %start * 8
    for %j: i64 = 0 to %n step 1 {
      %p = offset inbounds %row, %j * 8
      %r = offset inbounds %other, %j * 8
      %a = load f64 %p align 8
      %b = load f64 %r align 8
      %c = fmul f64 %a, %b
      store f64 %c, %p align 8
      store f64 %c, %r align 8
      yield
    }
    yield
  }
  return
}",
        false,
    );
    assert!(optimised.contains("vector.memcheck:"), "{optimised}");
}

const TWO_PLACES: &str = "
func @f(%x: ptr noalias readonly, %w: ptr noalias, %n: i64 range 0..=1000000) {
  for %i: i64 = 0 to %n step 1 {
    %px = offset inbounds %x, %i * 8
    %a = load f64 %px align 8
    %first = offset inbounds %w, %i * 8
    %b = load f64 %first align 8
    %b1 = fadd f64 %b, %a
    store f64 %b1, %first align 8
    %other = add nsw nuw i64 %n, %i
    %second = offset inbounds %w, %other * 8
    %c = load f64 %second align 8
    %c1 = fmul f64 %c, %a
    store f64 %c1, %second align 8
    yield
  }
  return
}";

#[test]
fn iterations_that_do_not_meet_are_not_checked_when_they_run() {
    let (exported, optimised) = llvm_of(TWO_PLACES, false);
    assert!(
        exported.contains("llvm.loop.parallel_accesses"),
        "{exported}"
    );
    assert!(is_vectorised(&optimised), "{optimised}");
    assert!(!optimised.contains("memcheck"), "{optimised}");
}

#[test]
fn iterations_that_may_meet_are_not_said_to_be_independent() {
    // The second place is one that a later iteration reads.
    let nearer = TWO_PLACES.replace("add nsw nuw i64 %n, %i", "add nsw nuw i64 1, %i");
    assert_ne!(nearer, TWO_PLACES);
    // What is read behind a branch may not be there otherwise.
    let branch = "
func @f(%x: ptr noalias readonly, %w: ptr noalias, %n: i64) {
  for %i: i64 = 0 to %n step 1 {
    %p = offset inbounds %w, %i * 8
    %a = load f64 %p align 8
    %positive = fcmp ogt f64 %a, 0.0
    if %positive {
      %px = offset inbounds %x, %i * 8
      %b = load f64 %px align 8
      store f64 %b, %p align 8
      yield
    } else {
      yield
    }
    yield
  }
  return
}";
    for text in [nearer.as_str(), branch] {
        let (exported, _) = llvm_of(text, false);
        assert!(!exported.contains("parallel_accesses"), "{exported}");
    }
}

#[test]
fn a_tile_in_registers_is_not_unrolled() {
    let tile = |count: usize| {
        let names = |prefix: &str| -> String {
            let all: Vec<String> = (0..count).map(|index| format!("{prefix}{index}")).collect();
            all.join(", ")
        };
        let carried: Vec<String> = (0..count)
            .map(|index| format!("%s{index}: <4 x f32> = %z"))
            .collect();
        let sums: String = (0..count)
            .map(|index| format!("    %n{index} = fma <4 x f32> %v, %v, %s{index}\n"))
            .collect();
        let stores: String = (0..count)
            .map(|index| format!("  %q{index} = offset %y, {index} * 16\n  store <4 x f32> %r{index}, %q{index} align 4\n"))
            .collect();
        format!(
            "
func @tile(%x: ptr, %y: ptr, %n: i64, %z: <4 x f32>) {{
  {} = for %i: i64 = 0 to %n step 1 with ({}) {{
    %p = offset inbounds %x, %i * 16
    %v = load <4 x f32> %p align 4
{sums}    yield {}
  }}
{stores}  return
}}",
            names("%r"),
            carried.join(", "),
            names("%n")
        )
    };
    let (exported, _) = llvm_of(&tile(8), false);
    assert!(exported.contains("llvm.loop.unroll.disable"), "{exported}");
    let (exported, _) = llvm_of(&tile(2), false);
    assert!(!exported.contains("llvm.loop"), "{exported}");
}
