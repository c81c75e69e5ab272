//! LSTM: the loss of a recurrent network with diagonal weights that predicts a sequence.

use crate::text::{BadFile, Words};
use ferrozyme::autodiff_reverse;
use std::path::Path;

/// One problem.
#[derive(Clone, Debug)]
pub struct Instance {
    pub layers: usize,
    pub width: usize,
    /// For each layer the weights of the gates (forget, ingest, output, change), then their biases.
    pub main: Vec<f64>,
    /// Weights of the input, weights of the output, bias of the output.
    pub extra: Vec<f64>,
    /// For each layer the hidden state, then the cell state.
    pub state: Vec<f64>,
    pub sequence: Vec<f64>,
}

impl Instance {
    /// Reads a problem.
    ///
    /// # Errors
    /// If the file is bad.
    pub fn read(path: &Path) -> Result<Instance, BadFile> {
        let mut words = Words::open(path)?;
        let layers: usize = words.number("a number of layers")?;
        let count: usize = words.number("a length")?;
        let width: usize = words.number("a width")?;
        if width == 0 || count < 2 {
            return Err(words.error("nothing to predict".to_owned()));
        }
        let [main, extra] = [
            words.product(&[8, layers, width])?,
            words.product(&[3, width])?,
        ];
        let [state, sequence] = [
            words.product(&[2, layers, width])?,
            words.product(&[count, width])?,
        ];
        Ok(Instance {
            layers,
            width,
            main: words.floats(main, "a parameter")?,
            extra: words.floats(extra, "a parameter")?,
            state: words.floats(state, "a part of the state")?,
            sequence: words.floats(sequence, "a part of the sequence")?,
        })
    }

    /// The number that is differentiated.
    pub fn objective(&self) -> f64 {
        loss(
            &self.main,
            &self.extra,
            &self.state,
            &self.sequence,
            self.width,
        )
    }

    /// The gradient by Ferrozyme: by main parameters, then extra ones.
    pub fn gradient(&self) -> Vec<f64> {
        let mut gradient = vec![0.0; self.main.len() + self.extra.len()];
        let (main, extra) = gradient.split_at_mut(self.main.len());
        d_loss(
            &self.main,
            main,
            &self.extra,
            extra,
            &self.state,
            &self.sequence,
            self.width,
            1.0,
        );
        gradient
    }

    /// The same by hand.
    pub fn gradient_by_hand(&self) -> Vec<f64> {
        let mut gradient = vec![0.0; self.main.len() + self.extra.len()];
        let (main, extra) = gradient.split_at_mut(self.main.len());
        add_gradient_by_hand(self, main, extra);
        gradient
    }
}

#[autodiff_reverse(d_loss, Duplicated, Duplicated, Const, Const, Const, ActiveOnly)]
fn loss(main: &[f64], extra: &[f64], state: &[f64], sequence: &[f64], width: usize) -> f64 {
    let mut state = state.to_vec();
    let mut x = vec![0.0; width];
    let (in_weights, out_weights, out_biases) = parts_of_extra(extra, width);
    let mut total = 0.0;
    let steps = sequence.len() / width - 1;
    for (input, target) in sequence
        .chunks_exact(width)
        .zip(sequence[width..].chunks_exact(width))
    {
        for j in 0..width {
            x[j] = input[j] * in_weights[j];
        }
        for (layer, state) in main
            .chunks_exact(8 * width)
            .zip(state.chunks_exact_mut(2 * width))
        {
            let (hidden, cell) = state.split_at_mut(width);
            step(layer, hidden, cell, &mut x);
        }
        let mut sum = 0.0;
        let mut product = 0.0;
        let mut weight = 0.0;
        for j in 0..width {
            let y = x[j] * out_weights[j] + out_biases[j];
            sum += y.exp();
            product += target[j] * y;
            weight += target[j];
        }
        total += product - weight * (2.0 + sum).ln();
    }
    -total / (width * steps) as f64
}

fn parts_of_extra(extra: &[f64], width: usize) -> (&[f64], &[f64], &[f64]) {
    let (in_weights, out) = extra.split_at(width);
    let (out_weights, out_biases) = out.split_at(width);
    (in_weights, out_weights, out_biases)
}

