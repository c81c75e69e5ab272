//! Static libraries, which rustc makes without a linker: their bitcode becomes machine code, with the derivatives in it.
//!
//! A static library is linked by a C linker, which cannot read bitcode. So all bitcode modules are linked into one object (`ld.lld -r`), which replaces
//! them; the standard library's members are machine code already and stay.

use super::allocator::is_allocator_shim;
use super::archive;
use super::bitcode::is_bitcode;
use super::files::{self, Kind};
use super::inputs::LinkInputs;
use super::line::LinkLine;
use super::real::{self, lld_folder};
use super::{derivatives_for, plain};
use ferrozyme_driver::{Diagnostic, Inputs, Level};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Compiles the bitcode of a static library to machine code, derivatives included.
///
/// `line` is a link line with the library as its only input and output.
///
/// # Errors
/// If a derivative cannot be made, or the library cannot be read, linked or written.
pub fn finish(line: &LinkLine) -> Result<(), Vec<Diagnostic>> {
    let files = files::read_user_files(line).map_err(plain)?;
    let [file] = files.as_slice() else {
        return Ok(());
    };
    let Kind::Archive(members) = &file.kind else {
        return Ok(());
    };
    let contents: Vec<&[u8]> = members
        .iter()
        .map(|member| &file.bytes[member.range.clone()])
        .collect();
    if !contents.iter().any(|bytes| is_bitcode(bytes)) {
        return Ok(());
    }
    let inputs = LinkInputs::new(std::iter::once(file)).map_err(|problem| vec![problem])?;
    let output = if inputs.requesting().is_empty() {
        None
    } else {
        Some(derivatives_for(line, &inputs)?)
    };

    let folder = tempfile::Builder::new()
        .prefix("ferrozyme-link-")
        .tempdir()
        .map_err(|error| plain(format!("cannot make a temporary folder: {error}")))?;
    let write = |name: String, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes)
            .map_err(|error| plain(format!("cannot write {}: {error}", path.display())))?;
        Ok::<_, Vec<Diagnostic>>(path.into_os_string())
    };
    let mut objects: Vec<OsString> = Vec::new();
    for (number, bytes) in contents.iter().enumerate() {
        if is_bitcode(bytes) {
            let rewritten = output.iter().flat_map(|output| &output.rewritten);
            let replaced = rewritten
                .filter(|(index, _)| inputs.place(*index).member == Some(number))
                .map(|(_, bytes)| bytes.as_slice())
                .next();
            let mut object = write(format!("{number}.o"), replaced.unwrap_or(bytes))?;
            if is_allocator_shim(bytes) {
                let compiled = compile_bitcode(line, &[object], folder.path())?;
                object = write("allocator.o".to_owned(), &compiled)?;
            }
            objects.push(object);
        }
    }
    if let Some(output) = &output {
        objects.push(write("derivatives.o".to_owned(), &output.object)?);
    }
    let combined = compile_bitcode(line, &objects, folder.path())?;

    let name = file.path.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{}.ferrozyme.o", name.trim_start_matches("lib"));
    let kept = members
        .iter()
        .zip(&contents)
        .filter(|(_, bytes)| !is_bitcode(bytes));
    let kept = kept.map(|(member, &bytes)| (member.name.as_str(), bytes));
    let parts: Vec<(&str, &[u8])> = std::iter::once((name.as_str(), combined.as_slice()))
        .chain(kept)
        .collect();
    let symbols: Vec<Vec<&[u8]>> = parts
        .iter()
        .map(|(_, bytes)| super::inputs::native_definitions(bytes))
        .collect();
    let bytes = archive::write_indexed(parts.iter().copied(), &symbols).map_err(plain)?;
    replace(&file.path, &bytes)
        .map_err(|error| plain(format!("cannot write {}: {error}", file.path.display())))
}

/// Links objects of bitcode and machine code into one object of machine code.
pub(super) fn compile_bitcode(
    line: &LinkLine,
    objects: &[OsString],
    folder: &Path,
) -> Result<Vec<u8>, Vec<Diagnostic>> {
    let lld = line
        .own
        .sysroot
        .as_deref()
        .and_then(lld_folder)
        .ok_or_else(|| plain("the Rust toolchain has no rust-lld"))?;
    let combined = folder.join("combined.o");
    let level = match line.level.unwrap_or(Level::O0) {
        Level::O0 => "O0",
        Level::O1 => "O1",
        Level::O2 => "O2",
        Level::O3 => "O3",
    };
    let mut command = Command::new(lld.join("ld.lld"));
    command
        .arg("-r")
        .arg(format!("--plugin-opt={level}"))
        .args(real::as_in_rustc(line.level))
        .arg("-o")
        .arg(&combined)
        .args(objects);
    if let Some(cpu) = &line.cpu {
        command.arg(format!("--plugin-opt=mcpu={cpu}"));
    }
    let output = command
        .output()
        .map_err(|error| plain(format!("cannot run rust-lld: {error}")))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(vec![Diagnostic {
            notes: vec![errors.trim().to_owned()],
            ..Diagnostic::error(format!(
                "rust-lld could not compile bitcode (exit code {})",
                real::exit_code(output.status)
            ))
        }]);
    }
    std::fs::read(&combined)
        .map_err(|error| plain(format!("cannot read {}: {error}", combined.display())))
}

/// Puts a new file in the place of an old one. Cargo's links to the old one must not change under its feet.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    std::io::Write::write_all(&mut file, bytes)?;
    let permissions = std::fs::metadata(path)?.permissions();
    file.as_file().set_permissions(permissions)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
