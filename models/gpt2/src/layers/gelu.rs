//! GELU in its form with the hyperbolic tangent: ½x (1 + tanh(√(2/π) (x + 0.044715 x³))).

use crate::real::Real;

const SCALE: f64 = 0.797_884_560_802_865_4; // √(2/π)
const CUBE: f64 = 0.044715;

/// The forward pass.
pub fn forward<T: Real>(input: &[T], output: &mut [T]) {
    let (half, scale, cube) = (T::of(0.5), T::of(SCALE), T::of(CUBE));
    for (y, &x) in output.iter_mut().zip(input) {
        *y = half * x * (T::ONE + (scale * (x + cube * x * x * x)).tanh());
    }
}

/// The backward pass, with one hyperbolic tangent for each number, as in the forward pass.
pub fn backward<T: Real>(input: &[T], input_grads: &mut [T], output_grads: &[T]) {
    let (half, scale, cube) = (T::of(0.5), T::of(SCALE), T::of(CUBE));
    let three = T::of(3.0);
    for ((dx, &x), &dy) in input_grads.iter_mut().zip(input).zip(output_grads) {
        let tanh = (scale * (x + cube * x * x * x)).tanh();
        let inner = scale * (T::ONE + three * cube * x * x);
        let slope = half * (T::ONE + tanh) + half * x * (T::ONE - tanh * tanh) * inner;
        *dx += slope * dy;
    }
}
