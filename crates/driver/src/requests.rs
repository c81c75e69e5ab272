//! A derivative that the program asks for, as far as it does not matter how it is written down.

use crate::frontend::{Interface, Language};
use crate::report::Location;
use ferrozyme_diff as diff;
use ferrozyme_ir::FunctionId;
use ferrozyme_llvm::{Context, Value};
use std::rc::Rc;

/// What symbols start with that stand for derivatives, and for what comes with them.
pub(crate) const OWN_PREFIX: &str = "__ferrozyme_";

/// What the symbols of derivatives start with. Modules of the program call them by these names until all is linked, which may be long after they are compiled.
pub(crate) const DERIVATIVE_PREFIX: &str = "__ferrozyme_derivative_";

/// A derivative that a module asks for.
#[derive(Clone, Debug)]
pub(crate) struct FoundRequest {
    /// The symbol that is called in the place of the request. Equal requests have equal symbols.
    pub(crate) symbol: String,
    /// The symbol of the function that is differentiated. The two halves of split reverse mode have the same.
    pub(crate) root: String,
    /// The symbol of what the root calls.
    pub(crate) primal: String,
    /// Forward or reverse.
    pub(crate) mode: Mode,
    /// How many shadows come with each argument.
    pub(crate) width: u32,
    /// Which sweeps of reverse mode it has.
    pub(crate) part: Part,
    /// The name of the function that is differentiated, for people.
    pub(crate) primal_name: String,
    /// The name of the derivative, for people.
    pub(crate) derivative_name: String,
    /// Where the request itself stands, which for the function interface is in the library.
    pub(crate) written_at: Option<Location>,
    /// How its arguments travel.
    pub(crate) interface: Rc<dyn Interface>,
    /// The user's function, if the request is one of the function interface (`grad` and its relatives); known once all is gathered.
    pub(crate) given: Option<Given>,
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Mode {
    /// Tangents beside the primal.
    Forward,
    /// Gradients.
    Reverse,
    /// The function itself, without a derivative.
    Primal,
}

/// Which sweeps of reverse mode a derivative has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Part {
    /// Both.
    Whole,
    /// The forward sweep, which gives a tape.
    Augmented,
    /// The reverse sweep, which takes it.
    Reverse {
        /// Whether the tape can be used again.
        keep_tape: bool,
    },
}

/// A function that was given to the function interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Given {
    /// Its path; that of a closure ends in `{{closure}}`.
    pub(crate) name: String,
    /// A line of it, the first that is known.
    pub(crate) location: Option<Location>,
}

impl FoundRequest {
    /// The symbols of a derivative and its root, which follow from a hash of all that is asked for: the same derivative wanted in several modules is one.
    pub(crate) fn symbols(hash: u64) -> (String, String) {
        (
            format!("{DERIVATIVE_PREFIX}{hash:016x}"),
            format!("__ferrozyme_root_{hash:016x}"),
        )
    }

    /// The language of who asks.
    pub(crate) fn language(&self) -> &'static Language {
        self.interface.front_end().language()
    }

    /// The name of what the user wants to be differentiated.
    pub(crate) fn shown_name(&self) -> &str {
        let given = self.given.as_ref();
        given.map_or(&self.primal_name, |given| &given.name)
    }

    /// Where the user asks for it, or the function that it is asked for.
    pub(crate) fn location(&self) -> Option<Location> {
        let given = self.given.as_ref();
        given
            .and_then(|given| given.location.clone())
            .or_else(|| self.written_at.clone())
    }

    /// Whether the function interface asks.
    pub(crate) fn is_of_interface(&self) -> bool {
        self.primal_name.starts_with("ferrozyme::")
    }

    /// What is asked of the differentiator, for the root.
    pub(crate) fn asked(&self, root: FunctionId) -> diff::Request {
        let asked = self.interface.asked(root);
        match self.mode {
            Mode::Reverse | Mode::Primal => asked,
            Mode::Forward => diff::Request {
                width: self.width,
                ..asked
            },
        }
    }
}

/// Where an instruction stands in the source, at the outermost level.
pub(crate) fn location_of<'c>(context: &'c Context, instruction: Value<'c>) -> Option<Location> {
    instruction.source_places(context).pop().map(Location::from)
}
