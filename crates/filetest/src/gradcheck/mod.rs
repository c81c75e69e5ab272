//! Checks derivatives by the laws that relate them.
//!
//! At each point, for the derivatives as they are made, after optimisation, and under choices that must not matter (caching plans, calls
//! inlined before differentiation):
//! - forward mode agrees with central finite differences, in every direction of a coordinate (or in random ones, where
//!   there are many), and carries several tangents as it carries one;
//! - ⟨J·v, u⟩ = ⟨v, Jᵀ·u⟩ between forward mode and reverse mode, combined and split, for all directions and seeds;
//! - no derivative faults, leaks, or changes the function's results.

mod agreement;
mod experiment;
mod shadow;
pub mod sweep;
mod variable;

pub use agreement::{Differences, Estimate, Precision, Verdict};
pub use experiment::Experiment;
pub use variable::Variable;

use crate::value::Written;
use ferrozyme_diff::{
    Caching, Choices, Request, Split, differentiate_forward, differentiate_reverse,
    differentiate_split,
};
use ferrozyme_ir::{FunctionId, Module};
use ferrozyme_opt::{InlinePolicy, Inlining, inline_calls};
use variable::epsilon;

/// A point at which derivatives are checked, and numbers that are known for it.
#[derive(Clone, Debug, Default)]
pub struct Point {
    /// The arguments.
    pub arguments: Vec<Written>,
    /// A seed for each active result, then memory for each duplicated argument; 1 and zeros unless given.
    pub seed: Option<Vec<Written>>,
    /// The gradient for that seed: one for each argument that is not constant.
    pub gradient: Option<Vec<Written>>,
}

/// The derivatives of one function, in one module.
pub struct Derivatives {
    /// As they are made, or optimised.
    pub stage: &'static str,
    /// The module with all of them.
    pub module: Module,
    forward: FunctionId,
    wide: FunctionId,
    reverse: FunctionId,
    split: Split,
}

/// How many tangents the check of wide forward mode carries.
const WIDTH: u32 = 3;
/// Up to how many inputs or outputs every coordinate is tried.
const FEW: usize = 24;
/// How many random directions are tried beside, or instead of, coordinates.
const RANDOM: usize = 3;

/// Makes all derivatives, as they are made and optimised; and under every choice that must not change them, unless that choice makes
/// the compiler refuse the function.
pub fn differentiate_all(module: &Module, request: &Request) -> Result<Vec<Derivatives>, String> {
    let request = Request {
        primal: true,
        width: 1,
        ..request.clone()
    };
    let made = differentiate_once("as made", module, &request)?;
    let mut optimised = made.module.clone();
    let first_new = module.functions.len();
    let new: Vec<FunctionId> = optimised.functions.keys().skip(first_new).collect();
    for function in new {
        ferrozyme_opt::optimise(&mut optimised, function);
    }
    let optimised = Derivatives {
        stage: "optimised",
        module: optimised,
        ..made
    };
    let mut all = vec![made, optimised];
    for (stage, choices) in OTHER_CHOICES {
        let request = Request {
            choices: *choices,
            ..request.clone()
        };
        all.extend(differentiate_once(stage, module, &request).ok());
    }
    let mut separated = module.clone();
    let functions: Vec<FunctionId> = separated.functions.keys().collect();
    let mut changes = 0;
    for function in functions {
        changes += ferrozyme_opt::separate_pointers(&mut separated, function);
    }
    if changes > 0 {
        all.extend(differentiate_once("pointers separated", &separated, &request).ok());
    }
    for (stage, which) in OTHER_INLINING {
        let mut inlined = module.clone();
        let functions: Vec<FunctionId> = inlined.functions.keys().collect();
        let mut changes = 0;
        for function in functions {
            changes += inline_calls(&mut inlined, function, &InlinePolicy::from(*which));
        }
        if changes > 0 {
            all.extend(differentiate_once(stage, &inlined, &request).ok());
        }
    }
    for Derivatives { stage, module, .. } in &all {
        crate::check::verify_module(module)
            .and_then(|()| crate::check::check_facts(module))
            .map_err(|error| format!("{stage}: {error}"))?;
    }
    Ok(all)
}

/// Choices that must not change derivatives.
const OTHER_CHOICES: &[(&str, Choices)] = &[
    (
        "everything saved, calls resolved",
        Choices {
            caching: Caching::Save,
            at_once: false,
            split: false,
            resolve: true,
        },
    ),
    (
        "everything recomputed, sweeps split, calls resolved",
        Choices {
            caching: Caching::Recompute,
            at_once: true,
            split: true,
            resolve: true,
        },
    ),
];

/// Inlining policies that must not change derivatives.
const OTHER_INLINING: &[(&str, Inlining)] = &[
    ("all calls inlined", Inlining::All),
    ("half of the calls inlined", Inlining::Half(1)),
];

