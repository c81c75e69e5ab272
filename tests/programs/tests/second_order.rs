//! Derivatives of derivatives: Hessian-vector products by forward over reverse, and the other combinations.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{
    DIFFERENCES, EXACT, assert_all_close, assert_close, directional_derivative, random_vector,
};

#[autodiff_reverse(drosenbrock, Duplicated, Active)]
#[autodiff_forward(brosenbrock, Dual, DualOnly)]
fn rosenbrock(x: &[f64]) -> f64 {
    let mut sum = 0.0;
    for i in 0..x.len() - 1 {
        let a = x[i + 1] - x[i] * x[i];
        let b = 1.0 - x[i];
        sum += 100.0 * a * a + b * b;
    }
    sum
}

#[autodiff_forward(hessian_times, Dual, Dual)]
#[autodiff_forward(hessian_times_two, 2, Dual, Dual)]
#[autodiff_reverse(hessian_transposed_times, Duplicated, Duplicated)]
fn gradient_of_rosenbrock(x: &[f64], gradient: &mut [f64]) {
    gradient.fill(0.0);
    drosenbrock(x, gradient, 1.0);
}

fn hessian_of_rosenbrock(x: &[f64]) -> Vec<Vec<f64>> {
    let n = x.len();
    let mut h = vec![vec![0.0; n]; n];
    for i in 0..n - 1 {
        h[i][i] += 1200.0 * x[i] * x[i] - 400.0 * x[i + 1] + 2.0;
        h[i][i + 1] -= 400.0 * x[i];
        h[i + 1][i] -= 400.0 * x[i];
        h[i + 1][i + 1] += 200.0;
    }
    h
}

fn multiply(matrix: &[Vec<f64>], v: &[f64]) -> Vec<f64> {
    matrix
        .iter()
        .map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum())
        .collect()
}

#[test]
fn hessian_vector_product_by_forward_over_reverse() {
    let (x, v) = ([-1.2, 1.0, 0.7, 0.3], random_vector(4, 1));
    let (mut gradient, mut product) = ([0.0; 4], [0.0; 4]);
    hessian_times(&x, &v, &mut gradient, &mut product);
    let expected = multiply(&hessian_of_rosenbrock(&x), &v);
    assert_all_close("Hv by forward over reverse", &product, &expected, EXACT);
    let mut plain = [0.0; 4];
    drosenbrock(&x, &mut plain, 1.0);
    assert_all_close("gradient beside Hv", &gradient, &plain, 1e-14);
}

#[test]
fn two_hessian_vector_products_at_once() {
    let (x, v, w) = (
        [-1.2, 1.0, 0.7, 0.3],
        random_vector(4, 1),
        random_vector(4, 2),
    );
    let (mut gradient, mut by_v, mut by_w) = ([0.0; 4], [0.0; 4], [0.0; 4]);
    hessian_times_two(&x, &v, &w, &mut gradient, &mut by_v, &mut by_w);
    let hessian = hessian_of_rosenbrock(&x);
    assert_all_close("Hv", &by_v, &multiply(&hessian, &v), EXACT);
    assert_all_close("Hw", &by_w, &multiply(&hessian, &w), EXACT);
}

#[test]
fn hessian_vector_product_by_reverse_over_reverse() {
    let (x, v) = ([-1.2, 1.0, 0.7, 0.3], random_vector(4, 1));
    let (mut product, mut gradient, mut seed) = ([0.0; 4], [0.0; 4], v.clone());
    hessian_transposed_times(&x, &mut product, &mut gradient, &mut seed);
    let expected = multiply(&hessian_of_rosenbrock(&x), &v);
    assert_all_close("Hv by reverse over reverse", &product, &expected, EXACT);
}

#[autodiff_reverse(reverse_over_forward, Duplicated, Const, ActiveOnly)]
#[autodiff_forward(forward_over_forward, Dual, Const, DualOnly)]
fn slope_of_rosenbrock(x: &[f64], direction: &[f64]) -> f64 {
    brosenbrock(x, direction)
}

