//! Attention with several heads.

use crate::{Layer, Linear, Mode, Module, softmax};
use ferrozyme_graph::{Graph, INDEX, IntPredicate, Tensor};

/// Attention with several heads (Vaswani et al., 2017): linear layers for queries, keys and values, `softmax(q·kᵀ/√d)·v` for each part of `d` of their results, and another linear layer.
///
/// As a layer it is self-attention, over the second axis from the end.
#[derive(Module)]
pub struct MultiHeadAttention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    #[module(skip)]
    heads: usize,
    #[module(skip)]
    causal: bool,
}

/// Who may attend to whom.
#[derive(Clone, Copy, Debug)]
pub enum Mask {
    /// Everyone to everyone.
    None,
    /// Everyone to itself and to those before.
    Causal,
    /// Where a condition holds (`i1`), for queries along its axis before the last and keys along the last; broadcast to `[batch, heads, queries, keys]`.
    Tensor(Tensor),
}

impl MultiHeadAttention {
    /// For vectors of this size, which the number of heads divides.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub fn new(g: &mut Graph, name: &str, size: usize, heads: usize) -> MultiHeadAttention {
        assert!(
            heads > 0 && size.is_multiple_of(heads),
            "{heads} heads do not divide vectors of {size}"
        );
        let mut linear = |part: &str| Linear::new(g, &format!("{name}.{part}"), size, size);
        MultiHeadAttention {
            query: linear("query"),
            key: linear("key"),
            value: linear("value"),
            output: linear("output"),
            heads,
            causal: false,
        }
    }

    /// As a layer, nobody attends to those behind.
    #[must_use]
    pub fn causal(self) -> MultiHeadAttention {
        MultiHeadAttention {
            causal: true,
            ..self
        }
    }

    /// Queries of shape `[…, queries, size]` attend to keys and values of shape `[…, keys, size]`.
    #[track_caller]
    pub fn attend(
        &self,
        g: &mut Graph,
        [query, key, value]: [Tensor; 3],
        mask: Mask,
        mode: Mode,
    ) -> Tensor {
        let shape = g.ty(query).shape.clone();
        let given = [query, key, value];
        let linear = [&self.query, &self.key, &self.value];
        let parts = [0, 1, 2].map(|index| {
            let part = linear[index].apply(g, given[index], mode);
            self.split(g, part)
        });
        let values = attention(g, parts, mask);
        let together = g.reshape(values, shape);
        self.output.apply(g, together, mode)
    }

    /// As `[batch, positions, heads, size of a head]`.
    #[track_caller]
    fn split(&self, g: &mut Graph, x: Tensor) -> Tensor {
        let shape = g.ty(x).shape.clone();
        let [batch @ .., positions, size] = &shape[..] else {
            panic!("attention needs two axes, but it was given {}", g.ty(x));
        };
        let batch = batch.iter().product();
        g.reshape(x, [batch, *positions, self.heads, size / self.heads])
    }
}

/// How many queries share the keys that they may attend to, where those behind are hidden: fewer scores are computed in vain, but products become smaller.
const BLOCK: usize = 256;

/// `softmax(q·kᵀ/√d)·v` for each head: queries, keys and values are of shape `[batch, positions, heads, size]`, and so is the result.
///
/// Of many positions of which nobody attends to those behind, [`Mask::Causal`], queries are taken in blocks, each with the keys up to its end.
#[track_caller]
pub fn attention(g: &mut Graph, [query, key, value]: [Tensor; 3], mask: Mask) -> Tensor {
    let positions = g.ty(query).shape[1];
    if !matches!(mask, Mask::Causal) || g.ty(key).shape[1] != positions || positions <= BLOCK {
        return attend_from(g, [query, key, value], mask, 0);
    }
    let starts = (0..positions).step_by(BLOCK);
    let blocks: Vec<Tensor> = starts
        .map(|start| {
            let end = positions.min(start + BLOCK);
            let query = g.part(query, 1, start..end);
            let [key, value] = [key, value].map(|tensor| g.part(tensor, 1, 0..end));
            attend_from(g, [query, key, value], mask, start)
        })
        .collect();
    g.concat(&blocks, 1)
}

/// As [`attention`], of queries of which the first has this position.
#[track_caller]
fn attend_from(
    g: &mut Graph,
    [query, key, value]: [Tensor; 3],
    mask: Mask,
    first: usize,
) -> Tensor {
    let scores = g.contract("bqhd,bkhd->bhqk", query, key);
    let size = g.ty(query).shape[3];
    let scores = g.scale(scores, 1.0 / (size as f64).sqrt());
    let scores = masked(g, scores, mask, first);
    let weights = softmax(g, scores);
    g.contract("bhqk,bkhd->bqhd", weights, value)
}

/// The scores, and −∞ where nobody attends; the first query has this position.
#[track_caller]
fn masked(g: &mut Graph, scores: Tensor, mask: Mask, first: usize) -> Tensor {
    let mask = match mask {
        Mask::None => return scores,
        Mask::Causal => {
            let ty = g.ty(scores).with_element(INDEX);
            let (query, key) = (g.iota(ty.clone(), 2), g.iota(ty, 3));
            let query = g.shift(query, first as f64);
            g.compare_integers(IntPredicate::Sge, query, key)
        }
        Mask::Tensor(mask) => {
            let shape = g.ty(scores).shape.clone();
            g.broadcast_to(mask, shape)
        }
    };
    let never = g.constant_like(scores, f64::NEG_INFINITY);
    g.select(mask, scores, never)
}

impl Layer for MultiHeadAttention {
    #[track_caller]
    fn apply(&self, g: &mut Graph, x: Tensor, mode: Mode) -> Tensor {
        let mask = match self.causal {
            true => Mask::Causal,
            false => Mask::None,
        };
        self.attend(g, [x; 3], mask, mode)
    }
}
