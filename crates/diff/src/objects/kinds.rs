//! The types that describe memory: classes, places in them, and kinds of bytes.

use super::span::Span;
use ferrozyme_ir::entity::entity_impl;
use ferrozyme_ir::{FunctionId, GlobalId, Op, Scalar};

/// A set of memory objects that are not told apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(u32);

entity_impl!(Class, "class");

/// Addresses: offsets within a class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// The class.
    pub class: Class,
    /// Where in it.
    pub span: Span,
}

/// What some bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A floating-point number of this type.
    Float(Scalar),
    /// An integer, or part of one.
    Integer,
    /// A pointer to there, or sometimes a number.
    Pointer(Place),
    /// Nothing: by the description of the memory, or because nobody takes them for anything, here or elsewhere.
    Padding,
    /// Nothing says what they are.
    Unknown,
    /// They are used in ways that exclude each other.
    Conflict(Contradiction),
}

impl Kind {
    /// The type of the float that bytes are at times, and at others a pointer or integers. Only floats of eight bytes are told from others.
    pub fn as_union(self, bytes: u64) -> Option<Scalar> {
        match self {
            Kind::Conflict(
                Contradiction::FloatAndPointer(scalar)
                | Contradiction::FloatAndInteger(scalar)
                | Contradiction::Torn(scalar),
            ) if bytes == Scalar::F64.bytes() && scalar.bytes() == bytes => Some(Scalar::F64),
            _ => None,
        }
    }

    /// Whether bytes are at times an integer, and at others part of a float or pointer.
    pub fn is_part_of_union(self, bytes: u64) -> bool {
        matches!(self, Kind::Conflict(Contradiction::Torn(scalar))
            if scalar.bytes() == Scalar::F64.bytes() && bytes < scalar.bytes())
    }

    /// Whether bytes are at times a float or part of one, and at others something else.
    pub fn is_union(self, bytes: u64) -> bool {
        self.as_union(bytes).is_some() || self.is_part_of_union(bytes)
    }

    /// Whether bytes are at times a float of another type than those that are told from others.
    pub fn may_be_other_float(self) -> bool {
        let other = |scalar: Scalar| scalar.is_float() && scalar != Scalar::F64;
        match self {
            Kind::Float(scalar) => other(scalar),
            Kind::Conflict(
                Contradiction::FloatAndPointer(scalar)
                | Contradiction::FloatAndInteger(scalar)
                | Contradiction::Torn(scalar),
            ) => other(scalar),
            Kind::Conflict(Contradiction::Floats(..)) => true,
            _ => false,
        }
    }
}

/// Why the kind of some bytes cannot be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contradiction {
    /// Floats of two types.
    Floats(Scalar, Scalar),
    /// A float of this type, and the result of integer arithmetic or an integer by description.
    FloatAndInteger(Scalar),
    /// A float of this type, and a pointer.
    FloatAndPointer(Scalar),
    /// A float or pointer of this type that overlaps something else, or is moved in parts.
    Torn(Scalar),
}

/// Some bytes and what they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bytes {
    /// Where they start; relative to what, says the function that gives them.
    pub offset: i64,
    /// How many they are.
    pub bytes: u64,
    /// What they are.
    pub kind: Kind,
}

/// What a value is: its type says it, except for integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueKind {
    /// Its type is a float.
    Float(Scalar),
    /// An integer that holds the bits of a float of this type.
    CarriesFloat(Scalar),
    /// An integer, truly.
    Integer,
    /// A pointer; none if it is never anything but `null` or `undef`.
    Pointer(Option<Place>),
    /// An integer that holds an address.
    CarriesPointer(Place),
    /// An integer, or a vector of them, whose parts are of different kinds: see [`Objects::parts_of_value`].
    Mixed,
    /// An integer of which nothing says what it is.
    Unknown,
    /// An integer that is used in ways that exclude each other.
    Conflict(Contradiction),
}

/// Where the memory of a class comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Source {
    /// The caller passes a pointer to it as this parameter.
    Param(u32),
    /// A global.
    Global(GlobalId),
    /// Code of a function.
    Function(FunctionId),
    /// `stack`.
    Stack(Op),
    /// `alloc`.
    Alloc(Op),
    /// A pointer to it was in memory that comes from outside, and this `load` is the first to read it.
    Loaded(Op),
    /// This call, or something that it calls, made it.
    Call(Op),
    /// This call of unknown code gave a pointer to it.
    External(Op),
    /// An integer was made an address here.
    Address(Op),
}

impl Source {
    /// Whether the function, or something that it calls, makes the memory.
    pub(super) fn is_made_here(self) -> bool {
        matches!(self, Source::Stack(_) | Source::Alloc(_) | Source::Call(_))
    }
}

/// What lies from an offset of a class on: first `head`, then `body` again and again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cells {
    /// By ascending offset, relative to the offset asked for, without gaps; after them comes `body`, or, where there is no period, nothing is known.
    pub head: Vec<Bytes>,
    /// One period, by ascending offset, without gaps. The offsets go on from the end of `head`.
    pub body: Vec<Bytes>,
    /// After how many bytes `body` repeats; 0 if there is none.
    pub period: u64,
}

impl Cells {
    /// The type of float that all of it is, if `head` and `body` consist of nothing else, from the start on.
    pub fn homogeneous(&self) -> Option<Scalar> {
        let all = || self.head.iter().chain(&self.body);
        let Kind::Float(scalar) = all().next()?.kind else {
            return None;
        };
        all()
            .all(|field| {
                field.kind == Kind::Float(scalar)
                    && field.bytes == scalar.bytes()
                    && field.offset.rem_euclid(scalar.bytes() as i64) == 0
            })
            .then_some(scalar)
    }

    /// Whether all of this many bytes are told, unknown ones included; none stands for any number of bytes.
    ///
    /// Where this does not hold, there are bytes behind the last field that nobody has spoken of.
    pub fn covers(&self, bytes: Option<u64>) -> bool {
        self.period > 0 || bytes.is_some_and(|bytes| bytes <= self.head_bytes())
    }

    /// How many bytes come before the repetition.
    pub fn head_bytes(&self) -> u64 {
        self.head
            .last()
            .map_or(0, |last| last.offset as u64 + last.bytes)
    }
}
