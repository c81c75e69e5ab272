//! Reads descriptions, and walks through values along them.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

/// A node of a description.
#[derive(Clone, Copy)]
pub(super) struct Node {
    words: *const u64,
    at: usize,
}

/// The kind of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Structure,
    Pointer,
    Slice,
    Vector,
    Object,
    Array,
    Variants,
    Ring,
}

/// The owner of the memory that a pointer points to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The value that the pointer is in.
    Pointer,
    /// Unknown: the reference is shared.
    Nobody,
    /// All reference-counted pointers to it.
    Counted,
}

/// One step on the path through a value.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// To a field: its number, and where its name is.
    Field(usize, Node),
    /// To an element.
    Element(usize),
    /// To a part without a name.
    Inside,
}

impl Step {
    pub(super) fn number(self) -> usize {
        match self {
            Step::Field(number, _) | Step::Element(number) => number,
            Step::Inside => 0,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Field(_, name) => {
                let name = name.text();
                // Debug information gives unnamed fields such names.
                write!(f, ".{}", name.strip_prefix("__").unwrap_or(&name))
            }
            Step::Element(number) => write!(f, "[{number}]"),
            Step::Inside => Ok(()),
        }
    }
}

impl Node {
    pub(super) fn at(words: *const u64, at: u64) -> Node {
        let at = at as usize;
        Node { words, at }
    }

    fn word(self, index: usize) -> usize {
        // SAFETY: a node has as many words as its kind says.
        unsafe { self.words.add(self.at + index).read() as usize }
    }

    fn node(self, index: usize) -> Node {
        Node {
            at: self.word(index),
            ..self
        }
    }

    pub(super) fn kind(self) -> Kind {
        match self.word(0) {
            1 => Kind::Structure,
            2 => Kind::Pointer,
            3 => Kind::Slice,
            4 => Kind::Vector,
            5 => Kind::Object,
            6 => Kind::Array,
            7 => Kind::Variants,
            8 => Kind::Ring,
            _ => Kind::Plain,
        }
    }

    /// Whether there are floats in the bytes of the value.
    pub(super) fn has_floats(self) -> bool {
        self.word(1) & 1 != 0
    }

    /// Whether there are floats in memory that the value points to.
    pub(super) fn leads_to_floats(self) -> bool {
        self.word(1) & 2 != 0
    }

