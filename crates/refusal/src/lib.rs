//! Why a program has no derivative.
//!
//! Whoever finds a problem (the differentiator, the importer, the driver) makes a [`Refusal`]: what is wrong, and which value it is about. It holds no sentence. The table in `table.rs` has one row
//! for each refusal: its stable code, what it means, the message and the way out. Messages are put together from [`Terms`] of the source language, so that a sentence is written once, and speaks of
//! `Const` to users of Rust and of 'enzyme_const' to those of C. File tests and `loopir`, which have no source language, show the terms of the Loop IR.
//!
//! Where it stands in the source is added by who knows: `diff::Error`, `import::ImportError` and the driver's `Diagnostic`.
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

/// The number under which a refusal stands in the documentation. It never changes its meaning.
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

/// How texts start with which derivatives stop a program.
pub const STOP: &str = "Ferrozyme: ";

impl Refusal {
    /// The text with which a derivative stops the program, where only the run can tell.
    pub fn stop_text(&self) -> String {
        let words = Words::of(&RUST);
        let (message, remedy) = (self.message(&words), self.remedy(&words));
        format!("{STOP}{message} [{}]; {remedy}", self.code())
    }
}

/// All refusals as the table of the documentation, in Markdown.
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
