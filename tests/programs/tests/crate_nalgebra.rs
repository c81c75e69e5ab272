//! Code with nalgebra as its users write it.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::Field;
use nalgebra::{DMatrix, DVector, Matrix3, Rotation3, Vector3};

#[autodiff_reverse(dfixed, Duplicated, Active)]
#[autodiff_forward(bfixed, Dual, Dual)]
fn fixed_sizes(x: &[f64]) -> f64 {
    let matrix = Matrix3::from_row_slice(&x[..9]);
    let vector = Vector3::new(x[9], x[10], x[11]);
    let image = matrix * vector + matrix.transpose() * vector.cross(&Vector3::x());
    image.dot(&vector) + matrix.trace() * image.norm_squared() + matrix.determinant()
}

const TWELVE: [f64; 12] = [
    2.0, 0.5, -0.3, 0.1, 1.5, 0.4, -0.2, 0.3, 1.8, 0.7, -0.4, 0.9,
];

#[test]
fn small_matrices() {
    Field::new("nalgebra fixed sizes", fixed_sizes)
        .reverse(dfixed)
        .forward(bfixed)
        .check(&TWELVE);
}

#[autodiff_reverse(dinverse, Duplicated, Active)]
#[autodiff_forward(binverse, Dual, Dual)]
fn inverse(x: &[f64]) -> f64 {
    let matrix = Matrix3::from_row_slice(&x[..9]);
    let right = Vector3::from_column_slice(&x[9..]);
    match matrix.try_inverse() {
        Some(inverse) => (inverse * right).norm(),
        None => 0.0,
    }
}

#[test]
fn inverse_of_a_small_matrix() {
    Field::new("nalgebra inverse", inverse)
        .reverse(dinverse)
        .forward(binverse)
        .check(&TWELVE);
}

#[autodiff_reverse(drotation, Duplicated, Active)]
#[autodiff_forward(brotation, Dual, Dual)]
fn rotation(x: &[f64]) -> f64 {
    let rotation = Rotation3::from_euler_angles(x[0], x[1], x[2]);
    let point = rotation * Vector3::new(1.0, -0.5, 2.0);
    point.x * point.y + point.z.sin()
}

#[test]
fn rotations() {
    Field::new("nalgebra rotation", rotation)
        .reverse(drotation)
        .forward(brotation)
        .check(&[0.3, -0.7, 1.1]);
}

#[autodiff_reverse(ddynamic, Duplicated, Duplicated, Active)]
#[autodiff_forward(bdynamic, Dual, Dual, Dual)]
fn dynamic_sizes(matrix: &DMatrix<f64>, vector: &DVector<f64>) -> f64 {
    let image = matrix * vector;
    let gram = matrix.transpose() * matrix;
    image.map(|x| x.tanh()).dot(vector) + gram.norm() + image.component_mul(vector).sum()
}

fn square(x: &[f64], n: usize) -> DMatrix<f64> {
    DMatrix::from_column_slice(n, n, &x[..n * n])
}

fn tail(x: &[f64], n: usize) -> DVector<f64> {
    DVector::from_column_slice(&x[n * n..])
}

/// Shadows are matrices of the same shape.
#[test]
fn matrices_as_arguments() {
    Field::new("nalgebra dynamic sizes", |x| {
        dynamic_sizes(&square(x, 3), &tail(x, 3))
    })
    .reverse(|x, dx, seed| {
        let (mut dmatrix, mut dvector) = (square(dx, 3), tail(dx, 3));
        let value = ddynamic(&square(x, 3), &mut dmatrix, &tail(x, 3), &mut dvector, seed);
        dx[..9].copy_from_slice(dmatrix.as_slice());
        dx[9..].copy_from_slice(dvector.as_slice());
        value
    })
    .forward(|x, v| bdynamic(&square(x, 3), &square(v, 3), &tail(x, 3), &tail(v, 3)))
    .check(&TWELVE);
}

#[autodiff_reverse(dcholesky, Duplicated, Const, Active)]
#[autodiff_forward(bcholesky, Dual, Const, Dual)]
fn gaussian_process(x: &[f64], targets: &[f64]) -> f64 {
    let n = targets.len();
    let (length, noise) = (x[0], x[1]);
    let kernel = DMatrix::from_fn(n, n, |i, j| {
        let distance = (i as f64 - j as f64) / length;
        (-0.5 * distance * distance).exp() + if i == j { noise * noise } else { 0.0 }
    });
    let Some(factor) = kernel.cholesky() else {
        return f64::NAN;
    };
    let targets = DVector::from_column_slice(targets);
    let solved = factor.solve(&targets);
    let log_determinant: f64 = factor.l().diagonal().iter().map(|d| d.ln()).sum();
    0.5 * targets.dot(&solved) + log_determinant
}

