//! What users say of functions beside requests: rules of their own, that a function is inactive, and more. How it is written down is a matter of front ends.

use crate::report::{Diagnostic, Location};
use ferrozyme_llvm::{Context, Value};
use ferrozyme_refusal::{Refusal, Terms};

/// Something said of a function, which is named by its symbol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Registration {
    /// The function.
    pub(crate) primal: String,
    /// The input that says so, which defines the functions that others do not see.
    pub(crate) source: usize,
    /// What is said of it.
    pub(crate) kind: RegistrationKind,
}

/// What is said of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RegistrationKind {
    /// Nothing that goes through it carries a derivative.
    Inactive,
    /// Its derivative is given: the functions of an `ir::Rule`.
    Rule {
        forward: Option<RuleFunction>,
        augment: Option<RuleFunction>,
        reverse: Option<RuleFunction>,
    },
    /// The primal is a global variable, and nothing in it carries a derivative.
    InactiveGlobal,
    /// Its derivative is that of a function of the C library.
    Like(String),
    /// It allocates as many bytes as this argument says; what it gives is released by this function.
    Allocation { size: u32, release: Option<String> },
}

/// How a function of a rule takes and gives things.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Convention {
    /// As the differentiator wants it.
    Rule,
    /// As C programs register it.
    Enzyme,
}

/// A function of a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RuleFunction {
    /// Its symbol.
    pub(crate) symbol: String,
    /// The types of results that it writes through its last parameters, a letter each, if it has more than one.
    pub(crate) results: String,
    /// How it is called.
    pub(crate) convention: Convention,
}

impl RuleFunction {
    /// There is a function around it now that is called as the differentiator wants it.
    pub(crate) fn adapted(&mut self, symbol: String) {
        self.symbol = symbol;
        self.convention = Convention::Rule;
    }
}

impl Registration {
    /// All functions that are named.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = &str> {
        let (rules, other) = match &self.kind {
            RegistrationKind::Rule {
                forward,
                augment,
                reverse,
            } => ([forward, augment, reverse], None),
            RegistrationKind::Allocation { release, .. } => ([&None; 3], release.as_deref()),
            _ => ([&None; 3], None),
        };
        rules
            .into_iter()
            .flatten()
            .map(|function| function.symbol.as_str())
            .chain(other)
            .chain([self.primal.as_str()])
    }
}

/// A refusal of what a global variable says, at the line of its definition.
pub(crate) fn refused_at_variable<'c>(
    context: &'c Context,
    variable: Value<'c>,
    refusal: &Refusal,
    terms: &'static Terms,
) -> Diagnostic {
    let place = variable.variable_place(context).map(Location::from);
    Diagnostic::refused_at(place, refusal, terms)
}
