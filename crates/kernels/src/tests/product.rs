//! Products to test with: matrices of small integers in all kinds of layouts, and what their product is.

use std::fmt;

/// How a matrix lies in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    /// Row after row.
    Rows,
    /// Column after column.
    Columns,
    /// Row after row, with some space after each.
    PaddedRows,
    /// Column after column, with some space after each.
    PaddedColumns,
    /// No two elements side by side.
    Spread,
    /// Row after row, from the last to the first, each backwards.
    Backwards,
    /// Column after column, from the last to the first.
    ColumnsBackwards,
}

impl Layout {
    pub(crate) const ALL: [Layout; 7] = [
        Layout::Rows,
        Layout::Columns,
        Layout::PaddedRows,
        Layout::PaddedColumns,
        Layout::Spread,
        Layout::Backwards,
        Layout::ColumnsBackwards,
    ];

    /// The strides of a matrix, in elements.
    fn strides(self, [rows, columns]: [usize; 2]) -> [i64; 2] {
        let (rows, columns) = (rows as i64, columns as i64);
        match self {
            Layout::Rows => [columns, 1],
            Layout::Columns => [1, rows],
            Layout::PaddedRows => [columns + 3, 1],
            Layout::PaddedColumns => [1, rows + 2],
            Layout::Spread => [2 * columns + 1, 2],
            Layout::Backwards => [-columns, -1],
            Layout::ColumnsBackwards => [1, -rows],
        }
    }
}

/// A matrix in memory; what lies between its elements is nothing.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    /// In elements.
    pub(crate) strides: [i64; 2],
    /// Where element (0, 0) is.
    pub(crate) origin: usize,
    pub(crate) values: Vec<Option<f64>>,
}

impl Matrix {
    fn new(sizes: [usize; 2], layout: Layout, random: &mut Random) -> Matrix {
        let strides = layout.strides(sizes);
        let reach = |size: usize, stride: i64| stride * (size as i64 - 1).max(0);
        let ends = [reach(sizes[0], strides[0]), reach(sizes[1], strides[1])];
        let below: i64 = ends.iter().map(|end| end.min(&0)).sum();
        let above: i64 = ends.iter().map(|end| end.max(&0)).sum();
        let mut matrix = Matrix {
            strides,
            origin: -below as usize,
            values: vec![None; (above - below) as usize + 1],
        };
        for row in 0..sizes[0] {
            for column in 0..sizes[1] {
                let at = matrix.at(row, column);
                matrix.values[at] = Some(random.small());
            }
        }
        matrix
    }

    pub(crate) fn at(&self, row: usize, column: usize) -> usize {
        let distance = row as i64 * self.strides[0] + column as i64 * self.strides[1];
        (self.origin as i64 + distance) as usize
    }

    fn get(&self, row: usize, column: usize) -> f64 {
        self.values[self.at(row, column)].expect("the element has a value")
    }
}

/// A product of matrices.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    /// Rows, columns and terms.
    pub(crate) sizes: [usize; 3],
    pub(crate) c: Matrix,
    pub(crate) a: Matrix,
    pub(crate) b: Matrix,
    pub(crate) alpha: f64,
    pub(crate) add: bool,
    layouts: [Layout; 3],
}

impl Product {
    /// With layouts of C, A and B.
    pub(crate) fn new([m, n, k]: [usize; 3], layouts: [Layout; 3], seed: usize) -> Product {
        let mut random = Random(seed as u64 * 2 + 1);
        Product {
            sizes: [m, n, k],
            c: Matrix::new([m, n], layouts[0], &mut random),
            a: Matrix::new([m, k], layouts[1], &mut random),
            b: Matrix::new([k, n], layouts[2], &mut random),
            alpha: [1.0, -2.0, 3.0][seed % 3],
            add: seed.is_multiple_of(2),
            layouts,
        }
    }

    /// What C holds afterwards.
    pub(crate) fn expected(&self) -> Vec<Option<f64>> {
        let [m, n, k] = self.sizes;
        let mut values = self.c.values.clone();
        for i in 0..m {
            for j in 0..n {
                let sum: f64 = (0..k).map(|l| self.a.get(i, l) * self.b.get(l, j)).sum();
                let before = if self.add { self.c.get(i, j) } else { 0.0 };
                values[self.c.at(i, j)] = Some(before + self.alpha * sum);
            }
        }
        values
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = self.sizes;
        let [c, a, b] = self.layouts;
        let does = if self.add { "+=" } else { "=" };
        write!(
            f,
            "{m}×{n}×{k}, C {c:?} {does} {} A {a:?} · B {b:?}",
            self.alpha
        )
    }
}

/// Numbers without a pattern: xorshift.
struct Random(u64);

impl Random {
    /// An integer from −4 to 4.
    fn small(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as f64 % 9.0 - 4.0
    }
}
