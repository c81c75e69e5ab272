//! What generated code uses: the request to the driver, layouts, and checks of shapes.
//!
//! Not for use by hand: it changes with the driver. All of the crate's unsafe code stands below this module, because
//! it is about one thing: the request is a call of a foreign function, slots are read and written through raw
//! pointers, and a layout is a promise about bytes.

#![allow(unsafe_code)]

mod layout;
mod probe;
mod request;

pub use std::ffi::c_void;
pub use std::mem::{ManuallyDrop, MaybeUninit, needs_drop};
pub use std::ptr::{read, write};

pub use layout::{Field, Layout, layout_of};
pub use probe::{Probe, Unknown};
pub use request::{__ferrozyme_request, Descriptor, SHARED, Slot, Text, UNIQUE, require_driver};

pub use layout::Differentiable;
