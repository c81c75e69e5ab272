//! Descriptions of types without [`Differentiable`](super::Differentiable), which the driver makes from debug information.
//!
//! The driver replaces each call of [`__ferrozyme_request_shape`] by the address of a constant: a list of words that says where a value of the type has vectors, pointers and
//! variants through which floats can be reached. If the type is not known, the address is null, and nothing is checked. The words are part of the interface between this
//! crate and the driver (`shapes.rs` there):
//!
//! ```text
//! size of the type, root                                       a node is the number of its first word
//! 0 flags                                                      nothing to look at
//! 1 flags, count, (offset, node, name)…                        a structure
//! 2 flags, owner, node                                         a pointer to one value
//! 3 flags, owner, address, length, size, node                  a pointer to several values, and their number
//! 4 flags, address, length, capacity, size, alignment, node    a `Vec`
//! 5 flags, address, table                                      a pointer to a trait object
//! 6 flags, count, stride, node                                 an array
//! 7 flags, size, tag, bytes of the tag, count, variant…        an enum; a variant is the number of
//!     has a value, value, name, node, count, (start, end)…         these words: the tag's value, and the bytes of its fields
//! 8 flags, address, length, capacity, first, size, node        a `VecDeque`
//! ```
//!
//! A name is the number of its bytes, and the bytes. Flags: 1 floats in the bytes of the value, 2 floats in memory that it points to. Owner: 0 the pointer, 1 none (a shared reference), 2 all reference-counted pointers.

mod walk;

use std::alloc::Layout;
use std::any::type_name;
use std::ptr::NonNull;

use super::{Mismatch, Places};
use walk::{Kind, Node, Owner, Step, Visitor, walk};

#[cfg(ferrozyme)]
unsafe extern "C" {
    /// Replaced by the driver with the description of the type for which the enclosing function is instantiated.
    fn __ferrozyme_request_shape(name: *const u8, length: usize) -> Option<NonNull<u64>>;
}

/// The driver's description of a type. The debug information of this function names the type; the name is passed so that instances for different types are not merged.
#[cfg(ferrozyme)]
#[inline(never)]
fn description_of<T: ?Sized>() -> Option<NonNull<u64>> {
    let name = type_name::<T>();
    // SAFETY: the driver replaces the call by an address.
    unsafe { __ferrozyme_request_shape(name.as_ptr(), name.len()) }
}

#[cfg(not(ferrozyme))]
fn description_of<T: ?Sized>() -> Option<NonNull<u64>> {
    let _ = type_name::<T>;
    None
}

/// The root of a type's description, and the number of values (more than one for a slice).
fn root_of<T: ?Sized>(value: &T) -> Option<(Node, usize, usize)> {
    let words = description_of::<T>()?.as_ptr().cast_const();
    // SAFETY: it is a description, which starts with a size and a root.
    let (size, root) = unsafe { (words.read() as usize, words.add(1).read()) };
    let whole = size_of_val(value);
    let count = match () {
        () if whole == size => 1,
        // For other unsized types, only a part is described.
        () if type_name::<T>().starts_with('[') => whole / size,
        () => return None,
    };
    Some((Node::at(words, root), count, size))
}

/// Whether the driver has described the type.
#[inline]
pub(super) fn is_described<T: ?Sized>() -> bool {
    description_of::<T>().is_some()
}

/// Whether a shadow has the shape of a value, as far as the driver knows.
#[inline]
pub(super) fn same_described<T: ?Sized>(value: &T, shadow: &T) -> bool {
    match root_of(value) {
        Some((root, ..)) if root.kind() != Kind::Plain => compare_described(value, shadow).is_ok(),
        _ => true,
    }
}

/// Where a shadow differs from a value in shape.
pub(super) fn compare_described<T: ?Sized>(value: &T, shadow: &T) -> Result<(), Mismatch> {
    let Some((root, count, size)) = root_of(value) else {
        return Ok(());
    };
    if size_of_val(value) != size_of_val(shadow) {
        return Ok(());
    }
    compare(root, value, shadow, (count, size), false)
}

