//! Layer norm: rows are normalised to mean 0 and variance 1, then scaled and shifted.

use crate::sum_of_products;
use ferrozyme::autodiff_reverse;

/// The forward pass. The mean and the reciprocal deviation of each row are kept, as in llm.c.
#[autodiff_reverse(
    forward_and_backward,
    Duplicated,
    Duplicated,
    Duplicated,
    Duplicated,
    Duplicated,
    Duplicated
)]
#[autodiff_reverse(
    backward,
    Duplicated,
    Duplicated,
    Duplicated,
    DuplicatedOnly,
    DuplicatedOnly,
    DuplicatedOnly
)]
pub fn forward(
    input: &[f32],
    weight: &[f32],
    bias: &[f32],
    means: &mut [f32],
    reciprocals: &mut [f32],
    output: &mut [f32],
) {
    let channels = weight.len();
    for t in 0..means.len() {
        let x = &input[t * channels..(t + 1) * channels];
        let y = &mut output[t * channels..(t + 1) * channels];
        let mut mean = 0.0;
        for i in 0..channels {
            mean += x[i];
        }
        mean /= channels as f32;
        let mut variance = 0.0;
        for i in 0..channels {
            let centred = x[i] - mean;
            variance += centred * centred;
        }
        variance /= channels as f32;
        let reciprocal = 1.0 / (variance + 1e-5).sqrt();
        for i in 0..channels {
            y[i] = reciprocal * (x[i] - mean) * weight[i] + bias[i];
        }
        means[t] = mean;
        reciprocals[t] = reciprocal;
    }
}

/// The backward pass by hand. It needs the means and reciprocal deviations, which the forward pass kept.
pub fn backward_by_hand(
    input: &[f32],
    dinput: &mut [f32],
    weight: &[f32],
    dweight: &mut [f32],
    dbias: &mut [f32],
    means: &[f32],
    reciprocals: &[f32],
    doutput: &[f32],
) {
    let channels = weight.len();
    let dbias = &mut dbias[..channels];
    let dweight = &mut dweight[..channels];
    let mut dnormalised = vec![0.0; channels];
    let mut normalised = vec![0.0; channels];
    for t in 0..means.len() {
        let x = &input[t * channels..(t + 1) * channels];
        let dx = &mut dinput[t * channels..(t + 1) * channels];
        let dy = &doutput[t * channels..(t + 1) * channels];
        let (mean, reciprocal) = (means[t], reciprocals[t]);
        for i in 0..channels {
            normalised[i] = (x[i] - mean) * reciprocal;
            dnormalised[i] = weight[i] * dy[i];
            dbias[i] += dy[i];
            dweight[i] += normalised[i] * dy[i];
        }
        let along = sum_of_products(&dnormalised, &normalised) / channels as f32;
        let constant = sum_of_products(weight, dy) / channels as f32;
        for i in 0..channels {
            dx[i] += (dnormalised[i] - constant - normalised[i] * along) * reciprocal;
        }
    }
}
