//! Transformers: encoders with self-attention.

use crate::{
    Dropout, Layer, LayerNorm, Linear, Mode, Module, MultiHeadAttention, Relu, Sequential, softmax,
};
use ferrozyme_graph::{Graph, Tensor};

/// Self-attention over the rows of a matrix: each head has linear layers of its own for queries, keys and values; their results are concatenated and go through another one.
#[derive(Module)]
pub struct SelfAttention {
    heads: Vec<Head>,
    output: Linear,
    /// The dot products of queries and keys are multiplied with it.
    #[module(skip)]
    scale: f64,
}

#[derive(Module)]
struct Head {
    query: Linear,
    key: Linear,
    value: Linear,
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
            let mut part = |part: &str| {
                let name = format!("{name}.heads.{number}.{part}");
                Linear::without_bias(g, &name, size, size / heads)
            };
            Head {
                query: part("query"),
                key: part("key"),
                value: part("value"),
            }
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
    fn apply(&self, g: &mut Graph, x: Tensor, mode: Mode) -> Tensor {
        let mut heads = Vec::new();
        for Head { query, key, value } in &self.heads {
            let (query, key) = (query.apply(g, x, mode), key.apply(g, x, mode));
            let value = value.apply(g, x, mode);
            let scores = g.contract("ik,jk->ij", query, key);
            let scores = g.scale(scores, self.scale);
            let weights = softmax(g, scores);
            heads.push(g.contract("ij,jk->ik", weights, value));
        }
        let together = g.concat(&heads, 1);
        self.output.apply(g, together, mode)
    }
}

/// Attention and two linear layers, each added to its input and normalised.
#[derive(Module)]
pub struct TransformerEncoderLayer {
    attention: Box<dyn Layer>,
    norm1: LayerNorm,
    norm2: LayerNorm,
    linear1: Linear,
    linear2: Linear,
    activation: Box<dyn Layer>,
    /// Of what attention, activation and the second linear layer give.
    dropouts: Option<[Dropout; 3]>,
    #[module(skip)]
    norm_first: bool,
}

impl TransformerEncoderLayer {
    /// With [`SelfAttention`], for rows of `size`, with `heads` heads and `inner` values between the linear layers.
    #[track_caller]
    pub fn new(
        g: &mut Graph,
        name: &str,
        size: usize,
        heads: usize,
        inner: usize,
    ) -> TransformerEncoderLayer {
        let attention = SelfAttention::new(g, &format!("{name}.attention"), size, heads);
        TransformerEncoderLayer::with_attention(g, name, attention, size, inner)
    }

    /// With [`MultiHeadAttention`], as PyTorch has it: for `[batch, positions, size]`.
    #[track_caller]
    pub fn standard(
        g: &mut Graph,
        name: &str,
        size: usize,
        heads: usize,
        inner: usize,
    ) -> TransformerEncoderLayer {
        let attention = MultiHeadAttention::new(g, &format!("{name}.attention"), size, heads);
        TransformerEncoderLayer::with_attention(g, name, attention, size, inner)
    }

    /// With attention of one's own, a causal one for instance.
    #[track_caller]
    pub fn with_attention(
        g: &mut Graph,
        name: &str,
        attention: impl Layer + 'static,
        size: usize,
        inner: usize,
    ) -> TransformerEncoderLayer {
        TransformerEncoderLayer {
            attention: Box::new(attention),
            norm1: LayerNorm::new(g, &format!("{name}.norm1"), size),
            norm2: LayerNorm::new(g, &format!("{name}.norm2"), size),
            linear1: Linear::new(g, &format!("{name}.linear1"), size, inner),
            linear2: Linear::new(g, &format!("{name}.linear2"), inner, size),
            activation: Box::new(Relu),
            dropouts: None,
            norm_first: false,
        }
    }

    /// Normalises what attention and linear layers are given, not the sums.
    #[must_use]
    pub fn norm_first(self) -> TransformerEncoderLayer {
        TransformerEncoderLayer {
            norm_first: true,
            ..self
        }
    }

    /// With another activation than [`Relu`].
    #[must_use]
    pub fn with_activation(self, activation: impl Layer + 'static) -> TransformerEncoderLayer {
        TransformerEncoderLayer {
            activation: Box::new(activation),
            ..self
        }
    }

    /// Drops out of what attention, activation and the second linear layer give. The name is that of the layer.
    #[track_caller]
    #[must_use]
    pub fn with_dropout(self, g: &mut Graph, name: &str, rate: f64) -> TransformerEncoderLayer {
        let mut dropout = |number| Dropout::new(g, &format!("{name}.dropout{number}"), rate);
        TransformerEncoderLayer {
            dropouts: Some([1, 2, 3].map(&mut dropout)),
            ..self
        }
    }

    #[track_caller]
    fn dropped(&self, g: &mut Graph, x: Tensor, number: usize, mode: Mode) -> Tensor {
        match &self.dropouts {
            Some(dropouts) => dropouts[number].apply(g, x, mode),
            None => x,
        }
    }

    /// A part of the layer, added to its input: normalised before or afterwards.
    #[track_caller]
    fn added(
        &self,
        g: &mut Graph,
        x: Tensor,
        norm: &LayerNorm,
        mode: Mode,
        part: impl FnOnce(&mut Graph, Tensor) -> Tensor,
    ) -> Tensor {
        if self.norm_first {
            let normal = norm.apply(g, x, mode);
            let change = part(g, normal);
            return g.add(x, change);
        }
        let change = part(g, x);
        let sum = g.add(x, change);
        norm.apply(g, sum, mode)
    }
}

impl Layer for TransformerEncoderLayer {
    #[track_caller]
    fn apply(&self, g: &mut Graph, x: Tensor, mode: Mode) -> Tensor {
        let x = self.added(g, x, &self.norm1, mode, |g, x| {
            let attended = self.attention.apply(g, x, mode);
            self.dropped(g, attended, 0, mode)
        });
        self.added(g, x, &self.norm2, mode, |g, x| {
            let inner = self.linear1.apply(g, x, mode);
            let inner = self.activation.apply(g, inner, mode);
            let inner = self.dropped(g, inner, 1, mode);
            let inner = self.linear2.apply(g, inner, mode);
            self.dropped(g, inner, 2, mode)
        })
    }
}

/// Layers of an encoder, one after the other.
#[derive(Module)]
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
        let layer = |number: usize| {
            let name = format!("layers.{number}");
            TransformerEncoderLayer::new(g, &name, size, heads, inner)
        };
        TransformerEncoder::of((0..layers).map(layer).collect())
    }

    /// These layers.
    pub fn of(layers: Vec<TransformerEncoderLayer>) -> TransformerEncoder {
        let layers = layers
            .into_iter()
            .map(|layer| -> Box<dyn Layer> { Box::new(layer) });
        TransformerEncoder {
            layers: Sequential::new(layers.collect::<Vec<_>>()),
        }
    }
}

impl Layer for TransformerEncoder {
    #[track_caller]
    fn apply(&self, g: &mut Graph, x: Tensor, mode: Mode) -> Tensor {
        self.layers.apply(g, x, mode)
    }
}
