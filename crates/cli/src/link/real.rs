//! Runs the real linker: the one that rustc would have run, with lld for bitcode.

use super::line::{LinkLine, write_response};
use super::target_folder;
use ferrozyme_driver::Level;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Replaces this process by the real linker. Returns only if that cannot be started, with the reason. `bitcode` says whether there is any among
/// the inputs; if not, the link is exactly what rustc asked for.
pub fn become_linker(line: &LinkLine, bitcode: bool) -> String {
    let arguments = match bitcode {
        true => complete(line, &line.arguments),
        false => line.arguments.clone(),
    };
    if !line.response_file {
        let error = Command::new(real_linker(line)).args(&arguments).exec();
        if error.kind() != ErrorKind::ArgumentListTooLong {
            return cannot_start(line, &error);
        }
    }
    // A process that is replaced cannot remove the response file afterwards.
    let mut prepared = match prepare_response(line, &arguments) {
        Ok(prepared) => prepared,
        Err(error) => return error,
    };
    match prepared.command.status() {
        Ok(status) => {
            drop(prepared);
            std::process::exit(exit_code(status));
        }
        Err(error) => cannot_start(line, &error),
    }
}

/// The output of the real linker.
pub struct Linked {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard error, which has not been passed on.
    pub errors: Vec<u8>,
}

/// Runs the real linker with other arguments than those of the line.
///
/// # Errors
/// If it cannot be started.
pub fn link(line: &LinkLine, arguments: &[OsString]) -> Result<Linked, String> {
    let arguments = complete(line, arguments);
    let mut prepared = prepare(line, &arguments)?;
    prepared.command.stderr(Stdio::piped());
    let child = match prepared.command.spawn() {
        Err(error) if error.kind() == ErrorKind::ArgumentListTooLong => {
            prepared = prepare_response(line, &arguments)?;
            prepared.command.stderr(Stdio::piped()).spawn()
        }
        child => child,
    };
    let output = child
        .and_then(std::process::Child::wait_with_output)
        .map_err(|error| cannot_start(line, &error))?;
    Ok(Linked {
        status: output.status,
        errors: output.stderr,
    })
}

/// The program that rustc would have run; a linker that cannot read bitcode is replaced by the toolchain's own.
pub fn real_linker(line: &LinkLine) -> PathBuf {
    let Some(linker) = line.own.linker.as_deref() else {
        return PathBuf::from("cc");
    };
    let stem = linker.file_name().and_then(OsStr::to_str);
    let reads_no_bitcode =
        stem.is_some_and(|stem| matches!(stem, "ld" | "ld.bfd" | "ld.gold" | "mold"));
    match line.own.sysroot.as_deref().and_then(lld_folder) {
        Some(folder) if reads_no_bitcode => folder.join("ld.lld"),
        _ => linker.to_owned(),
    }
}

/// The folder with `ld.lld` in it, for compiler drivers; it belongs to the toolchain of the link.
pub fn lld_folder(sysroot: &Path) -> Option<PathBuf> {
    let rustlib = sysroot.join("lib").join("rustlib");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(rustlib)
        .ok()?
        .flatten()
        .map(|entry| entry.path().join("bin").join("gcc-ld"))
        .filter(|folder| folder.join("ld.lld").exists())
        .collect();
    folders.sort();
    folders.into_iter().next()
}

/// Adds lld if rustc left the choice of the linker open, since no other linker reads bitcode. lld gets a cache:
/// otherwise each link would compile the bitcode of all dependencies anew.
fn complete(line: &LinkLine, arguments: &[OsString]) -> Vec<OsString> {
    let mut arguments = arguments.to_vec();
    let bare = real_linker(line)
        .file_name()
        .and_then(OsStr::to_str)
        .is_some_and(|name| name.ends_with("lld"));
    let mut add_option = |option: OsString| {
        if !bare {
            arguments.push("-Xlinker".into());
        }
        arguments.push(option);
    };
    if let Some(target) = target_folder(line.output.as_deref()) {
        let mut option = OsString::from("--thinlto-cache-dir=");
        option.push(target.join("thinlto"));
        add_option(option);
        add_option("--thinlto-cache-policy=prune_after=336h:cache_size_bytes=4g".into());
    }
    // The linked code is not bitcode itself but uses some, as a procedural macro can: the level is that of macros.
    if line.level.is_none() {
        add_option("--lto-O0".into());
    }
    for option in as_in_rustc(line.level) {
        add_option(option.into());
    }
    if line.flavour.as_deref() != Some("lld")
        && !bare
        && let Some(folder) = line.own.sysroot.as_deref().and_then(lld_folder)
    {
        let mut prefix = OsString::from("-B");
        prefix.push(folder);
        arguments.push(prefix);
        arguments.push("-fuse-ld=lld".into());
    }
    arguments
}

/// The options with which lld generates the same code from bitcode as rustc.
pub fn as_in_rustc(level: Option<Level>) -> [&'static str; 3] {
    let code_generation = match level.unwrap_or(Level::O0) {
        Level::O0 => "--lto-CGO0",
        Level::O1 => "--lto-CGO1",
        Level::O2 => "--lto-CGO2",
        Level::O3 => "--lto-CGO3",
    };
    // Unreachable code does not fall through into the next function; calls that do not return are trusted.
    [
        code_generation,
        "-mllvm=-trap-unreachable",
        "-mllvm=-no-trap-after-noreturn",
    ]
}

struct Prepared {
    command: Command,
    /// Removed when the linker has read it.
    _response: Option<tempfile::NamedTempFile>,
}

fn prepare(line: &LinkLine, arguments: &[OsString]) -> Result<Prepared, String> {
    if line.response_file {
        return prepare_response(line, arguments);
    }
    let mut command = Command::new(real_linker(line));
    command.args(arguments);
    Ok(Prepared {
        command,
        _response: None,
    })
}

fn prepare_response(line: &LinkLine, arguments: &[OsString]) -> Result<Prepared, String> {
    let mut response = tempfile::NamedTempFile::with_prefix("ferrozyme-link-")
        .map_err(|error| format!("cannot make a response file: {error}"))?;
    response
        .write_all(&write_response(arguments))
        .and_then(|()| response.flush())
        .map_err(|error| format!("cannot write {}: {error}", response.path().display()))?;
    let mut argument = OsString::from("@");
    argument.push(response.path());
    let mut command = Command::new(real_linker(line));
    command.arg(argument);
    Ok(Prepared {
        command,
        _response: Some(response),
    })
}

/// The code with which to end when a child ended like this.
pub fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(1)
}

fn cannot_start(line: &LinkLine, error: &std::io::Error) -> String {
    let linker = real_linker(line);
    let linker = linker.display();
    if error.kind() == ErrorKind::NotFound {
        format!("linker `{linker}` not found")
    } else {
        format!("cannot run the linker `{linker}`: {error}")
    }
}
