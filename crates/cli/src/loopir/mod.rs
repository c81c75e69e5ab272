//! The tool `loopir`: one subcommand for each operation on a text file of IR.
//!
//! Each command is a function from its arguments to the text it prints; only `main` writes.

mod analyse;
mod differentiate;
mod execute;
mod optimise;

use crate::source::{read_module, read_verified_module};
use clap::{Parser, Subcommand};
use ferrozyme_ir::print::print_module;
use std::path::PathBuf;

/// Prints, checks, runs, optimises and differentiates text files of Loop IR.
#[derive(Parser, Debug)]
#[command(name = "loopir", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  loopir verify sum.fz
  loopir run sum.fz @sum '[1.0, 2.0, 3.0]' 3
  loopir optimise sum.fz --pass simplify --pass dce
  loopir analyse activity sum.fz --args dup,const --results active
  loopir differentiate sum.fz --mode reverse --args dup,const --results active
  loopir explain sum.fz --args dup,const --results active
  loopir gradcheck sum.fz --args dup,const --results active --at '([0.5, 1.5], 2)'

A file named `-` is the standard input, so that commands can be chained:
  loopir differentiate sum.fz --whole --name @df | loopir run - @df '[1.0, 2.0]' '[0.0, 0.0]' 2 1.0";

#[derive(Subcommand, Debug)]
enum Command {
    /// Prints a module in canonical form.
    Print {
        /// The file, or `-` for the standard input.
        file: PathBuf,
    },
    /// Verifies a module, and prints the errors.
    Verify {
        /// The file, or `-` for the standard input.
        file: PathBuf,
    },
    /// Runs a function on checked memory and prints its results.
    Run(execute::Run),
    /// Runs passes and prints the resulting module.
    Optimise(optimise::Optimise),
    /// Prints the result of an analysis of a function.
    Analyse(analyse::Analyse),
    /// Prints the derivative of a function.
    Differentiate(differentiate::Differentiate),
    /// Prints what reverse mode saves for a function, how many bytes, and why.
    Explain(differentiate::Explain),
    /// Checks the derivatives of a function against each other and against finite differences.
    Gradcheck(differentiate::Gradcheck),
}

/// Runs the command line; returns the text to print, or an error.
pub fn run(arguments: &Arguments) -> Result<String, String> {
    match &arguments.command {
        Command::Print { file } => Ok(print_module(&read_module(file)?)),
        Command::Verify { file } => read_verified_module(file).map(|_| String::new()),
        Command::Run(command) => command.run(),
        Command::Optimise(command) => command.run(),
        Command::Analyse(command) => command.run(),
        Command::Differentiate(command) => command.run(),
        Command::Explain(command) => command.run(),
        Command::Gradcheck(command) => command.run(),
    }
}
