//! `graphir`: a tool for text files of tensor graphs.

use clap::Parser;
use ferrozyme_cli::graphir::{Arguments, run};
use std::io::{ErrorKind, Write, stderr, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(text) => match stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            // The reader has closed the pipe, as `head` does.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => fail(&format!("error: {error}")),
        },
        Err(message) => fail(&message),
    }
}

fn fail(message: &str) -> ExitCode {
    // If this cannot be written either, there is no way to report it.
    let _ = writeln!(stderr(), "{message}");
    ExitCode::FAILURE
}
