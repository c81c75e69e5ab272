//! cuBLAS, NVIDIA's library of matrix products, loaded at run time if it is there.
//!
//! Large products of matrices are its task; without it they are that of the tiled kernels. Single precision is computed in single precision, unless `FERROZYME_TF32=1` allows factors of 11 bits, which tensor cores multiply.

#![allow(unsafe_code, reason = "a table of foreign functions, and their calls")]

use crate::library::{Address, Handle};
use ferrozyme_backend::Error;
use ferrozyme_gpu::{Gemm, Product};
use ferrozyme_ir::Scalar;
use libloading::Library;
use std::ffi::c_void;

/// Where the library may be, the first that loads.
const NAMES: [&str; 3] = ["libcublas.so.13", "libcublas.so.12", "libcublas.so"];
/// Products with fewer operations are left to the tiled kernels, whose launch costs less.
const FEWEST: f64 = 4e6;
/// Memory that the library may use; given to it once, so that products can be captured.
pub(crate) const WORKSPACE: usize = 32 << 20;

/// Numbers of the library's headers.
mod number {
    pub(super) const R_32F: i32 = 0;
    pub(super) const R_64F: i32 = 1;
    pub(super) const R_16F: i32 = 2;
    pub(super) const R_16BF: i32 = 14;
    pub(super) const COMPUTE_32F: i32 = 68;
    pub(super) const COMPUTE_64F: i32 = 70;
    pub(super) const COMPUTE_32F_FAST_TF32: i32 = 77;
    pub(super) const GEMM_DEFAULT: i32 = -1;
}

type Multiply = unsafe extern "C" fn(
    Handle,
    i32,
    i32,
    i32,
    i32,
    i32,
    *const c_void,
    Address,
    i32,
    i32,
    i64,
    Address,
    i32,
    i32,
    i64,
    *const c_void,
    Address,
    i32,
    i32,
    i64,
    i32,
    i32,
    i32,
) -> i32;

/// The library with its state on a device.
pub(crate) struct Blas {
    handle: Handle,
    multiply: Multiply,
    destroy: unsafe extern "C" fn(Handle) -> i32,
    fast: bool,
    /// Keeps the functions loaded.
    _library: Library,
}

impl Drop for Blas {
    fn drop(&mut self) {
        // SAFETY: the handle was created once.
        unsafe { (self.destroy)(self.handle) };
    }
}

impl Blas {
    /// Loads the library for the current context, with products in this stream. None if it is not there.
    pub(crate) fn load(stream: Handle, workspace: Address) -> Option<Blas> {
        type Create = unsafe extern "C" fn(*mut Handle) -> i32;
        type SetStream = unsafe extern "C" fn(Handle, Handle) -> i32;
        type SetWorkspace = unsafe extern "C" fn(Handle, Address, usize) -> i32;
        // SAFETY: the library may be loaded by any program; the types are those of its headers since CUDA 11.
        unsafe {
            let library = NAMES.into_iter().find_map(|name| Library::new(name).ok())?;
            let create: Create = *library.get(b"cublasCreate_v2\0").ok()?;
            let set_stream: SetStream = *library.get(b"cublasSetStream_v2\0").ok()?;
            let set_workspace: SetWorkspace = *library.get(b"cublasSetWorkspace_v2\0").ok()?;
            let multiply: Multiply = *library.get(b"cublasGemmStridedBatchedEx\0").ok()?;
            let destroy = *library.get(b"cublasDestroy_v2\0").ok()?;
            let mut handle = std::ptr::null_mut();
            if create(&mut handle) != 0 {
                return None;
            }
            let blas = Blas {
                handle,
                multiply,
                destroy,
                fast: std::env::var_os("FERROZYME_TF32").is_some_and(|value| value == "1"),
                _library: library,
            };
            let ready =
                set_stream(handle, stream) == 0 && set_workspace(handle, workspace, WORKSPACE) == 0;
            ready.then_some(blas)
        }
    }

    /// Computes a product, given the addresses of the kernel's parameters.
    pub(crate) fn multiply(
        &self,
        product: &Product,
        gemm: &Gemm,
        addresses: &[Address],
    ) -> Result<(), Error> {
        let (kind, compute) = match product.element {
            Scalar::F64 => (number::R_64F, number::COMPUTE_64F),
            Scalar::F16 => (number::R_16F, number::COMPUTE_32F),
            Scalar::Bf16 => (number::R_16BF, number::COMPUTE_32F),
            _ if self.fast => (number::R_32F, number::COMPUTE_32F_FAST_TF32),
            _ => (number::R_32F, number::COMPUTE_32F),
        };
        let address = |array: usize| {
            let (parameter, bytes) = product.arrays[array];
            addresses[parameter].wrapping_add_signed(bytes)
        };
        let factors = [product.factor, if product.add { 1.0 } else { 0.0 }];
        let short = factors.map(|factor| factor as f32);
        let [alpha, beta]: [*const c_void; 2] = match product.element {
            Scalar::F64 => [0, 1].map(|position| std::ptr::from_ref(&factors[position]).cast()),
            _ => [0, 1].map(|position| std::ptr::from_ref(&short[position]).cast()),
        };
        let Gemm { m, n, k, x, y, c } = *gemm;
        // SAFETY: the addresses are of arrays with these sizes and distances, and the factors are of the type that is computed with.
        let status = unsafe {
            (self.multiply)(
                self.handle,
                i32::from(x.transposed),
                i32::from(y.transposed),
                m as i32,
                n as i32,
                k as i32,
                alpha,
                address(x.array),
                kind,
                x.distance as i32,
                x.batch,
                address(y.array),
                kind,
                y.distance as i32,
                y.batch,
                beta,
                address(0),
                kind,
                c.distance as i32,
                c.batch,
                product.batch.count as i32,
                compute,
                number::GEMM_DEFAULT,
            )
        };
        match status {
            0 => Ok(()),
            _ => Err(Error::Device(format!(
                "cuBLAS's product of matrices gave the error {status}"
            ))),
        }
    }
}

/// The product as the library takes it, if it should.
pub(crate) fn worth_a_library(product: &Product) -> Option<Gemm> {
    let gemm = product.as_gemm()?;
    let sizes = [gemm.m, gemm.n, gemm.k, product.batch.count];
    let distances = [gemm.x.distance, gemm.y.distance, gemm.c.distance];
    let fits = sizes.iter().all(|&size| i32::try_from(size).is_ok())
        && distances
            .iter()
            .all(|&distance| i32::try_from(distance).is_ok());
    (fits && product.operations() >= FEWEST).then_some(gemm)
}
