//! Runs tensor graphs on this processor: [`compile`] optimises, fuses, plans memory, lowers and compiles a graph, everything before the first step.
//!
//! ```
//! use ferrozyme_cpu::compile;
//! use ferrozyme_graph::Graph;
//! let mut g = Graph::new();
//! let w = g.parameter("w", [3], 1.0);
//! g.repeat(10, |g, _step| {
//!     let x = g.feed("x", [3]);
//!     let old = g.read(w);
//!     let new = g.add(old, x);
//!     g.update(w, new);
//! });
//! let mut program = compile(&g)?;
//! program.feeder("x", || vec![0.5f32; 3]);
//! program.run()?;
//! assert_eq!(program.parameter(w).elements[..], [6.0, 6.0, 6.0]);
//! # Ok::<(), ferrozyme_cpu::Error>(())
//! ```
//!
//! What is the same for all backends is in `ferrozyme-backend`: passes, feeders and receivers, which run on threads of their own. An index out of range stops the process.

mod entry;
mod memory;
mod native;

pub use ferrozyme_backend::{Backend, Element, Error, Program};

use ferrozyme_backend::{Executable, Host, Planned, compile_with};
use ferrozyme_graph::Graph;
use memory::Memory;
use native::Native;

/// This processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu;

/// Compiles a graph for this processor.
pub fn compile(graph: &Graph) -> Result<Program, Error> {
    compile_with(&Cpu, graph)
}

impl Backend for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn compile(&self, planned: Planned) -> Result<Box<dyn Executable>, Error> {
        let lowered = planned.lowered;
        Ok(Box::new(Compiled {
            native: Native::compile(lowered.module, lowered.main)?,
            parameters: planned
                .parameters
                .iter()
                .map(|b| Memory::holding(b))
                .collect(),
            sizes: planned.parameters.iter().map(Vec::len).collect(),
            arena: Memory::zeroed(planned.arena),
        }))
    }
}

/// A compiled graph, with the memory of its parameters.
struct Compiled {
    native: Native,
    parameters: Vec<Memory>,
    /// The size of each parameter.
    sizes: Vec<usize>,
    arena: Memory,
}

impl Executable for Compiled {
    fn run(&mut self, host: &mut Host<'_>) -> Result<(), Error> {
        let mut pointers: Vec<*mut u8> = self.parameters.iter_mut().map(Memory::address).collect();
        pointers.push(self.arena.address());
        self.native.run(host, &pointers)
    }

    fn parameter(&self, number: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = self.parameters[number].bytes();
        bytes.truncate(self.sizes[number]);
        Ok(bytes)
    }

    fn set_parameter(&mut self, number: usize, bytes: &[u8]) -> Result<(), Error> {
        self.parameters[number] = Memory::holding(bytes);
        Ok(())
    }
}
