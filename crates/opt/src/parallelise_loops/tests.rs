//! Loops on several threads: what qualifies, and the same results on any number of threads.

use super::{Obstacle, ParallelOptions, Strategy, parallelise_loops_with};
use ferrozyme_ir::interpret::{Datum, Machine};
use ferrozyme_ir::{FunctionId, Module, parse_module, print_module, verify_module};

/// What becomes of the loops of `@main`, after checking that it computes the same on any number of threads. It takes a number and gives floats that are exact.
fn check(text: &str, sizes: &[i64]) -> Vec<Result<super::Choice, Obstacle>> {
    let before = parse_module(text).unwrap_or_else(|error| panic!("{error}"));
    if let Err(errors) = verify_module(&before) {
        panic!("the input does not verify: {errors:?}");
    }
    let mut after = before.clone();
    let options = ParallelOptions {
        least_work: 0,
        ..ParallelOptions::default()
    };
    let mut outcomes = Vec::new();
    let ids: Vec<FunctionId> = after.functions.keys().collect();
    for id in ids {
        let found = parallelise_loops_with(&mut after, id, &options);
        outcomes.extend(found.into_iter().map(|outcome| outcome.choice));
    }
    let printed = print_module(&after);
    if let Err(errors) = verify_module(&after) {
        panic!("the result does not verify: {errors:?}\n{printed}");
    }
    for &size in sizes {
        let expected = run(&before, size, 1);
        for threads in [1, 2, 3, 8] {
            let got = run(&after, size, threads);
            assert_eq!(expected, got, "{size} on {threads} threads\n{printed}");
        }
    }
    outcomes
}

fn run(module: &Module, size: i64, threads: usize) -> Vec<Datum> {
    let main = module.function_named("main").expect("there is @main");
    let mut machine = Machine::new(module);
    machine.set_threads(threads);
    let results = machine.call(main, &[Datum::i64(size)]);
    results.unwrap_or_else(|fault| panic!("{fault:?}\n{}", print_module(module)))
}

/// A program with two arrays of `%n` elements, zeros and the numbers from 0 on, that gives a weighted sum of both afterwards.
fn program(loops: &str) -> String {
    program_with("", loops)
}

fn program_with(functions: &str, loops: &str) -> String {
    format!(
        "func @main(%n: i64 range 0..=1000) -> (f64) {{
           %room = add i64 %n, 8
           %bytes = mul i64 %room, 8
           %x = alloc %bytes align 8
           %y = alloc %bytes align 8 zeroed
           for %k: i64 = 0 to %room step 1 {{
             %number = sitofp i64 %k to f64
             %at = offset %x, %k * 8
             store f64 %number, %at align 8
             yield
           }}
           call @work(%x, %y, %n)
           %sum = for %k1: i64 = 0 to %room step 1 with (%so_far: f64 = 0.0) {{
             %weight = sitofp i64 %k1 to f64
             %at1 = offset %x, %k1 * 8
             %at2 = offset %y, %k1 * 8
             %one = load f64 %at1 align 8
             %two = load f64 %at2 align 8
             %three = fmul f64 %two, 3.0
             %four = fadd f64 %one, %three
             %five = fmul f64 %four, %weight
             %next = fadd f64 %so_far, %five
             yield %next
           }}
           free %x
           free %y
           return %sum
         }}
         {functions}
         func @work(%x: ptr noalias, %y: ptr noalias, %n: i64 range 0..=1000) {{
           {loops}
           return
         }}"
    )
}

const SIZES: &[i64] = &[0, 1, 2, 3, 7, 8, 9, 40, 101];

fn strategies(outcome: &Result<super::Choice, Obstacle>) -> Vec<Strategy> {
    let choice = outcome.as_ref().expect("the loop qualifies");
    choice
        .shared
        .iter()
        .map(|(_, strategy)| *strategy)
        .collect()
}

#[test]
fn each_iteration_has_its_own_place() {
    let text = program(
        "for parallel %i: i64 = 0 to %n step 1 {
           %p = offset %x, %i * 8
           %q = offset %y, %i * 8
           %a = load f64 %p align 8
           %b = fmul f64 %a, %a
           store f64 %b, %q align 8
           yield
         }",
    );
    assert_eq!(strategies(&check(&text, SIZES)[0]), []);
}

