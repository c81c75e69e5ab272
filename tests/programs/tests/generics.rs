//! Generic functions, traits with derivatives, associated items, constant generics.

use std::ops::{Add, Mul, Sub};

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{EXACT, Field, SINGLE, assert_all_close, assert_close};

trait Real: Copy + Add<Output = Self> + Mul<Output = Self> + Sub<Output = Self> + Default {
    fn sine(self) -> Self;
    fn from_f64(value: f64) -> Self;
}

impl Real for f64 {
    fn sine(self) -> f64 {
        self.sin()
    }
    fn from_f64(value: f64) -> f64 {
        value
    }
}

impl Real for f32 {
    fn sine(self) -> f32 {
        self.sin()
    }
    fn from_f64(value: f64) -> f32 {
        value as f32
    }
}

#[autodiff_reverse(dwave, Duplicated, Active)]
#[autodiff_forward(bwave, Dual, Dual)]
fn wave<T: Real>(x: &[T]) -> T {
    let mut sum = T::default();
    for &value in x {
        sum = sum + value.sine() * value - T::from_f64(0.5);
    }
    sum
}

#[test]
fn generic_over_the_number() {
    let derivative = |x: f64| x.cos() * x + x.sin();
    Field::new("generic wave in f64", wave::<f64>)
        .reverse(dwave::<f64>)
        .forward(bwave::<f64>)
        .closed_form(|x| x.iter().map(|&x| derivative(x)).collect())
        .check(&[0.5, -1.5, 2.0]);
    let mut dx = [0.0f32; 2];
    dwave(&[0.5f32, 2.0], &mut dx, 1.0);
    assert_close(
        "generic wave in f32",
        f64::from(dx[0]),
        derivative(0.5),
        SINGLE,
    );
    assert_close(
        "generic wave in f32",
        f64::from(dx[1]),
        derivative(2.0),
        SINGLE,
    );
}

#[autodiff_reverse(dmatrix, Duplicated, Duplicated, Active)]
#[autodiff_forward(bmatrix, Dual, Dual, Dual)]
fn product_trace<const N: usize, const M: usize>(a: &[[f64; M]; N], b: &[[f64; N]; M]) -> f64 {
    let mut c = [[0.0; N]; N];
    for i in 0..N {
        for j in 0..N {
            for k in 0..M {
                c[i][j] += a[i][k] * b[k][j];
            }
        }
    }
    let mut trace = 1.0;
    for i in 0..N {
        trace *= c[i][i];
    }
    trace
}

fn matrix<const N: usize, const M: usize>(x: &[f64]) -> [[f64; M]; N] {
    std::array::from_fn(|i| std::array::from_fn(|j| x[i * M + j]))
}

#[test]
fn constant_generics() {
    let x: Vec<f64> = (0..12).map(|i| 0.5 + (f64::from(i) * 0.8).cos()).collect();
    Field::new("constant generics 2×3", |x| {
        product_trace(&matrix::<2, 3>(x), &matrix::<3, 2>(&x[6..]))
    })
    .reverse(|x, dx, seed| {
        let (mut da, mut db) = (matrix::<2, 3>(dx), matrix::<3, 2>(&dx[6..]));
        let value = dmatrix(
            &matrix::<2, 3>(x),
            &mut da,
            &matrix::<3, 2>(&x[6..]),
            &mut db,
            seed,
        );
        dx.copy_from_slice(&[da.as_flattened(), db.as_flattened()].concat());
        value
    })
    .forward(|x, v| {
        bmatrix(
            &matrix::<2, 3>(x),
            &matrix::<2, 3>(v),
            &matrix::<3, 2>(&x[6..]),
            &matrix::<3, 2>(&v[6..]),
        )
    })
    .check(&x);
    Field::new("constant generics 1×2", |x| {
        product_trace(&matrix::<1, 2>(x), &matrix::<2, 1>(&x[2..]))
    })
    .reverse(|x, dx, seed| {
        let (mut da, mut db) = (matrix::<1, 2>(dx), matrix::<2, 1>(&dx[2..]));
        let value = dmatrix(
            &matrix::<1, 2>(x),
            &mut da,
            &matrix::<2, 1>(&x[2..]),
            &mut db,
            seed,
        );
        dx.copy_from_slice(&[da.as_flattened(), db.as_flattened()].concat());
        value
    })
    .closed_form(|x| vec![x[2], x[3], x[0], x[1]])
    .check(&x[..4]);
}

/// A trait whose method has a derivative: implementors get it with the method.
trait Potential {
    const SHIFT: f64;

    fn strength(&self) -> f64;

    #[autodiff_reverse(energy_reverse, Const, Duplicated, Active)]
    #[autodiff_forward(energy_forward, Const, Dual, Dual)]
    fn energy(&self, x: &[f64]) -> f64 {
        let mut sum = 0.0;
        for pair in x.windows(2) {
            let distance = pair[1] - pair[0] - Self::SHIFT;
            sum += self.strength() * distance * distance;
        }
        sum
    }
}

struct Spring {
    stiffness: f64,
}

impl Potential for Spring {
    const SHIFT: f64 = 1.0;
    fn strength(&self) -> f64 {
        0.5 * self.stiffness
    }
}

struct Unit;

