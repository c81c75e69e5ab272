//! The layers of the model: for each a forward pass, and a backward pass written by hand.
//!
//! The forward passes are what Ferrozyme differentiates. The backward passes add to the gradients that they are given, and use what the
//! forward pass kept.

pub mod attention;
pub mod cross_entropy;
pub mod embedding;
pub mod gelu;
pub mod layer_norm;
pub mod linear;
pub mod residual;

use crate::real::Real;

/// Σ aᵢ bᵢ.
///
/// Sixteen partial sums run side by side: one sum would have to be taken in order, number by number.
#[inline]
pub fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    const LANES: usize = 16;
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let mut total = T::ZERO;
    for (&a, &b) in a.remainder().iter().zip(b.remainder()) {
        total += a * b;
    }
    let mut sums = [T::ZERO; LANES];
    for (a, b) in a.zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    for sum in sums {
        total += sum;
    }
    total
}

/// yᵢ += factor · xᵢ
#[inline]
pub fn add_scaled<T: Real>(y: &mut [T], factor: T, x: &[T]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y += factor * x;
    }
}
