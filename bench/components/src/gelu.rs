//! GELU in its approximation by the hyperbolic tangent, elementwise.

use ferrozyme::autodiff_reverse;

const SCALE: f32 = 0.797_884_6; // √(2/π)
const CUBE: f32 = 0.044_715;

/// The forward pass.
#[autodiff_reverse(forward_and_backward, Duplicated, Duplicated)]
#[autodiff_reverse(backward, Duplicated, DuplicatedOnly)]
pub fn forward(input: &[f32], output: &mut [f32]) {
    for i in 0..input.len() {
        let x = input[i];
        output[i] = 0.5 * x * (1.0 + (SCALE * (x + CUBE * x * x * x)).tanh());
    }
}

/// The backward pass by hand: one hyperbolic tangent per element, as in the forward pass.
pub fn backward_by_hand(input: &[f32], dinput: &mut [f32], doutput: &[f32]) {
    let dinput = &mut dinput[..input.len()];
    let doutput = &doutput[..input.len()];
    for i in 0..input.len() {
        let x = input[i];
        let t = (SCALE * (x + CUBE * x * x * x)).tanh();
        let slope = 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * SCALE * (1.0 + 3.0 * CUBE * x * x);
        dinput[i] += slope * doutput[i];
    }
}
