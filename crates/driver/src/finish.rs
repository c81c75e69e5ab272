//! Compiles the working module with the derivatives to an object file.

use crate::gather::Gathered;
use crate::options::Level;
use crate::report::Diagnostic;
use ferrozyme_llvm::compile::optimise_checked;
use ferrozyme_llvm::{Linkage, Module, PassOptions, TargetMachine, Visibility};
use std::collections::HashSet;

/// Makes everything but the derivatives private, optimises, and drops what is not needed. The result takes the module's place.
pub(crate) fn optimise_derivatives<'c>(
    gathered: &Gathered<'c>,
    machine: &TargetMachine,
    level: Level,
) -> Result<Module<'c>, Diagnostic> {
    keep_derivatives(gathered)?;
    // Debug builds get optimised derivatives too: an unoptimised one would be of no use to anybody.
    let passes = match level {
        Level::O0 | Level::O1 | Level::O2 => "globaldce,default<O2>",
        Level::O3 => "globaldce,default<O3>",
    };
    optimise_checked(gathered.module, passes, machine, PassOptions::default())
        .map_err(|error| bug("LLVM could not optimise the derivatives", &error))
}

/// Makes everything but the derivatives private, and drops what is not needed.
pub(crate) fn drop_the_rest(gathered: &Gathered<'_>) -> Result<(), Diagnostic> {
    keep_derivatives(gathered)?;
    gathered
        .module
        .run_passes("globaldce", None, PassOptions::default())
        .map_err(|error| bug("LLVM could not optimise the derivatives", &error))
}

fn keep_derivatives(gathered: &Gathered<'_>) -> Result<(), Diagnostic> {
    let module = gathered.module;
    let requests = gathered.requests.iter();
    let derivatives: HashSet<&str> = requests.map(|request| request.symbol.as_str()).collect();
    for function in module.functions().collect::<Vec<_>>() {
        if function.is_declaration() {
            continue;
        }
        if derivatives.contains(function.name().as_str()) {
            function
                .set_linkage(Linkage::External)
                .set_visibility(Visibility::Hidden);
        } else {
            function
                .set_visibility(Visibility::Default)
                .set_linkage(Linkage::Internal);
        }
    }
    module
        .verify()
        .map_err(|error| bug("the derivatives do not verify as LLVM IR", &error))
}

/// The object file.
pub(crate) fn emit(module: Module<'_>, machine: &TargetMachine) -> Result<Vec<u8>, Diagnostic> {
    machine
        .emit_object(module)
        .map_err(|error| bug("LLVM could not generate code for the derivatives", &error))
}

fn bug(message: &str, error: &dyn std::fmt::Display) -> Diagnostic {
    Diagnostic {
        notes: vec![error.to_string()],
        remedy: Some(
            "this is a bug in Ferrozyme; `cargo ferrozyme explain --stage derivative` shows the derivatives for a report"
                .to_owned(),
        ),
        ..Diagnostic::error(message)
    }
}
