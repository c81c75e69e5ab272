//! The parameters of modules in files, under the names that the modules give them.

use crate::file::{FileError, Problem, Stored, read, write};
use ferrozyme_backend::Program;
use ferrozyme_graph::TensorType;
use ferrozyme_nn::Module;
use std::path::Path;

/// Writes the parameters and states of a module, with their values in a program, to a file of the format safetensors.
pub fn save(path: &Path, module: &dyn Module, program: &Program) -> Result<(), FileError> {
    let mut tensors = Vec::new();
    for entry in module.entries() {
        let bytes = program.parameter_bytes(entry.parameter);
        tensors.push(Stored {
            name: entry.name,
            ty: program.graph().parameters[entry.parameter].ty.clone(),
            bytes: bytes.map_err(|error| Problem::Program(error).at(path))?,
        });
    }
    write(path, &tensors)
}

/// Gives the parameters and states of a module the values in a file. The file must have all of them, and nothing else; if there is an error, nothing has changed.
pub fn load(path: &Path, module: &dyn Module, program: &mut Program) -> Result<(), FileError> {
    let entries = module.entries();
    let wanted = entries.iter().map(|entry| {
        let ty = program.graph().parameters[entry.parameter].ty.clone();
        (entry.name.clone(), ty)
    });
    let wanted: Vec<(String, TensorType)> = wanted.collect();
    for (entry, bytes) in entries.iter().zip(read(path, &wanted)?) {
        let outcome = program.set_parameter_bytes(entry.parameter, &bytes);
        outcome.map_err(|error| Problem::Program(error).at(path))?;
    }
    Ok(())
}
