//! Faults of a running program, and their locations.

use super::datum::Pointer;
use crate::processor::ProcessorLevel;
use crate::types::Type;
use std::fmt;

/// The kind of a fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// An access that leaves the memory its address points into.
    OutOfBounds {
        /// Where the access starts.
        address: Pointer,
        /// How many bytes it has.
        bytes: u64,
        /// Where it starts, counted from the start of the memory.
        offset: i64,
        /// How many bytes the memory has.
        size: u64,
    },
    /// An access to memory that `free` released.
    UseAfterFree {
        /// Where.
        address: Pointer,
    },
    /// An access to stack memory of a function that has returned.
    StackMemoryOutlived {
        /// Where.
        address: Pointer,
    },
    /// An access through `null`, or so close to it that it must be an offset from there.
    NullAccess {
        /// Where.
        address: Pointer,
    },
    /// An access through an address that belongs to nothing.
    WildPointer {
        /// Where.
        address: Pointer,
    },
    /// A load of uninitialised bytes.
    Uninitialised {
        /// Where the first of them is.
        address: Pointer,
    },
    /// An address that is not a multiple of the alignment which the operation promises.
    Misaligned {
        /// The address.
        address: Pointer,
        /// The promised alignment.
        align: u64,
    },
    /// A write to memory that is constant.
    WriteToConstant {
        /// Where.
        address: Pointer,
    },
    /// A second `free` of the same memory.
    DoubleFree {
        /// The freed address.
        address: Pointer,
    },
    /// A `free` of an address that is not the start of memory from `alloc`.
    InvalidFree {
        /// The freed address.
        address: Pointer,
    },
    /// A `free` by another allocator than the one that allocated the memory.
    WrongFamily {
        /// The allocator of the memory.
        allocated: Box<str>,
        /// The allocator of the `free`.
        freed: Box<str>,
    },
    /// A `free` with another size or alignment than the allocation.
    WrongSize {
        /// Size and alignment of the memory.
        allocated: (u64, u64),
        /// Size and alignment in the `free`.
        freed: (u64, u64),
    },
    /// A `copy` between places that overlap without being the same.
    OverlappingCopy {
        /// Where to.
        to: Pointer,
        /// Where from.
        from: Pointer,
        /// How many bytes.
        bytes: u64,
    },
    /// A `contract` whose destination overlaps an operand or itself.
    OverlappingContraction {
        /// An element of the destination.
        to: Pointer,
    },
    /// A body of a team touches what another one writes, or writes what another one touches.
    Race {
        /// Where.
        address: Pointer,
    },
    /// A size that is negative or larger than anything the machine has.
    AbsurdSize {
        /// The size, read as signed.
        bytes: i64,
    },
    /// More memory than the limit allows.
    OutOfMemory {
        /// The requested size.
        bytes: u64,
        /// The limit on all memory together.
        limit: u64,
    },
    /// An undefined value on which control flow or an address depends.
    UndefUsed {
        /// Its use.
        role: &'static str,
    },
    /// A division by zero.
    DivisionByZero,
    /// A signed division whose quotient has no place in the type.
    DivisionOverflow,
    /// A counted loop whose step is zero.
    ZeroStep,
    /// A value outside the range that is promised for it.
    RangeViolated {
        /// The value.
        value: i128,
        /// The promised range, printed.
        range: Box<str>,
    },
    /// The program stopped itself.
    Trap {
        /// The message.
        message: Box<str>,
    },
    /// The limit on steps was reached.
    StepLimit {
        /// The limit.
        steps: u64,
    },
    /// The limit on nested calls was reached.
    RecursionLimit {
        /// The limit.
        depth: usize,
    },
    /// A call of a function that has no body here and for which the host gave none.
    NoBody {
        /// The function.
        function: Box<str>,
    },
    /// A call through an address at which no function is.
    NotAFunction {
        /// The address.
        address: Pointer,
    },
    /// A call through an address whose function has another signature.
    WrongSignature {
        /// The function at that address.
        function: Box<str>,
    },
    /// A call of a function for a higher level than the processor has.
    ProcessorLevel {
        /// The function.
        function: Box<str>,
        /// Its level.
        level: ProcessorLevel,
    },
    /// The host gave another number of arguments than the function has parameters.
    ArgumentCount {
        /// How many it has.
        expected: usize,
        /// The number of arguments in the call.
        given: usize,
    },
    /// The host passed an argument, or one of its functions returned a result, of another type.
    TypeMismatch {
        /// The expected type.
        expected: Type,
        /// The actual type.
        given: Type,
    },
    /// A function of the host failed.
    External {
        /// The message.
        message: Box<str>,
    },
    /// Memory from `alloc` that was never released.
    Leak {
        /// How many pieces.
        count: usize,
        /// How many bytes they have together.
        bytes: u64,
    },
    /// A function violates its facts about memory.
    PromiseBroken {
        /// The function.
        function: Box<str>,
        /// The violated fact, in the text form.
        promise: &'static str,
        /// The memory that it touches; where it left a pointer, for `nocapture`; null for one that it returns.
        address: Pointer,
    },
    /// An operation that only memory, calls or control can carry out was to be evaluated alone.
    NotPure,
}

