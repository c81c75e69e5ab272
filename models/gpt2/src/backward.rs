//! The gradient of the loss, written by hand: the layers' backward passes, last to first.

use crate::config::{Batch, Config};
use crate::layers::{attention, cross_entropy, embedding, gelu, layer_norm, linear, residual};
use crate::model::loss;
use crate::real::Real;
use crate::tensors::{Activations, Parameters, row, row_mut};
use std::mem::take;

/// The loss and its gradient times `seed`, with the meaning of [`gradient`](crate::model::gradient): what is in `parameter_grads` is
/// added to, and `activation_grads` must be zero.
///
/// # Panics
/// As [`loss`].
pub fn gradient_by_hand<T: Real>(
    config: &Config,
    batch: &Batch,
    parameters: &[T],
    parameter_grads: &mut [T],
    activations: &mut [T],
    activation_grads: &mut [T],
    tokens: &[u32],
    targets: &[u32],
    seed: T,
) -> T {
    let value = loss(config, batch, parameters, activations, tokens, targets);
    backward(
        config,
        batch,
        parameters,
        parameter_grads,
        activations,
        activation_grads,
        tokens,
        targets,
        seed,
    );
    value
}

/// The backward pass alone, after [`loss`] has left its activations.
///
/// # Panics
/// As [`loss`].
pub fn backward<T: Real>(
    config: &Config,
    batch: &Batch,
    parameters: &[T],
    parameter_grads: &mut [T],
    activations: &[T],
    activation_grads: &mut [T],
    tokens: &[u32],
    targets: &[u32],
    seed: T,
) {
    let (c, n) = (config.channels, batch.tokens());
    let p = Parameters::cut(parameters, config);
    let mut dp = Parameters::cut(parameter_grads, config);
    let a = Activations::cut(activations, config, batch);
    let mut da = Activations::cut(activation_grads, config, batch);

    da.losses.fill(seed / T::of(n as f64));
    cross_entropy::backward(
        da.logits,
        targets,
        config.vocabulary,
        config.padded_vocabulary,
        a.probabilities,
        da.losses,
    );
    linear::backward_without_bias(
        n,
        a.lnf,
        da.lnf,
        p.wte,
        dp.wte,
        c,
        config.padded_vocabulary,
        da.logits,
    );
    layer_norm::backward(
        row(a.residual3, config.layers - 1, n * c),
        row_mut(da.residual3, config.layers - 1, n * c),
        p.lnfw,
        dp.lnfw,
        dp.lnfb,
        a.lnf_mean,
        a.lnf_rstd,
        da.lnf,
    );
    // What each layer adds to: the layer's own tensors are cut out of the others.
    let (dencoded, dresidual3) = (take(&mut da.encoded), take(&mut da.residual3));
    for l in (0..config.layers).rev() {
        let (dbefore, dafter) = dresidual3.split_at_mut(l * n * c);
        let (input, dinput) = if l == 0 {
            (a.encoded, &mut *dencoded)
        } else {
            (
                row(a.residual3, l - 1, n * c),
                row_mut(dbefore, l - 1, n * c),
            )
        };
        let doutput = row(dafter, 0, n * c);
        feed_forward_backward(l, n, c, &p, &mut dp, &a, &mut da, doutput);
        attention_backward(config, batch, l, &p, &mut dp, &a, &mut da, input, dinput);
    }
    embedding::backward(tokens, dp.wte, dp.wpe, batch.steps, c, dencoded);
}

/// The second half of a layer: two linear maps with GELU between them, and the sum with what they got.
fn feed_forward_backward<T: Real>(
    l: usize,
    n: usize,
    c: usize,
    p: &Parameters<&[T]>,
    dp: &mut Parameters<&mut [T]>,
    a: &Activations<&[T]>,
    da: &mut Activations<&mut [T]>,
    doutput: &[T],
) {
    let dresidual2 = row_mut(da.residual2, l, n * c);
    let dfcproj = row_mut(da.fcproj, l, n * c);
    residual::backward(dresidual2, dfcproj, doutput);
    let dfch_gelu = row_mut(da.fch_gelu, l, n * 4 * c);
    linear::backward(
        n,
        row(a.fch_gelu, l, n * 4 * c),
        dfch_gelu,
        row(p.fcprojw, l, 4 * c * c),
        row_mut(dp.fcprojw, l, 4 * c * c),
        row_mut(dp.fcprojb, l, c),
        4 * c,
        dfcproj,
    );
    let dfch = row_mut(da.fch, l, n * 4 * c);
    gelu::backward(row(a.fch, l, n * 4 * c), dfch, dfch_gelu);
    let dln2 = row_mut(da.ln2, l, n * c);
    linear::backward(
        n,
        row(a.ln2, l, n * c),
        dln2,
        row(p.fcw, l, 4 * c * c),
        row_mut(dp.fcw, l, 4 * c * c),
        row_mut(dp.fcb, l, 4 * c),
        c,
        dfch,
    );
    layer_norm::backward(
        row(a.residual2, l, n * c),
        dresidual2,
        row(p.ln2w, l, c),
        row_mut(dp.ln2w, l, c),
        row_mut(dp.ln2b, l, c),
        row(a.ln2_mean, l, n),
        row(a.ln2_rstd, l, n),
        dln2,
    );
}

/// The first half of a layer: attention, and the sum with the layer's input.
fn attention_backward<T: Real>(
    config: &Config,
    batch: &Batch,
    l: usize,
    p: &Parameters<&[T]>,
    dp: &mut Parameters<&mut [T]>,
    a: &Activations<&[T]>,
    da: &mut Activations<&mut [T]>,
    input: &[T],
    dinput: &mut [T],
) {
    let (c, n, steps) = (config.channels, batch.tokens(), batch.steps);
    let squares = batch.sequences * config.heads * steps * steps;
    let dresidual2 = row_mut(da.residual2, l, n * c);
    let dattproj = row_mut(da.attproj, l, n * c);
    residual::backward(dinput, dattproj, dresidual2);
    let datty = row_mut(da.atty, l, n * c);
    linear::backward(
        n,
        row(a.atty, l, n * c),
        datty,
        row(p.attprojw, l, c * c),
        row_mut(dp.attprojw, l, c * c),
        row_mut(dp.attprojb, l, c),
        c,
        dattproj,
    );
    let dqkv = row_mut(da.qkv, l, n * 3 * c);
    attention::backward(
        row(a.qkv, l, n * 3 * c),
        dqkv,
        row(a.att, l, squares),
        datty,
        steps,
        c,
        config.heads,
    );
    let dln1 = row_mut(da.ln1, l, n * c);
    linear::backward(
        n,
        row(a.ln1, l, n * c),
        dln1,
        row(p.qkvw, l, 3 * c * c),
        row_mut(dp.qkvw, l, 3 * c * c),
        row_mut(dp.qkvb, l, 3 * c),
        c,
        dqkv,
    );
    layer_norm::backward(
        input,
        dinput,
        row(p.ln1w, l, c),
        row_mut(dp.ln1w, l, c),
        row_mut(dp.ln1b, l, c),
        row(a.ln1_mean, l, n),
        row(a.ln1_rstd, l, n),
        dln1,
    );
}
