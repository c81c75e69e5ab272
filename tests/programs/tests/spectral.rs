//! Fourier transforms: recursive, iterative in place, and a convolution through them.

use std::f64::consts::PI;

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{Field, Mapping};

#[derive(Clone, Copy, Debug, Default)]
struct Complex {
    re: f64,
    im: f64,
}

impl std::ops::Add for Complex {
    type Output = Complex;
    fn add(self, other: Complex) -> Complex {
        Complex {
            re: self.re + other.re,
            im: self.im + other.im,
        }
    }
}

impl std::ops::Sub for Complex {
    type Output = Complex;
    fn sub(self, other: Complex) -> Complex {
        Complex {
            re: self.re - other.re,
            im: self.im - other.im,
        }
    }
}

impl std::ops::Mul for Complex {
    type Output = Complex;
    fn mul(self, other: Complex) -> Complex {
        Complex {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

impl Complex {
    fn unit(angle: f64) -> Complex {
        Complex {
            re: angle.cos(),
            im: angle.sin(),
        }
    }
    fn square_modulus(self) -> f64 {
        self.re * self.re + self.im * self.im
    }
}

fn recursive_transform(x: &[Complex]) -> Vec<Complex> {
    let n = x.len();
    if n == 1 {
        return x.to_vec();
    }
    let even: Vec<Complex> = x.iter().step_by(2).copied().collect();
    let odd: Vec<Complex> = x.iter().skip(1).step_by(2).copied().collect();
    let (even, odd) = (recursive_transform(&even), recursive_transform(&odd));
    let mut result = vec![Complex::default(); n];
    for k in 0..n / 2 {
        let turned = Complex::unit(-2.0 * PI * k as f64 / n as f64) * odd[k];
        result[k] = even[k] + turned;
        result[k + n / 2] = even[k] - turned;
    }
    result
}

#[autodiff_reverse(drecursive, Duplicated, Active)]
#[autodiff_forward(brecursive, Dual, Dual)]
fn weighted_spectrum(signal: &[f64]) -> f64 {
    let signal: Vec<Complex> = signal.iter().map(|&re| Complex { re, im: 0.0 }).collect();
    recursive_transform(&signal)
        .iter()
        .enumerate()
        .map(|(k, c)| k as f64 * c.square_modulus())
        .sum()
}

#[test]
fn recursive_fourier_transform() {
    Field::new("recursive FFT", weighted_spectrum)
        .reverse(drecursive)
        .forward(brecursive)
        .check(&[1.0, 0.5, -2.0, 0.25, 3.0, -1.0, 0.75, 1.5]);
}

/// The usual iterative transform: bit reversal, then butterflies of growing span, in place.
fn transform_in_place(data: &mut [Complex], sign: f64) {
    let n = data.len();
    assert!(n.is_power_of_two());
    let mut j = 0;
    for i in 1..n {
        let mut bit = n >> 1;
        while j & bit != 0 {
            j ^= bit;
            bit >>= 1;
        }
        j |= bit;
        if i < j {
            data.swap(i, j);
        }
    }
    let mut span = 2;
    while span <= n {
        let step = Complex::unit(sign * 2.0 * PI / span as f64);
        for block in data.chunks_mut(span) {
            let mut factor = Complex { re: 1.0, im: 0.0 };
            let (low, high) = block.split_at_mut(span / 2);
            for (a, b) in low.iter_mut().zip(high) {
                let turned = *b * factor;
                *b = *a - turned;
                *a = *a + turned;
                factor = factor * step;
            }
        }
        span <<= 1;
    }
}

#[autodiff_reverse(dspectrum, Duplicated, Duplicated)]
#[autodiff_forward(bspectrum, Dual, Dual)]
fn spectrum(signal: &[f64], result: &mut [f64]) {
    let mut data: Vec<Complex> = signal.iter().map(|&re| Complex { re, im: 0.0 }).collect();
    transform_in_place(&mut data, -1.0);
    for (pair, value) in result.chunks_exact_mut(2).zip(&data) {
        pair[0] = value.re;
        pair[1] = value.im;
    }
}

#[test]
fn iterative_fourier_transform() {
    Mapping::new("iterative FFT", 16, spectrum)
        .reverse(dspectrum)
        .forward(bspectrum)
        .check(&[1.0, 0.5, -2.0, 0.25, 3.0, -1.0, 0.75, 1.5]);
}

#[autodiff_reverse(dconvolution, Duplicated, Duplicated, Active)]
#[autodiff_forward(bconvolution, Dual, Dual, Dual)]
fn convolution_energy(x: &[f64], kernel: &[f64]) -> f64 {
    let n = (x.len() + kernel.len()).next_power_of_two();
    let padded = |values: &[f64]| {
        let mut data = vec![Complex::default(); n];
        for (slot, &re) in data.iter_mut().zip(values) {
            slot.re = re;
        }
        transform_in_place(&mut data, -1.0);
        data
    };
    let (left, right) = (padded(x), padded(kernel));
    let mut product: Vec<Complex> = left.iter().zip(&right).map(|(&a, &b)| a * b).collect();
    transform_in_place(&mut product, 1.0);
    product.iter().map(|c| (c.re / n as f64).powi(2)).sum()
}

#[test]
fn convolution_by_transforms() {
    Field::new("convolution by FFT", |z| {
        convolution_energy(&z[..5], &z[5..])
    })
    .reverse(|z, dz, seed| {
        let (dx, dk) = dz.split_at_mut(5);
        dconvolution(&z[..5], dx, &z[5..], dk, seed)
    })
    .forward(|z, v| bconvolution(&z[..5], &v[..5], &z[5..], &v[5..]))
    .closed_form(|z| {
        // The same by definition: y = x * k, gradients by correlation.
        let (x, k) = z.split_at(5);
        let mut y = [0.0; 7];
        for i in 0..5 {
            for j in 0..3 {
                y[i + j] += x[i] * k[j];
            }
        }
        let mut gradient = vec![0.0; 8];
        for i in 0..5 {
            for j in 0..3 {
                gradient[i] += 2.0 * y[i + j] * k[j];
                gradient[5 + j] += 2.0 * y[i + j] * x[i];
            }
        }
        gradient
    })
    .check(&[1.0, 0.5, -2.0, 0.25, 3.0, -1.0, 0.75, 1.5]);
}

#[autodiff_reverse(dhaar, Duplicated, Duplicated)]
#[autodiff_forward(bhaar, Dual, Dual)]
fn haar(x: &[f64], y: &mut [f64]) {
    let mut current = x.to_vec();
    let mut length = x.len();
    while length > 1 {
        let half = length / 2;
        let mut next = vec![0.0; half];
        for i in 0..half {
            let (a, b) = (current[2 * i], current[2 * i + 1]);
            next[i] = (a + b) * std::f64::consts::FRAC_1_SQRT_2;
            y[half + i] = (a - b) * std::f64::consts::FRAC_1_SQRT_2 * a;
        }
        current = next;
        length = half;
    }
    y[0] = current[0];
}

#[test]
fn wavelets() {
    Mapping::new("Haar wavelets", 8, haar)
        .reverse(dhaar)
        .forward(bhaar)
        .check(&[1.0, 0.5, -2.0, 0.25, 3.0, -1.0, 0.75, 1.5]);
}
