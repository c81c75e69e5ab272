//! A matrix product in plain loops, with and without `#[accelerate]`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ferrozyme::accelerate;

const SIZE: usize = 384;

fn product(a: &[f32], b: &[f32], c: &mut [f32]) {
    for i in 0..SIZE {
        for j in 0..SIZE {
            let mut sum = 0.0;
            for k in 0..SIZE {
                sum += a[i * SIZE + k] * b[k * SIZE + j];
            }
            c[i * SIZE + j] = sum;
        }
    }
}

#[accelerate]
fn accelerated_product(a: &[f32], b: &[f32], c: &mut [f32]) {
    product(a, b, c);
}

/// The shortest of several runs.
fn time(mut run: impl FnMut()) -> Duration {
    let once = |_| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..5).map(once).min().unwrap_or_default()
}

fn main() {
    let a: Vec<f32> = (0..SIZE * SIZE).map(|i| (i as f32).sin()).collect();
    let b: Vec<f32> = (0..SIZE * SIZE).map(|i| (i as f32).cos()).collect();
    let (mut c, mut d) = (vec![0.0; SIZE * SIZE], vec![0.0; SIZE * SIZE]);
    let plain = time(|| product(black_box(&a), black_box(&b), black_box(&mut c)));
    let fast = time(|| accelerated_product(black_box(&a), black_box(&b), black_box(&mut d)));
    let difference = c.iter().zip(&d).map(|(c, d)| (c - d).abs());
    println!("plain {plain:?}, accelerated {fast:?}");
    println!("largest difference {:e}", difference.fold(0.0, f32::max));
}