    /// The bytes of a name, as text.
    fn text(self) -> String {
        // SAFETY: a name is a number of bytes, and as many bytes.
        let bytes = unsafe {
            let start = self.words.add(self.at + 1).cast::<u8>();
            std::slice::from_raw_parts(start, self.word(0))
        };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// The word of a value at an offset that the node names.
    fn read(self, place: *const u8, index: usize) -> usize {
        // SAFETY: the description says that there is a word.
        unsafe { place.add(self.word(index)).cast::<usize>().read() }
    }

    fn owner(self) -> Owner {
        match self.word(2) {
            0 => Owner::Pointer,
            1 => Owner::Nobody,
            _ => Owner::Counted,
        }
    }

    /// The memory that a pointer, slice, vector, ring or trait object points to.
    pub(super) fn address(self, place: *const u8) -> *mut u8 {
        let offset = match self.kind() {
            Kind::Pointer => 0,
            Kind::Slice => self.word(3),
            _ => self.word(2),
        };
        // SAFETY: the description says that there is a pointer.
        unsafe { place.add(offset).cast::<*mut u8>().read() }
    }

    pub(super) fn length(self, place: *const u8) -> usize {
        match self.kind() {
            Kind::Slice => self.read(place, 4),
            _ => self.read(place, 3),
        }
    }

    pub(super) fn capacity(self, place: *const u8) -> usize {
        self.read(place, 4)
    }

    /// The slot of a ring's first element.
    pub(super) fn first(self, place: *const u8) -> usize {
        self.read(place, 5)
    }

    /// The size of the elements of a slice, vector or ring.
    pub(super) fn element_size(self) -> usize {
        match self.kind() {
            Kind::Ring => self.word(6),
            _ => self.word(5),
        }
    }

    /// The number of values with floats that a pointer, slice, vector or ring points to; none for other kinds.
    pub(super) fn memory(self, place: *const u8) -> usize {
        match self.kind() {
            Kind::Pointer => 1,
            Kind::Slice | Kind::Vector | Kind::Ring => self.length(place),
            _ => 0,
        }
    }

    /// The alignment of a vector's elements.
    pub(super) fn alignment(self) -> usize {
        self.word(6)
    }

    /// Replaces a vector's memory.
    ///
    /// # Safety
    /// There is a vector, to which the memory belongs from now on.
    pub(super) unsafe fn set_memory(self, place: *mut u8, address: *mut u8, capacity: usize) {
        // SAFETY: the description says where address and capacity are.
        unsafe {
            place.add(self.word(2)).cast::<*mut u8>().write(address);
            place.add(self.word(4)).cast::<usize>().write(capacity);
        }
    }

    /// Size and alignment of a trait object, from its vtable: they follow the drop function.
    pub(super) fn object_layout(self, place: *const u8) -> [usize; 2] {
        let table = self.read(place, 3) as *const usize;
        // SAFETY: every vtable starts with these three words.
        unsafe { [table.add(1).read(), table.add(2).read()] }
    }

    /// The number of an enum's variant, unless its tag is unknown.
    pub(super) fn variant(self, place: *const u8) -> Option<usize> {
        let bytes = self.word(4);
        let mut tag = 0_u64;
        // SAFETY: the description says that the tag has as many bytes, eight at most.
        unsafe {
            let start = place.add(self.word(3));
            start.copy_to_nonoverlapping((&raw mut tag).cast::<u8>(), bytes.min(8));
        }
        let count = self.word(5);
        let has = |number: &usize, value: usize| {
            let variant = self.node(6 + number);
            variant.word(0) == value && (value == 0 || variant.word(1) as u64 == tag)
        };
        let told = (0..count).find(|number| has(number, 1));
        told.or_else(|| (0..count).find(|number| has(number, 0)))
    }

    pub(super) fn variant_name(self, number: usize) -> String {
        self.node(6 + number).node(2).text()
    }

    /// The bytes of an enum that tell its variant.
    pub(super) fn tag(self) -> Range<usize> {
        self.word(3)..self.word(3) + self.word(4)
    }

    /// The bytes of an enum that its present variant does not use.
    pub(super) fn unused(self, place: *const u8) -> Vec<(usize, usize)> {
        let Some(number) = self.variant(place) else {
            return Vec::new();
        };
        let variant = self.node(6 + number);
        let tag = (self.tag().start, self.tag().end);
        let fields = (0..variant.word(4))
            .map(|index| (variant.word(5 + 2 * index), variant.word(6 + 2 * index)));
        let mut used: Vec<(usize, usize)> = fields.chain([tag]).collect();
        used.sort_unstable();
        let (mut unused, mut end) = (Vec::new(), 0);
        for (start, stop) in used.into_iter().chain([(self.word(2), self.word(2))]) {
            if start > end {
                unused.push((end, start));
            }
            end = end.max(stop);
        }
        unused
    }
}

/// A visitor of a value and its shadow.
pub(super) trait Visitor {
    /// What is known of the path.
    type Context: Copy;
    /// Why the walk ends early.
    type Error;

    /// Visits a place, and returns the context for the places inside.
    fn enter(
        &mut self,
        node: Node,
        places: (*const u8, *mut u8),
        context: Self::Context,
    ) -> Result<Self::Context, Self::Error>;

    /// The context one step further.
    fn step(&mut self, context: Self::Context, step: Step) -> Self::Context;

