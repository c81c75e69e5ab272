//! The model: from parameters and tokens to the loss, and its gradient.

use crate::config::{Batch, Config};
use crate::layers::{attention, cross_entropy, embedding, gelu, layer_norm, linear, residual};
use crate::real::Real;
use crate::tensors::{Activations, Front, Parameters, row, row_mut};
use ferrozyme::{accelerate, autodiff_reverse};

/// The mean loss over a batch: how surprised the model is by each target after the tokens up to it.
///
/// `activations` is overwritten. `gradient` adds to the gradient of the parameters, and wants the gradients of the
/// activations to be zero when it starts.
///
/// # Panics
/// When slices are not as long as [`Parameters::total`], [`Activations::total`] and the batch say, or tokens are not in the vocabulary.
#[autodiff_reverse(gradient, Const, Const, Duplicated, Duplicated, Const, Const, Active)]
pub fn loss<T: Real>(
    config: &Config,
    batch: &Batch,
    parameters: &[T],
    activations: &mut [T],
    tokens: &[u32],
    targets: &[u32],
) -> T {
    forward(config, batch, parameters, activations, tokens);
    let a = Activations::cut(activations, config, batch);
    cross_entropy::forward(
        a.logits,
        targets,
        config.vocabulary,
        config.padded_vocabulary,
        a.probabilities,
        a.losses,
    );
    let mut sum = T::ZERO;
    for &loss in a.losses.iter() {
        sum += loss;
    }
    sum / T::of(batch.tokens() as f64)
}

/// The forward pass up to the logits.
///
/// # Panics
/// As [`loss`].
pub fn forward<T: Real>(
    config: &Config,
    batch: &Batch,
    parameters: &[T],
    activations: &mut [T],
    tokens: &[u32],
) {
    let (c, n, steps) = (config.channels, batch.tokens(), batch.steps);
    let squares = batch.sequences * config.heads * steps * steps;
    let p = Parameters::cut(parameters, config);
    let a = Activations::cut(activations, config, batch);

    embedding::forward(tokens, p.wte, p.wpe, steps, c, a.encoded);
    let mut input: &[T] = a.encoded;
    let mut outputs = a.residual3;
    for l in 0..config.layers {
        let ln1 = row_mut(a.ln1, l, n * c);
        layer_norm::forward(
            input,
            row(p.ln1w, l, c),
            row(p.ln1b, l, c),
            row_mut(a.ln1_mean, l, n),
            row_mut(a.ln1_rstd, l, n),
            ln1,
        );
        let qkv = row_mut(a.qkv, l, n * 3 * c);
        linear::forward(
            n,
            ln1,
            row(p.qkvw, l, 3 * c * c),
            row(p.qkvb, l, 3 * c),
            c,
            qkv,
        );
        let preatt = row_mut(a.preatt, l, squares);
        let att = row_mut(a.att, l, squares);
        let atty = row_mut(a.atty, l, n * c);
        attention::forward(qkv, preatt, att, atty, steps, c, config.heads);
        let attproj = row_mut(a.attproj, l, n * c);
        linear::forward(
            n,
            atty,
            row(p.attprojw, l, c * c),
            row(p.attprojb, l, c),
            c,
            attproj,
        );
        let residual2 = row_mut(a.residual2, l, n * c);
        residual::forward(input, attproj, residual2);

        let ln2 = row_mut(a.ln2, l, n * c);
        layer_norm::forward(
            residual2,
            row(p.ln2w, l, c),
            row(p.ln2b, l, c),
            row_mut(a.ln2_mean, l, n),
            row_mut(a.ln2_rstd, l, n),
            ln2,
        );
        let fch = row_mut(a.fch, l, n * 4 * c);
        linear::forward(
            n,
            ln2,
            row(p.fcw, l, 4 * c * c),
            row(p.fcb, l, 4 * c),
            c,
            fch,
        );
        let fch_gelu = row_mut(a.fch_gelu, l, n * 4 * c);
        gelu::forward(fch, fch_gelu);
        let fcproj = row_mut(a.fcproj, l, n * c);
        linear::forward(
            n,
            fch_gelu,
            row(p.fcprojw, l, 4 * c * c),
            row(p.fcprojb, l, c),
            4 * c,
            fcproj,
        );
        let output = outputs.take(n * c);
        residual::forward(residual2, fcproj, output);
        input = output;
    }
    layer_norm::forward(input, p.lnfw, p.lnfb, a.lnf_mean, a.lnf_rstd, a.lnf);
    linear::forward_without_bias(n, a.lnf, p.wte, c, config.padded_vocabulary, a.logits);
}

/// [`loss`] without a gradient, compiled as inside of it: for evaluation.
///
/// # Panics
/// As [`loss`].
#[accelerate]
pub fn evaluate<T: Real>(
    config: &Config,
    batch: &Batch,
    parameters: &[T],
    activations: &mut [T],
    tokens: &[u32],
    targets: &[u32],
) -> T {
    loss(config, batch, parameters, activations, tokens, targets)
}

/// [`forward`], compiled as inside of the gradient: for sampling.
///
/// # Panics
/// As [`loss`].
#[accelerate]
pub fn predict<T: Real>(
    config: &Config,
    batch: &Batch,
    parameters: &[T],
    activations: &mut [T],
    tokens: &[u32],
) {
    forward(config, batch, parameters, activations, tokens);
}
