//! Helper functions that return new objects, none of them inlined: the caller sees memory that another function allocated and filled.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{Field, Scalar};

/// Functions of one number, checked in both modes, by the attributes and by `grad`.
macro_rules! scalar_programs {
    ($($name:ident = |$x:ident| $body:expr;)*) => {$(
        mod $name {
            use super::*;

            #[autodiff_reverse(reverse, Active, Active)]
            #[autodiff_forward(forward, Dual, Dual)]
            #[inline(never)]
            fn primal($x: f64) -> f64 {
                $body
            }

            #[test]
            fn has_its_derivative() {
                Scalar::new(stringify!($name), primal)
                    .reverse(reverse)
                    .forward(forward)
                    .check(&[0.7, -1.3]);
                let (_, gradient) = reverse(0.7, 1.0);
                assert_eq!(ferrozyme::grad(primal, 0.7), gradient);
            }
        }
    )*};
}

#[inline(never)]
fn doubled(k: f64) -> Vec<f64> {
    vec![2.0 * k]
}

#[inline(never)]
fn some_vector(k: f64) -> Option<Vec<f64>> {
    (k > -1.0).then(|| vec![k, k * k])
}

#[inline(never)]
fn two_vectors(k: f64) -> (Vec<f64>, Vec<f64>) {
    (vec![k.sin()], vec![k, k * k])
}

#[inline(never)]
fn checked_vector(k: f64) -> Result<Vec<f64>, usize> {
    if k > 0.0 { Ok(vec![k; 3]) } else { Err(3) }
}

#[inline(never)]
fn boxes(k: f64) -> [Box<f64>; 3] {
    [Box::new(k), Box::new(k * k), Box::new(k.cos())]
}

#[derive(Clone)]
struct State {
    time: f64,
    values: Vec<f64>,
    name: String,
}

#[inline(never)]
fn state(k: f64) -> State {
    State {
        time: k.exp(),
        values: vec![k, 3.0 * k],
        name: String::from("state"),
    }
}

#[inline(never)]
fn advanced(state: State, by: f64) -> State {
    State {
        time: state.time + by,
        values: state.values.iter().map(|v| v * by).collect(),
        name: state.name,
    }
}

#[inline(never)]
fn rows(k: f64) -> Vec<Vec<f64>> {
    (0..3).map(|i| vec![k * f64::from(i); 2]).collect()
}

#[inline(never)]
fn pushed(mut values: Vec<f64>, k: f64) -> Vec<f64> {
    values.push(k * k);
    values
}

#[inline(never)]
fn through_argument(out: &mut Vec<f64>, k: f64) {
    *out = vec![k.sin(), k.cos()];
}

#[inline(never)]
fn boxed_closure(k: f64) -> Box<dyn Fn(f64) -> f64> {
    let table = vec![k, k * k];
    Box::new(move |x| table[0] * x + table[1])
}

/// Rows of a constant table, the first of which is empty and lies nowhere.
const ROWS: [&[f64]; 3] = [&[], &[0.2], &[0.5, -0.25]];

#[inline(never)]
fn row<'a>(table: &[&'a [f64]; 3], own: &'a [f64], index: usize) -> &'a [f64] {
    table.get(index).copied().unwrap_or(own)
}

#[inline(never)]
fn sum_of_rows(table: &[&[f64]; 3], own: &[f64], count: usize, k: f64) -> f64 {
    let row = |index| {
        row(table, own, index)
            .iter()
            .map(|w| w * w * k)
            .sum::<f64>()
    };
    (0..count).map(row).sum()
}

scalar_programs! {
    constant_rows = |k| sum_of_rows(&ROWS, &[k, k * k], 3 + usize::from(k.abs() < 100.0), k);
    vector = |k| doubled(k)[0];
    option = |k| some_vector(k).map_or(k * 0.5, |v| v[0] * v[1]);
    pair = |k| { let (a, b) = two_vectors(k); a[0] * b[1] + b[0] };
    result = |k| match checked_vector(k) { Ok(v) => v.iter().product(), Err(n) => k * n as f64 };
    array_of_boxes = |k| { let b = boxes(k); *b[0] * *b[1] + *b[2] };
    structure = |k| { let s = advanced(state(k), k); s.time * s.values[1] + s.name.len() as f64 * s.values[0] };
    nested = |k| rows(k).iter().flatten().map(|v| v * v).sum();
    moved_through = |k| { let v = pushed(pushed(doubled(k), k), k.sin()); v[0] * v[1] + v[2] };
    out_argument = |k| { let mut v = Vec::new(); through_argument(&mut v, k); let first = v[0]; through_argument(&mut v, k * first); v[0] * v[1] };
    closure = |k| boxed_closure(k)(k.sin());
    clone = |k| { let s = state(k); let t = s.clone(); s.values[0] * t.values[1] * t.time };
}

type System<'a> = &'a dyn Fn(f64, &[f64]) -> Vec<f64>;

#[inline(never)]
fn combined(y: &[f64], h: f64, slopes: &[Vec<f64>], weights: &[f64]) -> Vec<f64> {
    let mut result = y.to_vec();
    for (slope, weight) in slopes.iter().zip(weights) {
        for (r, s) in result.iter_mut().zip(slope) {
            *r += h * weight * s;
        }
    }
    result
}

#[inline(never)]
fn heun(f: System, t: f64, y: &[f64], h: f64) -> (Vec<f64>, f64) {
    let first = f(t, y);
    let euler = combined(y, h, std::slice::from_ref(&first), &[1.0]);
    let second = f(t + h, &euler);
    let better = combined(y, h, &[first, second], &[0.5, 0.5]);
    let error = better
        .iter()
        .zip(&euler)
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>();
    (better, error.sqrt())
}

/// An integrator that chooses its steps by the error it estimates.
#[inline(never)]
fn integrate(f: System, y: Vec<f64>, end: f64) -> Vec<f64> {
    let (mut t, mut y, mut h) = (0.0, y, 0.05);
    while t < end {
        let (next, error) = heun(f, t, &y, h);
        if error < 1e-3 {
            t += h;
            y = next;
        } else {
            h *= 0.5;
        }
    }
    y
}

#[autodiff_reverse(d_adaptive, Duplicated, Active)]
#[autodiff_forward(b_adaptive, Dual, Dual)]
fn adaptive(parameters: &[f64]) -> f64 {
    let (stiffness, damping) = (parameters[0], parameters[1]);
    let oscillator = move |_t: f64, y: &[f64]| vec![y[1], -stiffness * y[0] - damping * y[1]];
    let y = integrate(&oscillator, vec![parameters[2], 0.0], 1.0);
    y[0] + 0.5 * y[1]
}

#[test]
fn adaptive_integrator_over_a_trait_object() {
    Field::new("adaptive", adaptive)
        .reverse(d_adaptive)
        .forward(b_adaptive)
        .check(&[2.0, 0.3, 1.0]);
}
