//! Normalisation.

use crate::Layer;
use ferrozyme_graph::{Graph, Parameter, Tensor};

/// Normalises over the last axis: `(x − mean) / √(variance + ε)·scale + shift`.
pub struct LayerNorm {
    scale: Parameter,
    shift: Parameter,
    epsilon: f64,
}

impl LayerNorm {
    /// For a last axis of this size. The parameters are called `name.weight` and `name.bias`.
    #[track_caller]
    pub fn new(g: &mut Graph, name: &str, size: usize) -> LayerNorm {
        LayerNorm {
            scale: g.parameter(&format!("{name}.weight"), [size], 1.0),
            shift: g.parameter(&format!("{name}.bias"), [size], 0.0),
            epsilon: 1e-5,
        }
    }
}

impl Layer for LayerNorm {
    #[track_caller]
    fn forward(&self, g: &mut Graph, x: Tensor) -> Tensor {
        let shape = g.ty(x).shape.clone();
        let last = shape
            .len()
            .checked_sub(1)
            .expect("a layer norm needs an axis");
        let new = [(last, shape[last])];
        let share = 1.0 / shape[last] as f64;
        let sum = g.sum(x, &[last]);
        let mean = g.scale(sum, share);
        let mean = g.broadcast(mean, &new);
        let centred = g.sub(x, mean);
        let squares = g.mul(centred, centred);
        let sum = g.sum(squares, &[last]);
        let variance = g.scale(sum, share);
        let variance = g.shift(variance, self.epsilon);
        let deviation = g.sqrt(variance);
        let deviation = g.broadcast(deviation, &new);
        let normal = g.div(centred, deviation);
        let (scale, shift) = (g.read(self.scale), g.read(self.shift));
        let scaled = g.mul(normal, scale);
        g.add(scaled, shift)
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![self.scale, self.shift]
    }
}
