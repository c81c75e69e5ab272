//! The command-line tools of Ferrozyme.
//!
//! [`loopir`] works on text files of Loop IR: it prints, checks, runs, optimises and differentiates them, because that
//! is how people debug a compiler.

pub mod loopir;
pub mod source;
