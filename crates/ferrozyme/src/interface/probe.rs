//! Queries properties of a type at compile time, without a trait bound.
//!
//! An associated constant of an inherent implementation takes precedence over one of a trait, but only if its bounds
//! hold. So `Probe::<T>::LAYOUT` is the layout if `T` has one, and the trait's null otherwise, also in generic
//! code. It must be written where `T` is known: for a generic parameter only that parameter's bounds count.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::marker::PhantomData;
use std::mem::{Discriminant, discriminant};
use std::panic::RefUnwindSafe;
use std::path::PathBuf;
use std::ptr::null;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::described::{
    compare_described, fit_described, is_described, note_described, same_described,
};
use super::{Differentiable, Layout, Mismatch, Places};
use crate::Shadow;

/// Use it as `Probe::<T>::LAYOUT`, with [`Unknown`] in scope.
pub struct Probe<T: ?Sized>(PhantomData<T>);

/// Makes a shadow of the same type.
pub type MakeShadow<T> = fn(&T) -> T;

/// Records the places in a shadow.
pub type NotePlaces<T> = fn(&T, &mut Places);

/// The defaults for unknown types.
pub trait Unknown {
    /// The queried type.
    type Target: ?Sized;
    /// The layout of the type's bytes, null if it is not known.
    const LAYOUT: *const Layout = null();
    /// Whether the value itself has no interior mutability.
    const FROZEN: bool = false;
    /// Whether it is `Copy`, which nothing with interior mutability is.
    const COPY: bool = false;
    /// Whether it is a slice of `Copy` elements.
    const SLICE_OF_COPY: bool = false;
    /// Whether it contains, owns or refers to no cell. Locks and atomics do not count as cells.
    const HAS_NO_CELLS: bool = false;
    /// Whether a unique reference to it is unaliased.
    const UNPIN: bool = false;
    /// Whether no comparison is needed.
    const FLAT: bool = false;
    /// Whether a shadow has the shape of a value.
    const SAME_SHAPE: fn(&Self::Target, &Self::Target) -> bool = same_described;
    /// Describes where a shadow differs in shape from a value.
    const COMPARE: fn(&Self::Target, &Self::Target) -> Result<(), Mismatch> = compare_described;
    /// Makes a shadow fit for a function that changes the value.
    const FIT: fn(&Self::Target, &mut Self::Target) = fit_described;
    /// Records where memory that a shadow owns is next to floats.
    const PLACES: NotePlaces<Self::Target> = note_described;
    /// Whether a clone may share memory with the value; see [`Differentiable`].
    const SHARES_0: bool = true;
    /// See [`Differentiable`].
    const SHARES_1: bool = true;
    /// See [`Differentiable`].
    const SHARES_2: bool = true;
    /// See [`Differentiable`].
    const SHARES_3: bool = true;
    /// Whether trait objects have the same type in a shadow, judged by their size.
    const SAME_TYPES: fn(&Self::Target, &Self::Target) -> bool = |_, _| true;
    /// The variant of an enum, as a number; those of the elements of a slice together.
    const VARIANTS: fn(&Self::Target) -> u64 = |_| 0;
    /// The variants of the elements of a vector together.
    const ELEMENT_VARIANTS: fn(&Self::Target) -> u64 = |_| 0;
    /// Makes a value of the same shape out of zeros.
    const SHADOW: Option<MakeShadow<Self::Target>> = None;
    /// The length of a slice or vector, even of unknown elements; 0 for other types.
    const LENGTH: fn(&Self::Target) -> usize = |_| 0;
}

impl<T: ?Sized> Unknown for Probe<T> {
    type Target = T;
}

impl<T: ?Sized + Differentiable> Probe<T> {
    /// See [`Unknown`].
    pub const LAYOUT: *const Layout = T::LAYOUT;
    /// See [`Unknown`].
    pub const FROZEN: bool = T::FROZEN;
    /// See [`Unknown`].
    pub const FLAT: bool = T::FLAT;
    /// See [`Unknown`].
    pub const SAME_SHAPE: fn(&T, &T) -> bool = T::same_shape;
    /// See [`Unknown`].
    pub const COMPARE: fn(&T, &T) -> Result<(), Mismatch> = T::compare;
    /// See [`Unknown`].
    pub const FIT: fn(&T, &mut T) = T::fit;
    /// See [`Unknown`].
    pub const PLACES: NotePlaces<T> = T::places;
    /// See [`Unknown`].
    pub const SHARES_0: bool = T::SHARES_0;
    /// See [`Unknown`].
    pub const SHARES_1: bool = T::SHARES_1;
    /// See [`Unknown`].
    pub const SHARES_2: bool = T::SHARES_2;
    /// See [`Unknown`].
    pub const SHARES_3: bool = T::SHARES_3;
}

/// Types of the standard library with unknown layout but known ownership.
macro_rules! owners {
    ($([$($parameter:ident),*] $type:ty [$($owned:ident)*];)*) => {$(
        impl<$($parameter),*> Probe<$type> where $($owned: Differentiable),* {
            /// See [`Unknown`].
            pub const SHARES_0: bool = false;
            /// See [`Unknown`].
            pub const SHARES_1: bool = false $(|| $owned::SHARES_0)*;
            /// See [`Unknown`].
            pub const SHARES_2: bool = false $(|| $owned::SHARES_1)*;
            /// See [`Unknown`].
            pub const SHARES_3: bool = false $(|| $owned::SHARES_2)*;
        }
    )*};
}

