//! GMM: the log-likelihood of points under a mixture of Gaussians, with a prior on the covariances.

use crate::text::{BadFile, Words};
use ferrozyme::autodiff_reverse;
use std::f64::consts::PI;
use std::path::Path;

/// The prior's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Wishart {
    pub gamma: f64,
    pub m: i32,
}

/// One problem.
#[derive(Clone, Debug)]
pub struct Instance {
    pub dimension: usize,
    pub components: usize,
    pub alphas: Vec<f64>,
    pub means: Vec<f64>,
    /// For each component the logarithms of the diagonal, then the strictly lower triangle column by column.
    pub factors: Vec<f64>,
    pub points: Vec<f64>,
    pub wishart: Wishart,
}

impl Instance {
    /// Reads a problem; with `replicated` the file has one point, which is replicated.
    ///
    /// # Errors
    /// If the file is bad.
    pub fn read(path: &Path, replicated: bool) -> Result<Instance, BadFile> {
        let mut words = Words::open(path)?;
        let dimension: usize = words.number("a dimension")?;
        let components: usize = words.number("a number of components")?;
        let count: usize = words.number("a number of points")?;
        if dimension == 0 || components == 0 {
            return Err(words.error("no dimensions or no components".to_owned()));
        }
        words.product(&[dimension, dimension.saturating_add(1)])?;
        let alphas = words.floats(components, "a weight")?;
        let means = words.floats(words.product(&[components, dimension])?, "a mean")?;
        let length = words.product(&[components, factor_length(dimension)])?;
        let factors = words.floats(length, "a factor")?;
        let coordinates = words.product(&[count, dimension])?;
        let points = match replicated {
            true => words.floats(dimension, "a coordinate")?.repeat(count),
            false => words.floats(coordinates, "a coordinate")?,
        };
        let wishart = Wishart {
            gamma: words.number("gamma")?,
            m: words.number("m")?,
        };
        Ok(Instance {
            dimension,
            components,
            alphas,
            means,
            factors,
            points,
            wishart,
        })
    }

    /// The number that is differentiated.
    pub fn objective(&self) -> f64 {
        objective(
            self.dimension,
            &self.alphas,
            &self.means,
            &self.factors,
            &self.points,
            self.wishart,
        )
    }

    /// The gradient by Ferrozyme: by weights, means and factors.
    pub fn gradient(&self) -> Vec<f64> {
        let mut gradient = self.empty_gradient();
        let (alphas, rest) = gradient.split_at_mut(self.alphas.len());
        let (means, factors) = rest.split_at_mut(self.means.len());
        d_objective(
            self.dimension,
            &self.alphas,
            alphas,
            &self.means,
            means,
            &self.factors,
            factors,
            &self.points,
            self.wishart,
            1.0,
        );
        gradient
    }

    /// The same by hand.
    pub fn gradient_by_hand(&self) -> Vec<f64> {
        let mut gradient = self.empty_gradient();
        let (alphas, rest) = gradient.split_at_mut(self.alphas.len());
        let (means, factors) = rest.split_at_mut(self.means.len());
        add_gradient_by_hand(self, alphas, means, factors);
        gradient
    }

    fn empty_gradient(&self) -> Vec<f64> {
        vec![0.0; self.alphas.len() + self.means.len() + self.factors.len()]
    }
}

fn factor_length(dimension: usize) -> usize {
    dimension * (dimension + 1) / 2
}

#[autodiff_reverse(
    d_objective,
    Const,
    Duplicated,
    Duplicated,
    Duplicated,
    Const,
    Const,
    ActiveOnly
)]
fn objective(
    dimension: usize,
    alphas: &[f64],
    means: &[f64],
    factors: &[f64],
    points: &[f64],
    wishart: Wishart,
) -> f64 {
    let length = factor_length(dimension);
    let count = points.len() / dimension;
    let (diagonals, sums) = diagonals_and_sums(factors, dimension);

    let mut terms = vec![0.0; alphas.len()];
    let mut centred = vec![0.0; dimension];
    let mut scaled = vec![0.0; dimension];
    let mut likelihood = 0.0;
    for point in points.chunks_exact(dimension) {
        for k in 0..alphas.len() {
            let mean = &means[k * dimension..(k + 1) * dimension];
            for j in 0..dimension {
                centred[j] = point[j] - mean[j];
            }
            let diagonal = &diagonals[k * dimension..(k + 1) * dimension];
            let lower = &factors[k * length + dimension..(k + 1) * length];
            multiply(diagonal, lower, &centred, &mut scaled);
            terms[k] = alphas[k] + sums[k] - 0.5 * square_norm(&scaled);
        }
        likelihood += log_sum_exp(&terms);
    }
    let constant = -0.5 * (count * dimension) as f64 * (2.0 * PI).ln();
    constant + likelihood - count as f64 * log_sum_exp(alphas)
        + prior(dimension, factors, &diagonals, &sums, wishart)
}

/// For each component the diagonal of its factor, and the sum of the diagonal's logarithms.
fn diagonals_and_sums(factors: &[f64], dimension: usize) -> (Vec<f64>, Vec<f64>) {
    let diagonals = factors
        .chunks_exact(factor_length(dimension))
        .flat_map(|factor| factor[..dimension].iter().map(|q| q.exp()))
        .collect();
    let sums = factors
        .chunks_exact(factor_length(dimension))
        .map(|factor| factor[..dimension].iter().sum())
        .collect();
    (diagonals, sums)
}

