//! The places of pointers in a shadow, before and after a derivative in reverse mode has run.
//!
//! The gradient of a float ends up where the float was when the function was called. The gradient of memory behind a pointer stays in that memory, wherever the function moves
//! the pointer. For a value of floats only, or of pointers only, either makes sense. An element that holds both and is moved (`sort`,
//! `swap`, `insert`) would end up with half of its gradient. So the places of pointers next to floats are recorded before the call, and compared after it.
//!
//! The same holds for the ring of a `VecDeque`: if it wraps around and grows, its elements change their slots.

use super::layout::{has_float, has_pointer_or_unknown, reaches_floats};
use super::moves::successor_of;
use super::{Differentiable, Layout, Names};

/// The places of pointers and rings in a shadow.
#[derive(Default)]
pub struct Places {
    /// Hash of the path from the argument to the current place.
    path: u64,
    /// Whether there are floats in the current element.
    beside_floats: bool,
    /// The addresses of memory that is owned next to floats, and the paths to its owners.
    memory: Vec<(usize, u64)>,
    rings: Vec<RingPlace>,
}

/// The position of a ring in its memory.
#[derive(Clone, Copy)]
struct RingPlace {
    /// The path to it.
    path: u64,
    /// The slot of its first element.
    first: usize,
    /// How many elements it has.
    length: usize,
    /// How many slots.
    capacity: usize,
}

impl Places {
    /// Enters a value whose bytes have this layout; memory recorded inside may be next to its floats.
    #[inline]
    pub fn inside(&mut self, layout: &'static Layout, search: impl FnOnce(&mut Places)) {
        let before = self.beside_floats;
        self.beside_floats |= has_float(layout);
        search(self);
        self.beside_floats = before;
    }

    /// Follows one step of the path, to a part of the same value.
    #[inline]
    pub fn step(&mut self, number: usize, search: impl FnOnce(&mut Places)) {
        let before = self.path;
        self.path = Places::path_after(before, number);
        search(self);
        self.path = before;
    }

    /// The path one step further.
    #[inline]
    pub(super) fn path_after(path: u64, number: usize) -> u64 {
        // A polynomial hash with an odd factor distinguishes paths.
        path.wrapping_add(number as u64 + 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// The path from the argument to the current place.
    pub(super) fn path(&self) -> u64 {
        self.path
    }

    /// Whether there are floats in the current element.
    pub(super) fn is_beside_floats(&self) -> bool {
        self.beside_floats
    }

    /// Records memory that is owned next to floats, by its address and the path to its owner.
    pub(super) fn note_memory(&mut self, address: usize, path: u64) {
        self.memory.push((address, path));
    }

    /// Records memory that the current place points to, and visits the elements in it.
    #[inline]
    pub fn memory<'a, T: 'a>(
        &mut self,
        elements: &'static Layout,
        items: impl ExactSizeIterator<Item = &'a T>,
        address: usize,
        note: fn(&T, &mut Places),
    ) {
        if self.beside_floats && items.len() != 0 && reaches_floats(elements) {
            self.note_memory(address, self.path);
        }
        if has_pointer_or_unknown(elements) {
            let before = std::mem::replace(&mut self.beside_floats, false);
            for (index, item) in items.enumerate() {
                self.step(index, |places| note(item, places));
            }
            self.beside_floats = before;
        }
    }

    /// Records the memory of one value that the current place points to, and visits it.
    #[inline]
    pub fn pointee<T: ?Sized + Differentiable>(&mut self, value: &T) {
        if self.beside_floats && size_of_val(value) != 0 && reaches_floats(T::LAYOUT) {
            let address = (&raw const *value).cast::<u8>().addr();
            self.note_memory(address, self.path);
        }
        if has_pointer_or_unknown(T::LAYOUT) {
            let before = std::mem::replace(&mut self.beside_floats, false);
            self.step(0, |places| value.places(places));
            self.beside_floats = before;
        }
    }

    /// Records the position of a ring.
    pub fn ring(&mut self, first: usize, length: usize, capacity: usize) {
        self.note_ring(self.path, first, length, capacity);
    }

    /// Records the position of the ring at the end of a path.
    pub(super) fn note_ring(&mut self, path: u64, first: usize, length: usize, capacity: usize) {
        self.rings.push(RingPlace {
            path,
            first,
            length,
            capacity,
        });
    }

    /// Whether any place matters.
    pub(super) fn is_empty(&self) -> bool {
        self.memory.is_empty()
    }

    /// Whether recorded memory is in another place now. Memory that was reallocated counts as the memory that replaced it, as the derivative has reported since the record.
    fn has_moved(&self, after: &Places, moves: usize) -> bool {
        if self.memory == after.memory {
            return false;
        }
        let now = |&(address, path): &(usize, u64)| (successor_of(moves, address), path);
        let mut before: Vec<(usize, u64)> = self.memory.iter().map(now).collect();
        before.sort_unstable();
        after.memory.iter().any(|&(address, path)| {
            let found = before.binary_search_by_key(&address, |entry| entry.0);
            found.is_ok_and(|index| before[index].1 != path)
        })
    }

    /// Whether elements of a ring may have changed slots because it grew.
    fn has_turned(&self, after: &Places) -> bool {
        after.rings.iter().any(|ring| {
            let before = self.rings.iter().find(|before| before.path == ring.path);
            before.is_some_and(|before| {
                let wrapped = before.first + before.length > before.capacity;
                ring.capacity != before.capacity
                    && before.length != 0
                    && (wrapped || ring.first != before.first)
            })
        })
    }
}

/// The places in a shadow.
#[inline]
pub(super) fn places_of<T: ?Sized>(note: fn(&T, &mut Places), shadow: &T) -> Places {
    let mut places = Places::default();
    note(shadow, &mut places);
    places
}

/// Panics if elements of a shadow were moved in a way that splits their gradient.
#[inline]
#[track_caller]
pub(super) fn check_places<T: ?Sized>(
    (before, moves): (&Places, usize),
    note: fn(&T, &mut Places),
    shadow: &T,
    names: &'static Names,
) {
    let after = places_of(note, shadow);
    if before.has_moved(&after, moves) {
        refuse(
            names,
            "elements that hold floats beside memory of their own have changed places (`sort`, `swap`, `insert`, …): \
             the gradient of the floats lies where they were, and that of the memory has moved with it",
            "",
        );
    }
    if before.has_turned(&after) {
        refuse(
            names,
            "a `VecDeque` has grown while its elements wrapped around, so gradients are in the old slots of its elements",
            ", or give the queue enough capacity before the call",
        );
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn refuse(names: &Names, what: &str, also: &str) -> ! {
    let Names {
        primal, argument, ..
    } = names;
    panic!(
        "argument `{argument}` of `{primal}`: {what}. Let the function work on a copy{also}; the gradients are invalid"
    );
}
