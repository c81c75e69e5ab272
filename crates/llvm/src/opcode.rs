//! Names for LLVM's numbers: opcodes, predicates, orderings, linkages.
//!
//! The numbers are those of LLVM's C interface, which promises to keep them.

macro_rules! numbered {
    ($(#[$about:meta])* $name:ident { $($case:ident = $number:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "LLVM's own names")]
        #[repr(i32)]
        pub enum $name { $($case = $number,)* }

        impl $name {
            /// The case of LLVM's number.
            pub fn of_number(number: i32) -> Option<$name> {
                match number { $($number => Some($name::$case),)* _ => None }
            }
        }
    };
}

numbered! {
    /// What an instruction does.
    Opcode {
        Ret = 1, Br = 2, Switch = 3, IndirectBr = 4, Invoke = 5, Unreachable = 7, Add = 8, FAdd = 9, Sub = 10, FSub = 11, Mul = 12, FMul = 13, UDiv = 14, SDiv = 15,
        FDiv = 16, URem = 17, SRem = 18, FRem = 19, Shl = 20, LShr = 21, AShr = 22, And = 23, Or = 24, Xor = 25, Alloca = 26, Load = 27, Store = 28, GetElementPtr = 29,
        Trunc = 30, ZExt = 31, SExt = 32, FPToUI = 33, FPToSI = 34, UIToFP = 35, SIToFP = 36, FPTrunc = 37, FPExt = 38, PtrToInt = 39, IntToPtr = 40, BitCast = 41,
        ICmp = 42, FCmp = 43, Phi = 44, Call = 45, Select = 46, VAArg = 49, ExtractElement = 50, InsertElement = 51, ShuffleVector = 52, ExtractValue = 53,
        InsertValue = 54, Fence = 55, AtomicCmpXchg = 56, AtomicRMW = 57, Resume = 58, LandingPad = 59, AddrSpaceCast = 60, CleanupRet = 61, CatchRet = 62,
        CatchPad = 63, CleanupPad = 64, CatchSwitch = 65, FNeg = 66, CallBr = 67, Freeze = 68, PtrToAddr = 69,
    }
}

numbered! {
    /// How `icmp` compares.
    IntPredicate { Eq = 32, Ne = 33, Ugt = 34, Uge = 35, Ult = 36, Ule = 37, Sgt = 38, Sge = 39, Slt = 40, Sle = 41, }
}

numbered! {
    /// How `fcmp` compares: ordered (false for NaN) or unordered (true for NaN).
    FloatPredicate {
        False = 0, Oeq = 1, Ogt = 2, Oge = 3, Olt = 4, Ole = 5, One = 6, Ord = 7, Uno = 8, Ueq = 9, Ugt = 10, Uge = 11, Ult = 12, Ule = 13, Une = 14, True = 15,
    }
}

numbered! {
    /// The ordering of an atomic access.
    Ordering { NotAtomic = 0, Unordered = 1, Monotonic = 2, Acquire = 4, Release = 5, AcquireRelease = 6, SequentiallyConsistent = 7, }
}

numbered! {
    /// What `atomicrmw` does.
    AtomicOperation {
        Exchange = 0, Add = 1, Sub = 2, And = 3, Nand = 4, Or = 5, Xor = 6, Max = 7, Min = 8, UMax = 9, UMin = 10, FAdd = 11, FSub = 12, FMax = 13, FMin = 14,
        UIncWrap = 15, UDecWrap = 16, USubCond = 17, USubSat = 18, FMaximum = 19, FMinimum = 20,
    }
}

numbered! {
    /// How a symbol is linked.
    Linkage {
        External = 0, AvailableExternally = 1, LinkOnceAny = 2, LinkOnceOdr = 3, WeakAny = 5, WeakOdr = 6, Appending = 7, Internal = 8, Private = 9, ExternalWeak = 12,
        Common = 14,
    }
}

numbered! {
    /// Who sees a symbol.
    Visibility { Default = 0, Hidden = 1, Protected = 2, }
}

numbered! {
    /// Whether the address of a symbol matters.
    UnnamedAddress { No = 0, Local = 1, Global = 2, }
}

numbered! {
    /// How a thread-local variable is reached.
    ThreadLocalMode { No = 0, GeneralDynamic = 1, LocalDynamic = 2, InitialExec = 3, LocalExec = 4, }
}

/// What may be assumed of floating-point arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FastMath(pub u32);

#[allow(missing_docs, reason = "LLVM's own names")]
impl FastMath {
    pub const REASSOCIATE: FastMath = FastMath(1);
    pub const NO_NAN: FastMath = FastMath(2);
    pub const NO_INFINITY: FastMath = FastMath(4);
    pub const NO_SIGNED_ZERO: FastMath = FastMath(8);
    pub const RECIPROCAL: FastMath = FastMath(16);
    pub const CONTRACT: FastMath = FastMath(32);
    pub const APPROXIMATE: FastMath = FastMath(64);

    /// Whether all of the other's flags are set.
    pub fn contains(self, other: FastMath) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    pub fn with(self, other: FastMath) -> FastMath {
        FastMath(self.0 | other.0)
    }
}

/// What `getelementptr` promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GepFlags(pub u32);

impl GepFlags {
    /// No promise.
    pub const NONE: GepFlags = GepFlags(0);
    /// The result stays within the object (this implies `nusw`).
    pub const INBOUNDS: GepFlags = GepFlags(1 | 2);
    /// No overflow when offsets count as signed.
    pub const NUSW: GepFlags = GepFlags(2);
    /// No overflow when offsets count as unsigned.
    pub const NUW: GepFlags = GepFlags(4);

    /// Whether all of the other's flags are set.
    pub fn contains(self, other: GepFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    pub fn with(self, other: GepFlags) -> GepFlags {
        GepFlags(self.0 | other.0)
    }
}
