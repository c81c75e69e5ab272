//! The linear layer, and vectors for words.

use crate::initial::{normal, uniform};
use crate::{Layer, Mode, Module};
use ferrozyme_graph::{Graph, Parameter, Tensor};

/// `x·W + b` over the last axis, with weights of shape `[inputs, outputs]`.
#[derive(Module)]
pub struct Linear {
    weight: Parameter,
    bias: Option<Parameter>,
}

impl Linear {
    /// With a bias. The parameters are called `name.weight` and `name.bias`, and begin uniform between ±1/√inputs.
    #[track_caller]
    pub fn new(g: &mut Graph, name: &str, inputs: usize, outputs: usize) -> Linear {
        let mut linear = Linear::without_bias(g, name, inputs, outputs);
        let bias = format!("{name}.bias");
        let initial = uniform(&bias, [outputs], limit(inputs));
        linear.bias = Some(g.parameter(&bias, [outputs], initial));
        linear
    }

    /// Without a bias.
    #[track_caller]
    pub fn without_bias(g: &mut Graph, name: &str, inputs: usize, outputs: usize) -> Linear {
        let weight = format!("{name}.weight");
        let initial = uniform(&weight, [inputs, outputs], limit(inputs));
        Linear {
            weight: g.parameter(&weight, [inputs, outputs], initial),
            bias: None,
        }
    }
}

/// Up to where the weights of a layer with so many inputs begin.
pub(crate) fn limit(inputs: usize) -> f64 {
    1.0 / (inputs as f64).sqrt()
}

impl Layer for Linear {
    #[track_caller]
    fn apply(&self, g: &mut Graph, x: Tensor, _: Mode) -> Tensor {
        let shape = g.ty(x).shape.clone();
        let weight = g.read(self.weight);
        let sizes = g.ty(weight).shape.clone();
        let (&inputs, outer) = shape.split_last().expect("a linear layer needs an axis");
        assert_eq!(
            inputs,
            sizes[0],
            "a linear layer of {} inputs was given {}",
            sizes[0],
            g.ty(x)
        );
        let rows = outer.iter().product();
        let flat = g.reshape(x, [rows, inputs]);
        let product = g.contract("ij,jk->ik", flat, weight);
        let mut result = outer.to_vec();
        result.push(sizes[1]);
        let product = g.reshape(product, &result[..]);
        match self.bias {
            Some(bias) => {
                let bias = g.read(bias);
                g.add(product, bias)
            }
            None => product,
        }
    }
}

/// A vector for each index (`i32`): the rows of a matrix. An index out of range stops the program.
#[derive(Module)]
pub struct Embedding {
    weight: Parameter,
}

impl Embedding {
    /// For indices below `count`, with vectors of this size. The parameter is called `name.weight`, and begins normally distributed with variance 1.
    #[track_caller]
    pub fn new(g: &mut Graph, name: &str, count: usize, size: usize) -> Embedding {
        let weight = format!("{name}.weight");
        let initial = normal(&weight, [count, size], 1.0);
        Embedding {
            weight: g.parameter(&weight, [count, size], initial),
        }
    }

    /// The matrix, for layers that share it.
    pub fn weight(&self) -> Parameter {
        self.weight
    }
}

impl Layer for Embedding {
    #[track_caller]
    fn apply(&self, g: &mut Graph, indices: Tensor, _: Mode) -> Tensor {
        let weight = g.read(self.weight);
        g.gather(weight, indices, 0)
    }
}
