//! Sparsity patterns of Jacobians, and colours for their columns.

use super::{in_directions, point_beside};
use crate::{Float, Input};

/// A sparsity pattern: the entries of a Jacobian that may be nonzero, with a colour for each column. Columns of one colour share no row.
///
/// ```
/// use ferrozyme::Pattern;
///
/// let pattern = Pattern::new(3, [vec![0, 1], vec![1, 2]]);
/// assert_eq!((pattern.rows(), pattern.columns(), pattern.entries()), (2, 3, 4));
/// // The first and the last column share no row.
/// assert_eq!(pattern.colours(), 2);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    columns: usize,
    starts: Vec<usize>,
    places: Vec<usize>,
    colours: Vec<usize>,
    count: usize,
}

impl Pattern {
    /// A pattern from the columns of each row.
    ///
    /// ```
    /// use ferrozyme::Pattern;
    ///
    /// // An arrow: no two columns can share a colour, since all meet in the last row.
    /// let arrow = Pattern::new(3, [vec![0], vec![1], vec![0, 1, 2]]);
    /// assert_eq!(arrow.colours(), 3);
    /// ```
    ///
    /// # Panics
    /// If a column is out of range.
    #[track_caller]
    pub fn new(columns: usize, rows: impl IntoIterator<Item = Vec<usize>>) -> Pattern {
        let (mut starts, mut places) = (vec![0], Vec::new());
        for mut row in rows {
            row.sort_unstable();
            row.dedup();
            if let Some(&last) = row.last() {
                assert!(
                    last < columns,
                    "column {last} of a pattern with {columns} columns"
                );
            }
            places.extend(row);
            starts.push(places.len());
        }
        let (colours, count) = colour(columns, &starts, &places);
        Pattern {
            columns,
            starts,
            places,
            colours,
            count,
        }
    }

    /// Detects the pattern of a function that writes `rows` results. All entries of its Jacobian are computed at the point and at two more
    /// points near it, since an entry may be zero at one point by coincidence. Entries that are not finite count as nonzero, so a row with such an entry may get more
    /// entries than it needs. Floats of the point that are not finite are replaced in the two other points.
    ///
    /// If the function takes other branches far from the point, entries may be missing. [`sparse_jacobian`](crate::sparse_jacobian) detects that, and
    /// [`Pattern::join`] unites patterns.
    ///
    /// ```
    /// use ferrozyme::Pattern;
    ///
    /// let f = |x: &[f64], y: &mut [f64]| {
    ///     y[0] = x[0] * x[1];
    ///     y[1] = x[2].sin();
    /// };
    /// // The product's derivatives are zero at this point.
    /// let pattern = Pattern::detect(f, &[0.0, 0.0, 1.0], 2);
    /// assert_eq!(pattern, Pattern::new(3, [vec![0, 1], vec![2]]));
    /// ```
    pub fn detect<X, F>(f: F, x: X, rows: usize) -> Pattern
    where
        X: Input,
        F: Fn(X::Argument<'_>, &mut [X::Scalar]),
    {
        let f = |x: &[X::Scalar], y: &mut [X::Scalar]| f(X::argument(x), y);
        let x = x.as_slice();
        let mut found = vec![Vec::new(); rows];
        let mut y = vec![X::Scalar::ZERO; rows];
        for beside in 0..3 {
            let point = point_beside(x, beside);
            let unit = |column: usize, direction: usize| match column == direction {
                true => X::Scalar::ONE,
                false => X::Scalar::ZERO,
            };
            in_directions(&f, &point, &mut y, x.len(), unit, |column, tangent| {
                for (row, &value) in tangent.iter().enumerate() {
                    if value != X::Scalar::ZERO {
                        found[row].push(column);
                    }
                }
            });
        }
        Pattern::new(x.len(), found)
    }

    /// The entries of both patterns.
    ///
    /// ```
    /// use ferrozyme::Pattern;
    ///
    /// let [one, other] = [Pattern::new(2, [vec![0]]), Pattern::new(2, [vec![1]])];
    /// assert_eq!(one.join(&other), Pattern::new(2, [vec![0, 1]]));
    /// ```
    ///
    /// # Panics
    /// If the numbers of rows or columns differ.
    #[track_caller]
    pub fn join(&self, other: &Pattern) -> Pattern {
        super::check_length("other", other.columns, self.columns, "the pattern");
        super::check_length("other", other.rows(), self.rows(), "the pattern");
        let rows = (0..self.rows()).map(|row| {
            let both = [self, other].map(|one| &one.places[one.range(row)]);
            both.concat()
        });
        Pattern::new(self.columns, rows)
    }

    /// How many rows it has.
    ///
    /// ```
    /// assert_eq!(ferrozyme::Pattern::new(2, [vec![0]]).rows(), 1);
    /// ```
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many columns it has.
    ///
    /// ```
    /// assert_eq!(ferrozyme::Pattern::new(2, [vec![0]]).columns(), 2);
    /// ```
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The number of entries that may be nonzero.
    ///
    /// ```
    /// assert_eq!(ferrozyme::Pattern::new(2, [vec![0]]).entries(), 1);
    /// ```
    pub fn entries(&self) -> usize {
        self.places.len()
    }

    /// The number of colours, which is the number of directions of forward mode that a Jacobian takes.
    ///
    /// ```
    /// let diagonal = ferrozyme::Pattern::new(9, (0..9).map(|i| vec![i]));
    /// assert_eq!(diagonal.colours(), 1);
    /// ```
    pub fn colours(&self) -> usize {
        self.count
    }

    pub(super) fn colour(&self, column: usize) -> usize {
        self.colours[column]
    }

    pub(super) fn starts(&self) -> &[usize] {
        &self.starts
    }

    pub(super) fn places(&self) -> &[usize] {
        &self.places
    }

    /// The positions of a row's entries.
    pub(super) fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.starts[row]..self.starts[row + 1]
    }
}

/// Greedy colouring: each column gets the first colour that no column has which shares a row with it. Columns with many entries come first.
fn colour(columns: usize, starts: &[usize], places: &[usize]) -> (Vec<usize>, usize) {
    let mut rows_of: Vec<Vec<usize>> = vec![Vec::new(); columns];
    for row in 0..starts.len() - 1 {
        for &column in &places[starts[row]..starts[row + 1]] {
            rows_of[column].push(row);
        }
    }
    let mut order: Vec<usize> = (0..columns).collect();
    order.sort_by_key(|&column| std::cmp::Reverse(rows_of[column].len()));
    let mut colours = vec![usize::MAX; columns];
    // For each colour the last column that could not have it.
    let mut taken: Vec<usize> = Vec::new();
    for column in order {
        for &row in &rows_of[column] {
            for &other in &places[starts[row]..starts[row + 1]] {
                if colours[other] != usize::MAX {
                    taken[colours[other]] = column;
                }
            }
        }
        let free = taken.iter().position(|&by| by != column);
        let free = free.unwrap_or_else(|| {
            taken.push(usize::MAX);
            taken.len() - 1
        });
        colours[column] = free;
    }
    (colours, taken.len())
}
