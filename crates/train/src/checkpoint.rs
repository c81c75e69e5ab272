//! Checkpoints: the values of all parameters of a program, which are all that a run leaves behind.
//!
//! Moments of optimisers, running means, counters of random numbers and the number of the step are parameters of the graph, so nothing else is needed to go on.

use crate::file::{FileError, Named, Problem, read, write};
use ferrozyme_backend::{Error, Program};
use ferrozyme_graph::Parameter;
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
}

/// All parameters but one, under their own names.
fn parameters(program: &Program, except: Parameter) -> Vec<Named> {
    let all = program.graph().parameters.iter();
    let all = all.filter(|&(parameter, _)| parameter != except);
    let named = all.map(|(parameter, data)| Named {
        name: data.name.to_string(),
        parameter,
    });
    named.collect()
}

/// Writes a checkpoint.
pub(crate) fn save(program: &Program, except: Parameter, path: &Path) -> Result<(), FileError> {
    write(path, program, &parameters(program, except))
}

/// Goes on from a checkpoint of this program.
pub(crate) fn load(program: &mut Program, except: Parameter, path: &Path) -> Result<(), FileError> {
    let named = parameters(program, except);
    read(path, program, &named)
}

/// As an error of a file.
pub(crate) fn failed(error: Error, path: &Path) -> FileError {
    Problem::Program(error).at(path)
}
