//! Text from a model, token by token.

use crate::config::{Batch, Config};
use crate::model::predict;
use crate::random::Random;
use crate::real::Real;
use crate::tensors::Activations;

/// Appends `count` tokens to `tokens`, each drawn by the probabilities that the model gives after those before it (the last
/// `max_steps` of them).
///
/// A low `temperature` prefers what is likely; at 0 only the likeliest token is taken.
///
/// # Panics
/// When `tokens` is empty, or has tokens that are not in the vocabulary.
pub fn continue_text<T: Real>(
    config: &Config,
    parameters: &[T],
    tokens: &mut Vec<u32>,
    count: usize,
    temperature: f64,
    random: &mut Random,
) {
    let mut activations = Vec::new();
    for _ in 0..count {
        let window = &tokens[tokens.len().saturating_sub(config.max_steps)..];
        let batch = Batch {
            sequences: 1,
            steps: window.len(),
        };
        activations.resize(Activations::total(config, &batch), T::ZERO);
        predict(config, &batch, parameters, &mut activations, window);
        let logits = Activations::cut(&*activations, config, &batch).logits;
        let last = &logits[(window.len() - 1) * config.padded_vocabulary..][..config.vocabulary];
        tokens.push(draw(last, temperature, random) as u32);
    }
}

/// Draws an index by the softmax of `logits`.
pub fn draw<T: Real>(logits: &[T], temperature: f64, random: &mut Random) -> usize {
    let (mut best, mut largest) = (0, f64::NEG_INFINITY);
    for (i, logit) in logits.iter().enumerate() {
        if logit.wide() > largest {
            (best, largest) = (i, logit.wide());
        }
    }
    if temperature <= 0.0 {
        return best;
    }
    let weights: Vec<f64> = logits
        .iter()
        .map(|logit| ((logit.wide() - largest) / temperature).exp())
        .collect();
    let mut rest = random.uniform() * weights.iter().sum::<f64>();
    for (i, weight) in weights.iter().enumerate() {
        rest -= weight;
        if rest < 0.0 {
            return i;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_probabilities() {
        let mut random = Random::new(5);
        let logits = [0.0, f64::ln(3.0), -1e9];
        let mut counts = [0; 3];
        for _ in 0..4000 {
            counts[draw(&logits, 1.0, &mut random)] += 1;
        }
        assert!(
            (900..1100).contains(&counts[0]) && counts[2] == 0,
            "{counts:?}"
        );
        assert_eq!(draw(&logits, 0.0, &mut random), 1);
    }
}
