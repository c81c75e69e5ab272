//! The inputs of a program, and how it is run: arguments, memory, shadows.
//!
//! Inputs follow from a seed and from the signature of the function alone, so that a program that was saved as text and
//! made smaller by hand runs as it did before.

use crate::program::{ARRAY_LENGTH, MAX_COUNT};
use crate::random::Random;
use crate::state::State;
use ferrozyme_ir::interpret::{Datum, Fault, Machine, Pointer};
use ferrozyme_ir::{FunctionId, Module, Scalar, Type};

/// How many operations a run may take: a generated program needs far fewer.
const STEP_LIMIT: u64 = 500_000;

/// How many calls may be nested.
const DEPTH_LIMIT: usize = 400;

/// What one argument is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Argument {
    /// A pointer into an object, this many doubles from its start.
    Array {
        /// Which piece.
        block: usize,
        /// How many doubles from its start.
        offset: usize,
    },
    /// An integer of this many bits.
    Int(u8, i64),
    /// A float, by its place among the floats of the state.
    Float(Scalar, usize),
}

/// The inputs of a program.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The function.
    pub main: FunctionId,
    /// The types of its results.
    pub results: Vec<Type>,
    /// The arguments, in order.
    pub arguments: Vec<Argument>,
    /// Which of them have derivatives.
    pub active: Vec<bool>,
    /// Which of the float results have derivatives.
    pub active_results: Vec<bool>,
    /// The values of float arguments and of the memory.
    pub state: State,
    /// Whether pointers share memory.
    pub aliased: bool,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Outputs {
    /// The results and the memory afterwards.
    pub state: State,
    /// How many operations it took.
    pub steps: u64,
}

impl Inputs {
    /// The inputs of a seed for a function. It must have only pointers, integers and plain floats as parameters.
    pub fn new(module: &Module, main: FunctionId, seed: u64) -> Result<Inputs, String> {
        let mut random = Random::new(seed ^ 0x0069_6e70_7574_7321);
        let function = &module.functions[main];
        let facts: Vec<_> = function.params.iter().map(|param| &param.facts).collect();
        let pointers = function.params.iter().filter(|param| param.ty.is_ptr());
        let may_alias = pointers.clone().count() == 2 && pointers.clone().all(|p| !p.facts.noalias);
        // Drawn in any case, so that dropping a fact changes nothing else.
        let sharing = random.below(6);
        let (shared_length, shift) = match sharing {
            0 => (ARRAY_LENGTH, 0),
            1 => (ARRAY_LENGTH + ARRAY_LENGTH / 2, ARRAY_LENGTH / 2),
            _ => (0, 0),
        };
        let aliased = may_alias && shared_length > 0;
        let mut inputs = Inputs {
            main,
            results: function.results.clone(),
            arguments: Vec::new(),
            active: Vec::new(),
            active_results: Vec::new(),
            state: State::default(),
            aliased,
        };
        for (param, facts) in function.params.iter().zip(facts) {
            let number = random.float(-2.0, 2.0);
            let rarely_constant = random.percent(8);
            let argument = match (param.ty, param.ty.scalar()) {
                (Type::PTR, _) if aliased && !inputs.state.blocks.is_empty() => Argument::Array {
                    block: 0,
                    offset: shift,
                },
                (Type::PTR, _) => {
                    let length = if aliased { shared_length } else { ARRAY_LENGTH };
                    let values = (0..length).map(|_| random.float(-2.0, 2.0));
                    inputs.state.blocks.push(values.collect());
                    Argument::Array {
                        block: inputs.state.blocks.len() - 1,
                        offset: 0,
                    }
                }
                (ty, Scalar::Int(bits)) if !ty.is_vector() => {
                    Argument::Int(bits, random.between(0, MAX_COUNT))
                }
                (ty, scalar) if ty.is_float() && !ty.is_vector() => {
                    // Exact in every type, so that the point is the same in all of them.
                    let value = match scalar {
                        Scalar::F64 => number,
                        _ => (number * 8.0).round() / 8.0,
                    };
                    inputs.state.floats.push(value);
                    Argument::Float(scalar, inputs.state.floats.len() - 1)
                }
                (ty, _) => return Err(format!("a parameter of type {ty} cannot be given")),
            };
            let active = match argument {
                Argument::Int(..) => false,
                Argument::Float(..) => !rarely_constant,
                // Memory without shadow must neither be written nor be reachable otherwise.
                Argument::Array { .. } => !(rarely_constant && facts.readonly && !aliased),
            };
            inputs.arguments.push(argument);
            inputs.active.push(active);
        }
        let results = function.results.iter().filter(|ty| ty.is_float()).count();
        inputs.active_results = vec![true; results];
        // Of several results, one may have no derivative.
        if results > 1 && random.percent(20) {
            inputs.active_results[random.below(results)] = false;
        }
        Ok(inputs)
    }

