//! Learns the drag of balls from where they land: a Rust loop in the middle of a tensor graph.
//!
//! ```text
//! cargo fz run --release -p ferrozyme-example-flight
//! ```
//!
//! A network gives the drag of a ball from its radius and mass. What that does to its flight is known, and is an ordinary Rust function: a loop that ends when the ball hits the ground. Ferrozyme differentiates it, and the graph
//! differentiates the network before it and the loss behind it. A `while` of the graph would have no derivative.
//!
//! Writes log, curve and checkpoint to `target/flight`, and prints the drag that was learnt beside the true one.

use ferrozyme::autodiff_reverse;
use ferrozyme_cpu::compile;
use ferrozyme_graph::{Graph, Scalar, Tensor, TensorType, UserFunction};
use ferrozyme_nn::loss::mean_squared_error;
use ferrozyme_nn::{Adam, Layer, Linear, Module, Schedule, Sequential, Tanh};
use ferrozyme_train::{Trainer, load, save, training_loop};
use std::error::Error;
use std::path::Path;

const BATCH: usize = 64;
const STEPS: u64 = 1500;
/// Seconds between two points of a flight.
const PACE: f32 = 0.02;
const GRAVITY: f32 = 9.81;

/// Where balls hit the ground, from their drag (per metre) and their velocities at the start, which are known.
#[autodiff_reverse(d_landing, Duplicated, Const, Duplicated)]
fn landing(drag: &[f32], start: &[f32], distance: &mut [f32]) {
    for (ball, distance) in distance.iter_mut().enumerate() {
        let (mut along, mut height) = (0.0, 0.0);
        let (mut forward, mut up) = (start[2 * ball], start[2 * ball + 1]);
        loop {
            let slowed = PACE * drag[ball] * (forward * forward + up * up).sqrt();
            forward -= slowed * forward;
            up -= slowed * up + PACE * GRAVITY;
            if height + PACE * up < 0.0 {
                // The rest of the way, to the ground.
                along += forward * height / -up;
                break;
            }
            along += PACE * forward;
            height += PACE * up;
        }
        *distance = along;
    }
}

fn flight() -> UserFunction {
    UserFunction::new("landing", landing).with_derivative(d_landing)
}

fn network(g: &mut Graph) -> Sequential {
    Sequential::new((
        Linear::new(g, "first", 2, 24),
        Tanh,
        Linear::new(g, "second", 24, 24),
        Tanh,
        Linear::new(g, "last", 24, 1),
    ))
}

/// The drag of balls: the network gives its logarithm.
fn drag(g: &mut Graph, net: &Sequential, balls: Tensor) -> Tensor {
    let logarithm = net.forward(g, balls);
    let logarithm = g.shift(logarithm, -4.0);
    let drag = g.exp(logarithm);
    let count = g.ty(balls).shape[0];
    g.reshape(drag, [count])
}

/// The drag per metre of a ball in air, from its radius in centimetres and its mass in grams.
fn true_drag([radius, mass]: [f32; 2]) -> f32 {
    let area = std::f32::consts::PI * (radius / 100.0).powi(2);
    0.5 * 1.2 * 0.47 * area / (mass / 1000.0)
}

/// Numbers in [0, 1) that are made of others.
fn random(step: u64, ball: usize, which: u64) -> f32 {
    let mut bits = (step * BATCH as u64 + ball as u64) * 8 + which + 1;
    for factor in [0xbf58_476d_1ce4_e5b9u64, 0x94d0_49bb_1331_11eb] {
        bits = (bits ^ bits >> 30).wrapping_mul(factor);
    }
    (bits >> 40) as f32 / (1u64 << 24) as f32
}

/// Radius and mass of a ball: from those for table tennis to those for football.
fn ball(step: u64, number: usize) -> [f32; 2] {
    let radius = 2.0 + 9.0 * random(step, number, 0);
    let density = 0.15 + 0.7 * random(step, number, 1);
    [radius, density * 4.19 * radius.powi(3)]
}

/// The velocity of a ball when it is thrown.
fn start(step: u64, number: usize) -> [f32; 2] {
    let forward = 5.0 + 15.0 * random(step, number, 2);
    [forward, 5.0 + 15.0 * random(step, number, 3)]
}

