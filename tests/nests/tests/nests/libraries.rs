//! Products by libraries of linear algebra.

use super::tests;
use nalgebra::{DMatrix, DMatrixView, SMatrix};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, linalg::general_mat_mul};

// raised: 6
// loops: no product of two matrices
fn nalgebra_views(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let (a, b) = (
        DMatrixView::from_slice(a, m, k),
        DMatrixView::from_slice(b, k, n),
    );
    c.copy_from_slice((a * b).as_slice());
}

// raised: 3
// loops: not an array with one stride for each loop
fn nalgebra_transposed(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let (a, b) = (
        DMatrix::from_column_slice(k, m, a),
        DMatrix::from_column_slice(k, n, b),
    );
    c.copy_from_slice(a.tr_mul(&b).as_slice());
}

// raised: 0
fn nalgebra_static(a: &[f64], b: &[f64], c: &mut [f64], _m: usize, _k: usize, _n: usize) {
    let (a, b) = (
        SMatrix::<f64, 9, 12>::from_column_slice(a),
        SMatrix::<f64, 12, 10>::from_column_slice(b),
    );
    c.copy_from_slice((a * b).as_slice());
}

// loops: not an array with one stride for each loop
fn ndarray_dot(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let a = Array2::from_shape_vec((m, k), a.to_vec()).unwrap();
    let b = Array2::from_shape_vec((k, n), b.to_vec()).unwrap();
    c.copy_from_slice(a.dot(&b).as_slice().unwrap());
}

// loops: not an array with one stride for each loop
fn ndarray_general(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let a = ArrayView2::from_shape((m, k), a).unwrap();
    let b = ArrayView2::from_shape((n, k), b).unwrap();
    let mut c = ArrayViewMut2::from_shape((m, n), c).unwrap();
    general_mat_mul(0.5, &a, &b.t(), 2.0, &mut c);
}

// loops: not an array with one stride for each loop
fn ndarray_indices(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let a = ArrayView2::from_shape((m, k), a).unwrap();
    let b = ArrayView2::from_shape((k, n), b).unwrap();
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[(i, l)] * b[(l, j)];
            }
            c[i * n + j] = sum;
        }
    }
}

tests! {
    nalgebra_views<f64>,
    nalgebra_transposed<f64>,
    nalgebra_static<f64>(|_, _, _| [9 * 12, 12 * 10, 9 * 10]),
    ndarray_dot<f64>,
    ndarray_general<f64>,
    ndarray_indices<f64>,
}
