//! The automatic gradient of the whole model, against the hand-written one and against finite differences, on tiny models.

use gpt2::backward::gradient_by_hand;
use gpt2::model::{gradient, loss};
use gpt2::random::Random;
use gpt2::{Activations, Batch, Config, Parameters, Real};

/// A model with random parameters of all kinds, and a batch for it.
struct Case<T> {
    config: Config,
    batch: Batch,
    parameters: Vec<T>,
    tokens: Vec<u32>,
    targets: Vec<u32>,
}

type Gradient<T> = fn(&Config, &Batch, &[T], &mut [T], &mut [T], &mut [T], &[u32], &[u32], T) -> T;

impl<T: Real> Case<T> {
    /// Every parameter is random, so that no gradient is trivial.
    fn new(config: Config, batch: Batch) -> Case<T> {
        config.check().unwrap();
        let mut random = Random::new(7);
        let mut numbers =
            |count| -> Vec<T> { (0..count).map(|_| T::of(0.3 * random.normal())).collect() };
        let parameters = numbers(Parameters::total(&config));
        let token = |i: usize| (i * 7 % config.vocabulary) as u32;
        Case {
            config,
            batch,
            parameters,
            tokens: (0..batch.tokens()).map(token).collect(),
            targets: (3..batch.tokens() + 3).map(token).collect(),
        }
    }

    fn activations(&self) -> Vec<T> {
        vec![T::ZERO; Activations::total(&self.config, &self.batch)]
    }

    fn loss(&self) -> T {
        let Case {
            config,
            batch,
            parameters,
            tokens,
            targets,
        } = self;
        loss(
            config,
            batch,
            parameters,
            &mut self.activations(),
            tokens,
            targets,
        )
    }

    fn gradient(&self, gradient: Gradient<T>, seed: T) -> (T, Vec<T>) {
        let mut grads = vec![T::ZERO; self.parameters.len()];
        let (mut activations, mut activation_grads) = (self.activations(), self.activations());
        let value = gradient(
            &self.config,
            &self.batch,
            &self.parameters,
            &mut grads,
            &mut activations,
            &mut activation_grads,
            &self.tokens,
            &self.targets,
            seed,
        );
        (value, grads)
    }

    /// The largest difference of each tensor, relative to the tensor's largest number.
    fn compare(&self, one: &[T], other: &[T]) -> Vec<(&'static str, f64)> {
        let mut start = 0;
        let lengths = Parameters::lengths(&self.config);
        Parameters::NAMES
            .iter()
            .zip(lengths)
            .map(|(&name, length)| {
                let tensor = start..start + length;
                start += length;
                let largest = one[tensor.clone()]
                    .iter()
                    .fold(0.0, |m: f64, x| m.max(x.wide().abs()));
                assert!(largest > 0.0, "the gradient of {name} is zero");
                let difference = one[tensor.clone()]
                    .iter()
                    .zip(&other[tensor])
                    .fold(0.0, |m: f64, (x, y)| m.max((x.wide() - y.wide()).abs()));
                (name, difference / largest)
            })
            .collect()
    }
}

/// Shapes with one head and several, channels below and above what vector code takes at once, one token and several blocks of tokens.
fn shapes() -> Vec<(Config, Batch)> {
    let config = |layers, heads, channels, vocabulary, padded_vocabulary, max_steps| Config {
        layers,
        heads,
        channels,
        vocabulary,
        padded_vocabulary,
        max_steps,
    };
    let batch = |sequences, steps| Batch { sequences, steps };
    vec![
        (config(1, 1, 2, 5, 5, 1), batch(1, 1)),
        (config(2, 2, 8, 11, 16, 6), batch(2, 5)),
        (config(3, 2, 40, 13, 13, 12), batch(2, 9)),
    ]
}

#[test]
fn automatic_and_manual_agree_in_double_precision() {
    for (config, batch) in shapes() {
        let case = Case::<f64>::new(config, batch);
        let (value, automatic) = case.gradient(gradient, 0.7);
        let (manual_value, manual) = case.gradient(gradient_by_hand, 0.7);
        assert!((value - manual_value).abs() < 1e-12 * value.abs());
        assert_eq!(manual_value, case.loss());
        if config.channels == 2 {
            // With two channels and one step the layer norm's output has no slope at all: nothing to compare relatively.
            for (a, m) in automatic.iter().zip(&manual) {
                assert!((a - m).abs() < 1e-12, "{a} {m}");
            }
            continue;
        }
        for (name, difference) in case.compare(&manual, &automatic) {
            assert!(
                difference < 1e-11,
                "{config:?}: {name} differs by {difference}"
            );
        }
    }
}

#[test]
fn automatic_and_manual_agree_in_single_precision() {
    for (config, batch) in &shapes()[1..] {
        let case = Case::<f32>::new(*config, *batch);
        let (_, automatic) = case.gradient(gradient, 1.0);
        let (_, manual) = case.gradient(gradient_by_hand, 1.0);
        for (name, difference) in case.compare(&manual, &automatic) {
            assert!(
                difference < 1e-4,
                "{config:?}: {name} differs by {difference}"
            );
        }
    }
}

#[test]
fn automatic_agrees_with_finite_differences() {
    let (config, batch) = shapes()[1];
    let mut case = Case::<f64>::new(config, batch);
    let (_, automatic) = case.gradient(gradient, 1.0);
    let step = 1e-3;
    let mut differences = vec![0.0; automatic.len()];
    for i in 0..automatic.len() {
        let middle = case.parameters[i];
        let mut at = |offset: f64| {
            case.parameters[i] = middle + offset * step;
            case.loss()
        };
        // The error of this formula is of fourth order in the step.
        differences[i] = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * step);
        case.parameters[i] = middle;
    }
    for (name, difference) in case.compare(&differences, &automatic) {
        assert!(difference < 1e-6, "{name} differs by {difference}");
    }
}

#[test]
fn gradients_are_added() {
    let (config, batch) = shapes()[1];
    let case = Case::<f64>::new(config, batch);
    let (_, once) = case.gradient(gradient, 1.0);
    let mut twice = once.clone();
    let (mut activations, mut activation_grads) = (case.activations(), case.activations());
    gradient(
        &case.config,
        &case.batch,
        &case.parameters,
        &mut twice,
        &mut activations,
        &mut activation_grads,
        &case.tokens,
        &case.targets,
        1.0,
    );
    for (twice, once) in twice.iter().zip(once) {
        assert!((twice - 2.0 * once).abs() < 1e-12);
    }
}
