//! References, raw pointers, and smart pointers that are one pointer.

use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

use crate::interface::layout::is_discrete;
use crate::interface::{Differentiable, Field, Layout, Mismatch, Places};

/// The fields of a pointer to `T`: its address, followed by the length if `T` is a slice.
const fn pointer_fields<T: ?Sized + Differentiable>() -> [Field; 2] {
    [
        Field::pointer::<T>(0),
        Field::integer(size_of::<usize>(), size_of::<usize>()),
    ]
}

macro_rules! pointers {
    ($($type:ty { $($methods:tt)* })*) => {$(
        // SAFETY: a pointer to a sized type is its address; a pointer to a slice is its address and its length. Other
        // unsized types do not have the trait.
        unsafe impl<T: ?Sized + Differentiable> Differentiable for $type {
            const LAYOUT: &'static Layout = &Layout {
                size: size_of::<$type>(),
                fields: const { &pointer_fields::<T>() }.as_ptr(),
                field_count: size_of::<$type>() / size_of::<usize>(),
            };
            const FROZEN: bool = true;
            $($methods)*
        }
    )*};
}

pointers! {
    &T {
        const FLAT: bool = T::FLAT;
        // Shared integers and strings have no derivative, so sharing them is harmless.
        const SHARES_0: bool = !is_discrete(T::LAYOUT);
        const SHARES_1: bool = !is_discrete(T::LAYOUT);
        const SHARES_2: bool = !is_discrete(T::LAYOUT);
        const SHARES_3: bool = !is_discrete(T::LAYOUT);
        #[inline]
        fn places(&self, places: &mut Places) {
            places.pointee::<T>(self);
        }
        #[inline]
        fn same_shape(&self, shadow: &Self) -> bool {
            T::same_shape(self, shadow)
        }
        fn compare(&self, shadow: &Self) -> Result<(), Mismatch> {
            T::compare(self, shadow)
        }
    }
    &mut T {
        const FLAT: bool = T::FLAT;
        #[inline]
        fn places(&self, places: &mut Places) {
            places.pointee::<T>(self);
        }
        #[inline]
        fn same_shape(&self, shadow: &Self) -> bool {
            T::same_shape(self, shadow)
        }
        fn compare(&self, shadow: &Self) -> Result<(), Mismatch> {
            T::compare(self, shadow)
        }
        fn fit(&self, shadow: &mut Self) {
            T::fit(self, shadow);
        }
    }
    Box<T> {
        const FLAT: bool = T::FLAT;
        const SHARES_0: bool = false;
        const SHARES_1: bool = T::SHARES_0;
        const SHARES_2: bool = T::SHARES_1;
        const SHARES_3: bool = T::SHARES_2;
        #[inline]
        fn places(&self, places: &mut Places) {
            places.pointee::<T>(self);
        }
        #[inline]
        fn same_shape(&self, shadow: &Self) -> bool {
            T::same_shape(self, shadow)
        }
        fn compare(&self, shadow: &Self) -> Result<(), Mismatch> {
            T::compare(self, shadow)
        }
        fn fit(&self, shadow: &mut Self) {
            T::fit(self, shadow);
        }
    }
    // The memory behind these is the caller's responsibility.
    *const T { const FLAT: bool = true; }
    *mut T { const FLAT: bool = true; }
    NonNull<T> { const FLAT: bool = true; }
}

macro_rules! counted {
    ($($type:ident)*) => {$(
        // SAFETY: a counted pointer is a pointer to the counts and the value, whose order is not known.
        unsafe impl<T: Differentiable> Differentiable for $type<T> {
            const LAYOUT: &'static Layout = &Layout::new::<$type<T>>(const { &[Field::opaque_pointer(0)] });
            const FROZEN: bool = true;
            const FLAT: bool = T::FLAT;
            const SHARES_0: bool = !is_discrete(T::LAYOUT);
            const SHARES_1: bool = !is_discrete(T::LAYOUT);
            const SHARES_2: bool = !is_discrete(T::LAYOUT);
            const SHARES_3: bool = !is_discrete(T::LAYOUT);

            #[inline]
            fn same_shape(&self, shadow: &Self) -> bool {
                T::same_shape(self, shadow)
            }

            fn compare(&self, shadow: &Self) -> Result<(), Mismatch> {
                T::compare(self, shadow)
            }

            fn fit(&self, shadow: &mut Self) {
                // SAFETY: the shadow is not accessed elsewhere while a derivative runs, and nothing of it is removed or moved here.
                T::fit(self, unsafe { &mut *$type::as_ptr(shadow).cast_mut() });
            }

            #[inline]
            fn places(&self, places: &mut Places) {
                places.pointee::<T>(self);
            }
        }
    )*};
}

counted! { Rc Arc }
