//! How the tools for text files end.

use std::io::{ErrorKind, Write, stderr, stdout};
use std::process::ExitCode;

/// Prints the text that a tool made, or why it made none.
pub fn report(made: Result<String, String>) -> ExitCode {
    let written = match &made {
        Ok(text) => stdout().write_all(text.as_bytes()),
        Err(message) => return fail(message),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has closed the pipe, as `head` does.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(&format!("error: {error}")),
    }
}

fn fail(message: &str) -> ExitCode {
    // If this cannot be written either, there is no way to report it.
    let _ = writeln!(stderr(), "{message}");
    ExitCode::FAILURE
}
