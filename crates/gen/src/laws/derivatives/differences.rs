//! Derivatives against finite differences.

use super::super::{Kind, Law, Violation};
use super::Experiment;
use crate::state::State;
use ferrozyme_filetest::gradcheck::{Differences, Verdict};
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

    /// Compares a derivative with differences of `run` along a line, whose value at 0 is `middle`; false where it is not smooth.
    pub(super) fn compare_with_differences(
        &self,
        law: Law,
        derivative: &State,
        middle: &State,
        run: impl Fn(f64) -> Result<State, Fault>,
    ) -> Result<bool, Violation> {
        // Where small changes grow beyond measure, no step is small enough.
        let Some(steps) = self
            .precision
            .differences
            .filter(|_| derivative.largest() <= CHAOTIC)
        else {
            return Ok(false);
        };
        let run = |factor: f64| run(factor).map(|state| state.numbers());
        let mut differences = Differences::new(middle.numbers(), run);
        let verdict = differences
            .compare(&derivative.numbers(), steps)
            .map_err(|fault| {
                let detail = format!("a neighbouring point fails: {fault}");
                Violation::new(law, Kind::Fault("neighbour"), detail)
            })?;
        match verdict {
            Verdict::Agrees => Ok(true),
            Verdict::Rough(_) => Ok(false),
            Verdict::Differs(estimate) => {
                let mut slope = derivative.clone();
                for (number, &estimated) in slope.iter_mut().zip(&estimate.slope) {
                    *number = estimated;
                }
                let step = estimate.step;
                let difference = slope.difference(derivative, estimate.tolerance);
                let detail = format!(
                    "the derivative differs from finite differences of step {step:e}: {}",
                    difference.unwrap_or_default()
                );
                Err(Violation::new(law, Kind::Wrong, detail))
            }
        }
    }
}