/// The derivatives of one stage; the error is a refusal.
fn differentiate_once(
    stage: &'static str,
    module: &Module,
    request: &Request,
) -> Result<Derivatives, String> {
    let mut derivatives = module.clone();
    let wide_request = Request {
        width: WIDTH,
        ..request.clone()
    };
    let forward = differentiate_forward(&mut derivatives, request)
        .map_err(|error| format!("forward mode: {error}"))?;
    let wide = differentiate_forward(&mut derivatives, &wide_request)
        .map_err(|error| format!("forward mode: {error}"))?;
    let reverse = differentiate_reverse(&mut derivatives, request)
        .map_err(|error| format!("reverse mode: {error}"))?;
    let split = differentiate_split(&mut derivatives, request)
        .map_err(|error| format!("split mode: {error}"))?;
    Ok(Derivatives {
        stage,
        module: derivatives,
        forward,
        wide,
        reverse,
        split,
    })
}

/// Checks derivatives at a point; the error says what does not hold.
pub fn check_point(
    module: &Module,
    request: &Request,
    derivatives: &[Derivatives],
    point: &Point,
) -> Result<(), String> {
    let experiment = Experiment::new(module, request, &point.arguments)?;
    if experiment.inputs.is_empty() || experiment.outputs.is_empty() {
        return Err(
            "there is nothing to differentiate: no active input or no active output".into(),
        );
    }
    // Test files are small, and their sums are short.
    let precision = Precision::of(module);
    let precision = Precision {
        derivative: precision.derivative / 10.0,
        by_terms: true,
        ..precision
    };
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut lines: Vec<Line> = directions(&experiment.point, &mut random)
        .into_iter()
        .map(|direction| Line::new(&experiment, direction))
        .collect();
    let mut seeds = directions(&vec![1.0; experiment.outputs.len()], &mut random);
    seeds.push(experiment.usual_seeds());
    for derivatives in derivatives {
        check_stage(&experiment, derivatives, &mut lines, &seeds, precision)
            .map_err(|error| format!("{} ({})", error, derivatives.stage))?;
        check_gradient(&experiment, derivatives, point)
            .map_err(|error| format!("{} ({})", error, derivatives.stage))?;
    }
    Ok(())
}

/// The gradient at a point, by the combined derivative.
pub fn gradient(
    experiment: &Experiment,
    derivatives: &Derivatives,
    seed: &[f64],
) -> Result<Vec<f64>, String> {
    experiment.reverse(&derivatives.module, derivatives.reverse, seed)
}

/// A direction, and differences of the function along it.
struct Line<'e> {
    direction: Vec<f64>,
    /// The length of a step of 1: a unit direction does not depend on the size of its coordinate; the others are scaled to fit.
    size: f64,
    differences: Differences<'e, String>,
}

