//! Argument and result types of functions in the function interface: floats, arrays of floats, and slices.

use crate::Differentiable;

mod sealed {
    pub trait Sealed {}
}

use sealed::Sealed;

/// A floating-point number that derivatives are computed in: `f32` or `f64`.
pub trait Float: Sealed + Differentiable + Copy + PartialEq + std::fmt::Debug + 'static {
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Relative difference that two sums of the same terms may have.
    #[doc(hidden)]
    const PRECISION: f64;
    /// If the absolute values of the terms add up to less, their sum is finite.
    #[doc(hidden)]
    const LARGE: f64;

    /// A 16-bit integer as a fraction of 2¹⁶.
    #[doc(hidden)]
    fn fraction(bits: u32) -> Self;
    /// A number near this one: the larger `by`, the further away; the same for 0. For a number that is not finite, a number between ½ and 1.
    #[doc(hidden)]
    fn beside(self, bits: u32, by: usize) -> Self;
    /// As an `f64`.
    #[doc(hidden)]
    fn to_f64(self) -> f64;
    /// The sum.
    #[doc(hidden)]
    fn plus(self, other: Self) -> Self;
    /// The product.
    #[doc(hidden)]
    fn times(self, other: Self) -> Self;
}

macro_rules! floats {
    ($($float:ty, $precision:expr;)*) => {$(
        impl Sealed for $float {}

        impl Float for $float {
            const ZERO: $float = 0.0;
            const ONE: $float = 1.0;
            const PRECISION: f64 = $precision;
            const LARGE: f64 = <$float>::MAX as f64 / 2.0;

            fn fraction(bits: u32) -> $float {
                bits as $float / 65536.0
            }

            fn beside(self, bits: u32, by: usize) -> $float {
                if by > 0 && !self.is_finite() {
                    return <$float as Float>::fraction(bits);
                }
                let distance = by as $float * 1e-2 * <$float as Float>::fraction(bits);
                self + distance * (1.0 + self.abs())
            }

            fn to_f64(self) -> f64 {
                self.into()
            }

            fn plus(self, other: $float) -> $float {
                self + other
            }

            fn times(self, other: $float) -> $float {
                self * other
            }
        }

        impl Input for $float {
            type Scalar = $float;
            type Argument<'a> = $float;
            type Owned = $float;
            type Hessian = $float;

            fn as_slice(&self) -> &[$float] {
                std::slice::from_ref(self)
            }

            fn argument(slice: &[$float]) -> $float {
                slice[0]
            }

            fn zeros(&self) -> $float {
                0.0
            }

            fn owned_slice(owned: &mut $float) -> &mut [$float] {
                std::slice::from_mut(owned)
            }

            fn collect(mut rows: impl Iterator<Item = $float>) -> $float {
                rows.next().expect("one row for one float")
            }
        }

        impl Output for $float {
            type Scalar = $float;
            type Rows<Row> = Row;

            fn as_slice(&self) -> &[$float] {
                std::slice::from_ref(self)
            }

            fn from_slice(slice: &[$float]) -> $float {
                slice[0]
            }

            fn collect<Row>(mut rows: impl Iterator<Item = Row>) -> Row {
                rows.next().expect("one row for one float")
            }
        }
    )*};
}

floats! {
    f32, 1e-4;
    f64, 1e-10;
}

/// A point at which a function is differentiated. It determines the function's argument type.
///
/// | point | the function takes | a gradient is |
/// |---|---|---|
/// | `f64` or `f32` | the same | the same |
/// | `[f64; N]` | `[f64; N]` | `[f64; N]` |
/// | `&[f64; N]` | `&[f64]` | `[f64; N]` |
/// | `&[f64]`, `&Vec<f64>` | `&[f64]` | `Vec<f64>` |
///
/// The rows with `f64` hold for `f32` as well.
pub trait Input: Sealed + Copy {
    /// The type of its floats.
    type Scalar: Float;
    /// The argument type of the function.
    type Argument<'a>;
    /// The type of a gradient with respect to it.
    type Owned;
    /// A matrix with a row and a column for each of its floats.
    type Hessian;

