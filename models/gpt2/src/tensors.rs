//! Where the tensors lie: all parameters of a model in one vector, and all activations in another, in the order of llm.c.
//!
//! [`Parameters`] and [`Activations`] are the tensors side by side, as shared slices, as mutable ones, or as their lengths.

use crate::config::{Batch, Config};

/// Something that can be split from the front: a slice.
pub trait Front: Sized {
    /// Takes the first `length` elements.
    fn take(&mut self, length: usize) -> Self;
}

impl<T> Front for &[T] {
    #[inline]
    fn take(&mut self, length: usize) -> Self {
        let (front, rest) = self.split_at(length);
        *self = rest;
        front
    }
}

impl<T> Front for &mut [T] {
    #[inline]
    fn take(&mut self, length: usize) -> Self {
        let (front, rest) = std::mem::take(self).split_at_mut(length);
        *self = rest;
        front
    }
}

/// Declares a struct of tensors, all of one type `S`, with how long each of them is.
macro_rules! tensors {
    (
        $(#[$attribute:meta])* $name:ident($($size:ident: $type:ty),*);
        let $pattern:pat = $sizes:expr;
        $($(#[$doc:meta])* $tensor:ident: [$($dimension:expr),*],)*
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs)]
        pub struct $name<S> {
            $($(#[$doc])* pub $tensor: S,)*
        }

        impl<S: Front> $name<S> {
            /// Cuts one slice into the tensors. It must be as long as all of them.
            #[inline]
            pub fn cut(mut slice: S, $($size: &$type),*) -> $name<S> {
                let $pattern = $sizes;
                $name { $($tensor: slice.take(1 $(* $dimension)*),)* }
            }
        }

        impl $name<usize> {
            /// The names of the tensors, in order.
            pub const NAMES: &[&str] = &[$(stringify!($tensor)),*];

            /// The shapes of the tensors, in order.
            pub fn shapes($($size: &$type),*) -> Vec<Vec<usize>> {
                let $pattern = $sizes;
                vec![$(vec![$($dimension),*]),*]
            }

            /// How long each tensor is, in order.
            pub fn lengths($($size: &$type),*) -> Vec<usize> {
                let $pattern = $sizes;
                vec![$(1 $(* $dimension)*),*]
            }

            /// How long all tensors are together.
            pub fn total($($size: &$type),*) -> usize {
                Self::lengths($($size),*).iter().sum()
            }
        }
    };
}

tensors! {
    /// The parameters of a model. Weights are stored output by output, so that a row belongs to one output.
    Parameters(config: Config);
    let (l, c, v, t) = (config.layers, config.channels, config.padded_vocabulary, config.max_steps);
    /// Embedding of tokens, which also gives the logits.
    wte: [v, c],
    /// Embedding of positions.
    wpe: [t, c],
    ln1w: [l, c],
    ln1b: [l, c],
    /// Queries, keys and values.
    qkvw: [l, 3 * c, c],
    qkvb: [l, 3 * c],
    attprojw: [l, c, c],
    attprojb: [l, c],
    ln2w: [l, c],
    ln2b: [l, c],
    fcw: [l, 4 * c, c],
    fcb: [l, 4 * c],
    fcprojw: [l, c, 4 * c],
    fcprojb: [l, c],
    lnfw: [c],
    lnfb: [c],
}

tensors! {
    /// The activations: what the forward pass saves for the backward pass.
    Activations(config: Config, batch: Batch);
    let (l, c, h, v, b, t) =
        (config.layers, config.channels, config.heads, config.padded_vocabulary, batch.sequences, batch.steps);
    encoded: [b, t, c],
    ln1: [l, b, t, c],
    ln1_mean: [l, b, t],
    ln1_rstd: [l, b, t],
    qkv: [l, b, t, 3 * c],
    atty: [l, b, t, c],
    /// Attention before and after the softmax.
    preatt: [l, b, h, t, t],
    att: [l, b, h, t, t],
    attproj: [l, b, t, c],
    residual2: [l, b, t, c],
    ln2: [l, b, t, c],
    ln2_mean: [l, b, t],
    ln2_rstd: [l, b, t],
    fch: [l, b, t, 4 * c],
    fch_gelu: [l, b, t, 4 * c],
    fcproj: [l, b, t, c],
    residual3: [l, b, t, c],
    lnf: [b, t, c],
    lnf_mean: [b, t],
    lnf_rstd: [b, t],
    logits: [b, t, v],
    probabilities: [b, t, v],
    losses: [b, t],
}

/// Row `index` of a matrix whose rows are `length` long.
#[inline]
pub fn row<T>(matrix: &[T], index: usize, length: usize) -> &[T] {
    &matrix[index * length..(index + 1) * length]
}

/// Row `index` of a matrix whose rows are `length` long.
#[inline]
pub fn row_mut<T>(matrix: &mut [T], index: usize, length: usize) -> &mut [T] {
    &mut matrix[index * length..(index + 1) * length]
}
