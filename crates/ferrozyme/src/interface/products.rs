//! Matrix products of the crate `matrixmultiply` (used by `ndarray`, `nalgebra` and others) as plain loops. They are differentiated in place of the crate's own code, which also
//! packs matrices, shares work between threads, keeps buffers between calls and queries the processor; none of that belongs to the computed result.

/// A matrix: where it begins, and how far apart its rows and columns are.
#[derive(Clone, Copy)]
struct Matrix<P> {
    start: P,
    rows: isize,
    columns: isize,
}

impl<P> Matrix<P> {
    fn transposed(self) -> Matrix<P> {
        Matrix {
            rows: self.columns,
            columns: self.rows,
            ..self
        }
    }
}

macro_rules! product {
    ($name:ident, $multiply:ident, $float:ty) => {
        /// `c ← alpha · a · b + beta · c`, where `c` has m rows and n columns. It is not read if `beta` is zero.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            m: usize,
            k: usize,
            n: usize,
            alpha: $float,
            a: *const $float,
            rsa: isize,
            csa: isize,
            b: *const $float,
            rsb: isize,
            csb: isize,
            beta: $float,
            c: *mut $float,
            rsc: isize,
            csc: isize,
        ) {
            let a = Matrix {
                start: a,
                rows: rsa,
                columns: csa,
            };
            let b = Matrix {
                start: b,
                rows: rsb,
                columns: csb,
            };
            let c = Matrix {
                start: c,
                rows: rsc,
                columns: csc,
            };
            // The innermost loop runs over contiguous elements, if there are any.
            unsafe {
                if csb == 1 && csc == 1 {
                    let (b, c) = (Matrix { columns: 1, ..b }, Matrix { columns: 1, ..c });
                    $multiply([m, k, n], alpha, a, b, beta, c);
                } else if rsa == 1 && rsc == 1 {
                    let (a, c) = (Matrix { rows: 1, ..a }, Matrix { rows: 1, ..c });
                    let (a, b, c) = (a.transposed(), b.transposed(), c.transposed());
                    $multiply([n, k, m], alpha, b, a, beta, c);
                } else {
                    $multiply([m, k, n], alpha, a, b, beta, c);
                }
            }
        }

        /// # Safety
        /// The matrices are where their pointers say, and `c` does not share memory with the others.
        #[inline(always)]
        unsafe fn $multiply(
            [m, k, n]: [usize; 3],
            alpha: $float,
            a: Matrix<*const $float>,
            b: Matrix<*const $float>,
            beta: $float,
            c: Matrix<*mut $float>,
        ) {
            for row in 0..m as isize {
                unsafe {
                    let to = c.start.offset(row * c.rows);
                    for column in 0..n as isize {
                        let to = to.offset(column * c.columns);
                        *to = if beta == 0.0 { 0.0 } else { beta * *to };
                    }
                    for inner in 0..k as isize {
                        let factor = alpha * *a.start.offset(row * a.rows + inner * a.columns);
                        let from = b.start.offset(inner * b.rows);
                        for column in 0..n as isize {
                            *to.offset(column * c.columns) +=
                                factor * *from.offset(column * b.columns);
                        }
                    }
                }
            }
        }
    };
}

product!(__ferrozyme_product_f32, multiply_f32, f32);
product!(__ferrozyme_product_f64, multiply_f64, f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_in_all_layouts() {
        let (m, k, n) = (2, 3, 4);
        let a: Vec<f64> = (0..m * k).map(|i| 1.0 + i as f64).collect();
        let b: Vec<f64> = (0..k * n).map(|i| 0.5 * i as f64 - 2.0).collect();
        let at = |matrix: &[f64], by_rows: bool, [rows, columns]: [usize; 2], i, j| {
            matrix[if by_rows {
                i * columns + j
            } else {
                i + j * rows
            }]
        };
        for layout in 0..8 {
            let [of_a, of_b, of_c] = [layout & 1 == 0, layout & 2 == 0, layout & 4 == 0];
            let strides = |by_rows: bool, [rows, columns]: [usize; 2]| match by_rows {
                true => (columns as isize, 1),
                false => (1, rows as isize),
            };
            for beta in [0.0, 3.0] {
                let mut c = vec![if beta == 0.0 { f64::NAN } else { 1.0 }; m * n];
                let (rsa, csa) = strides(of_a, [m, k]);
                let (rsb, csb) = strides(of_b, [k, n]);
                let (rsc, csc) = strides(of_c, [m, n]);
                unsafe {
                    __ferrozyme_product_f64(
                        m,
                        k,
                        n,
                        2.0,
                        a.as_ptr(),
                        rsa,
                        csa,
                        b.as_ptr(),
                        rsb,
                        csb,
                        beta,
                        c.as_mut_ptr(),
                        rsc,
                        csc,
                    );
                }
                for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                    let terms =
                        (0..k).map(|l| at(&a, of_a, [m, k], i, l) * at(&b, of_b, [k, n], l, j));
                    let expected = 2.0 * terms.sum::<f64>() + beta;
                    let found = at(&c, of_c, [m, n], i, j);
                    assert!((found - expected).abs() < 1e-12, "{found} {expected}");
                }
            }
        }
    }
}
