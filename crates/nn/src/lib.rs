//! Layers and optimisers on tensor graphs.
//!
//! ```
//! use ferrozyme_graph::Graph;
//! use ferrozyme_nn::{Layer, Linear, Sequential, Sgd, Sigmoid};
//! let mut g = Graph::new();
//! let net = Sequential::new(vec![
//!     Box::new(Linear::new(&mut g, "first", 8, 16)),
//!     Box::new(Sigmoid),
//!     Box::new(Linear::new(&mut g, "second", 16, 4)),
//! ]);
//! let sgd = Sgd::new(0.01);
//! g.repeat(1000, |g, _step| {
//!     let x = g.feed("x", [2, 8]);
//!     let y = net.forward(g, x);
//!     let gradients = g.backward(y);
//!     sgd.step(g, &net.parameters(), &gradients);
//! });
//! assert_eq!(g.parameters.len(), 4);
//! ```

mod activation;
mod initial;
mod linear;
mod norm;
mod optimiser;
mod transformer;

pub use activation::{Gelu, Relu, Sigmoid, Tanh, softmax};
pub use linear::Linear;
pub use norm::LayerNorm;
pub use optimiser::{Adam, Sgd};
pub use transformer::{SelfAttention, TransformerEncoder, TransformerEncoderLayer};

use ferrozyme_graph::{Graph, Parameter, Tensor};

/// A function of a tensor with parameters.
pub trait Layer {
    /// Applies it.
    fn forward(&self, g: &mut Graph, x: Tensor) -> Tensor;

    /// Its parameters, in a fixed order.
    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }
}

/// One layer after the other.
pub struct Sequential {
    layers: Vec<Box<dyn Layer>>,
}

impl Sequential {
    /// These layers, the first one first.
    pub fn new(layers: Vec<Box<dyn Layer>>) -> Sequential {
        Sequential { layers }
    }
}

impl Layer for Sequential {
    #[track_caller]
    fn forward(&self, g: &mut Graph, x: Tensor) -> Tensor {
        let mut x = x;
        for layer in &self.layers {
            x = layer.forward(g, x);
        }
        x
    }

    fn parameters(&self) -> Vec<Parameter> {
        let layers = self.layers.iter();
        layers.flat_map(|layer| layer.parameters()).collect()
    }
}

/// The guide's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tensor-graphs.md")]
struct Guide;
