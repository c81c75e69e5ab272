//! Values and gradients of a nest against finite differences.

/// A nest in the form that most have here: reads `a` and `b`, writes `c`, with three trip counts.
pub type Nest<T> = fn(&[T], &[T], &mut [T], usize, usize, usize);

/// Its derivative in reverse mode.
pub type Gradient<T> = fn(&[T], &mut [T], &[T], &mut [T], &mut [T], &mut [T], usize, usize, usize);

/// The number type of a nest.
pub trait Real: Copy + Default {
    /// How far derivatives may be from finite differences, which are taken with this step, relative to the largest number involved.
    const TOLERANCE: f64;
    /// The step.
    const STEP: f64;
    /// The nearest number.
    fn of(value: f64) -> Self;
    /// The number itself.
    fn get(self) -> f64;
}

impl Real for f64 {
    const TOLERANCE: f64 = 1e-8;
    const STEP: f64 = 2e-5;
    fn of(value: f64) -> f64 {
        value
    }
    fn get(self) -> f64 {
        self
    }
}

impl Real for f32 {
    const TOLERANCE: f64 = 2e-4;
    const STEP: f64 = 0.25;
    fn of(value: f64) -> f32 {
        value as f32
    }
    fn get(self) -> f64 {
        f64::from(self)
    }
}

/// The trip counts that nests are tested with: for kernels, with a side that is too short for them, and small ones for the loops as they were.
pub const SIZES: [[usize; 3]; 5] = [[12, 9, 10], [8, 40, 17], [20, 7, 9], [3, 2, 4], [1, 1, 1]];

/// Checks a nest at all [`SIZES`], with arrays of these lengths.
#[track_caller]
pub fn check<T: Real>(
    nest: Nest<T>,
    gradient: Gradient<T>,
    lengths: fn(usize, usize, usize) -> [usize; 3],
) {
    for [m, k, n] in SIZES {
        check_at(
            lengths(m, k, n),
            |a, b, c| nest(a, b, c, m, k, n),
            |a, da, b, db, c, dc| gradient(a, da, b, db, c, dc, m, k, n),
        );
    }
}

/// Checks any function of two inputs and one output, which may be an input, too.
///
/// The gradient of ⟨c, u⟩ for a random `u` is compared with differences of fourth order along random directions, which see every entry.
#[track_caller]
pub fn check_at<T: Real>(
    lengths: [usize; 3],
    nest: impl Fn(&[T], &[T], &mut [T]),
    gradient: impl Fn(&[T], &mut [T], &[T], &mut [T], &mut [T], &mut [T]),
) {
    let mut random = Random(17 + lengths.iter().sum::<usize>() as u64);
    let mut vectors = || lengths.map(|length| random.vector(length));
    let (at, shadows, seed) = (vectors(), vectors(), vectors());
    let seed = &seed[2];

    let value = |[a, b, c]: &[Vec<f64>; 3]| {
        let (a, b, mut c) = (convert::<T>(a), convert::<T>(b), convert::<T>(c));
        nest(&a, &b, &mut c);
        c.into_iter().map(T::get).collect::<Vec<f64>>()
    };
    let expected = value(&at);
    let [a, b, mut c] = at.each_ref().map(|vector| convert::<T>(vector));
    let [mut da, mut db, _] = shadows.each_ref().map(|vector| convert::<T>(vector));
    let mut dc = convert::<T>(seed);
    gradient(&a, &mut da, &b, &mut db, &mut c, &mut dc);
    for (place, (found, expected)) in c.iter().zip(&expected).enumerate() {
        assert_near::<T>(&format!("value {place}"), found.get(), *expected, 1.0);
    }

    // Gradients are added to what is in shadows; that of an output takes the place of its seed.
    let added = |found: &[T], before: &[f64]| -> Vec<f64> {
        let found = found.iter().zip(before);
        found.map(|(found, before)| found.get() - before).collect()
    };
    let gradients = [
        added(&da, &shadows[0]),
        added(&db, &shadows[1]),
        dc.iter().map(|number| number.get()).collect(),
    ];
    for direction in 0..3 {
        let directions = lengths.map(|length| random.vector(length));
        let moved = |step: f64| {
            let mut moved = at.clone();
            for (moved, direction) in moved.iter_mut().zip(&directions) {
                for (number, direction) in moved.iter_mut().zip(direction) {
                    *number += step * direction;
                }
            }
            dot(&value(&moved), seed)
        };
        let central = |step: f64| (moved(step) - moved(-step)) / (2.0 * step);
        let difference = (4.0 * central(T::STEP / 2.0) - central(T::STEP)) / 3.0;
        let mut along = 0.0;
        let mut scale = 1.0;
        for (gradient, direction) in gradients.iter().zip(&directions) {
            along += dot(gradient, direction);
            scale += gradient.iter().map(|number| number.abs()).sum::<f64>();
        }
        let what = format!("{lengths:?}: gradient along direction {direction}");
        assert_near::<T>(&what, along, difference, scale);
    }
}

fn convert<T: Real>(numbers: &[f64]) -> Vec<T> {
    numbers.iter().copied().map(T::of).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[track_caller]
fn assert_near<T: Real>(what: &str, found: f64, expected: f64, scale: f64) {
    let allowed = T::TOLERANCE * scale.max(expected.abs());
    assert!(
        (found - expected).abs() <= allowed,
        "{what}: {found}, expected {expected}"
    );
}

/// Random numbers between -1 and 1 (SplitMix64), the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn vector(&mut self, length: usize) -> Vec<f64> {
        let number = |_| (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        (0..length).map(number).collect()
    }
}
