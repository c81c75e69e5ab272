//! `loopir`: a tool for text files of Loop IR.

use clap::Parser;
use ferrozyme_cli::loopir::{Arguments, run};
use ferrozyme_cli::output::report;
use std::process::ExitCode;

fn main() -> ExitCode {
    report(run(&Arguments::parse()))
}
