//! What a place in a program may use: scalars with their limits, arrays with their lengths.
//!
//! The limits are what keeps programs valid: an index is brought below the length of its array, a function is applied
//! only to arguments in its domain, and sums and products are brought back to single digits before they grow.

use super::owner::Shape;
use ferrozyme_ir::{FunctionId, Value};

/// How large a float may be that is stored, passed, returned, or enters a loop.
pub(crate) const SMALL: f64 = 4.0;

/// How many elements an array has that a pointer in memory points to.
pub(crate) const POINTEE: i64 = 4;

/// Bytes of a structure: a float at 0, an integer at 8, a pointer to [`POINTEE`] floats at 16.
pub(crate) const RECORD: i64 = 24;

/// A double.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Float {
    pub(crate) value: Value,
    /// About how large it is at most. Sums that memory carries may exceed it, so nothing may fail beyond it.
    pub(crate) bound: f64,
}

/// An `i64` between two limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Int {
    pub(crate) value: Value,
    pub(crate) min: i64,
    pub(crate) max: i64,
}

/// What an array holds. All its elements are initialised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Element {
    /// `f64`.
    Double,
    /// `f32`.
    Single,
    /// `i64` from 0 up to a limit.
    Index { below: i64 },
    /// Pointers to [`POINTEE`] doubles.
    Pointer,
    /// Structures of a double, an index below [`POINTEE`], and a pointer to [`POINTEE`] doubles.
    Record,
}

impl Element {
    /// How many bytes one takes.
    pub(crate) fn bytes(self) -> i64 {
        match self {
            Element::Double | Element::Index { .. } | Element::Pointer => 8,
            Element::Single => 4,
            Element::Record => RECORD,
        }
    }
}

/// Memory that holds some number of elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array {
    pub(crate) pointer: Value,
    pub(crate) length: i64,
    pub(crate) element: Element,
    pub(crate) writable: bool,
    /// Which object it lies in, where that is known: arrays of two different known objects share nothing.
    pub(crate) object: Option<u32>,
}

/// A structure that owns the memory behind its pointers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) slot: Value,
    pub(crate) shape: Shape,
}

/// What is to be released where a region ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owned {
    /// Memory of the heap.
    Memory(Value),
    /// What an owner owns, perhaps by a function.
    Contents {
        slot: Value,
        shape: Shape,
        by: Option<FunctionId>,
    },
}

/// Everything that may be used here.
#[derive(Clone, Default, Debug)]
pub(crate) struct Scope {
    pub(crate) floats: Vec<Float>,
    pub(crate) ints: Vec<Int>,
    pub(crate) arrays: Vec<Array>,
    pub(crate) owners: Vec<Owner>,
    /// What to release where the region ends.
    pub(crate) owned: Vec<Owned>,
}

/// A position in a scope, to come back to at the end of a region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    floats: usize,
    ints: usize,
    arrays: usize,
    owners: usize,
    owned: usize,
    /// How many of the things to be released belonged to regions around the one that was left.
    pub(crate) around: usize,
}

impl Scope {
    /// The position now.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            floats: self.floats.len(),
            ints: self.ints.len(),
            arrays: self.arrays.len(),
            owners: self.owners.len(),
            owned: self.owned.len(),
            around: 0,
        }
    }

    /// Forgets what came after a position; gives what must be released there.
    pub(crate) fn leave(&mut self, mark: Mark) -> Vec<Owned> {
        self.floats.truncate(mark.floats);
        self.ints.truncate(mark.ints);
        self.arrays.truncate(mark.arrays);
        self.owners.truncate(mark.owners);
        self.owned.split_off(mark.owned)
    }
}
