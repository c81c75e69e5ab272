//! `graphir`: a tool for text files of tensor graphs.

use clap::Parser;
use ferrozyme_cli::graphir::{Arguments, run};
use ferrozyme_cli::output::report;
use std::process::ExitCode;

fn main() -> ExitCode {
    report(run(&Arguments::parse()))
}
