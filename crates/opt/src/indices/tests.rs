//! Expressions and intervals of small functions.

use super::*;
use ferrozyme_ir::{Builder, Module, Names, Type, parse_module};

fn program(body: &str) -> Module {
    let text =
        format!("func @f(%n: i64, %m: i64 range 0..=10, %w: i32, %p: ptr) {{\n{body}\nreturn\n}}");
    parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The expression of `%r`, and its interval.
fn expression(body: &str) -> (String, (Option<i128>, Option<i128>)) {
    let module = program(body);
    let function = module.functions.values().next().expect("a function");
    let names = Names::of(function);
    let value = function
        .values
        .keys()
        .find(|&value| names.get(value) == Some("%r"))
        .expect("there is %r");
    let indices = Indices::of(function);
    let interval = indices.interval_of_value(value);
    (
        indices.expression(value).to_text(&names),
        (interval.lower(), interval.upper()),
    )
}

fn text(body: &str) -> String {
    expression(body).0
}

#[test]
fn arithmetic_is_taken_apart() {
    assert_eq!(
        text("%a = add i64 %n, 3\n%r = mul i64 %a, %m"),
        "%n*%m + 3*%m"
    );
    assert_eq!(text("%a = shl i64 %n, 4\n%r = or i64 %a, 9"), "16*%n + 9");
    // The lowest bits of 4·n are zero, but not the one that 4 sets.
    assert_eq!(text("%a = shl i64 %n, 2\n%r = or i64 %a, 4"), "%r");
    assert_eq!(text("%a = sub i64 %n, %m\n%r = add i64 %a, %m"), "%n");
    assert_eq!(text("%r = sdiv i64 %n, 2"), "%r");
}

#[test]
fn arithmetic_that_wraps_on_purpose_is_left_alone() {
    assert_eq!(text("%r = mul i64 %n, 6364136223846793005"), "%r");
    assert_eq!(
        text("%r = mul nsw i64 %n, 6364136223846793005"),
        "6364136223846793005*%n"
    );
}

#[test]
fn narrow_integers() {
    assert_eq!(
        text("%a = add nsw i32 %w, 1\n%r = sext i32 %a to i64"),
        "%w + 1"
    );
    assert_eq!(text("%a = add i32 %w, 1\n%r = sext i32 %a to i64"), "%a");
    assert_eq!(text("%r = zext i32 %w to i64"), "%r");
    assert_eq!(
        expression("%r = zext i32 %w to i64").1,
        (Some(0), Some((1 << 32) - 1))
    );
    // Numbers from 0 to 10 survive eight bits; the sum of three does too, but not a hundred of them.
    assert_eq!(
        text("%a = trunc_int i64 %m to i8\n%r = zext i8 %a to i64"),
        "%m"
    );
    let multiple = |factor: i32| {
        text(&format!(
            "%a = trunc_int i64 %m to i8\n%b = mul i8 %a, {factor}\n%r = sext i8 %b to i64"
        ))
    };
    assert_eq!(multiple(3), "3*%m");
    assert_eq!(multiple(100), "%b");
    assert_eq!(
        text("%a = trunc_int i64 %n to i8\n%r = sext i8 %a to i64"),
        "%a"
    );
}

#[test]
fn intervals() {
    let interval = |body: &str| expression(body).1;
    assert_eq!(interval("%r = urem i64 %n, 7"), (Some(0), Some(6)));
    assert_eq!(interval("%r = srem i64 %n, 7"), (Some(-6), Some(6)));
    assert_eq!(interval("%r = and i64 %n, 15"), (Some(0), Some(15)));
    assert_eq!(interval("%r = lshr i64 %n, 60"), (Some(0), Some(15)));
    assert_eq!(interval("%r = smin i64 %m, 3"), (Some(0), Some(3)));
    assert_eq!(interval("%r = sdiv i64 %m, 3"), (Some(0), Some(3)));
    assert_eq!(
        interval("%a = sub i64 %m, 20\n%r = mul i64 %a, -2"),
        (Some(20), Some(40))
    );
    assert_eq!(
        interval("for %r: i64 = 2 to %m step 3 { yield }"),
        (Some(2), Some(8))
    );
    assert_eq!(
        interval("for %r: i64 = %m to 2 step -1 { yield }"),
        (Some(3), Some(10))
    );
    // A sum of two numbers of unknown size may wrap around.
    assert_eq!(
        interval("%a = smax i64 %n, 0\n%r = add i64 %a, 1"),
        (Some(i128::from(i64::MIN)), Some(i128::from(i64::MAX)))
    );
    assert_eq!(
        interval("%a = smax i64 %n, 0\n%r = add nsw i64 %a, 1").0,
        Some(1)
    );
}

#[test]
fn carried_values_that_grow_evenly() {
    let body = |step: i64, growth: &str| {
        format!(
            "%e = for %i: i64 = 5 to %n step {step} with (%r: i64 = %m) {{
               %a = {growth}
               yield %a
             }}"
        )
    };
    assert_eq!(text(&body(1, "add i64 %r, 3")), "%m + 3*%i - 15");
    assert_eq!(text(&body(2, "add i64 %r, 4")), "%m + 2*%i - 10");
    assert_eq!(text(&body(2, "add i64 %r, 3")), "%r");
    assert_eq!(text(&body(-1, "sub i64 %r, %n")), "-5*%n + %n*%i + %m");
    assert_eq!(text(&body(1, "mul i64 %r, 3")), "%r");
    assert_eq!(text(&body(1, "add i64 %r, %i")), "%r");
}

#[test]
fn expressions_become_operations_again() {
    let mut module = program("%a = sub i64 %n, %m\n%b = mul i64 %a, 3\n%r = sub i64 7, %b");
    let id = module.function_named("f").expect("there is @f");
    let function = &module.functions[id];
    let value = *function.regions[function.body()]
        .ops
        .iter()
        .filter_map(|&op| function.ops[op].results.first())
        .next_back()
        .expect("there is a result");
    let expression = Indices::of(function).expression(value);
    assert!(Indices::of(function).can_emit(&expression));
    let function = &mut module.functions[id];
    let region = function.new_region(&[]);
    let emitted = expression
        .emit(&mut Builder::new(function, region))
        .expect("all variables are integers");
    let body = function.body();
    let last = function.regions[body].ops.pop().expect("a terminator");
    let built = std::mem::take(&mut function.regions[region].ops);
    function.regions[body].ops.extend(built);
    function.regions[body].ops.push(last);
    assert_eq!(function.ty(emitted), Type::I64);
    assert_eq!(Indices::of(function).expression(emitted), expression);
}

#[test]
fn long_chains_need_no_stack() {
    let mut body = String::from("%a0 = add i64 %n, 1\n");
    for index in 0..50_000 {
        let half = index / 2;
        body += &format!("%a{} = add i64 %a{index}, %a{half}\n", index + 1);
    }
    let module = program(&body);
    let function = module.functions.values().next().expect("a function");
    let indices = Indices::of(function);
    assert!(indices.function().values.len() > 50_000);
}