/// The path to memory with floats that a value shares with its shadow. Trait objects are not compared: they may be anything, and are often functions.
pub(super) fn shared_memory<T: ?Sized>(value: &T, shadow: &T) -> Option<String> {
    let (root, count, size) = root_of(value)?;
    if root.kind() == Kind::Plain || size_of_val(value) != size_of_val(shadow) {
        return None;
    }
    let compared = compare(root, value, shadow, (count, size), true);
    compared.err().map(|mismatch| mismatch.path)
}

fn compare<T: ?Sized>(
    root: Node,
    value: &T,
    shadow: &T,
    values: (usize, usize),
    addresses: bool,
) -> Result<(), Mismatch> {
    let mut comparison = Compare {
        steps: Vec::new(),
        addresses,
    };
    let value = (&raw const *value).cast::<u8>();
    let shadow = (&raw const *shadow).cast::<u8>().cast_mut();
    walk(&mut comparison, root, (value, shadow), values, 0)
}

/// Makes a shadow fit for a function that changes the value, see [`Differentiable::fit`](super::Differentiable::fit).
pub(super) fn fit_described<T: ?Sized>(value: &T, shadow: &mut T) {
    let Some((root, count, size)) = root_of(value) else {
        return;
    };
    if size_of_val(value) != size_of_val(shadow) {
        return;
    }
    let value = (&raw const *value).cast::<u8>();
    let shadow = (&raw mut *shadow).cast::<u8>();
    let Ok(()) = walk(&mut Fit, root, (value, shadow), (count, size), ());
}

/// Records where memory that a shadow owns is next to floats.
pub(super) fn note_described<T: ?Sized>(shadow: &T, places: &mut Places) {
    let Some((root, count, size)) = root_of(shadow) else {
        return;
    };
    let place = (&raw const *shadow).cast::<u8>();
    let context = (places.path(), places.is_beside_floats());
    let both = (place, place.cast_mut());
    let Ok(()) = walk(&mut Note(places), root, both, (count, size), context);
}

/// Compares lengths, variants and trait objects, or addresses of values with the same shape. The context is the number of a step, plus one.
struct Compare {
    /// Whether addresses are compared, which must differ.
    addresses: bool,
    /// The paths to the visited places: the previous step, and the step from there.
    steps: Vec<(usize, Step)>,
}

impl Compare {
    fn mismatch(&self, mut at: usize, primal: String, shadow: String) -> Mismatch {
        let mut mismatch = Mismatch::new(primal, shadow);
        while let Some((before, step)) = at.checked_sub(1).map(|number| &self.steps[number]) {
            mismatch = mismatch.inside(step);
            at = *before;
        }
        mismatch
    }
}

impl Visitor for Compare {
    type Context = usize;
    type Error = Mismatch;

    fn enter(
        &mut self,
        node: Node,
        (value, shadow): (*const u8, *mut u8),
        at: usize,
    ) -> Result<usize, Mismatch> {
        if self.addresses {
            return match node.memory(value) > 0 && node.address(value) == node.address(shadow) {
                true => Err(self.mismatch(at, String::new(), String::new())),
                false => Ok(at),
            };
        }
        let (here, there) = match node.kind() {
            Kind::Slice | Kind::Vector => (node.length(value), node.length(shadow)),
            Kind::Ring => {
                let ring = |place| (node.length(place), node.capacity(place), node.first(place));
                let (here, there) = (ring(value), ring(shadow));
                if here.0 == there.0 && here != there {
                    let text = |ring: (usize, usize, usize)| {
                        format!(
                            "capacity {} and its first element in slot {}",
                            ring.1, ring.2
                        )
                    };
                    return Err(self.mismatch(at, text(here), text(there)));
                }
                (here.0, there.0)
            }
            Kind::Object => {
                if node.object_layout(value) != node.object_layout(shadow) {
                    let texts = ["a trait object", "one of another type"].map(str::to_owned);
                    let [here, there] = texts;
                    return Err(self.mismatch(at, here, there));
                }
                return Ok(at);
            }
            Kind::Variants => {
                let variants = (node.variant(value), node.variant(shadow));
                if variants.0 != variants.1 {
                    let name = |number: Option<usize>| match number {
                        Some(number) => format!("variant `{}`", node.variant_name(number)),
                        None => "no variant".to_owned(),
                    };
                    return Err(self.mismatch(at, name(variants.0), name(variants.1)));
                }
                return Ok(at);
            }
            _ => return Ok(at),
        };
        match here == there {
            true => Ok(at),
            false => Err(self.mismatch(at, format!("length {here}"), format!("length {there}"))),
        }
    }

