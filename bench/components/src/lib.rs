//! The components of GPT-2 as plain safe Rust loops over slices, each with its backward pass twice: by Ferrozyme, and
//! written by hand in the same style.
//!
//! The forward passes follow llm.c, loop for loop. The hand-written backward passes use its loop orders, which vectorise, and
//! are at least as fast: where llm.c relies on `-Ofast` to vectorise a sum, [`sum_of_products`] keeps sixteen partial sums, and
//! where llm.c takes quadratic time (softmax) or a second transcendental function (GELU), the shorter formula is used.
//!
//! Every backward pass adds to the gradients in its arguments. Nothing here uses threads.

pub mod attention;
pub mod cases;
pub mod cross_entropy;
pub mod gelu;
pub mod layer_norm;
pub mod loss;
pub mod matrix_product;
pub mod projection;

/// Sequences at once.
pub const BATCH: usize = 4;
/// Tokens per sequence.
pub const STEPS: usize = 64;
/// Numbers per token.
pub const CHANNELS: usize = 768;
/// Heads of attention.
pub const HEADS: usize = 12;
/// Numbers per token inside the feed-forward block.
pub const WIDE: usize = 3072;
/// Classes of the cross-entropy.
pub const VOCABULARY: usize = 50304;

/// Σ aᵢ bᵢ with sixteen partial sums, so that it vectorises without leave to reorder sums.
pub fn sum_of_products(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let mut total: f32 = a
        .remainder()
        .iter()
        .zip(b.remainder())
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in a.zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    for sum in sums {
        total += sum;
    }
    total
}

/// Numbers in -1..1 that are the same in every run.
pub fn numbers(length: usize, start: u32) -> Vec<f32> {
    let mut state = start.wrapping_mul(2_654_435_761) ^ 0x9e37_79b9;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}
