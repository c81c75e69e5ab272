//! Compiled graphs: results as interpreted, and what happens when the host errs.

use ferrozyme_cpu::{Error, compile};
use ferrozyme_gen::graph::{GraphProfile, random_graph};
use ferrozyme_graph::interpret::{Array, Machine};
use ferrozyme_graph::{Graph, INDEX, Scalar, TensorType};
use std::sync::{Arc, Mutex};

fn are_close(a: &Array, b: &Array) -> bool {
    let close = |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= 1e-9 * (1.0 + a.abs());
    a.ty == b.ty && a.elements.iter().zip(&*b.elements).all(close)
}

/// Random graphs with their gradients give what the interpreter gives. `FERROZYME_GRAPHS=1000` takes that many.
#[test]
fn random_graphs_give_what_the_interpreter_gives() {
    let count = std::env::var("FERROZYME_GRAPHS");
    let count: u64 = count
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(12);
    let profile = GraphProfile {
        size: 8,
        control: true,
        updates: true,
    };
    for seed in 0..count {
        let (mut graph, tensor) = random_graph(seed, profile);
        let gradients = graph.backward(tensor);
        let parameters: Vec<_> = graph.parameters.keys().collect();
        for parameter in parameters {
            if let Some(gradient) = gradients.of_parameter(parameter) {
                graph.receive("gradient", &[gradient, gradient]);
            }
        }
        let mut machine = Machine::new(&graph);
        machine.run().expect("random graphs run");
        let mut program = compile(&graph).expect("random graphs compile");
        let received: Arc<Mutex<Vec<Vec<Array>>>> = Arc::default();
        for name in ["y", "gradient"] {
            let into = received.clone();
            program.receiver(name, move |tensors| into.lock().unwrap().push(tensors));
        }
        program.run().expect("they run");
        let mut received = std::mem::take(&mut *received.lock().unwrap());
        let mut expected: Vec<_> = machine
            .all_received()
            .iter()
            .map(|(_, t)| t.clone())
            .collect();
        // Receivers of different names run side by side.
        for list in [&mut received, &mut expected] {
            list.sort_by_key(|tensors| tensors.len());
        }
        assert_eq!(received.len(), expected.len());
        for (compiled, interpreted) in received.iter().flatten().zip(expected.iter().flatten()) {
            assert!(
                are_close(interpreted, compiled),
                "graph {seed}: {compiled}, not {interpreted}\n{graph}"
            );
        }
        for parameter in graph.parameters.keys() {
            let (compiled, interpreted) =
                (program.parameter(parameter), machine.parameter(parameter));
            assert!(are_close(interpreted, &compiled), "graph {seed}\n{graph}");
        }
    }
}

/// Adds what is fed to a parameter, three times.
fn summing() -> (Graph, ferrozyme_graph::Parameter) {
    let mut g = Graph::new();
    let sum = g.parameter("sum", [2], 0.0);
    g.repeat(3, |g, _| {
        let x = g.feed("x", [2]);
        let old = g.read(sum);
        let new = g.add(old, x);
        g.update(sum, new);
        g.receive("sum", &[new]);
    });
    (g, sum)
}

#[test]
fn feeders_run_ahead_and_nothing_is_lost_between_runs() {
    let (g, sum) = summing();
    let mut program = compile(&g).unwrap();
    let mut next = 0.0f32;
    program.feeder("x", move || {
        next += 1.0;
        vec![next, -next]
    });
    let received: Arc<Mutex<Vec<f64>>> = Arc::default();
    let into = received.clone();
    program.receiver("sum", move |tensors| {
        into.lock().unwrap().push(tensors[0].elements[0])
    });
    for total in [6.0, 21.0, 45.0] {
        program.run().unwrap();
        assert_eq!(program.parameter(sum).elements[..], [total, -total]);
    }
    let sums: Vec<f64> = (1..=9).map(|n| f64::from(n * (n + 1) / 2)).collect();
    assert_eq!(*received.lock().unwrap(), sums);
}

fn problem(outcome: Result<(), Error>) -> String {
    outcome.expect_err("it fails").to_string()
}

#[test]
fn errors_of_the_host_end_the_run_with_a_message() {
    let (g, _) = summing();
    let mut program = compile(&g).unwrap();
    assert_eq!(problem(program.run()), "nothing feeds \"x\"");
    program.feeder("x", || vec![1i32, 2]);
    let message = problem(program.run());
    assert_eq!(message, "\"x\" is f32[2], but its feeder makes i32");
    program.feeder("x", || vec![1.0f32; 3]);
    let message = problem(program.run());
    assert_eq!(message, "\"x\" is f32[2] with 2 elements, but 3 were fed");
    program.feeder("x", || -> Vec<f32> { panic!("no more data") });
    let message = problem(program.run());
    assert_eq!(message, "the feeder of \"x\" panicked: no more data");
    program.feeder("x", || vec![1.0f32; 2]);
    program.receiver("sum", |_| panic!("the disk is full"));
    let message = problem(program.run());
    assert_eq!(
        message,
        "the receiver of \"sum\" panicked: the disk is full"
    );
}

#[test]
fn all_kinds_of_elements_travel() {
    let mut g = Graph::new();
    let i = g.feed_of("i", TensorType::new(INDEX, [2]));
    let d = g.feed_of("d", TensorType::new(Scalar::F64, [2]));
    let as_float = g.cast(i, Scalar::F64);
    let sum = g.add(as_float, d);
    let short = g.cast(sum, Scalar::F32);
    let truth = g.cast(i, ferrozyme_graph::CONDITION);
    g.receive("all", &[i, sum, short, truth]);
    let mut program = compile(&g).unwrap();
    program.feeder("i", || vec![0i32, -7]);
    program.feeder("d", || vec![0.5f64, 0.25]);
    let received: Arc<Mutex<String>> = Arc::default();
    let into = received.clone();
    program.receiver("all", move |tensors| {
        *into.lock().unwrap() = format!("{tensors:?}")
    });
    program.run().unwrap();
    assert_eq!(
        *received.lock().unwrap(),
        "[i32[2] [0.0, -7.0], f64[2] [0.5, -6.75], f32[2] [0.5, -6.75], i1[2] [0.0, 1.0]]"
    );
}
