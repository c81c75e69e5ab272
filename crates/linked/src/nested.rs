//! Tensors as nested arrays: `[[f32; 3]; 2]` is `f32[2, 3]`, and `f32` is `f32[]`.

use ferrozyme_backend::Element;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// A number in memory.
pub trait Entry: Element {
    /// The number nearest to this one.
    fn from_f64(value: f64) -> Self;
}

/// A tensor as arrays in arrays, whose elements lie one after the other.
pub trait Nested: Sized + 'static {
    /// What it is made of.
    type Element: Entry;
    /// How many elements it has.
    const COUNT: usize;
    /// Elements as tensors, as many as there are whole ones.
    fn of_flat(elements: &[Self::Element]) -> &[Self];
    /// As [`of_flat`](Self::of_flat), to write to them.
    fn of_flat_mut(elements: &mut [Self::Element]) -> &mut [Self];
    /// Tensors as elements.
    fn flat(tensors: &[Self]) -> &[Self::Element];
}

macro_rules! numbers {
    ($($ty:ty),*) => {
        $(
            impl Entry for $ty {
                fn from_f64(value: f64) -> $ty {
                    value as $ty
                }
            }

            impl Nested for $ty {
                type Element = $ty;
                const COUNT: usize = 1;
                fn of_flat(elements: &[$ty]) -> &[$ty] {
                    elements
                }
                fn of_flat_mut(elements: &mut [$ty]) -> &mut [$ty] {
                    elements
                }
                fn flat(tensors: &[$ty]) -> &[$ty] {
                    tensors
                }
            }
        )*
    };
}

numbers! { f32, f64, i32 }

impl<T: Nested, const N: usize> Nested for [T; N] {
    type Element = T::Element;
    const COUNT: usize = N * T::COUNT;
    fn of_flat(elements: &[T::Element]) -> &[[T; N]] {
        T::of_flat(elements).as_chunks().0
    }
    fn of_flat_mut(elements: &mut [T::Element]) -> &mut [[T; N]] {
        T::of_flat_mut(elements).as_chunks_mut().0
    }
    fn flat(tensors: &[[T; N]]) -> &[T::Element] {
        T::flat(tensors.as_flattened())
    }
}

/// A tensor on the heap.
pub struct Tensor<T: Nested> {
    elements: Vec<T::Element>,
}

impl<T: Nested> Tensor<T> {
    /// Of zeros.
    pub fn zeros() -> Tensor<T> {
        Tensor {
            elements: vec![T::Element::default(); T::COUNT],
        }
    }

    /// With the elements that an iterator gives; zeros where it ends early.
    pub(crate) fn with(values: impl Iterator<Item = T::Element>) -> Tensor<T> {
        let mut tensor = Tensor::zeros();
        for (element, value) in tensor.elements.iter_mut().zip(values) {
            *element = value;
        }
        tensor
    }

    /// All elements in row-major order.
    pub fn elements(&self) -> &[T::Element] {
        &self.elements
    }
}

/// There are as many elements as one tensor has.
const WHOLE: &str = "a tensor has all its elements";

impl<T: Nested> Deref for Tensor<T> {
    type Target = T;
    fn deref(&self) -> &T {
        T::of_flat(&self.elements).first().expect(WHOLE)
    }
}

impl<T: Nested> DerefMut for Tensor<T> {
    fn deref_mut(&mut self) -> &mut T {
        T::of_flat_mut(&mut self.elements).first_mut().expect(WHOLE)
    }
}

impl<T: Nested + fmt::Debug> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_arrays_are_in_row_major_order() {
        let numbers = (0..).map(|number| number as f32);
        let mut tensor: Tensor<[[f32; 3]; 2]> = Tensor::with(numbers);
        assert_eq!(*tensor, [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]);
        tensor[1][0] = 7.0;
        assert_eq!(tensor.elements(), [0.0, 1.0, 2.0, 7.0, 4.0, 5.0]);
        assert_eq!(<[[f32; 3]; 2]>::flat(&[*tensor]), tensor.elements());
        let scalar: Tensor<i32> = Tensor::with([5].into_iter());
        assert_eq!(*scalar, 5);
    }
}
