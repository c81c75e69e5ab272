//! Laws of second derivatives: derivatives of derivatives.
//!
//! H is the second derivative of ⟨u, outputs⟩, that is, the derivative of the gradient. Three ways lead to its product with a
//! direction: forward over reverse (how the gradient changes along it), reverse over forward (the gradient of the change along
//! it), and reverse over reverse (the gradient of the gradient, weighted with it). They must give the same.

use super::super::{Law, Violation};
use super::sweeps::{among, first_seeds, request, reverse_sweep, seeds, spread};
use super::{Experiment, Forward, Reverse, finite, refused, verified};
use crate::inputs::{Argument, floats_of, new_machine, place, read};
use crate::state::State;
use ferrozyme_diff::{Activity, Choices, Request, differentiate_forward, differentiate_reverse};
use ferrozyme_filetest::gradcheck::sweep::{
    call_forward, call_reverse, forward_arguments, reverse_arguments,
};
use ferrozyme_ir::interpret::{Datum, Fault, Machine, Pointer};
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
            self.sweep_forward_over_reverse(&module, derivative, &request, direction)
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
            .sweep_reverse_over_forward(&module, derivative, &request)
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
            .sweep_reverse_over_reverse(&module, derivative, &request, w)
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
        second: &Request,
        direction: &State,
    ) -> Result<State, Fault> {
        let (inputs, point) = (self.inputs, &self.inputs.state);
        let first = request(inputs, self.main, 1);
        let mut machine = new_machine(module);
        let blocks = place(&mut machine, &point.blocks);
        let tangents = place(&mut machine, &direction.blocks);
        let shadows = place(&mut machine, &self.u.blocks);
        let shadow_tangents = place(&mut machine, &point.zero_like().blocks);
        let seeds = first_seeds(inputs, &first, &self.u);
        let given = |state, at: &[Pointer], shadows: &[Pointer]| {
            let (data, shadows) = (inputs.data(state, at), inputs.data(point, shadows));
            reverse_arguments(&first, &data, &shadows, &seeds)
        };
        let arguments = given(point, &blocks, &shadows);
        let along = given(direction, &tangents, &shadow_tangents);
        let swept = call_forward(&mut machine, derivative, second, &arguments, &[along])?;
        machine.check_leaks()?;
        // The tangents of the program's own results come first, those of the gradient behind them.
        let changes = floats_of(&swept.tangents[0]).split_off(inputs.active_results.len());
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
        second: &Request,
    ) -> Result<State, Fault> {
        let (inputs, point) = (self.inputs, &self.inputs.state);
        let first = request(inputs, self.main, 1);
        let mut machine = new_machine(module);
        let blocks = place(&mut machine, &point.blocks);
        let gradients = place(&mut machine, &point.zero_like().blocks);
        let tangents = place(&mut machine, &self.v.blocks);
        let weights = place(&mut machine, &self.u.blocks);
        let given = |at: &[Pointer], tangents: &[Pointer]| {
            let tangents = inputs.data(&self.v, tangents);
            forward_arguments(&first, &inputs.data(point, at), &[tangents])
        };
        let of_tangent = among(&inputs.active_results, &self.u);
        let arguments = reverse_arguments(
            second,
            &given(&blocks, &tangents),
            &given(&gradients, &weights),
            &self.second_seeds(module, second, of_tangent),
        );
        self.second_gradient(&mut machine, derivative, second, &arguments, &gradients)
    }

    /// The gradient of ⟨w, gradient⟩.
    fn sweep_reverse_over_reverse(
        &self,
        module: &Module,
        derivative: FunctionId,
        second: &Request,
        w: &State,
    ) -> Result<State, Fault> {
        let (inputs, point) = (self.inputs, &self.inputs.state);
        let first = request(inputs, self.main, 1);
        let mut machine = new_machine(module);
        let blocks = place(&mut machine, &point.blocks);
        let gradients = place(&mut machine, &point.zero_like().blocks);
        let shadows = place(&mut machine, &self.u.blocks);
        let weights = place(&mut machine, &w.blocks);
        let seeds = first_seeds(inputs, &first, &self.u);
        let given = |at: &[Pointer], shadows: &[Pointer]| {
            let data = [at, shadows].map(|at| inputs.data(point, at));
            reverse_arguments(&first, &data[0], &data[1], &seeds)
        };
        let active = inputs.active_floats();
        let arguments = reverse_arguments(
            second,
            &given(&blocks, &shadows),
            &given(&gradients, &weights),
            &self.second_seeds(module, second, among(&active, w)),
        );
        self.second_gradient(&mut machine, derivative, second, &arguments, &gradients)
    }

    /// Seeds of zero for the program's own results, which a first derivative gives before anything else, and these for the rest.
    fn second_seeds(
        &self,
        module: &Module,
        second: &Request,
        rest: impl Iterator<Item = f64>,
    ) -> Vec<Datum> {
        let own = self.inputs.active_results.iter().map(|_| 0.0);
        let results = &module.functions[second.function].results;
        seeds(results, second, own.chain(rest))
    }

    /// The gradient that a reverse derivative of a first derivative gives.
    fn second_gradient(
        &self,
        machine: &mut Machine<'_>,
        derivative: FunctionId,
        second: &Request,
        arguments: &[Datum],
        gradients: &[Pointer],
    ) -> Result<State, Fault> {
        let (_, floats) = call_reverse(machine, derivative, second, arguments)?;
        machine.check_leaks()?;
        Ok(State {
            floats: spread(&self.inputs.active_floats(), floats_of(&floats)),
            blocks: read(machine, gradients, &self.inputs.state.blocks)?,
        })
    }
}