#[test]
fn cholesky_solve() {
    let targets = [0.5, 1.0, 0.25, -0.5];
    Field::new("nalgebra Cholesky", |x| gaussian_process(x, &targets))
        .reverse(|x, dx, seed| dcholesky(x, dx, &targets, seed))
        .forward(|x, v| bcholesky(x, v, &targets))
        .check(&[1.2, 0.4]);
}

#[autodiff_reverse(dlu, Duplicated, Active)]
#[autodiff_forward(blu, Dual, Dual)]
fn lu_solve(x: &[f64]) -> f64 {
    let matrix = square(x, 3);
    let right = tail(x, 3);
    let lu = matrix.lu();
    let Some(solution) = lu.solve(&right) else {
        return 0.0;
    };
    solution.norm() + lu.determinant()
}

#[test]
fn lu_solve_with_pivoting() {
    Field::new("nalgebra LU", lu_solve)
        .reverse(dlu)
        .forward(blu)
        .check(&TWELVE);
}

#[autodiff_reverse(dqr, Duplicated, Active)]
fn least_squares(x: &[f64]) -> f64 {
    let points = x.len() / 2;
    let design = DMatrix::from_fn(points, 2, |i, j| if j == 0 { 1.0 } else { x[i] });
    let values = DVector::from_fn(points, |i, _| x[points + i]);
    let qr = design.clone().qr();
    let right = qr.q().transpose() * &values;
    let coefficients = qr.r().solve_upper_triangular(&right).unwrap();
    (design * coefficients - values).norm_squared()
}

#[test]
fn least_squares_by_qr() {
    Field::new("nalgebra QR", least_squares)
        .reverse(dqr)
        .check(&[0.0, 1.0, 2.5, 3.0, 0.5, 1.25, 1.0, 3.0]);
}

#[autodiff_reverse(deigen, Duplicated, Active)]
fn eigenvalues(x: &[f64]) -> f64 {
    let half = Matrix3::from_row_slice(x);
    let values = (half + half.transpose()).symmetric_eigenvalues();
    values.iter().map(|value| value.exp()).sum()
}

#[test]
fn symmetric_eigenvalues() {
    Field::new("nalgebra eigenvalues", eigenvalues)
        .reverse(deigen)
        .check(&[0.5, 0.2, -0.3, 0.1, 0.8, 0.4, -0.2, 0.3, -0.6]);
}

#[autodiff_reverse(dviews, Duplicated, Active)]
#[autodiff_forward(bviews, Dual, Dual)]
fn views_and_columns(x: &[f64]) -> f64 {
    let mut matrix = DMatrix::from_row_slice(3, 4, x);
    matrix.column_mut(1).scale_mut(2.0);
    let mut corner = matrix.view_mut((1, 1), (2, 2));
    corner += corner.transpose();
    matrix.swap_rows(0, 2);
    let sums = matrix.row_sum();
    matrix
        .column_iter()
        .zip(sums.iter())
        .map(|(column, sum)| column.norm() * sum)
        .sum()
}

#[test]
fn views() {
    Field::new("nalgebra views", views_and_columns)
        .reverse(dviews)
        .forward(bviews)
        .check(&TWELVE);
}

#[autodiff_reverse(dlarge, Duplicated, Active)]
fn larger_product(x: &[f64]) -> f64 {
    // Large enough that nalgebra hands over to its kernels for large matrices.
    let n = 12;
    let a = DMatrix::from_fn(n, n, |i, j| x[(i * 5 + j) % x.len()] * (i + 1) as f64 * 0.1);
    let b = DMatrix::from_fn(n, n, |i, j| {
        (x[(i + 3 * j) % x.len()] + j as f64 * 0.1).sin()
    });
    (&a * &b).component_mul(&(b * a)).sum()
}

#[test]
fn product_by_kernels() {
    Field::new("nalgebra larger product", larger_product)
        .reverse(dlarge)
        .check(&TWELVE);
}