/// One layer at one time; `x` goes in and comes out.
fn step(layer: &[f64], hidden: &mut [f64], cell: &mut [f64], x: &mut [f64]) {
    let width = x.len();
    let (weights, biases) = layer.split_at(4 * width);
    for j in 0..width {
        let forget = sigmoid(x[j] * weights[j] + biases[j]);
        let ingest = sigmoid(hidden[j] * weights[width + j] + biases[width + j]);
        let output = sigmoid(x[j] * weights[2 * width + j] + biases[2 * width + j]);
        let change = (hidden[j] * weights[3 * width + j] + biases[3 * width + j]).tanh();
        cell[j] = cell[j] * forget + ingest * change;
        hidden[j] = output * cell[j].tanh();
        x[j] = hidden[j];
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// What the backward pass needs of one number at one time step in one layer.
#[derive(Clone, Copy, Default)]
struct Kept {
    x: f64,
    hidden: f64,
    cell: f64,
    forget: f64,
    ingest: f64,
    output: f64,
    change: f64,
    squashed: f64,
}

/// The gradient as one would derive it: all gates are kept, and gone through backwards.
fn add_gradient_by_hand(instance: &Instance, d_main: &mut [f64], d_extra: &mut [f64]) {
    let Instance {
        layers,
        width,
        ref main,
        ref extra,
        ref sequence,
        ..
    } = *instance;
    let steps = sequence.len() / width - 1;
    let mut state = instance.state.clone();
    let mut kept = vec![Kept::default(); steps * layers * width];
    let mut last = vec![0.0; steps * width];
    let mut shares = vec![0.0; steps * width];
    let (in_weights, out_weights, out_biases) = parts_of_extra(extra, width);
    for t in 0..steps {
        let input = &sequence[t * width..(t + 1) * width];
        let target = &sequence[(t + 1) * width..(t + 2) * width];
        let x = &mut last[t * width..(t + 1) * width];
        for j in 0..width {
            x[j] = input[j] * in_weights[j];
        }
        for l in 0..layers {
            let layer = &main[8 * l * width..8 * (l + 1) * width];
            let (weights, biases) = layer.split_at(4 * width);
            let (hidden, cell) = state[2 * l * width..2 * (l + 1) * width].split_at_mut(width);
            let kept = &mut kept[(t * layers + l) * width..(t * layers + l + 1) * width];
            for j in 0..width {
                let gate = |which: usize, x: f64| {
                    x * weights[which * width + j] + biases[which * width + j]
                };
                let one = Kept {
                    x: x[j],
                    hidden: hidden[j],
                    cell: cell[j],
                    forget: sigmoid(gate(0, x[j])),
                    ingest: sigmoid(gate(1, hidden[j])),
                    output: sigmoid(gate(2, x[j])),
                    change: gate(3, hidden[j]).tanh(),
                    squashed: 0.0,
                };
                cell[j] = one.cell * one.forget + one.ingest * one.change;
                let squashed = cell[j].tanh();
                hidden[j] = one.output * squashed;
                kept[j] = Kept { squashed, ..one };
                x[j] = hidden[j];
            }
        }
        let share = &mut shares[t * width..(t + 1) * width];
        let mut sum = 2.0;
        for j in 0..width {
            share[j] = (x[j] * out_weights[j] + out_biases[j]).exp();
            sum += share[j];
        }
        let weight: f64 = target.iter().sum();
        for j in 0..width {
            share[j] = target[j] - weight * share[j] / sum;
        }
    }

    let scale = -1.0 / (width * steps) as f64;
    let mut d_state = vec![0.0; 2 * layers * width];
    let mut dx = vec![0.0; width];
    let (d_in_weights, d_out) = d_extra.split_at_mut(width);
    let (d_out_weights, d_out_biases) = d_out.split_at_mut(width);
    for t in (0..steps).rev() {
        let x = &last[t * width..(t + 1) * width];
        let share = &shares[t * width..(t + 1) * width];
        for j in 0..width {
            let dy = scale * share[j];
            d_out_weights[j] += dy * x[j];
            d_out_biases[j] += dy;
            dx[j] = dy * out_weights[j];
        }
        for l in (0..layers).rev() {
            let weights = &main[8 * l * width..(8 * l + 4) * width];
            let (d_weights, d_biases) =
                d_main[8 * l * width..8 * (l + 1) * width].split_at_mut(4 * width);
            let (d_hidden, d_cell) =
                d_state[2 * l * width..2 * (l + 1) * width].split_at_mut(width);
            let kept = &kept[(t * layers + l) * width..(t * layers + l + 1) * width];
            for j in 0..width {
                let one = kept[j];
                let dh = d_hidden[j] + dx[j];
                let d_output = dh * one.squashed * one.output * (1.0 - one.output);
                let dc = d_cell[j] + dh * one.output * (1.0 - one.squashed * one.squashed);
                let d_forget = dc * one.cell * one.forget * (1.0 - one.forget);
                let d_ingest = dc * one.change * one.ingest * (1.0 - one.ingest);
                let d_change = dc * one.ingest * (1.0 - one.change * one.change);
                let gates = [
                    (d_forget, one.x),
                    (d_ingest, one.hidden),
                    (d_output, one.x),
                    (d_change, one.hidden),
                ];
                for (which, (d_gate, input)) in gates.into_iter().enumerate() {
                    d_weights[which * width + j] += d_gate * input;
                    d_biases[which * width + j] += d_gate;
                }
                d_cell[j] = dc * one.forget;
                d_hidden[j] = d_ingest * weights[width + j] + d_change * weights[3 * width + j];
                dx[j] = d_forget * weights[j] + d_output * weights[2 * width + j];
            }
        }
        let input = &sequence[t * width..(t + 1) * width];
        for j in 0..width {
            d_in_weights[j] += dx[j] * input[j];
        }
    }
}