impl FaultKind {
    /// The address that is to blame, if one is.
    pub fn address(&self) -> Option<Pointer> {
        match *self {
            FaultKind::OutOfBounds { address, .. }
            | FaultKind::UseAfterFree { address }
            | FaultKind::StackMemoryOutlived { address }
            | FaultKind::NullAccess { address }
            | FaultKind::WildPointer { address }
            | FaultKind::Uninitialised { address }
            | FaultKind::Misaligned { address, .. }
            | FaultKind::WriteToConstant { address }
            | FaultKind::PromiseBroken { address, .. }
            | FaultKind::DoubleFree { address }
            | FaultKind::InvalidFree { address }
            | FaultKind::OverlappingCopy { to: address, .. }
            | FaultKind::OverlappingContraction { to: address }
            | FaultKind::Race { address } => Some(address),
            _ => None,
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::OutOfBounds {
                bytes,
                offset,
                size,
                ..
            } => write!(
                f,
                "out of bounds: {bytes} bytes at offset {offset} of memory of {size} bytes"
            ),
            FaultKind::UseAfterFree { .. } => f.write_str("use after free"),
            FaultKind::StackMemoryOutlived { .. } => {
                f.write_str("use of stack memory of a function that has returned")
            }
            FaultKind::NullAccess { address } if address.is_null() => {
                f.write_str("access through null")
            }
            FaultKind::NullAccess { address } => write!(f, "access through null + {}", address.0),
            FaultKind::WildPointer { address } => {
                write!(f, "access through {address}, which points to nothing")
            }
            FaultKind::Uninitialised { .. } => f.write_str("read of uninitialised memory"),
            FaultKind::Misaligned { address, align } => {
                write!(f, "misaligned: {address} is not a multiple of {align}")
            }
            FaultKind::WriteToConstant { .. } => f.write_str("write to constant memory"),
            FaultKind::DoubleFree { .. } => f.write_str("double free"),
            FaultKind::InvalidFree { address } => {
                write!(
                    f,
                    "free of {address}, which is not the start of memory from alloc"
                )
            }
            FaultKind::WrongFamily { allocated, freed } => write!(
                f,
                "memory from allocator {allocated:?} is given back to allocator {freed:?}"
            ),
            FaultKind::WrongSize { allocated, freed } => write!(
                f,
                "memory of {} bytes, aligned to {}, is released as {} bytes, aligned to {}",
                allocated.0, allocated.1, freed.0, freed.1
            ),
            FaultKind::OverlappingCopy { to, from, bytes } => write!(
                f,
                "copy of {bytes} bytes from {from} to {to}: the two overlap (`move` may do that)"
            ),
            FaultKind::OverlappingContraction { to } => write!(
                f,
                "the element of a contraction at {to} overlaps an operand or another element"
            ),
            FaultKind::Race { .. } => f.write_str(
                "race: another body of the team touches this memory, and one of them writes",
            ),
            FaultKind::AbsurdSize { bytes } => write!(f, "absurd size: {bytes} bytes"),
            FaultKind::OutOfMemory { bytes, limit } => write!(
                f,
                "out of memory: {bytes} bytes more would pass the limit of {limit}"
            ),
            FaultKind::UndefUsed { role } => write!(f, "undefined value used as {role}"),
            FaultKind::DivisionByZero => f.write_str("division by zero"),
            FaultKind::DivisionOverflow => f.write_str("signed division overflows"),
            FaultKind::ZeroStep => f.write_str("counted loop with step zero"),
            FaultKind::RangeViolated { value, range } => {
                write!(f, "value {value} is outside the promised range {range}")
            }
            FaultKind::Trap { message } => write!(f, "trap: {message}"),
            FaultKind::StepLimit { steps } => write!(f, "step limit of {steps} reached"),
            FaultKind::RecursionLimit { depth } => {
                write!(f, "more than {depth} calls are nested")
            }
            FaultKind::NoBody { function } => {
                write!(f, "call of @{function}, which has no body")
            }
            FaultKind::NotAFunction { address } => {
                write!(f, "call through {address}, where no function is")
            }
            FaultKind::WrongSignature { function } => {
                write!(f, "call of @{function} with another signature than it has")
            }
            FaultKind::ProcessorLevel { function, level } => {
                write!(f, "call of @{function} on a processor below x86-64-{level}")
            }
            FaultKind::ArgumentCount { expected, given } => {
                write!(f, "{given} arguments for {expected} parameters")
            }
            FaultKind::TypeMismatch { expected, given } => {
                write!(f, "a value of type {given} where {expected} belongs")
            }
            FaultKind::External { message } => f.write_str(message),
            FaultKind::Leak { count, bytes } => {
                write!(
                    f,
                    "{bytes} bytes in {count} pieces of memory were never freed"
                )
            }
            FaultKind::PromiseBroken {
                function, promise, ..
            } => write!(f, "@{function} breaks its promise `{promise}`"),
            FaultKind::NotPure => f.write_str("the operation is not a computation on values alone"),
        }
    }
}

