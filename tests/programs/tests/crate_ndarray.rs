//! Code with ndarray as its users write it.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::Field;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, Zip, arr1, concatenate, s};

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

#[autodiff_reverse(dzipped, Duplicated, Active)]
#[autodiff_forward(bzipped, Dual, Dual)]
fn zips(x: &[f64]) -> f64 {
    let a = Array2::from_shape_fn((3, 4), |(i, j)| x[i * 4 + j].sin());
    let mut out = Array2::zeros((3, 4));
    Zip::from(&mut out)
        .and(&a)
        .and(&a.slice(s![.., ..;-1]))
        .for_each(|out, a, b| *out = a * b + a);
    let both = concatenate(Axis(0), &[a.view(), out.view()]).unwrap();
    let scaled = &both
        / &both
            .map_axis(Axis(1), |row| row.dot(&row).sqrt())
            .insert_axis(Axis(1));
    scaled
        .outer_iter()
        .enumerate()
        .map(|(i, row)| row.sum() * i as f64)
        .sum::<f64>()
        + out.fold_axis(Axis(0), 0.0, |sum, x| sum + x * x).sum()
}

#[test]
fn zips_and_axes() {
    Field::new("ndarray Zip", zips)
        .reverse(dzipped)
        .forward(bzipped)
        .check(&TWELVE);
}

/// A layer of a network with its weights in a struct of arrays.
struct Dense {
    weights: Array2<f64>,
    bias: Array1<f64>,
}

impl Dense {
    fn from_slice(x: &[f64]) -> Dense {
        Dense {
            weights: matrix(x),
            bias: vector(x),
        }
    }

    #[autodiff_reverse(loss_reverse, Duplicated, Const, Const, Active)]
    #[autodiff_forward(loss_forward, Dual, Const, Const, Dual)]
    fn loss(&self, inputs: &Array2<f64>, labels: &[usize]) -> f64 {
        let logits = inputs.dot(&self.weights) + &self.bias;
        let mut loss = 0.0;
        for (row, &label) in logits.rows().into_iter().zip(labels) {
            let largest = row.fold(f64::NEG_INFINITY, |a, &b| a.max(b));
            let sum = row.mapv(|x| (x - largest).exp()).sum();
            loss += largest + sum.ln() - row[label];
        }
        loss / labels.len() as f64
    }
}

#[test]
fn dense_layer() {
    let inputs = Array2::from_shape_fn((4, 3), |(i, j)| (i as f64 * 0.7 - j as f64 * 0.4).cos());
    let labels = [0, 2, 1, 1];
    Field::new("ndarray dense layer", |x| {
        Dense::from_slice(x).loss(&inputs, &labels)
    })
    .reverse(|x, dx, seed| {
        let mut shadow = Dense::from_slice(dx);
        let value = Dense::from_slice(x).loss_reverse(&mut shadow, &inputs, &labels, seed);
        dx[..9].copy_from_slice(shadow.weights.as_slice().unwrap());
        dx[9..].copy_from_slice(shadow.bias.as_slice().unwrap());
        value
    })
    .forward(|x, v| Dense::from_slice(x).loss_forward(&Dense::from_slice(v), &inputs, &labels))
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
