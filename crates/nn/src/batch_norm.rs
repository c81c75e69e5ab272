//! Normalisation over the batch.

use crate::{Layer, Mode, Module, State};
use ferrozyme_graph::{Graph, Parameter, Tensor};

/// Normalises each channel (axis 1) over the batch and all axes behind (Ioffe and Szegedy, 2015).
///
/// In training with mean and variance of the batch, which move the running ones a tenth of the way; in evaluation with the running ones.
#[derive(Module)]
pub struct BatchNorm {
    weight: Parameter,
    bias: Parameter,
    running_mean: State,
    running_variance: State,
    #[module(skip)]
    momentum: f64,
    #[module(skip)]
    epsilon: f64,
}

impl BatchNorm {
    /// For so many channels, with ε = 1e-5. The parameters are called `name.weight`, `name.bias`, `name.running_mean` and `name.running_variance`.
    #[track_caller]
    pub fn new(g: &mut Graph, name: &str, channels: usize) -> BatchNorm {
        let mut parameter =
            |part: &str, initial: f64| g.parameter(&format!("{name}.{part}"), [channels], initial);
        BatchNorm {
            weight: parameter("weight", 1.0),
            bias: parameter("bias", 0.0),
            running_mean: State(parameter("running_mean", 0.0)),
            running_variance: State(parameter("running_variance", 1.0)),
            momentum: 0.1,
            epsilon: 1e-5,
        }
    }

    /// Moves a running value towards that of the batch.
    fn follow(&self, g: &mut Graph, state: State, new: Tensor) {
        let old = g.read(state.0);
        let kept = g.scale(old, 1.0 - self.momentum);
        let added = g.scale(new, self.momentum);
        let next = g.add(kept, added);
        g.update(state.0, next);
    }
}

/// A number per channel, for each element of a tensor.
fn per_channel(g: &mut Graph, numbers: Tensor, like: Tensor) -> Tensor {
    let shape = g.ty(like).shape.clone();
    let axes = (0..shape.len()).filter(|&axis| axis != 1);
    let new: Vec<(usize, usize)> = axes.map(|axis| (axis, shape[axis])).collect();
    g.broadcast(numbers, &new)
}

impl Layer for BatchNorm {
    #[track_caller]
    fn apply(&self, g: &mut Graph, x: Tensor, mode: Mode) -> Tensor {
        let shape = g.ty(x).shape.clone();
        let (weight, bias) = (g.read(self.weight), g.read(self.bias));
        let channels = g.ty(weight).shape[0];
        assert!(
            shape.get(1) == Some(&channels),
            "a batch norm of {channels} channels was given {}",
            g.ty(x)
        );
        let axes: Vec<usize> = (0..shape.len()).filter(|&axis| axis != 1).collect();
        let count = shape.count() / channels;
        let (centred, variance) = match mode {
            Mode::Training => {
                assert!(
                    count > 1,
                    "a batch norm needs more than one element per channel, not those of {}",
                    g.ty(x)
                );
                let share = 1.0 / count as f64;
                let sum = g.sum(x, &axes);
                let mean = g.scale(sum, share);
                let means = per_channel(g, mean, x);
                let centred = g.sub(x, means);
                let squares = g.mul(centred, centred);
                let sum = g.sum(squares, &axes);
                let variance = g.scale(sum, share);
                self.follow(g, self.running_mean, mean);
                // Of the whole population, which the batch is a sample of.
                let unbiased = g.scale(variance, count as f64 / (count - 1) as f64);
                self.follow(g, self.running_variance, unbiased);
                (centred, variance)
            }
            Mode::Evaluation => {
                let mean = g.read(self.running_mean.0);
                let means = per_channel(g, mean, x);
                (g.sub(x, means), g.read(self.running_variance.0))
            }
        };
        let variance = g.shift(variance, self.epsilon);
        let deviation = g.sqrt(variance);
        let factor = g.div(weight, deviation);
        let factor = per_channel(g, factor, x);
        let scaled = g.mul(centred, factor);
        let bias = per_channel(g, bias, x);
        g.add(scaled, bias)
    }
}
