//! Derivatives that users give, and functions without any.

#![cfg(ferrozyme)]

use ferrozyme::{
    Active, autodiff_reverse, custom_derivative, grad, hvp, inactive, jvp, stop_gradient,
};
use std::cell::Cell;

// Straight through: the derivative of the body is zero.
#[custom_derivative(reverse = rounded_reverse, forward = rounded_forward)]
fn rounded(x: f64) -> f64 {
    x.round()
}

fn rounded_reverse(_x: f64, seed: f64, _: Active) -> f64 {
    seed
}

fn rounded_forward(x: f64, dx: f64, _: Active) -> (f64, f64) {
    (x.round(), dx)
}

// LLVM could see that it returns its argument.
#[custom_derivative(reverse = reversed_reverse)]
fn reversed(x: f64) -> f64 {
    x
}

fn reversed_reverse(_x: f64, seed: f64, _: Active) -> f64 {
    -seed
}

// LLVM could see that it does not look at its argument, and returns a constant.
#[custom_derivative(reverse = constant_reverse)]
fn constant(_x: f32) -> f32 {
    7.0
}

fn constant_reverse(_x: f32, seed: f32, _: Active) -> f32 {
    3.0 * seed
}

#[test]
fn rules_go_before_bodies() {
    assert_eq!(rounded(1.3), 1.0);
    assert_eq!(grad(rounded, 1.3), 1.0);
    assert_eq!(jvp(rounded, 1.3, 2.0), (1.0, 2.0));
    assert_eq!(grad(|x: f64| reversed(x) * reversed(x), 3.0), -6.0);
    assert_eq!(grad(|x: f32| constant(x) * x, 2.0_f32), 13.0);
    // Only a rule for reverse mode: forward mode differentiates the body.
    assert_eq!(
        jvp(|x: f64| reversed(x) * reversed(x), 3.0, 1.0),
        (9.0, 6.0)
    );
}

#[custom_derivative(reverse = cube_reverse, forward = cube_forward)]
fn cube(x: f64) -> f64 {
    x.powi(3)
}

fn cube_reverse(x: f64, seed: f64, _: Active) -> f64 {
    seed * 3.0 * x * x
}

fn cube_forward(x: f64, dx: f64, _: Active) -> (f64, f64) {
    (cube(x), 3.0 * x * x * dx)
}

#[test]
fn rules_are_differentiated_again() {
    assert_eq!(hvp(cube, 2.0, 1.0), 12.0);
}

#[custom_derivative(reverse = several_reverse)]
fn several(a: f64, n: usize, b: f64, c: f32) -> f64 {
    (a + b + f64::from(c)) * n as f64
}

fn several_reverse(
    _a: f64,
    n: usize,
    _b: f64,
    _c: f32,
    seed: f64,
    active: Active,
) -> (f64, f64, f32) {
    assert!(active.arguments().eq([0, 3]), "{active:?}");
    let gradient = seed * n as f64;
    (gradient, f64::NAN, gradient as f32)
}

#[test]
fn rules_are_told_what_is_active() {
    assert_eq!(grad(|x: f64| several(x, 5, 1.0, x as f32), 3.0), 10.0);
}

#[custom_derivative(reverse = dot_reverse)]
fn dot(x: &[f64], y: &[f64], scale: &f64) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>() * scale
}

fn dot_reverse(
    x: &[f64],
    dx: Option<&[Cell<f64>]>,
    y: &[f64],
    dy: Option<&[Cell<f64>]>,
    scale: &f64,
    dscale: Option<&Cell<f64>>,
    seed: f64,
    active: Active,
) {
    assert_eq!(dx.is_some(), active.argument(0));
    assert_eq!(dy.is_some(), active.argument(1));
    assert_eq!(dscale.is_some(), active.argument(2));
    let add = |shadow: &Cell<f64>, value: f64| shadow.set(shadow.get() + value);
    for (index, shadow) in dx.into_iter().flatten().enumerate() {
        add(shadow, seed * y[index] * scale);
    }
    for (index, shadow) in dy.into_iter().flatten().enumerate() {
        add(shadow, seed * x[index] * scale);
    }
    if let Some(shadow) = dscale {
        add(
            shadow,
            seed * x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>(),
        );
    }
}

