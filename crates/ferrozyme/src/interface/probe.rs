//! Finds out at compile time what is known of a type, without asking for a bound.
//!
//! An associated constant of an inherent implementation goes before one of a trait, but counts only where its bounds
//! hold. So `Probe::<T>::LAYOUT` is the layout where `T` has one, and the trait's null everywhere else, also in generic
//! code. It has to be written out where `T` is known: behind a generic parameter only that parameter's bounds count.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::panic::RefUnwindSafe;
use std::ptr::null;

use super::{Differentiable, Layout, Mismatch};
use crate::Shadow;

/// Ask as `Probe::<T>::LAYOUT`, with [`Unknown`] in scope.
pub struct Probe<T: ?Sized>(PhantomData<T>);

/// Makes a shadow of the same type.
pub type MakeShadow<T> = fn(&T) -> T;

/// The answers where nothing is known.
pub trait Unknown {
    /// What is asked about.
    type Target: ?Sized;
    /// The layout of the type's bytes, null if it is not known.
    const LAYOUT: *const Layout = null();
    /// Whether nothing in the value itself can change behind a shared reference.
    const FROZEN: bool = false;
    /// Whether it is `Copy`, which nothing with interior mutability is.
    const COPY: bool = false;
    /// Whether it is a slice of `Copy` elements.
    const SLICE_OF_COPY: bool = false;
    /// Whether there is no cell in it, nor in anything that it owns or refers to. Locks and atomics do not count as such.
    const HAS_NO_CELLS: bool = false;
    /// Whether a unique reference to it is the only way to it.
    const UNPIN: bool = false;
    /// Whether there is nothing to compare.
    const FLAT: bool = true;
    /// Whether a shadow has the shape of a value.
    const SAME_SHAPE: fn(&Self::Target, &Self::Target) -> bool = |_, _| true;
    /// Finds out where a shadow differs from a value in shape.
    const COMPARE: fn(&Self::Target, &Self::Target) -> Result<(), Mismatch> = |_, _| Ok(());
    /// Makes a shadow fit for a function that changes the value.
    const FIT: fn(&Self::Target, &mut Self::Target) = |_, _| {};
    /// Makes a value of the same shape out of zeros.
    const SHADOW: Option<MakeShadow<Self::Target>> = None;
    /// The length of a slice or vector, even if nothing is known of its elements; 0 for everything else.
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
}

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

// The one automatic trait of stable Rust that looks for cells through all fields and pointers.
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