impl<'e> Line<'e> {
    fn new(experiment: &'e Experiment, direction: Vec<f64>) -> Line<'e> {
        let size = match coordinate(&direction) {
            Some(input) => experiment.point[input].abs().max(1.0),
            None => 1.0,
        };
        let along = direction.clone();
        let differences = Differences::new(experiment.values.clone(), move |factor| {
            let steps = experiment.point.iter().zip(&along);
            let moved: Vec<f64> = steps.map(|(x, d)| x + factor * size * d).collect();
            experiment
                .primal(&moved)
                .map_err(|error| format!("the function fails beside the point: {error}"))
        });
        Line {
            direction,
            size,
            differences,
        }
    }

    /// Whether a tangent is what differences say, also where the function is not smooth.
    fn check(
        &mut self,
        outputs: &[Variable],
        tangent: &[f64],
        steps: (f64, f64),
    ) -> Result<(), String> {
        let tangent: Vec<f64> = tangent.iter().map(|number| number * self.size).collect();
        let estimate = match self.differences.compare(&tangent, steps)? {
            Verdict::Agrees => return Ok(()),
            Verdict::Differs(estimate) | Verdict::Rough(estimate) => estimate,
        };
        match estimate.mismatch(&tangent) {
            None => Ok(()),
            Some(index) => Err(format!(
                "forward mode differs from finite differences for {}: {:?} instead of {:?}",
                outputs[index],
                tangent[index] / self.size,
                estimate.slope[index] / self.size
            )),
        }
    }
}

fn check_stage(
    experiment: &Experiment,
    derivatives: &Derivatives,
    lines: &mut [Line<'_>],
    seeds: &[Vec<f64>],
    precision: Precision,
) -> Result<(), String> {
    let module = &derivatives.module;
    let mut tangents = Vec::new();
    for line in &mut *lines {
        let direction = std::slice::from_ref(&line.direction);
        let columns = experiment
            .forward(module, derivatives.forward, direction)
            .map_err(|error| format!("forward mode: {error}"))?;
        let tangent = columns.into_iter().next().unwrap_or_default();
        if let Some(steps) = precision.differences {
            line.check(&experiment.outputs, &tangent, steps)?;
        }
        tangents.push(tangent);
    }
    let directions: Vec<Vec<f64>> = lines.iter().map(|line| line.direction.clone()).collect();
    let rounding = precision.derivative;
    for (directions, tangents) in directions
        .chunks_exact(WIDTH as usize)
        .zip(tangents.chunks_exact(WIDTH as usize))
    {
        let columns = experiment
            .forward(module, derivatives.wide, directions)
            .map_err(|error| format!("forward mode of width {WIDTH}: {error}"))?;
        for (column, tangent) in columns.iter().zip(tangents) {
            let claim = "several tangents at once differ from one";
            compare(claim, &experiment.outputs, column, tangent, rounding)?;
        }
    }
    for seed in seeds {
        let combined = experiment
            .reverse(module, derivatives.reverse, seed)
            .map_err(|error| format!("reverse mode: {error}"))?;
        let split = experiment
            .split(module, derivatives.split, seed)
            .map_err(|error| format!("split reverse mode: {error}"))?;
        for (direction, tangent) in directions.iter().zip(&tangents) {
            precision
                .compare_products((tangent, seed), (direction, &combined))
                .map_err(|products| contradiction(experiment, direction, seed, products))?;
        }
        let claim = "split reverse mode differs from combined";
        compare(claim, &experiment.inputs, &split, &combined, rounding)?;
    }
    Ok(())
}

fn contradiction(
    experiment: &Experiment,
    direction: &[f64],
    seed: &[f64],
    (left, right): (f64, f64),
) -> String {
    let mut message = format!(
        "reverse mode contradicts forward mode: <J v, u> = {left:?}, <v, J^T u> = {right:?}"
    );
    if let Some(input) = coordinate(direction) {
        let input = experiment.inputs[input];
        message += &format!("\n  where v is the direction of {input}");
    }
    if let Some(output) = coordinate(seed) {
        message += &format!("\n  where u selects {}", experiment.outputs[output]);
    }
    message
}

/// The one coordinate in which a direction points, if it is one.
fn coordinate(direction: &[f64]) -> Option<usize> {
    let mut nonzero = (0..direction.len()).filter(|&index| direction[index] != 0.0);
    let first = nonzero.next()?;
    nonzero.next().is_none().then_some(first)
}

fn check_gradient(
    experiment: &Experiment,
    derivatives: &Derivatives,
    point: &Point,
) -> Result<(), String> {
    let Some(expected) = &point.gradient else {
        return Ok(());
    };
    let seed = match &point.seed {
        Some(written) => experiment
            .read_seeds(written)
            .map_err(|error| format!("seed: {error}"))?,
        None => experiment.usual_seeds(),
    };
    let expected = experiment
        .read_gradient_text(expected)
        .map_err(|error| format!("gradient: {error}"))?;
    let actual = gradient(experiment, derivatives, &seed)?;
    for ((input, expected), actual) in experiment.inputs.iter().zip(expected).zip(actual) {
        let Some(expected) = expected else { continue };
        let tolerance = 1e-12_f64.max(64.0 * epsilon(input.scalar()));
        if !is_near(actual, expected, tolerance * expected.abs().max(1.0)) {
            return Err(format!(
                "the gradient of {input} is {actual:?}, expected {expected:?}"
            ));
        }
    }
    Ok(())
}

/// Compares numbers relative to the largest of them, and to 1.
fn compare(
    claim: &str,
    variables: &[Variable],
    actual: &[f64],
    expected: &[f64],
    tolerance: f64,
) -> Result<(), String> {
    let scale = expected
        .iter()
        .filter(|number| number.is_finite())
        .fold(1.0, |scale: f64, number| scale.max(number.abs()));
    for ((variable, &actual), &expected) in variables.iter().zip(actual).zip(expected) {
        if !is_near(actual, expected, tolerance * scale) {
            return Err(format!(
                "{claim} for {variable}: {actual:?} instead of {expected:?}"
            ));
        }
    }
    Ok(())
}

/// Whether two numbers are close; a NaN is close to nothing.
fn is_near(a: f64, b: f64, distance: f64) -> bool {
    (a - b).abs() <= distance
}

/// Each coordinate where there are few, then random directions in which each coordinate moves according to its size.
fn directions(point: &[f64], random: &mut Random) -> Vec<Vec<f64>> {
    let count = point.len();
    let coordinates = if count <= FEW { count } else { 0 };
    let mut directions: Vec<Vec<f64>> = (0..coordinates)
        .map(|one| {
            (0..count)
                .map(|other| f64::from(u8::from(one == other)))
                .collect()
        })
        .collect();
    for _ in 0..RANDOM {
        let sizes = point.iter().map(|x| x.abs().max(1.0));
        directions.push(sizes.map(|size| size * random.next()).collect());
    }
    directions
}

/// Numbers between -1 and 1 that are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}
