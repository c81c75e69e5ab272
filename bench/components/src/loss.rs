//! Softmax cross-entropy without the probabilities: only the losses and the logarithm of each row's sum are written.

use ferrozyme::autodiff_reverse;

/// The forward pass: a row of `classes` logits and one target for each loss.
#[autodiff_reverse(forward_and_backward, Duplicated, Const, Duplicated, Duplicated)]
#[autodiff_reverse(backward, Duplicated, Const, DuplicatedOnly, DuplicatedOnly)]
pub fn forward(logits: &[f32], targets: &[u32], logarithms: &mut [f32], losses: &mut [f32]) {
    let classes = logits.len() / targets.len();
    for t in 0..targets.len() {
        let x = &logits[t * classes..(t + 1) * classes];
        let mut largest = f32::NEG_INFINITY;
        for i in 0..classes {
            if x[i] > largest {
                largest = x[i];
            }
        }
        let mut sum = 0.0;
        for i in 0..classes {
            sum += (x[i] - largest).exp();
        }
        logarithms[t] = largest + sum.ln();
        losses[t] = logarithms[t] - x[targets[t] as usize];
    }
}

/// The backward pass by hand. It needs the logarithms of the sums, which the forward pass kept.
pub fn backward_by_hand(
    logits: &[f32],
    dlogits: &mut [f32],
    targets: &[u32],
    logarithms: &[f32],
    dlosses: &[f32],
) {
    let classes = logits.len() / targets.len();
    for t in 0..targets.len() {
        let x = &logits[t * classes..(t + 1) * classes];
        let dx = &mut dlogits[t * classes..(t + 1) * classes];
        let (logarithm, d) = (logarithms[t], dlosses[t]);
        for i in 0..classes {
            dx[i] += (x[i] - logarithm).exp() * d;
        }
        dx[targets[t] as usize] -= d;
    }
}
