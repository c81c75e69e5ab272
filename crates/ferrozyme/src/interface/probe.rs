//! Finds out at compile time what is known of a type, without asking for a bound.
//!
//! An associated constant of an inherent implementation goes before one of a trait, but counts only where its bounds
//! hold. So `Probe::<T>::LAYOUT` is the layout where `T` has one, and the trait's null everywhere else, also in generic
//! code. It has to be written out where `T` is known: behind a generic parameter only that parameter's bounds count.

use std::marker::PhantomData;
use std::ptr::null;

use super::{Differentiable, Layout, SHARED, UNIQUE};

/// Ask as `Probe::<T>::LAYOUT` with [`Unknown`] in scope.
pub struct Probe<T: ?Sized>(PhantomData<T>);

/// The answers where nothing is known.
pub trait Unknown {
    /// The layout of the type's bytes: unknown.
    const LAYOUT: *const Layout = null();
    /// The flags of a shared reference to the type.
    const SHARED: u64 = 0;
    /// The flags of a unique reference to the type.
    const UNIQUE: u64 = 0;
}

impl<T: ?Sized> Unknown for Probe<T> {}

impl<T: ?Sized + Differentiable> Probe<T> {
    /// The layout of the type's bytes.
    pub const LAYOUT: *const Layout = T::LAYOUT;
}

// What is `Copy` holds no `UnsafeCell`, because that is not `Copy`.
impl<T: Copy> Probe<T> {
    /// The flags of a shared reference to the type.
    pub const SHARED: u64 = SHARED;
}

impl<T: ?Sized + Unpin> Probe<T> {
    /// The flags of a unique reference to the type.
    pub const UNIQUE: u64 = UNIQUE;
}
