//! Derivatives against finite differences.

use super::super::{Kind, Law, Violation};
use super::Experiment;
use crate::state::State;
use ferrozyme_ir::interpret::Fault;

/// Derivatives beyond this are not compared with finite differences.
const CHAOTIC: f64 = 1e5;

impl Experiment<'_> {
    /// The tangent agrees with finite differences along `v`; false where the program is not smooth.
    pub(super) fn tangent_agrees_with_differences(
        &self,
        tangent: &State,
    ) -> Result<bool, Violation> {
        let run = |factor: f64| self.neighbour(factor);
        let mut middle = self.outputs.clone();
        self.inputs.restrict_results(&mut middle);
        self.compare_with_differences(Law::Differences, tangent, &middle, run)
    }

    /// The gradient agrees with finite differences of ⟨u, outputs⟩ along `v`; false where the program is not smooth.
    pub(super) fn gradient_agrees_with_differences(
        &self,
        gradient: &State,
    ) -> Result<bool, Violation> {
        let weighted = |outputs: &State| State {
            floats: vec![self.u.dot(outputs)],
            blocks: Vec::new(),
        };
        let slope = State {
            floats: vec![gradient.dot(&self.v)],
            blocks: Vec::new(),
        };
        let run = |factor: f64| self.neighbour(factor).map(|outputs| weighted(&outputs));
        let middle = weighted(self.outputs);
        self.compare_with_differences(Law::GradientDifferences, &slope, &middle, run)
    }

    /// The outputs of the program at a point along `v`.
    fn neighbour(&self, factor: f64) -> Result<State, Fault> {
        let point = self.inputs.state.moved(factor, &self.v);
        let mut outputs = self.inputs.run(self.module, self.main, &point)?;
        self.inputs.restrict_results(&mut outputs.state);
        Ok(outputs.state)
    }

    /// Compares a derivative with differences of `run` along a line, whose value at 0 is `middle`.
    ///
    /// Central differences at two steps, extrapolated, are good to about ten digits where the program is smooth. It is
    /// taken to be smooth if the two steps agree, and if the differences to either side approach each other as the step
    /// shrinks, which at a kink they do not. A defect shows at every step; a kink that happens to look smooth at one
    /// step is found out by a smaller one.
    pub(super) fn compare_with_differences<E: std::fmt::Display>(
        &self,
        law: Law,
        derivative: &State,
        middle: &State,
        run: impl Fn(f64) -> Result<State, E>,
    ) -> Result<bool, Violation> {
        // Where small changes grow beyond measure, no step is small enough.
        if derivative.largest() > CHAOTIC {
            return Ok(false);
        }
        // The smallest step decides; at coarser ones something else may be in the way.
        const SMALLEST: f64 = 0.01;
        for shrink in [1.0, 0.1, SMALLEST] {
            let step = self.precision.step * shrink;
            let mut samples = Vec::new();
            for factor in [step, -step, step / 2.0, -step / 2.0] {
                match run(factor) {
                    Ok(state) => samples.push(state),
                    Err(error) => {
                        let detail = format!("a neighbouring point fails: {error}");
                        return Err(Violation::new(law, Kind::Fault("neighbour"), detail));
                    }
                }
            }
            let slope = |a: &State, b: &State, width: f64| a.combined(b, |a, b| (a - b) / width);
            let wide = slope(&samples[0], &samples[1], 2.0 * step);
            let narrow = slope(&samples[2], &samples[3], step);
            let bend = |right: &State, left: &State, width: f64| {
                slope(right, middle, width)
                    .combined(&slope(middle, left, width), |a, b| a - b)
                    .largest()
            };
            let wide_bend = bend(&samples[0], &samples[1], step);
            let narrow_bend = bend(&samples[2], &samples[3], step / 2.0);
            let estimate = narrow.combined(&wide, |narrow, wide| (4.0 * narrow - wide) / 3.0);
            let change = narrow.combined(&wide, |a, b| a - b).largest();
            // Only what is sampled tells whether it is smooth: a wrong derivative may be large.
            let scale = 1.0 + estimate.largest();
            let tolerance = self.precision.difference * scale;
            // Rounding alone bends a line a little.
            let noise = tolerance + 1e-12 / step * (1.0 + middle.largest());
            let smooth = change <= 1e-3 * scale + noise && narrow_bend <= 0.75 * wide_bend + noise;
            if !smooth {
                continue;
            }
            let Some(difference) = derivative.difference(&estimate, tolerance + 4.0 * change)
            else {
                return Ok(true);
            };
            if shrink == SMALLEST {
                let detail = format!(
                    "the derivative differs from finite differences of step {step:e}: {difference}"
                );
                return Err(Violation::new(law, Kind::Wrong, detail));
            }
        }
        Ok(false)
    }
}
