//! Random graphs with their gradients, types of elements, control.

#![allow(missing_docs, reason = "the names say what is tested")]

use crate::{check_agreement, compile_or_skip};
use ferrozyme_backend::Backend;
use ferrozyme_gen::graph::{GraphProfile, append_random_graph};
use ferrozyme_gen::graph_laws::append_gradients;
use ferrozyme_graph::{CONDITION, FloatPredicate, Graph, INDEX, Scalar, TensorType};
use std::sync::{Arc, Mutex};

/// How many random graphs are compiled at once: what it takes to start a compiler, and the kernels that products share, are had once for all of them.
const TOGETHER: u64 = 64;

/// Random graphs with their gradients. `FERROZYME_GRAPHS=1000` takes that many, from the one with the number `FERROZYME_FIRST_GRAPH` on.
pub fn random_graphs_give_what_the_interpreter_gives(backend: &dyn Backend) {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let count = number("FERROZYME_GRAPHS").unwrap_or(12);
    let first = number("FERROZYME_FIRST_GRAPH").unwrap_or(0);
    let profile = GraphProfile {
        size: 8,
        control: true,
        updates: true,
        calls: true,
    };
    for start in (first..first + count).step_by(TOGETHER as usize) {
        let mut graph = Graph::new();
        for seed in start..(first + count).min(start + TOGETHER) {
            let prefix = format!("{seed} ");
            let tensor = append_random_graph(&mut graph, &prefix, seed, profile);
            append_gradients(&mut graph, tensor, &prefix);
        }
        check_agreement(backend, &graph, 1e-9);
    }
}

pub fn all_kinds_of_elements_travel(backend: &dyn Backend) {
    let mut g = Graph::new();
    let i = g.feed_of("i", TensorType::new(INDEX, [2]));
    let d = g.feed_of("d", TensorType::new(Scalar::F64, [2]));
    let as_float = g.cast(i, Scalar::F64);
    let sum = g.add(as_float, d);
    let short = g.cast(sum, Scalar::F32);
    let truth = g.cast(i, CONDITION);
    g.receive("all", &[i, sum, short, truth]);
    let Some(mut program) = compile_or_skip(backend, &g) else {
        return;
    };
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

pub fn each_precision_rounds_as_the_interpreter(backend: &dyn Backend) {
    let elements = [
        (Scalar::F64, 1e-12),
        (Scalar::F32, 1e-5),
        (Scalar::F16, 2e-3),
        (Scalar::Bf16, 2e-2),
    ];
    for (element, tolerance) in elements {
        let mut g = Graph::new();
        let counted = g.iota(TensorType::new(element, [300]), 0);
        let scaled = g.scale(counted, 0.01);
        let moved = g.shift(scaled, -1.0);
        let bent = g.tanh(moved);
        let square = g.mul(bent, moved);
        let grown = g.exp(square);
        let constant = g.constant(TensorType::new(element, [3]), vec![0.1, -2.5, 3.0]);
        let whole = g.cast(grown, INDEX);
        let back = g.cast(whole, element);
        g.receive("all", &[moved, bent, square, grown, constant, whole, back]);
        check_agreement(backend, &g, tolerance);
    }
}

/// Devices have instructions for exponentials, which are right in some range only.
pub fn exponentials_are_right_to_both_ends(backend: &dyn Backend) {
    let mut numbers: Vec<f32> = (-1200..=1000).map(|n| n as f32 * 0.0913).collect();
    // The last that has a result, and those around it; the first that is no zero.
    numbers.extend([
        88.7,
        88.722_83,
        88.722_84,
        88.73,
        89.0,
        104.0,
        1e30,
        f32::INFINITY,
    ]);
    numbers.extend([-87.3, -87.4, -103.2, -104.1, -1e30, f32::NEG_INFINITY]);
    numbers.extend([0.0, -0.0, 1e-30, -1e-30, 1e-8, f32::NAN]);
    let mut g = Graph::new();
    let x = g.feed("x", [numbers.len()]);
    let y = g.exp(x);
    g.receive("y", &[y]);
    let Some(mut program) = compile_or_skip(backend, &g) else {
        return;
    };
    let fed = numbers.clone();
    program.feeder("x", move || fed.clone());
    let received: Arc<Mutex<Vec<f64>>> = Arc::default();
    let into = received.clone();
    program.receiver("y", move |tensors| {
        *into.lock().unwrap() = tensors[0].elements.to_vec()
    });
    program.run().unwrap();
    let results = received.lock().unwrap();
    assert_eq!(results.len(), numbers.len());
    for (&x, &actual) in numbers.iter().zip(&*results) {
        let expected = f64::from(x).exp();
        let tolerance = match expected < f64::from(f32::MIN_POSITIVE) {
            // Some devices have no smaller numbers.
            true => f64::from(f32::MIN_POSITIVE),
            false => 4e-7 * expected,
        };
        // Next to the largest number, infinity is within the tolerance.
        let (low, high) = (expected - tolerance, expected + tolerance);
        let largest = f64::from(f32::MAX);
        let is_right = match expected {
            _ if expected.is_nan() => actual.is_nan(),
            _ if actual.is_infinite() => actual > 0.0 && high >= largest,
            _ => low <= actual && actual <= high,
        };
        assert!(is_right, "e to {x} is {actual}, not {expected}");
    }
}

pub fn loops_and_branches_run(backend: &dyn Backend) {
    let mut g = Graph::new();
    let total = g.parameter("total", [], 0.0);
    let start = g.constant(TensorType::scalar(Scalar::F32), 1.0);
    // Doubles until 100 is passed, then goes up or down in each of five iterations.
    let doubled = g.while_loop(
        &[start],
        |g, carried| {
            let limit = g.constant_like(carried[0], 100.0);
            g.compare(FloatPredicate::Olt, carried[0], limit)
        },
        |g, carried| vec![g.scale(carried[0], 2.0)],
    );
    g.receive("doubled", &doubled);
    g.repeat(5, |g, step| {
        let number = g.cast(step, Scalar::F32);
        let limit = g.constant_like(number, 2.5);
        let early = g.compare(FloatPredicate::Olt, number, limit);
        let old = g.read(total);
        let next = g.if_else(
            early,
            |g| vec![g.shift(old, 10.0)],
            |g| {
                let less = g.scale(number, -1.0);
                vec![g.add(old, less)]
            },
        );
        g.update(total, next[0]);
        g.receive("total", &next);
    });
    check_agreement(backend, &g, 1e-6);
}

pub fn a_loop_may_run_no_times(backend: &dyn Backend) {
    let mut g = Graph::new();
    let total = g.parameter("total", [], 3.0);
    g.repeat(0, |g, _| {
        let old = g.read(total);
        let new = g.shift(old, 1.0);
        g.update(total, new);
    });
    check_agreement(backend, &g, 0.0);
}
