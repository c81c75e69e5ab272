//! The derivatives that the function interface is built on.
//!
//! Each is made by an attribute on a generic function that calls its first argument: the user's function, which is constant.
//! So each function that the interface is used with gets its own derivative request.

use super::Float;
use crate::{Differentiable, autodiff_forward, autodiff_reverse};

/// Number of columns of a Jacobian or Hessian that are computed in one sweep.
pub(super) const LANES: usize = 4;

/// A function from floats to one float.
#[autodiff_reverse(scalar_reverse, Const, Duplicated, Active)]
pub(super) fn scalar<T: Float, F: Fn(&[T]) -> T>(f: &F, x: &[T]) -> T {
    f(x)
}

/// A function from floats to anything.
#[autodiff_forward(value_forward, Const, Dual, Dual)]
pub(super) fn value<T: Float, F: Fn(&[T]) -> R, R: Differentiable>(f: &F, x: &[T]) -> R {
    f(x)
}

/// A function from floats to floats.
#[autodiff_forward(vector_forward, Const, Dual, Dual)]
#[autodiff_forward(vector_forward_lanes, 4, Const, Dual, Dual)]
#[autodiff_reverse(vector_reverse, Const, Duplicated, Duplicated)]
pub(super) fn vector<T: Float, F: Fn(&[T], &mut [T])>(f: &F, x: &[T], y: &mut [T]) {
    f(x, y);
}

/// The gradient of a function from floats to one float, as a function from floats to floats. It is added to
/// `gradient`.
#[autodiff_forward(gradient_forward, Const, Dual, Dual)]
#[autodiff_forward(gradient_forward_lanes, 4, Const, Dual, Dual)]
pub(super) fn gradient<T: Float, F: Fn(&[T]) -> T>(f: &F, x: &[T], gradient: &mut [T]) {
    scalar_reverse(f, x, gradient, T::ONE);
}

/// The Jacobian of a function from a few floats to a few, row by row. It is requested as a derivative with constant arguments only, which is the function itself,
/// compiled together with the reverse sweeps of its rows; they then share the primal computation.
#[autodiff_forward(run_rows, Const, Const, Const)]
pub(super) fn rows<T: Float, F: Fn(&[T; N]) -> [T; M], const N: usize, const M: usize>(
    f: &F,
    x: &[T; N],
    rows: &mut [[T; N]; M],
) {
    let f = |x: &[T], y: &mut [T]| {
        let x = x.first_chunk().expect("as many floats as a block has");
        y.copy_from_slice(&f(x));
    };
    let mut gradients = [[T::ZERO; N]; M];
    for (row, gradient) in gradients.iter_mut().enumerate() {
        let (mut values, mut seed) = ([T::ZERO; M], [T::ZERO; M]);
        seed[row] = T::ONE;
        vector_reverse(&f, x, gradient, &mut values, &mut seed);
    }
    *rows = gradients;
}
