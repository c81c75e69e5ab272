//! `#[accelerate]`: functions without a derivative that go through the pipeline of derivatives. Each computes what it computes without the attribute, and derivatives see through it.

use std::cell::Cell;
use std::fmt::{self, Display};
use std::ops::{Add, Mul};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ferrozyme::{accelerate, autodiff_forward, autodiff_reverse, grad, hessian};

fn numbers(count: usize, seed: u32) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1 << 24) - 0.5
    };
    (0..count).map(|_| next()).collect()
}

#[track_caller]
fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let scale = 1.0 + expected.abs();
        assert!(
            (found - expected).abs() <= 1e-12 * scale,
            "{found} {expected}"
        );
    }
}

fn plain_product(a: &[f64], b: &[f64], c: &mut [f64], sizes: (usize, usize, usize)) {
    let (rows, inner, columns) = sizes;
    for i in 0..rows {
        for j in 0..columns {
            let mut sum = 0.0;
            for k in 0..inner {
                sum += a[i * inner + k] * b[k * columns + j];
            }
            c[i * columns + j] = sum;
        }
    }
}

#[accelerate]
fn product(a: &[f64], b: &[f64], c: &mut [f64], (rows, inner, columns): (usize, usize, usize)) {
    for i in 0..rows {
        for j in 0..columns {
            let mut sum = 0.0;
            for k in 0..inner {
                sum += a[i * inner + k] * b[k * columns + j];
            }
            c[i * columns + j] = sum;
        }
    }
}

#[test]
fn products_of_all_sizes() {
    for sizes in [(1, 1, 1), (3, 5, 2), (8, 8, 8), (33, 17, 40), (64, 100, 70)] {
        let (rows, inner, columns) = sizes;
        let (a, b) = (numbers(rows * inner, 1), numbers(inner * columns, 2));
        let (mut found, mut expected) = (vec![0.0; rows * columns], vec![0.0; rows * columns]);
        product(&a, &b, &mut found, sizes);
        plain_product(&a, &b, &mut expected, sizes);
        assert_close(&found, &expected);
    }
}

/// A layer as a type with methods.
#[derive(Clone, Debug, PartialEq)]
struct Layer {
    weights: Vec<f64>,
    bias: Vec<f64>,
    uses: u32,
}

impl Layer {
    #[accelerate]
    fn apply(&self, x: &[f64]) -> Vec<f64> {
        let inputs = x.len();
        let row = |(j, bias): (usize, &f64)| {
            let row = &self.weights[j * inputs..(j + 1) * inputs];
            (bias + row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>()).tanh()
        };
        self.bias.iter().enumerate().map(row).collect()
    }

    #[accelerate]
    fn count(&mut self, by: u32) -> &mut Self {
        self.uses += by;
        self
    }

    #[accelerate]
    fn into_scaled(mut self, mut by: f64) -> Self {
        by *= 2.0;
        self.weights.iter_mut().for_each(|weight| *weight *= by);
        self
    }

    #[accelerate]
    fn zeros(inputs: usize, outputs: usize) -> Self {
        Layer {
            weights: vec![0.0; inputs * outputs],
            bias: vec![0.0; outputs],
            uses: 0,
        }
    }
}

