//! What lies where in a type's bytes: floats, integers, pointers to what.
//!
//! The driver reads these constants through the descriptor of a request. [`Layout`] and [`Field`] are `repr(C)`, and are part of the
//! interface between this crate and the driver.

use std::ptr::null;

/// The bytes of one element of a type.
#[repr(C)]
pub struct Layout {
    /// Size of the element, and the distance to the next one in an array.
    pub size: usize,
    /// The first of the fields.
    pub fields: *const Field,
    /// How many fields there are.
    pub field_count: usize,
}

impl Layout {
    /// The layout of the type that has these fields.
    pub const fn new<T>(fields: &'static [Field]) -> Layout {
        Layout {
            size: size_of::<T>(),
            fields: fields.as_ptr(),
            field_count: fields.len(),
        }
    }
}

/// A run of equal elements in a layout.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Field {
    /// Where the first element is.
    pub offset: usize,
    /// 0 unknown bytes, 1 integer, 2 f32, 3 f64, 4 pointer, 5 nested layout, 6 f16.
    pub kind: u32,
    /// Size of one element, for unknown bytes and integers.
    pub bytes: u32,
    /// How many elements.
    pub count: usize,
    /// Distance from one to the next.
    pub stride: usize,
    /// The layout of an element, for nested layouts.
    pub nested: *const Layout,
    /// What a pointer points to: an array of that layout. A function, so that types can be recursive.
    pub pointee: Option<extern "C" fn() -> *const Layout>,
}

impl Field {
    const fn plain(offset: usize, kind: u32, bytes: usize) -> Field {
        Field {
            offset,
            kind,
            bytes: bytes as u32,
            count: 1,
            stride: bytes,
            nested: null(),
            pointee: None,
        }
    }

    /// Bytes of which nothing is known.
    pub const fn unknown(offset: usize, bytes: usize) -> Field {
        Field::plain(offset, 0, bytes)
    }

    /// An integer, a truth value or a character.
    pub const fn integer(offset: usize, bytes: usize) -> Field {
        Field::plain(offset, 1, bytes)
    }

    /// An `f32`.
    pub const fn f32(offset: usize) -> Field {
        Field::plain(offset, 2, 4)
    }

    /// An `f64`.
    pub const fn f64(offset: usize) -> Field {
        Field::plain(offset, 3, 8)
    }

    /// A pointer to elements of a known layout.
    pub const fn pointer<T: ?Sized + Differentiable>(offset: usize) -> Field {
        Field {
            pointee: Some(layout_of::<T>),
            ..Field::plain(offset, 4, size_of::<usize>())
        }
    }

    /// So many elements of a nested layout, one after the other.
    pub const fn nested(offset: usize, layout: &'static Layout, count: usize) -> Field {
        Field {
            offset,
            kind: 5,
            bytes: layout.size as u32,
            count,
            stride: layout.size,
            nested: layout,
            pointee: None,
        }
    }
}

/// The layout of a type, as a function.
pub extern "C" fn layout_of<T: ?Sized + Differentiable>() -> *const Layout {
    T::LAYOUT
}

/// A type that Ferrozyme knows the inside of.
///
/// # Safety
/// `LAYOUT` must describe the bytes of the type truly: derivatives are computed from it.
pub unsafe trait Differentiable {
    /// What lies where in the type's bytes; for a slice, in those of one element.
    #[doc(hidden)]
    const LAYOUT: &'static Layout;
}

macro_rules! scalar {
    ($($type:ty => $field:expr;)*) => {$(
        // SAFETY: a scalar is one field that covers all of it.
        unsafe impl Differentiable for $type {
            const LAYOUT: &'static Layout = &Layout::new::<$type>(&[$field]);
        }
    )*};
}

scalar! {
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

// SAFETY: the layout of a slice is that of its elements.
unsafe impl<T: Differentiable> Differentiable for [T] {
    const LAYOUT: &'static Layout = T::LAYOUT;
}

/// The fields of a pointer to `T`: its address, and behind it the length if `T` is a slice.
const fn pointer_fields<T: ?Sized + Differentiable>() -> [Field; 2] {
    [
        Field::pointer::<T>(0),
        Field::integer(size_of::<usize>(), size_of::<usize>()),
    ]
}

macro_rules! pointer {
    ($($type:ty;)*) => {$(
        // SAFETY: a pointer to a sized type is its address; a pointer to a slice is 16 bytes of address and length.
        unsafe impl<T: ?Sized + Differentiable> Differentiable for $type {
            const LAYOUT: &'static Layout = &Layout {
                size: size_of::<$type>(),
                fields: const { &pointer_fields::<T>() }.as_ptr(),
                field_count: size_of::<$type>() / size_of::<usize>(),
            };
        }
    )*};
}

pointer! {
    &T;
    &mut T;
    *const T;
    *mut T;
}
