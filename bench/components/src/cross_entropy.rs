//! Softmax cross-entropy as in llm.c: the probabilities are written out, then the loss is read off them.

use ferrozyme::autodiff_reverse;

/// The forward pass: a row of `classes` logits and one target for each loss.
#[autodiff_reverse(forward_and_backward, Duplicated, Const, Duplicated, Duplicated)]
#[autodiff_reverse(backward, Duplicated, Const, DuplicatedOnly, DuplicatedOnly)]
pub fn forward(logits: &[f32], targets: &[u32], probabilities: &mut [f32], losses: &mut [f32]) {
    let classes = logits.len() / targets.len();
    for t in 0..targets.len() {
        let x = &logits[t * classes..(t + 1) * classes];
        let p = &mut probabilities[t * classes..(t + 1) * classes];
        let mut largest = f32::NEG_INFINITY;
        for i in 0..classes {
            if x[i] > largest {
                largest = x[i];
            }
        }
        let mut sum = 0.0;
        for i in 0..classes {
            p[i] = (x[i] - largest).exp();
            sum += p[i];
        }
        for i in 0..classes {
            p[i] /= sum;
        }
        losses[t] = -p[targets[t] as usize].ln();
    }
}

/// The backward pass by hand, through loss and softmax at once. It needs the probabilities, which the forward pass kept.
pub fn backward_by_hand(
    dlogits: &mut [f32],
    targets: &[u32],
    probabilities: &[f32],
    dlosses: &[f32],
) {
    let classes = dlogits.len() / targets.len();
    for t in 0..targets.len() {
        let dx = &mut dlogits[t * classes..(t + 1) * classes];
        let p = &probabilities[t * classes..(t + 1) * classes];
        let d = dlosses[t];
        for i in 0..classes {
            dx[i] += p[i] * d;
        }
        dx[targets[t] as usize] -= d;
    }
}