/// What went wrong and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// Where; none when the host itself is at fault, before anything ran.
    pub place: Option<Box<Place>>,
    /// Further information, such as where the memory was allocated.
    pub notes: Vec<String>,
}

/// Where something went wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The function, without `@`.
    pub function: String,
    /// The operation, as the text form has it.
    pub operation: String,
    /// Its source location, if known.
    pub location: Option<String>,
    /// The call stack, from the function above to the one that the host called.
    pub calls: Vec<String>,
}

impl Fault {
    /// A fault without a place.
    pub fn of(kind: FaultKind) -> Fault {
        Fault {
            kind,
            place: None,
            notes: Vec::new(),
        }
    }
}

impl From<FaultKind> for Fault {
    fn from(kind: FaultKind) -> Fault {
        Fault::of(kind)
    }
}

/// How many callers a printed fault lists before it says only how many more there are.
const CALLS_SHOWN: usize = 16;

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(place) = &self.place {
            write!(f, "\n  in @{}: {}", place.function, place.operation)?;
            if let Some(location) = &place.location {
                write!(f, "\n  at {location}")?;
            }
            for caller in place.calls.iter().skip(1).take(CALLS_SHOWN) {
                write!(f, "\n  called by @{caller}")?;
            }
            if place.calls.len() > CALLS_SHOWN + 1 {
                write!(f, "\n  and {} more", place.calls.len() - CALLS_SHOWN - 1)?;
            }
        }
        for note in &self.notes {
            write!(f, "\n  note: {note}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
impl std::error::Error for FaultKind {}
