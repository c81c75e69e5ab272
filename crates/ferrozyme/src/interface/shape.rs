//! Checks that shadows have the shape of what they shadow, at every call of a derivative.

use super::Mismatch;

/// How to compare values of a type with their shadows, as far as it is known.
pub type Compare<T> = fn(&T, &T) -> Result<(), Mismatch>;

/// What a message about a shadow says: the primal's name, the argument's and the shadow's.
pub struct Names {
    /// The function that is differentiated.
    pub primal: &'static str,
    /// Its argument.
    pub argument: &'static str,
    /// The argument of the derivative that is its shadow.
    pub shadow: &'static str,
}

/// Panics if a shadow does not have the shape of what it shadows.
#[inline]
#[track_caller]
pub fn check_shape<T: ?Sized>(compare: [Compare<T>; 2], value: &T, shadow: &T, names: &Names) {
    for compare in compare {
        if let Err(mismatch) = compare(value, shadow) {
            refuse(&mismatch, names);
        }
    }
}

/// Panics if the shadow of a slice does not have its shape once for each lane.
#[inline]
#[track_caller]
pub fn check_lanes<T>(
    compare: Compare<[T]>,
    value: &[T],
    shadow: &[T],
    width: usize,
    names: &Names,
) {
    if value.len().checked_mul(width) != Some(shadow.len()) {
        refuse_lanes(value.len(), shadow.len(), width, names);
    }
    if value.is_empty() {
        return;
    }
    for lane in shadow.chunks_exact(value.len()) {
        if let Err(mismatch) = compare(value, lane) {
            refuse(&mismatch, names);
        }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn refuse(mismatch: &Mismatch, names: &Names) -> ! {
    let Names {
        primal,
        argument,
        shadow,
    } = names;
    let path = &mismatch.path;
    panic!(
        "the shadow of argument `{argument}` of `{primal}` has another shape: \
         `{argument}{path}` has {}, but `{shadow}{path}` has {}",
        mismatch.primal, mismatch.shadow
    );
}

#[cold]
#[inline(never)]
#[track_caller]
fn refuse_lanes(length: usize, shadow_length: usize, width: usize, names: &Names) -> ! {
    let Names {
        primal,
        argument,
        shadow,
    } = names;
    panic!(
        "the shadow of argument `{argument}` of `{primal}` has another shape: \
         `{argument}` has length {length}, so with width {width} `{shadow}` must have {width} times that length, but has length {shadow_length}"
    );
}
