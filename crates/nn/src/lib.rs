//! Layers, losses and optimisers on tensor graphs.
//!
//! ```
//! use ferrozyme_graph::Graph;
//! use ferrozyme_nn::{Layer, Linear, Module, Sequential, Sgd, Sigmoid};
//! let mut g = Graph::new();
//! let net = Sequential::new((
//!     Linear::new(&mut g, "first", 8, 16),
//!     Sigmoid,
//!     Linear::new(&mut g, "second", 16, 4),
//! ));
//! let sgd = Sgd::new(0.01);
//! g.repeat(1000, |g, _step| {
//!     let x = g.feed("x", [2, 8]);
//!     let y = net.forward(g, x);
//!     let gradients = g.backward(y);
//!     sgd.step(g, &net.parameters(), &gradients);
//! });
//! assert_eq!(g.parameters.len(), 4);
//! ```

// The derive macro names this crate as others do.
extern crate self as ferrozyme_nn;

mod activation;
mod attention;
mod batch_norm;
mod clip;
mod convolution;
mod dropout;
mod initial;
mod linear;
pub mod loss;
mod module;
mod norm;
mod optimiser;
mod pooling;
mod recurrent;
mod schedule;
mod sequential;
mod transformer;
mod window;

pub use activation::{
    Flatten, Gelu, GeluTanh, LogSoftmax, Relu, Sigmoid, Silu, Softmax, Tanh, log_softmax, softmax,
};
pub use attention::{Mask, MultiHeadAttention, attention};
pub use batch_norm::BatchNorm;
pub use clip::{clip_by_norm, clip_by_value};
pub use convolution::{Conv, Conv1d, Conv2d};
pub use dropout::Dropout;
pub use ferrozyme_macros::Module;
pub use linear::{Embedding, Linear};
pub use module::{Entry, Module, State, Visitor};
pub use norm::{LayerNorm, RmsNorm};
pub use optimiser::{Adam, AdamW, Sgd};
pub use pooling::{AvgPool, AvgPool1d, AvgPool2d, MaxPool, MaxPool1d, MaxPool2d};
pub use recurrent::{Gru, Lstm};
pub use schedule::Schedule;
pub use sequential::{Layers, Sequential};
pub use transformer::{SelfAttention, TransformerEncoder, TransformerEncoderLayer};
pub use window::Window;

use ferrozyme_graph::{Graph, Tensor};

/// A function of a tensor with parameters.
pub trait Layer: Module {
    /// Applies it. Some layers do another thing in training than afterwards.
    fn apply(&self, g: &mut Graph, x: Tensor, mode: Mode) -> Tensor;

    /// Applies it as in training.
    #[track_caller]
    fn forward(&self, g: &mut Graph, x: Tensor) -> Tensor {
        self.apply(g, x, Mode::Training)
    }

    /// Applies it as after training: nothing is dropped, no state changes.
    #[track_caller]
    fn evaluate(&self, g: &mut Graph, x: Tensor) -> Tensor {
        self.apply(g, x, Mode::Evaluation)
    }
}

/// What layers are applied for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Parameters are trained: dropout drops, batch norm normalises by the batch.
    Training,
    /// Parameters stay: nothing is random, no state changes.
    Evaluation,
}
