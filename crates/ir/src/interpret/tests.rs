//! Tests of the interpreter as a whole, on programs in text form.

mod faults;
mod opcodes;
mod promises;
mod values;

use super::*;
use crate::parse_module;

/// Parses and verifies a program.
#[track_caller]
fn program(text: &str) -> Module {
    let module = match parse_module(text) {
        Ok(module) => module,
        Err(error) => panic!("{error}"),
    };
    if let Err(errors) = crate::verify_module(&module) {
        panic!("{}", errors[0]);
    }
    module
}

/// Values as people read them.
fn show(results: &[Datum]) -> String {
    let results: Vec<String> = results.iter().map(Datum::to_string).collect();
    results.join(", ")
}

/// What the function `@f` of a program gives, or the fault as people read it.
#[track_caller]
fn run(text: &str, args: &[Datum]) -> String {
    let module = program(text);
    let mut machine = Machine::new(&module);
    machine.set_step_limit(1_000_000);
    match machine.call_named("f", args) {
        Ok(results) => show(&results),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn counted_loops() {
    let text = "
        func @f(%from: i64, %to: i64, %step: i64) -> (f64, i64) {
          %s, %t = for %i: i64 = %from to %to step %step with (%a: f64 = 0.5, %b: i64 = 0) {
            %x = sitofp i64 %i to f64
            %a1 = fadd f64 %a, %x
            %b1 = add i64 %b, 1
            yield %a1, %b1
          }
          return %s, %t
        }";
    let run = |from: i64, to: i64, step: i64| {
        run(text, &[Datum::i64(from), Datum::i64(to), Datum::i64(step)])
    };
    assert_eq!(run(0, 7, 2), "12.5, 4");
    assert_eq!(run(0, 0, 1), "0.5, 0");
    assert_eq!(run(0, -5, 1), "0.5, 0");
    assert_eq!(run(3, 0, -1), "6.5, 3");
    assert_eq!(run(3, 3, -1), "0.5, 0");
    // The counter does not wrap around to start again.
    assert_eq!(run(i64::MAX - 1, i64::MAX, 5), "9.223372036854776e18, 1");
    assert_eq!(run(i64::MIN, i64::MAX, i64::MAX), "0.0, 3");
    assert!(run(0, 1, 0).starts_with("counted loop with step zero"));
}

#[test]
fn counters_of_any_width() {
    let text = "
        func @f(%n: i128, %m: i8) -> (i128, i8) {
          %s = for %i: i128 = 0 to %n step 3 with (%a: i128 = 0) {
            %a1 = add i128 %a, %i
            yield %a1
          }
          %t = for %j: i8 = -128 to %m step 100 with (%b: i8 = 0) {
            %b1 = add i8 %b, 1
            yield %b1
          }
          return %s, %t
        }";
    assert_eq!(run(text, &[Datum::int(128, 10), Datum::i8(127)]), "18, 3");
}

#[test]
fn carried_values_change_all_at_once() {
    let text = "
        func @f(%n: i64) -> (i64, i64) {
          %x, %y = for %i: i64 = 0 to %n step 1 with (%a: i64 = 0, %b: i64 = 1) {
            %c = add i64 %a, %b
            yield %b, %c
          }
          %p, %q = loop with (%u: i64 = %x, %v: i64 = %y) {
            %more = icmp slt i64 %u, %v
            again %more, %v, %u
          }
          return %p, %q
        }";
    assert_eq!(run(text, &[Datum::i64(10)]), "55, 89");
}

#[test]
fn branches() {
    let text = "
        func @f(%k: i8, %c: i1) -> (i64, i64) {
          %a = switch i8 %k -> (i64) {
            case 0 { yield 10 }
            case 1, -1 { yield 11 }
            default { yield 12 }
          }
          %b = if %c -> (i64) { yield 1 } else { yield 2 }
          return %a, %b
        }";
    assert_eq!(run(text, &[Datum::i8(0), Datum::i1(true)]), "10, 1");
    assert_eq!(run(text, &[Datum::i8(-1), Datum::i1(false)]), "11, 2");
    assert_eq!(run(text, &[Datum::i8(5), Datum::i1(false)]), "12, 2");
}

const FACTORIAL: &str = "
    func @f(%n: i64) -> (i64) {
      %stop = icmp sle i64 %n, 1
      %r = if %stop -> (i64) { yield 1 } else {
        %m = sub i64 %n, 1
        %rest = call @f(%m)
        %all = mul i64 %n, %rest
        yield %all
      }
      return %r
    }";

#[test]
fn recursion() {
    assert_eq!(run(FACTORIAL, &[Datum::i64(10)]), "3628800");
}

#[test]
fn deep_recursion_does_not_use_the_stack_of_the_host() {
    let module = program(FACTORIAL);
    let mut machine = Machine::new(&module);
    assert!(machine.call_named("f", &[Datum::i64(10_000)]).is_ok());
    let fault = machine.call_named("f", &[Datum::i64(10_001)]);
    assert_eq!(
        fault.map_err(|fault| fault.kind),
        Err(FaultKind::RecursionLimit { depth: 10_000 })
    );
    machine.set_depth_limit(1_000_000);
    assert!(machine.call_named("f", &[Datum::i64(300_000)]).is_ok());
}

#[test]
fn calls_through_addresses() {
    let text = "
        func @twice(%x: f64) -> (f64) { %y = fadd f64 %x, %x  return %y }
        func @square(%x: f64) -> (f64) { %y = fmul f64 %x, %x  return %y }
        global @table: 16 bytes align 8 const = x\"\" { 0: @twice, 8: @square }
        func @f(%i: i64, %x: f64) -> (f64) {
          %p = offset @table, %i * 8
          %g = load ptr %p align 8
          %y = call_indirect %g(f64 %x) -> (f64)
          return %y
        }";
    assert_eq!(run(text, &[Datum::i64(0), Datum::f64(3.0)]), "6.0");
    assert_eq!(run(text, &[Datum::i64(1), Datum::f64(3.0)]), "9.0");
}

#[test]
fn globals_hold_what_they_say() {
    let text = "
        global @bytes: 12 bytes align 4 = x\"0102030405\"
        global @elsewhere: 8 bytes align 8 external
        func @f() -> (i32, i32, i32) {
          %p = offset @bytes, 4 * 1
          %q = offset @bytes, 8 * 1
          %a = load i32 @bytes align 4
          %b = load i32 %p align 4
          %c = load i32 %q align 4
          store i32 7, @bytes align 4
          return %a, %b, %c
        }";
    assert_eq!(run(text, &[]), "67305985, 5, 0");
    let module = program(text);
    let mut machine = Machine::new(&module);
    let Some(bytes) = module.global_named("bytes") else {
        panic!("there is a global");
    };
    assert!(machine.call_named("f", &[]).is_ok());
    let at = machine.global_address(bytes);
    assert_eq!(
        machine.read_i32s(at, 1),
        Ok(vec![7]),
        "globals keep what was written"
    );
}

#[test]
fn the_host_lends_functions_and_memory() {
    let module = program(
        "
        declare @norm(ptr, i64) -> (f64)
        declare @make(i64) -> (ptr)
        func @f(%p: ptr, %n: i64) -> (f64) {
          %x = call @norm(%p, %n)
          %q = call @make(8)
          free %q family \"host\"
          return %x
        }",
    );
    let mut calls = 0;
    let mut machine = Machine::new(&module);
    machine.define_external(
        "norm",
        Box::new(|memory, args| {
            calls += 1;
            let (Some(at), Some(count)) = (args[0].as_ptr(), args[1].as_i64()) else {
                return Err("norm wants an address and a count".to_owned());
            };
            let values = memory
                .read_f64s(at, count as usize)
                .map_err(|kind| kind.to_string())?;
            let sum: f64 = values.iter().map(|value| value * value).sum();
            Ok(vec![Datum::f64(sum.sqrt())])
        }),
    );
    machine.define_external(
        "make",
        Box::new(|memory, args| {
            let bytes = args[0].as_i64().unwrap_or_default() as u64;
            let made = memory.heap_allocate(bytes, 8, false, "host");
            made.map(|at| vec![Datum::ptr(at)])
                .map_err(|kind| kind.to_string())
        }),
    );
    machine.define_external("unknown", Box::new(|_, _| Ok(vec![])));
    let at = machine.allocate_f64s(&[3.0, 4.0]);
    let args = [Datum::ptr(at), Datum::i64(2)];
    assert_eq!(machine.call_named("f", &args), Ok(vec![Datum::f64(5.0)]));
    assert_eq!(machine.live_heap(), (0, 0));
    let direct = machine.call_named("norm", &args);
    assert_eq!(direct, Ok(vec![Datum::f64(5.0)]));
    drop(machine);
    assert_eq!(calls, 2);
}

#[test]
fn statistics_count_steps_and_memory() {
    let module = program(
        "
        func @f(%n: i64) -> () {
          for %i: i64 = 0 to %n step 1 {
            %p = alloc 100 align 8
            %q = alloc 20 align 8
            free %p
            free %q
            yield
          }
          return
        }",
    );
    let mut machine = Machine::new(&module);
    assert_eq!(machine.call_named("f", &[Datum::i64(3)]), Ok(vec![]));
    let statistics = machine.statistics();
    assert_eq!(
        statistics,
        Statistics {
            steps: 2 + 3 * 5,
            allocations: 6,
            allocated_bytes: 360,
            peak_heap_bytes: 120,
        }
    );
    machine.reset_statistics();
    assert_eq!(machine.statistics(), Statistics::default());
}

#[test]
fn stack_memory_lives_as_long_as_its_call() {
    let text = "
        func @g(%x: f64) -> (f64) {
          %p = stack 8 align 8
          store f64 %x, %p align 8
          %y = load f64 %p align 8
          return %y
        }
        func @f(%n: i64) -> (f64) {
          %p = stack 8 align 8
          store f64 1.5, %p align 8
          %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
            %y = call @g(%a)
            %x = load f64 %p align 8
            %z = fadd f64 %x, %y
            yield %z
          }
          return %s
        }";
    assert_eq!(run(text, &[Datum::i64(4)]), "6.0");
}

#[test]
fn a_long_run_of_operations_and_a_long_loop() {
    let mut text = String::from("func @f(%x: f64) -> (f64) {\n %v0 = fadd f64 %x, 1.0\n");
    for index in 1..100_000 {
        text += &format!(" %v{index} = fadd f64 %v{}, 1.0\n", index - 1);
    }
    text += " return %v99999\n}";
    assert_eq!(run(&text, &[Datum::f64(0.0)]), "100000.0");
}
