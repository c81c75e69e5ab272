//! What was compiled in the build script computes what is compiled in process.

#[allow(dead_code, reason = "the build script makes all of them")]
#[path = "../src/graphs.rs"]
mod graphs;

use ferrozyme_graph::UserFunction;
use ferrozyme_linked_tests::{Calling, Kinds, Training};
use std::sync::{Arc, Mutex};

const X: [[f32; 2]; 4] = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]];
const TARGET: [[f32; 1]; 4] = [[0.0], [1.0], [1.0], [0.0]];

/// Keeps what is received.
fn sink<T: Send + 'static>() -> (Arc<Mutex<Vec<T>>>, impl FnMut(T) + Send + 'static) {
    let kept: Arc<Mutex<Vec<T>>> = Arc::default();
    let into = kept.clone();
    (kept, move |value| into.lock().unwrap().push(value))
}

#[test]
fn training_is_the_same_as_in_process() {
    let mut linked = Training::new();
    linked.feed_x(|x| *x = X);
    linked.feed_target(|target| *target = TARGET);
    let (losses, mut keep) = sink();
    linked.receive_loss(move |loss| keep(f64::from(*loss)));
    linked.run().unwrap();
    let graph = graphs::training();
    let mut program = ferrozyme_cpu::compile(&graph).unwrap();
    program.feeder("x", || X.concat());
    program.feeder("target", || TARGET.concat());
    let (expected, mut keep) = sink();
    program.receiver("loss", move |tensors| keep(tensors[0].scalar()));
    program.run().unwrap();
    let (losses, expected) = (losses.lock().unwrap(), expected.lock().unwrap());
    assert_eq!(losses.len(), 50);
    for (loss, expected) in losses.iter().zip(&*expected) {
        assert!(
            (loss - expected).abs() < 1e-3 * (0.01 + expected),
            "{loss} {expected}"
        );
    }
    assert!(losses[49] < losses[0]);
    // Parameters are typed, and can be put back.
    assert_eq!(Training::PARAMETER_FIRST_WEIGHT, [2, 40]);
    let weight = linked.parameter_first_weight().unwrap();
    let other = program.parameter(graph.parameter_named("first.weight").unwrap());
    assert!((f64::from(weight[1][39]) - other.at(&[1, 39])).abs() < 1e-2);
    linked.set_parameter_first_weight(&[[0.0; 40]; 2]).unwrap();
    assert_eq!(*linked.parameter_first_weight().unwrap(), [[0.0; 40]; 2]);
    linked.set_parameter_first_weight(&weight).unwrap();
    assert_eq!(*linked.parameter_first_weight().unwrap(), *weight);
    assert!(Training::REPORT.contains("arena: "));
}

#[test]
fn all_elements_that_rust_has_travel() {
    let mut kinds = Kinds::new();
    kinds.feed_i(|i| *i = [10, 20, -30]);
    kinds.feed_d(|d| *d = [[0.5; 3], [-1.0; 3]]);
    let mut next = 0.0;
    kinds.feed_x(move |x| {
        next += 3.0;
        *x = next;
    });
    let (received, mut keep) = sink();
    kinds.receive_all_of_them(move |all, sum, doubled| keep((*all, *sum, *doubled)));
    kinds.run().unwrap();
    kinds.run().unwrap();
    let received = received.lock().unwrap();
    let first = (
        [[5.5, 11.0, -13.5], [-11.0, -22.0, 27.0]],
        [11, 22, -27],
        192.0,
    );
    assert_eq!(received[0], first);
    assert_eq!((received[1].1, received[1].2), ([21, 42, -57], 192.0));
    assert_eq!(*kinds.parameter_total_of_all().unwrap(), [21, 42, -57]);
    let names: Vec<&str> = kinds.linked().parameters().collect();
    assert_eq!(names, ["total.of all"]);
    assert_eq!(Kinds::FEED_D, [2, 3]);
    assert_eq!(Kinds::RECEIVE_ALL_OF_THEM_1, [3]);
}

fn cubes(x: &[f32], y: &mut [f32]) {
    for (x, y) in x.iter().zip(y) {
        assert!(*x < 100.0, "{x} is too large");
        *y = x * x * x;
    }
}

fn d_cubes(x: &[f32], dx: &mut [f32], y: &mut [f32], dy: &mut [f32]) {
    cubes(x, y);
    for ((x, dx), dy) in x.iter().zip(dx).zip(dy) {
        *dx += 3.0 * x * x * *dy;
    }
}

#[test]
fn functions_are_those_of_the_program() {
    let law = UserFunction::new("law", cubes).with_derivative(d_cubes);
    let mut calling = Calling::new(&law);
    calling.feed_x(|x| *x = [1.0, 2.0, 3.0]);
    let (losses, mut keep) = sink();
    calling.receive_loss(move |loss| keep(*loss));
    calling.run().unwrap();
    // (0.5 x)³ and 3 (0.5 x)² x.
    assert_eq!(*losses.lock().unwrap(), [4.5]);
    assert_eq!(*calling.parameter_w().unwrap(), [0.75, 6.0, 20.25]);
    // A panic ends the run where it is, and names the line of the build script's graph.
    calling.feed_x(|x| *x = [9.0; 3]);
    // What was fed ahead comes first.
    let problem = (0..3).find_map(|_| calling.run().err()).expect("it panics");
    let message = problem.to_string();
    assert!(message.contains("\"law\" panicked: "), "{message}");
    assert!(message.contains("graphs.rs:"), "{message}");
}

#[test]
#[should_panic(expected = "nothing defines the function \"law\"")]
fn a_function_of_another_name_is_refused() {
    Calling::new(&UserFunction::new("other", cubes));
}

#[test]
#[should_panic(expected = "\"law\" has no derivative")]
fn a_function_without_the_derivative_is_refused() {
    Calling::new(&UserFunction::new("law", cubes));
}

#[test]
#[should_panic(expected = "\"law\" is fn(&[f64], &mut [f32])")]
fn a_function_of_other_elements_is_refused() {
    Calling::new(&UserFunction::new("law", |_: &[f64], _: &mut [f32]| {}));
}
