//! Checkpoints: the values of all parameters of a program, which are all that a run leaves behind.
//!
//! Moments of optimisers, running means, counters of random numbers and the number of the step are parameters of the graph, so nothing else is needed to go on.

use crate::file::{FileError, Problem, Stored, read, write};
use ferrozyme_backend::{Error, Program};
use ferrozyme_graph::{Parameter, TensorType};
use std::path::Path;

/// The values of parameters at one moment.
pub(crate) struct Snapshot(Vec<(Parameter, Vec<u8>)>);

impl Snapshot {
    /// Of all parameters but one, which says what a run does and not what it has done.
    pub(crate) fn take(program: &Program, except: Parameter) -> Result<Snapshot, Error> {
        let all = program.graph().parameters.keys();
        let all = all.filter(|&parameter| parameter != except);
        let values = all.map(|parameter| Ok((parameter, program.parameter_bytes(parameter)?)));
        values.collect::<Result<_, Error>>().map(Snapshot)
    }

    /// Gives the parameters these values again.
    pub(crate) fn restore(&self, program: &mut Program) -> Result<(), Error> {
        for (parameter, bytes) in &self.0 {
            program.set_parameter_bytes(*parameter, bytes)?;
        }
        Ok(())
    }

    pub(crate) fn save(self, program: &Program, path: &Path) -> Result<(), FileError> {
        let stored = self.0.into_iter().map(|(parameter, bytes)| {
            let data = &program.graph().parameters[parameter];
            Stored {
                name: data.name.to_string(),
                ty: data.ty.clone(),
                bytes,
            }
        });
        write(path, &stored.collect::<Vec<_>>())
    }

    /// Reads a checkpoint of this program.
    pub(crate) fn load(
        program: &Program,
        except: Parameter,
        path: &Path,
    ) -> Result<Snapshot, FileError> {
        let parameters = &program.graph().parameters;
        let all = parameters.keys().filter(|&own| own != except);
        let all: Vec<Parameter> = all.collect();
        let wanted = all.iter().map(|&parameter| {
            let data = &parameters[parameter];
            (data.name.to_string(), data.ty.clone())
        });
        let values = read(path, &wanted.collect::<Vec<(String, TensorType)>>())?;
        Ok(Snapshot(all.into_iter().zip(values).collect()))
    }

    /// As an error of a file.
    pub(crate) fn failed(error: Error, path: &Path) -> FileError {
        Problem::Program(error).at(path)
    }
}
