//! The matrix product: output = input · weightᵀ + bias, where a row of weights belongs to one output.
//!
//! Both passes take the weights row by row, so that a row and its gradient, once they are in the cache, serve all tokens.

use crate::layers::{add_scaled, dot};
use crate::real::Real;
use crate::tensors::{row, row_mut};

/// The forward pass. There are as many outputs as `bias` has numbers.
pub fn forward<T: Real>(
    tokens: usize,
    input: &[T],
    weight: &[T],
    bias: &[T],
    channels: usize,
    output: &mut [T],
) {
    let outputs = bias.len();
    for o in 0..outputs {
        let w = row(weight, o, channels);
        for t in 0..tokens {
            output[t * outputs + o] = bias[o] + dot(row(input, t, channels), w);
        }
    }
}

/// The forward pass without a bias.
pub fn forward_without_bias<T: Real>(
    tokens: usize,
    input: &[T],
    weight: &[T],
    channels: usize,
    outputs: usize,
    output: &mut [T],
) {
    for o in 0..outputs {
        let w = row(weight, o, channels);
        for t in 0..tokens {
            output[t * outputs + o] = dot(row(input, t, channels), w);
        }
    }
}

/// The backward pass: that of the product, and the sum over tokens for the bias.
pub fn backward<T: Real>(
    tokens: usize,
    input: &[T],
    input_grads: &mut [T],
    weight: &[T],
    weight_grads: &mut [T],
    bias_grads: &mut [T],
    channels: usize,
    output_grads: &[T],
) {
    let outputs = bias_grads.len();
    for t in 0..tokens {
        let dy = row(output_grads, t, outputs);
        for o in 0..outputs {
            bias_grads[o] += dy[o];
        }
    }
    backward_without_bias(
        tokens,
        input,
        input_grads,
        weight,
        weight_grads,
        channels,
        outputs,
        output_grads,
    );
}

/// The backward pass without a bias: dx += dy · w and dw += dyᵀ · x.
pub fn backward_without_bias<T: Real>(
    tokens: usize,
    input: &[T],
    input_grads: &mut [T],
    weight: &[T],
    weight_grads: &mut [T],
    channels: usize,
    outputs: usize,
    output_grads: &[T],
) {
    for o in 0..outputs {
        let w = row(weight, o, channels);
        let dw = row_mut(weight_grads, o, channels);
        for t in 0..tokens {
            let d = output_grads[t * outputs + o];
            add_scaled(row_mut(input_grads, t, channels), d, w);
            add_scaled(dw, d, row(input, t, channels));
        }
    }
}
