//! The embedding: a row for the token plus a row for its position.

use crate::real::Real;
use crate::tensors::{row, row_mut};

/// The forward pass. Sequences are `steps` long.
pub fn forward<T: Real>(
    tokens: &[u32],
    token_rows: &[T],
    position_rows: &[T],
    steps: usize,
    channels: usize,
    output: &mut [T],
) {
    for (t, &token) in tokens.iter().enumerate() {
        let word = row(token_rows, token as usize, channels);
        let place = row(position_rows, t % steps, channels);
        let y = row_mut(output, t, channels);
        for i in 0..channels {
            y[i] = word[i] + place[i];
        }
    }
}

/// The backward pass.
pub fn backward<T: Real>(
    tokens: &[u32],
    token_grads: &mut [T],
    position_grads: &mut [T],
    steps: usize,
    channels: usize,
    output_grads: &[T],
) {
    for (t, &token) in tokens.iter().enumerate() {
        let dy = row(output_grads, t, channels);
        let dword = row_mut(token_grads, token as usize, channels);
        let dplace = row_mut(position_grads, t % steps, channels);
        for i in 0..channels {
            dword[i] += dy[i];
            dplace[i] += dy[i];
        }
    }
}
