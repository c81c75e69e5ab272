//! Learns the law of a pendulum from its motion: a neural ordinary differential equation (Chen et al., 2018).
//!
//! ```text
//! cargo run --release -p ferrozyme-train --example pendulum
//! ```
//!
//! The network gives the velocity of a state (angle and angular velocity). A loop of the graph integrates it by the method of Runge and Kutta, and the gradient of the distance to the motion
//! that was observed goes back through all steps. Writes log, curve and checkpoint to `target/pendulum`, and prints the law that was learnt beside the true one.

use ferrozyme_cpu::compile;
use ferrozyme_graph::{Graph, INDEX, Tensor, TensorType};
use ferrozyme_nn::loss::mean_squared_error;
use ferrozyme_nn::{Adam, Layer, Linear, Mode, Module, Schedule, Sequential, Tanh};
use ferrozyme_train::{Trainer, load, save, training_loop};
use std::error::Error;
use std::path::Path;

const BATCH: usize = 32;
const POINTS: usize = 10;
const PACE: f64 = 0.1;
const STEPS: u64 = 600;

fn law() -> impl Fn([f64; 2]) -> [f64; 2] {
    |[angle, velocity]| [velocity, -angle.sin() - 0.1 * velocity]
}

/// A step of Runge and Kutta's method of order four, for numbers.
fn moved(state: [f64; 2]) -> [f64; 2] {
    let law = law();
    let ahead = |slope: [f64; 2], by: f64| [state[0] + by * slope[0], state[1] + by * slope[1]];
    let a = law(state);
    let b = law(ahead(a, PACE / 2.0));
    let c = law(ahead(b, PACE / 2.0));
    let d = law(ahead(c, PACE));
    let mean = |axis: usize| (a[axis] + 2.0 * b[axis] + 2.0 * c[axis] + d[axis]) / 6.0;
    ahead([mean(0), mean(1)], PACE)
}

/// Where a motion begins.
fn start(step: u64, row: usize) -> [f64; 2] {
    let mixed = (step * BATCH as u64 + row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let unit = |bits: u64| (bits & 0xffff) as f64 / 65536.0;
    [4.0 * unit(mixed >> 40) - 2.0, 4.0 * unit(mixed >> 16) - 2.0]
}

fn network(g: &mut Graph) -> Sequential {
    Sequential::new((
        Linear::new(g, "first", 2, 32),
        Tanh,
        Linear::new(g, "second", 32, 32),
        Tanh,
        Linear::new(g, "last", 32, 2),
    ))
}

/// `state + by·slope`.
fn ahead(g: &mut Graph, state: Tensor, slope: Tensor, by: f64) -> Tensor {
    let change = g.scale(slope, by);
    g.add(state, change)
}

/// The states after each step, `[points, batch, 2]`: Runge and Kutta's method in a loop of the graph.
fn integrate(g: &mut Graph, law: &dyn Fn(&mut Graph, Tensor) -> Tensor, first: Tensor) -> Tensor {
    let path = g.constant(
        TensorType::new(g.ty(first).element, [POINTS, BATCH, 2]),
        0.0,
    );
    let count = g.constant(TensorType::scalar(INDEX), POINTS as f64);
    let results = g.for_loop(count, &[first, path], |g, number, carried| {
        let (state, path) = (carried[0], carried[1]);
        let a = law(g, state);
        let at = ahead(g, state, a, PACE / 2.0);
        let b = law(g, at);
        let at = ahead(g, state, b, PACE / 2.0);
        let c = law(g, at);
        let at = ahead(g, state, c, PACE);
        let d = law(g, at);
        let middle = g.add(b, c);
        let sum = ahead(g, a, middle, 2.0);
        let sum = g.add(sum, d);
        let next = ahead(g, state, sum, PACE / 6.0);
        vec![next, g.scatter_add(path, number, next, 0)]
    });
    results[1]
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new("target/pendulum");
    let mut g = Graph::new();
    let net = network(&mut g);
    let adam = Adam::new(&mut g, 0.0, &net.parameters());
    let schedule = Schedule::cosine(0.01, 1e-4, STEPS as u32).after_warmup(10);
    let states = training_loop(&mut g, |g, step| {
        let first = g.feed("first", [BATCH, 2]);
        let observed = g.feed("observed", [POINTS, BATCH, 2]);
        let path = integrate(g, &|g, state| net.apply(g, state, Mode::Training), first);
        let loss = mean_squared_error(g, path, observed);
        let gradients = g.backward(loss);
        let rate = schedule.rate(g, step);
        adam.step_at(g, rate, &gradients);
        loss
    });
    let program = compile(&g)?;
    println!("{}", program.report());
    let trainer = Trainer::new(program, states).in_folder(folder)?;
    let mut trainer = trainer.with_checkpoint_every(200);
    trainer.feeder("first", |step| {
        let rows = (0..BATCH).flat_map(|row| start(step, row));
        rows.map(|number| number as f32).collect()
    })?;
    trainer.feeder("observed", |step| {
        let mut now: Vec<[f64; 2]> = (0..BATCH).map(|row| start(step, row)).collect();
        let mut path = Vec::new();
        for _ in 0..POINTS {
            now.iter_mut().for_each(|state| *state = moved(*state));
            path.extend(now.iter().flatten().map(|&number| number as f32));
        }
        path
    })?;
    let loss = trainer.train(STEPS)?;
    println!(
        "loss {loss:.2e}; curve in {}",
        folder.join("curve.svg").display()
    );
    let file = folder.join("law.safetensors");
    save(&file, &net, trainer.program())?;
    compare(&file)
}

/// Prints the law that was learnt, at some states, beside the true one.
fn compare(file: &Path) -> Result<(), Box<dyn Error>> {
    const ANGLES: [f64; 5] = [-1.5, -0.75, 0.0, 0.75, 1.5];
    let mut g = Graph::new();
    let net = network(&mut g);
    let states: Vec<f64> = ANGLES.iter().flat_map(|&angle| [angle, 0.5]).collect();
    let ty = TensorType::new(ferrozyme_graph::Scalar::F32, [ANGLES.len(), 2]);
    let states = g.constant(ty, states);
    let slopes = net.evaluate(&mut g, states);
    g.receive("slopes", &[slopes]);
    let mut program = compile(&g)?;
    load(file, &net, &mut program)?;
    program.receiver("slopes", |tensors| {
        println!("angle   acceleration   learnt");
        for (row, angle) in ANGLES.into_iter().enumerate() {
            let (truth, learnt) = (law()([angle, 0.5])[1], tensors[0].at(&[row, 1]));
            println!("{angle:5.2}   {truth:12.4}   {learnt:6.4}");
        }
    });
    Ok(program.run()?)
}
