//! output = input · weight + bias, with the weights of one *input* in a row: the order in which the forward pass vectorises, too.

use crate::sum_of_products;
use ferrozyme::autodiff_reverse;

/// The forward pass: `weight` holds a row of `bias.len()` numbers for each of the `channels` inputs.
#[autodiff_reverse(
    forward_and_backward,
    Duplicated,
    Duplicated,
    Duplicated,
    Const,
    Duplicated
)]
#[autodiff_reverse(backward, Duplicated, Duplicated, Duplicated, Const, DuplicatedOnly)]
pub fn forward(input: &[f32], weight: &[f32], bias: &[f32], channels: usize, output: &mut [f32]) {
    let outputs = bias.len();
    for t in 0..input.len() / channels {
        let x = &input[t * channels..(t + 1) * channels];
        let y = &mut output[t * outputs..(t + 1) * outputs];
        y.copy_from_slice(bias);
        for i in 0..channels {
            let w = &weight[i * outputs..(i + 1) * outputs];
            for o in 0..outputs {
                y[o] += x[i] * w[o];
            }
        }
    }
}

/// The backward pass by hand.
pub fn backward_by_hand(
    input: &[f32],
    dinput: &mut [f32],
    weight: &[f32],
    dweight: &mut [f32],
    dbias: &mut [f32],
    channels: usize,
    doutput: &[f32],
) {
    let outputs = dbias.len();
    let steps = input.len() / channels;
    for t in 0..steps {
        let dx = &mut dinput[t * channels..(t + 1) * channels];
        let dy = &doutput[t * outputs..(t + 1) * outputs];
        for i in 0..channels {
            dx[i] += sum_of_products(&weight[i * outputs..(i + 1) * outputs], dy);
        }
        for o in 0..outputs {
            dbias[o] += dy[o];
        }
    }
    for i in 0..channels {
        let dw = &mut dweight[i * outputs..(i + 1) * outputs];
        for t in 0..steps {
            let x = input[t * channels + i];
            let dy = &doutput[t * outputs..(t + 1) * outputs];
            for o in 0..outputs {
                dw[o] += x * dy[o];
            }
        }
    }
}
