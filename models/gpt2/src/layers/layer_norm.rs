//! Layer norm: each row is normalised to mean 0 and variance 1, then scaled and shifted channel by channel.

use crate::layers::dot;
use crate::real::Real;
use crate::tensors::{row, row_mut};

/// The forward pass. It keeps the mean and the reciprocal deviation of each row.
pub fn forward<T: Real>(
    input: &[T],
    weight: &[T],
    bias: &[T],
    means: &mut [T],
    reciprocals: &mut [T],
    output: &mut [T],
) {
    let channels = weight.len();
    for t in 0..means.len() {
        let x = row(input, t, channels);
        let mut mean = T::ZERO;
        for i in 0..channels {
            mean += x[i];
        }
        mean /= T::of(channels as f64);
        let mut variance = T::ZERO;
        for i in 0..channels {
            let centred = x[i] - mean;
            variance += centred * centred;
        }
        variance /= T::of(channels as f64);
        let reciprocal = T::ONE / (variance + T::of(1e-5)).sqrt();
        let y = row_mut(output, t, channels);
        for i in 0..channels {
            y[i] = (x[i] - mean) * reciprocal * weight[i] + bias[i];
        }
        means[t] = mean;
        reciprocals[t] = reciprocal;
    }
}

/// The backward pass. With n the normalised row and d its gradient: dx = (d − mean(d) − n · mean(d·n)) / deviation.
pub fn backward<T: Real>(
    input: &[T],
    input_grads: &mut [T],
    weight: &[T],
    weight_grads: &mut [T],
    bias_grads: &mut [T],
    means: &[T],
    reciprocals: &[T],
    output_grads: &[T],
) {
    let channels = weight.len();
    let count = T::of(channels as f64);
    let dbias = &mut bias_grads[..channels];
    let dweight = &mut weight_grads[..channels];
    let mut normalised = vec![T::ZERO; channels];
    let mut dnormalised = vec![T::ZERO; channels];
    for t in 0..means.len() {
        let x = row(input, t, channels);
        let dx = row_mut(input_grads, t, channels);
        let dy = row(output_grads, t, channels);
        let (mean, reciprocal) = (means[t], reciprocals[t]);
        for i in 0..channels {
            normalised[i] = (x[i] - mean) * reciprocal;
            dnormalised[i] = weight[i] * dy[i];
            dbias[i] += dy[i];
            dweight[i] += normalised[i] * dy[i];
        }
        let constant = dot(weight, dy) / count;
        let along = dot(&normalised, &dnormalised) / count;
        for i in 0..channels {
            dx[i] += (dnormalised[i] - constant - normalised[i] * along) * reciprocal;
        }
    }
}
