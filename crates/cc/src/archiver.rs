//! The driver as `ferrozyme-llvm-ar` and `ferrozyme-llvm-ranlib`: CMake expects these beside a clang with the name `ferrozyme-cc` for whole-program optimisation (`INTERPROCEDURAL_OPTIMIZATION`). Objects are ordinary ones here, so any archiver works.

use std::path::Path;
use std::process::{Command, ExitCode};

/// The tools that do the work, by the name under which the driver is run.
const TOOLS: &[(&str, [&str; 2])] = &[
    ("ferrozyme-llvm-ar", ["llvm-ar-22", "ar"]),
    ("ferrozyme-llvm-ranlib", ["llvm-ranlib-22", "ranlib"]),
];

/// Runs the tool whose name the driver was run under, if there is such a name.
pub(crate) fn run() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let program = arguments.next()?;
    let name = Path::new(&program).file_name()?.to_str()?.to_owned();
    let (_, tools) = TOOLS.iter().find(|(tool, _)| *tool == name)?;
    let arguments: Vec<_> = arguments.collect();
    for tool in tools {
        // If this program is missing, the next one is tried.
        if let Ok(status) = Command::new(tool).args(&arguments).status() {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            return Some(ExitCode::from(code.unwrap_or(1)));
        }
    }
    eprintln!("{name}: error: there is no archiver; install binutils");
    Some(ExitCode::FAILURE)
}
