//! Values as the interpreter sees them: bits, possibly undefined, with or without their type.

use crate::function::{Constant, float_from_bits, float_to_bits, ones, sign_extend};
use crate::types::{Scalar, Type};
use std::fmt;

/// An address in the interpreter's memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Pointer(pub u64);

impl Pointer {
    /// The address 0.
    pub const NULL: Pointer = Pointer(0);

    /// The address this many bytes further on.
    pub fn offset(self, bytes: i64) -> Pointer {
        Pointer(self.0.wrapping_add_signed(bytes))
    }

    /// Whether this is the address 0.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_null() {
            f.write_str("null")
        } else {
            write!(f, "{:#x}", self.0)
        }
    }
}

/// The bits of a value whose type is known from elsewhere.
///
/// Bits above the width of the type are zero, as in [`Constant::Bits`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Bits {
    /// No value in particular, in any lane.
    #[default]
    Undef,
    /// A scalar.
    Scalar(u128),
    /// The lanes of a vector, at least one of them defined.
    Lanes(Box<[Option<u128>]>),
}

impl Bits {
    /// A scalar, or none in particular.
    pub fn from_scalar(raw: Option<u128>) -> Bits {
        raw.map_or(Bits::Undef, Bits::Scalar)
    }

    /// A vector of these lanes.
    pub fn from_lanes(lanes: Box<[Option<u128>]>) -> Bits {
        if lanes.iter().all(Option::is_none) {
            Bits::Undef
        } else {
            Bits::Lanes(lanes)
        }
    }

    /// The bits of a constant of this type; none for addresses of functions and globals, which are not known here.
    pub fn from_constant(ty: Type, constant: &Constant) -> Option<Bits> {
        match constant {
            Constant::Bits(raw) if ty.is_vector() => Some(Bits::Lanes(
                vec![Some(*raw); usize::from(ty.lanes())].into_boxed_slice(),
            )),
            Constant::Bits(raw) => Some(Bits::Scalar(*raw)),
            Constant::Lanes(lanes) => Some(Bits::Lanes(lanes.iter().copied().map(Some).collect())),
            Constant::Undef => Some(Bits::Undef),
            Constant::Global(_) | Constant::Function(_) => None,
        }
    }

    /// The constant with these bits; none for a vector of which only some lanes are defined.
    pub fn to_constant(&self) -> Option<Constant> {
        match self {
            Bits::Undef => Some(Constant::Undef),
            Bits::Scalar(raw) => Some(Constant::Bits(*raw)),
            Bits::Lanes(lanes) => {
                let lanes = lanes.iter().copied().collect::<Option<Box<[u128]>>>()?;
                let first = *lanes.first()?;
                if lanes.iter().all(|&lane| lane == first) {
                    Some(Constant::Bits(first))
                } else {
                    Some(Constant::Lanes(lanes))
                }
            }
        }
    }

    /// One lane (the only lane of a scalar is number 0); none where it is undefined.
    pub fn lane(&self, index: usize) -> Option<u128> {
        match self {
            Bits::Undef => None,
            Bits::Scalar(raw) => (index == 0).then_some(*raw),
            Bits::Lanes(lanes) => lanes.get(index).copied().flatten(),
        }
    }
}

/// A value with its type: what goes into and comes out of a [`Machine`](super::Machine).
///
/// Two are equal when type and bits are, except that all NaNs are equal.
#[derive(Clone, Debug)]
pub struct Datum {
    /// The type.
    pub ty: Type,
    /// The bits.
    pub bits: Bits,
}

impl Datum {
    /// A scalar with these bits; those above its width are dropped.
    pub fn scalar(scalar: Scalar, raw: u128) -> Datum {
        Datum {
            ty: Type::scalar_of(scalar),
            bits: Bits::Scalar(raw & ones(scalar.bits())),
        }
    }

    /// An integer of any width, taken modulo it.
    pub fn int(bits: u8, value: i128) -> Datum {
        Datum::scalar(Scalar::Int(bits), value as u128)
    }

    /// A truth value.
    pub fn i1(value: bool) -> Datum {
        Datum::int(1, i128::from(value))
    }

    /// A byte.
    pub fn i8(value: i8) -> Datum {
        Datum::int(8, i128::from(value))
    }

