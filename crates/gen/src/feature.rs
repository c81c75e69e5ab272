//! Features of programs, so that a run can report its coverage.

use std::fmt;

macro_rules! features {
    ($($(#[doc = $doc:literal])+ $name:ident $text:literal,)*) => {
        /// A construct that the generator knows.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Feature { $($(#[doc = $doc])+ $name,)* }

        impl Feature {
            /// All of them.
            pub const ALL: &'static [Feature] = &[$(Feature::$name,)*];

            /// Its name in summaries.
            pub fn name(self) -> &'static str {
                match self { $(Feature::$name => $text,)* }
            }
        }
    };
}

features! {
    /// A `for` with constant bounds.
    ConstantFor "for with constant bounds",
    /// A `for` up to the parameter `%n`.
    ParameterFor "for up to a parameter",
    /// A `for` whose bounds depend on the counter of one around it.
    DependentFor "for bounded by an outer counter",
    /// A `for` that counts down.
    NegativeStep "for that counts down",
    /// A `for` that counts by more than one.
    LargeStep "for with a larger step",
    /// A `for` whose step is computed.
    ComputedStep "for with a computed step",
    /// A `for` whose counter has 32 bits.
    NarrowCounter "for with a narrow counter",
    /// A `for` that never runs.
    ZeroTrip "for that never runs",
    /// A loop inside another.
    NestedLoop "nested loops",
    /// A loop that carries a value.
    Carried "loop-carried values",
    /// A loop that carries a pointer through its memory.
    CarriedPointer "loop-carried pointer",
    /// Two arrays that a loop exchanges at each step.
    Swapped "arrays exchanged by a loop",
    /// A general `loop` that data ends.
    DataLoop "loop with a data-dependent trip count",
    /// A general `loop` with several exits.
    SeveralExits "loop with several exits",
    /// An `if` on data.
    DataIf "if on data",
    /// An `if` on a counter or parameter.
    IntIf "if on integers",
    /// An `if` with results.
    IfResult "if with results",
    /// A `switch`.
    Switch "switch",
    /// A `switch` with results.
    SwitchResult "switch with results",
    /// A branch that traps, never taken.
    Trap "trap that is never reached",
    /// A branch that stops the program in a function, never taken.
    TrapCall "trap that calls a function",
    /// A call.
    Call "call",
    /// A call with several results.
    SeveralResults "call with several results",
    /// A function that calls itself.
    Recursion "recursion",
    /// Two functions that call each other.
    MutualRecursion "mutual recursion",
    /// A function that only reads its memory.
    Reader "function that reads memory",
    /// A function that writes its memory.
    Mutator "function that writes memory",
    /// A function that returns one of its pointers.
    PointerResult "function that returns a pointer",
    /// A function that returns new memory.
    Allocator "function that returns new memory",
    /// A function that stores a pointer to memory that it makes behind an argument.
    MadeInArgument "function that makes memory behind an argument",
    /// A function that puts new memory in the place of other.
    Replaced "function that replaces memory",
    /// A function that stores one of its pointers behind another.
    Linked "function that stores a pointer it is given",
    /// A structure that owns the memory behind its pointers.
    Owner "structure that owns memory",
    /// A function called through its address.
    Indirect "indirect call",
    /// A function with a derivative rule of its own.
    CustomRule "function with a custom rule",
    /// The same array passed twice.
    AliasedCall "same array passed twice",
    /// Overlapping parts of one array passed.
    OverlappingCall "overlapping arrays passed",
    /// `noalias` on a parameter.
    Noalias "noalias",
    /// Memory updated in place.
    InPlace "in-place update",
    /// A value that is used after its memory was overwritten.
    Overwritten "value used after its memory changed",
    /// A load with an index that comes from memory.
    Gather "gather",
    /// A store with an index that comes from memory.
    Scatter "scatter",
    /// An index computed from a float.
    DataIndex "index computed from data",
    /// Heap memory.
    Heap "heap memory",
    /// Heap memory of an allocator whose free function takes the size.
    SizedRelease "release with a size",
    /// Heap memory made and released in a loop.
    HeapInLoop "heap memory in a loop",
    /// Heap memory made in a branch and used after it.
    HeapInBranch "heap memory from a branch",
    /// Stack memory.
    Stack "stack memory",
    /// Pointers stored in an array.
    PointerArray "array of pointers",
    /// Structures of a float, an integer and a pointer.
    Structure "structure in memory",
    /// Structures or arrays of pointers passed to a function.
    ObjectArgument "structure passed to a function",
    /// A pointer in memory that is overwritten.
    PointerOverwritten "pointer in memory overwritten",
    /// Memory of a global that changes.
    GlobalMemory "memory in a global",
    /// An integer in a global that changes.
    GlobalCounter "counter in a global",
    /// A product of matrices.
    MatrixProduct "matrix product",
    /// A stencil in place.
    Stencil "stencil in place",
    /// Memory that grows in a loop.
    Growing "memory that grows",
    /// A linked list.
    List "linked list",
    /// `copy`.
    Copy "copy",
    /// `move` between overlapping parts.
    Move "move",
    /// `fill`.
    Fill "fill",
    /// `copy` of structures of mixed type.
    MixedCopy "copy of mixed structures",
    /// A double moved as an integer.
    BitsMove "double moved as an integer",
    /// A double cast to an integer and back.
    Bitcast "double cast to an integer and back",
    /// `atomic_add` on a float.
    AtomicAdd "atomic add",
    /// Single precision.
    Single "single precision",
    /// Single precision in memory.
    SingleMemory "single precision in memory",
    /// Vectors.
    Vector "vector operations",
    /// `select`.
    Select "select",
    /// `select` between pointers.
    PointerSelect "select of pointers",
    /// Minimum, maximum, absolute value and similar.
    Kink "non-smooth function",
    /// Rounding functions.
    Round "rounding function",
    /// A mathematical function.
    Math "mathematical function",
    /// A constant table of floats.
    Table "constant table",
    /// Floating-point flags that allow reordering.
    FastMath "fast-math flags",
    /// An argument without derivative.
    ConstArgument "argument without derivative",
    /// Arrays of the caller that are one and the same or overlap.
    AliasedInput "inputs that alias",
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The features of a program.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Features(u128);

impl Features {
    /// Adds a feature.
    pub fn note(&mut self, feature: Feature) {
        self.0 |= 1 << feature as u32;
    }

    /// Whether a program has a feature.
    pub fn has(self, feature: Feature) -> bool {
        self.0 >> feature as u32 & 1 == 1
    }

    /// All features that a program has.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL
            .iter()
            .copied()
            .filter(move |&feature| self.has(feature))
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
