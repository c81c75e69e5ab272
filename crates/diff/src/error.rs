//! Why something cannot be differentiated, in words for the user: where, which construct, and what to do about it.

use ferrozyme_ir::{Function, Location, Module, Op, Opcode, Payload, print};
use std::fmt;

/// Why a derivative could not be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// The function in which it was found.
    pub function: String,
    /// The text of the operation, if it is about one.
    pub operation: Option<String>,
    /// What kind of operation that is.
    pub opcode: Option<Opcode>,
    /// The function that it calls.
    pub callee: Option<String>,
    /// The argument of the function that is given without a shadow, if that is the problem.
    pub argument: Option<u32>,
    /// Whether the problem is that shadows from outside do not tell floats from other things; see [`Request::shaped`](crate::Request::shaped).
    pub shapes: bool,
    /// Where that stands in the source: `file:line:column`.
    pub location: Option<String>,
    /// The same in the module's table, which knows where it was inlined to.
    pub place: Option<Location>,
    /// What the user can do.
    pub remedy: String,
    /// The calls that led there, the outermost first.
    pub chain: Vec<Caller>,
}

/// A call on the way to what cannot be differentiated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The function that calls.
    pub function: String,
    /// Where it calls, if that is known.
    pub place: Option<Location>,
}

impl Error {
    /// An error about an operation.
    pub fn at(
        module: &Module,
        function: &Function,
        op: Op,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Error {
        Error {
            message: message.into(),
            function: function.name.clone(),
            operation: Some(print::print_op(module, function, op)),
            opcode: Some(function.ops[op].opcode),
            callee: match function.ops[op].payload {
                Payload::Callee(callee) => Some(module.functions[callee].name.clone()),
                _ => None,
            },
            argument: None,
            shapes: false,
            location: function.ops[op]
                .location
                .map(|location| module.describe_location(location)),
            place: function.ops[op].location,
            remedy: remedy.into(),
            chain: Vec::new(),
        }
    }

    /// An error about a function as a whole.
    pub fn of_function(
        function: &Function,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Error {
        Error {
            message: message.into(),
            function: function.name.clone(),
            operation: None,
            opcode: None,
            callee: None,
            argument: None,
            shapes: false,
            location: None,
            place: None,
            remedy: remedy.into(),
            chain: Vec::new(),
        }
    }

    /// Records that the error was met on the way through a call in `caller`.
    pub fn called_from(mut self, caller: &str, place: Option<Location>) -> Error {
        let caller = Caller {
            function: caller.to_owned(),
            place,
        };
        self.chain.insert(0, caller);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        write!(f, "\n  in @{}", self.function)?;
        if let Some(location) = &self.location {
            write!(f, " at {location}")?;
        }
        if let Some(operation) = &self.operation {
            write!(f, ": {}", operation.trim())?;
        }
        for caller in self.chain.iter().rev() {
            write!(f, "\n  called from @{}", caller.function)?;
        }
        write!(f, "\n  help: {}", self.remedy)
    }
}

impl std::error::Error for Error {}