/// The product of a lower triangular matrix with a vector.
fn multiply(diagonal: &[f64], lower: &[f64], x: &[f64], y: &mut [f64]) {
    for j in 0..x.len() {
        y[j] = diagonal[j] * x[j];
    }
    let mut rest = lower;
    for column in 0..x.len() {
        let (entries, others) = rest.split_at(x.len() - column - 1);
        for (y, entry) in y[column + 1..].iter_mut().zip(entries) {
            *y += entry * x[column];
        }
        rest = others;
    }
}

fn square_norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum()
}

fn log_sum_exp(x: &[f64]) -> f64 {
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = x.iter().map(|x| (x - largest).exp()).sum();
    largest + sum.ln()
}

fn prior(
    dimension: usize,
    factors: &[f64],
    diagonals: &[f64],
    sums: &[f64],
    wishart: Wishart,
) -> f64 {
    let length = factor_length(dimension);
    let half = 0.5 * wishart.gamma * wishart.gamma;
    let mut sum = 0.0;
    for k in 0..sums.len() {
        let diagonal = &diagonals[k * dimension..(k + 1) * dimension];
        let lower = &factors[k * length + dimension..(k + 1) * length];
        let squares = square_norm(diagonal) + square_norm(lower);
        sum += half * squares - f64::from(wishart.m) * sums[k];
    }
    sum - sums.len() as f64 * prior_constant(dimension, wishart)
}

fn prior_constant(dimension: usize, wishart: Wishart) -> f64 {
    let d = dimension as f64;
    let n = d + f64::from(wishart.m) + 1.0;
    n * d * (wishart.gamma.ln() - 0.5 * 2f64.ln()) - log_gamma_of_several(0.5 * n, dimension)
}

/// The logarithm of the multivariate gamma function.
fn log_gamma_of_several(a: f64, dimension: usize) -> f64 {
    let d = dimension as f64;
    let sum: f64 = (1..=dimension)
        .map(|j| log_gamma_of_half((2.0 * a + 1.0 - j as f64).round() as u64))
        .sum();
    0.25 * d * (d - 1.0) * PI.ln() + sum
}

/// The logarithm of Γ(n/2), from Γ(½) = √π and Γ(1) = 1 upwards.
fn log_gamma_of_half(n: u64) -> f64 {
    let (mut at, mut value) = match n % 2 {
        0 => (2, 0.0),
        _ => (1, 0.5 * PI.ln()),
    };
    while at < n {
        value += (at as f64 / 2.0).ln();
        at += 2;
    }
    value
}

/// The gradient as one would derive it by hand: all terms of a point are known when their weights are.
fn add_gradient_by_hand(
    instance: &Instance,
    d_alphas: &mut [f64],
    d_means: &mut [f64],
    d_factors: &mut [f64],
) {
    let Instance {
        dimension,
        components,
        ref alphas,
        ref means,
        ref factors,
        ref points,
        wishart,
    } = *instance;
    let length = factor_length(dimension);
    let (diagonals, sums) = diagonals_and_sums(factors, dimension);
    let mut terms = vec![0.0; components];
    let mut centred = vec![0.0; components * dimension];
    let mut scaled = vec![0.0; components * dimension];
    for point in points.chunks_exact(dimension) {
        for k in 0..components {
            let range = k * dimension..(k + 1) * dimension;
            let (centred, scaled) = (&mut centred[range.clone()], &mut scaled[range.clone()]);
            for (j, mean) in means[range.clone()].iter().enumerate() {
                centred[j] = point[j] - mean;
            }
            let lower = &factors[k * length + dimension..(k + 1) * length];
            multiply(&diagonals[range], lower, centred, scaled);
            terms[k] = alphas[k] + sums[k] - 0.5 * square_norm(scaled);
        }
        let whole = log_sum_exp(&terms);
        for k in 0..components {
            let weight = (terms[k] - whole).exp();
            let range = k * dimension..(k + 1) * dimension;
            let (centred, scaled) = (&centred[range.clone()], &scaled[range.clone()]);
            let diagonal = &diagonals[range.clone()];
            let d_mean = &mut d_means[range];
            let (d_diagonal, mut d_rest) =
                d_factors[k * length..(k + 1) * length].split_at_mut(dimension);
            let mut rest = &factors[k * length + dimension..(k + 1) * length];
            d_alphas[k] += weight;
            for column in 0..dimension {
                let on_diagonal = weight * scaled[column] * diagonal[column];
                d_diagonal[column] += weight - on_diagonal * centred[column];
                let (entries, others) = rest.split_at(dimension - column - 1);
                let (d_entries, d_others) = d_rest.split_at_mut(dimension - column - 1);
                let mut pulled = 0.0;
                for ((entry, d_entry), z) in entries
                    .iter()
                    .zip(&mut *d_entries)
                    .zip(&scaled[column + 1..])
                {
                    *d_entry -= weight * z * centred[column];
                    pulled += z * entry;
                }
                d_mean[column] += on_diagonal + weight * pulled;
                (rest, d_rest) = (others, d_others);
            }
        }
    }
    let count = (points.len() / dimension) as f64;
    let whole = log_sum_exp(alphas);
    for (d_alpha, alpha) in d_alphas.iter_mut().zip(alphas) {
        *d_alpha -= count * (alpha - whole).exp();
    }
    let square = wishart.gamma * wishart.gamma;
    for (k, (factor, d_factor)) in factors
        .chunks_exact(length)
        .zip(d_factors.chunks_exact_mut(length))
        .enumerate()
    {
        for j in 0..dimension {
            let diagonal = diagonals[k * dimension + j];
            d_factor[j] += square * diagonal * diagonal - f64::from(wishart.m);
        }
        for (d_entry, entry) in d_factor[dimension..].iter_mut().zip(&factor[dimension..]) {
            *d_entry += square * entry;
        }
    }
}
