//! Libraries with C's interface of BLAS, loaded at run time if they are there.

#![allow(unsafe_code, reason = "foreign functions are called")]

use crate::native::{Element, View};
use anyhow::{Context, Result};
use libloading::Library;
use std::ffi::c_int;

/// `cblas_sgemm` and `cblas_dgemm`.
type Gemm<T> = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    T,
    *const T,
    c_int,
    *const T,
    c_int,
    T,
    *mut T,
    c_int,
);

const ROW_MAJOR: c_int = 101;
const AS_IS: c_int = 111;
const TRANSPOSED: c_int = 112;

/// A library that was loaded.
pub struct Blas<T> {
    gemm: Gemm<T>,
    _library: Library,
}

impl<T: Element> Blas<T> {
    /// Loads a library and has it use this many threads.
    ///
    /// # Errors
    /// If it is not there, or has no such functions.
    pub fn load(file: &str, threads: usize) -> Result<Blas<T>> {
        let name = match size_of::<T>() {
            4 => "cblas_sgemm",
            _ => "cblas_dgemm",
        };
        // SAFETY: libraries of this kind do nothing unusual when they are loaded, and these functions have these types.
        unsafe {
            let library = Library::new(file).with_context(|| format!("cannot load {file}"))?;
            for set_threads in ["openblas_set_num_threads", "MKL_Set_Num_Threads"] {
                if let Ok(set) = library.get::<unsafe extern "C" fn(c_int)>(set_threads) {
                    set(threads as c_int);
                }
            }
            let gemm = *library.get::<Gemm<T>>(name)?;
            Ok(Blas {
                gemm,
                _library: library,
            })
        }
    }

    /// Computes `C = alpha·A·B`, or adds it; whether it can, with these strides.
    ///
    /// # Safety
    /// The views are of memory for matrices of these sizes.
    pub unsafe fn call(
        &self,
        [c, a, b]: [View<T>; 3],
        [m, n, k]: [usize; 3],
        alpha: T,
        add: bool,
    ) -> bool {
        // A line of one element has either stride; the leading dimension must still be as long as the others.
        let layout = |view: View<T>, rows: usize, columns: usize| match view.strides {
            [leading, 1] if leading >= columns as isize => Some((AS_IS, leading as c_int)),
            [1, leading] if leading >= rows as isize => Some((TRANSPOSED, leading as c_int)),
            _ => None,
        };
        let (Some((AS_IS, c_leading)), Some(a_layout), Some(b_layout)) =
            (layout(c, m, n), layout(a, m, k), layout(b, k, n))
        else {
            return false;
        };
        let beta = T::from_f64(if add { 1.0 } else { 0.0 });
        // SAFETY: as the caller promises.
        unsafe {
            (self.gemm)(
                ROW_MAJOR, a_layout.0, b_layout.0, m as c_int, n as c_int, k as c_int, alpha,
                a.data, a_layout.1, b.data, b_layout.1, beta, c.data, c_leading,
            );
        }
        true
    }
}
