//! The graph against the same model in plain loops: loss and gradients, training, files.

use ferrozyme_cpu::compile;
use ferrozyme_graph::interpret::Array;
use ferrozyme_graph::{Graph, Scalar};
use gpt2::adamw::{AdamW, Settings};
use gpt2::backward::gradient_by_hand;
use gpt2::data::{Data, Loader, OWN_TEXT};
use gpt2::encoding::Encoding;
use gpt2::files::state::{self, State};
use gpt2::random::Random;
use gpt2::{Activations, Batch, Config, Parameters};
use gpt2_graph::model::Model;
use gpt2_graph::training::{Plan, Training};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

const BATCH: Batch = Batch {
    sequences: 3,
    steps: 10,
};

fn tiny() -> Config {
    Config::named("tiny")
        .expect("it has a name")
        .with_vocabulary(Encoding::Bytes.vocabulary())
}

/// Parameters that are all random, those of layer norms and biases too, so that no gradient is trivial.
fn random_numbers(config: &Config, deviation: f64) -> Vec<f32> {
    let mut random = Random::new(5);
    let numbers = (0..Parameters::total(config)).map(|_| (deviation * random.normal()) as f32);
    numbers.collect()
}

fn data() -> Arc<[u32]> {
    Data::from_text(OWN_TEXT, Encoding::Bytes).training.into()
}

/// The loss of a batch and its gradient, written by hand.
fn by_hand(
    config: &Config,
    parameters: &[f32],
    tokens: &[u32],
    targets: &[u32],
) -> (f32, Vec<f32>) {
    let mut gradient = vec![0.0; parameters.len()];
    let mut activations = vec![0.0; Activations::total(config, &BATCH)];
    let mut adjoints = activations.clone();
    let loss = gradient_by_hand(
        config,
        &BATCH,
        parameters,
        &mut gradient,
        &mut activations,
        &mut adjoints,
        tokens,
        targets,
        1.0,
    );
    (loss, gradient)
}

#[test]
fn loss_and_gradients_are_those_of_the_plain_loops() {
    let config = tiny();
    let parameters = random_numbers(&config, 0.1);
    let data = data();
    let (tokens, targets) = Loader::new(&data, BATCH).unwrap().load();
    let (loss, gradient) = by_hand(&config, &parameters, tokens, targets);

    let mut g = Graph::new();
    let model = Model::new(&mut g, config);
    let mean = model.loss(&mut g, BATCH);
    g.receive("loss", &[mean]);
    let gradients = g.backward(mean);
    for held in &model.held {
        let own = gradients.of_parameter(held.parameter);
        g.receive(
            &g.parameters[held.parameter].name.clone(),
            &[own.expect("all parameters have an influence")],
        );
    }
    let mut program = compile(&g).unwrap();
    let received: Arc<Mutex<HashMap<String, Array>>> = Arc::default();
    let names = model
        .held
        .iter()
        .map(|held| &g.parameters[held.parameter].name);
    for name in names
        .map(|name| name.to_string())
        .chain(["loss".to_owned()])
    {
        let into = received.clone();
        program.receiver(&name.clone(), move |mut tensors| {
            into.lock().unwrap().insert(name.clone(), tensors.remove(0));
        });
    }
    for held in &model.held {
        let ty = g.parameters[held.parameter].ty.clone();
        let numbers = parameters[held.range.clone()].iter().map(|&x| f64::from(x));
        program.set_parameter(held.parameter, &Array::new(ty, numbers.collect()));
    }
    for (name, fed) in [("tokens", tokens), ("targets", targets)] {
        let fed: Vec<i32> = fed.iter().map(|&token| token as i32).collect();
        program.feeder(name, move || fed.clone());
    }
    program.run().unwrap();

    let received = received.lock().unwrap();
    let difference = (received["loss"].scalar() as f32 - loss).abs();
    assert!(difference <= 1e-5 * loss, "{} {loss}", received["loss"]);
    let mut covered = 0;
    for held in &model.held {
        let name = &g.parameters[held.parameter].name;
        let expected = &gradient[held.range.clone()];
        let largest = expected.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        assert!(largest > 0.0, "{name}");
        for (&expected, &actual) in expected.iter().zip(&*received[&**name].elements) {
            let difference = (f64::from(expected) - actual).abs();
            assert!(
                difference <= 1e-4 * f64::from(largest),
                "{name}: {actual} is not {expected}"
            );
        }
        covered += expected.len();
    }
    assert_eq!(covered, parameters.len());
}