    /// An integer of 32 bits.
    pub fn i32(value: i32) -> Datum {
        Datum::int(32, i128::from(value))
    }

    /// An integer of 64 bits.
    pub fn i64(value: i64) -> Datum {
        Datum::int(64, i128::from(value))
    }

    /// A float of any of the floating-point types, rounded to it; none for other types.
    pub fn float(scalar: Scalar, value: f64) -> Option<Datum> {
        scalar
            .is_float()
            .then(|| Datum::scalar(scalar, float_to_bits(scalar, value)))
    }

    /// A single-precision float.
    pub fn f32(value: f32) -> Datum {
        Datum::scalar(Scalar::F32, u128::from(value.to_bits()))
    }

    /// A double-precision float.
    pub fn f64(value: f64) -> Datum {
        Datum::scalar(Scalar::F64, u128::from(value.to_bits()))
    }

    /// An address.
    pub fn ptr(pointer: Pointer) -> Datum {
        Datum::scalar(Scalar::Ptr, u128::from(pointer.0))
    }

    /// No value in particular.
    pub fn undef(ty: Type) -> Datum {
        Datum {
            ty,
            bits: Bits::Undef,
        }
    }

    /// A vector of these lanes; none if there are no lanes or more than a type can have.
    pub fn vector(scalar: Scalar, lanes: &[Option<u128>]) -> Option<Datum> {
        let count = u16::try_from(lanes.len()).ok().filter(|&count| count > 0)?;
        let mask = ones(scalar.bits());
        Some(Datum {
            ty: Type::vector_of(scalar, count),
            bits: Bits::from_lanes(
                lanes
                    .iter()
                    .map(|lane| lane.map(|raw| raw & mask))
                    .collect(),
            ),
        })
    }

    /// A vector of doubles; none as for [`Datum::vector`].
    pub fn f64s(lanes: &[f64]) -> Option<Datum> {
        let lanes: Vec<_> = lanes
            .iter()
            .map(|lane| Some(u128::from(lane.to_bits())))
            .collect();
        Datum::vector(Scalar::F64, &lanes)
    }

    /// Whether no lane is defined.
    pub fn is_undef(&self) -> bool {
        self.bits == Bits::Undef
    }

    /// The bits of a defined scalar.
    pub fn raw(&self) -> Option<u128> {
        match self.bits {
            Bits::Scalar(raw) => Some(raw),
            _ => None,
        }
    }

    /// The number that a defined scalar float of any precision is.
    pub fn as_float(&self) -> Option<f64> {
        float_from_bits(self.ty.scalar(), self.raw()?)
    }

    /// The number that a defined `f64` is.
    pub fn as_f64(&self) -> Option<f64> {
        (self.ty == Type::F64).then(|| self.as_float())?
    }

    /// The number that a defined `f32` is.
    pub fn as_f32(&self) -> Option<f32> {
        (self.ty == Type::F32).then(|| self.raw().map(|raw| f32::from_bits(raw as u32)))?
    }

    /// The number that a defined scalar integer is, read as signed.
    pub fn as_int(&self) -> Option<i128> {
        match self.ty.scalar() {
            Scalar::Int(bits) => Some(sign_extend(self.raw()?, u32::from(bits))),
            _ => None,
        }
    }

    /// The number that a defined `i64` is, read as signed.
    pub fn as_i64(&self) -> Option<i64> {
        (self.ty == Type::I64).then(|| self.as_int().map(|value| value as i64))?
    }

    /// The truth value that a defined `i1` is.
    pub fn as_bool(&self) -> Option<bool> {
        (self.ty == Type::I1).then(|| self.raw().map(|raw| raw != 0))?
    }

    /// The address that a defined pointer is.
    pub fn as_ptr(&self) -> Option<Pointer> {
        (self.ty == Type::PTR).then(|| self.raw().map(|raw| Pointer(raw as u64)))?
    }

    /// One lane as a value of its own.
    pub fn lane(&self, index: usize) -> Datum {
        Datum {
            ty: self.ty.lane_type(),
            bits: Bits::from_scalar(self.bits.lane(index)),
        }
    }
}

impl PartialEq for Datum {
    fn eq(&self, other: &Datum) -> bool {
        self.ty == other.ty
            && (0..usize::from(self.ty.lanes())).all(|index| {
                let (a, b) = (self.bits.lane(index), other.bits.lane(index));
                a == b || (is_nan(self.ty.scalar(), a) && is_nan(self.ty.scalar(), b))
            })
    }
}

