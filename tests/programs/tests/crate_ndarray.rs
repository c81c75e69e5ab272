//! Code with ndarray as its users write it.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::Field;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, arr1, s};

const TWELVE: [f64; 12] = [
    2.0, 0.5, -0.3, 0.1, 1.5, 0.4, -0.2, 0.3, 1.8, 0.7, -0.4, 0.9,
];

fn matrix(x: &[f64]) -> Array2<f64> {
    Array2::from_shape_vec((3, 3), x[..9].to_vec()).unwrap()
}

fn vector(x: &[f64]) -> Array1<f64> {
    arr1(&x[9..])
}

#[autodiff_reverse(ddot, Duplicated, Duplicated, Active)]
#[autodiff_forward(bdot, Dual, Dual, Dual)]
fn dot_products(matrix: &Array2<f64>, vector: &Array1<f64>) -> f64 {
    let image = matrix.dot(vector);
    let back = matrix.t().dot(&image);
    back.dot(vector) + image.mapv(f64::tanh).sum()
}

#[test]
fn arrays_as_arguments() {
    Field::new("ndarray dot", |x| dot_products(&matrix(x), &vector(x)))
        .reverse(|x, dx, seed| {
            let (mut dmatrix, mut dvector) = (matrix(dx), vector(dx));
            let value = ddot(&matrix(x), &mut dmatrix, &vector(x), &mut dvector, seed);
            dx[..9].copy_from_slice(dmatrix.as_slice().unwrap());
            dx[9..].copy_from_slice(dvector.as_slice().unwrap());
            value
        })
        .forward(|x, v| bdot(&matrix(x), &matrix(v), &vector(x), &vector(v)))
        .check(&TWELVE);
}

#[autodiff_reverse(dproduct, Duplicated, Active)]
#[autodiff_forward(bproduct, Dual, Dual)]
fn matrix_product(x: &[f64]) -> f64 {
    let a = ArrayView2::from_shape((3, 4), x).unwrap();
    let gram = a.t().dot(&a);
    let row_sums = gram.sum_axis(Axis(0));
    let means = gram.mean_axis(Axis(1)).unwrap();
    row_sums.dot(&means) + gram.diag().product()
}

#[test]
fn matrix_products_and_sums_along_axes() {
    Field::new("ndarray product", matrix_product)
        .reverse(dproduct)
        .forward(bproduct)
        .check(&TWELVE);
}

#[autodiff_reverse(delementwise, Duplicated, Active)]
#[autodiff_forward(belementwise, Dual, Dual)]
fn elementwise(x: &[f64]) -> f64 {
    let a = ArrayView1::from(&x[..6]);
    let b = ArrayView1::from(&x[6..]);
    let mut c = &a * &b + 2.0 * &a - b.mapv(f64::exp);
    c += &a;
    c *= 0.5;
    c.mapv_inplace(|x| x * x);
    let quotient = &c / &(&b * &b + 1.0);
    quotient.sum() + c.iter().zip(a.iter()).map(|(c, a)| c * a).sum::<f64>()
}

#[test]
fn elementwise_arithmetic() {
    Field::new("ndarray elementwise", elementwise)
        .reverse(delementwise)
        .forward(belementwise)
        .check(&TWELVE);
}

#[autodiff_reverse(dsliced, Duplicated, Active)]
#[autodiff_forward(bsliced, Dual, Dual)]
fn slices(x: &[f64]) -> f64 {
    let mut a = Array2::from_shape_vec((3, 4), x.to_vec()).unwrap();
    let corner = a.slice(s![1.., ..2]).to_owned();
    a.slice_mut(s![..2, 2..]).assign(&corner);
    a.row_mut(0).fill(x[0] * x[1]);
    let every_other = a.slice(s![.., ..;2]);
    let reversed: ArrayView1<f64> = a.slice(s![..;-1, 1]);
    every_other.sum() * reversed.dot(&reversed) + a.column(3).fold(1.0, |p, x| p * x)
}

#[test]
fn slicing() {
    Field::new("ndarray slices", slices)
        .reverse(dsliced)
        .forward(bsliced)
        .check(&TWELVE);
}

#[autodiff_reverse(dlarger, Duplicated, Active)]
fn larger_product(x: &[f64]) -> f64 {
    // Large enough for ndarray's kernels for matrix products.
    let a = Array2::from_shape_fn((16, 12), |(i, j)| x[(i * 5 + j) % x.len()] * 0.3);
    let b = Array2::from_shape_fn((12, 16), |(i, j)| {
        (x[(i + 3 * j) % x.len()] + j as f64 * 0.1).sin()
    });
    let c = a.dot(&b);
    (&c * &c.t()).sum()
}

#[test]
fn product_by_kernels() {
    Field::new("ndarray larger product", larger_product)
        .reverse(dlarger)
        .check(&TWELVE);
}
