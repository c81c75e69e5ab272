//! The table of operations. Those that compute floats from floats are in `mathematics/rows.rs`, which is a part of this table.
//!
//! From it follow the enum, the textual names, the documentation, and, through each
//! operation's [`Form`], what the builder, printer, parser and verifier do with it.
//! The textual name of an operation is its enum name in snake case.
//!
//! An operation with its own shape lists its operands in braces, in order: `..initial` is any number of operands, `?size` is optional.
//! After them come the payload, with its name, and the regions in brackets. [`OpView`](crate::OpView) has the same names, and
//! no other code knows the position of an operand.

use crate::mathematics::with_functions;
use std::fmt;

/// The operands and results of an operation, and its syntax.
///
/// `T` is the operation's type, which is written out in the text form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// `%r = op T %a`, on integers.
    IntUnary,
    /// `%r = op T %a, %b`, on integers.
    IntBinary,
    /// `%r = op T %a`, on floats.
    FloatUnary,
    /// `%r = op T %a, %b`, on floats.
    FloatBinary,
    /// `%r = op T %a, %b, %c`, on floats.
    FloatTernary,
    /// `%r = op T %a, %n`: a float and an `i32` of the same shape.
    FloatAndInt,
    /// `%n = op T %a`: a float to an `i32` of the same shape.
    FloatToExponent,
    /// `%r, %n = op T %a`: a float to a float and an `i32`.
    FloatSplit,
    /// `%r, %s = op T %a`: a float to two floats.
    FloatPair,
    /// `%c = op predicate T %a, %b`, integers or pointers to `i1`.
    IntCompare,
    /// `%c = op predicate T %a, %b`, floats to `i1`.
    FloatCompare,
    /// `%r = op T %a to U`.
    Cast,
    /// An operation with its own shape, described in the table.
    Special,
    /// An operation that holds regions.
    Structured,
    /// The last operation of a region.
    Terminator,
}