/// What the network gets of a ball: logarithms, about as large as 1.
fn features([radius, mass]: [f32; 2]) -> [f32; 2] {
    [radius.ln() - 1.7, 0.5 * (mass.ln() - 5.5)]
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new("target/flight");
    let mut g = Graph::new();
    let net = network(&mut g);
    let adam = Adam::new(&mut g, 0.0, &net.parameters());
    let schedule = Schedule::cosine(0.01, 1e-5, STEPS as u32).after_warmup(20);
    let landing = flight();
    let states = training_loop(&mut g, |g, step| {
        let balls = g.feed("balls", [BATCH, 2]);
        let starts = g.feed("starts", [BATCH, 2]);
        let observed = g.feed("observed", [BATCH]);
        let drag = drag(g, &net, balls);
        let [distance] = g.call(&landing, &[drag, starts], [[BATCH]]);
        let loss = mean_squared_error(g, distance, observed);
        let gradients = g.backward(loss);
        let rate = schedule.rate(g, step);
        adam.step_at(g, rate, &gradients);
        loss
    });
    let program = compile(&g)?;
    println!("{}", program.report());
    let trainer = Trainer::new(program, states).in_folder(folder)?;
    let mut trainer = trainer.with_checkpoint_every(500);
    trainer.feeder("balls", |step| {
        let balls = (0..BATCH).flat_map(|number| features(ball(step, number)));
        balls.collect()
    })?;
    trainer.feeder("starts", |step| {
        let starts = (0..BATCH).flat_map(|number| start(step, number));
        starts.collect()
    })?;
    trainer.feeder("observed", |step| {
        let drags: Vec<f32> = (0..BATCH)
            .map(|number| true_drag(ball(step, number)))
            .collect();
        let starts: Vec<f32> = (0..BATCH).flat_map(|number| start(step, number)).collect();
        let mut distances = vec![0.0; BATCH];
        self::landing(&drags, &starts, &mut distances);
        distances
    })?;
    let loss = trainer.train(STEPS)?;
    println!(
        "distances are wrong by {:.2} m on average; curve in {}",
        loss.sqrt(),
        folder.join("curve.svg").display()
    );
    let file = folder.join("drag.safetensors");
    save(&file, &net, trainer.program())?;
    compare(&file)
}

/// Prints the drag that was learnt, of some balls, beside the true one.
fn compare(file: &Path) -> Result<(), Box<dyn Error>> {
    const BALLS: [(&str, [f32; 2]); 4] = [
        ("tennis", [3.3, 58.0]),
        ("cricket", [3.6, 160.0]),
        ("handball", [9.4, 450.0]),
        ("football", [11.0, 430.0]),
    ];
    let mut g = Graph::new();
    let net = network(&mut g);
    let balls = BALLS.iter().flat_map(|&(_, ball)| features(ball));
    let balls: Vec<f64> = balls.map(f64::from).collect();
    let balls = g.constant(TensorType::new(Scalar::F32, [BALLS.len(), 2]), balls);
    let drag = drag(&mut g, &net, balls);
    g.receive("drag", &[drag]);
    let mut program = compile(&g)?;
    load(file, &net, &mut program)?;
    program.receiver("drag", |tensors| {
        println!("ball        drag in 1/m   learnt");
        for ((name, ball), learnt) in BALLS.iter().zip(&*tensors[0].elements) {
            println!("{name:<11} {:11.5}   {learnt:6.5}", true_drag(*ball));
        }
    });
    Ok(program.run()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrozyme_graph::interpret::{Array, Machine};

    /// The distance of a ball whose drag a graph computes, and its derivative by the number that it is computed from.
    fn distance_and_slope(logarithm: f64) -> (f64, f64) {
        let mut g = Graph::new();
        let parameter = g.parameter("logarithm", [1], logarithm);
        let value = g.read(parameter);
        let drag = g.exp(value);
        let start = g.constant(TensorType::new(Scalar::F32, [1, 2]), vec![15.0, 12.0]);
        let [distance] = g.call(&flight(), &[drag, start], [[1]]);
        let scaled = g.scale(distance, 0.5);
        let gradients = g.backward(scaled);
        let slope = gradients.of_parameter(parameter).expect("it depends on it");
        g.receive("both", &[scaled, slope]);
        let mut machine = Machine::new(&g);
        machine.run().expect("it runs");
        let both = machine.received("both").expect("it was received");
        let values = [both[0].scalar(), both[1].scalar()];
        let mut program = compile(&g).expect("it compiles");
        program.receiver("both", move |tensors: Vec<Array>| {
            for (computed, expected) in tensors.iter().zip(values) {
                let error = (computed.scalar() - expected).abs();
                assert!(error <= 1e-5 * expected.abs(), "{computed} {expected}");
            }
        });
        program.run().expect("it runs compiled, too");
        (values[0], values[1])
    }

    #[test]
    fn the_gradient_goes_through_the_loop() {
        let (_, slope) = distance_and_slope(-4.0);
        let (above, _) = distance_and_slope(-3.95);
        let (below, _) = distance_and_slope(-4.05);
        let difference = (above - below) / 0.1;
        assert!(slope < -0.1, "drag shortens a flight: {slope}");
        assert!(
            (slope / difference - 1.0).abs() < 1e-2,
            "{slope} {difference}"
        );
    }
}
