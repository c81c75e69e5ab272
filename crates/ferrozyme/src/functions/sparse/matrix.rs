//! Sparse matrices, row by row.

use super::Pattern;
use crate::Float;

/// A sparse matrix, row by row (CSR): for each row the columns with an entry, and the entries.
///
/// ```
/// use ferrozyme::SparseMatrix;
///
/// let mut matrix = SparseMatrix::new(3);
/// matrix.push_row([(0, 1.0), (2, 2.0)]);
/// matrix.push_row([(1, 3.0)]);
/// assert_eq!(matrix.to_dense(), [[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]);
/// assert_eq!((matrix.starts(), matrix.places()), (&[0, 2, 3][..], &[0, 2, 1][..]));
/// assert_eq!(matrix.values(), [1.0, 2.0, 3.0]);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct SparseMatrix<T> {
    columns: usize,
    starts: Vec<usize>,
    places: Vec<usize>,
    values: Vec<T>,
}

impl<T: Float> SparseMatrix<T> {
    /// A matrix without rows.
    ///
    /// ```
    /// let matrix = ferrozyme::SparseMatrix::<f64>::new(5);
    /// assert_eq!((matrix.rows(), matrix.columns()), (0, 5));
    /// ```
    pub fn new(columns: usize) -> SparseMatrix<T> {
        SparseMatrix::with_capacity(columns, 0, 0)
    }

    /// A matrix without rows, with capacity for this many rows and entries.
    ///
    /// ```
    /// let mut matrix = ferrozyme::SparseMatrix::with_capacity(2, 1, 2);
    /// matrix.push_row([(0, 1.0), (1, 2.0)]);
    /// assert_eq!(matrix.rows(), 1);
    /// ```
    pub fn with_capacity(columns: usize, rows: usize, entries: usize) -> SparseMatrix<T> {
        let mut starts = Vec::with_capacity(rows + 1);
        starts.push(0);
        SparseMatrix {
            columns,
            starts,
            places: Vec::with_capacity(entries),
            values: Vec::with_capacity(entries),
        }
    }

    pub(super) fn of_pattern(pattern: &Pattern, values: Vec<T>) -> SparseMatrix<T> {
        SparseMatrix {
            columns: pattern.columns(),
            starts: pattern.starts().to_vec(),
            places: pattern.places().to_vec(),
            values,
        }
    }

    /// Adds a row: columns with their entries, in any order. A column that comes twice has the sum of both.
    ///
    /// ```
    /// let mut matrix = ferrozyme::SparseMatrix::new(2);
    /// matrix.push_row([(1, 2.0), (0, 1.0), (1, 0.5)]);
    /// assert_eq!(matrix.to_dense(), [[1.0, 2.5]]);
    /// ```
    ///
    /// # Panics
    /// If a column is out of range.
    #[track_caller]
    pub fn push_row(&mut self, entries: impl IntoIterator<Item = (usize, T)>) {
        for (place, value) in entries {
            assert!(
                place < self.columns,
                "column {place} of a matrix with {} columns",
                self.columns
            );
            self.places.push(place);
            self.values.push(value);
        }
        self.starts.push(self.places.len());
    }

    /// Adds rows that all have the same columns, which must be in range.
    pub(super) fn push_rows<const N: usize>(&mut self, places: &[usize; N], rows: &[[T; N]]) {
        self.values.extend_from_slice(rows.as_flattened());
        for _ in rows {
            self.places.extend_from_slice(places);
            self.starts.push(self.places.len());
        }
    }

    /// Removes all rows and keeps the memory. A solver that needs a Jacobian in each step then allocates only once.
    ///
    /// ```
    /// let mut matrix = ferrozyme::SparseMatrix::new(2);
    /// for step in 0..3 {
    ///     matrix.clear();
    ///     matrix.push_row([(1, f64::from(step))]);
    /// }
    /// assert_eq!(matrix.to_dense(), [[0.0, 2.0]]);
    /// ```
    pub fn clear(&mut self) {
        self.starts.truncate(1);
        self.places.clear();
        self.values.clear();
    }

    pub(super) fn reserve(&mut self, rows: usize, entries: usize) {
        self.starts.reserve(rows);
        self.places.reserve(entries);
        self.values.reserve(entries);
    }

    /// How many rows it has.
    ///
    /// ```
    /// assert_eq!(ferrozyme::SparseMatrix::<f32>::new(5).rows(), 0);
    /// ```
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many columns it has.
    ///
    /// ```
    /// assert_eq!(ferrozyme::SparseMatrix::<f32>::new(5).columns(), 5);
    /// ```
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Where each row starts among the entries, and where the last one ends.
    ///
    /// ```
    /// let mut matrix = ferrozyme::SparseMatrix::new(2);
    /// matrix.push_row([(1, 2.0)]);
    /// assert_eq!(matrix.starts(), [0, 1]);
    /// ```
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The column of each entry.
    ///
    /// ```
    /// let mut matrix = ferrozyme::SparseMatrix::new(2);
    /// matrix.push_row([(1, 2.0)]);
    /// assert_eq!(matrix.places(), [1]);
    /// ```
    pub fn places(&self) -> &[usize] {
        &self.places
    }

    /// All entries.
    ///
    /// ```
    /// let mut matrix = ferrozyme::SparseMatrix::new(2);
    /// matrix.push_row([(1, 2.0)]);
    /// assert_eq!(matrix.values(), [2.0]);
    /// ```
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The columns and entries of a row.
    ///
    /// ```
    /// let mut matrix = ferrozyme::SparseMatrix::new(2);
    /// matrix.push_row([(1, 2.0)]);
    /// assert_eq!(matrix.row(0).next(), Some((1, 2.0)));
    /// ```
    ///
    /// # Panics
    /// If the row is out of range.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, T)> + '_ {
        let range = self.starts[row]..self.starts[row + 1];
        let places = self.places[range.clone()].iter().copied();
        places.zip(self.values[range].iter().copied())
    }

    /// The product with a vector.
    ///
    /// ```
    /// let mut matrix = ferrozyme::SparseMatrix::new(2);
    /// matrix.push_row([(0, 1.0), (1, 2.0)]);
    /// assert_eq!(matrix.times(&[10.0, 1.0]), [12.0]);
    /// ```
    ///
    /// # Panics
    /// If the vector is not as long as the matrix has columns.
    #[track_caller]
    pub fn times(&self, x: &[T]) -> Vec<T> {
        super::check_length("x", x.len(), self.columns, "the matrix");
        let product = |row| {
            let sum = |sum: T, (place, value): (usize, T)| sum.plus(value.times(x[place]));
            self.row(row).fold(T::ZERO, sum)
        };
        (0..self.rows()).map(product).collect()
    }

    /// The dense matrix.
    ///
    /// ```
    /// let mut matrix = ferrozyme::SparseMatrix::new(2);
    /// matrix.push_row([(1, 2.0)]);
    /// assert_eq!(matrix.to_dense(), [[0.0, 2.0]]);
    /// ```
    pub fn to_dense(&self) -> Vec<Vec<T>> {
        let dense = |row| {
            let mut dense = vec![T::ZERO; self.columns];
            for (place, value) in self.row(row) {
                dense[place] = dense[place].plus(value);
            }
            dense
        };
        (0..self.rows()).map(dense).collect()
    }
}
