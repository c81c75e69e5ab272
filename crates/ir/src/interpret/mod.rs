//! Runs the IR on checked memory.
//!
//! A wrong derivative may show itself as a wrong number, but as often as an access out of bounds, a load of uninitialised
//! memory, or a tape that is never freed. The [`Machine`] reports all of these as a [`Fault`] that names the
//! operation, its source location and the call stack.
//!
//! It assumes that the module verifies ([`verify`](mod@crate::verify)). It never uses the host's stack for the program's calls or
//! regions, so deep recursion of the program meets a limit instead of a stack overflow.
//!
//! ```
//! use ferrozyme_ir::interpret::{Datum, Machine};
//! use ferrozyme_ir::{Builder, Function, Module, Opcode, Type};
//! let mut square = Function::define("square", vec![Type::F64.into()], vec![Type::F64]);
//! let x = square.arguments()[0];
//! let mut b = Builder::at_body(&mut square);
//! let y = b.binary(Opcode::Fmul, x, x);
//! b.ret(&[y]);
//! let mut module = Module::new();
//! let square = module.functions.push(square);
//! let mut machine = Machine::new(&module);
//! assert_eq!(machine.call(square, &[Datum::f64(3.0)])?, [Datum::f64(9.0)]);
//! # Ok::<(), ferrozyme_ir::interpret::Fault>(())
//! ```
//!
//! Checked are bounds, lifetime (heap and stack), initialisation of every loaded byte, alignment, the allocator that
//! frees memory, overlap of `copy`, constant memory, division, promised ranges, undefined values on which control flow
//! or memory depends, signatures of indirect calls, the level of the processor, races between the bodies of a team, steps, depth and memory; optionally, the facts of functions about
//! memory ([`Machine::check_promises`]). Not checked are `noalias`, floating-point flags, `inbounds`.

mod access;
mod arithmetic;
mod contract;
mod datum;
mod execute;
mod fault;
mod float;
mod memory;
mod promises;
mod races;
#[cfg(test)]
mod tests;

pub use arithmetic::evaluate;
pub use datum::{Bits, Datum, Pointer};
pub use fault::{Fault, FaultKind, Place};
pub use memory::{HeapStatistics, Memory};

use crate::function::{Constant, Function, Op, ValueDef};
use crate::module::{Global, Module, Symbol};
use crate::print::print_op;
use crate::processor::{PROCESSOR_LEVEL, ProcessorLevel};
use crate::threads::THREADS;
use crate::types::Type;
use crate::{FunctionId, GlobalId};
use cranelift_entity::EntityRef;
use execute::{Frame, Level};
use rustc_hash::FxHashMap;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// A function of the host that implements one that the module only declares.
///
/// It gets the memory and the arguments; a message in place of results is a fault at the call.
pub type External<'m> = Box<dyn FnMut(&mut Memory, &[Datum]) -> Result<Vec<Datum>, String> + 'm>;

/// Statistics of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// How many operations it carried out.
    pub steps: u64,
    /// How many pieces of memory `alloc` gave.
    pub allocations: u64,
    /// How many bytes `alloc` gave in all.
    pub allocated_bytes: u64,
    /// The most bytes of the heap that were alive at one time.
    pub peak_heap_bytes: u64,
}

/// Runs the functions of a module.
///
/// It is its own [`Memory`]: whatever that offers (`allocate`, `write_f64s`, `read_bytes`, `live_heap`, …) can be called on the
/// machine.
pub struct Machine<'m> {
    module: &'m Module,
    memory: Memory,
    externals: FxHashMap<FunctionId, External<'m>>,
    prepared: Vec<Option<Rc<Prepared>>>,
    /// Why the module cannot run at all, found when its globals were made.
    unusable: Option<FaultKind>,
    /// The values of all active calls, one frame after the other.
    slots: Vec<Bits>,
    frames: Vec<Frame<'m>>,
    /// The regions that are being carried out, of all active calls.
    levels: Vec<Level<'m>>,
    /// The stack memory of all active calls.
    stack: Vec<Pointer>,
    /// The results of the host's call, once it has returned.
    results: execute::Values,
    steps: u64,
    step_limit: u64,
    depth_limit: usize,
    /// Whether the facts of functions about memory are checked.
    checks_promises: bool,
    /// The level of the processor that it stands for.
    processor_level: Option<ProcessorLevel>,
    /// The team whose bodies it carries out, if there are several.
    team: Option<Box<races::Team>>,
    /// How many threads it says that there are.
    threads: usize,
    /// Whether the last body of a team runs first.
    last_first: bool,
}

