//! Gradients of functions that return one float.

use super::requests::scalar_reverse;
use super::{Float, Input, check_length};

/// The gradient of a function that returns a float, at a point.
///
/// The function is a closure or a function; its captures are constant. The point is a float, an array or a slice, which
/// determines the argument type of the function (see [`Input`]).
///
/// ```
/// use ferrozyme::grad;
///
/// // d sin(x)/dx = cos(x)
/// assert_eq!(grad(|x: f64| x.sin(), 1.0), 1.0_f64.cos());
///
/// // An array by value, taken apart.
/// assert_eq!(grad(|[x, y]| x * x * y, [3.0, 4.0]), [24.0, 9.0]);
///
/// // A slice of any length, and a closure that captures.
/// let weights = [1.0, 2.0, 3.0];
/// let x = vec![1.0, 1.0, 2.0];
/// let gradient = grad(|x| x.iter().zip(&weights).map(|(x, w)| w * x * x).sum(), &x);
/// assert_eq!(gradient, [2.0, 4.0, 12.0]);
/// ```
///
/// A function that is a parameter (`impl Fn`) is wrapped in a closure with an explicit argument type:
///
/// ```
/// use ferrozyme::grad;
///
/// fn descend(f: impl Fn(&[f64]) -> f64, mut x: Vec<f64>) -> Vec<f64> {
///     for _ in 0..50 {
///         let gradient = grad(|x: &[f64]| f(x), &x);
///         x.iter_mut().zip(gradient).for_each(|(x, g)| *x -= 0.4 * g);
///     }
///     x
/// }
///
/// let lowest = descend(|x| (x[0] - 1.0).powi(2) + x[1] * x[1], vec![3.0, 2.0]);
/// assert!((lowest[0] - 1.0).abs() < 1e-9 && lowest[1].abs() < 1e-9);
/// ```
#[track_caller]
pub fn grad<X, F>(f: F, x: X) -> X::Owned
where
    X: Input,
    F: Fn(X::Argument<'_>) -> X::Scalar,
{
    value_and_grad(f, x).1
}

/// The value of a function that returns a float, and its gradient.
///
/// ```
/// use ferrozyme::value_and_grad;
///
/// let x = [1.0, 2.0, 3.0];
/// let (value, gradient) = value_and_grad(|x| x.iter().map(|x| x * x).sum(), &x);
/// assert_eq!(value, 14.0);
/// assert_eq!(gradient, [2.0, 4.0, 6.0]);
/// ```
#[track_caller]
pub fn value_and_grad<X, F>(f: F, x: X) -> (X::Scalar, X::Owned)
where
    X: Input,
    F: Fn(X::Argument<'_>) -> X::Scalar,
{
    let mut gradient = x.zeros();
    let value = value_and_grad_into(f, x, X::owned_slice(&mut gradient));
    (value, gradient)
}

/// The gradient of a function that returns a float, written to the caller's memory.
///
/// `gradient` has the length of the point, and is overwritten. Nothing is allocated besides the function's own
/// allocations.
///
/// ```
/// use ferrozyme::grad_into;
///
/// let mut gradient = [0.0; 2];
/// for x in [[1.0, 2.0], [3.0, 4.0]] {
///     grad_into(|x| x[0] * x[1], &x, &mut gradient);
///     assert_eq!(gradient, [x[1], x[0]]);
/// }
/// ```
///
/// # Panics
/// If `gradient` does not have the length of the point.
#[track_caller]
pub fn grad_into<X, F>(f: F, x: X, gradient: &mut [X::Scalar])
where
    X: Input,
    F: Fn(X::Argument<'_>) -> X::Scalar,
{
    value_and_grad_into(f, x, gradient);
}

/// The value of a function that returns a float, and its gradient written to the caller's memory.
///
/// As [`grad_into`]; returns the value.
///
/// ```
/// use ferrozyme::value_and_grad_into;
///
/// let mut gradient = [0.0; 2];
/// let value = value_and_grad_into(|x| x[0] * x[1], &[3.0, 4.0], &mut gradient);
/// assert_eq!(value, 12.0);
/// assert_eq!(gradient, [4.0, 3.0]);
/// ```
///
/// # Panics
/// If `gradient` does not have the length of the point.
#[track_caller]
pub fn value_and_grad_into<X, F>(f: F, x: X, gradient: &mut [X::Scalar]) -> X::Scalar
where
    X: Input,
    F: Fn(X::Argument<'_>) -> X::Scalar,
{
    let x = x.as_slice();
    check_length("gradient", gradient.len(), x.len(), "the gradient");
    gradient.fill(X::Scalar::ZERO);
    scalar_reverse(
        &|x: &[X::Scalar]| f(X::argument(x)),
        x,
        gradient,
        X::Scalar::ONE,
    )
}
