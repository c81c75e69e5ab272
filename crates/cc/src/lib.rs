//! `ferrozyme-cc` and `ferrozyme-c++`: clang, with derivatives in Enzyme's calling convention.
//!
//! ```text
//!  a.c ──clang, no optimisation──▶ bitcode ──driver: requests become calls, derivatives join──▶ bitcode ──clang -O2 -x ir──▶ a.o
//!                                     └──────────────────── a copy, in a section that the linker drops ─────────────────────▶
//!  a.o b.o libc.a ──▶ driver: derivatives that needed more than their unit ──▶ derivatives.o ──clang──▶ program
//! ```
//!
//! clang runs as usual, with the user's arguments. It optimises and compiles the same code as without the driver, plus derivatives.
//!
//! | file | what lives there |
//! |---|---|
//! | `attributes.rs` | attributes that clang does not know |
//! | `headers.rs` | the header `<enzyme/enzyme>` |
//! | `archiver.rs` | the drivers as `ferrozyme-llvm-ar` |
//! | `arguments.rs` | clang's arguments: inputs, output and last stage |
//! | `clang.rs` | locates and runs clang |
//! | `compile.rs` | compiles a source file to an object |
//! | `embed.rs` | the copy of a unit in its object |
//! | `explain.rs` | reports on derivatives |
//! | `library.rs`, `library.c` | source for library functions that come as machine code only |
//! | `link.rs` | derivatives that are left for the link |
//! | `units.rs` | the units that objects and libraries carry |
//! | `render.rs` | messages in clang's style |

mod archiver;
mod arguments;
mod attributes;
mod clang;
mod compile;
mod embed;
mod explain;
mod headers;
mod library;
mod link;
mod render;
mod units;

use arguments::{Arguments, Stage};
use clang::Clang;
use std::ffi::OsString;
use std::process::ExitCode;

/// The language that files are in whose names do not say it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// `ferrozyme-cc`
    C,
    /// `ferrozyme-c++`
    Cpp,
}

/// Why the driver ends before its work is done.
pub(crate) enum Failure {
    /// clang has printed an error, and ended with this status.
    Status(i32),
    /// An error message.
    Message(String),
}

/// Runs the driver with these arguments; returns a compiler's exit status.
pub fn run(language: Language) -> ExitCode {
    if let Some(status) = archiver::run() {
        return status;
    }
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match drive(language, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Status(status)) => ExitCode::from(u8::try_from(status).unwrap_or(1).max(1)),
        Err(Failure::Message(message)) => {
            let name = match language {
                Language::C => "ferrozyme-cc",
                Language::Cpp => "ferrozyme-c++",
            };
            eprintln!("{name}: error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn drive(language: Language, given: Vec<OsString>) -> Result<(), Failure> {
    let clang = Clang::find(language)?;
    let arguments = Arguments::read(language, given.clone()).map_err(Failure::Message)?;
    let folder = tempfile::Builder::new()
        .prefix("ferrozyme-cc")
        .tempdir()
        .map_err(|error| Failure::Message(format!("no folder for temporary files: {error}")))?;
    if arguments.stage == Stage::Other {
        return look(&clang, given, folder.path());
    }
    let objects = compile::compile_all(&clang, &arguments, folder.path())?;
    match arguments.stage {
        Stage::Link => link::link(&clang, &arguments, &objects, folder.path()),
        _ => Ok(()),
    }
}

/// Lets clang do what does not concern the driver, with its headers.
fn look(clang: &Clang, mut given: Vec<OsString>, folder: &std::path::Path) -> Result<(), Failure> {
    let inner = given
        .first()
        .is_some_and(|first| first == "-cc1" || first == "-cc1as");
    if !inner && let Some(headers) = headers::folder(folder) {
        given.splice(0..0, ["-I".into(), headers.into()]);
    }
    given.retain(|argument| argument != arguments::NO_MULTIVERSION);
    clang.run(given)
}
