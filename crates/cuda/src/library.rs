//! CUDA's driver, loaded at run time.

#![allow(unsafe_code, reason = "a table of foreign functions")]

use libloading::Library;
use std::ffi::{c_char, c_void};

/// Where the driver may be, the first that loads.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// A context, module, function, stream, event or graph.
pub(crate) type Handle = *mut c_void;
/// An address in the device's memory.
pub(crate) type Address = u64;

macro_rules! functions {
    ($($field:ident $symbol:literal ($($argument:ty),*);)*) => {
        /// The functions of the driver that are used. All return a status.
        pub(crate) struct CudaLibrary {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> i32,)*
            /// Keeps the functions loaded.
            _library: Library,
        }

        impl CudaLibrary {
            /// Loads the driver and all functions; the error says what was looked for.
            pub(crate) fn load() -> Result<CudaLibrary, String> {
                let mut reasons = Vec::new();
                for name in NAMES {
                    // SAFETY: the driver may be loaded by any program.
                    let library = match unsafe { Library::new(name) } {
                        Ok(library) => library,
                        Err(error) => {
                            reasons.push(error.to_string());
                            continue;
                        }
                    };
                    // SAFETY: the types are those of the driver's headers since CUDA 12.
                    return unsafe {
                        Ok(CudaLibrary {
                            $($field: *library
                                .get(concat!($symbol, "\0").as_bytes())
                                .map_err(|error| format!("{name} is too old a driver: {error}"))?,)*
                            _library: library,
                        })
                    };
                }
                Err(format!("CUDA's driver is not there ({})", reasons.join("; ")))
            }
        }
    };
}

functions! {
    initialise "cuInit" (u32);
    error_text "cuGetErrorString" (i32, *mut *const c_char);
    device_count "cuDeviceGetCount" (*mut i32);
    device "cuDeviceGet" (*mut i32, i32);
    device_name "cuDeviceGetName" (*mut c_char, i32, i32);
    device_attribute "cuDeviceGetAttribute" (*mut i32, i32, i32);
    retain_context "cuDevicePrimaryCtxRetain" (*mut Handle, i32);
    release_context "cuDevicePrimaryCtxRelease_v2" (i32);
    set_context "cuCtxSetCurrent" (Handle);
    load_module "cuModuleLoadDataEx" (*mut Handle, *const c_void, u32, *mut i32, *mut *mut c_void);
    unload_module "cuModuleUnload" (Handle);
    function "cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
    allocate "cuMemAlloc_v2" (*mut Address, usize);
    free "cuMemFree_v2" (Address);
    allocate_pinned "cuMemAllocHost_v2" (*mut *mut c_void, usize);
    free_pinned "cuMemFreeHost" (*mut c_void);
    write "cuMemcpyHtoDAsync_v2" (Address, *const c_void, usize, Handle);
    read "cuMemcpyDtoHAsync_v2" (*mut c_void, Address, usize, Handle);
    copy "cuMemcpyDtoDAsync_v2" (Address, Address, usize, Handle);
    set "cuMemsetD32Async" (Address, u32, usize, Handle);
    create_stream "cuStreamCreate" (*mut Handle, u32);
    destroy_stream "cuStreamDestroy_v2" (Handle);
    wait_for_stream "cuStreamSynchronize" (Handle);
    create_event "cuEventCreate" (*mut Handle, u32);
    destroy_event "cuEventDestroy_v2" (Handle);
    record_event "cuEventRecord" (Handle, Handle);
    wait_for_event "cuEventSynchronize" (Handle);
    wait_in_stream "cuStreamWaitEvent" (Handle, Handle, u32);
    elapsed "cuEventElapsedTime" (*mut f32, Handle, Handle);
    launch "cuLaunchKernel" (Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut *mut c_void, *mut *mut c_void);
    begin_capture "cuStreamBeginCapture_v2" (Handle, i32);
    end_capture "cuStreamEndCapture" (Handle, *mut Handle);
    instantiate "cuGraphInstantiateWithFlags" (*mut Handle, Handle, u64);
    launch_graph "cuGraphLaunch" (Handle, Handle);
    destroy_graph "cuGraphDestroy" (Handle);
    destroy_executable "cuGraphExecDestroy" (Handle);
}