macro_rules! operations {
    (
        functions { $($(#[doc = $math_doc:literal])+ $math:ident $math_text:ident $math_form:ident $value:tt $facts:tt)* }
        $($(#[doc = $doc:literal])+ $name:ident $text:literal $form:ident $effect:ident $({ $($shape:tt)+ })?;)*
    ) => {
        /// Gives the shapes of operations that have one of their own to another macro.
        macro_rules! with_shapes {
            ($then:ident!) => {
                $then! { $($($name { $($shape)+ })?)* }
            };
        }
        pub(crate) use with_shapes;

        /// The kind of operation.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Opcode {
            $($(#[doc = $math_doc])+ $math,)*
            $($(#[doc = $doc])+ $name,)*
        }

        impl Opcode {
            /// All operations, in the order of the tables.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$math,)* $(Opcode::$name,)*];

            /// The name in the text form.
            pub fn name(self) -> &'static str {
                match self {
                    $(Opcode::$math => stringify!($math_text),)*
                    $(Opcode::$name => $text,)*
                }
            }

            /// The operation of this name.
            pub fn from_name(name: &str) -> Option<Opcode> {
                match name {
                    $(stringify!($math_text) => Some(Opcode::$math),)*
                    $($text => Some(Opcode::$name),)*
                    _ => None,
                }
            }

            /// What operands and results it takes.
            pub fn form(self) -> Form {
                match self {
                    $(Opcode::$math => form!($math_form),)*
                    $(Opcode::$name => Form::$form,)*
                }
            }

            /// Its effect besides computing its results from its operands.
            pub fn effect(self) -> Effect {
                match self {
                    $(Opcode::$math => Effect::Pure,)*
                    $(Opcode::$name => Effect::$effect,)*
                }
            }

            /// The documentation of the table's row.
            pub fn documentation(self) -> &'static str {
                match self {
                    $(Opcode::$math => concat!($($math_doc, "\n",)+),)*
                    $(Opcode::$name => concat!($($doc, "\n",)+),)*
                }
            }
        }
    };
}

/// The form of a function, by how it is computed (`MathValue`).
macro_rules! form {
    (Composite) => {
        Form::FloatUnary
    };
    (CompositeBinary) => {
        Form::FloatBinary
    };
    (IntAndFloat) => {
        Form::FloatAndInt
    };
    ($form:ident) => {
        Form::$form
    };
}

/// The effect of an operation besides computing its results from its operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// Nothing: it may be repeated, moved and removed. It cannot fail.
    Pure,
    /// As `Pure`, but some operands make it undefined (division by zero): it must not run where it did not before.
    Partial,
    /// It reads memory.
    Read,
    /// It writes memory (and may read it).
    Write,
    /// It makes new memory.
    Allocate,
    /// It ends the life of memory.
    Release,
    /// The effect of its callee.
    Call,
    /// The effects of its regions.
    Regions,
    /// It ends a region.
    Ends,
}

with_functions! { operations! {
    // ---- integers: all wrap around, as two's complement does

    /// Sum.
    Add "add" IntBinary Pure;
    /// Difference.
    Sub "sub" IntBinary Pure;
    /// Product.
    Mul "mul" IntBinary Pure;
    /// Signed quotient, rounded towards zero. Undefined for a zero divisor and for overflow.
    Sdiv "sdiv" IntBinary Partial;
    /// Unsigned quotient. Undefined for a zero divisor.
    Udiv "udiv" IntBinary Partial;
    /// Signed remainder with the sign of the dividend. Undefined for a zero divisor and for overflow.
    Srem "srem" IntBinary Partial;
    /// Unsigned remainder. Undefined for a zero divisor.
    Urem "urem" IntBinary Partial;
    /// Shift left. The result is `undef` where the amount is not less than the width.
    Shl "shl" IntBinary Pure;
    /// Shift right, filling with zeros. As `shl` for large amounts.
    Lshr "lshr" IntBinary Pure;
    /// Shift right, filling with the sign. As `shl` for large amounts.
    Ashr "ashr" IntBinary Pure;
    /// Bitwise and.
    And "and" IntBinary Pure;
    /// Bitwise or.
    Or "or" IntBinary Pure;
    /// Bitwise exclusive or.
    Xor "xor" IntBinary Pure;
    /// The smaller of two signed integers.
    Smin "smin" IntBinary Pure;
    /// The larger of two signed integers.
    Smax "smax" IntBinary Pure;
    /// The smaller of two unsigned integers.
    Umin "umin" IntBinary Pure;
    /// The larger of two unsigned integers.
    Umax "umax" IntBinary Pure;
    /// The number of one bits.
    Ctpop "ctpop" IntUnary Pure;
    /// The number of leading zero bits; the width for zero.
    Ctlz "ctlz" IntUnary Pure;
    /// The number of trailing zero bits; the width for zero.
    Cttz "cttz" IntUnary Pure;
    /// The bytes in opposite order. The width is a multiple of 16.
    Bswap "bswap" IntUnary Pure;
    /// The bits in opposite order.
    Bitreverse "bitreverse" IntUnary Pure;
    /// The number itself; where it is undefined some number, the same for all who use the result.
    Freeze "freeze" IntUnary Pure;
    /// Comparison of integers or addresses.
    Icmp "icmp" IntCompare Pure;

    /// Comparison of floats.
    Fcmp "fcmp" FloatCompare Pure;

    // ---- casts

    /// The low bits.
    TruncInt "trunc_int" Cast Pure;
    /// Wider, filled with zeros.
    Zext "zext" Cast Pure;
    /// Wider, filled with the sign.
    Sext "sext" Cast Pure;
    /// To a narrower float.
    Fptrunc "fptrunc" Cast Pure;
    /// To a wider float.
    Fpext "fpext" Cast Pure;
    /// Float to signed integer, towards zero. `undef` out of range.
    Fptosi "fptosi" Cast Pure;
    /// Float to unsigned integer, towards zero. `undef` out of range.
    Fptoui "fptoui" Cast Pure;
    /// Float to signed integer, towards zero, limited to its range; 0 for NaN: Rust's `as`.
    FptosiSat "fptosi_sat" Cast Pure;
    /// Float to unsigned integer, towards zero, limited to its range; 0 for NaN: Rust's `as`.
    FptouiSat "fptoui_sat" Cast Pure;
    /// Signed integer to float.
    Sitofp "sitofp" Cast Pure;
    /// Unsigned integer to float.
    Uitofp "uitofp" Cast Pure;
    /// The same bits as another type of the same size.
    Bitcast "bitcast" Cast Pure;
    /// Address to integer.
    Ptrtoint "ptrtoint" Cast Pure;
    /// Integer to address.
    Inttoptr "inttoptr" Cast Pure;

    // ---- choice and vectors

    /// `%r = select T %c, %a, %b`: `%a` where `%c` holds. `%c` is `i1`, or a vector of `i1` with T's lanes.
    Select "select" Special Pure { (condition, then, otherwise) };
    /// `%v = splat <N x T> %a`: all lanes equal.
    Splat "splat" Special Pure { (scalar) };
    /// `%a = extract <N x T> %v, %i`: one lane; `%i` is `i64`. `undef` out of range.
    Extract "extract" Special Pure { (vector, lane) };
    /// `%w = insert <N x T> %v, %a, %i`: one lane replaced; `%i` is `i64`. `undef` out of range.
    Insert "insert" Special Pure { (vector, scalar, lane) };
    /// `%w = shuffle <N x T> %a, %b [0, 5, …]`: lanes of both, counted through.
    Shuffle "shuffle" Special Pure { (left, right) Lanes(&lanes: [u16]) };
    /// `%a = reduce_fadd <N x T> %v`: the sum of the lanes, from the first on.
    ReduceFadd "reduce_fadd" Special Pure { (vector) };

    // ---- memory

    /// `%v = load T %p align 8`.
    Load "load" Special Read { (address) Align(align: Alignment) };
    /// `store T %v, %p align 8`.
    Store "store" Special Write { (value, address) Align(align: Alignment) };
    /// `%q = offset %p, %i * 8`: the address `%p + 8·%i`; `%i` is `i64`, the scale a constant.
    Offset "offset" Special Pure { (base, index) Scale(scale: i64) };
    /// `%q = exclusive %p, %t`: the address `%p`, where a test has come out well; `%t` (an `i64`) names the test. The promise: memory that is written through one
    /// `exclusive` pointer of `%t` is not accessed through another one of the same `%t`.
    Exclusive "exclusive" Special Pure { (pointer, tested) };
    /// `%p = stack %n align 8`: `%n` bytes that live until the function returns.
    Stack "stack" Special Allocate { (size) Align(align: Alignment) };
    /// `%p = alloc %n align 8 [zeroed] [family "name"]`: `%n` bytes of the heap.
    Alloc "alloc" Special Allocate { (size) Alloc { align: Alignment, zeroed: bool, &family: str } };
    /// `free %p [, %n] [align 8] [family "name"]`: releases what `alloc` gave. Nothing happens for `null`. Allocators that
    /// need them are told the size and the alignment that the memory was asked for with.
    Free "free" Special Release { (address, ?size) Free { align: Alignment, &family: str } };
    /// `copy %to, %from, %n align 8`: `%n` bytes; the two must not overlap unless they are equal.
    Copy "copy" Special Write { (destination, source, size) Align(align: Alignment) };
    /// `move %to, %from, %n align 8`: `%n` bytes; the two may overlap.
    Move "move" Special Write { (destination, source, size) Align(align: Alignment) };
    /// `fill %to, %byte, %n align 8`: sets `%n` bytes.
    Fill "fill" Special Write { (destination, byte, size) Align(align: Alignment) };
    /// `%old = atomic_add T %p, %v align 8`: adds to memory in one step, gives what was there.
    AtomicAdd "atomic_add" Special Write { (address, value) Align(align: Alignment) };

    /// `contract add f64 %c, %a, %b, %factor over left %m (%c_m, %a_m), right %n (%c_n, %b_n), sum %k (%a_k, %b_k) align 8`:
    /// sums of products over arrays, added to the destination `%c` or (`set`) written there; see [`Contraction`](crate::Contraction).
    Contract "contract" Special Write { (destination, left, right, factor, ..extents) Contract { align: Alignment, add: bool, &indices: [IndexClass] } };

    // ---- calls

    /// `%a, %b = call @f(%x, %y)`.
    Call "call" Special Call { (..arguments) Callee(callee: FunctionId) };
    /// `%a = call_indirect %f(f64 %x, ptr %y) -> (f64)`.
    CallIndirect "call_indirect" Special Call { (target, ..arguments) Results(&results: [Type]) };

    // ---- control

    /// `%r = if %c -> (f64) { … yield %a } else { … yield %b }`.
    If "if" Structured Regions { (condition) [then, otherwise] };
    /// `%r = switch i64 %x -> (f64) { case 0 { … } case 1, 2 { … } default { … } }`.
    Switch "switch" Structured Regions { (selector) Cases(&cases: [Box<[i128]>]) };
    /// `%r = for %i: i64 = %from to %to step %s with (%a: f64 = %a0) { … yield %a1 }`.
    ///
    /// The counter runs from `%from` by `%s` as long as it is below `%to` (above, for a negative step), all known on
    /// entry. The carried values start as given and become what the body yields; their last values are the results.
    /// `for parallel` is a loop whose iterations are meant for several threads ([`Flags::PARALLEL`](crate::Flags::PARALLEL)).
    For "for" Structured Regions { (from, to, step, ..initial) [body] };
    /// `%r = loop with (%a: f64 = %a0) { … again %c, %a1 }`: runs the body, and again while `%c` holds at its end.
    Loop "loop" Structured Regions { (..initial) [body] };
    /// `yield %a, %b`: ends a region of `if`, `switch` or `for`.
    Yield "yield" Terminator Ends { (..values) };
    /// `again %c, %a, %b`: ends the region of a `loop`.
    Again "again" Terminator Ends { (condition, ..values) };
    /// `return %a, %b`: ends the body of a function.
    Return "return" Terminator Ends { (..values) };
    /// `trap "message"` or `trap @f(%a, %b)`: the program stops here (an abort, or a panic: a call that does not come back).
    /// Ends any region. The function may read any memory; it keeps no pointer that the rest of the program could meet.
    Trap "trap" Terminator Ends { (..arguments) };
} }

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! predicates {
    ($(#[doc = $enum_doc:literal])+ $enum:ident { $($(#[doc = $doc:literal])+ $name:ident $text:literal,)* }) => {
        $(#[doc = $enum_doc])+
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $enum { $($(#[doc = $doc])+ $name,)* }

        impl $enum {
            /// All of them.
            pub const ALL: &'static [$enum] = &[$($enum::$name,)*];

            /// The name in the text form.
            pub fn name(self) -> &'static str {
                match self { $($enum::$name => $text,)* }
            }

            /// The predicate of this name.
            pub fn from_name(name: &str) -> Option<$enum> {
                match name { $($text => Some($enum::$name),)* _ => None }
            }
        }
    };
}

predicates! {
    /// How integers are compared.
    IntPredicate {
        /// Equal.
        Eq "eq",
        /// Not equal.
        Ne "ne",
        /// Less, signed.
        Slt "slt",
        /// Less or equal, signed.
        Sle "sle",
        /// Greater, signed.
        Sgt "sgt",
        /// Greater or equal, signed.
        Sge "sge",
        /// Less, unsigned.
        Ult "ult",
        /// Less or equal, unsigned.
        Ule "ule",
        /// Greater, unsigned.
        Ugt "ugt",
        /// Greater or equal, unsigned.
        Uge "uge",
    }
}

impl IntPredicate {
    /// What holds where this does not.
    pub fn negated(self) -> IntPredicate {
        use IntPredicate::*;
        match self {
            Eq => Ne,
            Ne => Eq,
            Slt => Sge,
            Sge => Slt,
            Sle => Sgt,
            Sgt => Sle,
            Ult => Uge,
            Uge => Ult,
            Ule => Ugt,
            Ugt => Ule,
        }
    }

    /// The same with the operands in opposite order.
    pub fn swapped(self) -> IntPredicate {
        use IntPredicate::*;
        match self {
            Eq | Ne => self,
            Slt => Sgt,
            Sgt => Slt,
            Sle => Sge,
            Sge => Sle,
            Ult => Ugt,
            Ugt => Ult,
            Ule => Uge,
            Uge => Ule,
        }
    }

    /// Whether another comparison of the same operands holds wherever this one does.
    pub fn implies(self, other: IntPredicate) -> bool {
        use IntPredicate::*;
        self == other
            || match self {
                Eq => matches!(other, Sle | Sge | Ule | Uge),
                Slt => matches!(other, Sle | Ne),
                Sgt => matches!(other, Sge | Ne),
                Ult => matches!(other, Ule | Ne),
                Ugt => matches!(other, Uge | Ne),
                Ne | Sle | Sge | Ule | Uge => false,
            }
    }
}

predicates! {
    /// How floats are compared. `o…` is false where an operand is NaN, `u…` is true there.
    FloatPredicate {
        /// Equal.
        Oeq "oeq",
        /// Greater.
        Ogt "ogt",
        /// Greater or equal.
        Oge "oge",
        /// Less.
        Olt "olt",
        /// Less or equal.
        Ole "ole",
        /// Not equal.
        One "one",
        /// Neither is NaN.
        Ord "ord",
        /// Equal or NaN.
        Ueq "ueq",
        /// Greater or NaN.
        Ugt "ugt",
        /// Greater, equal or NaN.
        Uge "uge",
        /// Less or NaN.
        Ult "ult",
        /// Less, equal or NaN.
        Ule "ule",
        /// Not equal or NaN.
        Une "une",
        /// One is NaN.
        Uno "uno",
    }
}

impl FloatPredicate {
    /// Whether it holds for two numbers.
    pub fn holds(self, a: f64, b: f64) -> bool {
        let unordered = a.is_nan() || b.is_nan();
        match self {
            FloatPredicate::Oeq => a == b,
            FloatPredicate::Ogt => a > b,
            FloatPredicate::Oge => a >= b,
            FloatPredicate::Olt => a < b,
            FloatPredicate::Ole => a <= b,
            FloatPredicate::One => !unordered && a != b,
            FloatPredicate::Ord => !unordered,
            FloatPredicate::Ueq => unordered || a == b,
            FloatPredicate::Ugt => unordered || a > b,
            FloatPredicate::Uge => unordered || a >= b,
            FloatPredicate::Ult => unordered || a < b,
            FloatPredicate::Ule => unordered || a <= b,
            FloatPredicate::Une => a != b,
            FloatPredicate::Uno => unordered,
        }
    }
}
