//! Initial values of parameters: random numbers that depend on the name of the parameter, so that they are the same in each run.

use ferrozyme_graph::interpret::Machine;
use ferrozyme_graph::{Graph, INDEX, Literal, Scalar, Shape, TensorType};

/// Uniform numbers between `-limit` and `limit`.
pub(crate) fn uniform(name: &str, shape: impl Into<Shape>, limit: f64) -> Literal {
    // The graph has random numbers; a graph of its own computes these.
    let mut g = Graph::new();
    let counter = g.constant(TensorType::scalar(INDEX), 0.0);
    let units = g.random(TensorType::new(Scalar::F32, shape), seed_of(name), counter);
    let centred = g.shift(units, -0.5);
    let scaled = g.scale(centred, 2.0 * limit);
    g.receive("values", &[scaled]);
    let mut machine = Machine::new(&g);
    machine.run().expect("these operations do not fail");
    let values = machine.received("values").expect("it was received");
    Literal::from(values[0].elements.to_vec())
}

/// A number for a name: FNV-1a, of 64 bits.
fn seed_of(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
