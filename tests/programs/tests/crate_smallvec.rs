//! Small vectors that outgrow their place. With the crate's feature `union`, its floats and its pointer share their place (without optimisation the program stops).

use ferrozyme::{grad, jvp};
use ferrozyme_programs::Field;
use smallvec::SmallVec;

fn add(gradient: &[f64], seed: f64, to: &mut [f64]) {
    for (to, derivative) in to.iter_mut().zip(gradient) {
        *to += seed * derivative;
    }
}

fn small_vectors(x: &[f64]) -> f64 {
    let mut squares: SmallVec<[f64; 2]> = SmallVec::new();
    for &v in x {
        squares.push(v * v);
    }
    squares.insert(1, x[0] * x[2]);
    let last = squares.pop().unwrap();
    let sines: SmallVec<[f64; 8]> = squares.iter().map(|v| v.sin()).collect();
    let products = sines.iter().zip(&squares).map(|(a, b)| a * b);
    last * products.sum::<f64>()
}

#[test]
fn small_vectors_that_outgrow_their_place() {
    Field::new("small vectors", small_vectors)
        .reverse(|x, dx, seed| {
            add(&grad(small_vectors, x), seed, dx);
            small_vectors(x)
        })
        .forward(|x, v| jvp(small_vectors, x, v))
        .check(&[0.31, 0.77, -0.4, 1.2]);
}
