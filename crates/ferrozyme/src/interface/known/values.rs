//! Scalars, and types composed of values: arrays, tuples, cells, options.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem::{MaybeUninit, offset_of};

use crate::interface::layout::has_pointer_or_unknown;
use crate::interface::unused::{bytes_of, clear_unused};
use crate::interface::{Differentiable, Field, Layout, Mismatch, Places};

macro_rules! scalars {
    ($($type:ty => $field:expr;)*) => {$(
        // SAFETY: a scalar is one field that covers all of it.
        unsafe impl Differentiable for $type {
            const LAYOUT: &'static Layout = &Layout::new::<$type>(const { &[$field] });
            const FROZEN: bool = true;
            const FLAT: bool = true;
            const SHARES_0: bool = false;
            const SHARES_1: bool = false;
            const SHARES_2: bool = false;
            const SHARES_3: bool = false;
        }
    )*};
}

scalars! {
    f32 => Field::f32(0);
    f64 => Field::f64(0);
    bool => Field::integer(0, 1);
    char => Field::integer(0, 4);
    i8 => Field::integer(0, 1);
    i16 => Field::integer(0, 2);
    i32 => Field::integer(0, 4);
    i64 => Field::integer(0, 8);
    i128 => Field::integer(0, 16);
    isize => Field::integer(0, size_of::<isize>());
    u8 => Field::integer(0, 1);
    u16 => Field::integer(0, 2);
    u32 => Field::integer(0, 4);
    u64 => Field::integer(0, 8);
    u128 => Field::integer(0, 16);
    usize => Field::integer(0, size_of::<usize>());
}

// SAFETY: a value without bytes has no fields.
unsafe impl<T: ?Sized> Differentiable for PhantomData<T> {
    const LAYOUT: &'static Layout = &Layout::new::<()>(&[]);
    const FROZEN: bool = true;
    const FLAT: bool = true;
    const SHARES_0: bool = false;
    const SHARES_1: bool = false;
    const SHARES_2: bool = false;
    const SHARES_3: bool = false;
}

// SAFETY: the layout of a slice is that of its elements.
unsafe impl<T: Differentiable> Differentiable for [T] {
    const LAYOUT: &'static Layout = T::LAYOUT;
    const ELEMENTS: &'static Layout = T::ELEMENTS;
    const ELEMENT_COUNT: usize = T::ELEMENT_COUNT;
    const FROZEN: bool = T::FROZEN;
    const FLAT: bool = false;
    const SHARES_0: bool = T::SHARES_0;
    const SHARES_1: bool = T::SHARES_1;
    const SHARES_2: bool = T::SHARES_2;
    const SHARES_3: bool = T::SHARES_3;

    #[inline]
    fn places(&self, places: &mut Places) {
        if const { has_pointer_or_unknown(T::LAYOUT) } {
            for (index, item) in self.iter().enumerate() {
                places.step(index, |places| item.places(places));
            }
        }
    }

    #[inline]
    fn same_shape(&self, shadow: &[T]) -> bool {
        self.len() == shadow.len()
            && (T::FLAT
                || self
                    .iter()
                    .zip(shadow)
                    .all(|(value, shadow)| value.same_shape(shadow)))
    }

    fn compare(&self, shadow: &[T]) -> Result<(), Mismatch> {
        Mismatch::lengths(self.len(), shadow.len())?;
        if T::FLAT {
            return Ok(());
        }
        for (index, (value, shadow)) in self.iter().zip(shadow).enumerate() {
            let step = |mismatch: Mismatch| mismatch.inside(format_args!("[{index}]"));
            value.compare(shadow).map_err(step)?;
        }
        Ok(())
    }

    fn fit(&self, shadow: &mut [T]) {
        if !T::FLAT {
            for (value, shadow) in self.iter().zip(shadow) {
                value.fit(shadow);
            }
        }
    }
}

// SAFETY: a string is bytes.
unsafe impl Differentiable for str {
    const LAYOUT: &'static Layout = u8::LAYOUT;
    const FROZEN: bool = true;
    // A string has no derivative, so its shadow may be any string.
    const FLAT: bool = true;
    const SHARES_0: bool = false;
    const SHARES_1: bool = false;
    const SHARES_2: bool = false;
    const SHARES_3: bool = false;
}

// SAFETY: an array is its elements one after the other.
unsafe impl<T: Differentiable, const N: usize> Differentiable for [T; N] {
    const LAYOUT: &'static Layout =
        &Layout::new::<[T; N]>(const { &[Field::nested(0, T::LAYOUT, N)] });
    const ELEMENTS: &'static Layout = T::ELEMENTS;
    const ELEMENT_COUNT: usize = N * T::ELEMENT_COUNT;
    const FROZEN: bool = T::FROZEN;
    const FLAT: bool = T::FLAT;
    const SHARES_0: bool = T::SHARES_0;
    const SHARES_1: bool = T::SHARES_1;
    const SHARES_2: bool = T::SHARES_2;
    const SHARES_3: bool = T::SHARES_3;

