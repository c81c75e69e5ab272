//! Tests of the interpreter as a whole, on programs in text form.

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

/// What the function `@f` of a program gives, or the fault as people read it.
#[track_caller]
fn run(text: &str, args: &[Datum]) -> String {
    let module = program(text);
    let mut machine = Machine::new(&module);
    machine.set_step_limit(1_000_000);
    match machine.call_named("f", args) {
        Ok(results) => {
            let results: Vec<String> = results.iter().map(Datum::to_string).collect();
            results.join(", ")
        }
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn loops_and_branches() {
    let text = "
        func @f(%n: i64) -> (f64, i64) {
          %s, %t = for %i: i64 = 0 to %n step 2 with (%a: f64 = 0.5, %b: i64 = 0) {
            %x = sitofp i64 %i to f64
            %a1 = fadd f64 %a, %x
            %b1 = add i64 %b, 1
            yield %a1, %b1
          }
          return %s, %t
        }";
    assert_eq!(run(text, &[Datum::i64(7)]), "12.5, 4");
    assert_eq!(run(text, &[Datum::i64(0)]), "0.5, 0");
    assert_eq!(run(text, &[Datum::i64(-5)]), "0.5, 0");
}
