//! Compiles two graphs with the same network: one learns, the other one answers.

use ferrozyme_graph::Graph;
use ferrozyme_nn::{Adam, Layer, Linear, Module, Sequential, Tanh, loss::mean_squared_error};

fn network(g: &mut Graph) -> Sequential {
    Sequential::new((
        Linear::new(g, "first", 2, 16),
        Tanh,
        Linear::new(g, "second", 16, 1),
    ))
}

fn main() -> Result<(), ferrozyme_cpu::Error> {
    println!("cargo:rerun-if-changed=build.rs");
    let mut g = Graph::new();
    let net = network(&mut g);
    let adam = Adam::new(&mut g, 0.02, &net.parameters());
    g.repeat(500, |g, _step| {
        let x = g.feed("x", [4, 2]);
        let target = g.feed("target", [4, 1]);
        let y = net.forward(g, x);
        let loss = mean_squared_error(g, y, target);
        let gradients = g.backward(loss);
        adam.step(g, &gradients);
        g.receive("loss", &[loss]);
    });
    ferrozyme_cpu::build("learn", &g)?;

    let mut g = Graph::new();
    let net = network(&mut g);
    let x = g.feed("x", [1, 2]);
    let y = net.evaluate(&mut g, x);
    g.receive("y", &[y]);
    ferrozyme_cpu::build("answer", &g)
}