    fn step(&mut self, at: usize, step: Step) -> usize {
        self.steps.push((at, step));
        self.steps.len()
    }

    fn goes_through(&self, _owner: Owner) -> bool {
        true
    }
}

/// Gives vectors their capacity, and zeroes unused bytes.
struct Fit;

impl Visitor for Fit {
    type Context = ();
    type Error = std::convert::Infallible;

    fn enter(
        &mut self,
        node: Node,
        (value, shadow): (*const u8, *mut u8),
        (): (),
    ) -> Result<(), std::convert::Infallible> {
        // SAFETY: both are values as the node says, of the same shape, and the shadow is not accessed elsewhere meanwhile.
        unsafe {
            match node.kind() {
                Kind::Vector => {
                    change_capacity(node, shadow, node.capacity(value));
                    let (length, size) = (node.length(shadow), node.element_size());
                    let spare = (node.capacity(shadow) - length) * size;
                    if spare > 0 {
                        let start = node.address(shadow).add(length * size);
                        start.write_bytes(0, spare);
                    }
                }
                Kind::Ring => {
                    let (length, size) = (node.length(shadow), node.element_size());
                    let (capacity, first) = (node.capacity(shadow), node.first(shadow));
                    for slot in (length..capacity).map(|index| (first + index) % capacity) {
                        node.address(shadow).add(slot * size).write_bytes(0, size);
                    }
                }
                Kind::Variants => {
                    for (start, end) in node.unused(value) {
                        shadow.add(start).write_bytes(0, end - start);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn step(&mut self, (): (), _step: Step) {}

    fn goes_through(&self, owner: Owner) -> bool {
        owner != Owner::Nobody
    }
}

/// Gives a shadow's vector the capacity of the vector that it shadows.
///
/// # Safety
/// There is a `Vec` of the global allocator at that place, and its length is not larger than the capacity.
unsafe fn change_capacity(node: Node, shadow: *mut u8, capacity: usize) {
    let (before, size) = (node.capacity(shadow), node.element_size());
    if before == capacity || size == 0 {
        return;
    }
    let layout = |capacity: usize| {
        let layout = Layout::from_size_align(capacity * size, node.alignment());
        layout.expect("a vector of this capacity is there")
    };
    let address = node.address(shadow);
    // SAFETY: a vector's memory has this layout; a vector without capacity has no memory.
    unsafe {
        let new = match (before, capacity) {
            (_, 0) => {
                std::alloc::dealloc(address, layout(before));
                std::ptr::without_provenance_mut(node.alignment())
            }
            (0, _) => std::alloc::alloc(layout(capacity)),
            _ => std::alloc::realloc(address, layout(before), capacity * size),
        };
        if new.is_null() {
            std::alloc::handle_alloc_error(layout(capacity));
        }
        node.set_memory(shadow, new, capacity);
    }
}

/// Records places. The context is the path, and whether there are floats next to the place.
struct Note<'a>(&'a mut Places);

impl Visitor for Note<'_> {
    type Context = (u64, bool);
    type Error = std::convert::Infallible;

    fn enter(
        &mut self,
        node: Node,
        (value, _): (*const u8, *mut u8),
        (path, beside): (u64, bool),
    ) -> Result<(u64, bool), std::convert::Infallible> {
        match node.kind() {
            Kind::Structure | Kind::Array | Kind::Variants => {
                return Ok((path, beside || node.has_floats()));
            }
            Kind::Plain | Kind::Object => return Ok((path, beside)),
            Kind::Pointer | Kind::Slice | Kind::Vector | Kind::Ring => {}
        }
        let count = node.memory(value);
        if beside && count != 0 && node.leads_to_floats() {
            self.0.note_memory(node.address(value).addr(), path);
        }
        if node.kind() == Kind::Ring {
            self.0
                .note_ring(path, node.first(value), count, node.capacity(value));
        }
        Ok((path, false))
    }

    fn step(&mut self, (path, beside): (u64, bool), step: Step) -> (u64, bool) {
        (Places::path_after(path, step.number()), beside)
    }

    fn goes_through(&self, _owner: Owner) -> bool {
        true
    }
}
