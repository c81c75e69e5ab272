//! Kernels of sizes that fill several work-groups, with tiles and rows that are not full.

#![allow(missing_docs, reason = "the names say what is tested")]

use crate::{check_agreement, compile_or_skip};
use ferrozyme_backend::Backend;
use ferrozyme_graph::{Graph, INDEX, Reduction, Scalar, Shape, Tensor, TensorType};
use std::sync::mpsc;

/// Numbers between -1 and 1 of this shape.
fn numbers(g: &mut Graph, seed: u64, element: Scalar, shape: impl Into<Shape>) -> Tensor {
    let counter = g.constant(TensorType::scalar(INDEX), 0.0);
    let unit = g.random(TensorType::new(element, shape), seed, counter);
    let wide = g.scale(unit, 2.0);
    g.shift(wide, -1.0)
}

pub fn contractions_of_many_shapes(backend: &dyn Backend) {
    let mut g = Graph::new();
    for (m, n, k) in [
        (1, 1, 1),
        (3, 5, 7),
        (65, 33, 17),
        (130, 70, 40),
        (1, 200, 64),
        (64, 1, 300),
    ] {
        let a = numbers(&mut g, 1, Scalar::F32, [m, k]);
        let b = numbers(&mut g, 2, Scalar::F32, [k, n]);
        let transposed = numbers(&mut g, 3, Scalar::F32, [n, k]);
        let plain = g.contract("ab, bc -> ac", a, b);
        let other = g.contract("ab, cb -> ac", a, transposed);
        let turned = g.contract("ab, bc -> ca", a, b);
        g.receive("products", &[plain, other, turned]);
    }
    check_agreement(backend, &g, 1e-4);
}

pub fn contractions_with_batches_and_several_indices(backend: &dyn Backend) {
    let mut g = Graph::new();
    let q = numbers(&mut g, 1, Scalar::F64, [2, 9, 3, 4]);
    let k = numbers(&mut g, 2, Scalar::F64, [2, 11, 3, 4]);
    let scores = g.contract("btha, bsha -> bhts", q, k);
    let w = numbers(&mut g, 3, Scalar::F64, [3, 4, 5]);
    let projected = g.contract("btha, hac -> btc", q, w);
    let dot = g.contract("btha, btha -> ", q, q);
    let short = numbers(&mut g, 4, Scalar::F64, [37]);
    let outer = g.contract("a, b -> ab", short, short);
    g.receive("all", &[scores, projected, dot, outer]);
    check_agreement(backend, &g, 1e-10);
}

pub fn reductions_over_each_axis(backend: &dyn Backend) {
    let mut g = Graph::new();
    let x = numbers(&mut g, 7, Scalar::F64, [7, 300, 5]);
    let whole = g.scale(x, 1000.0);
    let whole = g.cast(whole, INDEX);
    for reduction in [
        Reduction::Sum,
        Reduction::Max,
        Reduction::Min,
        Reduction::Argmax,
    ] {
        for axes in [&[0][..], &[1], &[2], &[0, 1], &[1, 2], &[0, 1, 2]] {
            if reduction == Reduction::Argmax && axes.len() > 1 {
                continue;
            }
            let floats = g.reduce(reduction, x, axes);
            let integers = g.reduce(reduction, whole, axes);
            g.receive("reduced", &[floats, integers]);
        }
    }
    check_agreement(backend, &g, 1e-10);
}

/// Products large enough for a library, in batches over two axes that are not neighbours in memory, are those of batches over one axis.
pub fn large_products_in_batches_over_two_axes(backend: &dyn Backend) {
    let [batches, heads, rows, size] = [4, 8, 128, 512];
    let mut g = Graph::new();
    let shape = [batches, rows, heads, size];
    let [left, right] = [3, 5].map(|seed| numbers(&mut g, seed, Scalar::F32, shape));
    let apart = g.contract("bihs,bjhs->bhij", left, right);
    let [left, right] = [left, right].map(|tensor| {
        let tensor = g.permute(tensor, &[0, 2, 1, 3]);
        // A sum with something else has memory of its own, in this order.
        let ones = g.constant_like(tensor, 1.0);
        let moved = g.add(tensor, ones);
        let moved = g.sub(moved, ones);
        g.reshape(moved, [batches * heads, rows, size])
    });
    let together = g.contract("nis,njs->nij", left, right);
    let together = g.reshape(together, [batches, heads, rows, rows]);
    let difference = g.sub(apart, together);
    let squares = g.mul(difference, difference);
    let axes = [0, 1, 2, 3];
    let errors = [squares, apart].map(|tensor| g.reduce(Reduction::Max, tensor, &axes));
    g.receive("errors", &errors);
    let Some(mut program) = compile_or_skip(backend, &g) else {
        return;
    };
    let (sender, receiver) = mpsc::channel();
    program.receiver("errors", move |tensors| sender.send(tensors).unwrap());
    program.run().unwrap();
    let errors = receiver.recv().unwrap();
    let [error, largest] = [0, 1].map(|position| errors[position].scalar());
    // Sums of 512 products of numbers below 1, of which a library may keep 11 bits.
    assert!(largest > 10.0 && error < 0.25, "{error} of {largest}");
}

