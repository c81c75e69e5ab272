//! The driver's output: diagnostics, reports on derivatives, and timings.
//!
//! All of it can be serialised, because it passes from the linker process to the one that the user sees.

use crate::options::Stage;
use ferrozyme_llvm::SourcePlace;
use ferrozyme_refusal::{Refusal, Terms, Words};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// Why something cannot be differentiated, or what the user should know.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The code of the refusal, if it is one: `FZ0401`.
    pub code: Option<String>,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// Where, in the user's source if possible.
    pub location: Option<Location>,
    /// What stands below the place: the construct, in words or as the text of an operation.
    pub construct: Option<String>,
    /// The calls that led there, the annotated function first.
    pub chain: Vec<Frame>,
    /// More to know, one sentence each.
    pub notes: Vec<String>,
    /// What the user can do.
    pub remedy: Option<String>,
}

impl Diagnostic {
    /// An error of which no more is known than what it says.
    pub fn error(message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code: None,
            message: message.into(),
            location: None,
            construct: None,
            chain: Vec::new(),
            notes: Vec::new(),
            remedy: None,
        }
    }

    /// A refusal in the words of a language, of which no place is known.
    pub fn refused(refusal: &Refusal, words: &Words<'_>) -> Diagnostic {
        Diagnostic {
            code: Some(refusal.code().to_string()),
            remedy: Some(refusal.remedy(words)),
            ..Diagnostic::error(refusal.message(words))
        }
    }

    /// A refusal at a place, where all names are as they stand in the source.
    pub(crate) fn refused_at(
        location: Option<Location>,
        refusal: &Refusal,
        terms: &'static Terms,
    ) -> Diagnostic {
        Diagnostic {
            location,
            ..Diagnostic::refused(refusal, &Words::of(terms))
        }
    }

    /// The message, with its code behind it.
    pub fn headline(&self) -> String {
        match &self.code {
            Some(code) => format!("{} [{code}]", self.message),
            None => self.message.clone(),
        }
    }

    /// A warning of which no more is known than what it says.
    pub fn warning(message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(message)
        }
    }
}

impl From<Diagnostic> for Vec<Diagnostic> {
    fn from(problem: Diagnostic) -> Vec<Diagnostic> {
        vec![problem]
    }
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Severity {
    /// The link fails.
    Error,
    /// The link goes on.
    Warning,
}

/// A place in a source file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Location {
    /// As the compiler named it: absolute, or relative to the folder where rustc ran.
    pub file: String,
    /// From 1 on; 0 if only the file is known.
    pub line: u32,
    /// From 1 on; 0 if only the line is known.
    pub column: u32,
}

impl From<SourcePlace> for Location {
    fn from(place: SourcePlace) -> Location {
        Location {
            file: place.file,
            line: place.line,
            column: place.column,
        }
    }
}

/// A path as people read it: what lies below the current folder is named from there on.
pub fn shorten(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let short = here
        .as_deref()
        .and_then(|here| path.strip_prefix(here).ok());
    short.unwrap_or(path).display().to_string()
}

/// A call on the way from the annotated function to the place of an error.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Frame {
    /// The function that calls, demangled.
    pub function: String,
    /// Where it calls.
    pub location: Option<Location>,
}

/// What was done in a link.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// One for each derivative.
    pub derivatives: Vec<DerivativeReport>,
    /// How long the phases took, in order. Phases of the same name may occur several times.
    pub timings: Vec<Timing>,
    /// What the user should know though the derivatives were made.
    pub warnings: Vec<Diagnostic>,
}

/// One phase and its time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Timing {
    /// What was done: "import", "differentiate" …
    pub phase: String,
    /// How long it took.
    pub time: Duration,
}

/// The mode of a function that is asked for itself, without a derivative.
pub(crate) const ACCELERATED: &str = "accelerated";

/// What can be said of one derivative.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct DerivativeReport {
    /// The path of the differentiated function.
    pub primal: String,
    /// The name of the derivative.
    pub derivative: String,
    /// "forward" or "reverse", or [`ACCELERATED`].
    pub mode: String,
    /// Shadows for each argument.
    pub width: u32,
    /// Where the request stands.
    pub location: Option<Location>,
    /// Activity, layouts, what is saved and why, for people. Lines may end with ` // file:line:column`.
    pub summary: String,
    /// The texts of the stages that were asked for.
    pub stages: Vec<(Stage, String)>,
}

impl DerivativeReport {
    /// Whether it is no derivative, but the function itself.
    pub fn is_itself(&self) -> bool {
        self.mode == ACCELERATED
    }

    /// What it is of, and how, in one line.
    pub fn title(&self) -> String {
        let width = match self.width {
            0 | 1 => String::new(),
            width => format!(", width {width}"),
        };
        let (derivative, primal, mode) = (&self.derivative, &self.primal, &self.mode);
        match self.is_itself() {
            true => format!("function `{primal}` ({mode})"),
            false => format!("derivative `{derivative}` of `{primal}` ({mode}{width})"),
        }
    }
}
