//! Keeps rustc's allocator shim out of link-time optimisation, as rustc does.
//!
//! rustc makes the shim for each program: a module with `__rust_alloc` and its relatives, each of which calls a function of the allocator in use.
//! LLVM recognises allocations by the names and attributes of these functions. If they are inlined, this knowledge is lost: unused memory is
//! allocated nevertheless, and new memory is not known to be unaliased. So the shim is compiled on its own, and the link gets machine code.

use super::bitcode::{self, is_bitcode};
use super::files::{File, Kind};
use super::line::LinkLine;
use super::staticlib::compile_bitcode;
use super::{plain, target_folder};
use ferrozyme_driver::Diagnostic;
use memchr::memmem;
use std::path::{Path, PathBuf};

/// A part of the mangled names of rustc's own symbols: they are in a crate that does not exist.
const OF_RUSTC: &str = "7___rustc";

/// Whether a module is the allocator shim: it is bitcode and defines only rustc's own symbols.
pub fn is_allocator_shim(contents: &[u8]) -> bool {
    if !is_bitcode(contents) || memmem::find(contents, OF_RUSTC.as_bytes()).is_none() {
        return false;
    }
    let symbols = bitcode::symbols(contents).unwrap_or_default();
    let mut defined = symbols
        .iter()
        .filter(|symbol| symbol.global && !symbol.undefined)
        .peekable();
    defined.peek().is_some()
        && defined.all(|symbol| memmem::find(symbol.name, OF_RUSTC.as_bytes()).is_some())
}

/// Puts machine code in the place of the allocator shim on the link line. It stays in the target folder for the next link.
///
/// # Errors
/// If it cannot be compiled or written.
pub fn replace_allocator_shim(line: &mut LinkLine, files: &[File]) -> Result<(), Vec<Diagnostic>> {
    let Some(target) = target_folder(line.output.as_deref()) else {
        return Ok(());
    };
    for file in files {
        let (Some(input), Kind::Object) = (file.input, &file.kind) else {
            continue;
        };
        if is_allocator_shim(&file.bytes) {
            let object = compiled(line, file, &target.join("allocator"))?;
            line.arguments[line.inputs[input]] = object.into_os_string();
        }
    }
    Ok(())
}

/// The machine code of a shim, which is made if it is not there yet.
fn compiled(line: &LinkLine, file: &File, folder: &Path) -> Result<PathBuf, Vec<Diagnostic>> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&file.bytes);
    hasher.update(format!("{:?} {:?}", line.level, line.cpu).as_bytes());
    let path = folder.join(format!("{}.o", hasher.finalize().to_hex()));
    if path.exists() {
        return Ok(path);
    }
    let unwritable =
        |error: std::io::Error| plain(format!("cannot write {}: {error}", path.display()));
    std::fs::create_dir_all(folder).map_err(unwritable)?;
    let temporary = tempfile::tempdir_in(folder).map_err(unwritable)?;
    let bytes = compile_bitcode(
        line,
        &[file.path.clone().into_os_string()],
        temporary.path(),
    )?;
    // Other links may be at the same point.
    let finished = temporary.path().join("finished");
    std::fs::write(&finished, bytes).map_err(unwritable)?;
    std::fs::rename(&finished, &path).map_err(unwritable)?;
    Ok(path)
}