    /// Whether some memory has no derivative.
    pub fn has_constant_memory(&self) -> bool {
        let arguments = self.arguments.iter().zip(&self.active);
        let mut arrays =
            arguments.filter(|(argument, _)| matches!(argument, Argument::Array { .. }));
        arrays.any(|(_, active)| !active)
    }

    /// Makes all memory active.
    pub fn activate_memory(&mut self) {
        for (argument, active) in self.arguments.iter().zip(&mut self.active) {
            *active |= matches!(argument, Argument::Array { .. });
        }
    }

    /// Which of the float arguments have derivatives.
    pub fn active_floats(&self) -> Vec<bool> {
        let arguments = self.arguments.iter().zip(&self.active);
        arguments
            .filter(|(argument, _)| matches!(argument, Argument::Float(..)))
            .map(|(_, &active)| active)
            .collect()
    }

    /// Sets components without a derivative to zero in a direction.
    pub fn restrict(&self, direction: &mut State) {
        for (argument, &active) in self.arguments.iter().zip(&self.active) {
            match *argument {
                Argument::Float(_, position) if !active => direction.floats[position] = 0.0,
                Argument::Array { block, .. } if !active => direction.blocks[block].fill(0.0),
                _ => {}
            }
        }
    }

    /// Sets results that have no derivative to zero in outputs, or in weights of them.
    pub fn restrict_results(&self, outputs: &mut State) {
        for (float, &active) in outputs.floats.iter_mut().zip(&self.active_results) {
            if !active {
                *float = 0.0;
            }
        }
    }

    /// The arguments as the machine takes them, from a state and the places of its memory.
    pub(crate) fn data(&self, state: &State, blocks: &[Pointer]) -> Vec<Datum> {
        let arguments = self.arguments.iter();
        arguments
            .map(|argument| match *argument {
                Argument::Array { block, offset } => {
                    Datum::ptr(blocks[block].offset(8 * offset as i64))
                }
                Argument::Int(bits, value) => Datum::int(bits, i128::from(value)),
                Argument::Float(scalar, position) => {
                    Datum::float(scalar, state.floats[position]).expect("the type is a float type")
                }
            })
            .collect()
    }

    /// Runs the function itself on these arguments at a point.
    pub fn run(
        &self,
        module: &Module,
        function: FunctionId,
        point: &State,
    ) -> Result<Outputs, Fault> {
        let mut machine = new_machine(module);
        let blocks = place(&mut machine, &point.blocks);
        let results = machine.call(function, &self.data(point, &blocks))?;
        machine.check_leaks()?;
        Ok(Outputs {
            state: State {
                floats: floats_of(&results),
                blocks: read(&machine, &blocks, &point.blocks)?,
            },
            steps: machine.statistics().steps,
        })
    }
}

/// A machine with limits that no valid program reaches, which checks the declared facts of functions.
pub(crate) fn new_machine(module: &Module) -> Machine<'_> {
    let mut machine = Machine::new(module);
    machine.set_step_limit(STEP_LIMIT);
    machine.set_depth_limit(DEPTH_LIMIT);
    machine.set_memory_limit(1 << 26);
    machine.check_promises();
    // Only programs that were made parallel ask for threads.
    machine.set_threads(3);
    machine.run_last_bodies_first();
    machine
}

/// Puts pieces of memory into a machine.
pub(crate) fn place(machine: &mut Machine<'_>, blocks: &[Vec<f64>]) -> Vec<Pointer> {
    blocks
        .iter()
        .map(|block| machine.allocate_f64s(block))
        .collect()
}

/// Reads pieces of memory back.
pub(crate) fn read(
    machine: &Machine<'_>,
    pointers: &[Pointer],
    shape: &[Vec<f64>],
) -> Result<Vec<Vec<f64>>, Fault> {
    let mut blocks = Vec::new();
    for (&pointer, block) in pointers.iter().zip(shape) {
        blocks.push(machine.read_f64s(pointer, block.len())?);
    }
    Ok(blocks)
}

/// The floats among results; undefined ones count as NaN.
pub(crate) fn floats_of(results: &[Datum]) -> Vec<f64> {
    results
        .iter()
        .filter(|datum| datum.ty.is_float())
        .map(|datum| datum.as_float().unwrap_or(f64::NAN))
        .collect()
}
