//! A block of a transformer with a loss, in parallel inside: rows of products, sequences of attention, elements. Its gradient is also written by hand, in parallel as well.

use ferrozyme::autodiff_reverse;
use rayon::prelude::*;

#[derive(Clone, Copy)]
pub struct Shape {
    pub sequences: usize,
    pub steps: usize,
    pub channels: usize,
    pub heads: usize,
    pub classes: usize,
}

impl Shape {
    /// The sizes of the weights, in their order: queries, keys and values; the projection; up; down; the classes.
    fn sizes(&self) -> [usize; 5] {
        let square = self.channels * self.channels;
        [
            3 * square,
            square,
            4 * square,
            4 * square,
            self.classes * self.channels,
        ]
    }

    pub fn parameters(&self) -> usize {
        self.sizes().iter().sum()
    }

    pub fn tokens(&self) -> usize {
        self.sequences * self.steps
    }

    fn split<'a>(&self, parameters: &'a [f32]) -> [&'a [f32]; 5] {
        let mut rest = parameters;
        self.sizes().map(|size| {
            let (first, others) = rest.split_at(size);
            rest = others;
            first
        })
    }

    fn split_mut<'a>(&self, parameters: &'a mut [f32]) -> [&'a mut [f32]; 5] {
        let mut rest = parameters;
        self.sizes().map(|size| {
            let (first, others) = std::mem::take(&mut rest).split_at_mut(size);
            rest = others;
            first
        })
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add_scaled(y: &mut [f32], factor: f32, x: &[f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += factor * x;
    }
}

fn linear(x: &[f32], weight: &[f32], channels: usize) -> Vec<f32> {
    let outputs = weight.len() / channels;
    let mut out = vec![0.0; x.len() / channels * outputs];
    out.par_chunks_exact_mut(outputs)
        .zip(x.par_chunks_exact(channels))
        .for_each(|(out, row)| {
            for (out, weight) in out.iter_mut().zip(weight.chunks_exact(channels)) {
                *out = dot(row, weight);
            }
        });
    out
}

fn linear_backward(
    x: &[f32],
    weight: &[f32],
    channels: usize,
    d: &[f32],
    dx: &mut [f32],
    dweight: &mut [f32],
) {
    let outputs = weight.len() / channels;
    dx.par_chunks_exact_mut(channels)
        .zip(d.par_chunks_exact(outputs))
        .for_each(|(dx, d)| {
            for (&d, weight) in d.iter().zip(weight.chunks_exact(channels)) {
                add_scaled(dx, d, weight);
            }
        });
    dweight
        .par_chunks_exact_mut(channels)
        .enumerate()
        .for_each(|(o, dweight)| {
            for (x, d) in x.chunks_exact(channels).zip(d.chunks_exact(outputs)) {
                add_scaled(dweight, d[o], x);
            }
        });
}

/// Queries, keys and values of a token stand side by side. Each token looks at those before it and at itself.
fn attention(shape: &Shape, qkv: &[f32], weights: &mut [f32]) -> Vec<f32> {
    let Shape {
        steps,
        channels,
        heads,
        ..
    } = *shape;
    let size = channels / heads;
    let scale = 1.0 / (size as f32).sqrt();
    let mut out = vec![0.0; qkv.len() / 3];
    let all = out
        .par_chunks_exact_mut(steps * channels)
        .zip(qkv.par_chunks_exact(steps * 3 * channels));
    all.zip(weights.par_chunks_exact_mut(heads * steps * steps))
        .for_each(|((out, qkv), weights)| {
            for h in 0..heads {
                for t in 0..steps {
                    let query = &qkv[t * 3 * channels + h * size..][..size];
                    let weights = &mut weights[(h * steps + t) * steps..][..steps];
                    let mut largest = f32::NEG_INFINITY;
                    for u in 0..=t {
                        let key = &qkv[u * 3 * channels + channels + h * size..][..size];
                        weights[u] = scale * dot(query, key);
                        largest = largest.max(weights[u]);
                    }
                    let mut sum = 0.0;
                    for weight in &mut weights[..=t] {
                        *weight = (*weight - largest).exp();
                        sum += *weight;
                    }
                    for weight in &mut weights[..=t] {
                        *weight /= sum;
                    }
                    let out = &mut out[t * channels + h * size..][..size];
                    for u in 0..=t {
                        let value = &qkv[u * 3 * channels + 2 * channels + h * size..][..size];
                        add_scaled(out, weights[u], value);
                    }
                }
            }
        });
    out
}

fn attention_backward(shape: &Shape, qkv: &[f32], weights: &[f32], dout: &[f32], dqkv: &mut [f32]) {
    let Shape {
        steps,
        channels,
        heads,
        ..
    } = *shape;
    let size = channels / heads;
    let scale = 1.0 / (size as f32).sqrt();
    let all = dqkv
        .par_chunks_exact_mut(steps * 3 * channels)
        .zip(qkv.par_chunks_exact(steps * 3 * channels));
    let all = all.zip(weights.par_chunks_exact(heads * steps * steps));
    all.zip(dout.par_chunks_exact(steps * channels))
        .for_each(|(((dqkv, qkv), weights), dout)| {
            let mut d = vec![0.0; steps];
            for h in 0..heads {
                for t in 0..steps {
                    let query = t * 3 * channels + h * size;
                    let weights = &weights[(h * steps + t) * steps..][..steps];
                    let dout = &dout[t * channels + h * size..][..size];
                    for u in 0..=t {
                        let value = u * 3 * channels + 2 * channels + h * size;
                        d[u] = dot(&qkv[value..][..size], dout);
                        add_scaled(&mut dqkv[value..][..size], weights[u], dout);
                    }
                    let mean = dot(&weights[..=t], &d[..=t]);
                    for u in 0..=t {
                        let key = u * 3 * channels + channels + h * size;
                        let d = scale * weights[u] * (d[u] - mean);
                        add_scaled(&mut dqkv[query..][..size], d, &qkv[key..][..size]);
                        add_scaled(&mut dqkv[key..][..size], d, &qkv[query..][..size]);
                    }
                }
            }
        });
}

const SCALE: f32 = 0.797_884_6; // sqrt(2 / pi)
const CUBE: f32 = 0.044_715;

fn gelu(x: &[f32]) -> Vec<f32> {
    let mut out = vec![0.0; x.len()];
    out.par_iter_mut().zip(x).for_each(|(y, &x)| {
        *y = 0.5 * x * (1.0 + (SCALE * (x + CUBE * x * x * x)).tanh());
    });
    out
}

fn gelu_backward(x: &[f32], d: &mut [f32]) {
    d.par_iter_mut().zip(x).for_each(|(d, &x)| {
        let t = (SCALE * (x + CUBE * x * x * x)).tanh();
        *d *= 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * SCALE * (1.0 + 3.0 * CUBE * x * x);
    });
}

fn sum(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// How surprising the targets are, and with it the probabilities in the place of the scores.
fn cross_entropy(scores: &mut [f32], targets: &[usize]) -> f32 {
    let mut losses = vec![0.0; targets.len()];
    let rows = scores.par_chunks_exact_mut(scores.len() / targets.len());
    rows.zip(targets)
        .zip(&mut losses)
        .for_each(|((row, &target), loss)| {
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let mut sum = 0.0;
            for x in row.iter_mut() {
                *x = (*x - largest).exp();
                sum += *x;
            }
            for x in row.iter_mut() {
                *x /= sum;
            }
            *loss = -row[target].ln();
        });
    losses.iter().sum::<f32>() / targets.len() as f32
}

/// The loss.
#[autodiff_reverse(d_loss, Const, Duplicated, Const, Const, Active)]
pub fn loss(shape: &Shape, parameters: &[f32], x: &[f32], targets: &[usize]) -> f32 {
    let [attend, project, up, down, classes] = shape.split(parameters);
    let channels = shape.channels;
    let qkv = linear(x, attend, channels);
    let mut weights = vec![0.0; shape.tokens() * shape.heads * shape.steps];
    let attended = attention(shape, &qkv, &mut weights);
    let x = sum(x, &linear(&attended, project, channels));
    let wide = gelu(&linear(&x, up, channels));
    let x = sum(&x, &linear(&wide, down, 4 * channels));
    let mut scores = linear(&x, classes, channels);
    cross_entropy(&mut scores, targets)
}

/// Its value and gradient, written by hand.
pub fn by_hand(
    shape: &Shape,
    parameters: &[f32],
    x: &[f32],
    targets: &[usize],
    gradient: &mut [f32],
) -> f32 {
    let [attend, project, up, down, classes] = shape.split(parameters);
    let [d_attend, d_project, d_up, d_down, d_classes] = shape.split_mut(gradient);
    let channels = shape.channels;
    let qkv = linear(x, attend, channels);
    let mut weights = vec![0.0; shape.tokens() * shape.heads * shape.steps];
    let attended = attention(shape, &qkv, &mut weights);
    let middle = sum(x, &linear(&attended, project, channels));
    let raised = linear(&middle, up, channels);
    let wide = gelu(&raised);
    let end = sum(&middle, &linear(&wide, down, 4 * channels));
    let mut scores = linear(&end, classes, channels);
    let loss = cross_entropy(&mut scores, targets);

    let share = 1.0 / targets.len() as f32;
    scores
        .par_chunks_exact_mut(shape.classes)
        .zip(targets)
        .for_each(|(row, &target)| {
            row[target] -= 1.0;
            for d in row {
                *d *= share;
            }
        });
    let mut d_end = vec![0.0; end.len()];
    linear_backward(&end, classes, channels, &scores, &mut d_end, d_classes);
    let mut d_wide = vec![0.0; wide.len()];
    linear_backward(&wide, down, 4 * channels, &d_end, &mut d_wide, d_down);
    gelu_backward(&raised, &mut d_wide);
    // The gradient of the sum goes on to both of its terms.
    let mut d_middle = d_end;
    linear_backward(&middle, up, channels, &d_wide, &mut d_middle, d_up);
    let mut d_attended = vec![0.0; attended.len()];
    linear_backward(
        &attended,
        project,
        channels,
        &d_middle,
        &mut d_attended,
        d_project,
    );
    let mut d_qkv = vec![0.0; qkv.len()];
    attention_backward(shape, &qkv, &weights, &d_attended, &mut d_qkv);
    let mut d_x = vec![0.0; x.len()];
    linear_backward(x, attend, channels, &d_qkv, &mut d_x, d_attend);
    loss
}

/// The gradient of [`loss`], automatic; gives the loss.
pub fn automatic(
    shape: &Shape,
    parameters: &[f32],
    x: &[f32],
    targets: &[usize],
    gradient: &mut [f32],
) -> f32 {
    d_loss(shape, parameters, gradient, x, targets, 1.0)
}
