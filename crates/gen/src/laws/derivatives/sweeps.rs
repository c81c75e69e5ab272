//! Runs derivatives: lays out shadows, seeds and tangents as the signatures of derivatives ask for them.

use crate::inputs::{Argument, Inputs, floats_of, new_machine, place, read};
use crate::state::State;
use ferrozyme_diff::{Activity, Choices, Request, Split};
use ferrozyme_filetest::gradcheck::sweep::{
    call_augmented, call_forward, call_reverse, reverse_arguments,
};
use ferrozyme_ir::interpret::{Datum, Fault, Pointer};
use ferrozyme_ir::{FunctionId, Module, Type};

/// The request for a derivative with respect to everything active.
pub(super) fn request(inputs: &Inputs, main: FunctionId, width: u32) -> Request {
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
        results: result_activities(inputs),
        primal: true,
        width,
        discarded: Vec::new(),
        keep_order: false,
        shaped: Vec::new(),
        choices: Choices::default(),
    }
}

fn result_activities(inputs: &Inputs) -> Vec<Activity> {
    let mut active = inputs.active_results.iter();
    let results = inputs.results.iter();
    results
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
    let arguments = inputs.data(point, &blocks);
    let tangents = directions.iter().zip(&shadows);
    let tangents: Vec<Vec<Datum>> = tangents.map(|(v, at)| inputs.data(v, at)).collect();
    let request = request(inputs, inputs.main, directions.len() as u32);
    let swept = call_forward(&mut machine, derivative, &request, &arguments, &tangents)?;
    machine.check_leaks()?;
    let primal = State {
        floats: floats_of(&swept.primal),
        blocks: read(&machine, &blocks, &point.blocks)?,
    };
    let mut tangents = Vec::new();
    for (shadow, changes) in shadows.iter().zip(&swept.tangents) {
        tangents.push(State {
            floats: spread(&inputs.active_results, floats_of(changes)),
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
    let request = request(inputs, inputs.main, 1);
    let arguments = reverse_arguments(
        &request,
        &inputs.data(point, &blocks),
        &inputs.data(point, &shadows),
        &first_seeds(inputs, &request, weights),
    );
    let (primal, gradients) = call_reverse(&mut machine, derivative, &request, &arguments)?;
    machine.check_leaks()?;
    let primal = State {
        floats: floats_of(&primal),
        blocks: read(&machine, &blocks, &point.blocks)?,
    };
    let gradient = State {
        floats: spread(&inputs.active_floats(), floats_of(&gradients)),
        blocks: read(&machine, &shadows, &point.blocks)?,
    };
    Ok((primal, gradient))
}

/// Runs a split reverse derivative: the program's outputs, as the augmented function gives them, and the gradient.
pub(super) fn split_sweep(
    module: &Module,
    split: Split,
    inputs: &Inputs,
    point: &State,
    weights: &State,
) -> Result<(State, State), Fault> {
    let mut machine = new_machine(module);
    let blocks = place(&mut machine, &point.blocks);
    // The weights of the memory come into being between the two sweeps, as they do in a program.
    let shadows = place(&mut machine, &weights.zero_like().blocks);
    let request = request(inputs, inputs.main, 1);
    let data = [&blocks, &shadows].map(|at| inputs.data(point, at));
    let mut arguments = reverse_arguments(&request, &data[0], &data[1], &[]);
    let (primal, tape) = call_augmented(&mut machine, split.augmented, &request, &arguments)?;
    let primal = State {
        floats: floats_of(&primal),
        blocks: read(&machine, &blocks, &point.blocks)?,
    };
    for (&shadow, block) in shadows.iter().zip(&weights.blocks) {
        machine.write_f64s(shadow, block)?;
    }
    arguments.extend(first_seeds(inputs, &request, weights));
    arguments.push(tape);
    let (_, gradients) = call_reverse(&mut machine, split.reverse, &request, &arguments)?;
    machine.check_leaks()?;
    let gradient = State {
        floats: spread(&inputs.active_floats(), floats_of(&gradients)),
        blocks: read(&machine, &shadows, &point.blocks)?,
    };
    Ok((primal, gradient))
}

/// Weights of the program's active results, in their types.
pub(super) fn first_seeds(inputs: &Inputs, request: &Request, weights: &State) -> Vec<Datum> {
    seeds(
        &inputs.results,
        request,
        among(&inputs.active_results, weights),
    )
}

/// The floats of a state that are active.
pub(super) fn among(active: &[bool], state: &State) -> impl Iterator<Item = f64> {
    let floats = state.floats.iter().zip(active);
    floats
        .filter(|(_, active)| **active)
        .map(|(float, _)| *float)
}

/// Weights of the active results, in their types.
pub(super) fn seeds(
    results: &[Type],
    request: &Request,
    weights: impl IntoIterator<Item = f64>,
) -> Vec<Datum> {
    let results = results.iter().zip(&request.results);
    let active = results.filter(|(_, activity)| **activity == Activity::Active);
    let weighted = active.zip(weights);
    weighted
        .filter_map(|((ty, _), weight)| Datum::float(ty.scalar(), weight))
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
