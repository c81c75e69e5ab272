//! Training that is killed, that fails, and that goes on; files of parameters.

use ferrozyme_cpu::compile;
use ferrozyme_graph::interpret::Array;
use ferrozyme_graph::{Graph, Scalar, TensorType, UserFunction};
use ferrozyme_nn::loss::mean_squared_error;
use ferrozyme_nn::{
    AdamW, Dropout, Layer, Linear, Module, Schedule, Sequential, Sgd, Tanh, clip_by_norm,
};
use ferrozyme_train::{Error, Problem, Trainer, load, save, training_loop};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const ROWS: usize = 4;

/// A network with all that has a state: dropout, an optimiser with moments, a schedule.
fn network(g: &mut Graph) -> Sequential {
    Sequential::new((
        Linear::new(g, "first", 2, 8),
        Tanh,
        Dropout::new(g, "dropout", 0.25),
        Linear::new(g, "second", 8, 1),
    ))
}

/// Numbers that depend on the step.
fn inputs(step: u64) -> Vec<f32> {
    let number = |index: u64| ((step * 37 + index * 11) % 101) as f32 / 50.0 - 1.0;
    (0..2 * ROWS as u64).map(number).collect()
}

fn targets(step: u64) -> Vec<f32> {
    inputs(step)
        .chunks(2)
        .map(|pair| pair[0] * pair[1])
        .collect()
}

/// A Rust function in the graph: gives what it gets, if it likes that.
fn picky(x: &[f32], y: &mut [f32]) {
    assert!(x[0] != PICKY, "it is {}", x[0]);
    y.copy_from_slice(x);
}

/// What it does not like.
const PICKY: f32 = 77.0;

/// A trainer with feeders; `change` has a look at each input.
fn trainer(change: impl FnMut(u64, &mut Vec<f32>) + Send + 'static) -> (Trainer, Sequential) {
    let mut g = Graph::new();
    let net = network(&mut g);
    let parameters = net.parameters();
    let adam = AdamW::new(&mut g, 0.0, 0.01, &parameters);
    let schedule = Schedule::cosine(0.02, 0.001, 3000).after_warmup(10);
    let picky = UserFunction::new("picky", picky);
    let steps = training_loop(&mut g, |g, step| {
        let x = g.feed("x", [ROWS, 2]);
        let target = g.feed("target", [ROWS, 1]);
        let x = g.detach(x);
        let [x] = g.call(&picky, &[x], [[ROWS, 2]]);
        let y = net.forward(g, x);
        let loss = mean_squared_error(g, y, target);
        let mut gradients = g.backward(loss);
        clip_by_norm(g, &mut gradients, &parameters, 1.0);
        let rate = schedule.rate(g, step);
        adam.step_at(g, rate, &gradients);
        loss
    });
    let mut trainer = Trainer::new(compile(&g).unwrap(), steps).quiet();
    let mut change = change;
    let feeder = trainer.feeder("x", move |step| {
        let mut x = inputs(step);
        change(step, &mut x);
        x
    });
    feeder.unwrap();
    trainer.feeder("target", targets).unwrap();
    (trainer, net)
}

/// Steps and losses, without the time.
fn losses(folder: &Path) -> Vec<(u64, String)> {
    let text = fs::read_to_string(folder.join("log.jsonl")).unwrap();
    let line = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        (value["step"].as_u64().unwrap(), value["loss"].to_string())
    };
    text.lines().map(line).collect()
}

fn checkpoint(folder: &Path) -> Vec<u8> {
    fs::read(folder.join("checkpoint.safetensors")).unwrap()
}

/// What a run gives that nothing disturbs.
fn undisturbed(steps: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (trainer, _) = trainer(|_, _| {});
    trainer
        .in_folder(folder.path())
        .unwrap()
        .train(steps)
        .unwrap();
    folder
}

fn assert_same(folder: &Path, expected: &Path) {
    assert_eq!(losses(folder), losses(expected));
    assert!(
        checkpoint(folder) == checkpoint(expected),
        "the checkpoints differ"
    );
}

const FOLDER: &str = "FERROZYME_TRAIN_TEST_FOLDER";
const STEPS: u64 = 1500;

/// What the processes do that are killed: no test of its own.
#[test]
fn child_trains() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let (trainer, _) = trainer(|_, _| thread::sleep(Duration::from_millis(1)));
        let trainer = trainer.in_folder(folder).unwrap().with_checkpoint_every(7);
        let mut trainer = trainer;
        trainer.train(STEPS).unwrap();
    }
}

