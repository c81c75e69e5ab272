//! Sparse Jacobians: block by block, or in as few sweeps as the columns have colours.

mod matrix;
mod pattern;

pub use matrix::SparseMatrix;
pub use pattern::Pattern;

use super::requests::{LANES, run_rows, vector_forward_lanes};
use super::{Float, Input, check_length};

/// The Jacobian of many small functions of a few floats each, taken from one long list: a sparse matrix with `M` rows for each block.
///
/// `places` gives the `N` indices into `x` that a block depends on. `f` computes the block's `M` results from these floats and from the block itself, which is
/// constant. Each row is one small reverse sweep over its block only, so the cost grows with the number of blocks, not with the length of
/// `x`. Least-squares problems have this form: bundle adjustment, pose graphs, finite elements.
///
/// ```
/// use ferrozyme::sparse_jacobian_of_blocks;
///
/// // Springs between neighbours on a line: each has a length and a target.
/// struct Spring { from: usize, to: usize, target: f64 }
/// let springs = [Spring { from: 0, to: 1, target: 1.0 }, Spring { from: 1, to: 3, target: 2.0 }];
/// let positions = [0.0, 1.5, 2.0, 4.0];
///
/// let jacobian = sparse_jacobian_of_blocks(
///     &positions,
///     springs,
///     |spring| [spring.from, spring.to],
///     |spring, [a, b]: &[f64; 2]| [(b - a) * (b - a) - spring.target],
/// );
/// assert_eq!((jacobian.rows(), jacobian.columns()), (2, 4));
/// assert_eq!(jacobian.row(0).collect::<Vec<_>>(), [(0, -3.0), (1, 3.0)]);
/// assert_eq!(jacobian.row(1).collect::<Vec<_>>(), [(1, -5.0), (3, 5.0)]);
/// ```
///
/// Rows of several kinds go into one matrix with [`SparseMatrix::push_blocks`].
///
/// # Panics
/// If a place is not less than the length of `x`.
#[track_caller]
pub fn sparse_jacobian_of_blocks<T, B, const N: usize, const M: usize>(
    x: &[T],
    blocks: impl IntoIterator<Item = B>,
    places: impl Fn(&B) -> [usize; N],
    f: impl Fn(&B, &[T; N]) -> [T; M],
) -> SparseMatrix<T>
where
    T: Float,
{
    let mut jacobian = SparseMatrix::new(x.len());
    jacobian.push_blocks(x, blocks, places, f);
    jacobian
}

impl<T: Float> SparseMatrix<T> {
    /// Adds the rows of the Jacobian of many small functions, as [`sparse_jacobian_of_blocks`] makes them.
    ///
    /// ```
    /// use ferrozyme::SparseMatrix;
    ///
    /// let x = [2.0, 3.0];
    /// let mut jacobian = SparseMatrix::new(2);
    /// // Products of two floats, then squares of one.
    /// jacobian.push_blocks(&x, [[0, 1]], |places| *places, |_, [a, b]: &[f64; 2]| [a * b]);
    /// jacobian.push_blocks(&x, 0..2, |place| [*place], |_, [a]: &[f64; 1]| [a * a]);
    /// assert_eq!(jacobian.to_dense(), [[3.0, 2.0], [4.0, 0.0], [0.0, 6.0]]);
    /// ```
    ///
    /// # Panics
    /// If a place is not less than the length of `x`, or `x` is not as long as the matrix has columns.
    #[track_caller]
    pub fn push_blocks<B, const N: usize, const M: usize>(
        &mut self,
        x: &[T],
        blocks: impl IntoIterator<Item = B>,
        places: impl Fn(&B) -> [usize; N],
        f: impl Fn(&B, &[T; N]) -> [T; M],
    ) {
        check_length("x", x.len(), self.columns(), "the matrix");
        let blocks = blocks.into_iter();
        let least = blocks.size_hint().0;
        self.reserve(M * least, N * M * least);
        for block in blocks {
            let places = places(&block);
            let mut point = [T::ZERO; N];
            for (value, &place) in point.iter_mut().zip(&places) {
                *value = match x.get(place) {
                    Some(&value) => value,
                    None => panic!("a block depends on float {place} of {}", x.len()),
                };
            }
            let mut rows = [[T::ZERO; N]; M];
            run_rows(&|x: &[T; N]| f(&block, x), &point, &mut rows);
            self.push_rows(&places, &rows);
        }
    }
}