#[test]
fn methods() {
    let mut layer = Layer {
        weights: vec![1.0, 2.0, 3.0, 4.0],
        bias: vec![0.5, -0.5],
        uses: 0,
    };
    let expected = [(0.5f64 + 0.1 + 0.4).tanh(), (-0.5f64 + 0.3 + 0.8).tanh()];
    assert_close(&layer.apply(&[0.1, 0.2]), &expected);
    layer.count(2).count(3);
    assert_eq!(layer.uses, 5);
    assert_eq!(layer.into_scaled(0.5).weights, [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(Layer::zeros(2, 3).weights, [0.0; 6]);
}

trait Shape {
    fn area(&self) -> f64;

    #[accelerate]
    fn doubled(&self) -> f64 {
        2.0 * self.area()
    }
}

struct Square(f64);

impl Shape for Square {
    #[accelerate]
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}

#[test]
fn methods_of_traits() {
    let square = Square(3.0);
    assert_eq!(square.doubled(), 18.0);
    let shape: &dyn Shape = &square;
    assert_eq!(shape.doubled() + shape.area(), 27.0);
}

#[accelerate]
fn dot<'a, T: Copy + Default + Add<Output = T> + Mul<Output = T>, const N: usize>(
    x: &'a [T; N],
    y: impl Fn(usize) -> T,
) -> (T, &'a T) {
    let mut sum = T::default();
    for (i, &x) in x.iter().enumerate() {
        sum = sum + x * y(i);
    }
    (sum, &x[N - 1])
}

#[test]
fn generic_functions() {
    assert_eq!(dot(&[1.0f32, 2.0], |i| i as f32 + 1.0), (5.0, &2.0));
    assert_eq!(dot(&[1u64, 2, 3], |i| i as u64), (8, &3));
}

/// Returns early, by `return` and by `?`.
#[accelerate]
fn parsed_sum(text: &str, most: usize) -> Result<f64, std::num::ParseFloatError> {
    let mut sum = 0.0;
    for (index, word) in text.split(' ').enumerate() {
        if index == most {
            return Ok(sum);
        }
        sum += word.parse::<f64>()?;
    }
    Ok(-sum)
}

#[test]
fn early_returns() {
    assert_eq!(parsed_sum("1.5 2", 5), Ok(-3.5));
    assert_eq!(parsed_sum("1.5 2 x", 2), Ok(3.5));
    assert!(parsed_sum("1.5 x", 2).is_err());
}

#[accelerate]
fn factorial(n: u64) -> u64 {
    match n {
        0 => 1,
        _ => n * factorial(n - 1),
    }
}

#[test]
fn recursion() {
    assert_eq!(factorial(10), 3_628_800);
}

/// Counts how often it is dropped.
struct Guard<'a>(&'a Cell<u32>);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[accelerate]
fn element(x: &[f64], at: usize, _guard: Guard<'_>, drops: &Cell<u32>) -> f64 {
    let _inner = Guard(drops);
    x[at]
}

#[test]
fn panics_unwind() {
    let drops = Cell::new(0);
    let x = [1.0, 2.0];
    assert_eq!(element(&x, 1, Guard(&drops), &drops), 2.0);
    assert_eq!(drops.get(), 2);
    let call = || element(&x, 2, Guard(&drops), &drops);
    let payload = catch_unwind(AssertUnwindSafe(call)).expect_err("the index is out of bounds");
    let message = payload.downcast::<String>().expect("a text");
    assert_eq!(
        *message,
        "index out of bounds: the len is 2 but the index is 2"
    );
    assert_eq!(drops.get(), 4);
}

struct Rounded(f64);

impl Display for Rounded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.1}", self.0)
    }
}

/// Writes numbers as text and reads them again, which has no derivative.
#[accelerate]
fn rounded(x: f64) -> f64 {
    format!("{}", Rounded(x)).parse().expect("a number")
}

#[test]
fn numbers_through_text() {
    assert_eq!(rounded(1.26), 1.3);
}

static CALLS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

