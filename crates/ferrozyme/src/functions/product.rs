//! Products of Jacobians with vectors, from both sides.

use super::requests::{value_forward, vector_forward, vector_reverse};
use super::{Float, Input, Output, check_length};
use crate::Differentiable;

/// The value of a function, and its derivative in a direction (the product of its Jacobian with `direction`), in forward mode.
///
/// The function may return anything that is [`Differentiable`]. The second result has the same type and holds the
/// derivatives.
///
/// ```
/// use ferrozyme::jvp;
///
/// let (value, tangent) = jvp(|x: f64| x * x * x, 2.0, 1.0);
/// assert_eq!((value, tangent), (8.0, 12.0));
///
/// let x = vec![2.0, 3.0];
/// let (value, tangent) = jvp(|x| vec![x[0] * x[1], x[0] + x[1]], &x, &[1.0, 0.0]);
/// assert_eq!(value, [6.0, 5.0]);
/// assert_eq!(tangent, [3.0, 1.0]);
/// ```
///
/// # Panics
/// If `direction` does not have the length of the point.
#[track_caller]
pub fn jvp<X, F, R>(f: F, x: X, direction: impl Input<Scalar = X::Scalar>) -> (R, R)
where
    X: Input,
    F: Fn(X::Argument<'_>) -> R,
    R: Differentiable,
{
    let (x, direction) = (x.as_slice(), direction.as_slice());
    check_length("direction", direction.len(), x.len(), "the point");
    value_forward(&|x: &[X::Scalar]| f(X::argument(x)), x, direction)
}

/// The directional derivative of a function that writes its results, written to the caller's memory.
///
/// `y` receives the values and `tangent` their derivatives. Both must be as long as the function expects `y` to be.
///
/// ```
/// use ferrozyme::jvp_into;
///
/// let (mut y, mut tangent) = ([0.0; 2], [0.0; 2]);
/// let f = |x: &[f64], y: &mut [f64]| {
///     y[0] = x[0] * x[1];
///     y[1] = x[0] + x[1];
/// };
/// jvp_into(f, &[2.0, 3.0], &[1.0, 0.0], &mut y, &mut tangent);
/// assert_eq!(y, [6.0, 5.0]);
/// assert_eq!(tangent, [3.0, 1.0]);
/// ```
///
/// # Panics
/// If `direction` does not have the length of the point, or `tangent` not that of `y`.
#[track_caller]
pub fn jvp_into<X, F>(
    f: F,
    x: X,
    direction: impl Input<Scalar = X::Scalar>,
    y: &mut [X::Scalar],
    tangent: &mut [X::Scalar],
) where
    X: Input,
    F: Fn(X::Argument<'_>, &mut [X::Scalar]),
{
    let (x, direction) = (x.as_slice(), direction.as_slice());
    check_length("direction", direction.len(), x.len(), "the point");
    check_length("tangent", tangent.len(), y.len(), "`y`");
    // A function need not write all of `y`; elements that it does not write have no derivative.
    tangent.fill(X::Scalar::ZERO);
    let f = |x: &[X::Scalar], y: &mut [X::Scalar]| f(X::argument(x), y);
    vector_forward(&f, x, direction, y, tangent);
}

/// The value of a function, and the product of `seed` with its Jacobian, in reverse mode: the gradient of the sum of its
/// results, each weighted with its part of `seed`.
///
/// The function returns a float, an array or a vector, and `seed` has as many floats.
///
/// ```
/// use ferrozyme::vjp;
///
/// let x = vec![2.0, 3.0];
/// let (value, gradient) = vjp(|x| vec![x[0] * x[1], x[0] + x[1]], &x, &[1.0, 10.0]);
/// assert_eq!(value, [6.0, 5.0]);
/// assert_eq!(gradient, [13.0, 12.0]);
/// ```
///
/// # Panics
/// If the function does not return as many floats as `seed` has.
#[track_caller]
pub fn vjp<X, F, R>(f: F, x: X, seed: impl Input<Scalar = X::Scalar>) -> (R, X::Owned)
where
    X: Input,
    F: Fn(X::Argument<'_>) -> R,
    R: Output<Scalar = X::Scalar>,
{
    let mut gradient = x.zeros();
    let mut seed = seed.as_slice().to_vec();
    let mut y = vec![X::Scalar::ZERO; seed.len()];
    let f = |x: X::Argument<'_>, y: &mut [X::Scalar]| {
        y.copy_from_slice(f(x).as_slice());
    };
    vjp_into(f, x, &mut seed, &mut y, X::owned_slice(&mut gradient));
    (R::from_slice(&y), gradient)
}

/// The product of `seed` with the Jacobian of a function that writes its results, written to the caller's memory.
///
/// `y` receives the values and `gradient` is overwritten. The seed is consumed: it is zero afterwards. `seed` and `y` must be
/// as long as the function expects `y` to be.
///
/// ```
/// use ferrozyme::vjp_into;
///
/// let (mut y, mut gradient) = ([0.0; 2], [0.0; 2]);
/// let f = |x: &[f64], y: &mut [f64]| {
///     y[0] = x[0] * x[1];
///     y[1] = x[0] + x[1];
/// };
/// vjp_into(f, &[2.0, 3.0], &mut [1.0, 10.0], &mut y, &mut gradient);
/// assert_eq!(y, [6.0, 5.0]);
/// assert_eq!(gradient, [13.0, 12.0]);
/// ```
///
/// # Panics
/// If `seed` does not have the length of `y`, or `gradient` not that of the point.
#[track_caller]
pub fn vjp_into<X, F>(
    f: F,
    x: X,
    seed: &mut [X::Scalar],
    y: &mut [X::Scalar],
    gradient: &mut [X::Scalar],
) where
    X: Input,
    F: Fn(X::Argument<'_>, &mut [X::Scalar]),
{
    let x = x.as_slice();
    check_length("seed", seed.len(), y.len(), "`y`");
    check_length("gradient", gradient.len(), x.len(), "the gradient");
    gradient.fill(X::Scalar::ZERO);
    let f = |x: &[X::Scalar], y: &mut [X::Scalar]| f(X::argument(x), y);
    vector_reverse(&f, x, gradient, y, seed);
    // Elements that the function did not write keep their seed, which belongs to the old value.
    seed.fill(X::Scalar::ZERO);
}
