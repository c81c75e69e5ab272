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
//! [`build`] compiles it in a build script instead, so that nothing is compiled when the program runs.
//!
//! What is the same for all backends is in `ferrozyme-backend`: passes, feeders and receivers, which run on threads of their own. An index out of range stops the process.

mod ahead;
mod entry;
mod native;
mod object;

pub use ahead::{build, build_within};
pub use ferrozyme_backend::{Backend, Element, Error, Program};

use ferrozyme_backend::{Executable, Planned, compile_with};
use ferrozyme_graph::Graph;
use native::Native;

/// This processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu;

/// Compiles a graph for this processor.
pub fn compile(graph: &Graph) -> Result<Program, Error> {
    compile_with(&Cpu, graph)
}

/// As [`compile`], with an arena of no more bytes than a budget: values are computed again where they are needed instead of being kept. The report says what that costs, the error what the least is.
pub fn compile_within(graph: &Graph, budget: usize) -> Result<Program, Error> {
    ferrozyme_backend::compile_within(&Cpu, graph, Some(budget))
}

impl Backend for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn compile(&self, planned: Planned) -> Result<Box<dyn Executable>, Error> {
        Ok(Box::new(Native::compile(planned)?))
    }
}
