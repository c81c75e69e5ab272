//! Products by iterators.

use super::tests;

/// As GPT-2's layers have it.
fn dot_in_lanes(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 16;
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let mut total = 0.0;
    for (&a, &b) in a.remainder().iter().zip(b.remainder()) {
        total += a * b;
    }
    let mut sums = [0.0; LANES];
    for (a, b) in a.zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    for sum in sums {
        total += sum;
    }
    total
}

// raised: 3
fn zip_map_sum(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        let row = &a[i * k..][..k];
        for j in 0..n {
            let column = &b[j * k..][..k];
            c[i * n + j] = row.iter().zip(column).map(|(a, b)| a * b).sum();
        }
    }
}

// raised: 3
fn rows_by_chunks(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let _ = m;
    for (row, out) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)) {
        for (column, c) in b.chunks_exact(k).zip(out) {
            *c = row.iter().zip(column).map(|(a, b)| a * b).sum();
        }
    }
}

// raised: 0
fn enumerated(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for (i, row) in a.chunks(k).take(m).enumerate() {
        for (j, column) in b.chunks(k).take(n).enumerate() {
            let mut sum = 0.0;
            for (l, a) in row.iter().enumerate() {
                sum += a * column[l];
            }
            c[i * n + j] = sum;
        }
    }
}

// loops: the loops may stop the program
fn folded(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            c[i * n + j] = (0..k).fold(0.0, |sum, l| sum + a[i * k + l] * b[l * n + j]);
        }
    }
}

// loops: the loops may stop the program
fn range_map_sum(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            c[i * n + j] = (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum::<f64>();
        }
    }
}

// raised: 3
fn axpy_by_iterators(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let _ = m;
    c.fill(0.0);
    for (out, row) in c.chunks_exact_mut(n).zip(a.chunks_exact(k)) {
        for (&factor, row) in row.iter().zip(b.chunks_exact(n)) {
            for (c, &b) in out.iter_mut().zip(row) {
                *c += factor * b;
            }
        }
    }
}

// raised: 0
fn iter_mut_over_the_result(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let _ = m;
    for (place, c) in c.iter_mut().enumerate() {
        let (i, j) = (place / n, place % n);
        *c = (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
    }
}

// raised: 0
fn column_by_step(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let column = b[j..].iter().step_by(n);
            c[i * n + j] = a[i * k..(i + 1) * k]
                .iter()
                .zip(column)
                .map(|(a, b)| a * b)
                .sum();
        }
    }
}

/// A dot product in sixteen lanes, with a remainder.
// raised: 3
fn lanes(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            c[i * n + j] = dot_in_lanes(&a[i * k..(i + 1) * k], &b[j * k..(j + 1) * k]);
        }
    }
}

/// The remainder comes last.
// raised: 6
fn lanes_of_four(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let (a, b) = (&a[i * k..][..k], &b[j * k..][..k]);
            let (a, b) = (a.chunks_exact(4), b.chunks_exact(4));
            let rest: f64 = a
                .remainder()
                .iter()
                .zip(b.remainder())
                .map(|(a, b)| a * b)
                .sum();
            let mut lanes = [0.0; 4];
            for (a, b) in a.zip(b) {
                for lane in 0..4 {
                    lanes[lane] += a[lane] * b[lane];
                }
            }
            c[i * n + j] = lanes.iter().sum::<f64>() + rest;
        }
    }
}

// raised: 3
fn outer_products_by_iterators(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let _ = k;
    c.fill(0.0);
    for (column, row) in a.chunks_exact(m).zip(b.chunks_exact(n)) {
        for (out, &factor) in c.chunks_exact_mut(n).zip(column) {
            for (c, &b) in out.iter_mut().zip(row) {
                *c += factor * b;
            }
        }
    }
}

// loops: the loops may stop the program
fn for_each(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    (0..m).for_each(|i| {
        (0..n).for_each(|j| {
            let mut sum = 0.0;
            (0..k).for_each(|l| sum += a[i * k + l] * b[l * n + j]);
            c[i * n + j] = sum;
        });
    });
}

tests! {
    zip_map_sum<f64>,
    rows_by_chunks<f64>,
    enumerated<f64>,
    folded<f64>,
    range_map_sum<f64>,
    axpy_by_iterators<f64>,
    iter_mut_over_the_result<f64>,
    column_by_step<f64>,
    lanes<f64>,
    lanes_of_four<f64>,
    outer_products_by_iterators<f64>,
    for_each<f64>,
}
