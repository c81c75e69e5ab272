//! output = input · weightᵀ + bias, with the weights of one output in a row, as llm.c stores them.

use ferrozyme::autodiff_reverse;

/// The forward pass: `input` holds rows of `channels` numbers, `weight` a row of as many for each entry of `bias`.
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
        for o in 0..outputs {
            let w = &weight[o * channels..(o + 1) * channels];
            let mut sum = bias[o];
            for i in 0..channels {
                sum += x[i] * w[i];
            }
            y[o] = sum;
        }
    }
}

/// The backward pass by hand, in the two sweeps of llm.c: the gradient of the input keeps a row of it in the cache, that of the
/// weights a row of those.
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
        for o in 0..outputs {
            let w = &weight[o * channels..(o + 1) * channels];
            let d = dy[o];
            for i in 0..channels {
                dx[i] += w[i] * d;
            }
        }
    }
    for o in 0..outputs {
        let dw = &mut dweight[o * channels..(o + 1) * channels];
        for t in 0..steps {
            let x = &input[t * channels..(t + 1) * channels];
            let d = doutput[t * outputs + o];
            dbias[o] += d;
            for i in 0..channels {
                dw[i] += x[i] * d;
            }
        }
    }
}