/// The Jacobian of a function that writes its results, for a given sparsity pattern.
///
/// Columns that share no row get the same colour, and forward mode needs one direction per colour: a tridiagonal matrix takes three,
/// however large it is. [`Pattern::detect`] finds the pattern once, for all points. One more direction, through all columns, checks the result
/// at each call, so that a missing entry of the pattern is detected. Rows that are not finite at the point are checked at a point near it. Rows that are not finite there
/// either cannot be checked, and hold entries that are infinite or NaN.
///
/// `y` receives the values.
///
/// ```
/// use ferrozyme::{Pattern, sparse_jacobian};
///
/// // Each result depends on a float and its neighbours, but for the ends, where a neighbour is missing.
/// let f = |x: &[f64], y: &mut [f64]| {
///     for i in 0..x.len() {
///         let left = if i > 0 { x[i - 1] } else { 0.0 };
///         let right = if i + 1 < x.len() { x[i + 1] } else { 0.0 };
///         y[i] = x[i] * x[i] - left * right;
///     }
/// };
/// let x: Vec<f64> = (1..=100).map(f64::from).collect();
/// let mut y = vec![0.0; 100];
///
/// let pattern = Pattern::detect(f, &x, 100);
/// assert_eq!((pattern.entries(), pattern.colours()), (296, 3));
/// let jacobian = sparse_jacobian(f, &x, &mut y, &pattern);
/// assert_eq!(jacobian.row(1).collect::<Vec<_>>(), [(0, -3.0), (1, 4.0), (2, -1.0)]);
/// ```
///
/// # Panics
/// If the lengths of `x` and `y` are not those of the pattern, or if the Jacobian is not zero at this point where the pattern says that it is.
///
/// ```should_panic
/// use ferrozyme::{Pattern, sparse_jacobian};
///
/// let f = |x: &[f64], y: &mut [f64]| y[0] = x[0] * x[1];
/// let lacking = Pattern::new(2, [vec![0]]);
/// sparse_jacobian(f, &[2.0, 3.0], &mut [0.0], &lacking);
/// ```
#[track_caller]
pub fn sparse_jacobian<X, F>(
    f: F,
    x: X,
    y: &mut [X::Scalar],
    pattern: &Pattern,
) -> SparseMatrix<X::Scalar>
where
    X: Input,
    F: Fn(X::Argument<'_>, &mut [X::Scalar]),
{
    let x = x.as_slice();
    check_length("x", x.len(), pattern.columns(), "the pattern");
    check_length("y", y.len(), pattern.rows(), "the pattern");
    let f = |x: &[X::Scalar], y: &mut [X::Scalar]| f(X::argument(x), y);
    let (jacobian, mut verdicts) = checked_jacobian(&f, x, y, pattern);
    // Rows that are not finite at the point are checked at a point near it.
    for beside in 1..3 {
        if !verdicts.contains(&Verdict::Open) {
            break;
        }
        let (point, mut values) = (point_beside(x, beside), y.to_vec());
        let (_, others) = checked_jacobian(&f, &point, &mut values, pattern);
        for (verdict, other) in verdicts.iter_mut().zip(others) {
            if *verdict == Verdict::Open {
                *verdict = other;
            }
        }
    }
    let lacking = verdicts.iter().position(|&one| one == Verdict::Lacks);
    if let Some(row) = lacking {
        panic!("the pattern lacks an entry in row {row}: the Jacobian is not zero there");
    }
    jacobian
}

/// Whether a row of a Jacobian has all its entries in a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Complete,
    Lacks,
    /// It has entries that are not finite, or whose sum may overflow.
    Open,
}

