//! Rust functions as operations of graphs.

#![allow(missing_docs, reason = "the names say what is tested")]

use crate::{check_agreement, compile_or_skip};
use ferrozyme_backend::Backend;
use ferrozyme_gen::graph::mixture;
use ferrozyme_graph::{Graph, INDEX, Scalar, TensorType, UserFunction, parse};
use std::sync::{Arc, Mutex};

/// A row per index: single precision, doubles and integers, two results.
fn chosen(x: &[f32], scale: &[f64], rows: &[i32], y: &mut [f32], sum: &mut [f64]) {
    let width = y.len() / rows.len();
    for (&row, y) in rows.iter().zip(y.chunks_mut(width)) {
        let from = &x[row as usize * width..][..width];
        for (x, y) in from.iter().zip(y) {
            *y = x * scale[0] as f32;
            sum[0] += f64::from(*y);
        }
    }
}

#[allow(
    clippy::too_many_arguments,
    reason = "as `#[autodiff_reverse]` makes it"
)]
fn d_chosen(
    x: &[f32],
    dx: &mut [f32],
    scale: &[f64],
    dscale: &mut [f64],
    rows: &[i32],
    y: &mut [f32],
    dy: &mut [f32],
    _: &mut [f64],
    dsum: &mut [f64],
) {
    let width = y.len() / rows.len();
    for (&row, dy) in rows.iter().zip(dy.chunks_mut(width)) {
        let from = row as usize * width;
        for (position, dy) in (from..).zip(dy) {
            let adjoint = f64::from(*dy) + dsum[0];
            dx[position] += (adjoint * scale[0]) as f32;
            dscale[0] += adjoint * f64::from(x[position]);
        }
    }
}

pub fn functions_are_called_with_their_derivatives(backend: &dyn Backend) {
    let chosen = UserFunction::new("chosen", chosen).with_derivative(d_chosen);
    let mut g = Graph::new();
    let x = g.parameter("x", [3, 2], vec![1.0, -2.0, 3.0, 0.5, 4.0, -1.0]);
    let scale = g.parameter_of("scale", TensorType::new(Scalar::F64, [1]), 1.5);
    let rows = g.constant(TensorType::new(INDEX, [4]), vec![2.0, 0.0, 2.0, 1.0]);
    let (value, by) = (g.read(x), g.read(scale));
    let bent = g.tanh(value);
    let shapes = [&[4, 2][..], &[1]];
    let [y, sum] = g.call(&chosen, &[bent, by, rows], shapes);
    let square = g.mul(y, y);
    let loss = g.sum_all(square);
    let loss = g.cast(loss, Scalar::F64);
    let rest = g.sum_all(sum);
    let loss = g.add(loss, rest);
    let gradients = g.backward(loss);
    let of = [x, scale].map(|parameter| gradients.of_parameter(parameter));
    g.receive("all", &[y, sum, loss, of[0].unwrap(), of[1].unwrap()]);
    check_agreement(backend, &g, 1e-5);
}

/// The gradient goes back through all iterations of a loop that calls a function between operations of the graph.
pub fn a_function_in_a_loop_is_called_each_time(backend: &dyn Backend) {
    let mixture = mixture();
    let mut g = Graph::new();
    let ty = TensorType::new(Scalar::F64, [5]);
    let w = g.parameter_of("w", ty, vec![0.3, -0.7, 1.1, 0.2, -0.4]);
    g.repeat(3, |g, _| {
        let value = g.read(w);
        let count = g.constant(TensorType::scalar(INDEX), 4.0);
        let last = g.for_loop(count, &[value], |g, _, carried| {
            let [mixed] = g.call(&mixture, &[carried[0], value], [[5]]);
            vec![g.tanh(mixed)]
        });
        let loss = g.sum_all(last[0]);
        let gradients = g.backward(loss);
        let gradient = gradients.of_parameter(w).expect("it depends on it");
        let change = g.scale(gradient, -0.1);
        let next = g.add(value, change);
        g.update(w, next);
        g.receive("loss", &[loss]);
    });
    check_agreement(backend, &g, 1e-9);
}

pub fn a_panic_ends_the_run_where_it_is(backend: &dyn Backend) {
    let picky = UserFunction::new("picky", |x: &[f32], y: &mut [f32]| {
        assert!(x[0] < 3.0, "{} is too much", x[0]);
        y.copy_from_slice(x);
    });
    let mut g = Graph::new();
    let sum = g.parameter("sum", [2], 0.0);
    let line = line!() + 5;
    g.repeat(5, |g, _| {
        let x = g.feed("x", [2]);
        let old = g.read(sum);
        let new = g.add(old, x);
        let [new] = g.call(&picky, &[new], [[2]]);
        g.update(sum, new);
        g.receive("sum", &[new]);
    });
    let Some(mut program) = compile_or_skip(backend, &g) else {
        return;
    };
    program.feeder("x", || vec![1.0f32; 2]);
    let received: Arc<Mutex<Vec<f64>>> = Arc::default();
    let into = received.clone();
    program.receiver("sum", move |tensors| {
        into.lock().unwrap().push(tensors[0].elements[0])
    });
    let message = program.run().expect_err("it panics").to_string();
    let start = "\"picky\" panicked: 3 is too much (called at ";
    assert!(message.starts_with(start), "{message}");
    assert!(
        message.contains(&format!("functions.rs:{line}:")),
        "{message}"
    );
    // All that was done before is there, and nothing behind it was done.
    assert_eq!(program.parameter(sum).elements[..], [2.0, 2.0]);
    assert!(received.lock().unwrap().len() <= 2);
    // The program is in order.
    program.set_parameter(
        sum,
        &ferrozyme_graph::interpret::Array::new(TensorType::new(Scalar::F32, [2]), vec![-9.0; 2]),
    );
    program.run().expect("it is small enough now");
    assert_eq!(program.parameter(sum).elements[..], [-4.0, -4.0]);
}

pub fn a_function_that_is_not_known_is_named(backend: &dyn Backend) {
    let text = "graph {\n  %x = constant 1.0 : f32[2]\n  %y = call \"law\" %x : f32[2]\n  receive \"y\" %y\n}\n";
    let mut g = parse(text).expect("it is a graph");
    let outcome = ferrozyme_backend::compile_with(backend, &g);
    let message = outcome.err().expect("it is not known").to_string();
    let expected = "nothing defines the function \"law\"";
    assert!(message.contains(expected), "{message}");
    g.define(&UserFunction::new("law", |x: &[f32], y: &mut [f32]| {
        y[1] = x[0]
    }));
    check_agreement(backend, &g, 0.0);
}
