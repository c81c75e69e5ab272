//! What a library function can be known to be.

use crate::allocation::AllocationFunction;
use ferrozyme_ir::{Opcode, Type};

/// Something that is known of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Known {
    /// Nothing that goes through it carries a derivative.
    Inactive,
    /// It is inactive, and gives a float. All others of that name that give floats are the program's.
    GivesFloat,
    /// It is inactive in code that this compiler made, where only the standard library calls it.
    InactiveIn(&'static str),
    /// A global variable, and nothing in it carries a derivative.
    InactiveVariable,
    /// A global variable with numbers from outside the program: nothing that is loaded from it is an address, or carries a derivative.
    HoldsNumbers,
    /// Nothing that goes through it carries a derivative, and its body is of no interest even where it can be had. Nothing here may run code that it is given: a closure would lose
    /// its derivative without a word. Formatting does, and is looked at by the driver.
    Outside,
    /// It only puts addresses together, and is looked into, although it is part of what stays outside.
    LookedInto,
    /// It shows what it is given, from this parameter on; what stands before is where the text goes.
    Shows(usize),
    /// Part of formatting, or an interface that formatting runs implementations of.
    Formatting,
    /// It writes numbers as text into memory.
    WritesText,
    /// It reads numbers from text in memory.
    ReadsText,
    /// It is told the layout of elements at run time, and has to be inlined to be understood.
    TakesLayouts,
    /// It writes what comes from outside the program into memory that it is given.
    Input(Input),
    /// It allocates or releases memory.
    Allocator(AllocationFunction),
    /// It allocates memory, and writes the address to where its first argument says.
    AllocatesInto(AllocationFunction),
    /// A mathematical function that is more or less than a row of the table of those.
    Mathematics(Variant),
    /// The C standard leaves its name to programs, which may mean something else by it.
    NotReserved,
    /// A function of C's library of the same name computes the same.
    OfC,
    /// The function with this symbol computes the same, and nothing besides (`ferrozyme/src/interface/products.rs`).
    ComputedBy(&'static str),
    /// It has a body to be differentiated in `cc/src/library.c`.
    Body,
    /// It is there so that something is linked, or known to the optimiser, and does nothing.
    Note,
    /// It gives its first argument.
    FirstArgument,
    /// An operation on integers of one type.
    Operation(Opcode),
}

/// What a function writes that gets it from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// Bytes, as they are.
    Bytes(Bytes),
    /// Numbers that are read from text, where a format says; it is the argument with this number.
    Formatted(usize),
    /// Text.
    Text,
}

/// Bytes that are written to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bytes {
    /// Which argument is the address.
    pub to: usize,
    /// Which arguments are multiplied to give the size of that memory.
    pub size: &'static [usize],
    /// How many bytes each unit of the result stands for: the argument with this number. If none, one; then a negative result means that nothing was read.
    pub unit: Option<usize>,
}

/// A mathematical function of C's library in terms of those that are operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// `ldexp` with an exponent of 64 bits.
    LongExponent,
    /// Rounds by this operation, and makes an integer of the result.
    ToInteger(Opcode),
    /// The magnitude of a complex number.
    Magnitude,
    /// The angle of a complex number.
    Angle,
    /// The remainder, and bits of the quotient behind a pointer.
    RemainderAndQuotient,
    /// A Bessel function of this order.
    OfOrder(Opcode, i32),
    /// Sine and cosine, each behind a pointer.
    SineAndCosine,
    /// `lgamma` of this type, and the sign of the gamma function behind a pointer: Rust's `ln_gamma`.
    LogGammaAndSign(Type),
}
