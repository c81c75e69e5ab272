//! What is said of functions beside requests: that a derivative is given for them.
//!
//! A registration is a constant whose name contains `__FERROZYME_RULE`; the driver reads it. The functions that it names are `extern
//! "C-unwind"` and take floats and integers by value, references as addresses, slices as address and length. Their arguments are in the
//! order of the Loop IR's rules, and a mask of active arguments is the last. One result is returned by value; of several, each is written
//! through a pointer after the mask.

use std::cell::Cell;
use std::ffi::c_void;

use super::Text;

/// The functions that make up a derivative; null where there is none.
#[repr(C)]
pub struct Registration {
    /// Tells a registration from other constants, and its version.
    pub magic: [u8; 8],
    /// The function that the derivative is of.
    pub primal: *const (),
    /// Forward mode.
    pub forward: *const (),
    /// Reverse mode, forward sweep.
    pub augment: *const (),
    /// Reverse mode, reverse sweep.
    pub reverse: *const (),
    /// What `forward` writes through pointers, a letter each: `s` an f32, `d` an f64, `p` a pointer.
    pub forward_results: Text,
    /// What `augment` writes through pointers.
    pub augment_results: Text,
    /// What `reverse` writes through pointers.
    pub reverse_results: Text,
}

impl Registration {
    /// The value of `magic`.
    pub const MAGIC: [u8; 8] = *b"FZRUL001";
}

// SAFETY: it is never written, and what it points to is not either.
unsafe impl Sync for Registration {}

/// A slice from its parts.
///
/// # Safety
/// The parts are those of a slice that lives as long as is asked for.
pub unsafe fn slice<'a, T>(start: *const T, length: usize) -> &'a [T] {
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(start, length) }
}

/// A slice to write to from its parts.
///
/// # Safety
/// As [`slice`], and nothing else is used to get at its elements.
pub unsafe fn slice_mut<'a, T>(start: *mut T, length: usize) -> &'a mut [T] {
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts_mut(start, length) }
}

/// A slice that others may be looking at.
///
/// # Safety
/// As [`slice`], and what else is used to get at its elements are cells as well.
pub unsafe fn cells<'a, T>(start: *mut T, length: usize) -> &'a [Cell<T>] {
    // SAFETY: as the caller promises; a cell is represented as what it holds.
    unsafe { std::slice::from_raw_parts(start.cast::<Cell<T>>(), length) }
}

/// A value that others may be looking at.
///
/// # Safety
/// As [`cells`], for a slice of one.
pub unsafe fn cell<'a, T>(start: *mut T) -> &'a Cell<T> {
    // SAFETY: as the caller promises; a cell is represented as what it holds.
    unsafe { &*start.cast::<Cell<T>>() }
}

/// Puts a value away until the reverse sweep. What one rule keeps must be what the other takes, which the macro has the compiler check:
///
/// ```compile_fail,E0308
/// use ferrozyme::{Active, custom_derivative};
///
/// #[custom_derivative(augment = augment, reverse = reverse)]
/// fn f(x: f64) -> f64 {
///     x
/// }
///
/// fn augment(x: f64, _: Active) -> (f64, String) {
///     (x, String::new())
/// }
///
/// fn reverse(_: f64, seed: f64, _kept: Vec<f64>, _: Active) -> f64 {
///     seed
/// }
/// ```
pub fn keep<K>(kept: K) -> *mut c_void {
    Box::into_raw(Box::new(kept)).cast()
}

/// Takes it out again.
///
/// # Safety
/// The pointer comes from [`keep`] with the same type, and nobody has taken it out before.
pub unsafe fn take<K>(kept: *mut c_void) -> K {
    // SAFETY: as the caller promises.
    *unsafe { Box::from_raw(kept.cast::<K>()) }
}

/// Runs a function that the compiler takes for a constant: the driver knows it by its name, and does not look inside. Nor may LLVM, which
/// otherwise finds out what is returned, and puts that in place of the call's result.
#[inline(never)]
pub fn __ferrozyme_inactive<R>(f: impl FnOnce() -> R) -> R {
    std::hint::black_box(f())
}

/// The same for what writes to no memory that others look at.
#[inline(never)]
pub fn __ferrozyme_inactive_reading<R>(f: impl FnOnce() -> R) -> R {
    std::hint::black_box(f())
}

/// Whether a function with a custom derivative should do something else: never. But LLVM does not know, so that it cannot find out that a
/// function returns its argument or a constant, and put that in place of the call's result, past the derivative.
#[doc(hidden)]
pub static mut NEVER: bool = false;

/// Does not return, and depends on all these values.
#[cold]
#[inline(never)]
pub fn never_returns(values: &[f64]) -> ! {
    panic!("this does not happen: {values:?}");
}
