//! Why a program has no derivative.
//!
//! The code that finds a problem (the differentiator, the importer, the driver) makes a [`Refusal`]: the kind of problem, with the names and types concerned. It holds no sentence. The table in `table.rs` has one row
//! for each refusal: its stable code, its meaning, the message and the way out. Messages are composed of [`Terms`] of the source language, so that a sentence is written once, and says
//! `Const` to users of Rust and 'enzyme_const' to users of C. File tests and `loopir` have no source language, and show the terms of the Loop IR.
//!
//! The source location is added by `diff::Error`, `import::ImportError` and the driver's `Diagnostic`.
//!
//! ```
//! use ferrozyme_refusal::{C, Refusal, Words};
//!
//! let refusal = Refusal::NoRule { callee: "far".to_owned(), forward: false };
//! assert_eq!(refusal.to_string(), "active values go through @far, which has neither a body nor a derivative rule [FZ0401]");
//! assert_eq!(refusal.message(&Words::of(&C)), "active values go through 'far', which has neither a body nor a derivative rule");
//! ```

mod table;
mod terms;

pub use table::{ROWS, Refusal, Row, UnknownBytes};
pub use terms::{Argument, C, LOOP_IR, RUST, Terms, Words};

use std::fmt;

/// The code of a refusal, which is also its section in the documentation. It never changes its meaning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Code(u16);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FZ{:04}", self.0)
    }
}

/// The message in terms of the Loop IR, with its code.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} [{}]",
            self.message(&Words::of(&LOOP_IR)),
            self.code()
        )
    }
}

/// The prefix of the message with which a derivative stops a program.
pub const STOP: &str = "Ferrozyme: ";

impl Refusal {
    /// The message with which a derivative stops the program, for problems that are known only at run time.
    pub fn stop_text(&self) -> String {
        let words = Words::of(&RUST);
        let (message, remedy) = (self.message(&words), self.remedy(&words));
        format!("{STOP}{message} [{}]; {remedy}", self.code())
    }
}

/// The documentation's table of refusals, in Markdown.
pub fn table() -> String {
    let mut text = "| code | what is refused |\n|---|---|\n".to_owned();
    for row in ROWS {
        let anchor = row.code.to_string().to_lowercase();
        text.push_str(&format!(
            "| [{}](#{anchor}) | {} |\n",
            row.code,
            row.meaning.trim()
        ));
    }
    text
}