#[test]
fn hessian_vector_product_over_forward_mode() {
    let (x, v) = ([-1.2, 1.0, 0.7, 0.3], random_vector(4, 1));
    let expected = multiply(&hessian_of_rosenbrock(&x), &v);
    let mut product = [0.0; 4];
    reverse_over_forward(&x, &mut product, &v, 1.0);
    assert_all_close("Hv by reverse over forward", &product, &expected, EXACT);
    let curvature: f64 = expected.iter().zip(&v).map(|(h, v)| h * v).sum();
    assert_close(
        "vHv by forward over forward",
        forward_over_forward(&x, &v, &v),
        curvature,
        EXACT,
    );
}

#[autodiff_reverse(first, Active, ActiveOnly)]
fn wiggle(x: f64) -> f64 {
    x.sin() * x.exp()
}

#[autodiff_reverse(second, Active, ActiveOnly)]
fn slope(x: f64) -> f64 {
    first(x, 1.0)
}

#[autodiff_forward(third, Dual, DualOnly)]
fn curvature(x: f64) -> f64 {
    second(x, 1.0)
}

/// (eˣ sin x)''' = 2 eˣ (cos x - sin x)
#[test]
fn third_derivative() {
    let x = 0.7f64;
    assert_close("first", first(x, 1.0), x.exp() * (x.sin() + x.cos()), EXACT);
    assert_close("second", second(x, 1.0), 2.0 * x.exp() * x.cos(), EXACT);
    assert_close(
        "third",
        third(x, 1.0),
        2.0 * x.exp() * (x.cos() - x.sin()),
        EXACT,
    );
}

/// A small network whose reverse mode saves things: memory and loops under the second derivative.
#[autodiff_reverse(dnetwork, Duplicated, Const, Active)]
fn network(weights: &[f64], inputs: &[f64]) -> f64 {
    let n = inputs.len();
    let mut hidden = vec![0.0; n];
    let mut loss = 0.0;
    for layer in 0..2 {
        let from = if layer == 0 {
            inputs.to_vec()
        } else {
            hidden.clone()
        };
        for i in 0..n {
            let mut sum = 0.0;
            for j in 0..n {
                sum += weights[(layer * n + i) * n + j] * from[j];
            }
            hidden[i] = sum.tanh();
        }
    }
    for h in &hidden {
        loss += h * h;
    }
    loss
}

#[autodiff_forward(network_hessian_times, Dual, Const, Dual)]
fn gradient_of_network(weights: &[f64], inputs: &[f64], gradient: &mut [f64]) {
    gradient.fill(0.0);
    dnetwork(weights, gradient, inputs, 1.0);
}

#[test]
fn hessian_vector_product_of_a_network() {
    let (weights, inputs) = (random_vector(18, 3), [0.5, -1.0, 0.75]);
    let v = random_vector(18, 4);
    let (mut gradient, mut product) = (vec![0.0; 18], vec![0.0; 18]);
    network_hessian_times(&weights, &v, &inputs, &mut gradient, &mut product);
    let expected = directional_derivative(
        |w| {
            let mut gradient = vec![0.0; 18];
            dnetwork(w, &mut gradient, &inputs, 1.0);
            gradient
        },
        &weights,
        &v,
    );
    assert_all_close("Hv of a network", &product, &expected, DIFFERENCES);
}

/// Newton's method on a gradient, itself differentiated: the minimiser's dependence on a parameter.
#[autodiff_reverse(dobjective, Active, Const, ActiveOnly)]
fn objective(x: f64, p: f64) -> f64 {
    x.powi(4) - p * x * x + x
}

#[autodiff_forward(bobjective_slope, Dual, Dual, DualOnly)]
fn objective_slope(x: f64, p: f64) -> f64 {
    dobjective(x, p, 1.0)
}

#[autodiff_forward(bminimiser, Dual, DualOnly)]
fn minimiser(p: f64) -> f64 {
    let mut x = -1.5;
    for _ in 0..30 {
        let curvature = bobjective_slope(x, 1.0, p, 0.0);
        x -= dobjective(x, p, 1.0) / curvature;
    }
    x
}

#[test]
fn sensitivity_of_a_minimiser() {
    let p = 2.0;
    let x = minimiser(p);
    assert_close(
        "stationary",
        4.0 * x.powi(3) - 2.0 * p * x + 1.0,
        0.0,
        1e-12,
    );
    assert_close(
        "dx/dp",
        bminimiser(p, 1.0),
        2.0 * x / (12.0 * x * x - 2.0 * p),
        EXACT,
    );
}
