//! PTX that was made before, in a folder.
//!
//! A file is named by a hash of the kernels and the processor, so that it is never taken for other kernels. Where a program finds all its kernels in the folder, no LLVM is needed: it can run on a machine without a Rust toolchain.

use crate::ptx::print_ptx;
use ferrozyme_backend::Error;
use ferrozyme_gpu::GpuProgram;
use ferrozyme_ir::print_module;
use std::path::{Path, PathBuf};

/// The PTX of all kernels, for a processor such as `sm_90`: from the folder if it is there, otherwise made and put there.
pub fn stored_ptx(program: &GpuProgram, processor: &str, folder: &Path) -> Result<String, Error> {
    let file = file_of(program, processor, folder);
    if let Ok(known) = std::fs::read_to_string(&file) {
        return Ok(known);
    }
    let ptx = print_ptx(program, processor)?;
    let written = std::fs::create_dir_all(folder).and_then(|()| {
        // Another process may read the file as soon as it has its name.
        let unfinished = file.with_extension(format!("{}.part", std::process::id()));
        std::fs::write(&unfinished, &ptx)?;
        std::fs::rename(&unfinished, &file)
    });
    match written {
        Ok(()) => Ok(ptx),
        Err(error) => Err(Error::Compile(format!(
            "cannot store kernels as {}: {error}",
            file.display()
        ))),
    }
}

fn file_of(program: &GpuProgram, processor: &str, folder: &Path) -> PathBuf {
    let mut hash = blake3::Hasher::new();
    hash.update(concat!(env!("CARGO_PKG_VERSION"), "\n").as_bytes());
    hash.update(include_bytes!("items.ll"));
    hash.update(processor.as_bytes());
    for kernel in &program.kernels {
        let (name, items, local) = (&kernel.name, kernel.items, kernel.local);
        hash.update(format!("{name} {items} {local}\n").as_bytes());
    }
    hash.update(print_module(&program.module).as_bytes());
    folder.join(format!("{}.ptx", hash.finalize().to_hex()))
}
