//! A layer of a network with ndarray, of which the inputs are constant. With `opt-level = 1` it is refused (FZ0305).

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::Field;
use ndarray::{Array1, Array2, arr1};

const TWELVE: [f64; 12] = [
    2.0, 0.5, -0.3, 0.1, 1.5, 0.4, -0.2, 0.3, 1.8, 0.7, -0.4, 0.9,
];

fn matrix(x: &[f64]) -> Array2<f64> {
    Array2::from_shape_vec((3, 3), x[..9].to_vec()).unwrap()
}

fn vector(x: &[f64]) -> Array1<f64> {
    arr1(&x[9..])
}

/// A layer of a network with its weights in a struct of arrays.
struct Dense {
    weights: Array2<f64>,
    bias: Array1<f64>,
}

impl Dense {
    fn from_slice(x: &[f64]) -> Dense {
        Dense {
            weights: matrix(x),
            bias: vector(x),
        }
    }

    #[autodiff_reverse(loss_reverse, Duplicated, Const, Const, Active)]
    #[autodiff_forward(loss_forward, Dual, Const, Const, Dual)]
    fn loss(&self, inputs: &Array2<f64>, labels: &[usize]) -> f64 {
        let logits = inputs.dot(&self.weights) + &self.bias;
        let mut loss = 0.0;
        for (row, &label) in logits.rows().into_iter().zip(labels) {
            let largest = row.fold(f64::NEG_INFINITY, |a, &b| a.max(b));
            let sum = row.mapv(|x| (x - largest).exp()).sum();
            loss += largest + sum.ln() - row[label];
        }
        loss / labels.len() as f64
    }
}

#[test]
fn dense_layer() {
    let inputs = Array2::from_shape_fn((4, 3), |(i, j)| (i as f64 * 0.7 - j as f64 * 0.4).cos());
    let labels = [0, 2, 1, 1];
    Field::new("ndarray dense layer", |x| {
        Dense::from_slice(x).loss(&inputs, &labels)
    })
    .reverse(|x, dx, seed| {
        let mut shadow = Dense::from_slice(dx);
        let value = Dense::from_slice(x).loss_reverse(&mut shadow, &inputs, &labels, seed);
        dx[..9].copy_from_slice(shadow.weights.as_slice().unwrap());
        dx[9..].copy_from_slice(shadow.bias.as_slice().unwrap());
        value
    })
    .forward(|x, v| Dense::from_slice(x).loss_forward(&Dense::from_slice(v), &inputs, &labels))
    .check(&TWELVE);
}