owners! {
    [K, V, S] HashMap<K, V, S> [K V];
    [K, V] BTreeMap<K, V> [K V];
    [K, S] HashSet<K, S> [K];
    [K] BTreeSet<K> [K];
    [] PathBuf [];
    [] Duration [];
    [] Instant [];
}

/// Stops the compilation if a clone of an inactive field may share memory with the value.
pub const fn require_owned<T>(shares: bool) {
    // A type smaller than a pointer holds none.
    assert!(
        !shares || size_of::<T>() < size_of::<usize>(),
        "an inactive field must not share its memory with clones of it: a shadow has a clone, and derivatives would be added to the value itself. \
         Of this field's type it is not known that it does not: derive `Differentiable` for it if it is a type of yours, \
         say `#[differentiable(inactive, unshared)]` if clones have memory of their own, or pass this data as a `Const` argument"
    );
}

impl<T> Probe<T> {
    /// See [`Unknown`].
    pub const VARIANTS: fn(&T) -> u64 = |value| match is_described::<T>() {
        true => 0,
        false => variant_of(value),
    };
}

impl<T> Probe<[T]> {
    /// See [`Unknown`].
    pub const VARIANTS: fn(&[T]) -> u64 = variants_of::<T>;
}

impl<T> Probe<Vec<T>> {
    /// See [`Unknown`].
    pub const ELEMENT_VARIANTS: fn(&Vec<T>) -> u64 = |values| variants_of(values);
}

/// The variant of an enum as a number; the same for all values of any other type. Where the driver describes the type, variants are compared along with everything else.
fn variant_of<T>(value: &T) -> u64 {
    let variant: Discriminant<T> = discriminant(value);
    let bytes = size_of::<Discriminant<T>>().min(8);
    let mut number = 0;
    // SAFETY: the discriminant is an integer of this many bytes.
    unsafe {
        (&raw const variant)
            .cast::<u8>()
            .copy_to_nonoverlapping((&raw mut number).cast::<u8>(), bytes);
    }
    number
}

fn variants_of<T>(values: &[T]) -> u64 {
    if is_described::<T>() {
        return 0;
    }
    let together = |before: u64, value: &T| {
        let sum = before.wrapping_add(variant_of(value)).wrapping_add(1);
        sum.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    values.iter().fold(0, together)
}

/// Whether two trait objects may be of one type: whether they have the same size. Vtables are not compared, since a type may have several.
pub fn may_be_same_type<T: ?Sized>(value: &T, shadow: &T) -> bool {
    let is_object = std::any::type_name::<T>().starts_with("dyn ");
    !is_object
        || size_of_val(value) == size_of_val(shadow) && align_of_val(value) == align_of_val(shadow)
}

/// Whether trait objects behind pointers may be of the same types.
macro_rules! objects {
    ($($pointer:ty)*) => {$(
        impl<T: ?Sized> Probe<$pointer> {
            /// See [`Unknown`].
            pub const SAME_TYPES: fn(&$pointer, &$pointer) -> bool =
                |value, shadow| may_be_same_type::<T>(value, shadow);
        }

        impl<T: ?Sized> Probe<[$pointer]> {
            /// See [`Unknown`].
            pub const SAME_TYPES: fn(&[$pointer], &[$pointer]) -> bool = |values, shadows| {
                let mut pairs = values.iter().zip(shadows);
                pairs.all(|(value, shadow)| may_be_same_type::<T>(value, shadow))
            };
        }

        impl<T: ?Sized> Probe<Vec<$pointer>> {
            /// See [`Unknown`].
            pub const SAME_TYPES: fn(&Vec<$pointer>, &Vec<$pointer>) -> bool =
                |values, shadows| (Probe::<[$pointer]>::SAME_TYPES)(values, shadows);
        }
    )*};
}

objects! { Box<T> Rc<T> Arc<T> &T &mut T }

impl<T: Shadow<Shadow = T>> Probe<T> {
    /// See [`Unknown`].
    pub const SHADOW: Option<MakeShadow<T>> = Some(T::shadow);
}

impl<T: Copy> Probe<T> {
    /// See [`Unknown`].
    pub const COPY: bool = true;
}

impl<T: Copy> Probe<[T]> {
    /// See [`Unknown`].
    pub const SLICE_OF_COPY: bool = true;
}

// `RefUnwindSafe` is the only auto trait of stable Rust that finds cells through all fields and pointers.
impl<T: ?Sized + RefUnwindSafe> Probe<T> {
    /// See [`Unknown`].
    pub const HAS_NO_CELLS: bool = true;
}

impl<T: ?Sized + Unpin> Probe<T> {
    /// See [`Unknown`].
    pub const UNPIN: bool = true;
}

impl<T> Probe<[T]> {
    /// See [`Unknown`].
    pub const LENGTH: fn(&[T]) -> usize = <[T]>::len;
}

impl<T> Probe<Vec<T>> {
    /// See [`Unknown`].
    pub const LENGTH: fn(&Vec<T>) -> usize = Vec::len;
}

impl<T> Probe<VecDeque<T>> {
    /// See [`Unknown`].
    pub const LENGTH: fn(&VecDeque<T>) -> usize = VecDeque::len;
}
