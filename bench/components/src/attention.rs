//! Causal multi-head attention, as in llm.c: queries, keys and values of a token are contiguous in `input`.

use crate::sum_of_products;
use ferrozyme::autodiff_reverse;

/// The forward pass. `scores` and `weights` hold a square of `steps` numbers for each sequence and head, before and after the softmax.
#[autodiff_reverse(
    forward_and_backward,
    Duplicated,
    Duplicated,
    Duplicated,
    Duplicated,
    Const,
    Const,
    Const
)]
#[autodiff_reverse(
    backward,
    Duplicated,
    DuplicatedOnly,
    DuplicatedOnly,
    DuplicatedOnly,
    Const,
    Const,
    Const
)]
pub fn forward(
    input: &[f32],
    scores: &mut [f32],
    weights: &mut [f32],
    output: &mut [f32],
    steps: usize,
    channels: usize,
    heads: usize,
) {
    let size = channels / heads;
    let scale = 1.0 / (size as f32).sqrt();
    for b in 0..input.len() / (steps * 3 * channels) {
        for t in 0..steps {
            for h in 0..heads {
                let at = |t: usize, part: usize| {
                    (b * steps + t) * 3 * channels + part * channels + h * size
                };
                let query = &input[at(t, 0)..at(t, 0) + size];
                let row = ((b * heads + h) * steps + t) * steps;
                let scores = &mut scores[row..row + steps];
                let weights = &mut weights[row..row + steps];

                // Query times keys, and their maximum.
                let mut largest = f32::NEG_INFINITY;
                for s in 0..=t {
                    let key = &input[at(s, 1)..at(s, 1) + size];
                    let mut sum = 0.0;
                    for i in 0..size {
                        sum += query[i] * key[i];
                    }
                    sum *= scale;
                    if sum > largest {
                        largest = sum;
                    }
                    scores[s] = sum;
                }

                // Softmax.
                let mut sum = 0.0;
                for s in 0..=t {
                    let e = (scores[s] - largest).exp();
                    sum += e;
                    weights[s] = e;
                }
                let factor = if sum == 0.0 { 0.0 } else { 1.0 / sum };
                for s in 0..steps {
                    if s <= t {
                        weights[s] *= factor;
                    } else {
                        weights[s] = 0.0;
                    }
                }

                // Weighted sum of the values.
                let out = (b * steps + t) * channels + h * size;
                let output = &mut output[out..out + size];
                for i in 0..size {
                    output[i] = 0.0;
                }
                for s in 0..=t {
                    let value = &input[at(s, 2)..at(s, 2) + size];
                    let weight = weights[s];
                    for i in 0..size {
                        output[i] += weight * value[i];
                    }
                }
            }
        }
    }
}

/// The backward pass by hand. It needs the softmax's results, which the forward pass kept.
pub fn backward_by_hand(
    input: &[f32],
    dinput: &mut [f32],
    weights: &[f32],
    doutput: &[f32],
    steps: usize,
    channels: usize,
    heads: usize,
) {
    let size = channels / heads;
    let scale = 1.0 / (size as f32).sqrt();
    let mut dweights = vec![0.0; steps];
    for b in 0..input.len() / (steps * 3 * channels) {
        for t in 0..steps {
            for h in 0..heads {
                let at = |t: usize, part: usize| {
                    (b * steps + t) * 3 * channels + part * channels + h * size
                };
                let row = ((b * heads + h) * steps + t) * steps;
                let weights = &weights[row..row + steps];
                let out = (b * steps + t) * channels + h * size;
                let dout = &doutput[out..out + size];

                // Weighted sum of the values.
                for s in 0..=t {
                    let value = &input[at(s, 2)..at(s, 2) + size];
                    dweights[s] = sum_of_products(value, dout);
                    let dvalue = &mut dinput[at(s, 2)..at(s, 2) + size];
                    let weight = weights[s];
                    for i in 0..size {
                        dvalue[i] += weight * dout[i];
                    }
                }

                // Softmax.
                let mean = sum_of_products(&weights[..=t], &dweights[..=t]);

                // Query times keys.
                let query = &input[at(t, 0)..at(t, 0) + size];
                for s in 0..=t {
                    let dscore = weights[s] * (dweights[s] - mean) * scale;
                    let key = &input[at(s, 1)..at(s, 1) + size];
                    let dquery = &mut dinput[at(t, 0)..at(t, 0) + size];
                    for i in 0..size {
                        dquery[i] += key[i] * dscore;
                    }
                    let dkey = &mut dinput[at(s, 1)..at(s, 1) + size];
                    for i in 0..size {
                        dkey[i] += query[i] * dscore;
                    }
                }
            }
        }
    }
}
