//! The model as operations of a graph, and where its parameters are in the vector that the crate `gpt2` keeps them in.
//!
//! Logits are computed for the padded vocabulary, since products of matrices are fast where rows begin at multiples of sixteen bytes. What is beyond the vocabulary has no probability.

use crate::functions::{cross_entropy, gelu, with_classes};
use ferrozyme_graph::{Graph, INDEX, Parameter, Tensor, TensorType};
use ferrozyme_nn::{Mask, attention};
use gpt2::{Batch, Config, Parameters};
use std::ops::Range;

/// A parameter of the graph, and its place.
#[derive(Clone, Debug)]
pub struct Held {
    /// The parameter.
    pub parameter: Parameter,
    /// Where it is in the vector of all parameters.
    pub range: Range<usize>,
}

/// The parameters of a layer, in the order of [`LAYER`].
type LayerParameters = [Parameter; LAYER.len()];

/// The tensors that each layer has one of, by their names in [`Parameters`], and the numbers in a row and of rows, in channels.
const LAYER: [(&str, usize, usize); 12] = [
    ("ln1w", 0, 1),
    ("ln1b", 0, 1),
    ("qkvw", 3, 1),
    ("qkvb", 0, 3),
    ("attprojw", 1, 1),
    ("attprojb", 0, 1),
    ("ln2w", 0, 1),
    ("ln2b", 0, 1),
    ("fcw", 4, 1),
    ("fcb", 0, 4),
    ("fcprojw", 1, 4),
    ("fcprojb", 0, 1),
];

/// GPT-2, with parameters that are zero until they are given values.
#[derive(Clone, Debug)]
pub struct Model {
    config: Config,
    /// All parameters of the graph.
    pub held: Vec<Held>,
    tokens: Parameter,
    positions: Parameter,
    layers: Vec<LayerParameters>,
    last_norm: [Parameter; 2],
}

impl Model {
    /// Adds the parameters to a graph.
    #[track_caller]
    pub fn new(g: &mut Graph, config: Config) -> Model {
        let starts: Vec<usize> = Parameters::lengths(&config)
            .iter()
            .scan(0, |end, length| {
                let start = *end;
                *end += length;
                Some(start)
            })
            .collect();
        let mut held = Vec::new();
        let mut hold = |name: &str, number: Option<usize>, shape: &[usize]| {
            let tensor = Parameters::NAMES.iter().position(|other| *other == name);
            let tensor = tensor.expect("the model has a tensor of this name");
            let count: usize = shape.iter().product();
            let start = starts[tensor] + number.unwrap_or(0) * count;
            let name = number.map_or(name.to_owned(), |number| format!("{name}.{number}"));
            let parameter = g.parameter(&name, shape, 0.0);
            let range = start..start + count;
            held.push(Held { parameter, range });
            parameter
        };
        let c = config.channels;
        let tokens = hold("wte", None, &[config.padded_vocabulary, c]);
        let positions = hold("wpe", None, &[config.max_steps, c]);
        let mut layers = Vec::new();
        for layer in 0..config.layers {
            layers.push(LAYER.map(|(name, rows, row)| {
                let shape = [rows * c, row * c];
                let shape = if rows == 0 { &shape[1..] } else { &shape[..] };
                hold(name, Some(layer), shape)
            }));
        }
        let last_norm = ["lnfw", "lnfb"].map(|name| hold(name, None, &[c]));
        Model {
            config,
            held,
            tokens,
            positions,
            layers,
            last_norm,
        }
    }