#[accelerate]
fn counted() -> u32 {
    CALLS.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn statics_are_those_of_the_program() {
    counted();
    counted();
    assert_eq!(CALLS.load(std::sync::atomic::Ordering::Relaxed), 2);
}

#[accelerate]
unsafe extern "C" fn raw(x: *const f64, count: usize) -> f64 {
    (0..count).map(|i| unsafe { *x.add(i) }).sum()
}

#[test]
fn pointers() {
    let x = [1.0, 2.0, 4.0];
    assert_eq!(unsafe { raw(x.as_ptr(), 3) }, 7.0);
    let pointer: unsafe extern "C" fn(*const f64, usize) -> f64 = raw;
    assert_eq!(unsafe { pointer(x.as_ptr(), 2) }, 3.0);
}

/// What derivatives see: accelerated functions that call each other, one with an attribute of its own for its derivative.
#[accelerate]
fn power(x: f64, exponent: i32) -> f64 {
    x.powi(exponent)
}

#[accelerate]
#[autodiff_reverse(d_energy, Duplicated, Active)]
#[autodiff_forward(b_energy, Dual, Dual)]
fn energy(x: &[f64]) -> f64 {
    let mut sum = 0.0;
    for pair in x.windows(2) {
        sum += power(pair[1] - pair[0], 3) * pair[0].sin();
    }
    sum
}

#[autodiff_reverse(d_outer, Duplicated, Duplicated, Active)]
fn outer(a: &[f64], b: &[f64]) -> f64 {
    let mut c = vec![0.0; 100];
    product(a, b, &mut c, (10, 12, 10));
    c.iter().map(|c| power(*c, 2)).sum::<f64>() + energy(a)
}

fn plain_outer(a: &[f64], b: &[f64]) -> f64 {
    let mut c = vec![0.0; 100];
    plain_product(a, b, &mut c, (10, 12, 10));
    let energy: f64 = a
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).powi(3) * pair[0].sin())
        .sum();
    c.iter().map(|c| c * c).sum::<f64>() + energy
}

#[test]
fn derivatives_see_through() {
    let (a, b) = (numbers(120, 3), numbers(120, 4));
    let value = outer(&a, &b);
    assert_close(&[value], &[plain_outer(&a, &b)]);
    let (mut da, mut db) = (vec![0.0; 120], vec![0.0; 120]);
    assert_close(&[d_outer(&a, &mut da, &b, &mut db, 1.0)], &[value]);
    let expected = grad(|a: &[f64]| plain_outer(a, &numbers(120, 4)), &a);
    assert_close(&da, &expected);
    let expected = grad(|b: &[f64]| plain_outer(&numbers(120, 3), b), &b);
    assert_close(&db, &expected);
}

#[test]
fn derivatives_of_accelerated_functions() {
    let x = [0.3, 0.7, -0.2, 1.1];
    let mut gradient = [0.0; 4];
    d_energy(&x, &mut gradient, 1.0);
    for i in 0..4 {
        let mut direction = [0.0; 4];
        direction[i] = 1.0;
        let (value, slope) = b_energy(&x, &direction);
        assert_close(&[value, slope], &[energy(&x), gradient[i]]);
        let step = 1e-6;
        let at = |by: f64| {
            let mut x = x;
            x[i] += by;
            energy(&x)
        };
        let difference = (at(step) - at(-step)) / (2.0 * step);
        assert!((difference - slope).abs() < 1e-8, "{difference} {slope}");
    }
}

#[test]
fn second_derivatives() {
    let f = |x: &[f64]| power(x[0], 3) * power(x[1], 2);
    let expected = [[6.0 * 2.0 * 9.0, 3.0 * 4.0 * 2.0 * 3.0], [72.0, 2.0 * 8.0]];
    assert_eq!(hessian(f, &[2.0, 3.0]), expected);
}

/// A step of training: an accelerated function that calls derivatives.
#[accelerate]
fn descend(x: &mut [f64], rate: f64, steps: usize) -> f64 {
    for _ in 0..steps {
        let mut gradient = vec![0.0; x.len()];
        d_energy(x, &mut gradient, 1.0);
        for (x, gradient) in x.iter_mut().zip(gradient) {
            *x -= rate * gradient;
        }
    }
    energy(x)
}

/// And the derivative of that, by the rate.
#[test]
fn derivatives_inside() {
    let start = [0.3, 0.7, -0.2, 1.1];
    let run = |rate: f64| {
        let mut x = start;
        descend(&mut x, rate, 3)
    };
    assert!(run(0.01) < energy(&start));
    let slope: f64 = grad(run, 0.01);
    let difference = (run(0.01 + 1e-6) - run(0.01 - 1e-6)) / 2e-6;
    assert!(
        (slope / difference - 1.0).abs() < 1e-7,
        "{slope} {difference}"
    );
}
