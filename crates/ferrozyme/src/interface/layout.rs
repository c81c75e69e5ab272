//! Layouts: which bytes of a type are floats, integers or pointers, and what the pointers point to.
//!
//! The driver reads these constants through the descriptor of a request. [`Layout`] and [`Field`] are `repr(C)`, and
//! are part of the interface between this crate and the driver.

use std::ptr::null;

use super::{Differentiable, start_of};

/// The bytes of one element of a type. Bytes that no field covers are padding.
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
            fields: start_of(fields),
            field_count: fields.len(),
        }
    }
}

/// Whether a value of a type can be a gradient, according to its layout: it consists of floats, and all other bytes may be zero.
pub(super) const fn can_be_gradient(layout: *const Layout) -> bool {
    layout.is_null() || !has_pointer(layout) && has_float(layout)
}

/// Whether there may be pointers in a value itself.
pub(super) const fn has_pointer_or_unknown(layout: *const Layout) -> bool {
    // SAFETY: layouts are constants.
    let layout = unsafe { &*layout };
    let mut index = 0;
    while index < layout.field_count {
        // SAFETY: a layout points to as many fields as it says.
        let field = unsafe { &*layout.fields.add(index) };
        let here = matches!(field.kind, 0 | 4);
        if here || field.kind == 5 && has_pointer_or_unknown(field.nested) {
            return true;
        }
        index += 1;
    }
    false
}

/// Whether values of a layout consist of integers and booleans only.
pub(super) const fn is_discrete(layout: *const Layout) -> bool {
    !has_float(layout) && !has_pointer_or_unknown(layout)
}

/// Whether there may be floats in values of a layout, or in memory that they point to.
pub(super) fn reaches_floats(layout: *const Layout) -> bool {
    fn search(layout: *const Layout, depth: u32) -> bool {
        if depth == 0 || has_float(layout) {
            return true;
        }
        // SAFETY: layouts are constants.
        let layout = unsafe { &*layout };
        (0..layout.field_count).any(|index| {
            // SAFETY: a layout points to as many fields as it says.
            let field = unsafe { &*layout.fields.add(index) };
            match (field.kind, field.pointee) {
                (4, Some(pointee)) => search(pointee(), depth - 1),
                (4, None) => true,
                (5, _) => search(field.nested, depth),
                _ => false,
            }
        })
    }
    // Undecided types count as floats.
    search(layout, 6)
}

const fn has_pointer(layout: *const Layout) -> bool {
    // SAFETY: layouts are constants.
    let layout = unsafe { &*layout };
    let mut index = 0;
    while index < layout.field_count {
        // SAFETY: a layout points to as many fields as it says.
        let field = unsafe { &*layout.fields.add(index) };
        if field.kind == 4 || field.kind == 5 && has_pointer(field.nested) {
            return true;
        }
        index += 1;
    }
    false
}

/// Unknown bytes may be floats.
pub(super) const fn has_float(layout: *const Layout) -> bool {
    // SAFETY: layouts are constants.
    let layout = unsafe { &*layout };
    let mut index = 0;
    while index < layout.field_count {
        // SAFETY: a layout points to as many fields as it says.
        let field = unsafe { &*layout.fields.add(index) };
        if matches!(field.kind, 0 | 2 | 3 | 6) || field.kind == 5 && has_float(field.nested) {
            return true;
        }
        index += 1;
    }
    false
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
    /// Distance from one to the next. Of a pointer: how many elements of the layout that it points to one value is, or one element of a slice. That is more than one for arrays.
    pub stride: usize,
    /// The layout of an element, for nested layouts.
    pub nested: *const Layout,
    /// The layout of the array that a pointer points to. A function, so that types can be recursive.
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

    /// Bytes of unknown type.
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
            pointee: Some(elements_of::<T>),
            stride: T::ELEMENT_COUNT,
            ..Field::plain(offset, 4, size_of::<usize>())
        }
    }

    /// A pointer to something unknown.
    pub const fn opaque_pointer(offset: usize) -> Field {
        Field::plain(offset, 4, size_of::<usize>())
    }

    /// A number of consecutive elements of a nested layout.
    pub const fn nested(offset: usize, layout: &'static Layout, count: usize) -> Field {
        Field {
            nested: layout,
            count,
            ..Field::plain(offset, 5, layout.size)
        }
    }

    /// A field of type `T` of a structure: nested if its layout is known, else unknown bytes.
    pub const fn of<T>(offset: usize, layout: *const Layout) -> Field {
        match layout.is_null() {
            true => Field::unknown(offset, size_of::<T>()),
            false => Field {
                nested: layout,
                ..Field::plain(offset, 5, size_of::<T>())
            },
        }
    }
}

/// The layout of the elements that a pointer to `T` points to. Inlined, so that each module with a descriptor has a copy that the driver can read.
#[inline(always)]
extern "C" fn elements_of<T: ?Sized + Differentiable>() -> *const Layout {
    T::ELEMENTS
}
