//! The value of a tensor.

use crate::payload::Literal;
use crate::types::{CONDITION, INDEX, Shape, TensorType};
use ferrozyme_ir::{Scalar, float_from_bits, float_to_bits};
use std::fmt;
use std::sync::Arc;

/// The value of a tensor. Two are equal when types and elements are, where all NaNs are equal.
#[derive(Clone)]
pub struct Array {
    /// Its type.
    pub ty: TensorType,
    /// Its elements in row-major order, as doubles, which represent those of all types exactly.
    pub elements: Arc<[f64]>,
}

impl Array {
    /// With these elements, which are rounded to those of the type.
    ///
    /// # Panics
    /// If their number is not that of the type.
    pub fn new(ty: TensorType, elements: Vec<f64>) -> Array {
        assert_eq!(elements.len(), ty.shape.count(), "elements of {ty}");
        let elements = elements
            .into_iter()
            .map(|value| round_to(ty.element, value))
            .collect();
        Array { ty, elements }
    }

    /// Of doubles.
    pub fn f64s(shape: impl Into<Shape>, elements: &[f64]) -> Array {
        Array::new(TensorType::new(Scalar::F64, shape), elements.to_vec())
    }

    /// One element.
    pub fn splat(element: Scalar, value: f64) -> Array {
        Array::new(TensorType::scalar(element), vec![value])
    }

    /// The value of a constant.
    pub fn from_literal(ty: &TensorType, literal: &Literal) -> Array {
        let elements = (0..ty.shape.count()).map(|position| literal.at(position));
        Array::new(ty.clone(), elements.collect())
    }

    /// The first element: the only one of a tensor without axes.
    pub fn scalar(&self) -> f64 {
        self.elements[0]
    }

    /// The element at an index.
    pub fn at(&self, index: &[usize]) -> f64 {
        self.elements[self.position(index)]
    }

    /// Where the element at an index is in row-major order.
    pub(crate) fn position(&self, index: &[usize]) -> usize {
        let strides = self.ty.shape.strides();
        index.iter().zip(&strides).map(|(at, by)| at * by).sum()
    }
}

impl PartialEq for Array {
    fn eq(&self, other: &Array) -> bool {
        let same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
        self.ty == other.ty && self.elements.iter().zip(&*other.elements).all(same)
    }
}

/// As `f32[2] [1.0, 2.0]`.
impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.ty, self.elements)
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The element of this type that a number becomes by a cast.
pub(crate) fn round_to(element: Scalar, value: f64) -> f64 {
    match element {
        CONDITION => f64::from(value != 0.0),
        INDEX => f64::from(value as i32),
        Scalar::F64 => value,
        _ => from_bits(element, to_bits(element, value)),
    }
}

/// The bits of an element.
pub(crate) fn to_bits(element: Scalar, value: f64) -> u128 {
    match element {
        CONDITION => u128::from(value != 0.0),
        INDEX => u128::from(value as i32 as u32),
        _ => float_to_bits(element, value),
    }
}

/// The element with these bits.
pub(crate) fn from_bits(element: Scalar, raw: u128) -> f64 {
    match element {
        CONDITION => raw as f64,
        INDEX => f64::from(raw as u32 as i32),
        _ => float_from_bits(element, raw).unwrap_or(f64::NAN),
    }
}
