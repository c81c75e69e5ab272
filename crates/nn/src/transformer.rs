//! Transformers: encoders with self-attention.

use crate::{Layer, LayerNorm, Linear, Relu, Sequential, softmax};
use ferrozyme_graph::{Graph, Parameter, Tensor};

/// Self-attention over the rows of a matrix: each head has linear layers of its own for queries, keys and values; their results are concatenated and go through another one.
pub struct SelfAttention {
    heads: Vec<[Linear; 3]>,
    output: Linear,
    /// The dot products of queries and keys are multiplied with it.
    scale: f64,
}

impl SelfAttention {
    /// For rows of this size, which the number of heads divides.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub fn new(g: &mut Graph, name: &str, size: usize, heads: usize) -> SelfAttention {
        assert!(
            heads > 0 && size.is_multiple_of(heads),
            "{heads} heads do not divide rows of {size}"
        );
        let mut head = |number: usize| {
            ["query", "key", "value"].map(|part| {
                let name = format!("{name}.heads.{number}.{part}");
                Linear::without_bias(g, &name, size, size / heads)
            })
        };
        SelfAttention {
            heads: (0..heads).map(&mut head).collect(),
            output: Linear::without_bias(g, &format!("{name}.output"), size, size),
            scale: 1.0 / (size as f64).sqrt(),
        }
    }
}

impl Layer for SelfAttention {
    #[track_caller]
    fn forward(&self, g: &mut Graph, x: Tensor) -> Tensor {
        let mut heads = Vec::new();
        for [query, key, value] in &self.heads {
            let (query, key) = (query.forward(g, x), key.forward(g, x));
            let value = value.forward(g, x);
            let scores = g.contract("ik,jk->ij", query, key);
            let scores = g.scale(scores, self.scale);
            let weights = softmax(g, scores);
            heads.push(g.contract("ij,jk->ik", weights, value));
        }
        let together = g.concat(&heads, 1);
        self.output.forward(g, together)
    }

    fn parameters(&self) -> Vec<Parameter> {
        let heads = self.heads.iter().flatten().chain([&self.output]);
        heads.flat_map(Layer::parameters).collect()
    }
}

/// Attention and two linear layers, each added to its input and normalised.
pub struct TransformerEncoderLayer {
    attention: SelfAttention,
    norms: [LayerNorm; 2],
    inner: [Linear; 2],
}

impl TransformerEncoderLayer {
    /// For rows of `size`, with `heads` heads and `inner` values between the linear layers.
    #[track_caller]
    pub fn new(
        g: &mut Graph,
        name: &str,
        size: usize,
        heads: usize,
        inner: usize,
    ) -> TransformerEncoderLayer {
        TransformerEncoderLayer {
            attention: SelfAttention::new(g, &format!("{name}.attention"), size, heads),
            norms: [1, 2].map(|number| LayerNorm::new(g, &format!("{name}.norm{number}"), size)),
            inner: [
                Linear::new(g, &format!("{name}.linear1"), size, inner),
                Linear::new(g, &format!("{name}.linear2"), inner, size),
            ],
        }
    }
}

impl Layer for TransformerEncoderLayer {
    #[track_caller]
    fn forward(&self, g: &mut Graph, x: Tensor) -> Tensor {
        let attended = self.attention.forward(g, x);
        let sum = g.add(x, attended);
        let x = self.norms[0].forward(g, sum);
        let inner = self.inner[0].forward(g, x);
        let inner = Relu.forward(g, inner);
        let inner = self.inner[1].forward(g, inner);
        let sum = g.add(x, inner);
        self.norms[1].forward(g, sum)
    }

    fn parameters(&self) -> Vec<Parameter> {
        let mut parameters = self.attention.parameters();
        parameters.extend(self.norms.iter().flat_map(Layer::parameters));
        parameters.extend(self.inner.iter().flat_map(Layer::parameters));
        parameters
    }
}

/// Layers of an encoder, one after the other.
pub struct TransformerEncoder {
    layers: Sequential,
}

impl TransformerEncoder {
    /// So many layers, each as [`TransformerEncoderLayer::new`] makes them.
    #[track_caller]
    pub fn new(
        g: &mut Graph,
        layers: usize,
        size: usize,
        heads: usize,
        inner: usize,
    ) -> TransformerEncoder {
        let layer = |number: usize| -> Box<dyn Layer> {
            let name = format!("layers.{number}");
            Box::new(TransformerEncoderLayer::new(g, &name, size, heads, inner))
        };
        TransformerEncoder {
            layers: Sequential::new((0..layers).map(layer).collect()),
        }
    }
}

impl Layer for TransformerEncoder {
    #[track_caller]
    fn forward(&self, g: &mut Graph, x: Tensor) -> Tensor {
        self.layers.forward(g, x)
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.layers.parameters()
    }
}