const SETTINGS: Settings = Settings {
    rate: 3e-3,
    beta1: 0.9,
    beta2: 0.999,
    epsilon: 1e-8,
    decay: 0.01,
};

const PLAN: Plan = Plan {
    batch: BATCH,
    optimiser: SETTINGS,
    overfit: false,
    factors: None,
    budget: None,
};

fn losses(training: &mut Training, steps: usize) -> Vec<f32> {
    (0..steps).map(|_| training.step().unwrap()).collect()
}

#[test]
fn training_has_the_losses_of_the_plain_loops() {
    let data = data();
    let start = State::random(tiny(), 3);
    let mut training = Training::from_state(PLAN, &start, &data, "cpu").unwrap();
    let by_graph = losses(&mut training, 25);

    let mut parameters = start.parameters;
    let mut optimiser = AdamW::new(parameters.len());
    let mut loader = Loader::new(&data, BATCH).unwrap();
    for (step, &actual) in by_graph.iter().enumerate() {
        let (tokens, targets) = loader.load();
        let (expected, gradient) = by_hand(&start.config, &parameters, tokens, targets);
        assert!(
            (actual - expected).abs() < 1e-3,
            "step {step}: {actual} is not {expected}"
        );
        optimiser.step(&SETTINGS, &mut parameters, &gradient, 1);
    }
    assert!(by_graph[24] < by_graph[0] - 1.0, "{by_graph:?}");
    let state = training.state().unwrap();
    assert_eq!(
        (state.step, state.batch, state.optimiser.steps),
        (25, 25, 25)
    );
}

/// Factors of eight bits move each loss by little, and the parameters stay in single precision.
#[test]
fn training_with_rounded_factors_has_nearly_the_same_losses() {
    let data = data();
    let start = State::random(tiny(), 3);
    let rounded = Plan {
        factors: Some(Scalar::Bf16),
        ..PLAN
    };
    let [exact, rounded] = [PLAN, rounded].map(|plan| {
        let mut training = Training::from_state(plan, &start, &data, "cpu").unwrap();
        losses(&mut training, 25)
    });
    assert_ne!(exact, rounded);
    for (exact, rounded) in exact.iter().zip(&rounded) {
        assert!((exact - rounded).abs() < 0.02 * exact, "{exact} {rounded}");
    }
}

/// What is computed again is what it was, but for the order of sums; a budget that cannot be met is an error that names it.
#[test]
fn training_within_a_budget_has_nearly_the_same_losses() {
    let data = data();
    let start = State::random(tiny(), 3);
    let within = |budget| {
        let plan = Plan { budget, ..PLAN };
        Training::from_state(plan, &start, &data, "cpu")
    };
    let mut free = within(None).unwrap();
    let report = free.report();
    let arena = report.split("arena: ").nth(1).unwrap();
    let arena: usize = arena.split(' ').next().unwrap().parse().unwrap();
    let mut bound = within(Some(arena * 3 / 4)).unwrap();
    assert!(bound.report().contains("are computed again"));
    let [free, bound] = [&mut free, &mut bound].map(|training| losses(training, 10));
    for (free, bound) in free.iter().zip(&bound) {
        assert!((free - bound).abs() < 1e-5 * free, "{free} {bound}");
    }
    let error = within(Some(1000)).err().unwrap().to_string();
    assert!(error.contains("1000"), "{error}");
}

#[test]
fn an_interrupted_run_goes_on_bit_for_bit() {
    let data = data();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.state");
    let start = State::random(tiny(), 3);
    let mut training = Training::from_state(PLAN, &start, &data, "cpu").unwrap();
    losses(&mut training, 3);
    training.save(&path).unwrap();
    // What is written piece by piece is the state.
    assert_eq!(state::load(&path).unwrap(), training.state().unwrap());
    let expected = losses(&mut training, 4);
    let reader = state::open(&path).unwrap();
    let progress = reader.progress().clone();
    let mut resumed = Training::new(PLAN, progress, &data, "cpu").unwrap();
    resumed.load(reader).unwrap();
    assert_eq!(losses(&mut resumed, 4), expected);
    assert_eq!(resumed.state().unwrap(), training.state().unwrap());
}

#[test]
fn a_damaged_state_is_not_trained_on() {
    let data = data();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.state");
    let state = State::random(tiny(), 3);
    state::save(&path, &state).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let mut training = Training::new(PLAN, state.progress(), &data, "cpu").unwrap();
    let error = training.load(state::open(&path).unwrap()).unwrap_err();
    assert!(error.to_string().contains("checksum is wrong"), "{error}");
}
