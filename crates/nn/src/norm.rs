//! Normalisation over the last axis.

use crate::activation::along_last;
use crate::{Layer, Mode, Module};
use ferrozyme_graph::{Graph, Parameter, Tensor};

/// Normalises over the last axis: `(x − mean) / √(variance + ε)·weight + bias`.
#[derive(Module)]
pub struct LayerNorm {
    weight: Parameter,
    bias: Parameter,
    #[module(skip)]
    epsilon: f64,
}

impl LayerNorm {
    /// For a last axis of this size, with ε = 1e-5. The parameters are called `name.weight` and `name.bias`.
    #[track_caller]
    pub fn new(g: &mut Graph, name: &str, size: usize) -> LayerNorm {
        LayerNorm {
            weight: g.parameter(&format!("{name}.weight"), [size], 1.0),
            bias: g.parameter(&format!("{name}.bias"), [size], 0.0),
            epsilon: 1e-5,
        }
    }
}

impl Layer for LayerNorm {
    #[track_caller]
    fn apply(&self, g: &mut Graph, x: Tensor, _: Mode) -> Tensor {
        let mean = mean_of_last(g, x);
        let mean = along_last(g, mean, x);
        let centred = g.sub(x, mean);
        let normal = divided_by_root_mean_square(g, centred, self.epsilon);
        let (weight, bias) = (g.read(self.weight), g.read(self.bias));
        let scaled = g.mul(normal, weight);
        g.add(scaled, bias)
    }
}

/// Divides by the root of the mean square over the last axis: `x / √(mean x² + ε)·weight` (Zhang and Sennrich, 2019).
#[derive(Module)]
pub struct RmsNorm {
    weight: Parameter,
    #[module(skip)]
    epsilon: f64,
}

impl RmsNorm {
    /// For a last axis of this size, with ε = 1e-5. The parameter is called `name.weight`.
    #[track_caller]
    pub fn new(g: &mut Graph, name: &str, size: usize) -> RmsNorm {
        RmsNorm {
            weight: g.parameter(&format!("{name}.weight"), [size], 1.0),
            epsilon: 1e-5,
        }
    }
}

impl Layer for RmsNorm {
    #[track_caller]
    fn apply(&self, g: &mut Graph, x: Tensor, _: Mode) -> Tensor {
        let normal = divided_by_root_mean_square(g, x, self.epsilon);
        let weight = g.read(self.weight);
        g.mul(normal, weight)
    }
}

#[track_caller]
fn mean_of_last(g: &mut Graph, x: Tensor) -> Tensor {
    let shape = &g.ty(x).shape;
    let (&size, outer) = shape.split_last().expect("a norm needs an axis");
    let (last, share) = (outer.len(), 1.0 / size as f64);
    let sum = g.sum(x, &[last]);
    g.scale(sum, share)
}

#[track_caller]
fn divided_by_root_mean_square(g: &mut Graph, x: Tensor, epsilon: f64) -> Tensor {
    let squares = g.mul(x, x);
    let mean = mean_of_last(g, squares);
    let mean = g.shift(mean, epsilon);
    let root = g.sqrt(mean);
    let root = along_last(g, root, x);
    g.div(x, root)
}
