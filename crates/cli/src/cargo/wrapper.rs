//! The wrapper of rustc: runs it, and where it links, shows what the linker said as rustc's own message.
//!
//! rustc reports a failed linker as "linking with … failed" with all the linker's arguments. Cargo has rustc write its messages as
//! JSON, line by line; that one line is taken out, and what the linker left in a file takes its place. So errors about derivatives
//! look like any other error of the compiler, also to editors.

use crate::messages;
use crate::render;
use ferrozyme_driver::Severity;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write, stderr};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether cargo calls us in the place of rustc: inside a build of ours, with a compiler as the first argument.
pub fn is_wrapper_call(arguments: &[OsString]) -> bool {
    std::env::var_os(messages::USER_WRAPPER).is_some()
        && arguments.first().is_some_and(|program| {
            let stem = Path::new(program).file_stem().unwrap_or_default();
            let stem = stem.to_string_lossy();
            stem.contains("rustc") || stem.ends_with("-driver") || Path::new(program).is_absolute()
        })
}

/// Runs the compiler that the arguments begin with; the result is its exit code.
pub fn run(arguments: &[OsString]) -> i32 {
    let user_wrapper =
        std::env::var_os(messages::USER_WRAPPER).filter(|wrapper| !wrapper.is_empty());
    let whole: Vec<&OsStr> = user_wrapper
        .iter()
        .chain(arguments)
        .map(OsString::as_os_str)
        .collect();
    let Some((program, rest)) = whole.split_first() else {
        return 1;
    };
    let mut command = Command::new(program);
    command.args(rest);
    if !links(arguments) {
        return report(program, &command.exec());
    }
    match run_linking(command, arguments) {
        Ok(code) => code,
        Err(error) => report(program, &error),
    }
}

fn report(program: &OsStr, error: &std::io::Error) -> i32 {
    let program = Path::new(program).display();
    let _ = writeln!(stderr(), "error: cannot run `{program}`: {error}");
    1
}

/// Whether this call of rustc ends with a linker.
fn links(arguments: &[OsString]) -> bool {
    let texts = || arguments.iter().map(|argument| argument.to_string_lossy());
    let mut linked = false;
    let mut emitted = true;
    let mut previous = String::new();
    for text in texts() {
        let value = |name: &str| match text.strip_prefix(&format!("{name}=")) {
            Some(value) => Some(value.to_owned()),
            None if previous == name => Some(text.to_string()),
            None => None,
        };
        if let Some(kinds) = value("--crate-type") {
            linked |= kinds
                .split(',')
                .any(|kind| matches!(kind, "bin" | "dylib" | "cdylib" | "proc-macro"));
        }
        if let Some(kinds) = value("--emit") {
            emitted = kinds
                .split(',')
                .any(|kind| kind.split('=').next() == Some("link"));
        }
        if text == "--test" {
            linked = true;
        }
        if text.starts_with("--print") || text == "-vV" {
            return false;
        }
        previous = text.into_owned();
    }
    linked && emitted
}

fn run_linking(mut command: Command, arguments: &[OsString]) -> std::io::Result<i32> {
    let coloured = arguments.iter().any(|argument| {
        argument
            .to_string_lossy()
            .contains("diagnostic-rendered-ansi")
    });
    let json = arguments
        .iter()
        .any(|argument| argument == "--error-format=json");
    let file = tempfile::NamedTempFile::with_prefix("ferrozyme-messages-")?;
    command.env(messages::MESSAGES, file.path());
    if !json {
        return Ok(crate::link::real::exit_code(command.status()?));
    }
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    if let Some(pipe) = child.stderr.take() {
        for line in BufReader::new(pipe).split(b'\n') {
            let mut line = line?;
            if is_linker_failure(&line) && show_messages(file.path(), Severity::Error, coloured) {
                continue;
            }
            line.push(b'\n');
            stderr().lock().write_all(&line)?;
        }
    }
    let status = child.wait()?;
    if status.success() {
        show_messages(file.path(), Severity::Warning, coloured);
    }
    Ok(crate::link::real::exit_code(status))
}

/// Whether a line of rustc's JSON says that the linker failed.
fn is_linker_failure(line: &[u8]) -> bool {
    const START: &str = "linking with `";
    if memchr::memmem::find(line, START.as_bytes()).is_none() {
        return false;
    }
    let value: Option<serde_json::Value> = serde_json::from_slice(line).ok();
    value.is_some_and(|value| {
        value["level"] == "error"
            && value["message"]
                .as_str()
                .is_some_and(|message| message.starts_with(START))
    })
}

/// Writes what the linker said as rustc's JSON, if there is anything as severe among it. Whether there was.
fn show_messages(file: &Path, severity: Severity, coloured: bool) -> bool {
    let diagnostics: Vec<_> = messages::receive(file)
        .into_iter()
        .flat_map(|message| message.diagnostics)
        .collect();
    let shown = diagnostics
        .iter()
        .any(|diagnostic| diagnostic.severity == severity);
    if shown {
        for diagnostic in &diagnostics {
            let value = render::to_json(diagnostic, coloured);
            let _ = writeln!(stderr(), "{value}");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links_with(arguments: &[&str]) -> bool {
        let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
        links(&arguments)
    }

    #[test]
    fn knows_what_links() {
        assert!(links_with(&[
            "rustc",
            "--crate-type",
            "bin",
            "--emit=dep-info,link"
        ]));
        assert!(links_with(&["rustc", "--test", "--emit=dep-info,link"]));
        assert!(links_with(&["rustc", "--crate-type=proc-macro"]));
        assert!(!links_with(&[
            "rustc",
            "--crate-type",
            "lib",
            "--emit=dep-info,metadata,link"
        ]));
        assert!(!links_with(&[
            "rustc",
            "--crate-type",
            "bin",
            "--emit=dep-info,metadata"
        ]));
        assert!(!links_with(&["rustc", "-vV"]));
        let probe = ["rustc", "-", "--print=file-names", "--crate-type", "bin"];
        assert!(!links_with(&probe));
    }

    #[test]
    fn knows_the_failure_of_a_linker() {
        assert!(is_linker_failure(
            br#"{"level":"error","message":"linking with `cc` failed: exit status: 1"}"#
        ));
        assert!(!is_linker_failure(
            br#"{"level":"error","message":"no linking with `cc`"}"#
        ));
        assert!(!is_linker_failure(b"linking with `"));
    }
}
