//! Checks of passes: the functions of a module after them.

use super::{Output, Session, verify_module};
use crate::file::Directive;
use crate::signature::find_function;
use ferrozyme_ir::{FunctionId, Module, print};
use ferrozyme_opt::{PASSES, Pass, optimise};

/// `pass name [name…] [@f…]`: runs the passes in this order on the named functions, or on all.
pub(super) fn pass(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    let mut module = session.module()?.clone();
    let mut passes = Vec::new();
    let mut functions = Vec::new();
    for word in directive.arguments().split_whitespace() {
        match word.strip_prefix('@') {
            Some(name) => functions.push(find_function(&module, name)?),
            None => passes.push(word),
        }
    }
    if passes.is_empty() {
        return Err(format!("no pass is named; there are {}", pass_names()));
    }
    let named = !functions.is_empty();
    if !named {
        functions = module.functions.keys().collect();
    }
    functions.retain(|&function| module.functions[function].body.is_some());
    run_passes(&mut module, &passes, &functions)?;
    let text = if named {
        let texts: Vec<String> = functions
            .iter()
            .map(|&function| print::print_function(&module, function))
            .collect();
        texts.join("\n")
    } else {
        print::print_module(&module)
    };
    Ok(Output::Text(text))
}

/// `; optimise: @f`: optimises functions for later directives, and checks nothing.
pub(super) fn optimise_for_later(
    session: &mut Session,
    directive: &Directive,
) -> Result<Output, String> {
    let module = session.module()?;
    for word in directive.text.split_whitespace() {
        let name = word
            .strip_prefix('@')
            .ok_or_else(|| format!("expected the name of a function, but found `{word}`"))?;
        let function = find_function(module, name)?;
        optimise(module, function);
    }
    verify_module(module).map_err(|error| format!("after optimisation {error}"))?;
    Ok(Output::Passed)
}

/// Runs passes by name, in order, on functions with bodies; the module must verify after each.
fn run_passes(
    module: &mut Module,
    passes: &[&str],
    functions: &[FunctionId],
) -> Result<(), String> {
    for name in passes {
        let pass = find_pass(name)?;
        for &function in functions {
            pass(module, function);
        }
        verify_module(module).map_err(|error| format!("after `{name}` {error}"))?;
    }
    Ok(())
}

fn find_pass(name: &str) -> Result<Pass, String> {
    PASSES
        .iter()
        .find(|(other, _)| *other == name)
        .map(|(_, pass)| *pass)
        .ok_or_else(|| format!("`{name}` is no pass; there are {}", pass_names()))
}

/// Optimises every function of a module.
pub(super) fn optimise_all(module: &mut Module) {
    let functions: Vec<FunctionId> = module.functions.keys().collect();
    for function in functions {
        optimise(module, function);
    }
}

/// The names of all passes, for messages.
fn pass_names() -> String {
    let names: Vec<&str> = PASSES.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}
