//! Parallel programs as people write them with rayon. The comment above each says what `explain` says of the loops of its gradient, in their order.

use rayon::prelude::*;

// threads: several
pub fn sum_of_squares(x: &[f64]) -> f64 {
    x.par_iter().map(|x| x * x).sum()
}

// threads: several
pub fn dot_product(x: &[f64]) -> f64 {
    let (left, right) = x.split_at(x.len() / 2);
    left.par_iter().zip(right).map(|(a, b)| a * b.sin()).sum()
}

/// `log(sum(exp(x)))`, by the largest.
// threads: one; several; several; one
pub fn log_sum_exp(x: &[f64]) -> f64 {
    let largest = x.par_iter().copied().reduce(|| f64::NEG_INFINITY, f64::max);
    let sum: f64 = x.par_iter().map(|x| (x - largest).exp()).sum();
    largest + sum.ln()
}

/// The mean and the variance in one reduction of pairs.
// threads: several; several
pub fn two_sums(x: &[f64]) -> f64 {
    let n = x.len() as f64;
    let add = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
    let (sum, squares) = x.par_iter().map(|&x| (x, x * x)).reduce(|| (0.0, 0.0), add);
    squares / n - (sum / n).powi(2)
}

/// Steps of the heat equation between two buffers that change their places.
// threads: several; several, neighbours
pub fn heat_by_turns(x: &[f64]) -> f64 {
    let n = x.len();
    let (mut now, mut next) = (x.to_vec(), x.to_vec());
    for _ in 0..4 {
        let old = &now;
        next[1..n - 1]
            .par_iter_mut()
            .enumerate()
            .for_each(|(i, to)| {
                *to = old[i + 1] + 0.2 * (old[i] - 2.0 * old[i + 1] + old[i + 2]);
            });
        std::mem::swap(&mut now, &mut next);
    }
    now.par_iter().map(|t| t * t * t).sum()
}

/// A stencil of nine points on a torus, a row for each item.
// threads: several; several; several, copies
pub fn blurred(x: &[f64]) -> f64 {
    const WIDTH: usize = 100;
    let height = x.len() / WIDTH;
    let mut out = vec![0.0; x.len()];
    out.par_chunks_mut(WIDTH)
        .enumerate()
        .for_each(|(row, out)| {
            for (column, out) in out.iter_mut().enumerate() {
                let mut sum = 0.0;
                for y in [row + height - 1, row, row + 1] {
                    for z in [column + WIDTH - 1, column, column + 1] {
                        sum += x[y % height * WIDTH + z % WIDTH];
                    }
                }
                *out = (sum / 9.0).sin();
            }
        });
    out.par_iter().map(|y| y * y).sum()
}

/// A moving average by windows.
// threads: several, neighbours
pub fn windows(x: &[f64]) -> f64 {
    x.par_windows(3)
        .map(|w| (w[0] + 2.0 * w[1] - w[2]).cos() * w[1])
        .sum()
}

fn bin_of(i: usize) -> usize {
    (i * 37 + i / 11) % 64
}

/// Sums of bins, a table for each part of the items.
// threads: several, copies; several; several; several
pub fn histogram(x: &[f64]) -> f64 {
    let add = |mut a: Vec<f64>, b: Vec<f64>| {
        for (a, b) in a.iter_mut().zip(b) {
            *a += b;
        }
        a
    };
    let count = |mut bins: Vec<f64>, (i, x): (usize, &f64)| {
        bins[bin_of(i)] += x * x;
        bins
    };
    let bins = x
        .par_iter()
        .enumerate()
        .fold(|| vec![0.0; 64], count)
        .reduce(|| vec![0.0; 64], add);
    bins.iter()
        .enumerate()
        .map(|(i, b)| (i + 1) as f64 * b.ln())
        .sum()
}

/// Elements of a small table, chosen by an index: the table's shadow is what all add to.
// threads: several, atomic
pub fn from_a_table(x: &[f64]) -> f64 {
    let (table, rest) = x.split_at(64);
    rest.par_iter()
        .enumerate()
        .map(|(i, x)| x.sin() * table[bin_of(i)])
        .sum()
}

/// A permutation.
// threads: several; several; several, copies
pub fn gathered(x: &[f64]) -> f64 {
    let n = x.len();
    let mut out = vec![0.0; n];
    out.par_iter_mut().enumerate().for_each(|(i, out)| {
        *out = x[i * 7919 % n].exp() * x[(i + 7) % n];
    });
    out.par_iter().sum()
}

