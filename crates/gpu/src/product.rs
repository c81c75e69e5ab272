//! Contractions that are products of matrices, as libraries of BLAS take them.
//!
//! A library takes matrices whose columns are contiguous, or says that they are transposed: `c = op(x)·op(y)`, with one distance from a column to the next for each. [`Product::as_gemm`] finds these names for a product whose elements are
//! contiguous along some index in each array. A result whose rows are contiguous is the transposed result of the transposed operands in opposite order.

use ferrozyme_ir::{Function, OpView, Scalar, Value};

/// An index: its trip count and its strides in elements in destination, left and right operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// How many there are.
    pub count: usize,
    /// The strides; 0 where the index does not count.
    pub strides: [i64; 3],
}

impl Extent {
    /// No index at all.
    pub const NONE: Extent = Extent {
        count: 1,
        strides: [0; 3],
    };
}

/// A product of matrices, once for each batch.
#[derive(Clone, PartialEq, Debug)]
pub struct Product {
    /// For destination, left and right operand: which of the kernel's parameters leads there, and how many bytes behind it.
    pub arrays: [(usize, i64); 3],
    /// The type of all elements.
    pub element: Scalar,
    /// What each sum is multiplied with.
    pub factor: f64,
    /// Whether the sums are added to the destination.
    pub add: bool,
    /// Batches of batches: a library takes lists of addresses for them, or does one after the other.
    pub outer: Extent,
    /// Batches.
    pub batch: Extent,
    /// Rows of the destination and of the left operand.
    pub row: Extent,
    /// Columns of the destination and of the right operand.
    pub column: Extent,
    /// What is summed over.
    pub term: Extent,
}

/// An operand of a library: a matrix in a layout of contiguous columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operand {
    /// Which array of the product it is.
    pub array: usize,
    /// Whether it is stored as its transposed matrix.
    pub transposed: bool,
    /// The distance from a column to the next, in elements.
    pub distance: i64,
    /// The distance from a batch to the next, in elements.
    pub batch: i64,
}

/// A product as a library takes it: `c = factor · x·y`, with `m` rows, `n` columns, `k` terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gemm {
    /// Rows of `c` and `x`.
    pub m: usize,
    /// Columns of `c` and `y`.
    pub n: usize,
    /// Columns of `x`, rows of `y`.
    pub k: usize,
    /// The first operand.
    pub x: Operand,
    /// The second operand.
    pub y: Operand,
    /// The result, which is never transposed.
    pub c: Operand,
}

impl Product {
    /// The floating-point operations.
    pub fn operations(&self) -> f64 {
        let extents = [self.outer, self.batch, self.row, self.column, self.term];
        let counts = extents.map(|extent| extent.count);
        2.0 * counts.iter().map(|&count| count as f64).product::<f64>()
    }

    /// The product as a library takes it, if each array is contiguous along one of its indices.
    pub fn as_gemm(&self) -> Option<Gemm> {
        // Along its first index, the result is contiguous.
        let (first, second, x, y) = match self.layout(0, self.row, self.column) {
            Some(c) if !c.transposed => (self.row, self.column, 1, 2),
            _ => (self.column, self.row, 2, 1),
        };
        let c = self.layout(0, first, second).filter(|c| !c.transposed)?;
        Some(Gemm {
            m: first.count,
            n: second.count,
            k: self.term.count,
            x: self.layout(x, first, self.term)?,
            y: self.layout(y, self.term, second)?,
            c,
        })
    }

    /// An array as a matrix with these rows and columns.
    fn layout(&self, array: usize, rows: Extent, columns: Extent) -> Option<Operand> {
        let stride = |extent: Extent| extent.strides[array];
        let operand = |transposed: bool, contiguous: Extent, other: Extent| {
            let is_contiguous = contiguous.count == 1 || stride(contiguous) == 1;
            // One column has any distance to the next that is large enough.
            let distance = match other.count {
                1 => contiguous.count as i64,
                _ => stride(other),
            };
            (is_contiguous && distance >= contiguous.count as i64).then_some(Operand {
                array,
                transposed,
                distance,
                batch: stride(self.batch),
            })
        };
        operand(false, rows, columns).or_else(|| operand(true, columns, rows))
    }
}