/// The Jacobian at a point, and for each row whether the pattern has all its entries.
fn checked_jacobian<T: Float>(
    f: &impl Fn(&[T], &mut [T]),
    x: &[T],
    y: &mut [T],
    pattern: &Pattern,
) -> (SparseMatrix<T>, Vec<Verdict>) {
    let mut values = vec![T::ZERO; pattern.entries()];
    // The last direction goes through all columns.
    let directions = pattern.colours() + 1;
    let mut check = vec![T::ZERO; y.len()];
    let part = |column: usize, direction: usize| match direction == pattern.colours() {
        true => T::fraction(share(column)),
        false if pattern.colour(column) == direction => T::ONE,
        false => T::ZERO,
    };
    in_directions(f, x, y, directions, part, |direction, tangent| {
        if direction == pattern.colours() {
            return check.copy_from_slice(tangent);
        }
        for (row, &value) in tangent.iter().enumerate() {
            for entry in pattern.range(row) {
                if pattern.colour(pattern.places()[entry]) == direction {
                    values[entry] = value;
                }
            }
        }
    });
    let jacobian = SparseMatrix::of_pattern(pattern, values);
    let verdict = |(row, found): (usize, &T)| {
        let terms = || {
            let part = |column| T::fraction(share(column)).to_f64();
            jacobian
                .row(row)
                .map(move |(column, value)| value.to_f64() * part(column))
        };
        let (sum, size) = (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>());
        let found = found.to_f64();
        let most = T::PRECISION * (size + found.abs());
        match size.is_finite() && (found.is_finite() || size < T::LARGE) {
            false => Verdict::Open,
            true if found.is_finite() && (sum - found).abs() <= most => Verdict::Complete,
            true => Verdict::Lacks,
        }
    };
    let verdicts = check.iter().enumerate().map(verdict).collect();
    (jacobian, verdicts)
}

/// A point near another, by its number; number 0 is the point itself.
fn point_beside<T: Float>(x: &[T], beside: usize) -> Vec<T> {
    let columns = x.iter().enumerate();
    columns
        .map(|(column, &value)| value.beside(share(column * 3 + beside), beside))
        .collect()
}

/// A number between ½ and 1 for each column, so that columns do not cancel by coincidence.
fn share(column: usize) -> u32 {
    let mixed = (column as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (1 << 15) + (mixed >> 49) as u32
}

/// Runs a function in forward mode in several directions, some at a time, and passes each tangent on.
fn in_directions<T: Float>(
    f: &impl Fn(&[T], &mut [T]),
    x: &[T],
    y: &mut [T],
    count: usize,
    part: impl Fn(usize, usize) -> T,
    mut take: impl FnMut(usize, &[T]),
) {
    let zeros = |length| [(); LANES].map(|()| vec![T::ZERO; length]);
    let (mut directions, mut tangents) = (zeros(x.len()), zeros(y.len()));
    for start in (0..count).step_by(LANES) {
        let lanes = LANES.min(count - start);
        for (lane, direction) in directions.iter_mut().enumerate() {
            for (column, one) in direction.iter_mut().enumerate() {
                *one = match lane < lanes {
                    true => part(column, start + lane),
                    false => T::ZERO,
                };
            }
        }
        // A function need not write all of `y`; elements that it does not write have no derivative.
        tangents
            .iter_mut()
            .for_each(|tangent| tangent.fill(T::ZERO));
        let [a, b, c, d] = &directions;
        let [ta, tb, tc, td] = &mut tangents;
        vector_forward_lanes(f, x, a, b, c, d, y, ta, tb, tc, td);
        for (lane, tangent) in tangents[..lanes].iter().enumerate() {
            take(start + lane, tangent);
        }
    }
}
