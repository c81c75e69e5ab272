//! Why a function cannot be imported.

use ferrozyme_llvm::SourcePlace;
use ferrozyme_refusal::{LOOP_IR, Refusal, Words};
use std::fmt;

/// Why a function cannot be imported: where, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// The symbol of the function.
    pub function: String,
    /// What is not understood.
    pub refusal: Refusal,
    /// The instruction, as LLVM writes it.
    pub instruction: Option<String>,
    /// Where it stands in the source: the innermost place first, then those that it was inlined to.
    pub places: Vec<SourcePlace>,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}: {}", self.function, self.refusal)?;
        if let Some(instruction) = &self.instruction {
            write!(f, "\n  in: {}", instruction.trim())?;
        }
        if let Some(place) = self.places.first() {
            write!(f, "\n  at {}:{}:{}", place.file, place.line, place.column)?;
        }
        write!(f, "\n  help: {}", self.refusal.remedy(&Words::of(&LOOP_IR)))
    }
}

impl std::error::Error for ImportError {}

/// An instruction that the Loop IR has no operation for.
pub(super) fn unknown(what: impl Into<String>) -> Refusal {
    Refusal::UnknownInstruction { what: what.into() }
}

/// What an instruction becomes, or why it cannot.
pub(super) type Result<T, E = Refusal> = std::result::Result<T, E>;