    /// All its floats.
    fn as_slice(&self) -> &[Self::Scalar];
    /// The function's argument, from this many floats.
    fn argument(slice: &[Self::Scalar]) -> Self::Argument<'_>;
    /// A gradient of zeros.
    fn zeros(&self) -> Self::Owned;
    /// All floats of a gradient.
    fn owned_slice(owned: &mut Self::Owned) -> &mut [Self::Scalar];
    /// A matrix from its rows.
    fn collect(rows: impl Iterator<Item = Self::Owned>) -> Self::Hessian;
}

macro_rules! slices {
    ($($type:ty)*) => {$(
        impl<T: Float> Sealed for $type {}

        impl<T: Float> Input for $type {
            type Scalar = T;
            type Argument<'a> = &'a [T];
            type Owned = Vec<T>;
            type Hessian = Vec<Vec<T>>;

            fn as_slice(&self) -> &[T] {
                self
            }

            fn argument(slice: &[T]) -> &[T] {
                slice
            }

            fn zeros(&self) -> Vec<T> {
                vec![T::ZERO; self.len()]
            }

            fn owned_slice(owned: &mut Vec<T>) -> &mut [T] {
                owned
            }

            fn collect(rows: impl Iterator<Item = Vec<T>>) -> Vec<Vec<T>> {
                rows.collect()
            }
        }
    )*};
}

slices! { &[T] &Vec<T> }

/// An array of this many rows.
fn array_of_rows<Row, const N: usize>(mut rows: impl Iterator<Item = Row>) -> [Row; N] {
    std::array::from_fn(|_| rows.next().expect("one row for each float"))
}

macro_rules! arrays {
    ($($type:ty, $argument:ty, $slice:ident => $from_slice:expr;)*) => {$(
        impl<T: Float, const N: usize> Sealed for $type {}

        impl<T: Float, const N: usize> Input for $type {
            type Scalar = T;
            type Argument<'a> = $argument;
            type Owned = [T; N];
            type Hessian = [[T; N]; N];

            fn as_slice(&self) -> &[T] {
                &self[..]
            }

            fn argument($slice: &[T]) -> Self::Argument<'_> {
                $from_slice
            }

            fn zeros(&self) -> [T; N] {
                [T::ZERO; N]
            }

            fn owned_slice(owned: &mut [T; N]) -> &mut [T] {
                owned
            }

            fn collect(rows: impl Iterator<Item = [T; N]>) -> [[T; N]; N] {
                array_of_rows(rows)
            }
        }
    )*};
}

arrays! {
    &[T; N], &'a [T], slice => slice;
    [T; N], [T; N], slice => *slice.first_chunk().expect("an array's floats are as many as it is long");
}

/// The result type of a function with several results: a float, an array of floats or a vector of floats.
pub trait Output: Sized {
    /// The type of its floats.
    type Scalar: Float;
    /// A list with a row for each of its floats.
    type Rows<Row>;

    /// All its floats.
    fn as_slice(&self) -> &[Self::Scalar];
    /// A result of the same kind, from this many floats.
    fn from_slice(slice: &[Self::Scalar]) -> Self;
    /// A list of this many rows.
    fn collect<Row>(rows: impl Iterator<Item = Row>) -> Self::Rows<Row>;
}

impl<T: Float> Output for Vec<T> {
    type Scalar = T;
    type Rows<Row> = Vec<Row>;

    fn as_slice(&self) -> &[T] {
        self
    }

    fn from_slice(slice: &[T]) -> Vec<T> {
        slice.to_vec()
    }

    fn collect<Row>(rows: impl Iterator<Item = Row>) -> Vec<Row> {
        rows.collect()
    }
}

impl<T: Float, const M: usize> Output for [T; M] {
    type Scalar = T;
    type Rows<Row> = [Row; M];

    fn as_slice(&self) -> &[T] {
        self
    }

    fn from_slice(slice: &[T]) -> [T; M] {
        *slice
            .first_chunk()
            .expect("an array's floats are as many as it is long")
    }

    fn collect<Row>(rows: impl Iterator<Item = Row>) -> [Row; M] {
        array_of_rows(rows)
    }
}
