//! The automatic gradient of the whole model, against the hand-written one and against finite differences, on tiny models.

use gpt2::backward::gradient_by_hand;
use gpt2::check::{Case, compare};
use gpt2::engine::{Backward, Engine};
use gpt2::model::gradient;
use gpt2::{Activations, Batch, Config};

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
        (config(1, 1, 3, 5, 5, 2), batch(1, 2)),
        (config(2, 2, 8, 11, 16, 6), batch(2, 5)),
        (config(3, 2, 40, 13, 13, 12), batch(2, 9)),
    ]
}

#[test]
fn automatic_and_manual_agree_in_double_precision() {
    for (config, batch) in shapes() {
        let case = Case::<f64>::random(config, batch, 0.3, 7);
        let (value, automatic) = case.gradient_by(gradient, 0.7);
        let (manual_value, manual) = case.gradient_by(gradient_by_hand, 0.7);
        assert!((value - manual_value).abs() < 1e-12 * value.abs());
        assert_eq!(manual_value, case.loss());
        for difference in compare(&config, &manual, &automatic) {
            assert!(difference.largest > 0.0, "{config:?}: {difference:?}");
            assert!(difference.relative < 1e-10, "{config:?}: {difference:?}");
        }
    }
}

#[test]
fn automatic_and_manual_agree_in_single_precision() {
    for (config, batch) in shapes() {
        let case = Case::<f32>::random(config, batch, 0.3, 7);
        let ((_, automatic), (_, manual)) = (case.automatic(), case.manual());
        for difference in compare(&config, &manual, &automatic) {
            assert!(difference.relative < 1e-4, "{config:?}: {difference:?}");
        }
    }
}

#[test]
fn automatic_agrees_with_finite_differences() {
    let (config, batch) = shapes()[1];
    let mut case = Case::<f64>::random(config, batch, 0.3, 7);
    let (_, automatic) = case.automatic();
    let differences = case.finite_differences(&automatic, usize::MAX, 1e-3);
    for difference in compare(&config, &differences, &automatic) {
        assert!(difference.relative < 1e-6, "{difference:?}");
    }
}

#[test]
fn gradients_are_added() {
    let (config, batch) = shapes()[1];
    let case = Case::<f64>::random(config, batch, 0.3, 7);
    let (_, once) = case.automatic();
    let mut twice = once.clone();
    let mut activations = vec![0.0; Activations::total(&config, &batch)];
    let mut activation_grads = activations.clone();
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

#[test]
fn threads_share_a_batch() {
    let (config, _) = shapes()[1];
    let batch = Batch {
        sequences: 5,
        steps: 4,
    };
    let case = Case::<f64>::random(config, batch, 0.3, 7);
    let (value, expected) = case.manual();
    for backward in [Backward::Automatic, Backward::Manual] {
        for threads in [1, 2, 3, 9] {
            let mut engine = Engine::new(config, batch, backward, threads);
            // The old contents of the gradient do not matter.
            let mut grads = vec![f64::NAN; expected.len()];
            for _ in 0..2 {
                let loss =
                    engine.gradient(&case.parameters, &mut grads, &case.tokens, &case.targets);
                assert!((loss - value).abs() < 1e-12, "{loss} {value}");
                for difference in compare(&config, &expected, &grads) {
                    assert!(difference.relative < 1e-10, "{threads}: {difference:?}");
                }
            }
            let loss = engine.loss(&case.parameters, &case.tokens, &case.targets);
            assert!((loss - value).abs() < 1e-12, "{loss} {value}");
        }
    }
}
