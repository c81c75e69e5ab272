//! What runs compiled tensor graphs.
//!
//! A [`Backend`] takes a planned graph ([`Planned`]) and gives an [`Executable`]. Everything else is the same for all of them and is here: passes, fusion, memory plan and lowering ([`compile_with`]), the
//! [`Program`] that a user runs, what of it needs no graph ([`Session`]), feeders and receivers (`host.rs`), and tensors as bytes (`bytes.rs`).
//!
//! What a backend sees is Loop IR: `@main` calls kernels in order, on addresses in parameters and in the arena, with the loops and branches of the graph around the calls. An operation of the graph
//! that is new needs nothing from a backend. `docs/backends.md` says how to add one, and the crate `ferrozyme-conformance` has the tests that each must pass.
//!
//! *Assumes* that a graph verifies. *Guarantees* that a program computes what the graph's interpreter computes, up to the rounding of sums in another order and of mathematical functions.

mod bytes;
mod host;
mod initial;
mod program;
mod session;
mod timeline;

pub use bytes::{Element, array_of, bytes_of};
pub use host::Host;
pub use initial::Initial;
pub use program::{Prepared, Program, compile_with, compile_within, prepare_graph};
pub use session::Session;
pub use timeline::{Row, Span, Timeline};

pub use ferrozyme_graph::fuse::Repeats;
use ferrozyme_graph::lower::Lowered;
use ferrozyme_graph::memory::OverBudget;
use thiserror::Error;

/// Why a graph cannot be compiled, or why a run failed.
#[derive(Clone, Debug, Error)]
pub enum Error {
    /// The graph is not well formed.
    #[error("the graph is not well formed: {0}")]
    Graph(String),
    /// The compiler is not there, or refuses.
    #[error("cannot compile the graph: {0}")]
    Compile(String),
    /// The graph cannot be planned for a budget of memory.
    #[error(transparent)]
    Budget(#[from] OverBudget),
    /// The backend cannot be used here: a driver or a device is missing.
    #[error("cannot use the device `{backend}`: {reason}")]
    Missing {
        /// The backend's name.
        backend: &'static str,
        /// What was looked for.
        reason: String,
    },
    /// There is no backend of this name.
    #[error("there is no device `{name}`: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// Which there are.
        known: String,
    },
    /// A feeder or receiver is missing, panicked, or gave something else than the graph takes, or a Rust function of the graph panicked. The run ended there, and parameters are as it left them.
    #[error("{0}")]
    Host(String),
    /// The device or its driver failed, or a kernel stopped (an index out of range). Parameters are as the run left them.
    #[error("the run failed: {0}")]
    Device(String),
}

/// A graph after all passes, as a backend takes it.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The kernels, `@main`, whose arguments are the addresses of the parameters and then that of the arena, and what is exchanged with the host.
    pub lowered: Lowered,
    /// What each parameter holds before the first run.
    pub parameters: Vec<Initial>,
    /// The size of the arena in bytes.
    pub arena: usize,
}

/// Something that compiles and runs planned graphs.
pub trait Backend {
    /// Its name, by which a user chooses it.
    fn name(&self) -> &'static str;

    /// How often its kernels may compute an element rather than keep it in memory.
    fn repeats(&self) -> Repeats {
        Repeats::PROCESSOR
    }

    /// Compiles a planned graph, everything before the first run.
    fn compile(&self, planned: Planned) -> Result<Box<dyn Executable>, Error>;
}

/// A compiled graph with the memory of its parameters.
pub trait Executable {
    /// Runs the graph once: takes what is fed from the host, and hands it what is received.
    fn run(&mut self, host: &mut Host<'_>) -> Result<(), Error>;

    /// Runs the graph once, as [`run`](Self::run) does, and measures each kernel. None if the device has no clock for that; then nothing runs.
    fn timeline(&mut self, host: &mut Host<'_>) -> Result<Option<Timeline>, Error> {
        let _ = host;
        Ok(None)
    }

    /// Copies bytes of a parameter, from an offset on, until the buffer is full. The parameter is named by its position.
    fn read_parameter(&self, number: usize, offset: usize, to: &mut [u8]) -> Result<(), Error>;

    /// Overwrites bytes of a parameter, from an offset on.
    fn write_parameter(&mut self, number: usize, offset: usize, from: &[u8]) -> Result<(), Error>;

    /// What the report says of this backend's part, in lines.
    fn report(&self) -> String {
        String::new()
    }
}
