//! Jacobians, column by column in forward mode or row by row in reverse mode.

use super::requests::{LANES, vector_forward_lanes};
use super::{Float, Input, Output, check_length, vjp_into};

/// The Jacobian of a function: a row for each float that it returns, a column for each that it takes.
///
/// Uses forward mode if there are no more columns than rows, else reverse mode. The choice is made at run time, so both are
/// compiled; [`jacobian_forward`] and [`jacobian_reverse`] compile one.
///
/// ```
/// use ferrozyme::jacobian;
///
/// // From polar to Cartesian coordinates.
/// let [by_x, by_y] = jacobian(|[r, angle]: [f64; 2]| [r * angle.cos(), r * angle.sin()], [2.0, 0.0]);
/// assert_eq!(by_x, [1.0, 0.0]);
/// assert_eq!(by_y, [0.0, 2.0]);
/// ```
#[track_caller]
pub fn jacobian<X, F, R>(f: F, x: X) -> R::Rows<X::Owned>
where
    X: Input,
    F: Fn(X::Argument<'_>) -> R,
    R: Output<Scalar = X::Scalar>,
{
    let rows = f(X::argument(x.as_slice())).as_slice().len();
    match x.as_slice().len() <= rows {
        true => jacobian_forward(f, x),
        false => jacobian_reverse(f, x),
    }
}

/// The Jacobian of a function in forward mode, several columns at a time. Suits functions that return at least as many floats as they
/// take.
///
/// ```
/// use ferrozyme::jacobian_forward;
///
/// let jacobian = jacobian_forward(|x: f64| vec![x, x * x, x * x * x], 2.0);
/// assert_eq!(jacobian, [1.0, 4.0, 12.0]);
/// ```
#[track_caller]
pub fn jacobian_forward<X, F, R>(f: F, x: X) -> R::Rows<X::Owned>
where
    X: Input,
    F: Fn(X::Argument<'_>) -> R,
    R: Output<Scalar = X::Scalar>,
{
    let mut y = f(X::argument(x.as_slice())).as_slice().to_vec();
    let mut jacobian = vec![X::Scalar::ZERO; y.len() * x.as_slice().len()];
    let f = |x: X::Argument<'_>, y: &mut [X::Scalar]| y.copy_from_slice(f(x).as_slice());
    jacobian_forward_into(f, x, &mut y, &mut jacobian);
    rows_of::<X, R>(x, y.len(), &jacobian)
}

/// The Jacobian of a function in reverse mode: one row at a time. Suits functions that return fewer floats than they take.
///
/// ```
/// use ferrozyme::jacobian_reverse;
///
/// let x = vec![1.0, 2.0, 3.0];
/// let jacobian = jacobian_reverse(|x| [x[0] * x[1], x[1] * x[2]], &x);
/// assert_eq!(jacobian, [[2.0, 1.0, 0.0], [0.0, 3.0, 2.0]]);
/// ```
#[track_caller]
pub fn jacobian_reverse<X, F, R>(f: F, x: X) -> R::Rows<X::Owned>
where
    X: Input,
    F: Fn(X::Argument<'_>) -> R,
    R: Output<Scalar = X::Scalar>,
{
    let mut y = f(X::argument(x.as_slice())).as_slice().to_vec();
    let mut jacobian = vec![X::Scalar::ZERO; y.len() * x.as_slice().len()];
    let f = |x: X::Argument<'_>, y: &mut [X::Scalar]| y.copy_from_slice(f(x).as_slice());
    jacobian_reverse_into(f, x, &mut y, &mut jacobian);
    rows_of::<X, R>(x, y.len(), &jacobian)
}

/// The rows of a row-major matrix.
fn rows_of<X: Input, R: Output>(x: X, rows: usize, matrix: &[X::Scalar]) -> R::Rows<X::Owned> {
    let columns = x.as_slice().len();
    R::collect((0..rows).map(|row| {
        let mut owned = x.zeros();
        X::owned_slice(&mut owned).copy_from_slice(&matrix[row * columns..][..columns]);
        owned
    }))
}

/// The Jacobian of a function that writes its results, in forward mode, written to the caller's memory.
///
/// `y` receives the values and `jacobian` the matrix, row after row: the derivative of `y[i]` by the float `j` of the point is at
/// `jacobian[i * columns + j]`. Allocates some columns of scratch memory.
///
/// ```
/// use ferrozyme::jacobian_forward_into;
///
/// let f = |x: &[f64], y: &mut [f64]| {
///     y[0] = x[0] * x[1];
///     y[1] = x[0] + x[1];
///     y[2] = x[1];
/// };
/// let (mut y, mut jacobian) = ([0.0; 3], [0.0; 6]);
/// jacobian_forward_into(f, &[2.0, 3.0], &mut y, &mut jacobian);
/// assert_eq!(y, [6.0, 5.0, 3.0]);
/// assert_eq!(jacobian, [3.0, 2.0, 1.0, 1.0, 0.0, 1.0]);
/// ```
///
/// # Panics
/// If `jacobian` does not have the length of `y` times that of the point.
#[track_caller]
pub fn jacobian_forward_into<X, F>(f: F, x: X, y: &mut [X::Scalar], jacobian: &mut [X::Scalar])
where
    X: Input,
    F: Fn(X::Argument<'_>, &mut [X::Scalar]),
{
    let x = x.as_slice();
    let (rows, columns) = (y.len(), x.len());
    check_length("jacobian", jacobian.len(), rows * columns, "the Jacobian");
    let f = |x: &[X::Scalar], y: &mut [X::Scalar]| f(X::argument(x), y);
    let zeros = |length| [(); LANES].map(|()| vec![X::Scalar::ZERO; length]);
    let mut directions = zeros(columns);
    let mut tangents = zeros(rows);
    if columns == 0 {
        f(x, y);
    }
    for start in (0..columns).step_by(LANES) {
        let lanes = LANES.min(columns - start);
        for (lane, direction) in directions.iter_mut().enumerate() {
            direction.fill(X::Scalar::ZERO);
            if lane < lanes {
                direction[start + lane] = X::Scalar::ONE;
            }
        }
        let [a, b, c, d] = &directions;
        // A function need not write all of `y`; elements that it does not write have no derivative.
        let [ta, tb, tc, td] = &mut tangents;
        for tangent in [&mut *ta, tb, tc, td] {
            tangent.fill(X::Scalar::ZERO);
        }
        vector_forward_lanes(&f, x, a, b, c, d, y, ta, tb, tc, td);
        for (lane, tangent) in tangents[..lanes].iter().enumerate() {
            for (row, &value) in tangent.iter().enumerate() {
                jacobian[row * columns + start + lane] = value;
            }
        }
    }
}

/// The Jacobian of a function that writes its results, in reverse mode, written to the caller's memory.
///
/// As [`jacobian_forward_into`]; allocates a row of scratch memory.
///
/// ```
/// use ferrozyme::jacobian_reverse_into;
///
/// let f = |x: &[f64], y: &mut [f64]| {
///     y[0] = x[0] * x[1] * x[2];
///     y[1] = x[0] + x[1];
/// };
/// let (mut y, mut jacobian) = ([0.0; 2], [0.0; 6]);
/// jacobian_reverse_into(f, &[2.0, 3.0, 4.0], &mut y, &mut jacobian);
/// assert_eq!(y, [24.0, 5.0]);
/// assert_eq!(jacobian, [12.0, 8.0, 6.0, 1.0, 1.0, 0.0]);
/// ```
///
/// # Panics
/// If `jacobian` does not have the length of `y` times that of the point.
#[track_caller]
pub fn jacobian_reverse_into<X, F>(f: F, x: X, y: &mut [X::Scalar], jacobian: &mut [X::Scalar])
where
    X: Input,
    F: Fn(X::Argument<'_>, &mut [X::Scalar]),
{
    let columns = x.as_slice().len();
    check_length(
        "jacobian",
        jacobian.len(),
        y.len() * columns,
        "the Jacobian",
    );
    let mut seed = vec![X::Scalar::ZERO; y.len()];
    for row in 0..y.len() {
        seed[row] = X::Scalar::ONE;
        let gradient = &mut jacobian[row * columns..][..columns];
        vjp_into(&f, x, &mut seed, y, gradient);
    }
}
