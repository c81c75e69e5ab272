//! Vector instructions of the processor, chosen by what it can do, and functions that work on the bits of floats.

#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::*;

use ferrozyme_programs::check_function;

#[target_feature(enable = "avx,fma")]
fn product_by_avx(a: &[f64], b: &[f64]) -> f64 {
    let whole = a.len() / 4;
    let mut sums = _mm256_setzero_pd();
    for i in 0..whole {
        // Both slices have four elements from there on.
        let (a, b) = unsafe {
            (
                _mm256_loadu_pd(a.as_ptr().add(4 * i)),
                _mm256_loadu_pd(b.as_ptr().add(4 * i)),
            )
        };
        sums = _mm256_fmadd_pd(a, b, sums);
    }
    let sums = _mm256_max_pd(sums, _mm256_setzero_pd());
    let sums = _mm256_hadd_pd(sums, sums);
    let mut lanes = [0.0; 4];
    // There is room for four lanes.
    unsafe { _mm256_storeu_pd(lanes.as_mut_ptr(), sums) };
    let rest = a[4 * whole..].iter().zip(&b[4 * whole..]);
    lanes[0] + lanes[2] + rest.map(|(a, b)| a * b).sum::<f64>()
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    if is_x86_feature_detected!("avx") && is_x86_feature_detected!("fma") {
        // The processor can do it.
        unsafe { product_by_avx(a, b) }
    } else {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }
}

fn length(x: &[f64]) -> f64 {
    product(x, x).sqrt()
}

#[target_feature(enable = "sse2")]
fn minima_and_masks_by_sse(x: &[f64]) -> f64 {
    // There are four elements.
    let (a, b) = unsafe { (_mm_loadu_pd(x.as_ptr()), _mm_loadu_pd(x.as_ptr().add(2))) };
    let products = _mm_mul_pd(_mm_sqrt_pd(a), _mm_min_pd(b, a));
    let largest = _mm_max_pd(products, b);
    let smaller = _mm_cmplt_pd(a, b);
    let chosen = _mm_or_pd(_mm_and_pd(smaller, a), _mm_andnot_pd(smaller, b));
    let negative = _mm_xor_pd(chosen, _mm_set1_pd(-0.0));
    let sizes = _mm_andnot_pd(_mm_set1_pd(-0.0), negative);
    let sum = _mm_add_pd(_mm_mul_pd(largest, largest), _mm_mul_pd(sizes, negative));
    let sum = _mm_add_sd(sum, _mm_unpackhi_pd(sum, sum));
    _mm_cvtsd_f64(sum)
        * match _mm_movemask_pd(smaller) {
            3 => 2.0,
            _ => 3.0,
        }
}

fn minima_and_masks(x: &[f64]) -> f64 {
    // Every processor of this kind can do it.
    unsafe { minima_and_masks_by_sse(x) }
}

#[test]
fn vector_instructions() {
    check_function!(length, &[0.3, 0.7, 1.1, 0.2, 0.9, 0.4]);
    check_function!(minima_and_masks, &[0.3, 0.7, 1.1, 0.2]);
}

fn signs(x: &[f64]) -> f64 {
    const SIGN: u64 = 1 << 63;
    let size = f64::from_bits(x[0].to_bits() & !SIGN);
    let other = f64::from_bits(x[1].to_bits() ^ SIGN);
    let negative = f64::from_bits(x[2].to_bits() | SIGN);
    size * other + negative * negative * negative
}

fn library(x: &[f64]) -> f64 {
    libm::sin(x[0]) * libm::exp(x[1])
        + libm::pow(x[2], x[0])
        + libm::tanh(x[1]) * libm::cbrt(x[2])
        + libm::lgamma(x[2]) * libm::erf(x[0])
        + libm::fabs(x[1])
        + libm::sqrt(x[2])
}

/// Functions of two results.
fn library_pairs(x: &[f64]) -> f64 {
    let (mantissa, exponent) = libm::frexp(x[0] * 5.0);
    let (rest, quotient) = libm::remquo(x[2] * 7.0, x[0]);
    let (gamma, sign) = libm::lgamma_r(x[1]);
    mantissa * f64::from(exponent) + rest * rest * f64::from(quotient & 7) + gamma * f64::from(sign)
}

#[test]
fn bits_of_floats() {
    check_function!(library_pairs, &[0.3, 0.7, 1.1]);
    check_function!(library_pairs, &[0.41, 1.6, -2.3]);
    check_function!(signs, &[0.3, 0.7, 1.1]);
    check_function!(signs, &[-0.3, -0.7, -1.1]);
    check_function!(library, &[0.3, 0.7, 1.1]);
}
