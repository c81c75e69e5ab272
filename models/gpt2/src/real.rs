//! The numbers that the model computes with: single precision for training, double precision for checks.

use ferrozyme::Differentiable;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// `f32` or `f64`.
pub trait Real:
    Differentiable
    + Copy
    + Default
    + PartialOrd
    + Send
    + Sync
    + Sum
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + 'static
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Below every number.
    const LOWEST: Self;
    /// The number nearest to `value`.
    fn of(value: f64) -> Self;
    /// The same number in double precision.
    fn wide(self) -> f64;
    /// eˣ
    fn exp(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// √x
    fn sqrt(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
}

macro_rules! real {
    ($number:ident) => {
        impl Real for $number {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = $number::NEG_INFINITY;
            #[inline]
            fn of(value: f64) -> Self {
                value as $number
            }
            #[inline]
            fn wide(self) -> f64 {
                f64::from(self)
            }
            #[inline]
            fn exp(self) -> Self {
                self.exp()
            }
            #[inline]
            fn ln(self) -> Self {
                self.ln()
            }
            #[inline]
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            #[inline]
            fn tanh(self) -> Self {
                self.tanh()
            }
        }
    };
}

real!(f32);
real!(f64);
