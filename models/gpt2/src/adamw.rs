//! AdamW: steps along the gradient's running mean, each parameter's scaled by how large its gradient usually is.

use std::thread;

/// How to step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The learning rate.
    pub rate: f32,
    /// How much of the running mean is kept.
    pub beta1: f32,
    /// How much of the running mean of squares is kept.
    pub beta2: f32,
    /// Added to the scale, so that it is never zero.
    pub epsilon: f32,
    /// Which part of every parameter is taken away in a step, times the rate.
    pub decay: f32,
}

impl Default for Settings {
    /// Those of the paper's baseline.
    fn default() -> Settings {
        Settings {
            rate: 1e-4,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            decay: 0.0,
        }
    }
}

/// The state of the optimiser.
#[derive(Clone, Debug, PartialEq)]
pub struct AdamW {
    /// Steps taken.
    pub steps: u64,
    /// The running means of the gradients.
    pub means: Vec<f32>,
    /// The running means of their squares.
    pub squares: Vec<f32>,
}

impl AdamW {
    /// The state before the first step.
    pub fn new(parameters: usize) -> AdamW {
        AdamW {
            steps: 0,
            means: vec![0.0; parameters],
            squares: vec![0.0; parameters],
        }
    }

    /// Takes one step. The result does not depend on `threads`.
    pub fn step(
        &mut self,
        settings: &Settings,
        parameters: &mut [f32],
        grads: &[f32],
        threads: usize,
    ) {
        self.steps += 1;
        let Settings {
            rate,
            beta1,
            beta2,
            epsilon,
            decay,
        } = *settings;
        // Running means start at zero; these corrections take that out.
        let steps = self.steps.min(i32::MAX as u64) as i32;
        let correction1 = 1.0 - beta1.powi(steps);
        let correction2 = 1.0 - beta2.powi(steps);
        let part = parameters.len().div_ceil(threads.max(1)).max(1);
        thread::scope(|scope| {
            let states = self
                .means
                .chunks_mut(part)
                .zip(self.squares.chunks_mut(part));
            let parts = parameters.chunks_mut(part).zip(grads.chunks(part));
            for ((parameters, grads), (means, squares)) in parts.zip(states) {
                let update = move || {
                    let numbers = parameters.iter_mut().zip(grads);
                    for ((x, &g), (m, v)) in numbers.zip(means.iter_mut().zip(squares)) {
                        *m = beta1 * *m + (1.0 - beta1) * g;
                        *v = beta2 * *v + (1.0 - beta2) * g * g;
                        let scale = (*v / correction2).sqrt() + epsilon;
                        *x -= rate * (*m / correction1 / scale + decay * *x);
                    }
                };
                if threads > 1 {
                    scope.spawn(update);
                } else {
                    update();
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two steps, worked out by hand: the length of the first is the learning rate, whatever the size of the gradient.
    #[test]
    fn first_steps() {
        let settings = Settings {
            rate: 0.1,
            ..Settings::default()
        };
        let mut state = AdamW::new(2);
        let mut x = [1.0, -1.0];
        state.step(&settings, &mut x, &[3.0, -0.01], 1);
        assert!(
            (x[0] - 0.9).abs() < 1e-6 && (x[1] + 0.9).abs() < 1e-5,
            "{x:?}"
        );
        state.step(&settings, &mut x, &[-3.0, -0.01], 1);
        // Mean (0.9·0.3 − 0.3) / 0.19 = −0.15789, root of squares 3.
        assert!(
            (x[0] - (0.9 + 0.1 * 0.157_894_7 / 3.0)).abs() < 1e-6,
            "{x:?}"
        );
        assert_eq!(state.steps, 2);
    }

    #[test]
    fn decay_shrinks() {
        let settings = Settings {
            rate: 0.1,
            decay: 0.5,
            ..Settings::default()
        };
        let mut x = [2.0];
        AdamW::new(1).step(&settings, &mut x, &[0.0], 1);
        assert!((x[0] - 1.9).abs() < 1e-6);
    }

    #[test]
    fn threads_change_nothing() {
        let grads: Vec<f32> = (0..101).map(|i| (i as f32 * 0.7).sin()).collect();
        let run = |threads| {
            let (mut state, mut x) = (AdamW::new(101), grads.clone());
            state.step(&Settings::default(), &mut x, &grads, threads);
            state.step(&Settings::default(), &mut x, &grads, threads);
            (state, x)
        };
        assert_eq!(run(1), run(3));
    }
}