    /// The parameters, in their order.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.held.iter().map(|held| held.parameter).collect()
    }

    /// The logits after each of the tokens that are fed as `tokens`: `[batch.tokens(), vocabulary]`.
    #[track_caller]
    pub fn logits(&self, g: &mut Graph, batch: Batch) -> Tensor {
        let padded = self.padded_logits(g, batch);
        g.part(padded, 1, 0..self.config.vocabulary)
    }

    /// As [`logits`](Self::logits), and what belongs to no token behind them.
    fn padded_logits(&self, g: &mut Graph, batch: Batch) -> Tensor {
        let (b, t) = (batch.sequences, batch.steps);
        let c = self.config.channels;
        let tokens = g.feed_of("tokens", TensorType::new(INDEX, [b * t]));
        let table = g.read(self.tokens);
        let words = g.gather(table, tokens, 0);
        let places = g.read(self.positions);
        let places = g.part(places, 0, 0..t);
        let places = g.broadcast(places, &[(0, b)]);
        let places = g.reshape(places, [b * t, c]);
        let mut x = g.add(words, places);
        for layer in &self.layers {
            let &[
                ln1w,
                ln1b,
                qkvw,
                qkvb,
                attprojw,
                attprojb,
                ln2w,
                ln2b,
                fcw,
                fcb,
                fcprojw,
                fcprojb,
            ] = layer;
            let normal = norm(g, x, [ln1w, ln1b]);
            let qkv = linear(g, normal, qkvw, qkvb);
            let attended = self.attention(g, batch, qkv);
            let projected = linear(g, attended, attprojw, attprojb);
            x = g.add(x, projected);
            let normal = norm(g, x, [ln2w, ln2b]);
            let inner = linear(g, normal, fcw, fcb);
            let inner = gelu(g, inner);
            let projected = linear(g, inner, fcprojw, fcprojb);
            x = g.add(x, projected);
        }
        let x = norm(g, x, self.last_norm);
        let table = g.read(self.tokens);
        g.contract("ik,jk->ij", x, table)
    }

    /// Causal attention of all heads, from queries, keys and values that stand side by side.
    fn attention(&self, g: &mut Graph, batch: Batch, qkv: Tensor) -> Tensor {
        let (b, t) = (batch.sequences, batch.steps);
        let (heads, size) = (self.config.heads, self.config.head_size());
        let qkv = g.reshape(qkv, [b, t, 3, heads, size]);
        let [query, key, value] = [0, 1, 2].map(|part| {
            let part = g.part(qkv, 2, part..part + 1);
            g.reshape(part, [b, t, heads, size])
        });
        let attended = attention(g, [query, key, value], Mask::Causal);
        g.reshape(attended, [b * t, heads * size])
    }

    /// The mean loss over a batch, whose tokens and targets are fed.
    #[track_caller]
    pub fn loss(&self, g: &mut Graph, batch: Batch) -> Tensor {
        let logits = self.padded_logits(g, batch);
        let logits = with_classes(g, logits, self.config.vocabulary);
        let targets = g.feed_of("targets", TensorType::new(INDEX, [batch.tokens()]));
        cross_entropy(g, logits, targets)
    }
}

/// `x·Wᵀ + b`.
fn linear(g: &mut Graph, x: Tensor, weight: Parameter, bias: Parameter) -> Tensor {
    let weight = g.read(weight);
    let product = g.contract("ik,jk->ij", x, weight);
    let bias = g.read(bias);
    g.add(product, bias)
}

/// Layer norm with the epsilon of GPT-2.
fn norm(g: &mut Graph, x: Tensor, [scale, shift]: [Parameter; 2]) -> Tensor {
    let c = g.ty(x).shape[1];
    let new = [(1, c)];
    let share = 1.0 / c as f64;
    let sum = g.sum(x, &[1]);
    let mean = g.scale(sum, share);
    let mean = g.broadcast(mean, &new);
    let centred = g.sub(x, mean);
    let squares = g.mul(centred, centred);
    let sum = g.sum(squares, &[1]);
    let variance = g.scale(sum, share);
    let variance = g.shift(variance, 1e-5);
    let deviation = g.sqrt(variance);
    let one = g.constant_like(deviation, 1.0);
    let reciprocal = g.div(one, deviation);
    let reciprocal = g.broadcast(reciprocal, &new);
    let normal = g.mul(centred, reciprocal);
    let (scale, shift) = (g.read(scale), g.read(shift));
    let scaled = g.mul(normal, scale);
    g.add(scaled, shift)
}
