//! Single layers: the same code as in the model, with a request for each.
//!
//! Only this measurement asks for derivatives of layers. The model's gradient is one request for the whole of it.

use super::quickest;
use super::row::{Language, Row};
use ferrozyme::autodiff_reverse;
use gpt2::layers;
use gpt2::random::Random;
use gpt2::{Batch, Config};

#[autodiff_reverse(
    linear_gradient,
    Const,
    Duplicated,
    Duplicated,
    Duplicated,
    Const,
    Duplicated
)]
fn linear(
    tokens: usize,
    input: &[f32],
    weight: &[f32],
    bias: &[f32],
    channels: usize,
    output: &mut [f32],
) {
    layers::linear::forward(tokens, input, weight, bias, channels, output);
}

#[autodiff_reverse(
    attention_gradient,
    Duplicated,
    Duplicated,
    Duplicated,
    Duplicated,
    Const,
    Const,
    Const
)]
fn attention(
    input: &[f32],
    scores: &mut [f32],
    weights: &mut [f32],
    output: &mut [f32],
    steps: usize,
    channels: usize,
    heads: usize,
) {
    layers::attention::forward(input, scores, weights, output, steps, channels, heads);
}

#[autodiff_reverse(
    layer_norm_gradient,
    Duplicated,
    Duplicated,
    Duplicated,
    Duplicated,
    Duplicated,
    Duplicated
)]
fn layer_norm(
    input: &[f32],
    weight: &[f32],
    bias: &[f32],
    means: &mut [f32],
    reciprocals: &mut [f32],
    output: &mut [f32],
) {
    layers::layer_norm::forward(input, weight, bias, means, reciprocals, output);
}

#[autodiff_reverse(gelu_gradient, Duplicated, Duplicated)]
fn gelu(input: &[f32], output: &mut [f32]) {
    layers::gelu::forward(input, output);
}

#[autodiff_reverse(
    cross_entropy_gradient,
    Duplicated,
    Const,
    Const,
    Const,
    Duplicated,
    Duplicated
)]
fn cross_entropy(
    logits: &[f32],
    targets: &[u32],
    vocabulary: usize,
    classes: usize,
    probabilities: &mut [f32],
    losses: &mut [f32],
) {
    layers::cross_entropy::forward(logits, targets, vocabulary, classes, probabilities, losses);
}

/// Measures all layers, in the shapes that they have in the model.
pub(super) fn measure(config: &Config, batch: &Batch, rounds: u64, mut add: impl FnMut(Row)) {
    let c = config.channels;
    add(measure_linear(batch, c, 4 * c, rounds));
    add(measure_linear(batch, 4 * c, c, rounds));
    add(measure_attention(config, batch, rounds));
    add(measure_layer_norm(config, batch, rounds));
    add(measure_gelu(config, batch, rounds));
    add(measure_cross_entropy(config, batch, rounds));
}

/// Random numbers.
fn numbers(count: usize) -> Vec<f32> {
    let mut random = Random::new(count as u64);
    (0..count).map(|_| random.normal() as f32).collect()
}

/// Memory for this many numbers.
fn numbers_like(numbers: &[f32]) -> Vec<f32> {
    vec![0.0; numbers.len()]
}

/// A row of the table.
fn row(
    name: String,
    rounds: u64,
    forward: impl FnMut(),
    manual: impl FnMut(),
    automatic: impl FnMut(),
) -> Row {
    Row {
        name,
        language: Language::Rust,
        openmp: false,
        threads: 1,
        forward: quickest(rounds, forward),
        manual: quickest(rounds, manual),
        automatic: quickest(rounds, automatic),
        manual_memory: None,
        automatic_memory: None,
    }
}

fn measure_linear(batch: &Batch, channels: usize, outputs: usize, rounds: u64) -> Row {
    let n = batch.tokens();
    let (x, w, b) = (
        numbers(n * channels),
        numbers(outputs * channels),
        numbers(outputs),
    );
    let (mut dx, mut dw, mut db) = (x.clone(), w.clone(), b.clone());
    let seeds = numbers(n * outputs);
    let (mut y, mut y1) = (numbers_like(&seeds), numbers_like(&seeds));
    let (mut y2, mut dy) = (numbers_like(&seeds), numbers_like(&seeds));
    let (mut dx2, mut dw2, mut db2) = (x.clone(), w.clone(), b.clone());
    row(
        format!("matrix product {channels} → {outputs}"),
        rounds,
        || linear(n, &x, &w, &b, channels, &mut y),
        || {
            linear(n, &x, &w, &b, channels, &mut y1);
            layers::linear::backward(n, &x, &mut dx, &w, &mut dw, &mut db, channels, &seeds);
        },
        || {
            // The derivative uses its seeds up.
            dy.copy_from_slice(&seeds);
            linear_gradient(
                n, &x, &mut dx2, &w, &mut dw2, &b, &mut db2, channels, &mut y2, &mut dy,
            );
        },
    )
}

