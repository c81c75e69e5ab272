//! `loopir optimise`.

use crate::source::{check_module, choose_function, read_verified_module};
use clap::Args;
use clap::builder::PossibleValuesParser;
use ferrozyme_ir::FunctionId;
use ferrozyme_ir::print::{print_function, print_module};
use ferrozyme_opt::PASSES;
use std::fmt::Write;
use std::path::PathBuf;

/// Runs passes.
#[derive(Args, Debug)]
pub(super) struct Optimise {
    /// The file, or `-` for the standard input.
    file: PathBuf,
    /// A pass to run; may be given several times, in order. Without it, the whole pipeline (`optimise`) runs.
    #[arg(long = "pass", value_parser = PossibleValuesParser::new(PASSES.iter().map(|(name, _)| *name)))]
    passes: Vec<String>,
    /// Only this function, such as `@f`.
    #[arg(long)]
    function: Option<String>,
    /// Prints the functions after each pass that changes them, under a line that names the pass.
    #[arg(long)]
    trace: bool,
}

impl Optimise {
    pub(super) fn run(&self) -> Result<String, String> {
        let mut module = read_verified_module(&self.file)?;
        let functions: Vec<FunctionId> = match &self.function {
            Some(name) => vec![choose_function(&module, Some(name))?],
            None => module.functions.keys().collect(),
        };
        let functions: Vec<FunctionId> = functions
            .into_iter()
            .filter(|&function| module.functions[function].body.is_some())
            .collect();
        let mut text = String::new();
        let wanted: Vec<&str> = match (self.passes.is_empty(), self.trace) {
            (false, _) => self.passes.iter().map(String::as_str).collect(),
            (true, false) => vec!["optimise"],
            // One after the other, since within the pipeline there is nothing to be seen.
            (true, true) => {
                let names = PASSES.iter().map(|(name, _)| *name);
                names.filter(|name| *name != "optimise").collect()
            }
        };
        for name in wanted {
            let Some((_, pass)) = PASSES.iter().find(|(other, _)| *other == name) else {
                return Err(format!("error: there is no pass `{name}`"));
            };
            for &function in &functions {
                let changes = pass(&mut module, function);
                if self.trace && changes > 0 {
                    let _ = writeln!(text, "; after {name}, which made {changes} changes");
                    let _ = writeln!(text, "{}", print_function(&module, function));
                }
            }
            check_module(&module).map_err(|error| format!("after `{name}`:\n{error}"))?;
        }
        if !self.trace {
            text = print_module(&module);
        }
        Ok(text)
    }
}
