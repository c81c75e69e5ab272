//! Training: losses fall, both backward passes agree, and an interrupted run goes on as if nothing had happened.

use gpt2::adamw::Settings;
use gpt2::data::{Data, OWN_TEXT};
use gpt2::encoding::Encoding;
use gpt2::engine::Backward;
use gpt2::files::state::{self, State};
use gpt2::train::{Plan, TrainError, Training};
use gpt2::{Batch, Config};
use std::io::Write;
use std::path::Path;

fn config() -> Config {
    Config {
        layers: 2,
        heads: 2,
        channels: 16,
        vocabulary: 0,
        padded_vocabulary: 0,
        max_steps: 16,
    }
    .with_vocabulary(Encoding::Bytes.vocabulary())
}

fn plan(backward: Backward, threads: usize, overfit: bool) -> Plan {
    Plan {
        batch: Batch {
            sequences: 4,
            steps: 16,
        },
        optimiser: Settings {
            rate: 3e-3,
            ..Settings::default()
        },
        backward,
        threads,
        overfit,
    }
}

fn data() -> Data {
    Data::from_text(OWN_TEXT, Encoding::Bytes)
}

fn losses(training: &mut Training, steps: usize) -> Vec<f32> {
    (0..steps).map(|_| training.step()).collect()
}

#[test]
fn automatic_and_manual_training_agree() {
    let data = data();
    let run = |backward| {
        let state = State::random(config(), 3);
        let mut training = Training::new(plan(backward, 1, false), state, &data).unwrap();
        let before = training.validate(2);
        let losses = losses(&mut training, 40);
        let after = training.validate(2);
        assert!(after < before - 1.0, "{before} {after}");
        losses
    };
    let (automatic, manual) = (run(Backward::Automatic), run(Backward::Manual));
    // A model that knows nothing is as surprised by 257 tokens as by the throw of a die with so many sides.
    assert!((automatic[0] - 257f32.ln()).abs() < 0.1, "{automatic:?}");
    for (automatic, manual) in automatic.iter().zip(manual) {
        assert!((automatic - manual).abs() < 1e-3, "{automatic} {manual}");
    }
}

#[test]
fn one_batch_is_learnt_by_heart() {
    let data = data();
    let plan = Plan {
        batch: Batch {
            sequences: 1,
            steps: 8,
        },
        optimiser: Settings {
            rate: 1e-2,
            ..Settings::default()
        },
        ..plan(Backward::Automatic, 1, true)
    };
    let mut training = Training::new(plan, State::random(config(), 3), &data).unwrap();
    let losses = losses(&mut training, 150);
    assert!(losses[149] < 0.02, "{losses:?}");
}

#[test]
fn an_interrupted_run_goes_on_bit_for_bit() {
    let data = data();
    let plan = plan(Backward::Automatic, 2, false);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.state");

    let mut training = Training::new(plan, State::random(config(), 3), &data).unwrap();
    losses(&mut training, 3);
    state::save(&path, &training.state).unwrap();
    let expected = losses(&mut training, 4);

    let mut resumed = Training::new(plan, state::load(&path).unwrap(), &data).unwrap();
    assert_eq!(losses(&mut resumed, 4), expected);
    assert_eq!(resumed.state, training.state);
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let data = data();
    let refused = |plan: Plan, config: Config| {
        Training::new(plan, State::random(config, 1), &data)
            .err()
            .unwrap()
    };
    let plan = plan(Backward::Manual, 1, false);
    let with_batch = |sequences, steps| Plan {
        batch: Batch { sequences, steps },
        ..plan
    };
    assert_eq!(
        refused(with_batch(1, 17), config()),
        TrainError::TooLong(17, 16)
    );
    assert!(matches!(
        refused(with_batch(100, 16), config()),
        TrainError::TooFewTokens(_, "validation", 100, 16)
    ));
    assert_eq!(
        refused(plan, config().with_vocabulary(200)),
        TrainError::UnknownToken(256, 200)
    );
}

/// tinyshakespeare, which does not come with the project: the environment variable FERROZYME_DATA names its folder. Without it nothing can be tested.
fn tinyshakespeare(encoding: Encoding) -> Option<Data> {
    let Some(folder) = std::env::var_os("FERROZYME_DATA") else {
        // Not by a macro, whose text is shown of tests that fail only.
        let note = "note: left out, since FERROZYME_DATA names no folder with tinyshakespeare.txt";
        let _ = writeln!(std::io::stderr(), "{note}");
        return None;
    };
    let path = Path::new(&folder).join("tinyshakespeare.txt");
    let text = std::fs::read_to_string(path).expect("FERROZYME_DATA holds tinyshakespeare.txt");
    Some(Data::from_text(&text, encoding))
}

/// The numbers that llm.c's preparation gives.
#[test]
fn tinyshakespeare_has_its_tokens() {
    let Some(data) = tinyshakespeare(Encoding::Gpt2) else {
        return;
    };
    assert_eq!(
        (data.training.len(), data.validation.len()),
        (305_260, 32_768)
    );
    assert_eq!(data.validation[..4], [50_256, 5_962, 22_307, 25]);
}

/// The losses of 41 steps on tinyshakespeare, with the settings of the 124M model but for its size.
#[test]
fn both_gradients_learn_tinyshakespeare_alike() {
    let Some(data) = tinyshakespeare(Encoding::Bytes) else {
        return;
    };
    let run = |backward| {
        let config = Config {
            channels: 32,
            max_steps: 64,
            ..config()
        };
        let plan = Plan {
            batch: Batch {
                sequences: 4,
                steps: 64,
            },
            ..plan(backward, 2, false)
        };
        let mut training = Training::new(plan, State::random(config, 1), &data).unwrap();
        let mut losses = losses(&mut training, 41);
        losses.push(training.validate(5));
        losses
    };
    let (automatic, manual) = (run(Backward::Automatic), run(Backward::Manual));
    assert!(automatic[40] < automatic[0] - 1.5, "{automatic:?}");
    for (step, (automatic, manual)) in automatic.iter().zip(manual).enumerate() {
        assert!(
            (automatic - manual).abs() < 1e-3,
            "step {step}: {automatic} {manual}"
        );
    }
}
