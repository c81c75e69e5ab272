//! The parameters of modules in files, under the names that the modules give them.

use crate::file::{FileError, Named, read, write};
use ferrozyme_backend::Program;
use ferrozyme_nn::Module;
use std::path::Path;

/// Writes the parameters and states of a module, with their values in a program, to a file of the format safetensors.
pub fn save(path: &Path, module: &dyn Module, program: &Program) -> Result<(), FileError> {
    write(path, program, &entries(module))
}

/// Gives the parameters and states of a module the values in a file. The file must have all of them, and nothing else; if it has not, or is damaged, nothing has changed.
pub fn load(path: &Path, module: &dyn Module, program: &mut Program) -> Result<(), FileError> {
    read(path, program, &entries(module))
}

fn entries(module: &dyn Module) -> Vec<Named> {
    let entries = module.entries().into_iter();
    let named = entries.map(|entry| Named {
        name: entry.name,
        parameter: entry.parameter,
    });
    named.collect()
}