/// Data about a function, prepared before it runs.
struct Prepared {
    /// The initial state of a frame: constants in place, the rest undefined.
    template: Vec<Bits>,
    /// The types of all values.
    types: Vec<Type>,
    /// Whether any value has a promised range.
    ranges: bool,
}

impl<'m> Machine<'m> {
    /// A machine for this module, with its globals in memory.
    pub fn new(module: &'m Module) -> Machine<'m> {
        let mut machine = Machine {
            module,
            memory: Memory::default(),
            externals: FxHashMap::default(),
            prepared: (0..module.functions.len()).map(|_| None).collect(),
            unusable: None,
            slots: Vec::new(),
            frames: Vec::new(),
            levels: Vec::new(),
            stack: Vec::new(),
            results: execute::Values::new(),
            steps: 0,
            step_limit: u64::MAX,
            depth_limit: 10_000,
            checks_promises: false,
            processor_level: None,
            team: None,
            threads: 1,
            last_first: false,
        };
        machine.unusable = machine.make_globals().err();
        machine
    }

    /// The module that it runs.
    pub fn module(&self) -> &'m Module {
        self.module
    }

    /// Limits the number of operations of one call of the host. There is no limit by default.
    pub fn set_step_limit(&mut self, steps: u64) {
        self.step_limit = steps;
    }

    /// Limits the depth of nested calls (10,000 by default).
    pub fn set_depth_limit(&mut self, depth: usize) {
        self.depth_limit = depth;
    }

    /// Sets the level of the processor that it stands for; by default it has none but the baseline. Functions for a higher one must not be called.
    pub fn set_processor_level(&mut self, level: Option<ProcessorLevel>) {
        self.processor_level = level;
    }

