//! The kernels as machine code, at every level that this processor has, against a plain sum in double precision.

#![allow(unsafe_code, reason = "kernels are given addresses")]

use ferrozyme_contractions::contestants::{Contestant, Multiplied};
use ferrozyme_contractions::native::View;
use ferrozyme_contractions::openmp::OpenMp;
use ferrozyme_export::Team;

/// Values without a pattern.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit
    }

    fn float(&mut self) -> f64 {
        self.next() as f64 / u64::MAX as f64 - 0.5
    }
}

/// A matrix with space around its elements, in one of several layouts.
struct Matrix<T> {
    values: Vec<T>,
    origin: usize,
    strides: [isize; 2],
}

/// What lies around elements, which nothing may change.
const UNTOUCHED: f64 = 77.0;

impl<T: Multiplied> Matrix<T> {
    fn new([rows, columns]: [usize; 2], random: &mut Random) -> Matrix<T> {
        let (gap, step) = (random.below(3) * 5, 1 + random.below(5) / 4);
        let by_rows = [(columns * step + gap) as isize, step as isize];
        let by_columns = [step as isize, (rows * step + gap) as isize];
        let mut strides = if random.below(2) == 0 {
            by_rows
        } else {
            by_columns
        };
        let mut origin = 8;
        let extents = [rows, columns];
        for index in 0..2 {
            if random.below(6) == 0 {
                origin += strides[index].unsigned_abs() * extents[index].saturating_sub(1);
                strides[index] = -strides[index];
            }
        }
        let reach = |index: usize| {
            let extent: usize = extents[index];
            strides[index].unsigned_abs() * extent.saturating_sub(1)
        };
        let count = 24 + reach(0) + reach(1);
        let mut matrix = Matrix {
            values: vec![T::from_f64(UNTOUCHED); count],
            origin,
            strides,
        };
        for row in 0..rows {
            for column in 0..columns {
                let at = matrix.at(row, column);
                matrix.values[at] = T::from_f64(random.float());
            }
        }
        matrix
    }

    fn at(&self, row: usize, column: usize) -> usize {
        let distance = row as isize * self.strides[0] + column as isize * self.strides[1];
        self.origin.wrapping_add_signed(distance)
    }

    fn view(&mut self) -> View<T> {
        View {
            data: self.values[self.origin..].as_mut_ptr(),
            strides: self.strides,
        }
    }
}

fn check<T: Multiplied>(contestant: &Contestant<T>, sizes: [usize; 3], random: &mut Random) {
    let [m, n, k] = sizes;
    let mut c = Matrix::<T>::new([m, n], random);
    let mut a = Matrix::<T>::new([m, k], random);
    let mut b = Matrix::<T>::new([k, n], random);
    let alpha = T::from_f64(if random.below(2) == 0 {
        1.0
    } else {
        random.float()
    });
    let add = random.below(2) == 0;
    let before = c.values.clone();
    let views = [c.view(), a.view(), b.view()];
    // SAFETY: the views are of matrices of these sizes.
    unsafe { contestant.run(views, sizes, alpha, add) };
    let mut expected: Vec<f64> = before.iter().map(|value| value.to_f64()).collect();
    let mut sums = vec![0.0; n];
    for i in 0..m {
        sums.fill(0.0);
        for l in 0..k {
            let x = a.values[a.at(i, l)].to_f64();
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum += x * b.values[b.at(l, j)].to_f64();
            }
        }
        for (j, sum) in sums.iter().enumerate() {
            let place = &mut expected[c.at(i, j)];
            *place = if add { *place } else { 0.0 } + alpha.to_f64() * sum;
        }
    }
    // Sums of k terms of at most 1/4, in any order.
    let epsilon = if size_of::<T>() == 4 {
        f64::from(f32::EPSILON)
    } else {
        f64::EPSILON
    };
    let tolerance = epsilon * (1.0 + k as f64) * 0.25 + epsilon;
    for (index, (found, expected)) in c.values.iter().zip(&expected).enumerate() {
        let error = (found.to_f64() - expected).abs();
        assert!(
            error <= tolerance,
            "{} {sizes:?}, strides {:?} {:?} {:?}, add {add}: element {index} is {} and not {expected}",
            contestant.name,
            c.strides,
            a.strides,
            b.strides,
            found.to_f64()
        );
    }
}

fn check_all<T: Multiplied>() {
    for level in [0, 3, 4] {
        let contestant =
            Contestant::<T>::kernels(Some(level), Team::Caller).expect("LLVM compiles the kernels");
        let mut random = Random(0x9e37_79b9_7f4a_7c15 + u64::from(level));
        for _ in 0..1500 {
            let sizes = [60, 120, 60].map(|limit| random.below(limit));
            check(&contestant, sizes, &mut random);
        }
        for _ in 0..30 {
            let sizes = [400, 500, 700].map(|limit| random.below(limit));
            check(&contestant, sizes, &mut random);
        }
        for sizes in [
            [1, 3000, 3000],
            [3000, 2, 1000],
            [7, 5, 20000],
            [700, 2600, 300],
            [1, 1, 100_000],
            [2000, 900, 3],
        ] {
            check(&contestant, sizes, &mut random);
        }
    }
}

/// Products that are worth several threads have the same bits with any number of them, in all layouts and at all levels.
fn check_threads<T: Multiplied>(openmp: &OpenMp) {
    for level in [0, 3, 4] {
        let compiled = Contestant::<T>::kernels(Some(level), Team::OpenMp);
        let contestant = compiled.expect("LLVM compiles the kernels");
        let mut random = Random(0x2545_f491_4f6c_dd1d + u64::from(level));
        let fixed = [[300, 301, 302], [3, 4000, 900], [5000, 2, 900]];
        let others = (0..20).map(|_| [400, 500, 700].map(|limit| random.below(limit)));
        for sizes in fixed.into_iter().chain(others.collect::<Vec<_>>()) {
            let [m, n, k] = sizes;
            let mut c = Matrix::<T>::new([m, n], &mut random);
            let mut a = Matrix::<T>::new([m, k], &mut random);
            let mut b = Matrix::<T>::new([k, n], &mut random);
            let (alpha, add) = (T::from_f64(random.float()), random.below(2) == 0);
            let before = c.values.clone();
            let mut expected: Option<Vec<T>> = None;
            for threads in [1, 2, 3, 8] {
                openmp.set_threads(threads);
                c.values.copy_from_slice(&before);
                let views = [c.view(), a.view(), b.view()];
                // SAFETY: the views are of matrices of these sizes.
                unsafe { contestant.run(views, sizes, alpha, add) };
                let expected = expected.get_or_insert_with(|| c.values.clone());
                assert!(c.values == *expected, "{sizes:?} with {threads} threads");
            }
            openmp.set_threads(3);
            check(&contestant, sizes, &mut random);
        }
    }
}

#[test]
fn threads_change_nothing() {
    match OpenMp::load() {
        Ok(openmp) => {
            check_threads::<f32>(&openmp);
            check_threads::<f64>(&openmp);
        }
        Err(error) => println!("skipped: {error:#}"),
    }
}

#[test]
fn single_precision() {
    check_all::<f32>();
}

#[test]
fn double_precision() {
    check_all::<f64>();
}