fn start_child(folder: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["child_trains", "--exact"])
        .env(FOLDER, folder);
    command.stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_run_that_is_killed_again_and_again_has_the_same_losses() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.jsonl");
    let size = || fs::metadata(&log).map_or(0, |data| data.len());
    let mut random = 12345u64;
    let mut below = |limit: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % limit
    };
    let mut between = 0;
    for kill in 0..20 {
        let mut child = start_child(folder.path());
        // Some while they start, the others while they train.
        if kill % 4 == 0 {
            thread::sleep(Duration::from_millis(below(400)));
        } else {
            let (before, start) = (size(), Instant::now());
            while size() <= before && start.elapsed() < Duration::from_secs(60) {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_micros(below(60_000)));
        }
        // SIGKILL: nothing of it can be handled.
        child.kill().unwrap();
        child.wait().unwrap();
        let steps = fs::read_to_string(&log).map_or(0, |text| text.lines().count() as u64);
        between += u32::from(steps > 0 && steps < STEPS);
    }
    assert!(between >= 10, "only {between} were killed in the middle");
    assert!(start_child(folder.path()).wait().unwrap().success());
    let expected = undisturbed(STEPS);
    assert_same(folder.path(), expected.path());
    assert!(folder.path().join("curve.svg").exists());
}

#[test]
fn a_loss_that_is_no_number_ends_the_run_before_its_step() {
    let folder = tempfile::tempdir().unwrap();
    let (broken, _) = trainer(|step, x| {
        if step == 13 {
            x[3] = f32::NAN;
        }
    });
    let mut broken = broken.in_folder(folder.path()).unwrap();
    let error = broken.train(40).unwrap_err();
    assert_eq!(error.to_string(), "the loss of step 13 is NaN");
    assert!(matches!(error, Error::NotFinite { step: 13, .. }));
    assert_eq!(broken.steps(), 13);
    assert_same(folder.path(), undisturbed(13).path());
    // With better numbers it goes on, as if nothing had been.
    let (better, _) = trainer(|_, _| {});
    let mut better = better.in_folder(folder.path()).unwrap();
    assert_eq!(better.steps(), 13);
    better.train(40).unwrap();
    assert_same(folder.path(), undisturbed(40).path());
}

#[test]
fn a_feeder_that_panics_ends_the_run_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (broken, _) = trainer(|step, _| assert!(step != 29, "the data ends here"));
    let mut broken = broken.in_folder(folder.path()).unwrap();
    let error = broken.train(40).unwrap_err();
    assert_eq!(
        error.to_string(),
        "step 29: the feeder of \"x\" panicked: the data ends here"
    );
    assert_eq!(broken.steps(), 29);
    assert_same(folder.path(), undisturbed(29).path());
}

#[test]
fn a_function_that_panics_ends_the_run_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (broken, _) = trainer(|step, x| {
        if step == 31 {
            x[0] = PICKY;
        }
    });
    let mut broken = broken.in_folder(folder.path()).unwrap();
    let message = broken.train(40).unwrap_err().to_string();
    assert!(
        message.starts_with("step 31: \"picky\" panicked: it is 77 (called at "),
        "{message}"
    );
    assert!(message.contains("training.rs:"), "{message}");
    assert_eq!(broken.steps(), 31);
    assert_same(folder.path(), undisturbed(31).path());
    // With better numbers it goes on, as if nothing had been.
    let (better, _) = trainer(|_, _| {});
    let mut better = better.in_folder(folder.path()).unwrap();
    better.train(40).unwrap();
    assert_same(folder.path(), undisturbed(40).path());
}

#[test]
fn tensors_of_another_size_and_missing_feeders_are_errors() {
    let (mut short, _) = trainer(|step, x| {
        if step == 5 {
            x.pop();
        }
    });
    let error = short.train(10).unwrap_err();
    assert_eq!(
        error.to_string(),
        "step 5: \"x\" is f32[4, 2] with 8 elements, but 7 were fed"
    );
    assert_eq!(short.steps(), 5);
    let error = short.feeder("y", |_| vec![0.0f32]).unwrap_err();
    assert!(matches!(error, Error::Feeds { times: 0, .. }), "{error}");

    let mut g = Graph::new();
    let states = training_loop(&mut g, |g, _| g.feed("x", []));
    let mut trainer = Trainer::new(compile(&g).unwrap(), states).quiet();
    let error = trainer.train(3).unwrap_err();
    assert_eq!(error.to_string(), "step 0: nothing feeds \"x\"");
}

