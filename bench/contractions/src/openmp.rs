//! OpenMP's runtime library in this process, whose threads the kernels can use.

#![allow(unsafe_code, reason = "foreign functions are called")]

use anyhow::{Context, Result, anyhow};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::c_int;

/// The names under which it may be there: LLVM's and GCC's.
const FILES: [&str; 2] = ["libomp.so.5", "libgomp.so.1"];

/// OpenMP's runtime library, which stays loaded.
pub struct OpenMp {
    set_threads: unsafe extern "C" fn(c_int),
}

impl OpenMp {
    /// Loads it, so that machine code finds its functions by name. Code that was compiled for OpenMP before has one thread.
    ///
    /// # Errors
    /// If it is not there.
    pub fn load() -> Result<OpenMp> {
        // SAFETY: these libraries do nothing unusual when they are loaded, and the function has this type.
        unsafe {
            let mut libraries = FILES
                .iter()
                .map(|file| Library::open(Some(*file), RTLD_NOW | RTLD_GLOBAL));
            let library = libraries
                .find_map(Result::ok)
                .ok_or_else(|| anyhow!("there is none of {}", FILES.join(", ")))?;
            let set_threads = *library
                .get(b"omp_set_num_threads")
                .context("the number of threads cannot be set")?;
            // Its threads run code of it until the process ends.
            std::mem::forget(library);
            Ok(OpenMp { set_threads })
        }
    }

    /// Sets how many threads there are from now on, for the calling thread.
    pub fn set_threads(&self, threads: usize) {
        // SAFETY: as OpenMP defines it.
        unsafe { (self.set_threads)(threads as c_int) };
    }
}
