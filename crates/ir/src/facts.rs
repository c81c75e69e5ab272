//! Facts about operations, values and parameters beyond their meaning (LLVM: attributes and flags).
//!
//! Facts may be dropped but never invented: dropping one costs speed, adding a false one makes programs wrong.

use crate::processor::ProcessorLevel;
use std::fmt;

/// Promises and permissions attached to an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags(u16);

impl Flags {
    /// No flag at all.
    pub const NONE: Flags = Flags(0);
    /// Neither operands nor result are NaN.
    pub const NNAN: Flags = Flags(1);
    /// Neither operands nor result are infinite.
    pub const NINF: Flags = Flags(1 << 1);
    /// The sign of a zero does not matter.
    pub const NSZ: Flags = Flags(1 << 2);
    /// A division may become a multiplication by the reciprocal.
    pub const ARCP: Flags = Flags(1 << 3);
    /// A product and a sum may be contracted.
    pub const CONTRACT: Flags = Flags(1 << 4);
    /// Functions may be approximated.
    pub const AFN: Flags = Flags(1 << 5);
    /// Sums and products may be reordered.
    pub const REASSOC: Flags = Flags(1 << 6);
    /// All floating-point flags.
    pub const FAST: Flags = Flags(0x7f);
    /// The signed result does not overflow.
    pub const NSW: Flags = Flags(1 << 7);
    /// The unsigned result does not overflow.
    pub const NUW: Flags = Flags(1 << 8);
    /// A division or right shift leaves no remainder.
    pub const EXACT: Flags = Flags(1 << 9);
    /// An address stays within the object of its base.
    pub const INBOUNDS: Flags = Flags(1 << 10);
    /// The iterations of a loop are meant for several threads: none needs what another one computes, but for sums of floats, whose order does not matter.
    ///
    /// No analysis relies on that: what runs a loop on several threads proves that its iterations do not meet.
    pub const PARALLEL: Flags = Flags(1 << 11);

    /// Each single flag with its name in the text form, in the order in which they are written.
    pub const NAMES: &'static [(Flags, &'static str)] = &[
        (Flags::NNAN, "nnan"),
        (Flags::NINF, "ninf"),
        (Flags::NSZ, "nsz"),
        (Flags::ARCP, "arcp"),
        (Flags::CONTRACT, "contract"),
        (Flags::AFN, "afn"),
        (Flags::REASSOC, "reassoc"),
        (Flags::NSW, "nsw"),
        (Flags::NUW, "nuw"),
        (Flags::EXACT, "exact"),
        (Flags::INBOUNDS, "inbounds"),
        (Flags::PARALLEL, "parallel"),
    ];

    /// Whether all of `other` are set here.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags of both.
    pub const fn union(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// The flags that both have.
    pub const fn intersection(self, other: Flags) -> Flags {
        Flags(self.0 & other.0)
    }

    /// The flags without others.
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Whether no flag is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Flags {
    /// Writes the names separated by spaces; all floating-point flags together are `fast`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = *self;
        let mut separator = "";
        if self.contains(Flags::FAST) {
            f.write_str("fast")?;
            rest = self.without(Flags::FAST);
            separator = " ";
        }
        for &(flag, name) in Flags::NAMES {
            if rest.contains(flag) {
                write!(f, "{separator}{name}")?;
                separator = " ";
            }
        }
        Ok(())
    }
}

/// A range of signed integers, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Range {
    /// The smallest value.
    pub min: i128,
    /// The largest value.
    pub max: i128,
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", self.min, self.max)
    }
}

/// The types of the bytes behind a pointer: the front end's description of an argument.
///
/// `[f64]` is an array of doubles; `[0: f64, 8: ptr [f32], 16: i64; 24]` an array of structures of 24 bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    /// The fields by ascending offset; they do not overlap. Bytes in none of them are padding.
    pub fields: Vec<Field>,
    /// After how many bytes the fields repeat.
    pub stride: u64,
}

