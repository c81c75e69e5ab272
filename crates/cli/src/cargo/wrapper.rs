//! The wrapper of rustc: runs it and, if it links, shows the linker's messages as rustc's own.
//!
//! rustc reports a failed linker as "linking with … failed" with all the linker's arguments. Cargo has rustc write its messages as
//! JSON, line by line; that one line is replaced by the messages that the linker left in a file. So errors about derivatives
//! look like any other error of the compiler, also to editors.

use super::rustc_call::RustcCall;
use super::{flags, packages};
use crate::link::real::exit_code;
use crate::link::staticlib;
use crate::messages;
use crate::render;
use ferrozyme_driver::{Diagnostic, Severity};
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write, stderr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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
    let call = RustcCall::parse(arguments);
    let mut whole: Vec<OsString> = user_wrapper.into_iter().collect();
    if is_plain(&call) {
        whole.extend(flags::without_bitcode(arguments));
    } else {
        whole.extend_from_slice(arguments);
        whole.extend(
            call.flags_for_debug_information()
                .iter()
                .map(OsString::from),
        );
    }
    let Some((program, rest)) = whole.split_first() else {
        return 1;
    };
    let mut command = Command::new(program);
    command.args(rest);
    if !call.links() && call.static_library().is_none() {
        return report(program, &command.exec());
    }
    match run_linking(command, &call) {
        Ok(code) => code,
        Err(error) => report(program, &error),
    }
}

/// Whether no derivative can have anything to do with this, see `packages.rs`.
fn is_plain(call: &RustcCall) -> bool {
    let list =
        std::env::var_os(messages::PLAIN).and_then(|path| std::fs::read_to_string(path).ok());
    let folder = std::env::var("CARGO_MANIFEST_DIR");
    match (list, folder) {
        (Some(list), Ok(folder)) => packages::names_plain(&list, &folder, call.is_build_script()),
        _ => false,
    }
}

fn report(program: &OsStr, error: &std::io::Error) -> i32 {
    let program = Path::new(program).display();
    let _ = writeln!(stderr(), "error: cannot run `{program}`: {error}");
    1
}

fn run_linking(mut command: Command, call: &RustcCall) -> std::io::Result<i32> {
    let file = tempfile::NamedTempFile::with_prefix("ferrozyme-messages-")?;
    command.env(messages::MESSAGES, file.path());
    let progress = Progress::watch(file.path());
    let status = if call.json {
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        if let Some(pipe) = child.stderr.take() {
            for line in BufReader::new(pipe).split(b'\n') {
                let mut line = line?;
                if is_linker_failure(&line) && show_messages(file.path(), Severity::Error, call) {
                    continue;
                }
                line.push(b'\n');
                stderr().lock().write_all(&line)?;
            }
        }
        child.wait()?
    } else {
        command.status()?
    };
    drop(progress);
    if !status.success() {
        return Ok(exit_code(status));
    }
    show_messages(file.path(), Severity::Warning, call);
    if let Some(line) = call.static_library()
        && let Err(diagnostics) = staticlib::finish(&line)
    {
        diagnostics
            .iter()
            .for_each(|diagnostic| show(diagnostic, call));
        return Ok(1);
    }
    Ok(0)
}

/// Shows the linker's progress, once it takes long.
struct Progress {
    file: PathBuf,
    ended: Arc<AtomicBool>,
}

impl Progress {
    /// How long the linker works before it is worth a word.
    const PATIENCE: Duration = Duration::from_secs(1);

    /// Watches the progress file beside the message file. Cargo prints lines that are not JSON.
    fn watch(messages: &Path) -> Progress {
        let progress = Progress {
            file: messages::progress_file(messages),
            ended: Arc::default(),
        };
        if std::env::var_os(messages::QUIET).is_some() {
            return progress;
        }
        let (file, ended) = (progress.file.clone(), progress.ended.clone());
        std::thread::spawn(move || {
            let mut start = None;
            let mut shown = String::new();
            while !ended.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
                let Ok(step) = std::fs::read_to_string(&file) else {
                    continue;
                };
                let start = *start.get_or_insert_with(Instant::now);
                if start.elapsed() >= Progress::PATIENCE && !step.is_empty() && step != shown {
                    // In cargo's format for progress.
                    let _ = writeln!(stderr(), "{:>12} {step}", "Ferrozyme");
                    shown = step;
                }
            }
        });
        progress
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let _ = std::fs::remove_file(&self.file);
    }
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

/// Shows the linker's messages, if one is severe enough. Returns whether there was one.
fn show_messages(file: &Path, severity: Severity, call: &RustcCall) -> bool {
    let diagnostics: Vec<Diagnostic> = messages::receive(file)
        .into_iter()
        .flat_map(|message| message.diagnostics)
        .collect();
    let shown = diagnostics
        .iter()
        .any(|diagnostic| diagnostic.severity == severity);
    if shown {
        diagnostics
            .iter()
            .for_each(|diagnostic| show(diagnostic, call));
    }
    shown
}

/// Writes a diagnostic as this call of rustc would.
fn show(diagnostic: &Diagnostic, call: &RustcCall) {
    let text = if call.json {
        let rendered = match call.short {
            true => render::render_short(diagnostic),
            false => render::render(diagnostic, call.coloured) + "\n\n",
        };
        render::to_json(diagnostic, &rendered).to_string()
    } else {
        render::render(diagnostic, false)
    };
    let _ = writeln!(stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

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
