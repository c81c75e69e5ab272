//! The gradient check must find wrong derivatives. User-given rules serve to make some.

use ferrozyme_filetest::run;

/// A test file about `@f(x) = g(x)²`, where `g(x) = x²` has these functions as its rule.
fn outcome(rule: &str) -> Result<(), String> {
    let file = format!(
        "; A derivative that may be wrong.
; test: gradcheck @f (active) -> (active)
; args: (1.5)

func @g(%x: f64) -> (f64) noinline {{
  %y = fmul f64 %x, %x
  return %y
}}

func @f(%x: f64) -> (f64) {{
  %y = call @g(%x)
  %z = fmul f64 %y, %y
  return %z
}}

{rule}
"
    );
    run(&file, false).map(|_| ())
}

const FORWARD: &str = "
func @g_forward(%x: f64, %dx: f64, %mask: i64) -> (f64, f64) noinline {
  %y = fmul f64 %x, %x
  %half = fmul f64 %dx, %x
  %dy = fmul f64 %half, 2.0
  return %y, %dy
}";

const REVERSE: &str = "
func @g_reverse(%x: f64, %dy: f64, %mask: i64) -> (f64) noinline {
  %half = fmul f64 %dy, %x
  %dx = fmul f64 %half, 2.0
  return %dx
}";

const RULE: &str = "rule @g forward @g_forward reverse @g_reverse";

#[track_caller]
fn fails(rule: &str, complaint: &str) {
    match outcome(rule) {
        Ok(()) => panic!("the check passes"),
        Err(error) => assert!(error.contains(complaint), "{error}"),
    }
}

#[test]
fn right_derivatives_pass() {
    assert_eq!(outcome(""), Ok(()));
    assert_eq!(outcome(&format!("{FORWARD}\n{REVERSE}\n{RULE}")), Ok(()));
}

#[test]
fn a_wrong_tangent_is_found() {
    let wrong = FORWARD.replace("%half, 2.0", "%half, 2.001");
    fails(
        &format!("{wrong}\n{REVERSE}\n{RULE}"),
        "forward mode differs from finite differences for result 0",
    );
}

#[test]
fn a_wrong_gradient_is_found() {
    let wrong = REVERSE.replace("%half, 2.0", "%half, 2.0000001");
    fails(
        &format!("{FORWARD}\n{wrong}\n{RULE}"),
        "reverse mode contradicts forward mode",
    );
}

#[test]
fn a_gradient_that_is_not_a_number_is_found() {
    let wrong = REVERSE.replace("%half, 2.0", "%half, nan");
    fails(
        &format!("{FORWARD}\n{wrong}\n{RULE}"),
        "reverse mode contradicts forward mode",
    );
}

#[test]
fn a_derivative_that_changes_the_function_is_found() {
    let wrong = FORWARD.replace("return %y,", "return %x,");
    fails(
        &format!("{wrong}\n{REVERSE}\n{RULE}"),
        "the derivative changes result 0",
    );
}

#[test]
fn a_derivative_that_faults_is_found() {
    let wrong = REVERSE.replace("return %dx", "trap \"no gradient today\"");
    fails(
        &format!("{FORWARD}\n{wrong}\n{RULE}"),
        "reverse mode: trap: no gradient today",
    );
}

#[test]
fn a_derivative_that_leaks_is_found() {
    let wrong = REVERSE.replace(
        "  return",
        "  %p = alloc 16 align 8\n  store f64 %dx, %p align 8\n  return",
    );
    fails(
        &format!("{FORWARD}\n{wrong}\n{RULE}"),
        "16 bytes in 1 pieces of memory were never freed",
    );
}

#[test]
fn a_wrong_expectation_is_found() {
    let file = "; A.
; test: gradcheck @f (active) -> (active)
; args: (1.5)
; gradient: (2.9)

func @f(%x: f64) -> (f64) {
  %y = fmul f64 %x, %x
  return %y
}
";
    let error = run(file, false).unwrap_err();
    assert!(
        error.contains("the gradient of argument 0 is 3.0, expected 2.9"),
        "{error}"
    );
}