#[test]
fn parameters_are_saved_under_the_names_of_fields() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.safetensors");
    let (mut trained, net) = trainer(|_, _| {});
    trained.train(10).unwrap();
    save(&path, &net, trained.program()).unwrap();
    let (mut fresh, other) = trainer(|_, _| {});
    load(&path, &other, fresh.program_mut()).unwrap();
    let names: Vec<String> = net
        .entries()
        .iter()
        .map(|entry| entry.name.clone())
        .collect();
    assert_eq!(
        names,
        ["0.weight", "0.bias", "2.counter", "3.weight", "3.bias"]
    );
    for (a, b) in net.entries().iter().zip(other.entries()) {
        let saved = trained.program().parameter(a.parameter);
        assert_eq!(saved, fresh.program().parameter(b.parameter));
    }
}

#[test]
fn files_that_do_not_fit_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.safetensors");
    let mut g = Graph::new();
    let small = Linear::without_bias(&mut g, "small", 2, 3);
    let large = Linear::new(&mut g, "large", 2, 3);
    let wide = Linear::new(&mut g, "wide", 3, 3);
    let mut program = compile(&g).unwrap();
    let problem = |outcome: Result<(), ferrozyme_train::FileError>| *outcome.unwrap_err().problem;
    save(&path, &small, &program).unwrap();
    let missing = problem(load(&path, &large, &mut program));
    assert_eq!(
        missing.to_string(),
        "the tensor `bias` is missing, which should be f32[3]"
    );
    save(&path, &large, &program).unwrap();
    let additional = problem(load(&path, &small, &mut program));
    assert!(matches!(additional, Problem::Additional { name } if name == "bias"));
    let other = problem(load(&path, &wide, &mut program));
    assert_eq!(
        other.to_string(),
        "the tensor `weight` is f32[2, 3], but it should be f32[3, 3]"
    );
    let nowhere = problem(load(&folder.path().join("nowhere"), &large, &mut program));
    assert!(matches!(nowhere, Problem::Access(_)));

    // Cut off anywhere, or with any byte changed, a file is not loaded.
    let whole = fs::read(&path).unwrap();
    let parameter = large.parameters()[0];
    let zeros = Array::new(TensorType::new(Scalar::F32, [2, 3]), vec![0.0; 6]);
    program.set_parameter(parameter, &zeros);
    for at in 0..whole.len() {
        fs::write(&path, &whole[..at]).unwrap();
        load(&path, &large, &mut program).unwrap_err();
        let mut changed = whole.clone();
        changed[at] ^= 0x11;
        fs::write(&path, &changed).unwrap();
        // In the header, a byte may say the same in another way, as spaces do.
        if load(&path, &large, &mut program).is_ok() {
            assert!(
                at < whole.len() - 36,
                "byte {at} of {} was changed",
                whole.len()
            );
            program.set_parameter(parameter, &zeros);
        }
        assert_eq!(program.parameter(parameter), zeros);
    }
}

#[test]
fn a_checkpoint_of_another_graph_or_a_damaged_one_is_an_error() {
    let folder = undisturbed(3);
    let mut g = Graph::new();
    let net = Linear::new(&mut g, "first", 2, 8);
    let states = training_loop(&mut g, |g, _| {
        let x = g.feed("x", [ROWS, 2]);
        let y = net.forward(g, x);
        let loss = g.sum_all(y);
        let gradients = g.backward(loss);
        Sgd::new(0.1).step(g, &net.parameters(), &gradients);
        loss
    });
    let other = Trainer::new(compile(&g).unwrap(), states).in_folder(folder.path());
    let message = other.err().unwrap().to_string();
    assert!(
        message.contains("which nothing has that name for"),
        "{message}"
    );

    let mut bytes = checkpoint(folder.path());
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(folder.path().join("checkpoint.safetensors"), bytes).unwrap();
    let (trainer, _) = trainer(|_, _| {});
    let message = trainer.in_folder(folder.path()).err().unwrap().to_string();
    assert!(message.contains("damaged"), "{message}");
}
