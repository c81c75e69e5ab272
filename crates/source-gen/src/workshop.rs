//! Compiles and runs programs, many at a time, by the commands that users call.
//!
//! Programs are put together in groups, because starting a compiler costs more than compiling a function. When a group does not compile, the messages say whose fault it is: those programs are set
//! aside and the rest is compiled again.

mod c;
mod messages;
mod output;
mod rust;

use crate::program::{Language, Program};
use crate::verdict::Finding;
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// How long one compilation may take, in seconds.
const COMPILATION_LIMIT: u32 = 240;

/// How long the programs of a group may run, in seconds.
const RUN_LIMIT: u32 = 20;

/// A place where programs are compiled and run.
pub struct Workshop {
    language: Language,
    /// Where their files are.
    folder: PathBuf,
    /// `cargo ferrozyme` or `ferrozyme-cc`.
    driver: PathBuf,
    /// Whether they run under valgrind.
    valgrind: bool,
}

impl Workshop {
    /// A workshop in a folder, which is made. `drivers` is where `source-cargo` and `source-cc` are: the drivers for users under other names, so that cargo builds them with this package.
    ///
    /// # Errors
    ///
    /// If the folder cannot be made.
    pub fn new(
        language: Language,
        folder: &Path,
        drivers: &Path,
        valgrind: bool,
    ) -> anyhow::Result<Workshop> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        let folder = folder.canonicalize()?;
        Ok(Workshop {
            language,
            folder,
            driver: drivers.join(match language {
                Language::Rust => "source-cargo",
                Language::C => "source-cc",
            }),
            valgrind,
        })
    }

    /// The profiles in which programs of the language are compared.
    pub fn profiles(language: Language) -> &'static [&'static str] {
        match language {
            Language::Rust => &["debug", "release"],
            Language::C => &["-O0", "-O2"],
        }
    }

    /// The language of its programs.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Compiles and runs programs in a profile. Findings are in the order of the programs.
    ///
    /// # Errors
    ///
    /// If files cannot be written or commands cannot be started.
    pub fn run(&self, programs: &[Program], profile: &str) -> anyhow::Result<Vec<Finding>> {
        match self.language {
            Language::Rust => rust::run(self, programs, profile),
            Language::C => c::run(self, programs, profile),
        }
    }

    /// A command under a time limit, in an environment in which cargo is not running.
    fn command(&self, limit: u32, program: &Path) -> Command {
        let mut command = Command::new("timeout");
        command
            .args(["-s", "KILL", &limit.to_string()])
            .arg(program)
            .current_dir(&self.folder);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            let set_by_cargo = name.starts_with("CARGO") && name != "CARGO_HOME";
            let set_by_rust = name.starts_with("RUST") && !name.starts_with("RUSTUP");
            if set_by_cargo || set_by_rust || name.starts_with("FERROZYME") {
                command.env_remove(name);
            }
        }
        command.env("CARGO_TERM_COLOR", "never");
        command
    }
}

/// Whether a command was ended because it took too long.
fn is_late(output: &Output) -> bool {
    use std::os::unix::process::ExitStatusExt;
    matches!(output.status.code(), Some(124 | 137)) || output.status.signal() == Some(9)
}
