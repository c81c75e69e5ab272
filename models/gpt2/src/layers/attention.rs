//! Causal multi-head attention: queries, keys and values of a token are contiguous in `input`.

use crate::layers::{add_scaled, dot};
use crate::real::Real;

/// Where things are.
#[derive(Clone, Copy)]
struct Places {
    steps: usize,
    channels: usize,
    heads: usize,
}

impl Places {
    fn head_size(&self) -> usize {
        self.channels / self.heads
    }

    /// The part of token `t` in sequence `b` that head `h` calls its query (0), key (1) or value (2).
    fn part(&self, b: usize, t: usize, h: usize, part: usize) -> std::ops::Range<usize> {
        let start = ((b * self.steps + t) * 3 + part) * self.channels + h * self.head_size();
        start..start + self.head_size()
    }

    /// The row of scores of token `t`.
    fn scores(&self, b: usize, t: usize, h: usize) -> std::ops::Range<usize> {
        let start = ((b * self.heads + h) * self.steps + t) * self.steps;
        start..start + self.steps
    }

    /// The part of the output of head `h`.
    fn output(&self, b: usize, t: usize, h: usize) -> std::ops::Range<usize> {
        let start = (b * self.steps + t) * self.channels + h * self.head_size();
        start..start + self.head_size()
    }
}

/// The forward pass. `scores` and `weights` hold a square of `steps` numbers for each sequence and head, before and after the softmax.
pub fn forward<T: Real>(
    input: &[T],
    scores: &mut [T],
    weights: &mut [T],
    output: &mut [T],
    steps: usize,
    channels: usize,
    heads: usize,
) {
    let places = Places {
        steps,
        channels,
        heads,
    };
    let scale = T::ONE / T::of(places.head_size() as f64).sqrt();
    for b in 0..input.len() / (steps * 3 * channels) {
        for h in 0..heads {
            for t in 0..steps {
                let scores = &mut scores[places.scores(b, t, h)];
                let weights = &mut weights[places.scores(b, t, h)];

                // How well the query fits each key up to its own.
                let query = &input[places.part(b, t, h, 0)];
                let mut largest = T::LOWEST;
                for s in 0..=t {
                    let score = scale * dot(query, &input[places.part(b, s, h, 1)]);
                    if score > largest {
                        largest = score;
                    }
                    scores[s] = score;
                }

                // Softmax.
                let mut sum = T::ZERO;
                for s in 0..=t {
                    weights[s] = (scores[s] - largest).exp();
                    sum += weights[s];
                }
                let factor = T::ONE / sum;
                for s in 0..=t {
                    weights[s] *= factor;
                }
                for s in t + 1..steps {
                    weights[s] = T::ZERO;
                }

                // The weighted sum of the values.
                let y = &mut output[places.output(b, t, h)];
                y.fill(T::ZERO);
                for s in 0..=t {
                    add_scaled(y, weights[s], &input[places.part(b, s, h, 2)]);
                }
            }
        }
    }
}

/// The backward pass. With p the softmax's results and d their gradient, the scores have p · (d − Σ p·d).
pub fn backward<T: Real>(
    input: &[T],
    input_grads: &mut [T],
    weights: &[T],
    output_grads: &[T],
    steps: usize,
    channels: usize,
    heads: usize,
) {
    let places = Places {
        steps,
        channels,
        heads,
    };
    let scale = T::ONE / T::of(places.head_size() as f64).sqrt();
    let mut dweights = vec![T::ZERO; steps];
    for b in 0..input.len() / (steps * 3 * channels) {
        for h in 0..heads {
            for t in 0..steps {
                let weights = &weights[places.scores(b, t, h)];
                let dy = &output_grads[places.output(b, t, h)];

                // The weighted sum of the values.
                for s in 0..=t {
                    let value = places.part(b, s, h, 2);
                    dweights[s] = dot(&input[value.clone()], dy);
                    add_scaled(&mut input_grads[value], weights[s], dy);
                }

                // Softmax, and queries times keys.
                let mean = dot(&weights[..=t], &dweights[..=t]);
                let query = places.part(b, t, h, 0);
                for s in 0..=t {
                    let dscore = weights[s] * (dweights[s] - mean) * scale;
                    let key = places.part(b, s, h, 1);
                    add_scaled(&mut input_grads[query.clone()], dscore, &input[key.clone()]);
                    add_scaled(&mut input_grads[key], dscore, &input[query.clone()]);
                }
            }
        }
    }
}