impl Eq for Datum {}

fn is_nan(scalar: Scalar, raw: Option<u128>) -> bool {
    raw.and_then(|raw| float_from_bits(scalar, raw))
        .is_some_and(f64::is_nan)
}

impl From<f64> for Datum {
    fn from(value: f64) -> Datum {
        Datum::f64(value)
    }
}

impl From<f32> for Datum {
    fn from(value: f32) -> Datum {
        Datum::f32(value)
    }
}

impl From<i64> for Datum {
    fn from(value: i64) -> Datum {
        Datum::i64(value)
    }
}

impl From<i32> for Datum {
    fn from(value: i32) -> Datum {
        Datum::i32(value)
    }
}

impl From<bool> for Datum {
    fn from(value: bool) -> Datum {
        Datum::i1(value)
    }
}

impl From<Pointer> for Datum {
    fn from(value: Pointer) -> Datum {
        Datum::ptr(value)
    }
}

impl fmt::Display for Datum {
    /// Writes the value as the text form writes constants: `1.5`, `-3`, `null`, `undef`, `<1.0, undef>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.ty.is_vector() || self.is_undef() {
            return write_lane(f, self.ty.scalar(), self.bits.lane(0));
        }
        f.write_str("<")?;
        for index in 0..usize::from(self.ty.lanes()) {
            if index > 0 {
                f.write_str(", ")?;
            }
            write_lane(f, self.ty.scalar(), self.bits.lane(index))?;
        }
        f.write_str(">")
    }
}

fn write_lane(f: &mut fmt::Formatter<'_>, scalar: Scalar, raw: Option<u128>) -> fmt::Result {
    let Some(raw) = raw else {
        return f.write_str("undef");
    };
    match scalar {
        Scalar::Int(1) => write!(f, "{raw}"),
        Scalar::Int(bits) => write!(f, "{}", sign_extend(raw, u32::from(bits))),
        Scalar::Ptr => write!(f, "{}", Pointer(raw as u64)),
        // The shortest text that reads back as the same single-precision number, not as its double.
        Scalar::F32 => write_float(f, f32::from_bits(raw as u32), f32::is_nan),
        Scalar::F16 | Scalar::Bf16 | Scalar::F64 => write_float(
            f,
            float_from_bits(scalar, raw).unwrap_or(f64::NAN),
            f64::is_nan,
        ),
    }
}

fn write_float<T: fmt::Debug + Copy>(
    f: &mut fmt::Formatter<'_>,
    value: T,
    is_nan: impl Fn(T) -> bool,
) -> fmt::Result {
    if is_nan(value) {
        f.write_str("nan")
    } else {
        write!(f, "{value:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nans_are_equal_and_zeros_of_different_sign_are_not() {
        assert_eq!(Datum::f64(f64::NAN), Datum::f64(-f64::NAN));
        assert_ne!(Datum::f64(0.0), Datum::f64(-0.0));
        assert_ne!(Datum::f64(1.0), Datum::f32(1.0));
        assert_ne!(Datum::i64(0), Datum::undef(Type::I64));
    }

    #[test]
    fn values_print_as_constants_do() {
        assert_eq!(Datum::f64(1.0).to_string(), "1.0");
        assert_eq!(Datum::f32(0.1).to_string(), "0.1");
        assert_eq!(Datum::f64(f64::NEG_INFINITY).to_string(), "-inf");
        assert_eq!(Datum::i8(-3).to_string(), "-3");
        assert_eq!(Datum::i1(true).to_string(), "1");
        assert_eq!(Datum::ptr(Pointer::NULL).to_string(), "null");
        let half = Datum::vector(Scalar::Int(8), &[Some(255), None]);
        assert_eq!(half.map(|v| v.to_string()).as_deref(), Some("<-1, undef>"));
    }

    #[test]
    fn constants_convert_both_ways() {
        let ty = Type::vector_of(Scalar::Int(8), 2);
        for constant in [
            Constant::Bits(7),
            Constant::Lanes([1, 2].into()),
            Constant::Undef,
        ] {
            let bits = Bits::from_constant(ty, &constant).unwrap_or_default();
            assert_eq!(bits.to_constant(), Some(constant));
        }
    }
}
