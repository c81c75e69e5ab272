//! From bitcode with derivative requests to bitcode without them and the object code of the derivatives.
//!
//! The linker (crates/cli) reads the link line, gives the modules as [`Inputs`] and puts the [`Output`] into the link.
//!
//! *What linking was found to accept* (rustc 1.95 and nightly, debug and release, by trial):
//! - A requesting module is written again with a ThinLTO summary, which rust-lld takes like those that rustc wrote. Without one, as `LLVMWriteBitcode…` writes it, it goes to the regular LTO partition, where
//!   nothing is inlined from or into ThinLTO modules: rustc spreads a crate over several modules, and a loop whose iterator is in another one runs ten times as long. So **rewritten modules go back as bitcode** with
//!   a summary: lld then chooses function sections, relocation model and CPU as it does for the rest, which LLVM-C's target machines cannot be told.
//! - `Output::object` may be native code or bitcode; lld recognises either. Native code keeps derivatives fast in debug builds, where lld compiles bitcode at O0.
//! - Members of rlibs: the linker writes the rlib again with the member replaced; order and laziness stay.
//! - Symbols that the object needs from modules (panics, allocation, functions kept out of line) must be external there. Local ones have to be copied into
//!   the object, or made external and hidden in the rewritten module.

mod addresses;
mod bits;
mod constants;
mod derive;
mod detach;
mod dispatch;
mod explain;
mod finish;
mod frontend;
mod gather;
pub mod inputs;
mod itself;
mod ladder;
mod late_passes;
mod locals;
mod machine;
mod marks;
mod numbers;
mod opaque;
pub mod options;
mod outside;
pub mod perturbation;
mod pipeline;
mod prepare;
mod processor;
pub mod refusal;
mod registrations;
mod repeatable;
mod report;
mod requests;
mod rounding;
mod text;
mod trace;
mod trim;

pub use frontend::c::unit::{Library, Unit, UnitOptions, UnitRequests, compile_unit};
pub use frontend::rust::{REGISTRATIONS, REQUEST};
pub use inputs::{Input, Inputs, Origin};
pub use options::{Explain, Level, Options, Relocation, Stage};
pub use perturbation::Perturbation;
pub use pipeline::{check_toolchain, differentiate, is_supported_target};
pub use report::{
    DerivativeReport, Diagnostic, Frame, Location, Report, Severity, Timing, shorten,
};

/// What takes the place of requesting modules in the link, and what comes with it.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// The bitcode of each requesting module, with plain calls in the place of requests.
    pub rewritten: Vec<(usize, Vec<u8>)>,
    /// The derivatives: an object file or bitcode.
    pub object: Vec<u8>,
    /// What was done.
    pub report: Report,
}