/// A sparse matrix with some entries in each row, by rows, times a vector.
// threads: several; several; several, atomic
pub fn sparse_product(x: &[f64]) -> f64 {
    let rows = x.len() / 5;
    let (entries, vector) = x.split_at(4 * rows);
    let columns: Vec<usize> = (0..4 * rows).map(|k| k * 7919 % rows).collect();
    let starts: Vec<usize> = (0..=rows).map(|i| 4 * i).collect();
    let mut out = vec![0.0; rows];
    out.par_iter_mut().enumerate().for_each(|(i, out)| {
        let range = starts[i]..starts[i + 1];
        let entries = entries[range.clone()].iter().zip(&columns[range]);
        *out = entries.map(|(a, &column)| a * vector[column]).sum();
    });
    out.par_iter().map(|y| y * y).sum()
}

/// The energy of particles that push each other away.
// threads: nothing
pub fn energy_of_particles(x: &[f64]) -> f64 {
    let particles: Vec<&[f64]> = x.chunks(3).collect();
    let of_one = |(i, a): (usize, &&[f64])| {
        let others = particles.iter().enumerate().filter(|&(j, _)| j != i);
        let squares = others.map(|(_, b)| (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>());
        squares
            .map(|square| 1.0 / (square + 0.1).sqrt())
            .sum::<f64>()
    };
    particles.par_iter().enumerate().map(of_one).sum()
}

/// The forces, and from them the next places.
// threads: one; several; one
pub fn step_of_particles(x: &[f64]) -> f64 {
    let mut forces = vec![0.0; x.len()];
    forces.par_chunks_mut(3).enumerate().for_each(|(i, force)| {
        let a = &x[3 * i..3 * i + 3];
        for b in x.chunks_exact(3) {
            let square: f64 = 0.1 + (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>();
            for k in 0..3 {
                force[k] += (a[k] - b[k]) / (square * square.sqrt());
            }
        }
    });
    x.par_iter()
        .zip(&forces)
        .map(|(x, f)| (x + 0.01 * f).powi(2))
        .sum()
}

/// Columns that share a small vector of weights.
// threads: several, atomic
pub fn shared_weights(x: &[f64]) -> f64 {
    let (weights, data) = x.split_at(16);
    data.par_chunks(16)
        .map(|row| {
            row.iter()
                .zip(weights)
                .map(|(x, w)| x * w)
                .sum::<f64>()
                .tanh()
        })
        .sum()
}

/// Rows in parallel, and in each row its pairs in parallel.
// threads: several, copies
pub fn nested(x: &[f64]) -> f64 {
    x.par_iter()
        .map(|a| x.par_iter().map(|b| (a * b).cos()).sum::<f64>())
        .map(|sum| sum * sum)
        .sum()
}

/// A layer: a product of matrices, a row for each item, and a function of each element.
// threads: several; several; several, atomic
pub fn layer(x: &[f64]) -> f64 {
    const SIZE: usize = 64;
    let (weights, rows) = x.split_at(SIZE * SIZE);
    let mut out = vec![0.0; rows.len()];
    out.par_chunks_mut(SIZE)
        .zip(rows.par_chunks(SIZE))
        .for_each(|(out, row)| {
            for (out, weights) in out.iter_mut().zip(weights.chunks(SIZE)) {
                *out = weights
                    .iter()
                    .zip(row)
                    .map(|(w, x)| w * x)
                    .sum::<f64>()
                    .sin();
            }
        });
    out.par_iter().map(|y| y * y).sum()
}

/// Softmax of each row, in place.
// threads: several; several; one
pub fn softmax_of_rows(x: &[f64]) -> f64 {
    let mut rows = x.to_vec();
    rows.par_chunks_mut(50).for_each(|row| {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        for x in row.iter_mut() {
            *x = (*x - largest).exp();
            sum += *x;
        }
        for x in row.iter_mut() {
            *x /= sum;
        }
    });
    rows.par_iter().zip(x).map(|(p, x)| p * x).sum()
}

/// A path for each item, by steps that each need the one before.
// threads: several
pub fn paths(x: &[f64]) -> f64 {
    let follow = |start: &f64| (0..40).fold(*start, |y, _| y + 0.05 * (y.cos() - 0.3 * y * y));
    x.par_iter().map(follow).map(|end| end * end).sum()
}

/// A vector that is collected, and used again.
// threads: several; several, neighbours; several
pub fn collected(x: &[f64]) -> f64 {
    let sines: Vec<f64> = x.par_iter().map(|x| x.sin()).collect();
    (1..x.len())
        .into_par_iter()
        .map(|i| sines[i] * sines[i - 1] * x[i])
        .sum()
}

// threads: one; one
pub fn filtered(x: &[f64]) -> f64 {
    let above = x.par_iter().filter(|x| **x > 0.7);
    above.map(|x| (x - 0.7).powi(3)).sum()
}
