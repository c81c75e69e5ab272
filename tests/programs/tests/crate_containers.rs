//! Containers of published crates: a search tree that is built outside and only queried, tiny vectors, slots that are reused.

use ferrozyme::{grad, jvp};
use ferrozyme_programs::Field;
use rstar::RTree;
use slab::Slab;
use tinyvec::TinyVec;

fn points() -> Vec<[f64; 2]> {
    let point = |i: u32| [f64::from(i * 17).sin() * 3.0, f64::from(i * 9).cos() * 2.0];
    (0..40).map(point).collect()
}

fn add(gradient: &[f64], seed: f64, to: &mut [f64]) {
    for (to, derivative) in to.iter_mut().zip(gradient) {
        *to += seed * derivative;
    }
}

fn squared_distance(p: &[f64; 2], x: &[f64]) -> f64 {
    (p[0] - x[0]).powi(2) + (p[1] - x[1]).powi(2)
}

/// The stack of nodes and the point that is looked for are fields of one iterator.
#[test]
fn neighbours_in_a_captured_tree() {
    let tree = RTree::bulk_load(points());
    let nearest = |x: &[f64]| {
        let found = tree.nearest_neighbor(&[x[0], x[1]]).unwrap();
        squared_distance(found, x).sqrt() * x[0]
    };
    let within = |x: &[f64]| -> f64 {
        let found = tree.locate_within_distance([x[0], x[1]], 2.0);
        found.map(|p| (-squared_distance(p, x)).exp()).sum()
    };
    Field::new("nearest neighbour", nearest)
        .reverse(|x, dx, seed| {
            add(&grad(nearest, x), seed, dx);
            nearest(x)
        })
        .check(&[0.31, -0.77]);
    Field::new("neighbours within a distance", within)
        .reverse(|x, dx, seed| {
            add(&grad(within, x), seed, dx);
            within(x)
        })
        .check(&[0.31, -0.77]);
    // Nothing was added to the tree.
    let mut found: Vec<[f64; 2]> = tree.iter().copied().collect();
    let mut expected = points();
    found.sort_by(|a, b| a.partial_cmp(b).unwrap());
    expected.sort_by(|a, b| a.partial_cmp(b).unwrap());
    assert_eq!(found, expected);
}

fn tiny_vectors(x: &[f64]) -> f64 {
    let mut squares: TinyVec<[f64; 2]> = TinyVec::new();
    for &v in x {
        squares.push(v * v);
    }
    squares.insert(1, x[0] * x[2]);
    let last = squares.pop().unwrap();
    let sines: TinyVec<[f64; 8]> = squares.iter().map(|v| v.sin()).collect();
    let products = sines.iter().zip(&squares).map(|(a, b)| a * b);
    last * products.sum::<f64>()
}

fn slots(x: &[f64]) -> f64 {
    let mut slab: Slab<f64> = Slab::new();
    let keys: Vec<usize> = x.iter().map(|&v| slab.insert(v * v)).collect();
    slab.remove(keys[1]);
    let again = slab.insert(x[0] * x[2]);
    let weighted = slab.iter().map(|(i, v)| v * (i as f64 + 1.0));
    weighted.sum::<f64>() + slab[again] * 2.0
}

#[test]
fn tiny_vectors_that_outgrow_their_place() {
    Field::new("tiny vectors", tiny_vectors)
        .reverse(|x, dx, seed| {
            add(&grad(tiny_vectors, x), seed, dx);
            tiny_vectors(x)
        })
        .forward(|x, v| jvp(tiny_vectors, x, v))
        .check(&[0.31, 0.77, -0.4, 1.2]);
}

#[test]
fn slots_that_are_used_again() {
    Field::new("slots", slots)
        .reverse(|x, dx, seed| {
            add(&grad(slots, x), seed, dx);
            slots(x)
        })
        .forward(|x, v| jvp(slots, x, v))
        .check(&[0.31, 0.77, -0.4, 1.2]);
}
