//! Machine code in this process.

#![allow(unsafe_code, reason = "compiled code is called by its address")]

use crate::object::Linkable;
use ferrozyme_backend::{Error, Executable, Host, Initial, Planned};
use ferrozyme_linked::{Code, Run};
use ferrozyme_llvm::jit::Jit;
use ferrozyme_llvm::return_freed_memory;

/// The name of the function that runs the graph.
const RUN: &str = "__ferrozyme_run";

/// A compiled graph in this process.
pub(crate) struct Native {
    code: Code,
    /// Where the code is.
    _jit: Jit,
}

impl Native {
    /// Compiles a planned graph for this processor.
    pub(crate) fn compile(planned: Planned) -> Result<Native, Error> {
        let problem = |error: &dyn std::fmt::Display| Error::Compile(error.to_string());
        let object = Linkable::new(planned.lowered, RUN)?.compile("native", "")?;
        let jit = Jit::new().map_err(|error| problem(&error))?;
        jit.add_object(&object).map_err(|error| problem(&error))?;
        let address = jit.address(RUN).map_err(|error| problem(&error))?;
        drop(object);
        // From here on memory is for parameters.
        return_freed_memory();
        // SAFETY: `entry.rs` defines this function with this type, of this graph, and the code stays as long as `Native`.
        let mut code = unsafe {
            let run = std::mem::transmute::<usize, Run>(address as usize);
            Code::new(
                run,
                planned.parameters.iter().map(Initial::size),
                planned.arena,
            )
        };
        for (number, initial) in planned.parameters.iter().enumerate() {
            match initial.splat() {
                Some(element) => code.fill_parameter(number, &element),
                None => {
                    for (offset, bytes) in initial.pieces() {
                        code.write_parameter(number, offset, &bytes)?;
                    }
                }
            }
        }
        Ok(Native { code, _jit: jit })
    }
}

impl Executable for Native {
    fn run(&mut self, host: &mut Host<'_>) -> Result<(), Error> {
        self.code.run(host)
    }

    fn read_parameter(&self, number: usize, offset: usize, to: &mut [u8]) -> Result<(), Error> {
        self.code.read_parameter(number, offset, to)
    }

    fn write_parameter(&mut self, number: usize, offset: usize, from: &[u8]) -> Result<(), Error> {
        self.code.write_parameter(number, offset, from)
    }
}
