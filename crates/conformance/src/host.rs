//! Feeders and receivers, and what happens when they err.

#![allow(missing_docs, reason = "the names say what is tested")]

use crate::compile_or_skip;
use ferrozyme_backend::{Backend, Error};
use ferrozyme_graph::{Graph, Parameter};
use std::sync::{Arc, Mutex};

/// Adds what is fed to a parameter, three times.
fn summing() -> (Graph, Parameter) {
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

pub fn feeders_run_ahead_and_nothing_is_lost_between_runs(backend: &dyn Backend) {
    let (g, sum) = summing();
    let Some(mut program) = compile_or_skip(backend, &g) else {
        return;
    };
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

pub fn errors_of_feeders_end_the_run_with_a_message(backend: &dyn Backend) {
    let (g, _) = summing();
    let Some(mut program) = compile_or_skip(backend, &g) else {
        return;
    };
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
    program.feeder("z", || vec![1.0f32; 2]);
    assert_eq!(
        problem(program.run()),
        "there is a feeder of \"z\", but the graph has no `feed` of that name; it has \"x\""
    );
}

pub fn errors_of_receivers_end_the_run_with_a_message(backend: &dyn Backend) {
    let (g, _) = summing();
    let Some(mut program) = compile_or_skip(backend, &g) else {
        return;
    };
    program.feeder("x", || vec![1.0f32; 2]);
    program.receiver("sum", |_| panic!("the disk is full"));
    let message = problem(program.run());
    assert_eq!(
        message,
        "the receiver of \"sum\" panicked: the disk is full"
    );
    program.receiver("loss", |_| {});
    assert_eq!(
        problem(program.run()),
        "there is a receiver of \"loss\", but the graph has no `receive` of that name; it has \"sum\""
    );
}
