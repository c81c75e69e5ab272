//! Comparing gradients: tensor by tensor, with the hand-written one or with finite differences.

use crate::backward::gradient_by_hand;
use crate::config::{Batch, Config};
use crate::model::{gradient, loss};
use crate::random::Random;
use crate::real::Real;
use crate::tensors::{Activations, Parameters};
use std::ops::Range;

/// A model, and a batch.
pub struct Case<T> {
    /// The model's sizes.
    pub config: Config,
    /// The batch's sizes.
    pub batch: Batch,
    /// The model.
    pub parameters: Vec<T>,
    /// The batch.
    pub tokens: Vec<u32>,
    /// What follows each token.
    pub targets: Vec<u32>,
}

/// How far two gradients are apart in one tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The tensor.
    pub name: &'static str,
    /// The largest number of the gradient.
    pub largest: f64,
    /// The largest difference, divided by the largest number.
    pub relative: f64,
}

/// A function that computes the loss and adds to its gradient.
pub type Gradient<T> =
    fn(&Config, &Batch, &[T], &mut [T], &mut [T], &mut [T], &[u32], &[u32], T) -> T;

impl<T: Real> Case<T> {
    /// A case where every parameter is random, those of layer norms and biases too, so that no gradient is trivial. `deviation` is that of
    /// all parameters.
    pub fn random(config: Config, batch: Batch, deviation: f64, seed: u64) -> Case<T> {
        let mut random = Random::new(seed);
        let mut parameters = Vec::with_capacity(Parameters::total(&config));
        parameters.resize_with(Parameters::total(&config), || {
            T::of(deviation * random.normal())
        });
        let mut token = || (random.uniform() * config.vocabulary as f64) as u32;
        Case {
            config,
            batch,
            parameters,
            tokens: (0..batch.tokens()).map(|_| token()).collect(),
            targets: (0..batch.tokens()).map(|_| token()).collect(),
        }
    }

    fn activations(&self) -> Vec<T> {
        vec![T::ZERO; Activations::total(&self.config, &self.batch)]
    }

    /// The loss.
    pub fn loss(&self) -> T {
        self.loss_with(&mut self.activations())
    }

    fn loss_with(&self, activations: &mut [T]) -> T {
        loss(
            &self.config,
            &self.batch,
            &self.parameters,
            activations,
            &self.tokens,
            &self.targets,
        )
    }

    /// The loss and its gradient, times `seed`, computed by a function.
    pub fn gradient_by(&self, function: Gradient<T>, seed: T) -> (T, Vec<T>) {
        let mut grads = vec![T::ZERO; self.parameters.len()];
        let value = function(
            &self.config,
            &self.batch,
            &self.parameters,
            &mut grads,
            &mut self.activations(),
            &mut self.activations(),
            &self.tokens,
            &self.targets,
            seed,
        );
        (value, grads)
    }

    /// The loss and its automatic gradient.
    pub fn automatic(&self) -> (T, Vec<T>) {
        self.gradient_by(gradient, T::ONE)
    }

    /// The loss and its hand-written gradient.
    pub fn manual(&self) -> (T, Vec<T>) {
        self.gradient_by(gradient_by_hand, T::ONE)
    }

    /// The gradient by central differences of fourth order, at up to `samples` parameters of each tensor (others are given as in
    /// `like`).
    pub fn finite_differences(&mut self, like: &[T], samples: usize, step: f64) -> Vec<T> {
        let mut grads = like.to_vec();
        let mut activations = self.activations();
        for (_, range) in tensors(&self.config) {
            let stride = range.len().div_ceil(samples.max(1)).max(1);
            for i in range.step_by(stride) {
                let middle = self.parameters[i];
                let mut at = |offset: f64| {
                    self.parameters[i] = middle + T::of(offset * step);
                    self.loss_with(&mut activations).wide()
                };
                let slope = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * step);
                grads[i] = T::of(slope);
                self.parameters[i] = middle;
            }
        }
        grads
    }
}

/// How far two gradients are apart, tensor by tensor.
pub fn compare<T: Real>(config: &Config, expected: &[T], actual: &[T]) -> Vec<Difference> {
    tensors(config)
        .map(|(name, range)| {
            let expected = &expected[range.clone()];
            let largest = expected.iter().fold(0.0, |m: f64, x| m.max(x.wide().abs()));
            let pairs = expected.iter().zip(&actual[range]);
            // `max` would drop a NaN.
            let difference = pairs.fold(0.0, |most: f64, (x, y)| {
                let difference = (x.wide() - y.wide()).abs();
                if difference > most || difference.is_nan() {
                    difference
                } else {
                    most
                }
            });
            Difference {
                name,
                largest,
                relative: if difference == 0.0 {
                    0.0
                } else {
                    difference / largest
                },
            }
        })
        .collect()
}

/// The tensors of a model: their names and places.
fn tensors(config: &Config) -> impl Iterator<Item = (&'static str, Range<usize>)> + use<> {
    let mut start = 0;
    Parameters::NAMES
        .iter()
        .zip(Parameters::lengths(config))
        .map(move |(&name, length)| {
            let range = start..start + length;
            start = range.end;
            (name, range)
        })
}
