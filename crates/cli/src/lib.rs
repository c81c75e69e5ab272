//! The command-line tools of Ferrozyme.
//!
//! [`cargo`] is `cargo ferrozyme`, which builds programs with derivatives; [`link`] is its role as the linker.
//!
//! [`loopir`] works on text files of Loop IR: it prints, checks, runs, optimises and differentiates them, because that
//! is how people debug a compiler. [`graphir`] does so for text files of tensor graphs.

#[cfg(unix)]
pub mod cargo;
pub mod graphir;
#[cfg(unix)]
pub mod link;
pub mod loopir;
pub mod messages;
pub mod output;
pub mod records;
pub mod render;
pub mod source;
