//! The interface of generated code: requests to the driver, layouts, and checks of shapes.
//!
//! Not for direct use: it changes with the driver. All of the crate's unsafe code is below this module, since it serves one
//! purpose: a request is a call of a foreign function, slots are loaded and stored through raw
//! pointers, and a layout is a promise about bytes.

#![allow(unsafe_code)]

mod described;
mod differentiable;
mod known;
mod layout;
mod moves;
mod places;
mod probe;
mod products;
mod registration;
mod request;
mod restore;
mod shape;
#[cfg(feature = "rayon")]
mod threads;
mod unused;

pub use std::ffi::c_void;
pub use std::mem::{ManuallyDrop, MaybeUninit, needs_drop, offset_of};
pub use std::ptr::{null, read, write};

pub use differentiable::{Differentiable, Mismatch};
pub(crate) use known::empty_like;
pub use layout::{Field, Layout};
pub use places::Places;
pub use probe::{MakeShadow, NotePlaces, Probe, Unknown, may_be_same_type, require_owned};
pub use registration::{
    __ferrozyme_inactive, __ferrozyme_inactive_reading, NEVER, Registration, cell, cells, keep,
    never_returns, slice, slice_mut, take,
};
pub use request::{
    __ferrozyme_request, __ferrozyme_request_accelerated, Descriptor, Slot, Text, require_driver,
    require_frozen, shared_flag, start_gradient, start_of, unique_flag,
};
pub use restore::Restore;
pub use shape::{
    Comparison, Names, Noted, check_apart, check_changes, check_lanes, check_seed, check_shape,
    lane, lane_mut, note_changes,
};
pub use unused::{bytes_of, clear_unused};