/// One field of a [`Layout`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Field {
    /// Where it starts, in bytes.
    pub offset: u64,
    /// Its type.
    pub scalar: crate::Scalar,
    /// The layout behind a pointer, if known.
    pub pointee: Option<Box<Layout>>,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = self.fields.len() == 1
            && self.fields[0].offset == 0
            && self.fields[0].scalar.bytes() == self.stride;
        f.write_str("[")?;
        for (index, field) in self.fields.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            if !plain {
                write!(f, "{}: ", field.offset)?;
            }
            write!(f, "{}", field.scalar)?;
            if let Some(pointee) = &field.pointee {
                write!(f, " {pointee}")?;
            }
        }
        if !plain {
            write!(f, "; {}", self.stride)?;
        }
        f.write_str("]")
    }
}

/// Facts about a parameter.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ParamFacts {
    /// `noalias`: during the call, memory that is accessed through this pointer is accessed through no other.
    pub noalias: bool,
    /// The callee does not write through this pointer.
    pub readonly: bool,
    /// The callee does not read through this pointer.
    pub writeonly: bool,
    /// The callee keeps no copy of this pointer.
    pub nocapture: bool,
    /// The memory behind this pointer is not read after the callee returns.
    pub discarded: bool,
    /// The alignment of the pointer; 1 for unknown.
    pub align: Alignment,
    /// The smallest and largest value of an integer.
    pub range: Option<Range>,
    /// The types of the bytes behind the pointer.
    pub layout: Option<Layout>,
}

/// A power of two that an address is a multiple of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Alignment(u8);

impl Alignment {
    /// Any address.
    pub const ONE: Alignment = Alignment(0);

    /// The alignment of this many bytes, which must be a power of two.
    pub fn new(bytes: u64) -> Option<Alignment> {
        bytes
            .is_power_of_two()
            .then(|| Alignment(bytes.trailing_zeros() as u8))
    }

    /// The default alignment of a value of this type.
    pub fn natural(ty: crate::Type) -> Alignment {
        Alignment(ty.scalar().bytes().trailing_zeros() as u8)
    }

    /// In bytes.
    pub fn bytes(self) -> u64 {
        1 << self.0
    }
}

impl Default for Alignment {
    fn default() -> Alignment {
        Alignment::ONE
    }
}

/// The effects of a function on memory that existed before the call and that its caller can see.
///
/// Memory that the function allocates does not count, though the function may store or return pointers to it. But a function that does not write allocates no memory
/// that its caller can see.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum MemoryEffect {
    /// It neither reads nor writes it.
    None,
    /// It reads it.
    Read,
    /// It may read and write it, but only through addresses computed from its pointer arguments. Addresses that it finds
    /// in memory are not among these.
    Args,
    /// It may read and write it.
    #[default]
    Any,
}

impl MemoryEffect {
    /// Whether memory may be written.
    pub fn writes(self) -> bool {
        matches!(self, MemoryEffect::Args | MemoryEffect::Any)
    }

    /// Whether memory may be accessed that no argument points to.
    pub fn reaches_beyond_arguments(self) -> bool {
        matches!(self, MemoryEffect::Read | MemoryEffect::Any)
    }
}

/// Facts about a function.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FunctionFacts {
    /// Its memory effects.
    pub memory: MemoryEffect,
    /// It never returns.
    pub noreturn: bool,
    /// It always returns, without trap or endless loop, so an unused call may be removed.
    pub willreturn: bool,
    /// It is inactive: its results and writes carry no derivative.
    pub inactive: bool,
    /// It is inactive, and may write numbers and pointers that are used afterwards: as constants, which memory with a shadow cannot represent.
    pub writes_constants: bool,
    /// It must not be inlined.
    pub noinline: bool,
    /// The level of x86-64 that it is compiled for; none: that of the rest of the program. It is called only on processors that have it.
    pub level: Option<ProcessorLevel>,
}
