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
/// Batches of batches with fewer operations in each are left to them, too: if addresses are not aligned, each is a call.
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

type MultiplyPointers = unsafe extern "C" fn(
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
    Address,
    i32,
    i32,
    *const c_void,
    Address,
    i32,
    i32,
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
    multiply_pointers: MultiplyPointers,
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
            let multiply_pointers: MultiplyPointers =
                *library.get(b"cublasGemmBatchedEx\0").ok()?;
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
                multiply_pointers,
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

    /// Computes a product in one call for all of its batches. `pointers` is where the device has what [`pointers`] says.
    pub(crate) fn multiply_at(
        &self,
        product: &Product,
        gemm: &Gemm,
        pointers: Address,
    ) -> Result<(), Error> {
        let (kind, compute) = self.kinds(product.element);
        let factors = Factors::of(product);
        let [alpha, beta] = factors.pointers();
        let Gemm { m, n, k, x, y, c } = *gemm;
        let count = batches(product);
        let list = |position: usize| pointers + (position * count * POINTER) as u64;
        // SAFETY: the lists are of arrays with these sizes and distances, and the factors are of the type that is computed with.
        let status = unsafe {
            (self.multiply_pointers)(
                self.handle,
                i32::from(x.transposed),
                i32::from(y.transposed),
                m as i32,
                n as i32,
                k as i32,
                alpha,
                list(0),
                kind,
                x.distance as i32,
                list(1),
                kind,
                y.distance as i32,
                beta,
                list(2),
                kind,
                c.distance as i32,
                count as i32,
                compute,
                number::GEMM_DEFAULT,
            )
        };
        checked(status)
    }

    /// Computes a product, given the addresses of the kernel's parameters. Batches of batches take a call each.
    pub(crate) fn multiply(
        &self,
        product: &Product,
        gemm: &Gemm,
        addresses: &[Address],
    ) -> Result<(), Error> {
        let (kind, compute) = self.kinds(product.element);
        let factors = Factors::of(product);
        let [alpha, beta] = factors.pointers();
        let Gemm { m, n, k, x, y, c } = *gemm;
        for outer in 0..product.outer.count as i64 {
            let address = |array: usize| {
                let elements = product.outer.strides[array] * outer;
                let bytes = elements * product.element.bytes() as i64;
                address_of(product, array, addresses).wrapping_add_signed(bytes)
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
            checked(status)?;
        }
        Ok(())
    }

    /// The library's numbers for the type of elements, and for how products of it are computed.
    fn kinds(&self, element: Scalar) -> (i32, i32) {
        match element {
            Scalar::F64 => (number::R_64F, number::COMPUTE_64F),
            Scalar::F16 => (number::R_16F, number::COMPUTE_32F),
            Scalar::Bf16 => (number::R_16BF, number::COMPUTE_32F),
            _ if self.fast => (number::R_32F, number::COMPUTE_32F_FAST_TF32),
            _ => (number::R_32F, number::COMPUTE_32F),
        }
    }
}

/// What sums are multiplied with, and what is there already.
struct Factors {
    long: [f64; 2],
    short: [f32; 2],
    is_long: bool,
}

impl Factors {
    fn of(product: &Product) -> Factors {
        let long = [product.factor, if product.add { 1.0 } else { 0.0 }];
        Factors {
            long,
            short: long.map(|factor| factor as f32),
            is_long: product.element == Scalar::F64,
        }
    }

    /// In the type that is computed with.
    fn pointers(&self) -> [*const c_void; 2] {
        [0, 1].map(|position| match self.is_long {
            true => std::ptr::from_ref(&self.long[position]).cast(),
            false => std::ptr::from_ref(&self.short[position]).cast(),
        })
    }
}

fn checked(status: i32) -> Result<(), Error> {
    match status {
        0 => Ok(()),
        _ => Err(Error::Device(format!(
            "cuBLAS's product of matrices gave the error {status}"
        ))),
    }
}

/// What the library may take addresses of batches to be multiples of, since it does not see them before it chooses a kernel.
const ALIGNMENT: Address = 16;

/// The bytes of an address.
const POINTER: usize = size_of::<Address>();

fn batches(product: &Product) -> usize {
    product.outer.count * product.batch.count
}

/// Where an array of a product begins, given the addresses of the kernel's parameters.
pub(crate) fn address_of(product: &Product, array: usize, addresses: &[Address]) -> Address {
    let (parameter, bytes) = product.arrays[array];
    addresses[parameter].wrapping_add_signed(bytes)
}

/// Where each batch of a product begins, if that is as aligned as the library needs: first those of the left operand as the library takes it, then those of the right one, then those of the result.
pub(crate) fn pointers(
    product: &Product,
    gemm: &Gemm,
    addresses: &[Address],
) -> Option<Vec<Address>> {
    let bytes = product.element.bytes() as i64;
    let mut all = Vec::with_capacity(3 * batches(product));
    for array in [gemm.x.array, gemm.y.array, 0] {
        let start = address_of(product, array, addresses);
        for outer in 0..product.outer.count as i64 {
            for batch in 0..product.batch.count as i64 {
                let elements =
                    outer * product.outer.strides[array] + batch * product.batch.strides[array];
                all.push(start.wrapping_add_signed(elements * bytes));
            }
        }
    }
    all.iter()
        .all(|address| address.is_multiple_of(ALIGNMENT))
        .then_some(all)
}

/// The product as the library takes it, if it should.
pub(crate) fn worth_a_library(product: &Product) -> Option<Gemm> {
    let gemm = product.as_gemm()?;
    let sizes = [gemm.m, gemm.n, gemm.k, batches(product)];
    let distances = [gemm.x.distance, gemm.y.distance, gemm.c.distance];
    let fits = sizes.iter().all(|&size| i32::try_from(size).is_ok())
        && distances
            .iter()
            .all(|&distance| i32::try_from(distance).is_ok());
    let outer = product.outer.count as f64;
    let is_worth_it = product.operations() >= FEWEST
        && (outer == 1.0 || product.operations() >= FEWEST_EACH * outer);
    (fits && is_worth_it).then_some(gemm)
}
