//! Calls derivatives: what they are given, and which of their results are what. File tests and the laws of random programs share this.
//!
//! Who calls lays out memory, and says of each argument of the function what it, its shadow or its tangent is. Shadows and tangents of arguments that have none are not looked at.

use ferrozyme_diff::{Activity, Request};
use ferrozyme_ir::FunctionId;
use ferrozyme_ir::interpret::{Datum, Fault, Machine};

/// What a forward derivative gives.
#[derive(Clone, Debug)]
pub struct Tangents {
    /// The function's results, if they are asked for.
    pub primal: Vec<Datum>,
    /// For each direction, the tangents of the results that are not constant.
    pub tangents: Vec<Vec<Datum>>,
}

/// The arguments of a forward derivative: each that is not constant is followed by its tangent in each direction.
pub fn forward_arguments(
    request: &Request,
    arguments: &[Datum],
    tangents: &[Vec<Datum>],
) -> Vec<Datum> {
    let mut all = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        all.push(argument.clone());
        if request.args[index] != Activity::Const {
            all.extend(tangents.iter().map(|tangents| tangents[index].clone()));
        }
    }
    all
}

/// Runs a forward derivative that carries as many tangents as there are directions.
pub fn call_forward(
    machine: &mut Machine<'_>,
    derivative: FunctionId,
    request: &Request,
    arguments: &[Datum],
    tangents: &[Vec<Datum>],
) -> Result<Tangents, Fault> {
    let width = tangents.len();
    let arguments = forward_arguments(request, arguments, tangents);
    let mut primal = machine.call(derivative, &arguments)?;
    let changes = primal.split_off(match request.primal {
        true => request.results.len(),
        false => 0,
    });
    let active = request.results.iter().filter(|&&a| a != Activity::Const);
    assert_eq!(changes.len(), width * active.count(), "tangents of results");
    let of_direction = |number| {
        changes
            .iter()
            .skip(number)
            .step_by(width)
            .cloned()
            .collect()
    };
    Ok(Tangents {
        primal,
        tangents: (0..width).map(of_direction).collect(),
    })
}

/// The arguments of a reverse derivative, and without seeds those of the first half of a split one: each that has a shadow is followed by it, and the seeds of active results come last.
pub fn reverse_arguments(
    request: &Request,
    arguments: &[Datum],
    shadows: &[Datum],
    seeds: &[Datum],
) -> Vec<Datum> {
    let mut all = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        all.push(argument.clone());
        if request.args[index] == Activity::Duplicated {
            all.push(shadows[index].clone());
        }
    }
    all.extend_from_slice(seeds);
    all
}

/// Runs a reverse derivative on its arguments: what it gives of the function's results, and the gradients of active arguments.
pub fn call_reverse(
    machine: &mut Machine<'_>,
    derivative: FunctionId,
    request: &Request,
    arguments: &[Datum],
) -> Result<(Vec<Datum>, Vec<Datum>), Fault> {
    let mut primal = machine.call(derivative, arguments)?;
    let active = request.args.iter().filter(|&&a| a == Activity::Active);
    let first = primal.len().checked_sub(active.count());
    let gradients = primal.split_off(first.expect("there is a gradient for each active argument"));
    Ok((primal, gradients))
}

/// Runs the first half of a split derivative on its arguments: the function's results, and the tape, which the arguments of the second half end in.
pub fn call_augmented(
    machine: &mut Machine<'_>,
    augmented: FunctionId,
    request: &Request,
    arguments: &[Datum],
) -> Result<(Vec<Datum>, Datum), Fault> {
    let mut primal = machine.call(augmented, arguments)?;
    let tape = primal.pop().expect("there is a tape");
    // The shadows of pointers that are results come between.
    primal.truncate(request.results.len());
    Ok((primal, tape))
}
