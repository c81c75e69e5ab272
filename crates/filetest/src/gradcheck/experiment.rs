//! One function at one point: runs it and its derivatives, and reads off the numbers.
//!
//! The function is seen as a map between lists of numbers. Its inputs are the active arguments and the floats in
//! duplicated memory before the call; its outputs are the active results and the floats in duplicated memory after it.
//! Forward mode then is `J·v`, reverse mode `Jᵀ·u`, where tangents and seeds of memory are in its shadow.

use super::shadow::{Shadow, find_shadowed, place_shadow};
use super::sweep::{call_augmented, call_forward, call_reverse, reverse_arguments};
use super::variable::{Place, Variable, epsilon, zero};
use crate::arguments::{Arguments, Target, place_arguments};
use crate::value::Written;
use ferrozyme_diff::{Activity, Request, Split};
use ferrozyme_ir::interpret::{Datum, Machine};
use ferrozyme_ir::{FunctionId, Module, Type};

/// A function, a request for its derivative, and arguments.
pub struct Experiment<'a> {
    module: &'a Module,
    /// As derivatives are made for it: with the function's results.
    request: Request,
    written: &'a [Written],
    /// The places of the inputs.
    pub inputs: Vec<Variable>,
    /// Their values.
    pub point: Vec<f64>,
    /// The places of the outputs.
    pub outputs: Vec<Variable>,
    /// Their values.
    pub values: Vec<f64>,
    /// How many pieces of the heap the function itself leaves behind.
    kept: usize,
}

/// The state after a call.
struct Finished<'m> {
    machine: Machine<'m>,
    results: Vec<Datum>,
}

