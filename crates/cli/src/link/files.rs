//! The files of a link in memory, and whether any of them requests a derivative.

use super::archive::{self, Member};
use super::bitcode::is_bitcode;
use super::line::LinkLine;
use ferrozyme_driver::REQUEST;
use memchr::memmem;
use std::path::{Path, PathBuf};

/// A file on the link line.
#[derive(Clone, Debug)]
pub struct File {
    /// Where it is.
    pub path: PathBuf,
    /// Its contents.
    pub bytes: Vec<u8>,
    /// What kind of file it is.
    pub kind: Kind,
    /// The index of its input on the link line; `None` for files that are only read.
    pub input: Option<usize>,
    /// Whether it is linked as a whole though it is an archive.
    pub whole: bool,
    /// Whether it belongs to the toolchain.
    pub std: bool,
}

/// What kind of file it is.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Bitcode or machine code.
    Object,
    /// Several of them.
    Archive(Vec<Member>),
}

/// The files of the link that rustc and the user made, which are all but those of the toolchain.
///
/// # Errors
/// If one of them cannot be read. (One that does not exist is left for the linker to complain about.)
pub fn read_user_files(line: &LinkLine) -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    for number in 0..line.inputs.len() {
        if !in_toolchain(line, line.input(number)) {
            files.extend(read(
                line.input(number),
                Some(number),
                line.whole[number],
                false,
            )?);
        }
    }
    Ok(files)
}

/// The rlibs of the toolchain, for the bitcode in them: those of the link line or, if the standard
/// library is linked dynamically, those beside it.
///
/// # Errors
/// If one of them cannot be read.
pub fn read_std_files(line: &LinkLine) -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    let mut folders = Vec::new();
    for number in 0..line.inputs.len() {
        let path = line.input(number);
        if in_toolchain(line, path) {
            files.extend(read(path, Some(number), line.whole[number], true)?);
            folders.extend(path.parent());
        }
    }
    if !files.iter().any(|file| names_crate(&file.path, "core")) {
        folders.dedup();
        for folder in folders {
            let Ok(entries) = std::fs::read_dir(folder) else {
                continue;
            };
            let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            paths.sort();
            for path in paths {
                if ["core", "alloc", "std"]
                    .iter()
                    .any(|name| names_crate(&path, name))
                {
                    files.extend(read(&path, None, false, true)?);
                }
            }
        }
    }
    Ok(files)
}

/// Whether any of these files asks for a derivative. A mention in debug information counts; the symbol table decides later.
pub fn mention_requests(files: &[File]) -> bool {
    let finder = memmem::Finder::new(REQUEST);
    files.iter().any(|file| finder.find(&file.bytes).is_some())
}

/// Whether any of these files holds bitcode that is still to be compiled.
pub fn hold_bitcode(files: &[File]) -> bool {
    files.iter().any(|file| match &file.kind {
        Kind::Object => is_bitcode(&file.bytes),
        Kind::Archive(members) => members
            .iter()
            .any(|member| is_bitcode(&file.bytes[member.range.clone()])),
    })
}

fn names_crate(path: &Path, name: &str) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "rlib")
        && path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .and_then(|stem| stem.strip_prefix("lib"))
            .and_then(|stem| stem.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with('-'))
}

fn in_toolchain(line: &LinkLine, path: &Path) -> bool {
    line.own
        .sysroot
        .as_ref()
        .is_some_and(|sysroot| path.starts_with(sysroot.join("lib").join("rustlib")))
}

/// The file, if it is one that can hold modules.
fn read(path: &Path, input: Option<usize>, whole: bool, std: bool) -> Result<Option<File>, String> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    let kind = if archive::is_archive(&bytes) {
        let members = archive::members(&bytes)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Kind::Archive(members)
    } else if is_bitcode(&bytes) || is_native_object(&bytes) {
        Kind::Object
    } else {
        // A shared library or a linker script.
        return Ok(None);
    };
    Ok(Some(File {
        path: path.to_owned(),
        bytes,
        kind,
        input,
        whole,
        std,
    }))
}

/// Whether this is machine code that is still to be linked: an ELF file of the type "relocatable".
pub fn is_native_object(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF") && bytes.get(16..18) == Some(&[1, 0])
}
