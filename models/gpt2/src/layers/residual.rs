//! The residual connection: what a block adds to its input.

use crate::real::Real;

/// The forward pass.
pub fn forward<T: Real>(input: &[T], added: &[T], output: &mut [T]) {
    for ((y, &x), &added) in output.iter_mut().zip(input).zip(added) {
        *y = x + added;
    }
}

/// The backward pass.
pub fn backward<T: Real>(input_grads: &mut [T], added_grads: &mut [T], output_grads: &[T]) {
    for ((dx, dadded), &dy) in input_grads.iter_mut().zip(added_grads).zip(output_grads) {
        *dx += dy;
        *dadded += dy;
    }
}
