//! Tensors as bytes in memory.

use ferrozyme_graph::interpret::Array;
use ferrozyme_graph::user::Number;
use ferrozyme_graph::{CONDITION, INDEX, Scalar, TensorType};
use ferrozyme_ir::{float_from_bits, float_to_bits};

/// A type of numbers that a feeder may give.
pub trait Element: Number {
    /// Its bytes in memory.
    fn append_to(self, bytes: &mut Vec<u8>);
    /// The number with these bytes.
    fn from_bytes(bytes: &[u8]) -> Self;
}

macro_rules! elements {
    ($($ty:ty),*) => {
        $(
            impl Element for $ty {
                fn append_to(self, bytes: &mut Vec<u8>) {
                    bytes.extend(self.to_le_bytes());
                }
                fn from_bytes(bytes: &[u8]) -> $ty {
                    let mut own = [0; size_of::<$ty>()];
                    own.copy_from_slice(bytes);
                    <$ty>::from_le_bytes(own)
                }
            }
        )*
    };
}

elements! { f32, f64, i32 }

pub(crate) fn bytes_of_slice<T: Element>(values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(values));
    for &value in values {
        value.append_to(&mut bytes);
    }
    bytes
}

/// The bytes of a tensor.
pub fn bytes_of(value: &Array) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(value.ty.bytes());
    for &number in &*value.elements {
        append_number(value.ty.element, number, &mut bytes);
    }
    bytes
}

/// Appends the bytes of a number as an element of this type.
pub(crate) fn append_number(element: Scalar, number: f64, bytes: &mut Vec<u8>) {
    let raw = match element {
        CONDITION => u128::from(number != 0.0),
        INDEX => u128::from(number as i32 as u32),
        _ => float_to_bits(element, number),
    };
    bytes.extend_from_slice(&raw.to_le_bytes()[..element.bytes() as usize]);
}

/// The tensor with these bytes.
pub fn array_of(ty: &TensorType, bytes: &[u8]) -> Array {
    let number = |bytes: &[u8]| {
        let mut raw = [0; 16];
        raw[..bytes.len()].copy_from_slice(bytes);
        let raw = u128::from_le_bytes(raw);
        match ty.element {
            CONDITION => raw as f64,
            INDEX => f64::from(raw as u32 as i32),
            element => float_from_bits(element, raw).unwrap_or(f64::NAN),
        }
    };
    let elements = bytes[..ty.bytes()].chunks_exact(ty.element.bytes() as usize);
    Array::new(ty.clone(), elements.map(number).collect())
}
