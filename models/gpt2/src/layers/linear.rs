//! The matrix product: output = input · weightᵀ + bias, where a row of weights belongs to one output.
//!
//! Both passes take the tokens in blocks, so that a row of weights, once it is in the cache, serves all of a block.

use crate::layers::{add_scaled, dot};
use crate::real::Real;
use crate::tensors::{row, row_mut};

/// Tokens that share a row of weights. Their rows of inputs fit into the first cache.
const BLOCK: usize = 8;

/// The forward pass. There are as many outputs as `bias` has numbers.
pub fn forward<T: Real>(input: &[T], weight: &[T], bias: &[T], channels: usize, output: &mut [T]) {
    let outputs = bias.len();
    for (input, output) in blocks(input, channels).zip(blocks_mut(output, outputs)) {
        for o in 0..outputs {
            let w = row(weight, o, channels);
            for t in 0..input.len() / channels {
                output[t * outputs + o] = bias[o] + dot(row(input, t, channels), w);
            }
        }
    }
}

/// The forward pass without a bias.
pub fn forward_without_bias<T: Real>(
    input: &[T],
    weight: &[T],
    channels: usize,
    outputs: usize,
    output: &mut [T],
) {
    for (input, output) in blocks(input, channels).zip(blocks_mut(output, outputs)) {
        for o in 0..outputs {
            let w = row(weight, o, channels);
            for t in 0..input.len() / channels {
                output[t * outputs + o] = dot(row(input, t, channels), w);
            }
        }
    }
}

/// The backward pass: that of the product, and the sum over tokens for the bias.
pub fn backward<T: Real>(
    input: &[T],
    input_grads: &mut [T],
    weight: &[T],
    weight_grads: &mut [T],
    bias_grads: &mut [T],
    channels: usize,
    output_grads: &[T],
) {
    let outputs = bias_grads.len();
    for dy in output_grads.chunks_exact(outputs) {
        for o in 0..outputs {
            bias_grads[o] += dy[o];
        }
    }
    backward_without_bias(
        input,
        input_grads,
        weight,
        weight_grads,
        channels,
        outputs,
        output_grads,
    );
}

/// The backward pass without a bias: dx += dy · w and dw += dyᵀ · x, a row of weights and a block of tokens at a time.
pub fn backward_without_bias<T: Real>(
    input: &[T],
    input_grads: &mut [T],
    weight: &[T],
    weight_grads: &mut [T],
    channels: usize,
    outputs: usize,
    output_grads: &[T],
) {
    let grads = blocks_mut(input_grads, channels).zip(blocks(output_grads, outputs));
    for (input, (dinput, doutput)) in blocks(input, channels).zip(grads) {
        for o in 0..outputs {
            let w = row(weight, o, channels);
            let dw = row_mut(weight_grads, o, channels);
            for t in 0..input.len() / channels {
                let d = doutput[t * outputs + o];
                add_scaled(row_mut(dinput, t, channels), d, w);
                add_scaled(dw, d, row(input, t, channels));
            }
        }
    }
}

fn blocks<T>(rows: &[T], length: usize) -> impl Iterator<Item = &[T]> {
    rows.chunks(BLOCK * length)
}

fn blocks_mut<T>(rows: &mut [T], length: usize) -> impl Iterator<Item = &mut [T]> {
    rows.chunks_mut(BLOCK * length)
}
