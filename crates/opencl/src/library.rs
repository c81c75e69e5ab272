//! OpenCL's library, loaded at run time.

#![allow(unsafe_code, reason = "a table of foreign functions")]

use libloading::Library;
use std::ffi::{c_char, c_void};

/// Where the library may be, the first that loads.
const NAMES: [&str; 2] = ["libOpenCL.so.1", "libOpenCL.so"];

/// A platform, device, context, queue, buffer, program, kernel or event.
pub(crate) type Handle = *mut c_void;

macro_rules! functions {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions of the library that are used.
        #[allow(non_snake_case, reason = "OpenCL's own names")]
        pub(crate) struct OpenClLibrary {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> $result,)*
            /// Keeps the functions loaded.
            _library: Library,
        }

        impl OpenClLibrary {
            /// Loads the library and all functions; the error says what was looked for.
            pub(crate) fn load() -> Result<OpenClLibrary, String> {
                let mut reasons = Vec::new();
                for name in NAMES {
                    // SAFETY: OpenCL's library may be loaded by any program.
                    let library = match unsafe { Library::new(name) } {
                        Ok(library) => library,
                        Err(error) => {
                            reasons.push(error.to_string());
                            continue;
                        }
                    };
                    // SAFETY: the types are those of OpenCL 1.2's headers.
                    return unsafe {
                        Ok(OpenClLibrary {
                            $($name: *library
                                .get(concat!(stringify!($name), "\0").as_bytes())
                                .map_err(|error| format!("{name} is no OpenCL library: {error}"))?,)*
                            _library: library,
                        })
                    };
                }
                Err(format!("OpenCL's library is not there ({})", reasons.join("; ")))
            }
        }
    };
}

functions! {
    clGetPlatformIDs(u32, *mut Handle, *mut u32) -> i32;
    clGetDeviceIDs(Handle, u64, u32, *mut Handle, *mut u32) -> i32;
    clGetDeviceInfo(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    clCreateContext(*const isize, u32, *const Handle, *const c_void, *mut c_void, *mut i32) -> Handle;
    clCreateCommandQueue(Handle, Handle, u64, *mut i32) -> Handle;
    clCreateBuffer(Handle, u64, usize, *mut c_void, *mut i32) -> Handle;
    clCreateProgramWithSource(Handle, u32, *const *const c_char, *const usize, *mut i32) -> Handle;
    clBuildProgram(Handle, u32, *const Handle, *const c_char, *const c_void, *mut c_void) -> i32;
    clGetProgramBuildInfo(Handle, Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    clCreateKernel(Handle, *const c_char, *mut i32) -> Handle;
    clSetKernelArg(Handle, u32, usize, *const c_void) -> i32;
    clEnqueueNDRangeKernel(Handle, Handle, u32, *const usize, *const usize, *const usize, u32, *const Handle, *mut Handle) -> i32;
    clEnqueueReadBuffer(Handle, Handle, u32, usize, usize, *mut c_void, u32, *const Handle, *mut Handle) -> i32;
    clEnqueueWriteBuffer(Handle, Handle, u32, usize, usize, *const c_void, u32, *const Handle, *mut Handle) -> i32;
    clEnqueueCopyBuffer(Handle, Handle, Handle, usize, usize, usize, u32, *const Handle, *mut Handle) -> i32;
    clEnqueueFillBuffer(Handle, Handle, *const c_void, usize, usize, usize, u32, *const Handle, *mut Handle) -> i32;
    clEnqueueMarkerWithWaitList(Handle, u32, *const Handle, *mut Handle) -> i32;
    clGetEventProfilingInfo(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    clWaitForEvents(u32, *const Handle) -> i32;
    clReleaseEvent(Handle) -> i32;
    clFlush(Handle) -> i32;
    clFinish(Handle) -> i32;
    clReleaseMemObject(Handle) -> i32;
    clReleaseKernel(Handle) -> i32;
    clReleaseProgram(Handle) -> i32;
    clReleaseCommandQueue(Handle) -> i32;
    clReleaseContext(Handle) -> i32;
}
