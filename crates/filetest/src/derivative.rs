//! Makes derivatives as directives and command lines ask for them.

use crate::check::{check_facts, verify_module};
use crate::signature::Signature;
use ferrozyme_diff::{Request, differentiate_forward, differentiate_reverse, differentiate_split};
use ferrozyme_ir::{FunctionId, Module, print};

/// Which derivative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Tangents along with values.
    Forward,
    /// Gradients, both sweeps in one function.
    Reverse,
    /// Gradients, one function for each sweep.
    Split,
}

impl Mode {
    /// The mode of this name.
    pub fn from_name(name: &str) -> Option<Mode> {
        match name {
            "forward" => Some(Mode::Forward),
            "reverse" => Some(Mode::Reverse),
            "split" => Some(Mode::Split),
            _ => None,
        }
    }
}

/// A derivative that was added to a module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Derivative {
    /// The requested function; for split mode the augmented one and the reverse one.
    pub functions: Vec<FunctionId>,
    /// All functions that were added, those included.
    pub added: Vec<FunctionId>,
}

/// Adds a derivative to a module; the error says in full why there is none.
pub fn differentiate(
    module: &mut Module,
    mode: Mode,
    request: &Request,
) -> Result<Derivative, String> {
    let before = module.functions.len();
    let functions = match mode {
        Mode::Forward => differentiate_forward(module, request).map(|function| vec![function]),
        Mode::Reverse => differentiate_reverse(module, request).map(|function| vec![function]),
        Mode::Split => {
            differentiate_split(module, request).map(|split| vec![split.augmented, split.reverse])
        }
    };
    let functions = functions.map_err(|error| error.to_string())?;
    let added = module.functions.keys().skip(before).collect();
    Ok(Derivative { functions, added })
}

/// Adds a derivative to a module, gives it the names asked for, and optimises it unless it is wanted raw. The module
/// must verify at each stage.
pub fn derive(
    module: &mut Module,
    mode: Mode,
    signature: &Signature,
) -> Result<Derivative, String> {
    let request = signature.request(module)?;
    let derivative =
        differentiate(module, mode, &request).map_err(|error| format!("error: {error}"))?;
    if !signature.names.is_empty() && signature.names.len() != derivative.functions.len() {
        return Err(format!(
            "{} names are given for {} functions",
            signature.names.len(),
            derivative.functions.len()
        ));
    }
    for (name, &function) in signature.names.iter().zip(&derivative.functions) {
        if module
            .function_named(name)
            .is_some_and(|other| other != function)
            || module.global_named(name).is_some()
        {
            return Err(format!("@{name} exists already"));
        }
        module.functions[function].name.clone_from(name);
    }
    verify_module(module).map_err(|error| format!("after differentiation {error}"))?;
    check_facts(module)?;
    if !signature.raw {
        for &function in &derivative.added {
            ferrozyme_opt::optimise(module, function);
        }
        verify_module(module).map_err(|error| format!("after optimisation {error}"))?;
        check_facts(module)?;
    }
    Ok(derivative)
}

/// The text of functions, one after the other.
pub fn print_functions(module: &Module, functions: &[FunctionId]) -> String {
    let texts: Vec<String> = functions
        .iter()
        .map(|&function| print::print_function(module, function))
        .collect();
    texts.join("\n")
}
