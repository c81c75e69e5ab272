//! Two linear layers with a sigmoid between, trained for a thousand steps in one loop of the graph.
//!
//! `--device opencl` runs it by OpenCL, `--device cuda` on a GPU of NVIDIA. Prints the graph as trees, the kernels, the memory that they need, and the time of a step.

use ferrozyme_device::{compile, take_device};
use ferrozyme_graph::Graph;
use ferrozyme_nn::{Layer, Linear, Module, Sequential, Sgd, Sigmoid};
use std::time::Instant;

const STEPS: u32 = 1000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = take_device(&mut std::env::args().collect())?;
    let mut g = Graph::new();
    let net = Sequential::new((
        Linear::new(&mut g, "first", 255, 255),
        Sigmoid,
        Linear::new(&mut g, "second", 255, 255),
    ));
    let sgd = Sgd::new(0.01);
    g.repeat(STEPS, |g, _step| {
        let x = g.feed("x", [2, 255]);
        let y = net.forward(g, x);
        let gradients = g.backward(y);
        sgd.step(g, &net.parameters(), &gradients);
    });
    let parameters: Vec<_> = net.parameters().into_iter().map(|p| g.read(p)).collect();
    g.receive("parameters", &parameters);
    let mut program = compile(&g, &device)?;
    println!("{}", program.graph().tree());
    println!("{}", program.report());
    program.feeder("x", || vec![0.2f32; 510]);
    program.receiver("parameters", |tensors| {
        for tensor in tensors {
            let sum: f64 = tensor.elements.iter().sum();
            println!("received {} with the sum {sum:.4}", tensor.ty);
        }
    });
    let start = Instant::now();
    program.run()?;
    let micros = start.elapsed().as_secs_f64() * 1e6 / f64::from(STEPS);
    println!("{micros:.1} µs per step");
    Ok(())
}
