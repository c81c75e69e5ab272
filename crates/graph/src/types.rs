//! Types of tensors: an element and a shape.
//!
//! Elements are scalars of the Loop IR ([`Scalar`]): `f32`, `f64`, `i32`, and `i1` for conditions. `f16` and `bf16` are elements too. An axis has at least one element,
//! so that no operation has to say what it does with nothing.

use ferrozyme_ir::Scalar;
use smallvec::SmallVec;
use std::fmt;
use std::ops::Deref;

/// The type of conditions.
pub const CONDITION: Scalar = Scalar::Int(1);
/// The type of indices, counters and trip counts.
pub const INDEX: Scalar = Scalar::Int(32);

/// Whether tensors of this element exist.
pub fn is_element(scalar: Scalar) -> bool {
    scalar.is_float() || scalar == CONDITION || scalar == INDEX
}

/// The element of this name.
pub fn element_from_name(name: &str) -> Option<Scalar> {
    let all = [
        CONDITION,
        INDEX,
        Scalar::F16,
        Scalar::Bf16,
        Scalar::F32,
        Scalar::F64,
    ];
    all.into_iter().find(|scalar| scalar.to_string() == name)
}

/// How many elements each axis has, outermost first. A tensor without axes has one element.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(SmallVec<[usize; 4]>);

impl Shape {
    /// Without axes.
    pub fn scalar() -> Shape {
        Shape::default()
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        self.0.iter().product()
    }

    /// For each axis, the distance of neighbours along it, where elements are stored in row-major order.
    pub fn strides(&self) -> SmallVec<[usize; 4]> {
        let mut strides: SmallVec<[usize; 4]> = SmallVec::from_elem(1, self.len());
        for axis in (1..self.len()).rev() {
            strides[axis - 1] = strides[axis] * self[axis];
        }
        strides
    }

    /// All indices in row-major order.
    pub fn indices(&self) -> impl Iterator<Item = SmallVec<[usize; 4]>> + '_ {
        let strides = self.strides();
        (0..self.count()).map(move |position| {
            let coordinate = |axis: usize| position / strides[axis] % self[axis];
            (0..self.len()).map(coordinate).collect()
        })
    }

    /// Without these axes.
    pub fn without(&self, axes: &[usize]) -> Shape {
        let kept = |axis: &usize| !axes.contains(axis);
        (0..self.len())
            .filter(kept)
            .map(|axis| self[axis])
            .collect()
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(sizes: I) -> Shape {
        Shape(sizes.into_iter().collect())
    }
}

impl From<&[usize]> for Shape {
    fn from(sizes: &[usize]) -> Shape {
        Shape(SmallVec::from_slice(sizes))
    }
}

impl<const RANK: usize> From<[usize; RANK]> for Shape {
    fn from(sizes: [usize; RANK]) -> Shape {
        Shape(SmallVec::from_slice(&sizes))
    }
}

/// As `[2, 3]`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The type of a tensor.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// What its elements are.
    pub element: Scalar,
    /// How many there are along each axis.
    pub shape: Shape,
}

impl TensorType {
    /// Tensors of this element and shape.
    pub fn new(element: Scalar, shape: impl Into<Shape>) -> TensorType {
        TensorType {
            element,
            shape: shape.into(),
        }
    }

    /// Tensors of one element.
    pub fn scalar(element: Scalar) -> TensorType {
        TensorType::new(element, [])
    }

    /// The same shape with other elements.
    pub fn with_element(&self, element: Scalar) -> TensorType {
        TensorType::new(element, self.shape.clone())
    }

    /// The same elements in another shape.
    pub fn with_shape(&self, shape: impl Into<Shape>) -> TensorType {
        TensorType::new(self.element, shape)
    }

    /// How many bytes the elements take in memory.
    pub fn bytes(&self) -> usize {
        self.shape.count() * self.element.bytes() as usize
    }

    /// Whether the elements are floats, so that a derivative by them exists.
    pub fn is_float(&self) -> bool {
        self.element.is_float()
    }

    /// Why there are no tensors of this type, if there are none.
    pub fn check(&self) -> Result<(), String> {
        if !is_element(self.element) {
            return Err(format!("a tensor has no elements of type {}", self.element));
        }
        let count = self.shape.iter().try_fold(1usize, |count, &size| {
            count.checked_mul(size).filter(|&count| count > 0)
        });
        let bytes = count.and_then(|count| count.checked_mul(8));
        match bytes {
            Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
            _ => Err(format!(
                "{self} is no type: each axis has at least one element, and all fit in memory"
            )),
        }
    }
}

/// As `f32[2, 3]`.
impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.element, self.shape)
    }
}

impl fmt::Debug for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_stored_row_by_row() {
        let shape = Shape::from([2, 3]);
        assert_eq!(shape.strides()[..], [3, 1]);
        let indices: Vec<_> = shape.indices().map(|index| (index[0], index[1])).collect();
        assert_eq!(indices, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
        assert_eq!(Shape::scalar().indices().count(), 1);
    }

    #[test]
    fn types_that_do_not_exist_say_so() {
        let empty = TensorType::new(Scalar::F32, [2, 0]);
        assert!(empty.check().unwrap_err().contains("f32[2, 0] is no type"));
        let huge = TensorType::new(Scalar::F32, [usize::MAX, 2]);
        assert!(huge.check().is_err());
        assert!(TensorType::scalar(Scalar::Ptr).check().is_err());
        for element in ["i1", "i32", "f16", "bf16", "f32", "f64"] {
            let scalar = element_from_name(element).expect("it exists");
            assert_eq!(TensorType::scalar(scalar).check(), Ok(()));
        }
    }
}