#[test]
fn shadows_are_there_if_they_are_needed() {
    let weights = [3.0, 4.0];
    assert_eq!(grad(|x| dot(x, &weights, &2.0), &[1.0, 2.0]), [6.0, 8.0]);
    assert_eq!(grad(|x| dot(x, x, &2.0), &[1.0, 2.0]), [4.0, 8.0]);
    assert_eq!(
        grad(|x| dot(&weights, &weights, &x[0]), &[1.0, 2.0]),
        [25.0, 0.0]
    );
}

// The reverse sweep needs what the function overwrites, so it is kept.
#[custom_derivative(augment = scale_augment, reverse = scale_reverse, forward = scale_forward)]
fn scale(x: &mut [f64], by: f64) {
    for x in x {
        *x *= by;
    }
}

fn scale_augment(x: &mut [f64], _dx: Option<&mut [f64]>, by: f64, _: Active) -> Vec<f64> {
    let kept = x.to_vec();
    scale(x, by);
    kept
}

fn scale_reverse(_x: &[f64], dx: Option<&mut [f64]>, by: f64, kept: Vec<f64>, _: Active) -> f64 {
    let mut gradient = 0.0;
    for (dx, kept) in dx.into_iter().flatten().zip(kept) {
        gradient += *dx * kept;
        *dx *= by;
    }
    gradient
}

fn scale_forward(x: &mut [f64], dx: Option<&mut [f64]>, by: f64, dby: f64, _: Active) {
    for (x, dx) in x.iter_mut().zip(dx.into_iter().flatten()) {
        *dx = *dx * by + *x * dby;
        *x *= by;
    }
}

#[custom_derivative(augment = norm_augment, reverse = norm_reverse)]
fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn norm_augment(x: &[f64], _: Option<&[Cell<f64>]>, _: Active) -> (f64, (f64, Vec<f64>)) {
    let value = norm(x);
    (value, (value, x.to_vec()))
}

fn norm_reverse(_: &[f64], dx: Option<&[Cell<f64>]>, seed: f64, kept: (f64, Vec<f64>), _: Active) {
    for (dx, x) in dx.into_iter().flatten().zip(kept.1) {
        dx.set(dx.get() + seed * x / kept.0);
    }
}

#[test]
fn rules_keep_what_they_need() {
    // x₀³ (x₀ + x₁)
    let f = |x: &[f64]| {
        let mut y = x.to_vec();
        for _ in 0..3 {
            scale(&mut y, x[0]);
        }
        y.iter().sum::<f64>()
    };
    assert_eq!(grad(f, &[2.0, 3.0]), [68.0, 8.0]);
    assert_eq!(jvp(f, &[2.0, 3.0], &[1.0, 1.0]).1, 76.0);
    let g = |x: &[f64]| {
        let mut y = x.to_vec();
        let before = norm(&y);
        y.fill(0.0);
        before
    };
    assert_eq!(grad(g, &[3.0, 4.0]), [0.6, 0.8]);
}

#[inactive]
fn weight(x: f64) -> f64 {
    if x < 0.0 {
        return 0.0;
    }
    x * x
}

struct Counter(Cell<u32>);

impl Counter {
    #[inactive]
    fn note<T: std::fmt::Debug>(&self, value: &T) -> Option<String> {
        self.0.set(self.0.get() + 1);
        Some(format!("{value:?}"))
    }
}

#[autodiff_reverse(d_weighted, Const, Active, Active)]
fn weighted(counter: &Counter, x: f64) -> f64 {
    let text = counter.note(&x);
    assert!(text.is_some_and(|text| !text.is_empty()));
    weight(x) * x
}

#[test]
fn no_derivatives_go_through_inactive_functions() {
    let counter = Counter(Cell::new(0));
    assert_eq!(d_weighted(&counter, 3.0, 1.0), (27.0, 9.0));
    assert_eq!(counter.0.get(), 1);
    assert_eq!(grad(|x: f64| stop_gradient(x) * x, 3.0), 3.0);
    assert_eq!(grad(|x: f32| stop_gradient(x * x), 3.0_f32), 0.0);
}
