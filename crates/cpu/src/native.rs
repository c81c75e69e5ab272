//! Machine code in this process.

#![allow(unsafe_code, reason = "compiled code is called by its address")]

use crate::object::Linkable;
use ferrozyme_backend::{Error, Executable, Host, Planned};
use ferrozyme_linked::{Code, Run};
use ferrozyme_llvm::jit::Jit;

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
        // SAFETY: `entry.rs` defines this function with this type, of this graph, and the code stays as long as `Native`.
        let code = unsafe {
            let run = std::mem::transmute::<usize, Run>(address as usize);
            Code::new(run, planned.parameters, planned.arena)
        };
        Ok(Native { code, _jit: jit })
    }
}

impl Executable for Native {
    fn run(&mut self, host: &mut Host<'_>) -> Result<(), Error> {
        self.code.run(host)
    }

    fn parameter(&self, number: usize) -> Result<Vec<u8>, Error> {
        self.code.parameter(number)
    }

    fn set_parameter(&mut self, number: usize, bytes: &[u8]) -> Result<(), Error> {
        self.code.set_parameter(number, bytes)
    }
}
