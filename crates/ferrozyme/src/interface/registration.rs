//! Registrations: constants that give a function a derivative rule.
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
/// The parts are those of a slice that lives long enough.
pub unsafe fn slice<'a, T>(start: *const T, length: usize) -> &'a [T] {
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(start, length) }
}

/// A slice to write to from its parts.
///
/// # Safety
/// As [`slice`], and its elements are accessed in no other way.
pub unsafe fn slice_mut<'a, T>(start: *mut T, length: usize) -> &'a mut [T] {
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts_mut(start, length) }
}

/// A slice that may be aliased.
///
/// # Safety
/// As [`slice`], and its elements are otherwise accessed as cells only.
pub unsafe fn cells<'a, T>(start: *mut T, length: usize) -> &'a [Cell<T>] {
    // SAFETY: as the caller promises; a cell has the representation of its contents.
    unsafe { std::slice::from_raw_parts(start.cast::<Cell<T>>(), length) }
}

/// A value that may be aliased.
///
/// # Safety
/// As [`cells`], for a slice of one.
pub unsafe fn cell<'a, T>(start: *mut T) -> &'a Cell<T> {
    // SAFETY: as the caller promises; a cell has the representation of its contents.
    unsafe { &*start.cast::<Cell<T>>() }
}

/// Keeps a value until the reverse sweep. The type that one rule keeps must be the type that the other takes, which the macro has the compiler check:
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
/// The pointer comes from [`keep`] with the same type, and the value was not taken out before.
pub unsafe fn take<K>(kept: *mut c_void) -> K {
    // SAFETY: as the caller promises.
    *unsafe { Box::from_raw(kept.cast::<K>()) }
}

/// Runs an inactive function: the driver recognises this one by its name and does not differentiate its body. LLVM must not see the body either: it
/// could find out the result and replace the call by it.
#[inline(never)]
pub fn __ferrozyme_inactive<R>(f: impl FnOnce() -> R) -> R {
    std::hint::black_box(f())
}

/// The same for functions that write no memory of others.
#[inline(never)]
pub fn __ferrozyme_inactive_reading<R>(f: impl FnOnce() -> R) -> R {
    std::hint::black_box(f())
}

/// Whether a function with a custom derivative should do something else: never. But LLVM does not know that, so it cannot find out that a
/// function returns its argument or a constant, and replace the call by that, bypassing the derivative.
#[doc(hidden)]
pub static mut NEVER: bool = false;

/// Does not return, and depends on all these values.
#[cold]
#[inline(never)]
pub fn never_returns(values: &[f64]) -> ! {
    panic!("this does not happen: {values:?}");
}