#[test]
fn counters_of_any_step_and_type() {
    for (ty, from, to, step) in [
        ("i64", "%n", "0", "-1"),
        ("i64", "0", "%n", "3"),
        ("i64", "%n", "-1", "-2"),
        ("i8", "0", "127", "2"),
        ("i8", "100", "-128", "-7"),
    ] {
        let wide = match ty {
            "i64" => "%w = add i64 %i, 0".to_owned(),
            _ => format!("%w = sext {ty} %i to i64"),
        };
        let text = program(&format!(
            "for parallel %i: {ty} = {from} to {to} step {step} {{
               {wide}
               %place = and i64 %w, 7
               %a = sitofp i64 %w to f64
               %q = offset %y, %place * 8
               %old = load f64 %q align 8
               %new = fadd f64 %old, %a
               store f64 %new, %q align 8
               yield
             }}"
        ));
        check(&text, &[0, 5, 100]);
    }
}

#[test]
fn carried_sums_are_sums_of_blocks() {
    let text = program(
        "%s, %any = for parallel %i: i64 = 0 to %n step 1 with (%a: f64 = 5.0, %was: i1 = false) {
           %p = offset %x, %i * 8
           %b = load f64 %p align 8
           %c = fadd f64 %a, %b
           %d = fsub f64 %c, 1.0
           %is = fcmp ogt f64 %b, 20.0
           %now = or i1 %was, %is
           yield %d, %now
         }
         %e = select f64 %any, %s, 1.0
         store f64 %e, %y align 8",
    );
    let outcomes = check(&text, SIZES);
    assert_eq!(outcomes[0].as_ref().map(|choice| choice.sums), Ok(2));
}

#[test]
fn neighbours_add_to_the_same_place() {
    let text = program(
        "for parallel %i: i64 = 0 to %n step 1 {
           %p = offset %x, %i * 8
           %a = load f64 %p align 8
           %q = offset %y, %i * 8
           %q1 = offset %q, 16
           %old = load f64 %q align 8
           %new = fadd f64 %old, %a
           store f64 %new, %q align 8
           %old1 = load f64 %q1 align 8
           %new1 = fsub f64 %old1, %a
           store f64 %new1, %q1 align 8
           yield
         }",
    );
    assert_eq!(
        strategies(&check(&text, SIZES)[0]),
        [Strategy::Neighbours(2)]
    );
}

#[test]
fn rows_of_a_matrix_are_neighbours() {
    let text = program(
        "%width = udiv i64 %n, 12
         for parallel %i: i64 = 0 to 10 step 1 {
           for %j: i64 = 0 to %width step 1 {
             %row = mul i64 %i, %width
             %at = add i64 %row, %j
             %below = add i64 %at, %width
             %p = offset %x, %at * 8
             %q = offset %y, %at * 8
             %r = offset %y, %below * 8
             %a = load f64 %p align 8
             %old = load f64 %q align 8
             %new = fadd f64 %old, %a
             store f64 %new, %q align 8
             %old1 = load f64 %r align 8
             %new1 = fsub f64 %old1, %a
             store f64 %new1, %r align 8
             yield
           }
           yield
         }",
    );
    let outcomes = check(&text, &[0, 11, 12, 40, 200]);
    assert_eq!(strategies(&outcomes[0]), [Strategy::Neighbours(1)]);
}

/// Nothing moves where the inner loop, whose length says how far, does not run.
#[test]
fn what_another_loop_says_does_not_hold_where_it_does_not_run() {
    let text = program(
        "%width = udiv i64 %n, 12
         for parallel %i: i64 = 0 to 8 step 1 {
           %row = mul i64 %i, %width
           %q = offset %y, %row * 8
           for %j: i64 = 0 to %width step 1 {
             %r = offset %q, %j * 8
             %old = load f64 %r align 8
             %new = fadd f64 %old, 1.0
             store f64 %new, %r align 8
             yield
           }
           %p = offset %x, %i * 8
           %a = load f64 %p align 8
           %old1 = load f64 %q align 8
           %new1 = fadd f64 %old1, %a
           store f64 %new1, %q align 8
           yield
         }",
    );
    let outcomes = check(&text, &[0, 11, 12, 40, 200]);
    assert!(!matches!(
        strategies(&outcomes[0])[..],
        [Strategy::Neighbours(_)]
    ));
}

