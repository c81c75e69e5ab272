//! What the tests of passes share: text in, text out, and the same results before and after.

use crate::Pass;
use expect_test::Expect;
use ferrozyme_ir::interpret::{Datum, Fault, Machine};
use ferrozyme_ir::{FunctionId, Module, parse_module, print_module, verify_module};

/// Runs a pass on each function of a module and compares the text.
pub(crate) fn check(pass: Pass, text: &str, expected: Expect) {
    let module = transformed(pass, text);
    expected.assert_eq(&print_module(&module));
}

/// Checks that a pass leaves a module alone, and says so.
pub(crate) fn check_unchanged(pass: Pass, text: &str) {
    let mut module = parse(text);
    let before = print_module(&module);
    let ids: Vec<FunctionId> = module.functions.keys().collect();
    let changes: usize = ids.into_iter().map(|id| pass(&mut module, id)).sum();
    assert_eq!(before, print_module(&module));
    assert_eq!(changes, 0);
}

/// Checks that `@main` gives the same for these arguments before and after a pass.
pub(crate) fn check_same_results(pass: Pass, text: &str, inputs: &[&[Datum]]) {
    let before = parse(text);
    let after = transformed(pass, text);
    for &arguments in inputs {
        assert_eq!(
            run(&before, arguments).expect("the program runs"),
            run(&after, arguments).expect("the changed program runs"),
            "for {arguments:?}, after:\n{}",
            print_module(&after)
        );
    }
}

/// As [`check_same_results`], where the program may also stop, with the same message.
pub(crate) fn check_same_outcomes(pass: Pass, text: &str, inputs: &[&[Datum]]) {
    let before = parse(text);
    let after = transformed(pass, text);
    assert_ne!(
        print_module(&before),
        print_module(&after),
        "the pass does something"
    );
    for &arguments in inputs {
        assert_eq!(
            run(&before, arguments).map_err(|fault| fault.kind),
            run(&after, arguments).map_err(|fault| fault.kind),
            "for {arguments:?}, after:\n{}",
            print_module(&after)
        );
    }
}

fn run(module: &Module, arguments: &[Datum]) -> Result<Vec<Datum>, Fault> {
    let main = module.function_named("main").expect("there is @main");
    let mut machine = Machine::new(module);
    machine.set_step_limit(1_000_000);
    machine.call(main, arguments)
}

fn transformed(pass: Pass, text: &str) -> Module {
    let mut module = parse(text);
    let ids: Vec<FunctionId> = module.functions.keys().collect();
    for id in ids {
        pass(&mut module, id);
    }
    let printed = print_module(&module);
    if let Err(errors) = verify_module(&module) {
        panic!("the result does not verify: {errors:?}\n{printed}");
    }
    let again = parse_module(&printed)
        .unwrap_or_else(|error| panic!("the result does not parse: {error}\n{printed}"));
    assert_eq!(printed, print_module(&again));
    module
}

fn parse(text: &str) -> Module {
    let module = parse_module(text).unwrap_or_else(|error| panic!("{error}"));
    if let Err(errors) = verify_module(&module) {
        panic!("the input does not verify: {errors:?}");
    }
    module
}
