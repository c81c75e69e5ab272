//! Parallel iterators of the crate `rayon`: what is written with them has the derivative of the loops that they stand for.

use ferrozyme::{autodiff_forward, autodiff_reverse, grad, jvp};
use ferrozyme_programs::{Field, Mapping, assert_all_close};
use rayon::prelude::*;

const POINT: [f64; 6] = [0.31, 0.77, -0.4, 1.2, 0.05, -1.3];

/// A function of a vector in both modes, also in a pool that has several threads.
fn check(
    name: &str,
    f: fn(&[f64]) -> f64,
    reverse: fn(&[f64]) -> Vec<f64>,
    forward: fn(&[f64], &[f64]) -> (f64, f64),
) {
    Field::new(name, f)
        .reverse(|x, dx, seed| {
            for (to, derivative) in dx.iter_mut().zip(reverse(x)) {
                *to += seed * derivative;
            }
            f(x)
        })
        .forward(|x, v| forward(x, v))
        .check(&POINT);
    let expected = reverse(&POINT);
    for threads in [1, 2, 3, 8] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.expect("a pool can be made");
        let found = pool.install(|| reverse(&POINT));
        assert_all_close(name, &found, &expected, 1e-14);
    }
}

macro_rules! in_all_modes {
    ($f:ident) => {
        #[test]
        fn $f() {
            check(
                stringify!($f),
                programs::$f,
                |x| grad(programs::$f, x),
                |x, v| jvp(programs::$f, x, v),
            );
        }
    };
}

mod programs {
    use rayon::prelude::*;

    pub(crate) fn sum_of_squares(x: &[f64]) -> f64 {
        x.par_iter().map(|x| x * x).sum()
    }

    pub(crate) fn dot_product(x: &[f64]) -> f64 {
        let (left, right) = x.split_at(x.len() / 2);
        left.par_iter().zip(right).map(|(a, b)| a * b.sin()).sum()
    }

    pub(crate) fn product(x: &[f64]) -> f64 {
        x.par_iter().map(|x| 1.0 + x * x).product()
    }

    pub(crate) fn reduction(x: &[f64]) -> f64 {
        let add = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
        let (sum, squares) = x.par_iter().map(|&x| (x, x * x)).reduce(|| (0.0, 0.0), add);
        sum.sin() * squares
    }

    pub(crate) fn sums_of_chunks(x: &[f64]) -> f64 {
        let sums = x.par_chunks(2).map(|pair| pair.iter().product::<f64>());
        sums.map(f64::sin).sum()
    }

    pub(crate) fn elements_in_place(x: &[f64]) -> f64 {
        let mut y = x.to_vec();
        y.par_iter_mut()
            .enumerate()
            .for_each(|(i, y)| *y = y.exp() * (i + 1) as f64);
        y.par_iter().map(|y| y.sqrt()).sum()
    }

    pub(crate) fn rows_in_place(x: &[f64]) -> f64 {
        let n = x.len();
        let mut table = vec![0.0; n * n];
        table.par_chunks_mut(n).zip(x).for_each(|(row, x_i)| {
            for (place, x_j) in row.iter_mut().zip(x) {
                *place = (x_i - x_j).powi(2);
            }
        });
        table.par_iter().map(|square| (-square).exp()).sum()
    }

    pub(crate) fn collected(x: &[f64]) -> f64 {
        let sines: Vec<f64> = x.par_iter().map(|x| x.sin()).collect();
        sines.windows(2).map(|pair| pair[0] * pair[1]).sum()
    }

    pub(crate) fn over_a_range(x: &[f64]) -> f64 {
        (0..x.len())
            .into_par_iter()
            .map(|i| x[i] * x[(i + 1) % x.len()])
            .sum()
    }

    pub(crate) fn filtered(x: &[f64]) -> f64 {
        x.par_iter().filter(|x| **x > 0.0).map(|x| x.ln()).sum()
    }

    pub(crate) fn folded(x: &[f64]) -> f64 {
        let sums = x.par_iter().fold(|| 0.0, |sum, x| sum + x * x);
        sums.reduce(|| 0.0, |a, b| a + b).sqrt()
    }

    pub(crate) fn nested(x: &[f64]) -> f64 {
        let of_all = |a: &f64| x.par_iter().map(|b| (a * b).cos()).sum::<f64>();
        x.par_iter().map(of_all).sum()
    }

    pub(crate) fn chunks_by_the_number_of_threads(x: &[f64]) -> f64 {
        let length = x.len().div_ceil(rayon::current_num_threads());
        x.par_chunks(length)
            .map(|part| part.iter().map(|x| x * x * x).sum::<f64>())
            .sum()
    }
}

in_all_modes!(sum_of_squares);
in_all_modes!(dot_product);
in_all_modes!(product);
in_all_modes!(reduction);
in_all_modes!(sums_of_chunks);
in_all_modes!(elements_in_place);
in_all_modes!(rows_in_place);
in_all_modes!(collected);
in_all_modes!(over_a_range);
in_all_modes!(filtered);
in_all_modes!(folded);
in_all_modes!(nested);
in_all_modes!(chunks_by_the_number_of_threads);

/// `y = A·x`, a row for each item.
#[autodiff_reverse(d_apply, Duplicated, Duplicated, Duplicated)]
#[autodiff_forward(t_apply, Dual, Dual, Dual)]
fn apply(a: &[f64], x: &[f64], y: &mut [f64]) {
    y.par_iter_mut()
        .zip(a.par_chunks(x.len()))
        .for_each(|(y, row)| {
            *y = row.iter().zip(x).map(|(a, x)| a * x).sum();
        });
}

#[test]
fn results_behind_a_reference() {
    let matrix = [0.5, -1.0, 2.0, 0.25, 3.0, -0.75];
    let f = |x: &[f64], y: &mut [f64]| apply(&matrix, x, y);
    Mapping::new("matrix times vector", 2, f)
        .reverse(|x, dx, y, dy| d_apply(&matrix, &mut [0.0; 6], x, dx, y, dy))
        .forward(|x, v, y, dy| t_apply(&matrix, &[0.0; 6], x, v, y, dy))
        .check(&[0.3, 0.7, -0.4]);
}
