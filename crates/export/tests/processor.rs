//! Functions for a level of the processor, and the function that says which level there is.

mod native;

use ferrozyme_export::{ExportOptions, export};
use ferrozyme_ir::interpret::Datum;
use ferrozyme_ir::{FunctionId, ProcessorLevel, parse_module, verify_module};
use ferrozyme_llvm::compile::{OptimisationLevel, optimise};
use ferrozyme_llvm::{Context, Linkage, Module, Place, TargetDescription, TargetMachine};
use native::{Native, agrees};

const CHOICE: &str = "
declare @__ferrozyme_processor_level() -> (i32) memory(none) willreturn inactive
func @level() -> (i32) {
  %level = call @__ferrozyme_processor_level()
  return %level
}
func @wide(%p: ptr, %n: i64) -> (f64) level(v3) {
  %sum = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
    %q = offset inbounds %p, %i * 8
    %a = load f64 %q align 8
    %next = fadd f64 %acc, %a
    yield %next
  }
  return %sum
}
func @wider(%p: ptr, %n: i64) -> (f64) level(v4) {
  %sum = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
    %q = offset inbounds %p, %i * 8
    %a = load f64 %q align 8
    %next = fadd f64 %acc, %a
    yield %next
  }
  return %sum
}
func @choose(%p: ptr, %n: i64) -> (f64) {
  %level = call @__ferrozyme_processor_level()
  %sum = switch i32 %level -> (f64) {
    case 4 {
      %a = call @wider(%p, %n)
      yield %a
    }
    case 3 {
      %b = call @wide(%p, %n)
      yield %b
    }
    default {
      yield -1.0
    }
  }
  return %sum
}";

/// The module above in a module of LLVM that has a function to be like.
fn exported<'c>(context: &'c Context, attributes: &str) -> Module<'c> {
    let module = parse_module(CHOICE).unwrap();
    verify_module(&module).unwrap();
    let machine = TargetMachine::new(&TargetDescription::default()).unwrap();
    let text = format!("define void @like() {attributes} {{ ret void }}");
    let into = context.parse_text("test", &text).unwrap();
    into.set_triple(machine.triple());
    into.set_data_layout(&machine.data_layout());
    let bodies = module
        .functions
        .iter()
        .filter(|(_, one)| one.body.is_some());
    let functions: Vec<FunctionId> = bodies.map(|(id, _)| id).collect();
    let options = ExportOptions {
        like: into.function("like"),
        ..ExportOptions::default()
    };
    for function in export(&module, &functions, into, &options).unwrap() {
        function.set_linkage(Linkage::External);
    }
    into.verify().unwrap();
    into
}

/// What the standard library says of the processor.
fn expected_level() -> i32 {
    let second = is_x86_feature_detected!("sse4.2")
        && is_x86_feature_detected!("ssse3")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("cmpxchg16b");
    let third = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("movbe");
    let fourth = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (second, third, fourth) {
        (true, true, true) => 4,
        (true, true, false) => 3,
        (true, false, _) => 2,
        (false, ..) => 0,
    }
}

#[test]
fn the_processor_is_asked() {
    let module = parse_module(CHOICE).unwrap();
    let level = module.function_named("level").unwrap();
    for optimisation in [OptimisationLevel::O0, OptimisationLevel::O3] {
        let native = Native::new(&module, &[level], optimisation).unwrap();
        for _ in 0..2 {
            let answer = native.call(level, &[]).unwrap();
            assert_eq!(answer, [Datum::i32(expected_level())]);
        }
    }
}

#[test]
fn the_function_for_the_level_is_called() {
    let module = parse_module(CHOICE).unwrap();
    let choose = module.function_named("choose").unwrap();
    let native = Native::new(&module, &[choose], OptimisationLevel::O3).unwrap();
    let numbers: Vec<f64> = (0..100).map(f64::from).collect();
    let address = Datum::ptr(ferrozyme_ir::interpret::Pointer(numbers.as_ptr() as u64));
    let answer = native.call(choose, &[address, Datum::i64(100)]).unwrap();
    let expected = if expected_level() >= 3 { 4950.0 } else { -1.0 };
    assert!(agrees(&answer[0], &Datum::f64(expected), 0.0), "{answer:?}");
}

#[test]
fn a_limit_is_kept() {
    let module = parse_module(CHOICE).unwrap();
    let level = module.function_named("level").unwrap();
    for limit in [0, 2, 3] {
        let options = ExportOptions {
            highest_level: Some(limit),
            ..ExportOptions::default()
        };
        let native = Native::with(&module, &[level], OptimisationLevel::O2, &options).unwrap();
        let expected = expected_level().min(limit as i32);
        assert_eq!(native.call(level, &[]).unwrap(), [Datum::i32(expected)]);
    }
}

#[test]
fn levels_are_attributes_that_keep_functions_apart() {
    let context = Context::new().unwrap();
    let module = exported(
        &context,
        r#""target-cpu"="x86-64" "target-features"="-avx512cd""#,
    );
    let attribute = |function: &str, key: &str| {
        let function = module.function(function).unwrap();
        function.text_attribute(Place::Function, key)
    };
    assert_eq!(attribute("choose", "target-cpu").unwrap(), "x86-64");
    assert_eq!(attribute("wide", "target-cpu").unwrap(), "x86-64-v3");
    assert_eq!(attribute("wide", "prefer-vector-width"), None);
    assert_eq!(attribute("wider", "target-cpu").unwrap(), "x86-64-v4");
    assert_eq!(attribute("wider", "target-features").unwrap(), "-avx512cd");
    assert_eq!(attribute("wider", "prefer-vector-width").unwrap(), "512");
    let machine = TargetMachine::new(&TargetDescription::default()).unwrap();
    let optimised = optimise(module, OptimisationLevel::O3, &machine).unwrap();
    let text = optimised.to_string();
    assert!(text.contains("<8 x double>"), "{text}");
    assert!(text.contains("call double @wide("), "{text}");
    assert!(text.contains("call double @wider("), "{text}");
}

#[test]
fn a_processor_that_the_user_names_is_kept() {
    let context = Context::new().unwrap();
    let module = exported(
        &context,
        r#""target-cpu"="haswell" "target-features"="+sse4a""#,
    );
    let attribute = |function: &str, key: &str| {
        let function = module.function(function).unwrap();
        function.text_attribute(Place::Function, key)
    };
    assert_eq!(attribute("wider", "target-cpu").unwrap(), "haswell");
    let features = attribute("wider", "target-features").unwrap();
    assert!(features.contains("+avx512vl"), "{features}");
    assert!(features.ends_with(",+sse4a"), "{features}");
}

#[test]
fn every_level_is_one_of_llvm() {
    // LLVM says on its error stream what it does not know, and compiles for less; the instruction shows that it is known.
    let machine = TargetMachine::new(&TargetDescription::default()).unwrap();
    let context = Context::new().unwrap();
    let named = exported(&context, r#""target-cpu"="znver1""#);
    let plain = exported(&context, "");
    for module in [named, plain] {
        let module = optimise(module, OptimisationLevel::O3, &machine).unwrap();
        let assembly = machine.emit_assembly(module).unwrap();
        assert!(
            assembly.contains("%ymm") && assembly.contains("%zmm"),
            "{assembly}"
        );
    }
    assert_eq!(ProcessorLevel::ALL.map(ProcessorLevel::number), [2, 3, 4]);
}