impl<'a> Experiment<'a> {
    /// Finds inputs and outputs, by running the function once.
    pub fn new(
        module: &'a Module,
        request: &'a Request,
        written: &'a [Written],
    ) -> Result<Experiment<'a>, String> {
        let function = &module.functions[request.function];
        if request.args.len() != function.params.len()
            || request.results.len() != function.results.len()
        {
            return Err(format!(
                "@{} has {} parameters and {} results, but activities are given for {} and {}",
                function.name,
                function.params.len(),
                function.results.len(),
                request.args.len(),
                request.results.len()
            ));
        }
        let mut experiment = Experiment {
            module,
            request: Request {
                primal: true,
                ..request.clone()
            },
            written,
            inputs: Vec::new(),
            point: Vec::new(),
            outputs: Vec::new(),
            values: Vec::new(),
            kept: 0,
        };
        let (machine, arguments) = experiment.start(module, &[])?;
        experiment.find_inputs(&machine, &arguments);
        let finished = call(machine, request.function, &arguments.data)
            .map_err(|error| format!("the function itself fails: {error}"))?;
        experiment.kept = finished.machine.live_heap().0;
        experiment.find_outputs(&finished, &arguments);
        Ok(experiment)
    }

    /// The outputs at a point.
    pub fn primal(&self, point: &[f64]) -> Result<Vec<f64>, String> {
        let (machine, arguments) = self.start(self.module, point)?;
        let finished = call(machine, self.request.function, &arguments.data)?;
        self.outputs
            .iter()
            .map(|output| {
                output.read(&finished.results, &finished.machine, |target| {
                    Some(arguments.blocks[target.block].at.offset(target.offset))
                })
            })
            .collect()
    }

    /// `J·v` for each direction `v`, by one call of a derivative that carries as many tangents and gives the primal
    /// results too, which must be those of the function.
    pub fn forward(
        &self,
        module: &Module,
        derivative: FunctionId,
        directions: &[Vec<f64>],
    ) -> Result<Vec<Vec<f64>>, String> {
        let (mut machine, arguments) = self.start(module, &self.point)?;
        let (mut shadows, mut tangents) = (Vec::new(), Vec::new());
        for direction in directions {
            let shadow = place_shadow(&mut machine, &arguments, &self.request.args)?;
            for (input, &tangent) in self.inputs.iter().zip(direction) {
                input.write_to_memory(&mut machine, &shadow, tangent)?;
            }
            let data = arguments.data.iter().enumerate();
            let tangent = data.map(|(index, datum)| match datum.ty.is_float() {
                true => self.gather(&self.inputs, direction, Place::Argument(index), datum.ty),
                false => shadow.of_argument(&arguments, index),
            });
            tangents.push(tangent.collect());
            shadows.push(shadow);
        }
        let request = &self.request;
        let swept = call_forward(
            &mut machine,
            derivative,
            request,
            &arguments.data,
            &tangents,
        )
        .map_err(|fault| fault.to_string())?;
        self.check_leaks(&machine)?;
        self.check_primal(&swept.primal, &machine, &arguments)?;
        let mut columns = vec![vec![0.0; self.outputs.len()]; directions.len()];
        let active = request.results.iter().enumerate();
        let active = active.filter(|(_, activity)| **activity != Activity::Const);
        for (at, (index, _)) in active.enumerate() {
            for (column, tangents) in columns.iter_mut().zip(&swept.tangents) {
                self.scatter(Place::Result(index), &tangents[at], column);
            }
        }
        for (column, shadow) in columns.iter_mut().zip(&shadows) {
            for (output, number) in self.outputs.iter().zip(column) {
                if let Place::Memory(_) = output.place {
                    *number = output.read(&[], &machine, |target| shadow.at(target))?;
                }
            }
        }
        Ok(columns)
    }

    /// `Jᵀ·u`, by the combined derivative.
    pub fn reverse(
        &self,
        module: &Module,
        derivative: FunctionId,
        seeds: &[f64],
    ) -> Result<Vec<f64>, String> {
        let (mut machine, arguments) = self.start(module, &self.point)?;
        let shadow = place_shadow(&mut machine, &arguments, &self.request.args)?;
        let given = self.reverse_arguments(&arguments, &shadow, seeds);
        self.write_seeds(&mut machine, &shadow, seeds)?;
        let (_, gradients) = call_reverse(&mut machine, derivative, &self.request, &given)
            .map_err(|fault| fault.to_string())?;
        self.check_leaks(&machine)?;
        self.read_gradient(&gradients, &machine, &shadow)
    }

    /// `Jᵀ·u`, by the two sweeps of a split derivative.
    pub fn split(&self, module: &Module, split: Split, seeds: &[f64]) -> Result<Vec<f64>, String> {
        let (mut machine, arguments) = self.start(module, &self.point)?;
        // Seeds are put into the shadow between the sweeps, as a caller would: the first must not depend on them.
        let shadow = place_shadow(&mut machine, &arguments, &self.request.args)?;
        let mut given = self.reverse_arguments(&arguments, &shadow, seeds);
        let params = module.functions[split.augmented].params.len();
        let (primal, tape) = call_augmented(
            &mut machine,
            split.augmented,
            &self.request,
            &given[..params],
        )
        .map_err(|fault| format!("augmented: {fault}"))?;
        self.check_primal(&primal, &machine, &arguments)?;
        self.write_seeds(&mut machine, &shadow, seeds)?;
        given.push(tape);
        let (_, gradients) = call_reverse(&mut machine, split.reverse, &self.request, &given)
            .map_err(|fault| format!("reverse: {fault}"))?;
        self.check_leaks(&machine)?;
        self.read_gradient(&gradients, &machine, &shadow)
    }

    /// Reads seeds: a value for each active result, then memory for each duplicated argument.
    pub fn read_seeds(&self, written: &[Written]) -> Result<Vec<f64>, String> {
        let mut slots = Vec::new();
        for (index, activity) in self.request.results.iter().enumerate() {
            if *activity == Activity::Active {
                slots.push(Place::Result(index));
            }
        }
        for (index, activity) in self.request.args.iter().enumerate() {
            if *activity == Activity::Duplicated {
                slots.push(Place::Argument(index));
            }
        }
        let numbers = self.assign(&self.outputs, &slots, written)?;
        Ok(numbers.into_iter().map(|n| n.unwrap_or(0.0)).collect())
    }

    /// Reads a gradient: a value or memory for each argument that is not constant. None for numbers that it leaves open.
    pub fn read_gradient_text(&self, written: &[Written]) -> Result<Vec<Option<f64>>, String> {
        let slots: Vec<Place> = (0..self.request.args.len())
            .filter(|&index| self.request.args[index] != Activity::Const)
            .map(Place::Argument)
            .collect();
        self.assign(&self.inputs, &slots, written)
    }

    /// The components that written values give to variables, slot by slot.
    fn assign(
        &self,
        variables: &[Variable],
        slots: &[Place],
        written: &[Written],
    ) -> Result<Vec<Option<f64>>, String> {
        if slots.len() != written.len() {
            return Err(format!(
                "{} values are given where {} belong",
                written.len(),
                slots.len()
            ));
        }
        let (_, arguments) = self.start(self.module, &[])?;
        let mut numbers = vec![None; variables.len()];
        let mut set = |place: Place, lane: u16, value: &Written| -> Result<(), String> {
            let number = match value {
                Written::Float(number) => *number,
                Written::Any => return Ok(()),
                _ => return Err(format!("{value:?} is no float")),
            };
            let position = variables
                .iter()
                .position(|variable| variable.place == place && variable.lane == lane)
                .ok_or("a number is given where there is no variable")?;
            numbers[position] = Some(number);
            Ok(())
        };
        let mut work: Vec<(Place, &Written)> = slots.iter().copied().zip(written).collect();
        while let Some((place, value)) = work.pop() {
            let target = match place {
                Place::Argument(index) => arguments.targets[index],
                Place::Memory(target) => {
                    let block = &arguments.blocks[target.block];
                    let cells = block.cells.iter().zip(&block.targets);
                    cells
                        .filter(|(cell, _)| cell.offset as i64 == target.offset)
                        .find_map(|(_, target)| *target)
                }
                Place::Result(_) => None,
            };
            match (value, target) {
                (Written::Memory(cells), Some(target)) => {
                    for cell in cells {
                        // Integers and null pointers have no derivative; they are there to keep the shape.
                        if cell.ty.is_float() || matches!(cell.value, Written::Memory(_)) {
                            let offset = target.offset + cell.offset as i64;
                            let block = target.block;
                            work.push((Place::Memory(Target { block, offset }), &cell.value));
                        }
                    }
                }
                (Written::Lanes(lanes), _) => {
                    for (lane, value) in lanes.iter().enumerate() {
                        set(place, lane as u16, value)?;
                    }
                }
                (value, _) => set(place, 0, value)?,
            }
        }
        Ok(numbers)
    }

    /// Seeds of 1 for active results and 0 for memory.
    pub fn usual_seeds(&self) -> Vec<f64> {
        let seed = |output: &Variable| match output.place {
            Place::Result(_) => 1.0,
            _ => 0.0,
        };
        self.outputs.iter().map(seed).collect()
    }

    // ---- before the call

    fn start<'m>(
        &self,
        module: &'m Module,
        point: &[f64],
    ) -> Result<(Machine<'m>, Arguments), String> {
        let mut machine = Machine::new(module);
        machine.check_promises();
        let types: Vec<Type> = self.module.functions[self.request.function]
            .params
            .iter()
            .map(|param| param.ty)
            .collect();
        let mut arguments = place_arguments(&mut machine, &types, self.written)?;
        for (input, &number) in self.inputs.iter().zip(point) {
            match input.place {
                Place::Argument(index) => input.write_lane(&mut arguments.data[index], number),
                Place::Memory(target) => {
                    let at = arguments.blocks[target.block].at.offset(target.offset);
                    input.write_cell(&mut machine, at, number)?;
                }
                Place::Result(_) => {}
            }
        }
        Ok((machine, arguments))
    }

    fn write_seeds(
        &self,
        machine: &mut Machine,
        shadow: &Shadow,
        seeds: &[f64],
    ) -> Result<(), String> {
        let mut seeded = self.outputs.iter().zip(seeds);
        seeded.try_for_each(|(output, &seed)| output.write_to_memory(machine, shadow, seed))
    }

    fn reverse_arguments(
        &self,
        arguments: &Arguments,
        shadow: &Shadow,
        seeds: &[f64],
    ) -> Vec<Datum> {
        let shadows: Vec<Datum> = (0..arguments.data.len())
            .map(|index| shadow.of_argument(arguments, index))
            .collect();
        let results = &self.module.functions[self.request.function].results;
        let active = results.iter().zip(&self.request.results).enumerate();
        let seeds: Vec<Datum> = active
            .filter(|(_, (_, activity))| **activity == Activity::Active)
            .map(|(index, (&ty, _))| self.gather(&self.outputs, seeds, Place::Result(index), ty))
            .collect();
        reverse_arguments(&self.request, &arguments.data, &shadows, &seeds)
    }

    /// The numbers of one place as a value.
    fn gather(&self, variables: &[Variable], numbers: &[f64], place: Place, ty: Type) -> Datum {
        let mut datum = zero(ty);
        for (variable, &number) in variables.iter().zip(numbers) {
            if variable.place == place {
                variable.write_lane(&mut datum, number);
            }
        }
        datum
    }

    // ---- after the call

    fn find_inputs(&mut self, machine: &Machine, arguments: &Arguments) {
        for (index, datum) in arguments.data.iter().enumerate() {
            if self.request.args[index] != Activity::Const && datum.ty.is_float() {
                self.add_input(Place::Argument(index), datum);
            }
        }
        let shadowed = find_shadowed(arguments, &self.request.args);
        for (index, block) in arguments.blocks.iter().enumerate() {
            for cell in block.cells.iter().filter(|_| shadowed[index]) {
                let offset = cell.offset as i64;
                if cell.ty.is_float()
                    && let Ok(datum) = machine.read_datum(block.at.offset(offset), cell.ty)
                {
                    let target = Target {
                        block: index,
                        offset,
                    };
                    self.add_input(Place::Memory(target), &datum);
                }
            }
        }
    }

    fn add_input(&mut self, place: Place, datum: &Datum) {
        for lane in 0..datum.ty.lanes() {
            if let Some(number) = datum.lane(usize::from(lane)).as_float() {
                let ty = datum.ty;
                self.inputs.push(Variable { place, lane, ty });
                self.point.push(number);
            }
        }
    }

    fn find_outputs(&mut self, finished: &Finished, arguments: &Arguments) {
        let mut found = Vec::new();
        for (index, datum) in finished.results.iter().enumerate() {
            if self.request.results[index] != Activity::Const && datum.ty.is_float() {
                found.push((Place::Result(index), datum.clone()));
            }
        }
        let shadowed = find_shadowed(arguments, &self.request.args);
        for (index, block) in arguments.blocks.iter().enumerate() {
            for cell in block.cells.iter().filter(|_| shadowed[index]) {
                let offset = cell.offset as i64;
                if cell.ty.is_float()
                    && let Ok(datum) = finished
                        .machine
                        .read_datum(block.at.offset(offset), cell.ty)
                {
                    let target = Target {
                        block: index,
                        offset,
                    };
                    found.push((Place::Memory(target), datum));
                }
            }
        }
        for (place, datum) in found {
            for lane in 0..datum.ty.lanes() {
                if let Some(number) = datum.lane(usize::from(lane)).as_float() {
                    let ty = datum.ty;
                    self.outputs.push(Variable { place, lane, ty });
                    self.values.push(number);
                }
            }
        }
    }

    fn scatter(&self, place: Place, datum: &Datum, numbers: &mut [f64]) {
        for (output, number) in self.outputs.iter().zip(numbers) {
            if output.place == place {
                let lane = datum.lane(usize::from(output.lane));
                *number = lane.as_float().unwrap_or(f64::NAN);
            }
        }
    }

    fn read_gradient(
        &self,
        gradients: &[Datum],
        machine: &Machine,
        shadow: &Shadow,
    ) -> Result<Vec<f64>, String> {
        let active: Vec<usize> = (0..self.request.args.len())
            .filter(|&index| self.request.args[index] == Activity::Active)
            .collect();
        self.inputs
            .iter()
            .map(|input| match input.place {
                Place::Argument(index) => {
                    let position = active.iter().position(|&other| other == index);
                    position
                        .and_then(|position| {
                            gradients[position].lane(usize::from(input.lane)).as_float()
                        })
                        .ok_or_else(|| format!("the gradient of argument {index} is undefined"))
                }
                _ => input.read(&[], machine, |target| shadow.at(target)),
            })
            .collect()
    }

    /// A derivative must leave no more memory behind than the function; a tape that is not released shows here.
    fn check_leaks(&self, machine: &Machine) -> Result<(), String> {
        let (pieces, bytes) = machine.live_heap();
        if self.kept == 0 && pieces > 0 {
            return Err(format!(
                "{bytes} bytes in {pieces} pieces of memory were never freed"
            ));
        }
        Ok(())
    }

    /// The results and the memory must be those of the function.
    fn check_primal(
        &self,
        results: &[Datum],
        machine: &Machine,
        arguments: &Arguments,
    ) -> Result<(), String> {
        for (output, &expected) in self.outputs.iter().zip(&self.values) {
            let actual = output.read(results, machine, |target| {
                Some(arguments.blocks[target.block].at.offset(target.offset))
            })?;
            let tolerance = 64.0 * epsilon(output.ty.scalar());
            let close = (actual - expected).abs() <= tolerance * expected.abs().max(1.0);
            if !close
                && actual.to_bits() != expected.to_bits()
                && !(actual.is_nan() && expected.is_nan())
            {
                return Err(format!(
                    "the derivative changes {output}: {actual:?} instead of {expected:?}"
                ));
            }
        }
        Ok(())
    }
}

fn call<'m>(
    mut machine: Machine<'m>,
    function: FunctionId,
    data: &[Datum],
) -> Result<Finished<'m>, String> {
    let results = machine
        .call(function, data)
        .map_err(|fault| fault.to_string())?;
    Ok(Finished { machine, results })
}