    #[inline]
    fn places(&self, places: &mut Places) {
        places.inside(Self::LAYOUT, |places| self[..].places(places));
    }

    #[inline]
    fn same_shape(&self, shadow: &[T; N]) -> bool {
        T::FLAT || self[..].same_shape(&shadow[..])
    }

    fn compare(&self, shadow: &[T; N]) -> Result<(), Mismatch> {
        self[..].compare(&shadow[..])
    }

    fn fit(&self, shadow: &mut [T; N]) {
        self[..].fit(&mut shadow[..]);
    }
}

macro_rules! tuples {
    ($(($($type:ident $index:tt),*))*) => {$(
        // SAFETY: `offset_of` says where each field is.
        unsafe impl<$($type: Differentiable),*> Differentiable for ($($type,)*) {
            const LAYOUT: &'static Layout = &Layout::new::<($($type,)*)>(const {
                &[$(Field::nested(offset_of!(Self, $index), $type::LAYOUT, 1)),*]
            });
            const FROZEN: bool = true $(&& $type::FROZEN)*;
            const FLAT: bool = true $(&& $type::FLAT)*;
            const SHARES_0: bool = false $(|| $type::SHARES_0)*;
            const SHARES_1: bool = false $(|| $type::SHARES_1)*;
            const SHARES_2: bool = false $(|| $type::SHARES_2)*;
            const SHARES_3: bool = false $(|| $type::SHARES_3)*;

            #[inline]
            fn places(&self, _places: &mut Places) {
                _places.inside(Self::LAYOUT, |_places| {
                    $(_places.step($index, |places| self.$index.places(places));)*
                });
            }

            #[inline]
            fn same_shape(&self, _shadow: &Self) -> bool {
                true $(&& self.$index.same_shape(&_shadow.$index))*
            }

            fn compare(&self, _shadow: &Self) -> Result<(), Mismatch> {
                $(
                    let step = |mismatch: Mismatch| mismatch.inside(concat!(".", $index));
                    self.$index.compare(&_shadow.$index).map_err(step)?;
                )*
                Ok(())
            }

            fn fit(&self, _shadow: &mut Self) {
                $(self.$index.fit(&mut _shadow.$index);)*
            }
        }
    )*};
}

crate::for_each_tuple!(tuples);

/// The contents of a cell, for as long as they are borrowed.
///
/// Only code of this crate looks, or code that it derives, and does not get at the cell by another way.
macro_rules! content {
    ($cell:expr) => {
        // SAFETY: see above: nothing changes the contents of the cell meanwhile.
        unsafe { &*$cell.as_ptr() }
    };
}

macro_rules! cells {
    ($($type:ident { $($items:tt)* })*) => {$(
        // SAFETY: each says itself why its layout is right.
        unsafe impl<T: Differentiable> Differentiable for $type<T> {
            $($items)*
            const FROZEN: bool = false;
            const FLAT: bool = T::FLAT;
            const SHARES_0: bool = T::SHARES_0;
            const SHARES_1: bool = T::SHARES_1;
            const SHARES_2: bool = T::SHARES_2;
            const SHARES_3: bool = T::SHARES_3;

            #[inline]
            fn same_shape(&self, shadow: &$type<T>) -> bool {
                T::FLAT || content!(self).same_shape(content!(shadow))
            }

            fn compare(&self, shadow: &$type<T>) -> Result<(), Mismatch> {
                content!(self).compare(content!(shadow))
            }

            fn fit(&self, shadow: &mut $type<T>) {
                content!(self).fit(shadow.get_mut());
            }

            #[inline]
            fn places(&self, places: &mut Places) {
                content!(self).places(places);
            }
        }
    )*};
}

cells! {
    // A cell has the representation of its contents.
    Cell {
        const LAYOUT: &'static Layout = T::LAYOUT;
        const ELEMENTS: &'static Layout = T::ELEMENTS;
        const ELEMENT_COUNT: usize = T::ELEMENT_COUNT;
    }
    // The layout says nothing of the bytes: beside the value there is a borrow count.
    RefCell {
        const LAYOUT: &'static Layout =
            &Layout::new::<RefCell<T>>(const { &[Field::unknown(0, size_of::<RefCell<T>>())] });
    }
}

