//! Runs a graph on a backend and in the interpreter.

use crate::compile_or_skip;
use ferrozyme_backend::Backend;
use ferrozyme_graph::interpret::{Array, Machine};
use ferrozyme_graph::{Graph, Opcode, Payload};
use std::sync::{Arc, Mutex};

/// What is received under one name.
type Received = Arc<Mutex<Vec<Vec<Array>>>>;

/// Runs a graph that feeds nothing on a backend and in the interpreter. All that is received and all parameters must agree within the tolerance, relative to numbers above 1.
pub fn check_agreement(backend: &dyn Backend, graph: &Graph, tolerance: f64) {
    let Some(mut program) = compile_or_skip(backend, graph) else {
        return;
    };
    let mut machine = Machine::new(graph);
    machine.run().expect("the interpreter runs it");
    let mut names: Vec<Box<str>> = Vec::new();
    graph.for_each_op(graph.body(), &mut |_, op| {
        let data = &graph.ops[op];
        if let (Opcode::Receive, Payload::Receive(name)) = (data.opcode, &data.payload)
            && !names.contains(name)
        {
            names.push(name.clone());
        }
    });
    let received: Vec<Received> = names.iter().map(|_| Received::default()).collect();
    for (name, into) in names.iter().zip(&received) {
        let into = into.clone();
        program.receiver(name, move |tensors| into.lock().unwrap().push(tensors));
    }
    let outcome = program.run();
    outcome.unwrap_or_else(|error| panic!("it runs, but: {error}\n{graph}"));
    for (name, received) in names.iter().zip(&received) {
        let all = machine.all_received().iter();
        let expected: Vec<&Array> = all
            .filter(|(other, _)| **other == **name)
            .flat_map(|(_, tensors)| tensors)
            .collect();
        let received = received.lock().unwrap();
        let received: Vec<&Array> = received.iter().flatten().collect();
        assert_eq!(received.len(), expected.len(), "\"{name}\"\n{graph}");
        for (computed, expected) in received.into_iter().zip(expected) {
            compare(graph, name, computed, expected, tolerance);
        }
    }
    for (parameter, data) in &graph.parameters {
        let computed = program.parameter(parameter);
        compare(
            graph,
            &data.name,
            &computed,
            machine.parameter(parameter),
            tolerance,
        );
    }
}

fn compare(graph: &Graph, name: &str, computed: &Array, expected: &Array, tolerance: f64) {
    assert_eq!(computed.ty, expected.ty);
    for (position, (&a, &b)) in computed
        .elements
        .iter()
        .zip(&*expected.elements)
        .enumerate()
    {
        let same = a == b || (a.is_nan() && b.is_nan());
        assert!(
            same || (a - b).abs() <= tolerance * (1.0 + b.abs()),
            "\"{name}\" is {a} at {position}, not {b}\n{graph}"
        );
    }
}
