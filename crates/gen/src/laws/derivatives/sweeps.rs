//! Runs derivatives: lays out shadows, seeds and tangents as the signatures of derivatives ask for them.

use crate::inputs::{Argument, Inputs, datum, floats_of, new_machine, place, read};
use crate::state::State;
use ferrozyme_diff::{Activity, Request};
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
        results: result_activities(module, main),
        primal: true,
        width,
    }
}

fn result_activities(module: &Module, function: FunctionId) -> Vec<Activity> {
    let results = &module.functions[function].results;
    results
        .iter()
        .map(|ty| {
            if ty.is_float() {
                Activity::Active
            } else {
                Activity::Const
            }
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
    let floats = floats_of(&results);
    let count = floats.len() / (1 + directions.len());
    let primal = State {
        floats: floats[..count].to_vec(),
        blocks: read(&machine, &blocks, &point.blocks)?,
    };
    let mut tangents = Vec::new();
    for (number, shadow) in shadows.iter().enumerate() {
        tangents.push(State {
            floats: (0..count)
                .map(|result| floats[count + result * directions.len() + number])
                .collect(),
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
    arguments.extend(seeds(module, derivative, &arguments, weights));
    let results = machine.call(derivative, &arguments)?;
    machine.check_leaks()?;
    let mut floats = floats_of(&results);
    let gradients = floats.split_off(weights.floats.len());
    let primal = State {
        floats,
        blocks: read(&machine, &blocks, &point.blocks)?,
    };
    let gradient = State {
        floats: spread(inputs, &gradients),
        blocks: read(&machine, &shadows, &point.blocks)?,
    };
    Ok((primal, gradient))
}

/// What a split derivative gives.
pub(super) struct SplitSweep {
    /// The program's outputs, as the augmented function gives them.
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
    arguments.extend(seeds(module, reverse, &arguments, weights));
    arguments.extend(tape);
    let gradients = machine.call(reverse, &arguments)?;
    machine.check_leaks()?;
    let gradient = State {
        floats: spread(inputs, &floats_of(&gradients)),
        blocks: read(&machine, &shadows, &point.blocks)?,
    };
    Ok(SplitSweep { primal, gradient })
}

/// The request for the forward derivative of a combined reverse derivative, weights held constant.
pub(super) fn hessian_request(inputs: &Inputs, module: &Module, reverse: FunctionId) -> Request {
    let mut args = Vec::new();
    for (argument, &active) in inputs.arguments.iter().zip(&inputs.active) {
        match argument {
            _ if !active => args.push(Activity::Const),
            Argument::Array { .. } => args.extend([Activity::Duplicated; 2]),
            Argument::Float(..) => args.push(Activity::Active),
            Argument::Int(..) => args.push(Activity::Const),
        }
    }
    let params = module.functions[reverse].params.len();
    args.resize(params, Activity::Const);
    Request {
        function: reverse,
        args,
        results: result_activities(module, reverse),
        primal: false,
        width: 1,
    }
}

/// Runs the forward derivative of a combined reverse derivative: how the gradient changes along a direction.
pub(super) fn hessian_sweep(
    module: &Module,
    derivative: FunctionId,
    inputs: &Inputs,
    point: &State,
    weights: &State,
    direction: &State,
) -> Result<State, Fault> {
    let mut machine = new_machine(module);
    let blocks = place(&mut machine, &point.blocks);
    let block_tangents = place(&mut machine, &direction.blocks);
    let shadows = place(&mut machine, &weights.blocks);
    let shadow_tangents = place(&mut machine, &weights.zero_like().blocks);
    let mut arguments = Vec::new();
    for (argument, &active) in inputs.arguments.iter().zip(&inputs.active) {
        arguments.push(datum(argument, point, &blocks));
        if !active {
            continue;
        }
        arguments.push(datum(argument, direction, &block_tangents));
        if let Argument::Array { .. } = argument {
            arguments.push(datum(argument, weights, &shadows));
            arguments.push(datum(argument, weights, &shadow_tangents));
        }
    }
    arguments.extend(seeds(module, derivative, &arguments, weights));
    let results = machine.call(derivative, &arguments)?;
    machine.check_leaks()?;
    // The tangents of the program's own results come first, those of the gradient behind them.
    let tangents = floats_of(&results).split_off(weights.floats.len());
    Ok(State {
        floats: spread(inputs, &tangents),
        blocks: read(&machine, &shadow_tangents, &point.blocks)?,
    })
}

/// The arguments, those with memory followed by their shadow.
fn duplicated(
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

/// The weights of the results, in the types of the parameters that follow those already given.
fn seeds(module: &Module, function: FunctionId, given: &[Datum], weights: &State) -> Vec<Datum> {
    let params = module.functions[function].params.iter().skip(given.len());
    params
        .zip(&weights.floats)
        .filter_map(|(param, &weight)| Datum::float(param.ty.scalar(), weight))
        .collect()
}

/// The gradients of active floats at their places among all float arguments.
fn spread(inputs: &Inputs, gradients: &[f64]) -> Vec<f64> {
    let mut gradients = gradients.iter().copied();
    let arguments = inputs.arguments.iter().zip(&inputs.active);
    arguments
        .filter_map(|(argument, &active)| match argument {
            Argument::Float(..) if active => Some(gradients.next().unwrap_or(f64::NAN)),
            Argument::Float(..) => Some(0.0),
            _ => None,
        })
        .collect()
}
