//! Locates and runs clang.

use crate::{Failure, Language};
use std::ffi::{OsStr, OsString};
use std::process::{Command, ExitStatus, Output};

/// The release of LLVM that the driver can exchange bitcode with.
const LLVM: u32 = 22;

/// The variable that names the clang to use.
const VARIABLE: &str = "FERROZYME_CLANG";

/// A clang whose bitcode can be read.
pub(crate) struct Clang {
    program: OsString,
    language: Language,
}

impl Clang {
    /// The clang that the environment names, or the one that is installed.
    pub(crate) fn find(language: Language) -> Result<Clang, Failure> {
        let install = format!(
            "install clang {LLVM} (Debian: `apt-get install clang-{LLVM}`) or name it in {VARIABLE}"
        );
        let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
        let candidates = match &named {
            Some(named) => vec![named.clone()],
            None => vec![format!("clang-{LLVM}").into(), "clang".into()],
        };
        let mut found = None;
        for program in candidates {
            // A name with the release in it is believed: to ask takes longer than to compile a small file.
            if named.is_none()
                && program == format!("clang-{LLVM}").as_str()
                && is_installed(&program)
            {
                return Ok(Clang { program, language });
            }
            match version(&program) {
                Some((LLVM, _)) => return Ok(Clang { program, language }),
                Some((_, version)) => found = Some((program, version)),
                None => {}
            }
        }
        Err(Failure::Message(match (found, named) {
            (Some((program, version)), _) => format!(
                "{} is version {version}, but the LLVM in use is {LLVM}; {install}",
                program.to_string_lossy()
            ),
            (None, Some(named)) => format!(
                "{VARIABLE} names '{}', which is no clang; {install}",
                named.to_string_lossy()
            ),
            (None, None) => format!("there is no clang; {install}"),
        }))
    }

    /// The language of files whose names do not say it.
    pub(crate) fn language(&self) -> Language {
        self.language
    }

    /// Runs clang.
    pub(crate) fn run(&self, arguments: Vec<OsString>) -> Result<(), Failure> {
        let status = self.command(&arguments).status();
        succeeded(status.map_err(|error| self.cannot_run(&error))?)
    }

    /// Runs clang and captures its output.
    pub(crate) fn output(&self, arguments: &[OsString]) -> Result<Output, Failure> {
        let output = self.command(arguments).output();
        output.map_err(|error| self.cannot_run(&error))
    }

    fn command(&self, arguments: &[OsString]) -> Command {
        let mut command = Command::new(&self.program);
        if self.language == Language::Cpp {
            command.arg("--driver-mode=g++");
        }
        command.args(arguments);
        command
    }

    fn cannot_run(&self, error: &std::io::Error) -> Failure {
        Failure::Message(format!(
            "{} cannot be run: {error}",
            self.program.to_string_lossy()
        ))
    }
}

/// Whether clang ended as it should.
pub(crate) fn succeeded(status: ExitStatus) -> Result<(), Failure> {
    match status.code() {
        Some(0) => Ok(()),
        // Ended by a signal.
        code => Err(Failure::Status(code.unwrap_or(1))),
    }
}

/// Whether a program of this name is found where programs are looked for.
fn is_installed(program: &OsStr) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The number and text of a clang's version.
fn version(program: &OsStr) -> Option<(u32, String)> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, version) = text.split_once("clang version ")?;
    let version = version.split_whitespace().next()?.to_owned();
    let major = version.split('.').next()?.parse().ok()?;
    Some((major, version))
}
