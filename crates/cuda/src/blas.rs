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
/// Products with fewer operations are not worth a call of their own, where one contraction takes several.
const FEWEST_EACH: f64 = 1e8;
/// Memory that the library may use in one stream; given to it, so that products can be captured.
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

type SetStream = unsafe extern "C" fn(Handle, Handle) -> i32;
type SetWorkspace = unsafe extern "C" fn(Handle, Address, usize) -> i32;

/// The library with its state on a device.
pub(crate) struct Blas {
    handle: Handle,
    set_stream: SetStream,
    set_workspace: SetWorkspace,
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
    /// Loads the library for the current context. None if it is not there.
    pub(crate) fn load() -> Option<Blas> {
        type Create = unsafe extern "C" fn(*mut Handle) -> i32;
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
            Some(Blas {
                handle,
                set_stream,
                set_workspace,
                multiply,
                destroy,
                fast: std::env::var_os("FERROZYME_TF32").is_some_and(|value| value == "1"),
                _library: library,
            })
        }
    }

    /// Has the products that follow computed in a stream, with this much memory of their own: [`WORKSPACE`].
    pub(crate) fn go_to(&self, stream: Handle, workspace: Address) -> Result<(), Error> {
        // SAFETY: the stream is valid, and nobody else uses the memory while products of the stream run.
        let status = unsafe {
            // The order matters: a new stream takes the memory away.
            match (self.set_stream)(self.handle, stream) {
                0 => (self.set_workspace)(self.handle, workspace, WORKSPACE),
                status => status,
            }
        };
        match status {
            0 => Ok(()),
            _ => Err(Error::Device(format!(
                "cuBLAS gave the error {status} for a stream"
            ))),
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
        let factors = [product.factor, if product.add { 1.0 } else { 0.0 }];
        let short = factors.map(|factor| factor as f32);
        let [alpha, beta]: [*const c_void; 2] = match product.element {
            Scalar::F64 => [0, 1].map(|position| std::ptr::from_ref(&factors[position]).cast()),
            _ => [0, 1].map(|position| std::ptr::from_ref(&short[position]).cast()),
        };
        let Gemm { m, n, k, x, y, c } = *gemm;
        for outer in 0..product.outer.count as i64 {
            let address = |array: usize| {
                let (parameter, bytes) = product.arrays[array];
                let elements = product.outer.strides[array] * outer;
                let bytes = bytes + elements * product.element.bytes() as i64;
                addresses[parameter].wrapping_add_signed(bytes)
            };
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
            if status != 0 {
                return Err(Error::Device(format!(
                    "cuBLAS's product of matrices gave the error {status}"
                )));
            }
        }
        Ok(())
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
    let calls = product.outer.count as f64;
    let is_worth_it = product.operations() >= FEWEST
        && (calls == 1.0 || product.operations() >= FEWEST_EACH * calls);
    (fits && is_worth_it).then_some(gemm)
}
