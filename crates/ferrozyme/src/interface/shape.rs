//! Checks at every call of a derivative that shadows have the shape of their values.

use super::described::shared_memory;
use super::moves::{begin_moves, end_moves};
use super::places::{check_places, places_of};
use super::{Mismatch, NotePlaces, Places, may_be_same_type};

/// How to compare values of a type with their shadows, as far as the type is known.
pub struct Comparison<T: ?Sized> {
    /// Whether a shadow has the shape of a value.
    pub same_shape: fn(&T, &T) -> bool,
    /// Where it differs if it does not.
    pub compare: fn(&T, &T) -> Result<(), Mismatch>,
    /// The length of a slice or vector.
    pub length: fn(&T) -> usize,
    /// Whether trait objects in it may have the types of those in the shadow.
    pub same_types: fn(&T, &T) -> bool,
    /// The variant of an enum of unknown layout, and those of elements, as integers.
    pub variants: [fn(&T) -> u64; 2],
}

impl<T: ?Sized> Comparison<T> {
    fn variants_of(&self, value: &T) -> [u64; 2] {
        self.variants.map(|variants| variants(value))
    }

    /// Where a shadow differs from a value.
    fn mismatch(&self, value: &T, shadow: &T) -> Result<(), Mismatch> {
        Mismatch::lengths((self.length)(value), (self.length)(shadow))?;
        (self.compare)(value, shadow)?;
        if !(self.same_types)(value, shadow) || !may_be_same_type(value, shadow) {
            return Err(Mismatch::new("a trait object", "one of another type"));
        }
        match self.variants_of(value) == self.variants_of(shadow) {
            true => Ok(()),
            false => Err(Mismatch::new("one variant", "another variant")),
        }
    }
}

/// The names in a message about a shadow: the primal, the argument and the shadow.
pub struct Names {
    /// The function that is differentiated.
    pub primal: &'static str,
    /// Its argument.
    pub argument: &'static str,
    /// The argument of the derivative that is its shadow.
    pub shadow: &'static str,
}

/// Panics if a shadow does not have the shape of its value.
#[inline]
#[track_caller]
pub fn check_shape<T: ?Sized>(
    comparison: Comparison<T>,
    value: &T,
    shadow: &T,
    names: &'static Names,
) {
    let lengths = ((comparison.length)(value), (comparison.length)(shadow));
    if lengths.0 != lengths.1
        || !(comparison.same_shape)(value, shadow)
        || !(comparison.same_types)(value, shadow)
        || !may_be_same_type(value, shadow)
        || comparison.variants_of(value) != comparison.variants_of(shadow)
    {
        refuse(&comparison, value, shadow, names);
    }
}

/// Panics if a shadow of reverse mode is known to share memory with its value: gradients would be added to the value.
#[inline]
#[track_caller]
pub fn check_apart<T: ?Sized>(value: &T, shadow: &T, names: &'static Names) {
    if let Some(path) = shared_memory(value, shadow) {
        refuse_shared(&path, names);
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn refuse_shared(path: &str, names: &Names) -> ! {
    let Names {
        primal,
        argument,
        shadow,
    } = names;
    panic!(
        "argument `{argument}` of `{primal}` and its shadow share memory: `{argument}{path}` and `{shadow}{path}` are the same, so that gradients would be added to the argument itself. \
         Give the shadow memory of its own, or pass this data as a `Const` argument"
    );
}

/// Panics if the shadow of a slice does not have its shape once for each lane.
#[inline]
#[track_caller]
pub fn check_lanes<T>(
    comparison: Comparison<[T]>,
    value: &[T],
    shadow: &[T],
    width: usize,
    names: &'static Names,
) {
    if value.len().checked_mul(width) != Some(shadow.len()) {
        refuse_lanes(value.len(), shadow.len(), width, names);
    }
    if value.is_empty() {
        return;
    }
    for lane in shadow.chunks_exact(value.len()) {
        if !(comparison.same_shape)(value, lane) {
            refuse(&comparison, value, lane, names);
        }
    }
}

/// Panics if a seed is not of the same variant as the result, which is known only after the call.
#[inline]
#[track_caller]
pub fn check_seed<T>(comparison: Comparison<T>, result: &T, seed: &T, primal: &'static str) {
    if !(comparison.same_shape)(result, seed) {
        refuse_seed((comparison.compare)(result, seed), primal);
    }
}

/// Records about an argument that a derivative in reverse mode may change, made before the call.
pub struct Noted {
    places: Places,
    /// The list of moves that the derivative reports.
    moves: usize,
    length: usize,
    variants: [u64; 2],
}

/// Makes the records that [`check_changes`] compares.
#[inline]
pub fn note_changes<T: ?Sized>(
    comparison: Comparison<T>,
    note: NotePlaces<T>,
    value: &T,
    shadow: &T,
) -> Noted {
    let places = places_of(note, shadow);
    Noted {
        moves: match places.is_empty() {
            true => 0,
            false => begin_moves(),
        },
        places,
        length: (comparison.length)(value),
        variants: comparison.variants_of(value),
    }
}

/// Panics if a function has changed an argument in a way that leaves gradients in the wrong place, or that used unused bytes of a shadow as a seed.
#[inline]
#[track_caller]
pub fn check_changes<T: ?Sized>(
    before: &Noted,
    comparison: Comparison<T>,
    note: NotePlaces<T>,
    value: &T,
    shadow: &T,
    names: &'static Names,
) {
    check_places((&before.places, before.moves), note, shadow, names);
    if before.moves != 0 {
        end_moves(before.moves);
    }
    let same_length = (comparison.length)(value) == before.length;
    if same_length && comparison.variants_of(value) != before.variants {
        refuse_variant(names);
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn refuse_variant(names: &Names) -> ! {
    let Names {
        primal, argument, ..
    } = names;
    panic!(
        "argument `{argument}` of `{primal}` has changed its variant, and unused bytes of its shadow were used as a seed: \
         derive `Differentiable` for its type; the gradients are invalid"
    );
}

#[cold]
#[inline(never)]
#[track_caller]
fn refuse_seed(compared: Result<(), Mismatch>, primal: &str) -> ! {
    let Err(mismatch) = compared else {
        unreachable!("shapes that differ differ somewhere");
    };
    let path = &mismatch.path;
    panic!(
        "the seed of the result of `{primal}` has another shape: the result{path} is {}, but the seed{path} is {}; the gradients are invalid",
        mismatch.primal, mismatch.shadow
    );
}

#[cold]
#[inline(never)]
#[track_caller]
fn refuse<T: ?Sized>(comparison: &Comparison<T>, value: &T, shadow: &T, names: &Names) -> ! {
    let Err(mismatch) = comparison.mismatch(value, shadow) else {
        unreachable!("shapes that differ differ somewhere");
    };
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

/// One lane of a shadow that has passed [`check_lanes`].
#[inline]
pub fn lane<'a, T>(shadow: &&'a [T], length: usize, number: usize) -> &'a [T] {
    &shadow[number * length..][..length]
}

/// One lane of a shadow that has passed [`check_lanes`], to be written.
///
/// # Safety
/// Each lane is requested once, and the shadow is not used meanwhile.
#[inline]
pub unsafe fn lane_mut<'a, T>(
    shadow: &mut &'a mut [T],
    length: usize,
    number: usize,
) -> &'a mut [T] {
    let lane = &mut shadow[number * length..][..length];
    // SAFETY: lanes do not overlap, and the caller has promised the rest.
    unsafe { std::slice::from_raw_parts_mut(lane.as_mut_ptr(), length) }
}
