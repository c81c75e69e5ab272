use ferrozyme::*;

#[custom_derivative]
fn no_rule(x: f64) -> f64 {
    x
}

#[custom_derivative(backward = rule)]
fn unknown_rule(x: f64) -> f64 {
    x
}

#[custom_derivative(reverse = rule, reverse = rule)]
fn twice(x: f64) -> f64 {
    x
}

#[custom_derivative(augment = keep)]
fn augment_only(x: f64) -> f64 {
    x
}

#[custom_derivative(forward = forward, augment = keep)]
fn augment_without_reverse(x: f64) -> f64 {
    x
}

#[custom_derivative(reverse = rule)]
fn generic<T: Into<f64>>(x: T) -> f64 {
    x.into()
}

#[custom_derivative(reverse = rule)]
fn integer_result(x: f64) -> usize {
    x as usize
}

#[custom_derivative(reverse = rule)]
fn owned(x: Vec<f64>) -> f64 {
    x[0]
}

#[custom_derivative(reverse = rule)]
fn object(f: &dyn Fn(f64) -> f64) -> f64 {
    f(1.0)
}

#[custom_derivative(reverse = rule)]
fn pattern((x, _): (f64, f64)) -> f64 {
    x
}

#[custom_derivative(reverse = rule)]
const fn constant(x: f64) -> f64 {
    x
}

#[custom_derivative(reverse = rule)]
struct Structure;

impl Structure {
    #[custom_derivative(reverse = rule)]
    fn method(&self, x: f64) -> f64 {
        x
    }
}

#[inactive(always)]
fn arguments() {}

#[inactive]
struct NotAFunction;

#[inactive]
const fn constant_function() {}

#[inactive]
async fn asynchronous() {}

fn main() {}
