//! Laws of second derivatives: derivatives of derivatives.
//!
//! H is the second derivative of ⟨u, outputs⟩, that is, the derivative of the gradient. Three ways lead to its product with a
//! direction: forward over reverse (how the gradient changes along it), reverse over forward (the gradient of the change along
//! it), and reverse over reverse (the gradient of the gradient, weighted with it). They must give the same.

use super::super::{Law, Violation};
use super::sweeps::{reverse_sweep, seeds, spread};
use super::{Experiment, Forward, Reverse, finite, refused, verified};
use crate::inputs::{Argument, Inputs, datum, floats_of, new_machine, place, read};
use crate::state::State;
use ferrozyme_diff::{Activity, Choices, Request, differentiate_forward, differentiate_reverse};
use ferrozyme_ir::interpret::{Datum, Fault, Pointer};
use ferrozyme_ir::{FunctionId, Module};

impl Experiment<'_> {
    /// Forward over reverse gives a symmetric H that agrees with differences of the gradient; none where those are not
    /// smooth. Gives H·v and H·w.
    pub(super) fn forward_over_reverse(
        &self,
        reverse: &Reverse,
        w: &State,
    ) -> Result<(bool, State, State), Violation> {
        let law = Law::ForwardOverReverse;
        let mut module = reverse.module.clone();
        let request = self.second_request(&module, reverse.derivative, Activity::Active);
        let derivative = differentiate_forward(&mut module, &request)
            .map_err(|error| refused(law, "forward over reverse mode", &error))?;
        verified(law, self.module, &module, derivative)?;
        let product = |direction: &State| {
            self.sweep_forward_over_reverse(&module, derivative, direction)
                .map_err(|fault| Violation::fault(law, "forward over reverse fails", &fault))
        };
        let (of_v, of_w) = (product(&self.v)?, product(w)?);
        finite(law, "the second derivative", &of_v)?;
        self.products_agree(law, ["⟨w, H·v⟩", "⟨v, H·w⟩"], (w, &of_v), (&self.v, &of_w))?;
        let run = |factor: f64| {
            let point = self.inputs.state.moved(factor, &self.v);
            let (module, derivative) = (&reverse.module, reverse.derivative);
            let sweep = reverse_sweep(module, derivative, self.inputs, &point, &self.u);
            sweep.map(|(_, gradient)| gradient)
        };
        let smooth = self.compare_with_differences(law, &of_v, &reverse.gradient, run)?;
        Ok((smooth, of_v, of_w))
    }

    /// Reverse over forward yields the same H·v.
    pub(super) fn reverse_over_forward(
        &self,
        forward: &Forward,
        of_v: &State,
    ) -> Result<(), Violation> {
        let law = Law::ReverseOverForward;
        let mut module = forward.module.clone();
        let request = self.second_request(&module, forward.derivative, Activity::Const);
        let derivative = differentiate_reverse(&mut module, &request)
            .map_err(|error| refused(law, "reverse over forward mode", &error))?;
        verified(law, self.module, &module, derivative)?;
        let product = self
            .sweep_reverse_over_forward(&module, derivative)
            .map_err(|fault| Violation::fault(law, "reverse over forward fails", &fault))?;
        self.close(law, "H·v", of_v, &product)
    }

    /// Reverse over reverse yields the same H·w.
    pub(super) fn reverse_over_reverse(
        &self,
        reverse: &Reverse,
        w: &State,
        of_w: &State,
    ) -> Result<(), Violation> {
        let law = Law::ReverseOverReverse;
        let mut module = reverse.module.clone();
        let request = self.second_request(&module, reverse.derivative, Activity::Active);
        let derivative = differentiate_reverse(&mut module, &request)
            .map_err(|error| refused(law, "reverse over reverse mode", &error))?;
        verified(law, self.module, &module, derivative)?;
        let product = self
            .sweep_reverse_over_reverse(&module, derivative, w)
            .map_err(|fault| Violation::fault(law, "reverse over reverse fails", &fault))?;
        self.close(law, "H·w", of_w, &product)
    }

    /// The request for a derivative of a first derivative. A forward derivative has a tangent behind each active float,
    /// which is held constant; seeds at the end are, too.
    fn second_request(&self, module: &Module, first: FunctionId, floats: Activity) -> Request {
        let mut args = Vec::new();
        for (argument, &active) in self.inputs.arguments.iter().zip(&self.inputs.active) {
            match (argument, floats) {
                _ if !active => args.push(Activity::Const),
                (Argument::Array { .. }, _) => args.extend([Activity::Duplicated; 2]),
                (Argument::Float(..), Activity::Active) => args.push(Activity::Active),
                (Argument::Float(..), _) => args.extend([Activity::Active, Activity::Const]),
                (Argument::Int(..), _) => args.push(Activity::Const),
            }
        }
        args.resize(module.functions[first].params.len(), Activity::Const);
        let results = &module.functions[first].results;
        let activity = |active| match active {
            true => Activity::Active,
            false => Activity::Const,
        };
        Request {
            function: first,
            args,
            results: results.iter().map(|ty| activity(ty.is_float())).collect(),
            primal: false,
            width: 1,
            discarded: Vec::new(),
            keep_order: false,
            shaped: Vec::new(),
            choices: Choices::default(),
        }
    }

    /// How the gradient changes along a direction.
    fn sweep_forward_over_reverse(
        &self,
        module: &Module,
        derivative: FunctionId,
        direction: &State,
    ) -> Result<State, Fault> {
        let (inputs, point) = (self.inputs, &self.inputs.state);
        let mut machine = new_machine(module);
        let blocks = place(&mut machine, &point.blocks);
        let tangents = place(&mut machine, &direction.blocks);
        let shadows = place(&mut machine, &self.u.blocks);
        let shadow_tangents = place(&mut machine, &point.zero_like().blocks);
        let mut arguments = Vec::new();
        for (argument, active) in arguments_of(inputs) {
            arguments.push(datum(argument, point, &blocks));
            if active {
                arguments.push(datum(argument, direction, &tangents));
                if let Argument::Array { .. } = argument {
                    arguments.push(datum(argument, point, &shadows));
                    arguments.push(datum(argument, point, &shadow_tangents));
                }
            }
        }
        arguments.extend(seeds(module, derivative, &arguments, inputs, &self.u));
        let results = machine.call(derivative, &arguments)?;
        machine.check_leaks()?;
        // The tangents of the program's own results come first, those of the gradient behind them.
        let changes = floats_of(&results).split_off(inputs.active_results.len());
        Ok(State {
            floats: spread(&inputs.active_floats(), changes),
            blocks: read(&machine, &shadow_tangents, &point.blocks)?,
        })
    }

    /// The gradient of ⟨u, J·v⟩.
    fn sweep_reverse_over_forward(
        &self,
        module: &Module,
        derivative: FunctionId,
    ) -> Result<State, Fault> {
        let (inputs, point) = (self.inputs, &self.inputs.state);
        let mut machine = new_machine(module);
        let blocks = place(&mut machine, &point.blocks);
        let gradients = place(&mut machine, &point.zero_like().blocks);
        let tangents = place(&mut machine, &self.v.blocks);
        let weights = place(&mut machine, &self.u.blocks);
        let mut arguments = Vec::new();
        for (argument, active) in arguments_of(inputs) {
            match argument {
                Argument::Array { .. } if active => {
                    for place in [&blocks, &gradients, &tangents, &weights] {
                        arguments.push(datum(argument, point, place));
                    }
                }
                _ => {
                    arguments.push(datum(argument, point, &blocks));
                    if active {
                        arguments.push(datum(argument, &self.v, &blocks));
                    }
                }
            }
        }
        arguments.extend(no_seeds(module, derivative, &arguments, inputs));
        arguments.extend(seeds(module, derivative, &arguments, inputs, &self.u));
        let results = machine.call(derivative, &arguments)?;
        machine.check_leaks()?;
        second_gradient(&machine, inputs, &results, &gradients)
    }

    /// The gradient of ⟨w, gradient⟩.
    fn sweep_reverse_over_reverse(
        &self,
        module: &Module,
        derivative: FunctionId,
        w: &State,
    ) -> Result<State, Fault> {
        let (inputs, point) = (self.inputs, &self.inputs.state);
        let mut machine = new_machine(module);
        let blocks = place(&mut machine, &point.blocks);
        let gradients = place(&mut machine, &point.zero_like().blocks);
        let shadows = place(&mut machine, &self.u.blocks);
        let weights = place(&mut machine, &w.blocks);
        let mut arguments = Vec::new();
        for (argument, active) in arguments_of(inputs) {
            match argument {
                Argument::Array { .. } if active => {
                    for place in [&blocks, &gradients, &shadows, &weights] {
                        arguments.push(datum(argument, point, place));
                    }
                }
                _ => arguments.push(datum(argument, point, &blocks)),
            }
        }
        arguments.extend(seeds(module, derivative, &arguments, inputs, &self.u));
        arguments.extend(no_seeds(module, derivative, &arguments, inputs));
        let params = module.functions[derivative].params.iter();
        let params = params.skip(arguments.len());
        let floats = w.floats.iter().zip(inputs.active_floats());
        let floats = floats.filter(|(_, active)| *active);
        let of_gradient: Vec<Datum> = params
            .zip(floats)
            .filter_map(|(param, (&weight, _))| Datum::float(param.ty.scalar(), weight))
            .collect();
        arguments.extend(of_gradient);
        let results = machine.call(derivative, &arguments)?;
        machine.check_leaks()?;
        second_gradient(&machine, inputs, &results, &gradients)
    }
}

/// Each argument, and whether it is active.
fn arguments_of(inputs: &Inputs) -> impl Iterator<Item = (&Argument, bool)> {
    inputs.arguments.iter().zip(inputs.active.iter().copied())
}

/// Seeds of zero for the program's own results, which a first derivative returns before anything else.
fn no_seeds(module: &Module, function: FunctionId, given: &[Datum], inputs: &Inputs) -> Vec<Datum> {
    let params = module.functions[function].params.iter().skip(given.len());
    params
        .take(inputs.active_results.len())
        .filter_map(|param| Datum::float(param.ty.scalar(), 0.0))
        .collect()
}

/// The gradient that a reverse derivative of a first derivative computes.
fn second_gradient(
    machine: &ferrozyme_ir::interpret::Machine<'_>,
    inputs: &Inputs,
    results: &[Datum],
    gradients: &[Pointer],
) -> Result<State, Fault> {
    Ok(State {
        floats: spread(&inputs.active_floats(), floats_of(results)),
        blocks: read(machine, gradients, &inputs.state.blocks)?,
    })
}
