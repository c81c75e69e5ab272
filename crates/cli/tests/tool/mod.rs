//! Runs a tool as a user would: arguments in, text and exit status out.

use std::io::Write;
use std::process::{Command, Stdio};

pub(crate) struct Outcome {
    pub success: bool,
    pub stdout: String,
    pub stderr: String,
}

pub(crate) fn run(tool: &str, arguments: &[&str], input: &str) -> Outcome {
    let mut child = Command::new(tool)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the tool starts");
    // The tool may end before it has read everything; that is not this test's concern.
    let _ = child
        .stdin
        .take()
        .expect("the input is piped")
        .write_all(input.as_bytes());
    let output = child.wait_with_output().expect("the tool ends");
    Outcome {
        success: output.status.success(),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}
