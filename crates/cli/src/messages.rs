//! Communication between the processes of a build: cargo-ferrozyme starts cargo, which starts rustc, which starts cargo-ferrozyme as the linker.
//!
//! Environment variables pass information down, files pass it up: rustc would bury the linker's output under the linker's arguments.

use ferrozyme_driver::{Diagnostic, Explain, Report};
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file into which the linker writes its messages, set for each rustc by the process that started it.
pub const MESSAGES: &str = "FERROZYME_MESSAGES";
/// The target directory of the build.
pub const TARGET_FOLDER: &str = "FERROZYME_TARGET_DIR";
/// The file that lists packages that are built without our flags, see `cargo/packages.rs`.
pub const PLAIN: &str = "FERROZYME_PLAIN";
/// The wrapper of rustc that the user had set.
pub const USER_WRAPPER: &str = "FERROZYME_RUSTC_WRAPPER";
/// Set if only errors and warnings are to be printed.
pub const QUIET: &str = "FERROZYME_QUIET";
/// The user's request for an explanation, as JSON ([`Explain`]).
pub const EXPLAIN: &str = "FERROZYME_EXPLAIN";
/// The folder for the answers to [`EXPLAIN`].
pub const REPORTS: &str = "FERROZYME_REPORTS";

/// The messages of a link.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Message {
    /// Errors and warnings for the user.
    pub diagnostics: Vec<Diagnostic>,
}

/// The record of a link, for `explain`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LinkReport {
    /// The file that was linked.
    pub output: PathBuf,
    /// The report on the derivatives.
    pub report: Report,
}

/// Appends a message to the file that waits for it, if one does. Whether it did.
pub fn send(message: &Message) -> bool {
    let Some(path) = std::env::var_os(MESSAGES) else {
        return false;
    };
    let Ok(mut line) = serde_json::to_vec(message) else {
        return false;
    };
    line.push(b'\n');
    OpenOptions::new()
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(&line))
        .is_ok()
}

/// Announces the linker's next step, for the process that waits for its messages.
pub fn tell_progress(step: &str) {
    if let Some(path) = std::env::var_os(MESSAGES) {
        // If this cannot be written, there is no way to report it.
        let _ = std::fs::write(progress_file(Path::new(&path)), step);
    }
}

/// The file beside the message file that holds the linker's current step.
pub fn progress_file(messages: &Path) -> PathBuf {
    let mut name = messages.as_os_str().to_owned();
    name.push(".progress");
    PathBuf::from(name)
}

/// The messages in such a file.
pub fn receive(path: &Path) -> Vec<Message> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// The user's request for an explanation, from the environment.
pub fn explain_wanted() -> Option<Explain> {
    serde_json::from_str(&std::env::var(EXPLAIN).ok()?).ok()
}

/// Leaves a report for `explain`, if one is wanted.
pub fn leave_report(report: &LinkReport) {
    let Some(folder) = std::env::var_os(REPORTS) else {
        return;
    };
    let name = format!("{}.json", std::process::id());
    if let Ok(text) = serde_json::to_vec(report) {
        // `explain` then says that there is no report.
        let _ = std::fs::write(Path::new(&folder).join(name), text);
    }
}