// SAFETY: see `option_fields`.
unsafe impl<T: Differentiable> Differentiable for Option<T> {
    const LAYOUT: &'static Layout = &Layout::new::<Option<T>>(
        const {
            let (fields, count) = (const { &option_fields::<T>() }, option_field_count::<T>());
            fields.split_at(count).0
        },
    );
    const FROZEN: bool = T::FROZEN;
    const FLAT: bool = false;
    const SHARES_0: bool = T::SHARES_0;
    const SHARES_1: bool = T::SHARES_1;
    const SHARES_2: bool = T::SHARES_2;
    const SHARES_3: bool = T::SHARES_3;

    #[inline]
    fn places(&self, places: &mut Places) {
        if let Some(value) = self {
            value.places(places);
        }
    }

    #[inline]
    fn same_shape(&self, shadow: &Option<T>) -> bool {
        match (self, shadow) {
            (Some(value), Some(shadow)) => value.same_shape(shadow),
            (None, None) => true,
            _ => false,
        }
    }

    fn compare(&self, shadow: &Option<T>) -> Result<(), Mismatch> {
        match (self, shadow) {
            (Some(value), Some(shadow)) => value.compare(shadow),
            (None, None) => Ok(()),
            (Some(_), None) => Err(Mismatch::new("Some", "None")),
            (None, Some(_)) => Err(Mismatch::new("None", "Some")),
        }
    }

    fn fit(&self, shadow: &mut Option<T>) {
        match (self, &mut *shadow) {
            (Some(value), Some(shadow)) => value.fit(shadow),
            _ => clear_unused(shadow, &[]),
        }
    }
}

// SAFETY: nothing is said of the bytes. Stable Rust does not tell where the fields of an enum are.
unsafe impl<T: Differentiable, E: Differentiable> Differentiable for Result<T, E> {
    const LAYOUT: &'static Layout =
        &Layout::new::<Result<T, E>>(const { &[Field::unknown(0, size_of::<Result<T, E>>())] });
    const FROZEN: bool = T::FROZEN && E::FROZEN;
    const FLAT: bool = false;
    const SHARES_0: bool = T::SHARES_0 || E::SHARES_0;
    const SHARES_1: bool = T::SHARES_1 || E::SHARES_1;
    const SHARES_2: bool = T::SHARES_2 || E::SHARES_2;
    const SHARES_3: bool = T::SHARES_3 || E::SHARES_3;

    #[inline]
    fn places(&self, places: &mut Places) {
        match self {
            Ok(value) => places.step(0, |places| value.places(places)),
            Err(error) => places.step(1, |places| error.places(places)),
        }
    }

    #[inline]
    fn same_shape(&self, shadow: &Result<T, E>) -> bool {
        match (self, shadow) {
            (Ok(value), Ok(shadow)) => value.same_shape(shadow),
            (Err(error), Err(shadow)) => error.same_shape(shadow),
            _ => false,
        }
    }

    fn compare(&self, shadow: &Result<T, E>) -> Result<(), Mismatch> {
        match (self, shadow) {
            (Ok(value), Ok(shadow)) => value.compare(shadow),
            (Err(error), Err(shadow)) => error.compare(shadow),
            (Ok(_), Err(_)) => Err(Mismatch::new("Ok", "Err")),
            (Err(_), Ok(_)) => Err(Mismatch::new("Err", "Ok")),
        }
    }

    fn fit(&self, shadow: &mut Result<T, E>) {
        let used = match (self, &mut *shadow) {
            (Ok(value), Ok(shadow)) => {
                value.fit(shadow);
                bytes_of(shadow)
            }
            (Err(error), Err(shadow)) => {
                error.fit(shadow);
                bytes_of(shadow)
            }
            _ => return,
        };
        clear_unused(shadow, &[used]);
    }
}

/// An option that is no larger than its value is its value, with one of the bit patterns that are none of it for `None`. Otherwise it is an
/// integer that tells, and the value behind it, where the value is in an option of the same size and alignment.
const fn option_fields<T: Differentiable>() -> [Field; 2] {
    if size_of::<Option<T>>() == size_of::<T>() {
        return [Field::nested(0, T::LAYOUT, 1); 2];
    }
    let offset = option_offset::<T>();
    match offset.is_power_of_two() && offset <= 16 {
        true => [
            Field::integer(0, offset),
            Field::nested(offset, T::LAYOUT, 1),
        ],
        false => [Field::unknown(0, size_of::<Option<T>>()); 2],
    }
}

const fn option_field_count<T: Differentiable>() -> usize {
    let told_apart = size_of::<Option<T>>() != size_of::<T>();
    let offset = option_offset::<T>();
    match told_apart && offset.is_power_of_two() && offset <= 16 {
        true => 2,
        false => 1,
    }
}

/// Where the value is in an option that is larger than its value: nothing can be put into the value's bytes, as into
/// those of `MaybeUninit`, so that both lie alike.
const fn option_offset<T>() -> usize {
    if size_of::<Option<T>>() != size_of::<Option<MaybeUninit<T>>>() {
        return 0;
    }
    let option = Some(MaybeUninit::<T>::uninit());
    let start = (&raw const option).cast::<u8>();
    match &option {
        // SAFETY: both pointers point into the option.
        Some(value) => unsafe { (&raw const *value).cast::<u8>().offset_from(start) as usize },
        None => 0,
    }
}
