//! When derivatives agree: with each other, and with finite differences. File tests and the laws of random programs share this.

use super::variable::epsilon;
use ferrozyme_ir::{Module, Scalar};

/// How exactly numbers can be expected to agree.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Precision {
    /// Relative tolerance between two ways to compute a derivative.
    pub derivative: f64,
    /// Whether products are compared by the size of their terms. Otherwise by the lengths of their factors: in large programs, terms that are zero are differences of others.
    pub by_terms: bool,
    /// The step of finite differences, and the relative tolerance between them and a derivative; none where numbers are too coarse for that.
    pub differences: Option<(f64, f64)>,
}

impl Precision {
    /// The tolerance for the least precise float type that a module computes with.
    pub fn of(module: &Module) -> Precision {
        let functions = module.functions.values();
        let values = functions.flat_map(|function| function.values.values());
        let floats = values.map(|value| value.ty.scalar());
        let narrowest = floats
            .filter(|scalar| scalar.is_float())
            .max_by(|a, b| epsilon(*a).total_cmp(&epsilon(*b)));
        let (derivative, differences) = match narrowest.unwrap_or(Scalar::F64) {
            Scalar::F64 => (1e-9, Some((1e-3, 1e-6))),
            // Derivatives are computed in the precision of the values: seven digits, of which sums lose some.
            Scalar::F32 => (2e-4, Some((1e-2, 2e-2))),
            _ => (0.1, None),
        };
        Precision {
            derivative,
            by_terms: false,
            differences,
        }
    }

    /// Whether ⟨J·v, u⟩ = ⟨v, Jᵀ·u⟩; both numbers where not.
    pub fn compare_products(
        &self,
        (tangent, weights): (&[f64], &[f64]),
        (direction, gradient): (&[f64], &[f64]),
    ) -> Result<(), (f64, f64)> {
        let (left, right) = (dot(tangent, weights), dot(direction, gradient));
        let pairs = [(tangent, weights), (direction, gradient)];
        let scale: f64 = match self.by_terms {
            true => pairs.map(|(a, b)| terms(a, b)).into_iter().sum(),
            false => pairs.map(|(a, b)| norm(a) * norm(b)).into_iter().sum(),
        };
        match (left - right).abs() <= self.derivative * (1.0 + scale) {
            true => Ok(()),
            false => Err((left, right)),
        }
    }
}

/// Differences of a function along a line, made as they are needed.
pub struct Differences<'r, E> {
    run: Box<dyn Fn(f64) -> Result<Vec<f64>, E> + 'r>,
    middle: Vec<f64>,
    estimates: Vec<Estimate>,
}

/// A derivative by differences of one step.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// The derivative.
    pub slope: Vec<f64>,
    /// The step.
    pub step: f64,
    /// How far a derivative may be off.
    pub tolerance: f64,
    /// Whether the function looks smooth at this step.
    smooth: bool,
}

/// What differences say of a derivative.
#[derive(Clone, Copy, Debug)]
pub enum Verdict<'d> {
    /// They agree.
    Agrees,
    /// They do not.
    Differs(&'d Estimate),
    /// The function is not smooth here. Holds the quotient of the largest step.
    Rough(&'d Estimate),
}

impl<'r, E> Differences<'r, E> {
    /// Of a function on a line, whose value at 0 is known.
    pub fn new(
        middle: Vec<f64>,
        run: impl Fn(f64) -> Result<Vec<f64>, E> + 'r,
    ) -> Differences<'r, E> {
        Differences {
            run: Box::new(run),
            middle,
            estimates: Vec::new(),
        }
    }

    /// Compares a derivative with differences, of this step and relative tolerance and of smaller ones.
    ///
    /// Central differences at two steps, extrapolated, are good to about ten digits where the function is smooth. It is
    /// taken to be smooth if the two steps agree, and if the differences to either side approach each other as the step
    /// shrinks, which at a kink they do not. A defect shows at every step; a kink that happens to look smooth at one
    /// step is found out by a smaller one.
    pub fn compare(
        &mut self,
        derivative: &[f64],
        (step, tolerance): (f64, f64),
    ) -> Result<Verdict<'_>, E> {
        // The smallest step decides; larger ones may cross a kink.
        const STEPS: [f64; 3] = [1.0, 0.1, 0.01];
        for (index, shrink) in STEPS.into_iter().enumerate() {
            if self.estimates.len() == index {
                let estimate = self.estimate(step * shrink, tolerance)?;
                self.estimates.push(estimate);
            }
            let estimate = &self.estimates[index];
            if !estimate.smooth {
                continue;
            }
            if estimate.mismatch(derivative).is_none() {
                return Ok(Verdict::Agrees);
            }
            if index + 1 == STEPS.len() {
                return Ok(Verdict::Differs(&self.estimates[index]));
            }
        }
        Ok(Verdict::Rough(&self.estimates[0]))
    }

    fn estimate(&self, step: f64, tolerance: f64) -> Result<Estimate, E> {
        let run = |factor: f64| (self.run)(factor);
        let (right, left) = (run(step)?, run(-step)?);
        let (near_right, near_left) = (run(step / 2.0)?, run(-step / 2.0)?);
        let slope = |a: &[f64], b: &[f64], width: f64| combine(a, b, |a, b| (a - b) / width);
        let wide = slope(&right, &left, 2.0 * step);
        let narrow = slope(&near_right, &near_left, step);
        let bend = |right: &[f64], left: &[f64], width: f64| {
            let sides = (
                slope(right, &self.middle, width),
                slope(&self.middle, left, width),
            );
            largest(&combine(&sides.0, &sides.1, |a, b| a - b))
        };
        let wide_bend = bend(&right, &left, step);
        let narrow_bend = bend(&near_right, &near_left, step / 2.0);
        // The error in the square of the step is taken out (Richardson).
        let slope = combine(&narrow, &wide, |narrow, wide| (4.0 * narrow - wide) / 3.0);
        let change = largest(&combine(&narrow, &wide, |a, b| a - b));
        // Only samples tell whether the function is smooth: a wrong derivative may be large.
        let scale = 1.0 + largest(&slope);
        let tolerance = tolerance * scale;
        // Rounding alone bends a line a little.
        let noise = tolerance + 1e-12 / step * (1.0 + largest(&self.middle));
        let smooth = change <= 1e-3 * scale + noise && narrow_bend <= 0.75 * wide_bend + noise;
        Ok(Estimate {
            slope,
            step,
            tolerance: tolerance + 4.0 * change,
            smooth,
        })
    }
}

impl Estimate {
    /// The first component of a derivative that differs from the finite difference. A NaN agrees with nothing.
    pub fn mismatch(&self, derivative: &[f64]) -> Option<usize> {
        let mut pairs = derivative.iter().zip(&self.slope);
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= self.tolerance;
        pairs.position(|pair| !near(pair))
    }
}

fn combine(a: &[f64], b: &[f64], with: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.iter().zip(b).map(|(&a, &b)| with(a, b)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn terms(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a * b).abs()).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

/// The largest magnitude, or NaN if there is one.
fn largest(numbers: &[f64]) -> f64 {
    let magnitudes = numbers.iter().map(|number| number.abs());
    magnitudes.fold(0.0, |a, b| if b.is_nan() { b } else { a.max(b) })
}
