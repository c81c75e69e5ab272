//! Fits a small neural network to a curve by gradient descent. The parameters are a struct, and so is their gradient.

use ferrozyme::{Differentiable, autodiff_reverse};

const HIDDEN: usize = 8;

/// One hidden layer from a number to a number.
#[derive(Clone, Differentiable)]
struct Network {
    weights: Vec<f64>,
    offsets: Vec<f64>,
    readout: Vec<f64>,
}

impl Network {
    fn predict(&self, x: f64) -> f64 {
        let hidden = self.weights.iter().zip(&self.offsets);
        hidden
            .zip(&self.readout)
            .map(|((weight, offset), readout)| readout * (weight * x + offset).tanh())
            .sum()
    }

    #[autodiff_reverse(d_loss, Duplicated, Const, Active)]
    fn loss(&self, samples: &[(f64, f64)]) -> f64 {
        let errors = samples.iter().map(|&(x, y)| (self.predict(x) - y).powi(2));
        errors.sum::<f64>() / samples.len() as f64
    }

    fn descend(&mut self, gradient: &Network, rate: f64) {
        let pairs = [
            (&mut self.weights, &gradient.weights),
            (&mut self.offsets, &gradient.offsets),
            (&mut self.readout, &gradient.readout),
        ];
        for (parameters, gradient) in pairs {
            for (parameter, slope) in parameters.iter_mut().zip(gradient) {
                *parameter -= rate * slope;
            }
        }
    }
}

fn main() {
    let samples: Vec<(f64, f64)> = (0..64)
        .map(|i| f64::from(i) / 10.0 - 3.2)
        .map(|x| (x, x.sin()))
        .collect();
    let start = |scale: f64| (0..HIDDEN).map(|i| scale * (i as f64 - 3.5)).collect();
    let mut network = Network {
        weights: start(0.3),
        offsets: start(0.2),
        readout: start(0.1),
    };
    for step in 0..=2000 {
        let mut gradient = ferrozyme::shadow_of(&network);
        let loss = network.d_loss(&mut gradient, &samples, 1.0);
        network.descend(&gradient, 0.05);
        if step % 500 == 0 {
            println!("step {step:4}  loss {loss:.6}");
        }
    }
    println!(
        "sin(1) = {:.4}, network: {:.4}",
        1f64.sin(),
        network.predict(1.0)
    );
}
