//! Softmax and cross-entropy: how surprising each target is.

use crate::real::Real;
use crate::tensors::{row, row_mut};

/// The forward pass. Rows are `classes` long, of which the first `vocabulary` count; the others have probability 0.
pub fn forward<T: Real>(
    logits: &[T],
    targets: &[u32],
    vocabulary: usize,
    classes: usize,
    probabilities: &mut [T],
    losses: &mut [T],
) {
    for (t, &target) in targets.iter().enumerate() {
        let x = &row(logits, t, classes)[..vocabulary];
        let (p, padding) = row_mut(probabilities, t, classes).split_at_mut(vocabulary);
        let mut largest = T::LOWEST;
        for i in 0..vocabulary {
            if x[i] > largest {
                largest = x[i];
            }
        }
        let mut sum = T::ZERO;
        for i in 0..vocabulary {
            p[i] = (x[i] - largest).exp();
            sum += p[i];
        }
        for i in 0..vocabulary {
            p[i] /= sum;
        }
        padding.fill(T::ZERO);
        losses[t] = -p[target as usize].ln();
    }
}

/// The backward pass, through the loss and the softmax at once: the probabilities, less one for the target.
pub fn backward<T: Real>(
    logit_grads: &mut [T],
    targets: &[u32],
    vocabulary: usize,
    classes: usize,
    probabilities: &[T],
    loss_grads: &[T],
) {
    for (t, &target) in targets.iter().enumerate() {
        let dx = &mut row_mut(logit_grads, t, classes)[..vocabulary];
        let p = &row(probabilities, t, classes)[..vocabulary];
        let d = loss_grads[t];
        for i in 0..vocabulary {
            dx[i] += p[i] * d;
        }
        dx[target as usize] -= d;
    }
}
