//! Second derivatives, by forward mode over reverse mode.

use super::requests::{LANES, gradient_forward, gradient_forward_lanes};
use super::{Float, Input, check_length};

/// The product of the Hessian of a function that returns a float with a vector, for about the cost of two gradients: the Hessian itself is
/// not computed.
///
/// ```
/// use ferrozyme::hvp;
///
/// // f = x² y, so its Hessian is [[2y, 2x], [2x, 0]].
/// let product = hvp(|x| x[0] * x[0] * x[1], &[3.0, 5.0], &[1.0, 10.0]);
/// assert_eq!(product, [10.0 + 60.0, 6.0]);
/// ```
///
/// # Panics
/// If `direction` does not have the length of the point.
#[track_caller]
pub fn hvp<X, F>(f: F, x: X, direction: impl Input<Scalar = X::Scalar>) -> X::Owned
where
    X: Input,
    F: Fn(X::Argument<'_>) -> X::Scalar,
{
    let mut gradient = x.zeros();
    let mut product = x.zeros();
    let (gradient_slice, product_slice) =
        (X::owned_slice(&mut gradient), X::owned_slice(&mut product));
    hvp_into(f, x, direction, gradient_slice, product_slice);
    product
}

/// The product of the Hessian of a function that returns a float with a vector, and the gradient, written to the caller's memory.
/// Both are overwritten. Nothing is allocated besides the function's own allocations.
///
/// ```
/// use ferrozyme::hvp_into;
///
/// let (mut gradient, mut product) = ([0.0; 2], [0.0; 2]);
/// hvp_into(|x| x[0] * x[0] * x[1], &[3.0, 5.0], &[1.0, 10.0], &mut gradient, &mut product);
/// assert_eq!(gradient, [30.0, 9.0]);
/// assert_eq!(product, [70.0, 6.0]);
/// ```
///
/// # Panics
/// If `direction`, `gradient` or `product` do not have the length of the point.
#[track_caller]
pub fn hvp_into<X, F>(
    f: F,
    x: X,
    direction: impl Input<Scalar = X::Scalar>,
    gradient: &mut [X::Scalar],
    product: &mut [X::Scalar],
) where
    X: Input,
    F: Fn(X::Argument<'_>) -> X::Scalar,
{
    let (x, direction) = (x.as_slice(), direction.as_slice());
    check_length("direction", direction.len(), x.len(), "the point");
    check_length("gradient", gradient.len(), x.len(), "the gradient");
    check_length("product", product.len(), x.len(), "the product");
    gradient.fill(X::Scalar::ZERO);
    product.fill(X::Scalar::ZERO);
    let f = |x: &[X::Scalar]| f(X::argument(x));
    gradient_forward(&f, x, direction, gradient, product);
}

/// The Hessian of a function that returns a float: its matrix of second derivatives.
///
/// ```
/// use ferrozyme::hessian;
///
/// assert_eq!(hessian(|x: f64| x * x * x, 2.0), 12.0);
/// assert_eq!(hessian(|[x, y]| x * x * y, [3.0, 5.0]), [[10.0, 6.0], [6.0, 0.0]]);
/// ```
#[track_caller]
pub fn hessian<X, F>(f: F, x: X) -> X::Hessian
where
    X: Input,
    F: Fn(X::Argument<'_>) -> X::Scalar,
{
    let count = x.as_slice().len();
    let mut hessian = vec![X::Scalar::ZERO; count * count];
    hessian_into(f, x, &mut hessian);
    X::collect((0..count).map(|row| {
        let mut owned = x.zeros();
        X::owned_slice(&mut owned).copy_from_slice(&hessian[row * count..][..count]);
        owned
    }))
}

/// The Hessian of a function that returns a float, written row-major to the caller's memory. Allocates some rows of
/// scratch memory.
///
/// ```
/// use ferrozyme::hessian_into;
///
/// let mut hessian = [0.0; 4];
/// hessian_into(|x| x[0] * x[0] * x[1], &[3.0, 5.0], &mut hessian);
/// assert_eq!(hessian, [10.0, 6.0, 6.0, 0.0]);
/// ```
///
/// # Panics
/// If `hessian` does not have the square of the length of the point.
#[track_caller]
pub fn hessian_into<X, F>(f: F, x: X, hessian: &mut [X::Scalar])
where
    X: Input,
    F: Fn(X::Argument<'_>) -> X::Scalar,
{
    let x = x.as_slice();
    let count = x.len();
    check_length("hessian", hessian.len(), count * count, "the Hessian");
    let f = |x: &[X::Scalar]| f(X::argument(x));
    let zeros = || vec![X::Scalar::ZERO; count];
    let mut gradient = zeros();
    let mut directions = [(); LANES].map(|()| zeros());
    let mut products = [(); LANES].map(|()| zeros());
    for start in (0..count).step_by(LANES) {
        let lanes = LANES.min(count - start);
        gradient.fill(X::Scalar::ZERO);
        for (lane, (direction, product)) in directions.iter_mut().zip(&mut products).enumerate() {
            direction.fill(X::Scalar::ZERO);
            product.fill(X::Scalar::ZERO);
            if lane < lanes {
                direction[start + lane] = X::Scalar::ONE;
            }
        }
        let [a, b, c, d] = &directions;
        let [pa, pb, pc, pd] = &mut products;
        gradient_forward_lanes(&f, x, a, b, c, d, &mut gradient, pa, pb, pc, pd);
        for (lane, product) in products[..lanes].iter().enumerate() {
            hessian[(start + lane) * count..][..count].copy_from_slice(product);
        }
    }
}
