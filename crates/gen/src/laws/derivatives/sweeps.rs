//! Runs derivatives: lays out shadows, seeds and tangents as the signatures of derivatives ask for them.

use crate::inputs::{Argument, Inputs, datum, floats_of, new_machine, place, read};
use crate::state::State;
use ferrozyme_diff::{Activity, Choices, Request};
use ferrozyme_ir::interpret::{Datum, Fault, Pointer};
use ferrozyme_ir::{FunctionId, Module};

/// The request for a derivative with respect to everything active.
pub(super) fn request(inputs: &Inputs, module: &Module, main: FunctionId, width: u32) -> Request {
    let args = inputs.arguments.iter().zip(&inputs.active);
    Request {
        function: main,
        args: args
            .map(|(argument, &active)| match argument {
                _ if !active => Activity::Const,
                Argument::Array { .. } => Activity::Duplicated,
                Argument::Float(..) => Activity::Active,
                Argument::Int(..) => Activity::Const,
            })
            .collect(),
        results: result_activities(module, main, inputs),
        primal: true,
        width,
        discarded: Vec::new(),
        keep_order: false,
        shaped: Vec::new(),
        choices: Choices::default(),
    }
}

fn result_activities(module: &Module, main: FunctionId, inputs: &Inputs) -> Vec<Activity> {
    let mut active = inputs.active_results.iter();
    let results = &module.functions[main].results;
    results
        .iter()
        .map(|ty| match ty.is_float() && active.next() == Some(&true) {
            true => Activity::Active,
            false => Activity::Const,
        })
        .collect()
}

/// Runs a forward derivative: the program's outputs, and the tangent of the outputs for each direction.
pub(super) fn forward_sweep(
    module: &Module,
    derivative: FunctionId,
    inputs: &Inputs,
    point: &State,
    directions: &[State],
) -> Result<(State, Vec<State>), Fault> {
    let mut machine = new_machine(module);
    let blocks = place(&mut machine, &point.blocks);
    let shadows: Vec<Vec<Pointer>> = directions
        .iter()
        .map(|direction| place(&mut machine, &direction.blocks))
        .collect();
    let mut arguments = Vec::new();
    for (argument, &active) in inputs.arguments.iter().zip(&inputs.active) {
        arguments.push(datum(argument, point, &blocks));
        if active {
            for (direction, shadow) in directions.iter().zip(&shadows) {
                arguments.push(datum(argument, direction, shadow));
            }
        }
    }
    let results = machine.call(derivative, &arguments)?;
    machine.check_leaks()?;
    let mut floats = floats_of(&results);
    let changes = floats.split_off(inputs.active_results.len());
    let primal = State {
        floats,
        blocks: read(&machine, &blocks, &point.blocks)?,
    };
    let mut tangents = Vec::new();
    for (number, shadow) in shadows.iter().enumerate() {
        let of_this = changes.iter().copied().skip(number).step_by(shadows.len());
        tangents.push(State {
            floats: spread(&inputs.active_results, of_this),
            blocks: read(&machine, shadow, &point.blocks)?,
        });
    }
    Ok((primal, tangents))
}

/// Runs a combined reverse derivative: the program's outputs, and the gradient for these weights of the outputs.
pub(super) fn reverse_sweep(
    module: &Module,
    derivative: FunctionId,
    inputs: &Inputs,
    point: &State,
    weights: &State,
) -> Result<(State, State), Fault> {
    let mut machine = new_machine(module);
    let blocks = place(&mut machine, &point.blocks);
    let shadows = place(&mut machine, &weights.blocks);
    let mut arguments = duplicated(inputs, point, &blocks, &shadows);
    arguments.extend(seeds(module, derivative, &arguments, inputs, weights));
    let results = machine.call(derivative, &arguments)?;
    machine.check_leaks()?;
    let mut floats = floats_of(&results);
    let gradients = floats.split_off(inputs.active_results.len());
    let primal = State {
        floats,
        blocks: read(&machine, &blocks, &point.blocks)?,
    };
    let gradient = State {
        floats: spread(&inputs.active_floats(), gradients),
        blocks: read(&machine, &shadows, &point.blocks)?,
    };
    Ok((primal, gradient))
}

/// The results of a split derivative.
pub(super) struct SplitSweep {
    /// The program's outputs, as the augmented function returns them.
    pub(super) primal: State,
    /// The gradient.
    pub(super) gradient: State,
}

/// Runs a split reverse derivative.
pub(super) fn split_sweep(
    module: &Module,
    augmented: FunctionId,
    reverse: FunctionId,
    inputs: &Inputs,
    point: &State,
    weights: &State,
) -> Result<SplitSweep, Fault> {
    let mut machine = new_machine(module);
    let blocks = place(&mut machine, &point.blocks);
    // The weights of the memory come into being between the two sweeps, as they do in a program.
    let shadows = place(&mut machine, &weights.zero_like().blocks);
    let mut arguments = duplicated(inputs, point, &blocks, &shadows);
    let mut results = machine.call(augmented, &arguments)?;
    let tape = results.pop();
    let primal = State {
        floats: floats_of(&results),
        blocks: read(&machine, &blocks, &point.blocks)?,
    };
    for (&shadow, block) in shadows.iter().zip(&weights.blocks) {
        machine.write_f64s(shadow, block)?;
    }
    arguments.extend(seeds(module, reverse, &arguments, inputs, weights));
    arguments.extend(tape);
    let gradients = machine.call(reverse, &arguments)?;
    machine.check_leaks()?;
    let gradient = State {
        floats: spread(&inputs.active_floats(), floats_of(&gradients)),
        blocks: read(&machine, &shadows, &point.blocks)?,
    };
    Ok(SplitSweep { primal, gradient })
}

/// The arguments, those with memory followed by their shadow.
pub(super) fn duplicated(
    inputs: &Inputs,
    point: &State,
    blocks: &[Pointer],
    shadows: &[Pointer],
) -> Vec<Datum> {
    let mut arguments = Vec::new();
    for (argument, &active) in inputs.arguments.iter().zip(&inputs.active) {
        arguments.push(datum(argument, point, blocks));
        if let (Argument::Array { .. }, true) = (argument, active) {
            arguments.push(datum(argument, point, shadows));
        }
    }
    arguments
}

/// The weights of the active results, in the types of the parameters that follow those already given.
pub(super) fn seeds(
    module: &Module,
    function: FunctionId,
    given: &[Datum],
    inputs: &Inputs,
    weights: &State,
) -> Vec<Datum> {
    let params = module.functions[function].params.iter().skip(given.len());
    let active = weights.floats.iter().zip(&inputs.active_results);
    let active = active.filter(|&(_, &active)| active);
    params
        .zip(active)
        .filter_map(|(param, (&weight, _))| Datum::float(param.ty.scalar(), weight))
        .collect()
}

/// Numbers for those that are active at their places among all, zeros between them.
pub(super) fn spread(active: &[bool], numbers: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut numbers = numbers.into_iter();
    active
        .iter()
        .map(|&active| match active {
            true => numbers.next().unwrap_or(f64::NAN),
            false => 0.0,
        })
        .collect()
}
