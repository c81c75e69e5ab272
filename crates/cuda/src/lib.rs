//! Runs tensor graphs on NVIDIA's GPUs.
//!
//! Kernels are PTX that rustc's own LLVM makes of Loop IR when the graph is compiled (`ptx.rs`); the driver makes machine code of it. The driver is loaded when a graph asks for it (`library.rs`): without one everything else works, and
//! the error says what was looked for. CUDA's compiler is not needed, nor are its libraries; large products of matrices are computed by cuBLAS where it is there (`blas.rs`).
//!
//! The launches of a loop's body are captured once as a CUDA graph and replayed, so that a step of training costs the host one launch (`capture.rs`). Kernels that need nothing of each other run at the same time.

mod blas;
mod capture;
mod device;
mod library;
mod ptx;
mod stored;

pub use device::ABILITIES;
pub use ptx::print_ptx;
pub use stored::stored_ptx;

use device::{Driver, Stream};
use ferrozyme_backend::{Backend, Error, Executable, Planned, Repeats};
use ferrozyme_gpu::{Runner, prepare};
use std::path::PathBuf;

/// NVIDIA's GPUs.
#[derive(Clone, Debug, Default)]
pub struct Cuda {
    /// Which one, counted from 0.
    pub device: usize,
    /// Where kernels are that were made before, and where new ones are put. Without a folder they are made each time.
    pub kernels: Option<PathBuf>,
}

impl Backend for Cuda {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn repeats(&self) -> Repeats {
        Repeats::DEVICE
    }

    fn compile(&self, planned: Planned) -> Result<Box<dyn Executable>, Error> {
        let missing = |reason| Error::Missing {
            backend: "cuda",
            reason,
        };
        let driver = Driver::load(self.device).map_err(missing)?;
        let sizes = Runner::<Stream>::buffer_sizes(&planned);
        let program = prepare(planned.lowered.clone(), &ABILITIES)?;
        let ptx = match &self.kernels {
            Some(folder) => stored_ptx(&program, &driver.processor(), folder)?,
            None => print_ptx(&program, &driver.processor())?,
        };
        let stream = driver.stream(&ptx, &program, &sizes)?;
        Ok(Box::new(Runner::new(stream, program, &planned)?))
    }
}
