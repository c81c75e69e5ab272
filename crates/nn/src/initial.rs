//! Initial values of parameters: random numbers that depend on the name of the parameter, so that they are the same in each run.

use ferrozyme_graph::interpret::Machine;
use ferrozyme_graph::{Graph, INDEX, Literal, Scalar, Shape, Tensor, TensorType};
use std::f64::consts::PI;

/// Uniform numbers between `-limit` and `limit`.
pub(crate) fn uniform(name: &str, shape: impl Into<Shape>, limit: f64) -> Literal {
    values(|g| {
        let units = units(g, shape.into(), seed_of(name), 0);
        let centred = g.shift(units, -0.5);
        g.scale(centred, 2.0 * limit)
    })
}

/// Numbers of the normal distribution with this deviation (Box and Muller, 1958).
pub(crate) fn normal(name: &str, shape: impl Into<Shape>, deviation: f64) -> Literal {
    values(|g| {
        let shape = shape.into();
        let first = units(g, shape.clone(), seed_of(name), 0);
        let second = units(g, shape, seed_of(name), 1);
        // 1 − u is never 0.
        let negative = g.neg(first);
        let positive = g.shift(negative, 1.0);
        let logarithm = g.log(positive);
        let scaled = g.scale(logarithm, -2.0);
        let radius = g.sqrt(scaled);
        let angle = g.scale(second, 2.0 * PI);
        let cosine = g.cos(angle);
        let normal = g.mul(radius, cosine);
        g.scale(normal, deviation)
    })
}

/// Numbers in [0, 1).
fn units(g: &mut Graph, shape: Shape, seed: u64, counter: u32) -> Tensor {
    let counter = g.constant(TensorType::scalar(INDEX), f64::from(counter));
    g.random(TensorType::new(Scalar::F32, shape), seed, counter)
}

/// What a graph of its own computes: the graph has random numbers, so they are not made in a second way.
fn values(build: impl FnOnce(&mut Graph) -> Tensor) -> Literal {
    let mut g = Graph::new();
    let tensor = build(&mut g);
    g.receive("values", &[tensor]);
    let mut machine = Machine::new(&g);
    machine.run().expect("these operations do not fail");
    let values = machine.received("values").expect("it was received");
    Literal::from(values[0].elements.to_vec())
}

/// A number for a name: FNV-1a, of 64 bits.
pub(crate) fn seed_of(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