    /// Sets how many threads it says that there are; one by default. Bodies of a team run one after the other in any case.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads;
    }

    /// Has the bodies of teams run in the opposite order, the last one first: a program to which that makes a difference is wrong.
    pub fn run_last_bodies_first(&mut self) {
        self.last_first = true;
    }

    /// Implements a function that the module only declares by one of the host. Names that the module does not declare are ignored.
    pub fn define_external(&mut self, name: &str, external: External<'m>) {
        if let Some(function) = self.module.function_named(name) {
            self.externals.insert(function, external);
        }
    }

    /// Where a global is in memory.
    pub fn global_address(&self, global: GlobalId) -> Pointer {
        memory::global_address(&self.memory, global)
    }

    /// The address of a function, as the program sees it.
    pub fn function_address(&self, function: FunctionId) -> Pointer {
        memory::function_address(function)
    }

    /// Calls a function.
    pub fn call(&mut self, function: FunctionId, args: &[Datum]) -> Result<Vec<Datum>, Fault> {
        if let Some(kind) = &self.unusable {
            return Err(kind.clone().into());
        }
        let Some(data) = self.module.functions.get(function) else {
            return Err(FaultKind::NotAFunction {
                address: memory::function_address(function),
            }
            .into());
        };
        if args.len() != data.params.len() {
            return Err(FaultKind::ArgumentCount {
                expected: data.params.len(),
                given: args.len(),
            }
            .into());
        }
        for (param, datum) in data.params.iter().zip(args) {
            check_type(param.ty, datum.ty)?;
        }
        if data.body.is_none() {
            return Ok(self.call_external(function, args)?);
        }
        match self.run(function, args) {
            Ok(results) => Ok(results
                .into_iter()
                .zip(&data.results)
                .map(|(bits, &ty)| Datum { ty, bits })
                .collect()),
            Err(kind) => {
                let fault = self.locate(kind);
                self.abandon();
                Err(fault)
            }
        }
    }

    /// Calls the function of this name.
    pub fn call_named(&mut self, name: &str, args: &[Datum]) -> Result<Vec<Datum>, Fault> {
        match self.module.function_named(name) {
            Some(function) => self.call(function, args),
            None => Err(FaultKind::NoBody {
                function: name.into(),
            }
            .into()),
        }
    }

    /// The statistics so far.
    pub fn statistics(&self) -> Statistics {
        let heap = self.memory.heap_statistics();
        Statistics {
            steps: self.steps,
            allocations: heap.allocations,
            allocated_bytes: heap.allocated_bytes,
            peak_heap_bytes: heap.peak_bytes,
        }
    }

    /// Resets the statistics; the peak starts at the memory that is alive now.
    pub fn reset_statistics(&mut self) {
        self.steps = 0;
        self.memory.reset_statistics();
    }

    /// Fails if memory from `alloc` is not released, naming where it was made.
    pub fn check_leaks(&self) -> Result<(), Fault> {
        let (count, bytes) = self.memory.live_heap();
        if count == 0 {
            return Ok(());
        }
        let mut by_origin: Vec<(memory::Origin, usize, u64)> = Vec::new();
        let mut positions: FxHashMap<memory::Origin, usize> = FxHashMap::default();
        for (origin, size) in self.memory.leaks() {
            let position = *positions.entry(origin).or_insert_with(|| {
                by_origin.push((origin, 0, 0));
                by_origin.len() - 1
            });
            by_origin[position].1 += 1;
            by_origin[position].2 += size;
        }
        let notes = by_origin.iter().map(|&(origin, count, bytes)| {
            format!(
                "{bytes} bytes in {count} pieces from {}",
                self.describe_origin(origin)
            )
        });
        Err(Fault {
            kind: FaultKind::Leak { count, bytes },
            place: None,
            notes: notes.collect(),
        })
    }

    fn make_globals(&mut self) -> Result<(), FaultKind> {
        let mut first_problem = Ok(());
        for global in self.module.globals.values() {
            let bytes = global.bytes.as_deref();
            let made = self
                .memory
                .global_allocate(global.size, global.align.bytes(), bytes);
            if let Err(problem) = made {
                // A placeholder, because ids are positions.
                self.memory.global_allocate(0, 1, None)?;
                first_problem = first_problem.and(Err(problem));
            }
        }
        first_problem?;
        for (id, global) in &self.module.globals {
            self.relocate(id, global)?;
        }
        Ok(())
    }

    fn relocate(&mut self, id: GlobalId, global: &Global) -> Result<(), FaultKind> {
        let at = self.global_address(id);
        for &(offset, symbol) in &global.relocations {
            let address = match symbol {
                Symbol::Function(function) => memory::function_address(function),
                Symbol::Global(other) => self.global_address(other),
            };
            self.memory
                .write_pointers(at.offset(offset as i64), &[address])?;
        }
        if global.constant {
            self.memory.make_constant(at);
        }
        Ok(())
    }

    fn prepare(&mut self, function: FunctionId) -> Rc<Prepared> {
        if let Some(prepared) = &self.prepared[function.index()] {
            return prepared.clone();
        }
        let code = &self.module.functions[function];
        let template = code.values.values().map(|data| match &data.def {
            ValueDef::Constant(Constant::Global(global)) => {
                Bits::Scalar(u128::from(self.global_address(*global).0))
            }
            ValueDef::Constant(Constant::Function(function)) => {
                Bits::Scalar(u128::from(memory::function_address(*function).0))
            }
            ValueDef::Constant(constant) => {
                Bits::from_constant(data.ty, constant).unwrap_or_default()
            }
            ValueDef::Result { .. } | ValueDef::Argument { .. } => Bits::Undef,
        });
        let prepared = Rc::new(Prepared {
            template: template.collect(),
            types: code.values.values().map(|data| data.ty).collect(),
            ranges: code.values.values().any(|data| data.range.is_some())
                || code.params.iter().any(|param| param.facts.range.is_some()),
        });
        self.prepared[function.index()] = Some(prepared.clone());
        prepared
    }

    fn call_external(
        &mut self,
        function: FunctionId,
        args: &[Datum],
    ) -> Result<Vec<Datum>, FaultKind> {
        let data = &self.module.functions[function];
        if data.name == PROCESSOR_LEVEL && !self.externals.contains_key(&function) {
            let number = self.processor_level.map_or(0, ProcessorLevel::number);
            return Ok(vec![Datum::i32(number as i32)]);
        }
        if data.name == THREADS && !self.externals.contains_key(&function) {
            let threads = if self.is_in_team() { 1 } else { self.threads };
            return Ok(vec![Datum::i64(threads as i64)]);
        }
        let Some(external) = self.externals.get_mut(&function) else {
            return Err(FaultKind::NoBody {
                function: data.name.as_str().into(),
            });
        };
        let results = external(&mut self.memory, args).map_err(|message| FaultKind::External {
            message: message.into(),
        })?;
        if results.len() != data.results.len() {
            return Err(FaultKind::External {
                message: format!(
                    "@{} gave {} results instead of {}",
                    data.name,
                    results.len(),
                    data.results.len()
                )
                .into(),
            });
        }
        for (&expected, datum) in data.results.iter().zip(&results) {
            check_type(expected, datum.ty)?;
        }
        Ok(results)
    }

    /// Adds to a fault where it happened.
    fn locate(&self, kind: FaultKind) -> Fault {
        let mut notes = Vec::new();
        if let Some(address) = kind.address()
            && let origin @ Some(_) = self.memory.origin(address)
        {
            notes.push(format!(
                "the memory comes from {}",
                self.describe_origin(origin)
            ));
        }
        let place = self.frames.last().and_then(|frame| {
            let op = self.levels.last()?.current()?;
            Some(Box::new(Place {
                function: frame.code.name.clone(),
                operation: print_op(self.module, frame.code, op),
                location: self.describe_location(frame.code, op),
                calls: self
                    .frames
                    .iter()
                    .rev()
                    .map(|frame| frame.code.name.clone())
                    .collect(),
            }))
        });
        Fault { kind, place, notes }
    }

    fn describe_location(&self, code: &Function, op: Op) -> Option<String> {
        let location = code.ops[op].location?;
        self.module.locations.get(location)?;
        Some(self.module.describe_location(location))
    }

    fn describe_origin(&self, origin: memory::Origin) -> String {
        let Some((function, op)) = origin else {
            return "the host".to_owned();
        };
        let code = &self.module.functions[function];
        let text = print_op(self.module, code, op);
        match self.describe_location(code, op) {
            Some(location) => format!("@{}: {text} ({location})", code.name),
            None => format!("@{}: {text}", code.name),
        }
    }

    /// Drops everything that was under way.
    fn abandon(&mut self) {
        for at in std::mem::take(&mut self.stack) {
            self.memory.stack_release(at);
        }
        self.team = None;
        self.frames.clear();
        self.levels.clear();
        self.slots.clear();
    }
}

impl Deref for Machine<'_> {
    type Target = Memory;

    fn deref(&self) -> &Memory {
        &self.memory
    }
}

impl DerefMut for Machine<'_> {
    fn deref_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }
}

fn check_type(expected: Type, given: Type) -> Result<(), FaultKind> {
    if expected == given {
        Ok(())
    } else {
        Err(FaultKind::TypeMismatch { expected, given })
    }
}