#[test]
fn what_all_add_to_has_copies() {
    let text = program(
        "for parallel %i: i64 = 0 to %n step 1 {
           %p = offset %x, %i * 8
           %a = load f64 %p align 8
           for %j: i64 = 1 to %n step 1 {
             %q = offset %y, %j * 8
             %old = load f64 %q align 8
             %new = fadd f64 %old, %a
             store f64 %new, %q align 8
             yield
           }
           %first = load f64 %y align 8
           %more = fadd f64 %first, %a
           store f64 %more, %y align 8
           yield
         }",
    );
    assert_eq!(strategies(&check(&text, SIZES)[0]), [Strategy::Copies]);
}

#[test]
fn what_is_added_somewhere_is_added_atomically() {
    let text = program(
        "for parallel %i: i64 = 0 to %n step 1 {
           %p = offset %x, %i * 8
           %a = load f64 %p align 8
           %index = fptosi f64 %a to i64
           %place = lshr i64 %index, 1
           %hidden = xor i64 %place, 1
           %q = offset %y, %hidden * 8
           %old = load f64 %q align 8
           %new = fadd f64 %old, %a
           store f64 %new, %q align 8
           yield
         }",
    );
    assert_eq!(strategies(&check(&text, SIZES)[0]), [Strategy::Atomic]);
}

#[test]
fn memory_that_may_overlap_is_tested() {
    let work = "func @shift(%a: ptr, %b: ptr, %n: i64) {
           for parallel %i: i64 = 0 to %n step 1 {
             %p = offset %a, %i * 8
             %q = offset %b, %i * 8
             %v = load f64 %p align 8
             %w = fadd f64 %v, 1.0
             store f64 %w, %q align 8
             yield
           }
           return
         }";
    for calls in [
        "call @shift(%x, %y, %n)",
        "%later = offset %x, 8
         call @shift(%x, %later, %n)",
        "%later = offset %x, 8
         call @shift(%later, %x, %n)",
    ] {
        let outcomes = check(&program_with(work, calls), SIZES);
        assert_eq!(outcomes[0].as_ref().map(|choice| choice.tests), Ok(1));
    }
}

#[test]
fn what_depends_on_other_iterations_stays() {
    let chain = program(
        "for parallel %i: i64 = 0 to %n step 1 {
           %p = offset %x, %i * 8
           %q = offset %p, 8
           %a = load f64 %p align 8
           %b = fadd f64 %a, 1.0
           store f64 %b, %q align 8
           yield
         }",
    );
    assert!(matches!(
        check(&chain, SIZES)[0],
        Err(Obstacle::Conflict(..))
    ));
    let carried = program(
        "%s = for parallel %i: i64 = 0 to %n step 1 with (%a: f64 = 1.0) {
           %q = offset %y, %i * 8
           store f64 %a, %q align 8
           %b = fadd f64 %a, 1.0
           yield %b
         }",
    );
    assert_eq!(check(&carried, SIZES)[0], Err(Obstacle::Carried));
    // What is read in between makes it no sum.
    let used = program(
        "for parallel %i: i64 = 0 to %n step 1 {
           %old = load f64 %y align 8
           %p = offset %x, %i * 8
           store f64 %old, %p align 8
           %new = fadd f64 %old, 1.0
           store f64 %new, %y align 8
           yield
         }",
    );
    assert!(matches!(
        check(&used, SIZES)[0],
        Err(Obstacle::Conflict(..))
    ));
}

#[test]
fn what_is_overwritten_in_between_is_no_sum() {
    let text = program(
        "for parallel %i: i64 = 0 to %n step 1 {
           %half = lshr i64 %i, 1
           %p = offset %x, %i * 8
           %a = load f64 %p align 8
           %index = fptosi f64 %a to i64
           %other = xor i64 %index, %half
           %place = urem i64 %other, 8
           %q = offset %y, %place * 8
           %r = offset %y, %half * 8
           %one = load f64 %q align 8
           %two = load f64 %r align 8
           %more = fadd f64 %one, 1.0
           store f64 %more, %q align 8
           %much = fadd f64 %two, 2.0
           store f64 %much, %r align 8
           yield
         }",
    );
    assert!(check(&text, SIZES)[0].is_err());
}

