//! Types of values: scalars, pointers, and short vectors of either.
//!
//! Aggregates do not exist here. A front end that has them splits them into
//! their scalars or keeps them in memory.

use std::fmt;

/// The type of one lane of a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scalar {
    /// An integer of 1 to 128 bits, without a sign of its own: signedness belongs to operations.
    Int(u8),
    /// IEEE half precision.
    F16,
    /// The upper half of an `f32`.
    Bf16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// An address of 64 bits.
    Ptr,
}

impl Scalar {
    /// How many bits a value of this type has.
    pub fn bits(self) -> u32 {
        match self {
            Scalar::Int(bits) => u32::from(bits),
            Scalar::F16 | Scalar::Bf16 => 16,
            Scalar::F32 => 32,
            Scalar::F64 | Scalar::Ptr => 64,
        }
    }

    /// How many bytes a load or store of this type touches.
    pub fn bytes(self) -> u64 {
        u64::from(self.bits().div_ceil(8))
    }

    /// Whether this is one of the floating-point types.
    pub fn is_float(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64)
    }

    /// Whether this is an integer type.
    pub fn is_int(self) -> bool {
        matches!(self, Scalar::Int(_))
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Int(bits) => write!(f, "i{bits}"),
            Scalar::F16 => f.write_str("f16"),
            Scalar::Bf16 => f.write_str("bf16"),
            Scalar::F32 => f.write_str("f32"),
            Scalar::F64 => f.write_str("f64"),
            Scalar::Ptr => f.write_str("ptr"),
        }
    }
}

/// The type of a value: a scalar, or a vector of a fixed number of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Type {
    scalar: Scalar,
    /// 0 for a plain scalar; a vector of one lane is a different type from its scalar, as in LLVM.
    lanes: u16,
}

impl Type {
    /// One bit: the type of conditions.
    pub const I1: Type = Type::scalar_of(Scalar::Int(1));
    /// A byte.
    pub const I8: Type = Type::scalar_of(Scalar::Int(8));
    /// 16 bits.
    pub const I16: Type = Type::scalar_of(Scalar::Int(16));
    /// 32 bits.
    pub const I32: Type = Type::scalar_of(Scalar::Int(32));
    /// 64 bits: the type of indices, sizes and trip counts.
    pub const I64: Type = Type::scalar_of(Scalar::Int(64));
    /// 128 bits.
    pub const I128: Type = Type::scalar_of(Scalar::Int(128));
    /// Half precision.
    pub const F16: Type = Type::scalar_of(Scalar::F16);
    /// Brain float.
    pub const BF16: Type = Type::scalar_of(Scalar::Bf16);
    /// Single precision.
    pub const F32: Type = Type::scalar_of(Scalar::F32);
    /// Double precision.
    pub const F64: Type = Type::scalar_of(Scalar::F64);
    /// An address.
    pub const PTR: Type = Type::scalar_of(Scalar::Ptr);

    /// The plain type of one scalar.
    pub const fn scalar_of(scalar: Scalar) -> Type {
        Type { scalar, lanes: 0 }
    }

    /// A vector of `lanes` scalars; at least one.
    pub const fn vector_of(scalar: Scalar, lanes: u16) -> Type {
        assert!(lanes > 0);
        Type { scalar, lanes }
    }

    /// The type of each lane.
    pub const fn scalar(self) -> Scalar {
        self.scalar
    }

    /// How many lanes there are: 1 for a plain scalar.
    pub fn lanes(self) -> u16 {
        self.lanes.max(1)
    }

    /// Whether this is a vector type.
    pub fn is_vector(self) -> bool {
        self.lanes > 0
    }

    /// The same shape (scalar or vector) with another type of lane.
    pub fn with_scalar(self, scalar: Scalar) -> Type {
        Type {
            scalar,
            lanes: self.lanes,
        }
    }

    /// The type of one lane, as a type of its own.
    pub fn lane_type(self) -> Type {
        Type::scalar_of(self.scalar)
    }

    /// How many bytes a value takes in memory.
    pub fn bytes(self) -> u64 {
        self.scalar.bytes() * u64::from(self.lanes())
    }

    /// Whether the lanes are floating-point numbers.
    pub fn is_float(self) -> bool {
        self.scalar.is_float()
    }

    /// Whether the lanes are integers.
    pub fn is_int(self) -> bool {
        self.scalar.is_int()
    }

    /// Whether this is a pointer or a vector of pointers.
    pub fn is_ptr(self) -> bool {
        self.scalar == Scalar::Ptr
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_vector() {
            write!(f, "<{} x {}>", self.lanes, self.scalar)
        } else {
            self.scalar.fmt(f)
        }
    }
}
