//! The request that the driver finds at link time, and its descriptor.
//!
//! A generated derivative puts every argument, shadow and result into a slot of its own and calls
//! [`__ferrozyme_request`] with the primal and a constant [`Descriptor`]. The driver reads both from the constants in
//! the bitcode and replaces the call. The layout of every type here is therefore part of the interface between this
//! crate and the driver, and `magic` carries its version.

use std::mem::{MaybeUninit, needs_drop};
use std::ptr::null;

use super::Layout;
use super::layout::can_be_gradient;
use super::probe::MakeShadow;

/// Describes a requested derivative. Constant, and read by the driver.
#[repr(C)]
pub struct Descriptor {
    /// Tells a descriptor from other constants, and its version.
    pub magic: [u8; 8],
    /// 0 forward, 1 reverse, [`Descriptor::ITSELF`].
    pub mode: u32,
    /// The width: number of directions or gradients.
    pub width: u32,
    /// Line of the attribute or call.
    pub line: u32,
    /// Column of the attribute or call.
    pub column: u32,
    /// Source file of the attribute or call.
    pub file: Text,
    /// Path of the primal, for messages.
    pub primal: Text,
    /// Name of the derivative, for messages.
    pub derivative: Text,
    /// The first of the slots.
    pub slots: *const Slot,
    /// How many slots there are.
    pub slot_count: usize,
}

impl Descriptor {
    /// The value of `magic`.
    pub const MAGIC: [u8; 8] = *b"FZREQ003";

    /// The mode of a request for the function itself, without a derivative.
    pub const ITSELF: u32 = 2;
}

/// A string in a constant.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text {
    /// First byte, UTF-8.
    pub start: *const u8,
    /// How many bytes.
    pub length: usize,
}

impl Text {
    /// The text of a string that lives for ever.
    pub const fn new(text: &'static str) -> Text {
        Text {
            start: start_of(text.as_bytes()),
            length: text.len(),
        }
    }
}

/// The start of a list. An empty list has a null pointer, so that the constant holds no dangling address.
pub const fn start_of<T>(list: &'static [T]) -> *const T {
    match list {
        [] => null(),
        _ => list.as_ptr(),
    }
}

/// One argument or the result.
#[repr(C)]
pub struct Slot {
    /// 0 argument, 1 result.
    pub role: u32,
    /// 0 Const, 1 Active, 2 ActiveOnly, 3 Duplicated, 4 DuplicatedOnly, 5 Dual, 6 DualOnly.
    pub activity: u32,
    /// Size of the slot's type.
    pub size: usize,
    /// Alignment of the slot's type.
    pub align: usize,
    /// Bit 0: a shared reference to memory without interior mutability; bit 1: a unique reference to an `Unpin` type.
    pub flags: u64,
    /// Name of the argument.
    pub name: Text,
    /// Layout of the slot's bytes, null if unknown.
    pub layout: *const Layout,
}

/// The flags of a shared reference: bit 0 if its target has no interior mutability.
pub const fn shared_flag(frozen: bool) -> u64 {
    frozen as u64
}

/// The flags of a unique reference: bit 1 if its target is `Unpin`.
pub const fn unique_flag(unpin: bool) -> u64 {
    (unpin as u64) << 1
}

impl Slot {
    /// The slot of an argument of type `T`.
    pub const fn argument<T>(
        name: &'static str,
        activity: u32,
        flags: u64,
        layout: *const Layout,
        shadow: Option<MakeShadow<T>>,
    ) -> Slot {
        require_gradient::<T>(activity, layout);
        require_start::<T>(activity, shadow.is_some());
        Slot {
            role: 0,
            activity,
            size: size_of::<T>(),
            align: align_of::<T>(),
            flags,
            name: Text::new(name),
            layout,
        }
    }

    /// The slot of a result of type `T`.
    pub const fn result<T>(activity: u32, layout: *const Layout) -> Slot {
        require_gradient::<T>(activity, layout);
        Slot {
            role: 1,
            activity,
            size: size_of::<T>(),
            align: align_of::<T>(),
            flags: 0,
            name: Text::new("result"),
            layout,
        }
    }
}

/// Gradients of active arguments and seeds of active results are values of their types; types that own or refer to memory cannot be `Active`.
const fn require_gradient<T>(activity: u32, layout: *const Layout) {
    let active = activity == 1 || activity == 2;
    assert!(
        !active || !needs_drop::<T>() && can_be_gradient(layout),
        "Active can not be used for this type: only floats, and arrays, tuples and structs of floats, have a gradient that can be returned"
    );
}

/// The gradient of an active argument starts from a shadow of the argument if one can be made, else from zeros. All-zero bytes are a valid value of every type for which all
/// bit patterns are valid, that is, without a niche for another variant.
const fn require_start<T>(activity: u32, has_shadow: bool) {
    assert!(
        activity != 1 || has_shadow || size_of::<Option<T>>() > size_of::<T>(),
        "Active can not be used for this type: its gradient starts from zero bytes, which may not be a valid value. Derive `Differentiable` for it"
    );
}

/// The initial gradient of an active argument: zeros, in the shape of the argument.
#[inline]
pub fn start_gradient<T>(
    shadow: Option<MakeShadow<T>>,
    fit: fn(&T, &mut T),
    argument: &T,
) -> MaybeUninit<T> {
    let mut gradient = MaybeUninit::zeroed();
    if let Some(shadow) = shadow {
        // The function may change an argument that it owns.
        fit(argument, gradient.write(shadow(argument)));
    }
    gradient
}

/// Reverse mode with a width runs the function once per lane, and only memory behind `&mut` is restored in between.
pub const fn require_frozen(frozen: bool) {
    assert!(
        frozen,
        "reverse mode with a width can not be used with this reference: the function runs once for each lane, and could change what is behind it each time. \
         Derive `Differentiable` for the type if it has no `Cell` or the like in it; else ask for one lane after the other"
    );
}

// The symbol's name carries the message, for cases that `require_driver` misses: linkers print the names of
// undefined symbols.
unsafe extern "C-unwind" {
    /// Replaced by the driver with a call of the derivative. Arguments: the primal's shim, the descriptor, then for each
    /// slot a pointer to its value and pointers to its shadows.
    #[cfg_attr(
        not(ferrozyme),
        link_name = "__ferrozyme_request (derivatives are made by Ferrozyme's driver: use `cargo ferrozyme build` in place of `cargo build`)"
    )]
    pub fn __ferrozyme_request(primal: *const (), descriptor: *const Descriptor, ...);
}

unsafe extern "C" {
    /// Whether an accelerated function calls what the driver makes of it. The driver replaces it: by true in the program, by false in what is compiled or differentiated.
    pub fn __ferrozyme_request_accelerated() -> bool;
}

/// Every generated derivative calls this: without the driver it is a compile-time error that names the driver.
#[cfg(ferrozyme)]
#[inline]
pub fn require_driver<T>() {}

/// Every generated derivative calls this: without the driver it is a compile-time error that names the driver.
///
/// The error is in a constant of a generic function that is not inlined, so it is raised during code generation and not before: a plain
/// `cargo check` must pass in every profile.
#[cfg(not(ferrozyme))]
#[inline(never)]
pub fn require_driver<T>() {
    const {
        panic!(
            "this program contains derivatives, which Ferrozyme's driver makes when it is linked: \
             use `cargo ferrozyme build` (or `run`, `test`, `bench`) in place of `cargo build`"
        )
    }
}