    /// Whether memory with such an owner is visited.
    fn goes_through(&self, owner: Owner) -> bool;
}

/// Values of one type, one after the other.
#[derive(Clone, Copy)]
struct Run<C> {
    node: Node,
    places: (*const u8, *mut u8),
    count: usize,
    stride: usize,
    /// The number of values that were visited.
    done: usize,
    context: C,
    /// Whether they are elements of a container.
    elements: bool,
}

/// Walks through a number of values of one size, each with its shadow. The shadow has the same shape, as far as the visitor has checked it.
pub(super) fn walk<V: Visitor>(
    visitor: &mut V,
    root: Node,
    places: (*const u8, *mut u8),
    (count, stride): (usize, usize),
    context: V::Context,
) -> Result<(), V::Error> {
    let run = |node, places, (count, stride), context, elements| Run {
        node,
        places,
        count,
        stride,
        done: 0,
        context,
        elements,
    };
    // Lists and trees may be deep, and shared memory may lead back to itself.
    let mut stack = vec![run(root, places, (count, stride), context, count != 1)];
    let mut seen = HashSet::new();
    while let Some(top) = stack.last_mut() {
        if top.done == top.count || top.node.kind() == Kind::Plain {
            stack.pop();
            continue;
        }
        let Run { node, done, .. } = *top;
        top.done += 1;
        let distance = done * top.stride;
        let (value, shadow) = top.places;
        // SAFETY: there are as many values at this distance.
        let (value, shadow) = unsafe { (value.add(distance), shadow.add(distance)) };
        let mut context = top.context;
        if top.elements {
            context = visitor.step(context, Step::Element(done));
        }
        let context = visitor.enter(node, (value, shadow), context)?;
        let through = || (node.address(value).cast_const(), node.address(shadow));
        match node.kind() {
            Kind::Plain | Kind::Object => {}
            Kind::Structure => {
                for number in 0..node.word(2) {
                    let [offset, field, name] = [3, 4, 5].map(|part| part + 3 * number);
                    let offset = node.word(offset);
                    // SAFETY: the field is at this offset.
                    let places = unsafe { (value.add(offset), shadow.add(offset)) };
                    let context = visitor.step(context, Step::Field(number, node.node(name)));
                    stack.push(run(node.node(field), places, (1, 0), context, false));
                }
            }
            Kind::Pointer => {
                let (owner, through) = (node.owner(), through());
                let new = owner == Owner::Pointer || seen.insert((through.0, node.word(3)));
                if visitor.goes_through(owner) && new {
                    let context = visitor.step(context, Step::Inside);
                    stack.push(run(node.node(3), through, (1, 0), context, false));
                }
            }
            Kind::Slice => {
                if visitor.goes_through(node.owner()) {
                    let elements = (node.length(value), node.element_size());
                    stack.push(run(node.node(6), through(), elements, context, true));
                }
            }
            Kind::Vector => {
                let elements = (node.length(value), node.element_size());
                stack.push(run(node.node(7), through(), elements, context, true));
            }
            Kind::Array => {
                let elements = (node.word(2), node.word(3));
                stack.push(run(node.node(4), (value, shadow), elements, context, true));
            }
            Kind::Variants => {
                if let Some(number) = node.variant(value) {
                    let inside = node.node(6 + number).node(3);
                    let context = visitor.step(context, Step::Inside);
                    stack.push(run(inside, (value, shadow), (1, 0), context, false));
                }
            }
            Kind::Ring => {
                let (first, capacity) = (node.first(value), node.capacity(value));
                let (size, through) = (node.element_size(), through());
                for number in 0..node.length(value) {
                    let slot = (first + number) % capacity;
                    // SAFETY: the ring has the slot.
                    let places =
                        unsafe { (through.0.add(slot * size), through.1.add(slot * size)) };
                    let context = visitor.step(context, Step::Element(number));
                    stack.push(run(node.node(7), places, (1, 0), context, false));
                }
            }
        }
    }
    Ok(())
}
