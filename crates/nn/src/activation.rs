//! Activations: layers without parameters.

use crate::{Layer, Mode, Module};
use ferrozyme_graph::{Graph, Reduction, Tensor};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

/// A layer without parameters for each formula.
macro_rules! activations {
    ($($(#[doc = $doc:literal])+ $name:ident = $formula:expr;)*) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Copy, Debug, Default, Module)]
            pub struct $name;

            impl Layer for $name {
                #[track_caller]
                fn apply(&self, g: &mut Graph, x: Tensor, _: Mode) -> Tensor {
                    let formula: fn(&mut Graph, Tensor) -> Tensor = $formula;
                    formula(g, x)
                }
            }
        )*
    };
}

activations! {
    /// `max(x, 0)`.
    Relu = |g, x| {
        // At 0 the derivative is 0, as PyTorch has it: a tie goes to the first operand.
        let zero = g.constant_like(x, 0.0);
        g.maximum(zero, x)
    };
    /// `1 / (1 + e^−x)`.
    Sigmoid = sigmoid;
    /// The hyperbolic tangent.
    Tanh = Graph::tanh;
    /// `x / (1 + e^−x)`, also called swish.
    Silu = |g, x| {
        let gate = sigmoid(g, x);
        g.mul(x, gate)
    };
    /// `x·Φ(x)`, with the distribution function of the normal distribution.
    Gelu = |g, x| {
        let scaled = g.scale(x, FRAC_1_SQRT_2);
        let erf = g.erf(scaled);
        let sum = g.shift(erf, 1.0);
        let product = g.mul(x, sum);
        g.scale(product, 0.5)
    };
    /// `x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))/2`, the approximation of [`Gelu`] that GPT-2 has.
    GeluTanh = |g, x| {
        let square = g.mul(x, x);
        let cubic = g.scale(square, 0.044715);
        let factor = g.shift(cubic, 1.0);
        let inner = g.mul(x, factor);
        let inner = g.scale(inner, FRAC_2_PI.sqrt());
        let tanh = g.tanh(inner);
        let sum = g.shift(tanh, 1.0);
        let product = g.mul(x, sum);
        g.scale(product, 0.5)
    };
    /// [`softmax`] as a layer.
    Softmax = softmax;
    /// [`log_softmax`] as a layer.
    LogSoftmax = log_softmax;
}

/// All axes but the first as one: between convolutions and linear layers.
#[derive(Clone, Copy, Debug, Default, Module)]
pub struct Flatten;

impl Layer for Flatten {
    #[track_caller]
    fn apply(&self, g: &mut Graph, x: Tensor, _: Mode) -> Tensor {
        let shape = g.ty(x).shape.clone();
        let (&rows, rest) = shape.split_first().expect("flattening needs an axis");
        g.reshape(x, [rows, rest.iter().product()])
    }
}

/// `1 / (1 + e^−x)` as `(1 + tanh(x/2)) / 2`, whose derivative overflows nowhere.
pub(crate) fn sigmoid(g: &mut Graph, x: Tensor) -> Tensor {
    let half = g.scale(x, 0.5);
    let tanh = g.tanh(half);
    let sum = g.shift(tanh, 1.0);
    g.scale(sum, 0.5)
}

/// `e^x / Σ e^x` over the last axis, with the maximum subtracted, so that nothing overflows.
///
/// # Panics
/// If the tensor has no axes.
#[track_caller]
pub fn softmax(g: &mut Graph, x: Tensor) -> Tensor {
    let shifted = below_zero(g, x);
    let powers = g.exp(shifted);
    let last = g.ty(x).shape.len() - 1;
    let sums = g.sum(powers, &[last]);
    // One division for a row, not for each element.
    let one = g.constant_like(sums, 1.0);
    let shares = g.div(one, sums);
    let shares = along_last(g, shares, x);
    g.mul(powers, shares)
}

/// `x − log Σ e^x` over the last axis: the logarithm of [`softmax`], exact also where that is almost 0.
///
/// # Panics
/// If the tensor has no axes.
#[track_caller]
pub fn log_softmax(g: &mut Graph, x: Tensor) -> Tensor {
    let shifted = below_zero(g, x);
    let powers = g.exp(shifted);
    let last = g.ty(x).shape.len() - 1;
    let sums = g.sum(powers, &[last]);
    let logarithms = g.log(sums);
    let logarithms = along_last(g, logarithms, x);
    g.sub(shifted, logarithms)
}

/// Without the maximum over the last axis. The derivatives of what is made of it do not depend on what is subtracted, so no gradient goes through the maximum.
#[track_caller]
fn below_zero(g: &mut Graph, x: Tensor) -> Tensor {
    let axes = g.ty(x).shape.len();
    let last = axes.checked_sub(1).expect("softmax needs an axis");
    let max = g.reduce(Reduction::Max, x, &[last]);
    let max = g.detach(max);
    let max = along_last(g, max, x);
    g.sub(x, max)
}

/// A number per row, for each element of the rows of a tensor.
#[track_caller]
pub(crate) fn along_last(g: &mut Graph, rows: Tensor, like: Tensor) -> Tensor {
    let shape = &g.ty(like).shape;
    let last = shape.len() - 1;
    let axis = (last, shape[last]);
    g.broadcast(rows, &[axis])
}
