//! Branches that are not taken, and whose values would be infinite or NaN: nothing of them reaches the gradient.

use ferrozyme::{autodiff_reverse, grad, hessian};
use std::hint::black_box;

fn guarded_quotient(x: &[f64]) -> f64 {
    let (a, d) = (x[0], x[1]);
    if d != 0.0 { a / d } else { 0.0 }
}

fn guarded_logarithm(x: &[f64]) -> f64 {
    let (x, y) = (x[0], x[1]);
    if x > 0.0 { x.ln() * y } else { y }
}

fn guarded_root(x: &[f64]) -> f64 {
    let (x, y) = (x[0], x[1]);
    if x > 0.0 { x.sqrt() / x * y } else { y }
}

fn guarded_product(x: &[f64]) -> f64 {
    let (x, y, far) = (x[0], x[1], x[2]);
    if far.is_finite() { x * y * far } else { x }
}

/// `q` is needed for two of three cases.
fn signed_quotient(x: &[f64]) -> f64 {
    let (a, d) = (x[0], x[1]);
    if d > 0.0 {
        a / d
    } else if d < 0.0 {
        -a / d
    } else {
        a
    }
}

/// Invariant, and so computed ahead of the loop, though no iteration needs it.
fn in_a_loop(x: &[f64]) -> f64 {
    let (a, d) = (x[0], x[1]);
    let mut sum = a;
    for &weight in &x[2..] {
        if weight > 0.0 {
            sum += weight * (a / d).sin();
        }
    }
    sum
}

/// As before, where the loop need not run at all.
fn in_an_empty_loop(x: &[f64]) -> f64 {
    let (a, d) = (x[0], x[1]);
    let mut sum = a;
    for &weight in &x[2..] {
        sum += weight * (a / d).sin();
    }
    sum
}

fn softplus_by_cases(x: &[f64]) -> f64 {
    x.iter()
        .map(|&x| if x > 30.0 { x } else { x.exp().ln_1p() * x })
        .sum()
}

#[test]
fn nothing_comes_from_the_side_that_is_not_taken() {
    assert_eq!(grad(guarded_quotient, &[2.0, 0.0]), [0.0, 0.0]);
    assert_eq!(grad(guarded_quotient, &[2.0, 4.0]), [0.25, -0.125]);
    assert_eq!(grad(guarded_logarithm, &[0.0, 3.0]), [0.0, 1.0]);
    assert_eq!(grad(guarded_logarithm, &[1.0, 3.0]), [3.0, 0.0]);
    assert_eq!(grad(guarded_root, &[0.0, 3.0]), [0.0, 1.0]);
    assert_eq!(
        grad(guarded_product, &[2.0, 3.0, f64::INFINITY]),
        [1.0, 0.0, 0.0]
    );
    assert_eq!(
        grad(guarded_product, &[2.0, 3.0, f64::NAN]),
        [1.0, 0.0, 0.0]
    );
    assert_eq!(grad(guarded_product, &[2.0, 3.0, 5.0]), [15.0, 10.0, 6.0]);
    assert_eq!(grad(signed_quotient, &[2.0, 0.0]), [1.0, 0.0]);
    assert_eq!(grad(signed_quotient, &[2.0, -4.0]), [0.25, 0.125]);
    assert_eq!(grad(softplus_by_cases, &[1000.0, 2000.0]), [1.0, 1.0]);
}

#[test]
fn nothing_comes_from_what_was_computed_ahead_of_a_loop() {
    assert_eq!(
        grad(in_a_loop, &[2.0, 0.0, -1.0, -1.0]),
        [1.0, 0.0, 0.0, 0.0]
    );
    assert_eq!(grad(in_an_empty_loop, &[2.0, 0.0]), [1.0, 0.0]);
}

/// The sum of the iteration that ends the loop is discarded, and so are its inputs.
#[test]
fn nothing_comes_from_what_was_computed_and_given_up() {
    fn while_finite(x: &[f64]) -> f64 {
        let finite = x[1..].iter().take_while(|v| v.is_finite());
        finite.map(|v| v * x[0]).sum()
    }
    fn finite_products(x: &[f64]) -> f64 {
        let mut product = 1.0;
        for &v in &x[1..] {
            let factor = v * x[0];
            if factor.is_finite() {
                product *= factor;
            }
        }
        product
    }
    let at = [2.0, 3.0, 5.0, f64::INFINITY, 7.0];
    assert_eq!(grad(while_finite, &at), [8.0, 2.0, 2.0, 0.0, 0.0]);
    assert_eq!(
        grad(finite_products, &at),
        [1260.0, 280.0, 168.0, 0.0, 120.0]
    );
}

#[test]
fn second_derivatives_neither() {
    for f in [guarded_quotient, guarded_logarithm] {
        let matrix = hessian(f, &[0.0, 0.0]);
        assert!(
            matrix.iter().flatten().all(|&entry| entry == 0.0),
            "{matrix:?}"
        );
    }
}

/// A branch that was taken says where there is no derivative.
#[test]
fn what_is_taken_is_not_hidden() {
    fn taken(x: &[f64]) -> f64 {
        if x[1] > 0.0 { x[0].cbrt().powi(3) } else { 0.0 }
    }
    assert!(grad(taken, &[0.0, 1.0])[0].is_nan());
}

#[derive(Clone, Copy)]
enum Gain {
    Factor(f64),
    Bits(u64),
}

#[autodiff_reverse(d_amplify, Const, Active, Active)]
fn amplify(gain: &Gain, x: f64) -> f64 {
    match *gain {
        Gain::Factor(factor) => factor * x,
        Gain::Bits(bits) => x + (bits >> 60) as f64,
    }
}

#[test]
fn unused_bytes_of_enums_are_not_multiplied_with() {
    for bits in [f64::INFINITY.to_bits(), f64::NAN.to_bits()] {
        let gain = black_box(Gain::Bits(bits));
        assert_eq!(d_amplify(&gain, 3.0, 1.0).1, 1.0);
    }
    assert_eq!(d_amplify(&Gain::Factor(5.0), 3.0, 1.0), (15.0, 5.0));
}