fn measure_attention(config: &Config, batch: &Batch, rounds: u64) -> Row {
    let (n, c, heads, steps) = (batch.tokens(), config.channels, config.heads, batch.steps);
    let squares = n * heads * steps;
    let x = numbers(n * 3 * c);
    let seeds = numbers(n * c);
    let (mut dx, mut dx2) = (x.clone(), x.clone());
    let outputs = || (vec![0.0; squares], vec![0.0; squares], numbers_like(&seeds));
    let (mut scores, mut weights, mut y) = outputs();
    let (mut scores1, mut weights1, mut y1) = outputs();
    let (mut scores2, mut weights2, mut y2) = outputs();
    let (mut dscores, mut dweights, mut dy) = outputs();
    row(
        format!("attention {c}, {heads} heads"),
        rounds,
        || attention(&x, &mut scores, &mut weights, &mut y, steps, c, heads),
        || {
            attention(&x, &mut scores1, &mut weights1, &mut y1, steps, c, heads);
            layers::attention::backward(&x, &mut dx, &weights1, &seeds, steps, c, heads);
        },
        || {
            dy.copy_from_slice(&seeds);
            attention_gradient(
                &x,
                &mut dx2,
                &mut scores2,
                &mut dscores,
                &mut weights2,
                &mut dweights,
                &mut y2,
                &mut dy,
                steps,
                c,
                heads,
            );
        },
    )
}

fn measure_layer_norm(config: &Config, batch: &Batch, rounds: u64) -> Row {
    let (n, c) = (batch.tokens(), config.channels);
    let (x, w, b, seeds) = (numbers(n * c), numbers(c), numbers(c), numbers(n * c));
    let outputs = || (vec![0.0; n], vec![0.0; n], numbers_like(&seeds));
    let inputs = || (numbers_like(&x), numbers_like(&w), numbers_like(&b));
    let (mut means, mut reciprocals, mut y) = outputs();
    let (mut means1, mut reciprocals1, mut y1) = outputs();
    let (mut means2, mut reciprocals2, mut y2) = outputs();
    let (mut dmeans, mut dreciprocals, mut dy) = outputs();
    let (mut dx, mut dw, mut db) = inputs();
    let (mut dx2, mut dw2, mut db2) = inputs();
    row(
        format!("layer norm {c}"),
        rounds,
        || layer_norm(&x, &w, &b, &mut means, &mut reciprocals, &mut y),
        || {
            layer_norm(&x, &w, &b, &mut means1, &mut reciprocals1, &mut y1);
            layers::layer_norm::backward(
                &x,
                &mut dx,
                &w,
                &mut dw,
                &mut db,
                &means1,
                &reciprocals1,
                &seeds,
            );
        },
        || {
            dy.copy_from_slice(&seeds);
            layer_norm_gradient(
                &x,
                &mut dx2,
                &w,
                &mut dw2,
                &b,
                &mut db2,
                &mut means2,
                &mut dmeans,
                &mut reciprocals2,
                &mut dreciprocals,
                &mut y2,
                &mut dy,
            );
        },
    )
}

fn measure_gelu(config: &Config, batch: &Batch, rounds: u64) -> Row {
    let x = numbers(batch.tokens() * 4 * config.channels);
    let seeds = x.clone();
    let (mut dx, mut dx2) = (numbers_like(&x), numbers_like(&x));
    let (mut y, mut y1, mut y2) = (numbers_like(&x), numbers_like(&x), numbers_like(&x));
    let mut dy = numbers_like(&x);
    row(
        format!("GELU {}", 4 * config.channels),
        rounds,
        || gelu(&x, &mut y),
        || {
            gelu(&x, &mut y1);
            layers::gelu::backward(&x, &mut dx, &seeds);
        },
        || {
            dy.copy_from_slice(&seeds);
            gelu_gradient(&x, &mut dx2, &mut y2, &mut dy);
        },
    )
}

fn measure_cross_entropy(config: &Config, batch: &Batch, rounds: u64) -> Row {
    let (n, classes, vocabulary) = (batch.tokens(), config.padded_vocabulary, config.vocabulary);
    let x = numbers(n * classes);
    let targets: Vec<u32> = (0..n).map(|i| (i * 97 % vocabulary) as u32).collect();
    let (mut dx, mut dx2) = (numbers_like(&x), numbers_like(&x));
    let outputs = || (numbers_like(&x), vec![0.0; n]);
    let (mut p, mut losses) = outputs();
    let (mut p1, mut losses1) = outputs();
    let (mut p2, mut losses2) = outputs();
    let (mut dp, mut dlosses) = outputs();
    let seeds = vec![1.0 / n as f32; n];
    row(
        format!("softmax cross-entropy {classes}"),
        rounds,
        || cross_entropy(&x, &targets, vocabulary, classes, &mut p, &mut losses),
        || {
            cross_entropy(&x, &targets, vocabulary, classes, &mut p1, &mut losses1);
            layers::cross_entropy::backward(&mut dx, &targets, vocabulary, classes, &p1, &seeds);
        },
        || {
            dlosses.copy_from_slice(&seeds);
            cross_entropy_gradient(
                &x,
                &mut dx2,
                &targets,
                vocabulary,
                classes,
                &mut p2,
                &mut dp,
                &mut losses2,
                &mut dlosses,
            );
        },
    )
}
