//! An encoder with self-attention, trained for 500 steps in one loop of the graph. The number of layers is the argument; 6 if there is none.
//!
//! `--device opencl` runs it by OpenCL, `--device cuda` on a GPU of NVIDIA. Prints the kernels, the memory that they need, and the time of a step.

use ferrozyme_device::{compile, take_device};
use ferrozyme_graph::{Graph, Scalar, TensorType};
use ferrozyme_nn::{Layer, Module, Sgd, TransformerEncoder};
use std::time::Instant;

const STEPS: u32 = 500;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().collect();
    let device = take_device(&mut arguments)?;
    let layers = arguments.get(1).map_or(Ok(6), |text| text.parse())?;
    let mut g = Graph::new();
    let encoder = TransformerEncoder::new(&mut g, layers, 64, 4, 128);
    let sgd = Sgd::new(0.01);
    g.repeat(STEPS, |g, _step| {
        let x = g.constant(TensorType::new(Scalar::F32, [2, 64]), 0.3);
        let y = encoder.forward(g, x);
        let gradients = g.backward(y);
        sgd.step(g, &encoder.parameters(), &gradients);
    });
    let mut program = compile(&g, &device)?;
    println!("{}", program.report());
    let start = Instant::now();
    program.run()?;
    let micros = start.elapsed().as_secs_f64() * 1e6 / f64::from(STEPS);
    println!("{micros:.1} µs per step");
    Ok(())
}
