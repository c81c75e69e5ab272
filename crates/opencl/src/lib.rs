//! Runs tensor graphs by OpenCL.
//!
//! Kernels are OpenCL C, printed from Loop IR (`print.rs`), which the driver compiles when the graph is compiled. The library is loaded when a graph asks for it (`library.rs`): without one everything else works,
//! and the error says what was looked for. OpenCL 1.2 is enough. `f64` needs a device that has it.

mod device;
mod library;
mod print;

pub use print::print_program;

use device::{Driver, Queue};
use ferrozyme_backend::{Backend, Error, Executable, Planned, Repeats};
use ferrozyme_gpu::{Runner, prepare};

/// The devices that OpenCL knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenCl {
    /// Which device, counted through all platforms; without a number the first GPU, or the first device if there is no GPU.
    pub device: Option<usize>,
}

impl Backend for OpenCl {
    fn name(&self) -> &'static str {
        "opencl"
    }

    fn repeats(&self) -> Repeats {
        Repeats::DEVICE
    }

    fn compile(&self, planned: Planned) -> Result<Box<dyn Executable>, Error> {
        let missing = |reason| Error::Missing {
            backend: "opencl",
            reason,
        };
        let driver = Driver::load(self.device).map_err(missing)?;
        let sizes = Runner::<Queue>::buffer_sizes(&planned);
        let program = prepare(planned.lowered.clone(), &driver.abilities())?;
        let source = print_program(&program)?;
        let queue = driver.queue(&source, &program, &sizes)?;
        Ok(Box::new(Runner::new(queue, program, &planned)?))
    }
}
