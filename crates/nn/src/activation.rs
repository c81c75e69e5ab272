//! Activations: layers without parameters.

use crate::Layer;
use ferrozyme_graph::{Graph, Reduction, Tensor};
use std::f64::consts::FRAC_1_SQRT_2;

/// `max(x, 0)`.
pub struct Relu;

impl Layer for Relu {
    #[track_caller]
    fn forward(&self, g: &mut Graph, x: Tensor) -> Tensor {
        // At 0 the derivative is 0, as PyTorch has it: a tie goes to the first operand.
        let zero = g.constant_like(x, 0.0);
        g.maximum(zero, x)
    }
}

/// `1 / (1 + e^−x)`.
pub struct Sigmoid;

impl Layer for Sigmoid {
    #[track_caller]
    fn forward(&self, g: &mut Graph, x: Tensor) -> Tensor {
        let negative = g.neg(x);
        let power = g.exp(negative);
        let sum = g.shift(power, 1.0);
        let one = g.constant_like(x, 1.0);
        g.div(one, sum)
    }
}

/// The hyperbolic tangent.
pub struct Tanh;

impl Layer for Tanh {
    #[track_caller]
    fn forward(&self, g: &mut Graph, x: Tensor) -> Tensor {
        g.tanh(x)
    }
}

/// `x·Φ(x)`, with the distribution function of the normal distribution.
pub struct Gelu;

impl Layer for Gelu {
    #[track_caller]
    fn forward(&self, g: &mut Graph, x: Tensor) -> Tensor {
        let scaled = g.scale(x, FRAC_1_SQRT_2);
        let erf = g.erf(scaled);
        let sum = g.shift(erf, 1.0);
        let product = g.mul(x, sum);
        g.scale(product, 0.5)
    }
}

/// `e^x / Σ e^x` over the last axis, with the maximum subtracted, so that nothing overflows.
///
/// # Panics
/// If the tensor has no axes.
#[track_caller]
pub fn softmax(g: &mut Graph, x: Tensor) -> Tensor {
    let shape = g.ty(x).shape.clone();
    let last = shape.len().checked_sub(1).expect("softmax needs an axis");
    let new = [(last, shape[last])];
    let max = g.reduce(Reduction::Max, x, &[last]);
    let max = g.broadcast(max, &new);
    let shifted = g.sub(x, max);
    let powers = g.exp(shifted);
    let sums = g.sum(powers, &[last]);
    let sums = g.broadcast(sums, &new);
    g.div(powers, sums)
}
