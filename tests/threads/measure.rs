//! How long parallel programs and their gradients take on one thread and on several: a row of a table for each, the best of some rounds in milliseconds.
//!
//! ```sh
//! cargo ferrozyme run --release --bin measure -- 1 2
//! ```

mod model;
mod programs;

use ferrozyme::grad;
use model::Shape;
use rayon::ThreadPoolBuilder;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 15;

fn main() {
    let arguments = std::env::args().skip(1);
    let threads: Vec<usize> = arguments
        .map(|text| text.parse().expect("a number of threads"))
        .collect();
    println!("| program | threads | function | gradient |\n|---|---|---|---|");
    macro_rules! measure {
        ($name:ident, $size:expr) => {{
            let x: Vec<f64> = (0..$size).map(|i| 0.8 + 0.5 * (i as f64).sin()).collect();
            for &threads in &threads {
                let function = quickest(threads, || drop(black_box(programs::$name(&x))));
                let gradient = quickest(threads, || drop(black_box(grad(programs::$name, &x[..]))));
                println!(
                    "| {} | {threads} | {function:.2} | {gradient:.2} |",
                    stringify!($name)
                );
            }
        }};
    }
    measure!(sum_of_squares, 4_000_000);
    measure!(log_sum_exp, 1_000_000);
    measure!(heat_by_turns, 1_000_000);
    measure!(blurred, 400_000);
    measure!(from_a_table, 1_000_000);
    measure!(gathered, 400_000);
    measure!(sparse_product, 1_000_000);
    measure!(energy_of_particles, 6_000);
    measure!(step_of_particles, 6_000);
    measure!(shared_weights, 1_600_016);
    measure!(softmax_of_rows, 1_000_000);
    measure!(paths, 100_000);
    measure!(layer, 64 * 64 + 64 * 2000);
    measure_model(&threads);
}

/// The transformer's block: forward, the gradient by hand, and the automatic one.
fn measure_model(threads: &[usize]) {
    let shape = Shape {
        sequences: 8,
        steps: 64,
        channels: 256,
        heads: 8,
        classes: 1024,
    };
    let parameters: Vec<f32> = numbers(shape.parameters(), 0.05);
    let x = numbers(shape.tokens() * shape.channels, 1.0);
    let targets: Vec<usize> = (0..shape.tokens())
        .map(|t| t * 37 % shape.classes)
        .collect();
    let mut hand = vec![0.0; parameters.len()];
    let mut automatic = hand.clone();
    let one = model::by_hand(&shape, &parameters, &x, &targets, &mut hand);
    let other = model::automatic(&shape, &parameters, &x, &targets, &mut automatic);
    assert!((one - other).abs() < 1e-4, "losses: {one} and {other}");
    let largest = hand.iter().fold(0.0f32, |largest, g| largest.max(g.abs()));
    for (hand, automatic) in hand.iter().zip(&automatic) {
        assert!(
            (hand - automatic).abs() < 1e-4 * largest,
            "{hand} and {automatic}"
        );
    }
    println!(
        "\n| transformer block | threads | forward | by hand | automatic | ratio |\n|---|---|---|---|---|---|"
    );
    for &threads in threads {
        let forward = quickest(threads, || {
            drop(black_box(model::loss(&shape, &parameters, &x, &targets)))
        });
        let by_hand = quickest(threads, || {
            drop(black_box(model::by_hand(
                &shape,
                &parameters,
                &x,
                &targets,
                &mut hand,
            )))
        });
        let automatic = quickest(threads, || {
            drop(black_box(model::automatic(
                &shape,
                &parameters,
                &x,
                &targets,
                &mut automatic,
            )))
        });
        println!(
            "| | {threads} | {forward:.2} | {by_hand:.2} | {automatic:.2} | {:.2} |",
            automatic / by_hand
        );
    }
}

fn numbers(count: usize, size: f32) -> Vec<f32> {
    (0..count)
        .map(|i| size * ((i as f32) * 0.618).sin())
        .collect()
}

/// The milliseconds of the quickest of some rounds.
fn quickest(threads: usize, mut work: impl FnMut() + Send) -> f64 {
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("a pool can be made");
    pool.install(|| {
        let mut quickest = f64::INFINITY;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            work();
            quickest = quickest.min(start.elapsed().as_secs_f64());
        }
        quickest * 1e3
    })
}