/// The parameter that an address is counted from, and how many bytes it lies behind.
pub(crate) fn parameter_of(function: &Function, mut address: Value) -> Option<(usize, i64)> {
    let mut bytes = 0;
    while let Some(OpView::Offset { base, index, scale }) = function.definition(address) {
        bytes += i64::try_from(function.int_of(index)?).ok()? * scale;
        address = base;
    }
    let mut arguments = function.arguments().iter();
    Some((arguments.position(|&argument| argument == address)?, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(count: usize, strides: [i64; 3]) -> Extent {
        Extent { count, strides }
    }

    /// The product by its definition.
    fn expected(product: &Product, left: &[f64], right: &[f64], c: &mut [f64]) {
        let Product {
            batch,
            row,
            column,
            term,
            ..
        } = product;
        for b in 0..batch.count as i64 {
            for i in 0..row.count as i64 {
                for j in 0..column.count as i64 {
                    let at = |array: usize, k: i64| {
                        let parts = [(batch, b), (row, i), (column, j), (term, k)];
                        let sum: i64 = parts.iter().map(|(e, n)| e.strides[array] * n).sum();
                        sum as usize
                    };
                    let terms = 0..term.count as i64;
                    c[at(0, 0)] = terms.map(|k| left[at(1, k)] * right[at(2, k)]).sum();
                }
            }
        }
    }

    /// What a library of BLAS computes for these names.
    fn library(gemm: &Gemm, batches: usize, arrays: [&[f64]; 3], c: &mut [f64]) {
        let at = |operand: Operand, batch: usize, row: usize, column: usize| {
            let (row, column) = match operand.transposed {
                true => (column, row),
                false => (row, column),
            };
            (batch as i64 * operand.batch + row as i64 + column as i64 * operand.distance) as usize
        };
        for b in 0..batches {
            for i in 0..gemm.m {
                for j in 0..gemm.n {
                    let terms = (0..gemm.k).map(|k| {
                        let x = arrays[gemm.x.array][at(gemm.x, b, i, k)];
                        x * arrays[gemm.y.array][at(gemm.y, b, k, j)]
                    });
                    c[at(gemm.c, b, i, j)] = terms.sum();
                }
            }
        }
    }

    fn check(batch: usize, [m, n, k]: [usize; 3], turned: [bool; 3]) {
        // Matrices with their rows or their columns contiguous, some longer than they need.
        let strides = |rows: usize, columns: usize, turned: bool| match turned {
            true => (1, rows as i64 + 2),
            false => (columns as i64, 1),
        };
        let (c_m, c_n) = strides(m, n, turned[0]);
        let (a_m, a_k) = strides(m, k, turned[1]);
        let (b_k, b_n) = strides(k, n, turned[2]);
        let size = 1000;
        let product = Product {
            arrays: [(0, 0), (1, 0), (2, 0)],
            element: Scalar::F32,
            factor: 1.0,
            add: false,
            outer: Extent::NONE,
            batch: extent(batch, [size, size, if m == 3 { 0 } else { size }]),
            row: extent(m, [c_m, a_m, 0]),
            column: extent(n, [c_n, 0, b_n]),
            term: extent(k, [0, a_k, b_k]),
        };
        let left: Vec<f64> = (0..3000).map(|n| f64::from(n % 17) - 8.0).collect();
        let right: Vec<f64> = (0..3000).map(|n| f64::from(n % 13) - 6.0).collect();
        let (mut by_definition, mut by_library) = (vec![0.0; 3000], vec![0.0; 3000]);
        expected(&product, &left, &right, &mut by_definition);
        let gemm = product.as_gemm().expect("it is contiguous");
        library(&gemm, batch, [&[], &left, &right], &mut by_library);
        assert_eq!(by_library, by_definition, "{product:?} as {gemm:?}");
    }

    #[test]
    fn a_library_computes_the_product() {
        for sizes in [
            [3, 4, 5],
            [1, 7, 6],
            [8, 1, 3],
            [9, 5, 1],
            [1, 1, 4],
            [6, 6, 6],
        ] {
            for turned in 0..8 {
                let turned = [0, 1, 2].map(|bit| turned & (1 << bit) != 0);
                check(1, sizes, turned);
                check(3, sizes, turned);
            }
        }
    }

    #[test]
    fn what_is_not_contiguous_is_left_to_kernels() {
        let product = Product {
            arrays: [(0, 0), (1, 0), (2, 0)],
            element: Scalar::F32,
            factor: 1.0,
            add: false,
            outer: Extent::NONE,
            batch: extent(1, [0; 3]),
            row: extent(4, [8, 8, 0]),
            column: extent(4, [2, 0, 1]),
            term: extent(4, [0, 1, 4]),
        };
        assert_eq!(product.as_gemm(), None);
    }
}