#[test]
fn memory_of_an_iteration_is_its_own() {
    let text = program(
        "for parallel %i: i64 = 0 to %n step 1 {
           %t = stack 16 align 8
           %u = alloc 16 align 8
           %p = offset %x, %i * 8
           %a = load f64 %p align 8
           store f64 %a, %t align 8
           %v = offset %u, 8
           store f64 %a, %v align 8
           %b = load f64 %t align 8
           %c = load f64 %v align 8
           %d = fadd f64 %b, %c
           store f64 %d, %p align 8
           free %u
           yield
         }",
    );
    assert_eq!(strategies(&check(&text, SIZES)[0]), []);
}

#[test]
fn memory_of_known_size_has_copies() {
    let text = program(
        "%t = stack 32 align 8
         fill %t, 0, 32 align 8
         for parallel %i: i64 = 0 to %n step 1 {
           %p = offset %x, %i * 8
           %a = load f64 %p align 8
           %index = fptosi f64 %a to i64
           %place = and i64 %index, 3
           %q = offset %t, %place * 8
           %old = load f64 %q align 8
           %new = fadd f64 %old, %a
           store f64 %new, %q align 8
           yield
         }
         copy %y, %t, 32 align 8",
    );
    assert_eq!(strategies(&check(&text, SIZES)[0]), [Strategy::Copies]);
}

/// Globals have one address for all blocks, and so do their copies need one.
#[test]
fn globals_have_copies() {
    let text = program(
        "store f64 1.0, @total align 8
         for parallel %i: i64 = 0 to %n step 1 {
           %p = offset %x, %i * 8
           %a = load f64 %p align 8
           %old = load f64 @total align 8
           %new = fadd f64 %old, %a
           store f64 %new, @total align 8
           yield
         }
         %t = load f64 @total align 8
         store f64 %t, %y align 8",
    );
    let text = format!("global @total: 8 bytes align 8 = zero\n{text}");
    assert_eq!(strategies(&check(&text, SIZES)[0]), [Strategy::Copies]);
}

#[test]
fn two_arrays_in_one_object() {
    let text = program(
        "%half = lshr i64 %n, 1
         for parallel %i: i64 = 0 to %half step 1 {
           %p = offset %x, %i * 8
           %a = load f64 %p align 8
           %other = add i64 %i, %half
           %q = offset %x, %other * 8
           %b = fmul f64 %a, 2.0
           store f64 %b, %q align 8
           yield
         }",
    );
    let outcomes = check(&text, SIZES);
    assert!(outcomes[0].as_ref().is_ok_and(|choice| choice.tests <= 1));
}

#[test]
fn a_loop_may_need_what_another_one_gives() {
    let text = program(
        "%s = for parallel %i: i64 = 0 to %n step 1 with (%a: f64 = 5.0) {
           %p = offset %x, %i * 8
           %b = load f64 %p align 8
           %c = fadd f64 %a, %b
           yield %c
         }
         for parallel %j: i64 = 0 to %n step 1 {
           %q = offset %y, %j * 8
           store f64 %s, %q align 8
           yield
         }",
    );
    assert!(check(&text, SIZES).iter().all(Result::is_ok));
}

#[test]
fn memory_on_the_stack_may_be_kept() {
    let text = program(
        "for parallel %i: i64 = 0 to %n step 1 {
           %t = stack 8 align 8
           store f64 2.0, %t align 8
           %q = offset %x, %i * 8
           store ptr %t, %q align 8
           yield
         }
         for %j: i64 = 0 to %n step 1 {
           %r = offset %x, %j * 8
           %t1 = load ptr %r align 8
           %v = load f64 %t1 align 8
           store f64 %v, %r align 8
           yield
         }",
    );
    assert!(matches!(
        check(&text, SIZES)[0],
        Err(Obstacle::AnyMemory(_))
    ));
}

#[test]
fn what_is_stored_as_it_was_is_no_sum_of_integers() {
    let text = program(
        "for parallel %i: i64 = 0 to %n step 1 {
           %a = load i64 %x align 8
           store i64 %a, %x align 8
           yield
         }",
    );
    assert!(matches!(
        check(&text, SIZES)[0],
        Err(Obstacle::Conflict(..))
    ));
}
