//! Checks of analyses: their results as text.

use super::{Output, Session};
use crate::analysis::{print_aliases, print_clobbers, print_indices};
use crate::file::Directive;
use crate::scan::Scanner;
use crate::signature::{find_function, parse_signature};
use ferrozyme_diff::objects::{Objects, ObjectsCache};
use ferrozyme_diff::{explain_activity, explain_plan};
use ferrozyme_ir::{FunctionId, Module};

/// `indices @f`.
pub(super) fn indices(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    of_function(session, directive, print_indices)
}

/// `alias @f`.
pub(super) fn alias(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    of_function(session, directive, print_aliases)
}

/// `clobbers @f`.
pub(super) fn clobbers(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    of_function(session, directive, print_clobbers)
}

/// `objects @f`.
pub(super) fn objects(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    of_function(session, directive, |module, function| {
        Objects::analyse(module, function, &mut ObjectsCache::new(), None).print(module)
    })
}

/// `activity @f (dup) -> (active)`.
pub(super) fn activity(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    let module = session.module()?;
    let request = parse_signature(directive.arguments())?.request(module)?;
    explain_activity(module, &request)
        .map(Output::Text)
        .map_err(|error| error.to_string())
}

/// `plan @f (dup) -> (active)`.
pub(super) fn plan(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    let module = session.module()?;
    let request = parse_signature(directive.arguments())?.request(module)?;
    explain_plan(module, &request)
        .map(Output::Text)
        .map_err(|error| error.to_string())
}

fn of_function(
    session: &mut Session,
    directive: &Directive,
    print: impl Fn(&Module, FunctionId) -> String,
) -> Result<Output, String> {
    let mut scanner = Scanner::new(directive.arguments());
    let name = scanner.symbol()?;
    scanner.finish()?;
    let module = session.module()?;
    let function = find_function(module, name)?;
    if module.functions[function].body.is_none() {
        return Err(format!("@{name} has no body to analyse"));
    }
    Ok(Output::Text(print(module, function)))
}