impl Potential for Unit {
    const SHIFT: f64 = 0.0;
    fn strength(&self) -> f64 {
        1.0
    }
    fn energy(&self, x: &[f64]) -> f64 {
        x.iter().map(|x| x * x * x).sum()
    }
}

fn check_potential(name: &str, potential: &impl Potential) {
    Field::new(name, |x| potential.energy(x))
        .reverse(|x, dx, seed| potential.energy_reverse(x, dx, seed))
        .forward(|x, v| potential.energy_forward(x, v))
        .check(&[0.0, 1.5, 2.0, 4.0]);
}

#[test]
fn derivative_of_a_trait_method() {
    check_potential("spring", &Spring { stiffness: 3.0 });
    check_potential("override of a trait method", &Unit);
}

/// Attributes in an implementation, on a method whose receiver is active.
struct Gaussian {
    mean: f64,
    deviation: f64,
}

trait Density {
    fn log_density(&self, x: f64) -> f64;
}

impl Density for Gaussian {
    fn log_density(&self, x: f64) -> f64 {
        let z = (x - self.mean) / self.deviation;
        -0.5 * z * z - self.deviation.ln()
    }
}

impl Gaussian {
    #[autodiff_reverse(likelihood_reverse, Duplicated, Const, Active)]
    #[autodiff_forward(likelihood_forward, Dual, Const, Dual)]
    fn likelihood(&self, samples: &[f64]) -> f64 {
        total(self, samples)
    }
}

fn total<D: Density + ?Sized>(density: &D, samples: &[f64]) -> f64 {
    samples.iter().map(|&x| density.log_density(x)).sum()
}

#[test]
fn derivative_by_the_receiver() {
    let samples = [0.5, 1.5, -0.25];
    let gaussian = |x: &[f64]| Gaussian {
        mean: x[0],
        deviation: x[1],
    };
    Field::new("likelihood", |x| gaussian(x).likelihood(&samples))
        .reverse(|x, dx, seed| {
            let mut shadow = gaussian(dx);
            let value = gaussian(x).likelihood_reverse(&mut shadow, &samples, seed);
            dx[0] = shadow.mean;
            dx[1] = shadow.deviation;
            value
        })
        .forward(|x, v| gaussian(x).likelihood_forward(&gaussian(v), &samples))
        .closed_form(|x| {
            let (m, s) = (x[0], x[1]);
            let by_mean = samples.iter().map(|y| (y - m) / (s * s)).sum();
            let by_deviation = samples
                .iter()
                .map(|y| (y - m).powi(2) / s.powi(3) - 1.0 / s)
                .sum();
            vec![by_mean, by_deviation]
        })
        .check(&[0.3, 1.25]);
}

/// Dual numbers of the user's own inside a differentiated function: derivative of a derivative.
#[derive(Clone, Copy, Default)]
struct Dual {
    value: f64,
    tangent: f64,
}

impl Add for Dual {
    type Output = Dual;
    fn add(self, other: Dual) -> Dual {
        Dual {
            value: self.value + other.value,
            tangent: self.tangent + other.tangent,
        }
    }
}

impl Sub for Dual {
    type Output = Dual;
    fn sub(self, other: Dual) -> Dual {
        Dual {
            value: self.value - other.value,
            tangent: self.tangent - other.tangent,
        }
    }
}

impl Mul for Dual {
    type Output = Dual;
    fn mul(self, other: Dual) -> Dual {
        Dual {
            value: self.value * other.value,
            tangent: self.tangent * other.value + self.value * other.tangent,
        }
    }
}

impl Real for Dual {
    fn sine(self) -> Dual {
        Dual {
            value: self.value.sin(),
            tangent: self.tangent * self.value.cos(),
        }
    }
    fn from_f64(value: f64) -> Dual {
        Dual {
            value,
            tangent: 0.0,
        }
    }
}

#[autodiff_reverse(dtangent, Active, ActiveOnly)]
fn tangent_of_wave(x: f64) -> f64 {
    wave(&[Dual {
        value: x,
        tangent: 1.0,
    }])
    .tangent
}

#[test]
fn users_own_dual_numbers() {
    // (x sin x)'' = 2 cos x - x sin x
    let x = 0.8f64;
    assert_close(
        "second derivative",
        dtangent(x, 1.0),
        2.0 * x.cos() - x * x.sin(),
        EXACT,
    );
}

/// A generic function with a closure as a type parameter, where clauses and lifetimes.
#[autodiff_reverse(dwith, Duplicated, Const, Active)]
fn apply_to_all<'a, F>(x: &'a [f64], f: F) -> f64
where
    F: Fn(f64) -> f64 + Copy + 'a,
{
    x.iter().map(|&x| f(x)).sum()
}

#[test]
fn generic_over_a_closure() {
    let factor = 3.0;
    let mut dx = [0.0; 3];
    dwith(&[1.0, 2.0, 3.0], &mut dx, |x| factor * x * x, 1.0);
    assert_all_close(
        "closure as a type parameter",
        &dx,
        &[6.0, 12.0, 18.0],
        EXACT,
    );
    let mut dx = [0.0; 1];
    dwith(&[0.5], &mut dx, f64::exp, 1.0);
    assert_all_close("method as a type parameter", &dx, &[0.5f64.exp()], EXACT);
}
