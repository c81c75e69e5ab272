//! What every derivative of a parallel program must have: it is right, it is the same for any number of threads up to rounding, and it has the same bits at every run with as many.

use rayon::{ThreadPool, ThreadPoolBuilder};

/// A program, and its derivatives.
pub struct Program {
    pub name: &'static str,
    pub function: fn(&[f64]) -> f64,
    pub gradient: fn(&[f64]) -> Vec<f64>,
    pub tangent: fn(&[f64], &[f64]) -> (f64, f64),
    /// How many numbers it takes.
    pub size: usize,
    /// Whether runs on as many threads give the same bits: nothing is added to atomically.
    pub exact: bool,
}

impl Program {
    pub fn check(&self) {
        let x = numbers(self.size, 1)
            .map(|x| 0.8 + 0.5 * x)
            .collect::<Vec<f64>>();
        let expected = pool(1).install(|| (self.gradient)(&x));
        for seed in 2..5 {
            self.check_along(
                &x,
                &numbers(self.size, seed).collect::<Vec<f64>>(),
                &expected,
            );
        }
        // One number at a time: whether it is the right one that has the derivative.
        for place in [0, 1, self.size / 3, self.size / 2, self.size - 1] {
            let mut direction = vec![0.0; self.size];
            direction[place] = 1.0;
            self.check_along(&x, &direction, &expected);
        }
        for threads in [1, 2, 3, 8] {
            let pool = pool(threads);
            let first = pool.install(|| (self.gradient)(&x));
            for (place, (got, want)) in first.iter().zip(&expected).enumerate() {
                assert!(
                    (got - want).abs() <= 1e-9 * want.abs().max(1.0),
                    "{} on {threads} threads: [{place}] is {got}, on one thread {want}",
                    self.name
                );
            }
            for run in 1..runs() {
                let again = pool.install(|| (self.gradient)(&x));
                let same = |(a, b): (&f64, &f64)| match self.exact {
                    true => a.to_bits() == b.to_bits(),
                    false => (a - b).abs() <= 1e-9 * a.abs().max(1.0),
                };
                let mut pairs = first.iter().zip(&again);
                if let Some((first, again)) = pairs.find(|pair| !same(*pair)) {
                    panic!(
                        "{} on {threads} threads: {again} in run {run}, {first} in the first",
                        self.name
                    );
                }
            }
        }
    }

    /// Both modes against differences along a direction, on several threads.
    fn check_along(&self, x: &[f64], direction: &[f64], gradient: &[f64]) {
        let pool = pool(3);
        let at = |h: f64| {
            let moved: Vec<f64> = x.iter().zip(direction).map(|(x, v)| x + h * v).collect();
            pool.install(|| (self.function)(&moved))
        };
        let central = |h: f64| (at(h) - at(-h)) / (2.0 * h);
        let by_differences = (4.0 * central(5e-5) - central(1e-4)) / 3.0;
        let reverse: f64 = gradient.iter().zip(direction).map(|(g, v)| g * v).sum();
        let (value, forward) = pool.install(|| (self.tangent)(x, direction));
        let size: f64 = gradient
            .iter()
            .zip(direction)
            .map(|(g, v)| (g * v).abs())
            .sum();
        let close = |got: f64, want: f64, error: f64| (got - want).abs() <= error * size.max(1.0);
        let name = self.name;
        let expected = at(0.0);
        assert!(
            (value - expected).abs() <= 1e-10 * expected.abs().max(1.0),
            "{name}: forward mode returns {value}, the function {expected}"
        );
        assert!(
            close(reverse, forward, 1e-10),
            "{name}: reverse mode gives {reverse}, forward mode {forward}"
        );
        let rounding = 1e-11 * expected.abs() / size.max(1.0);
        assert!(
            close(reverse, by_differences, 1e-6 + rounding),
            "{name}: reverse mode gives {reverse}, differences {by_differences}"
        );
    }
}

/// How often a derivative runs with each number of threads.
fn runs() -> usize {
    let runs = std::env::var("FERROZYME_RUNS").ok();
    runs.and_then(|runs| runs.parse().ok()).unwrap_or(3)
}

fn pool(threads: usize) -> ThreadPool {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("a pool can be made")
}

/// Numbers in -1..1 that are the same in every run.
fn numbers(count: usize, seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    (0..count).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    })
}