/// Columns that are summed in parts on some devices, whole rows and with what is computed for each of them.
pub fn long_columns_are_summed(backend: &dyn Backend) {
    for (element, tolerance) in [(Scalar::F32, 1e-3), (Scalar::F64, 1e-10)] {
        let mut g = Graph::new();
        for shape in [&[4096, 24][..], &[6, 700, 3], &[2077, 5]] {
            let leading: Vec<usize> = (0..shape.len() - 1).collect();
            let x = numbers(&mut g, 5, element, shape);
            let most = g.reduce(Reduction::Max, x, &[shape.len() - 1]);
            let most = g.broadcast(most, &[(shape.len() - 1, shape[shape.len() - 1])]);
            let centred = g.sub(x, most);
            let waves = g.sin(centred);
            let sums = [x, centred, waves].map(|tensor| g.sum(tensor, &leading));
            g.receive("sums", &sums);
        }
        check_agreement(backend, &g, tolerance);
    }
}

/// Items of a group go through different numbers of rows, with a loop in each.
pub fn items_run_nests_of_different_lengths(backend: &dyn Backend) {
    for (element, tolerance) in [(Scalar::F32, 1e-3), (Scalar::F64, 1e-10)] {
        let mut g = Graph::new();
        for shape in [[2, 300, 40], [3, 257, 5], [1, 1000, 33]] {
            let x = numbers(&mut g, 3, element, shape);
            for reduction in [Reduction::Sum, Reduction::Max] {
                let reduced = g.reduce(reduction, x, &[1, 2]);
                g.receive("reduced", &[reduced]);
            }
        }
        check_agreement(backend, &g, tolerance);
    }
}

pub fn softmax_with_its_gradient(backend: &dyn Backend) {
    for columns in [3, 257] {
        let mut g = Graph::new();
        let p = g.parameter_of("p", TensorType::new(Scalar::F64, [5, columns]), 0.5);
        let noise = numbers(&mut g, 5, Scalar::F64, [5, columns]);
        let x = g.read(p);
        let x = g.mul(x, noise);
        let largest = g.reduce(Reduction::Max, x, &[1]);
        let largest = g.broadcast(largest, &[(1, columns)]);
        let less = g.sub(x, largest);
        let powers = g.exp(less);
        let sum = g.sum(powers, &[1]);
        let sum = g.broadcast(sum, &[(1, columns)]);
        let y = g.div(powers, sum);
        let weighted = g.mul(y, noise);
        let gradients = g.backward(weighted);
        let gradient = gradients.of_parameter(p).expect("it depends on it");
        g.receive("softmax", &[y, gradient]);
        check_agreement(backend, &g, 1e-10);
    }
}

pub fn layer_normalisation_with_its_gradient(backend: &dyn Backend) {
    let (rows, columns) = (4, 192);
    let mut g = Graph::new();
    let p = g.parameter_of("p", TensorType::new(Scalar::F64, [rows, columns]), 0.5);
    let noise = numbers(&mut g, 5, Scalar::F64, [rows, columns]);
    let x = g.read(p);
    let x = g.mul(x, noise);
    let sum = g.sum(x, &[1]);
    let mean = g.scale(sum, 1.0 / columns as f64);
    let mean = g.broadcast(mean, &[(1, columns)]);
    let centred = g.sub(x, mean);
    let squares = g.mul(centred, centred);
    let variance = g.sum(squares, &[1]);
    let variance = g.scale(variance, 1.0 / columns as f64);
    let safe = g.shift(variance, 1e-5);
    let deviation = g.sqrt(safe);
    let deviation = g.broadcast(deviation, &[(1, columns)]);
    let y = g.div(centred, deviation);
    let weighted = g.mul(y, noise);
    let gradients = g.backward(weighted);
    let gradient = gradients.of_parameter(p).expect("it depends on it");
    let mean_of_rows = g.sum(y, &[0]);
    g.receive("normalised", &[y, gradient, mean_of_rows]);
    check_agreement(backend, &g, 1e-9);
}

pub fn rows_are_gathered_and_scattered(backend: &dyn Backend) {
    let mut g = Graph::new();
    let table = numbers(&mut g, 1, Scalar::F32, [50, 40]);
    let unit = numbers(&mut g, 2, Scalar::F32, [300]);
    let wide = g.scale(unit, 24.0);
    let moved = g.shift(wide, 25.0);
    let indices = g.cast(moved, INDEX);
    let rows = g.gather(table, indices, 0);
    let sums = g.scatter_add(table, indices, rows, 0);
    g.receive("rows", &[rows, sums]);
    check_agreement(backend, &g, 1e-4);
}

pub fn updates_are_in_place(backend: &dyn Backend) {
    let mut g = Graph::new();
    let p = g.parameter_of("p", TensorType::new(Scalar::F32, [1000]), 0.25);
    g.repeat(20, |g, step| {
        let old = g.read(p);
        let number = g.cast(step, Scalar::F32);
        let number = g.broadcast_to(number, [1000]);
        let position = g.iota(TensorType::new(Scalar::F32, [1000]), 0);
        let moved = g.mul(position, number);
        let wave = g.sin(moved);
        let small = g.scale(wave, 0.01);
        let new = g.add(old, small);
        g.update(p, new);
    });
    check_agreement(backend, &g, 1e-3);
}
