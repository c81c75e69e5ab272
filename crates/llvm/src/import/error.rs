//! Why a function cannot be imported.

use crate::metadata::SourcePlace;
use std::fmt;

/// Why a function cannot be imported: where, what, and what can be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportError {
    /// The symbol of the function.
    pub function: String,
    /// What is not understood.
    pub reason: String,
    /// The instruction, as LLVM writes it.
    pub instruction: Option<String>,
    /// Where it stands in the source: the innermost place first, then those that it was inlined to.
    pub places: Vec<SourcePlace>,
    /// What can be done.
    pub remedy: Option<String>,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}: {}", self.function, self.reason)?;
        if let Some(instruction) = &self.instruction {
            write!(f, "\n  in: {}", instruction.trim())?;
        }
        if let Some(place) = self.places.first() {
            write!(f, "\n  at {}:{}:{}", place.file, place.line, place.column)?;
        }
        if let Some(remedy) = &self.remedy {
            write!(f, "\n  help: {remedy}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ImportError {}

/// What is wrong with one instruction, before it is known where that is.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) reason: String,
    pub(super) remedy: Option<&'static str>,
}

impl Problem {
    pub(super) fn new(reason: impl Into<String>) -> Problem {
        Problem {
            reason: reason.into(),
            remedy: None,
        }
    }
}

/// What an instruction becomes, or why it cannot.
pub(super) type Result<T, E = Problem> = std::result::Result<T, E>;
