//! Why something cannot be differentiated, and where that was found.

use ferrozyme_ir::{Function, Location, Module, Op, Opcode, Payload, print};
use ferrozyme_refusal::{LOOP_IR, Refusal, Words};
use std::fmt;

/// Why a derivative could not be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// What is wrong.
    pub refusal: Refusal,
    /// The function in which it was found.
    pub function: String,
    /// The operation, if it is about one.
    pub site: Option<Box<Site>>,
    /// The calls that led there, the outermost first.
    pub chain: Vec<Caller>,
}

/// An operation that cannot be differentiated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// Its text.
    pub operation: String,
    /// What kind of operation it is.
    pub opcode: Opcode,
    /// The function that it calls.
    pub callee: Option<String>,
    /// Where that stands in the source: `file:line:column`.
    pub location: Option<String>,
    /// The same in the module's table, which knows where it was inlined to.
    pub place: Option<Location>,
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
    pub fn at(module: &Module, function: &Function, op: Op, refusal: Refusal) -> Error {
        let data = &function.ops[op];
        let site = Site {
            operation: print::print_op(module, function, op),
            opcode: data.opcode,
            callee: match data.payload {
                Payload::Callee(callee) => Some(module.functions[callee].name.clone()),
                _ => None,
            },
            location: data
                .location
                .map(|location| module.describe_location(location)),
            place: data.location,
        };
        Error {
            site: Some(Box::new(site)),
            ..Error::of(&function.name, refusal)
        }
    }

    /// An error about an operation if there is one, or else about the function as a whole.
    pub(crate) fn found(
        module: &Module,
        function: &Function,
        op: Option<Op>,
        refusal: Refusal,
    ) -> Error {
        match op {
            Some(op) => Error::at(module, function, op, refusal),
            None => Error::of(&function.name, refusal),
        }
    }

    /// An error about a function, or a global, as a whole.
    pub fn of(name: &str, refusal: Refusal) -> Error {
        Error {
            refusal,
            function: name.to_owned(),
            site: None,
            chain: Vec::new(),
        }
    }

    /// An error about a function whose body is not there.
    pub(crate) fn no_body(function: &Function) -> Error {
        let refusal = Refusal::NoBody {
            function: function.name.clone(),
        };
        Error::of(&function.name, refusal)
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

    /// Whether it is about an operation of this kind.
    pub fn is_at(&self, opcode: Opcode) -> bool {
        self.site.as_ref().is_some_and(|site| site.opcode == opcode)
    }

    /// Where the operation stands in the source.
    pub fn place(&self) -> Option<Location> {
        self.site.as_ref()?.place
    }

    /// The function that the operation calls.
    pub fn callee(&self) -> Option<&str> {
        self.site.as_ref()?.callee.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.refusal)?;
        write!(f, "\n  in @{}", self.function)?;
        if let Some(site) = &self.site {
            if let Some(location) = &site.location {
                write!(f, " at {location}")?;
            }
            write!(f, ": {}", site.operation.trim())?;
        }
        for caller in self.chain.iter().rev() {
            write!(f, "\n  called from @{}", caller.function)?;
        }
        write!(f, "\n  help: {}", self.refusal.remedy(&Words::of(&LOOP_IR)))
    }
}

impl std::error::Error for Error {}
