//! The function interface where lengths are zero, one, or wrong, and for all kinds of points.

#![cfg(ferrozyme)]

use ferrozyme::*;

fn squares<T: Float + std::ops::Mul<Output = T> + std::iter::Sum>(x: &[T]) -> T {
    x.iter().map(|&x| x * x).sum()
}

#[test]
fn all_kinds_of_points() {
    assert_eq!(grad(|x: f64| x * x, 3.0), 6.0);
    assert_eq!(grad(|x| x * x, 3.0_f32), 6.0);
    assert_eq!(grad(|x: [f64; 2]| x[0] * x[1], [3.0, 4.0]), [4.0, 3.0]);
    assert_eq!(grad(squares, &[3.0_f32, 4.0]), [6.0, 8.0]);
    assert_eq!(grad(squares, &vec![3.0, 4.0]), [6.0, 8.0]);
    assert_eq!(grad(squares, &vec![3.0, 4.0][..]), [6.0, 8.0]);
}

#[test]
fn no_floats_at_all() {
    let empty: &[f64] = &[];
    assert_eq!(value_and_grad(|_| 7.0, empty), (7.0, vec![]));
    assert_eq!(jvp(|_| 7.0, empty, empty), (7.0, 0.0));
    assert_eq!(
        jacobian_forward(|_| vec![7.0, 8.0], empty),
        [vec![], vec![]]
    );
    assert_eq!(
        jacobian_reverse(|_| vec![7.0, 8.0], empty),
        [vec![], vec![]]
    );
    assert_eq!(jacobian_forward(|_| Vec::new(), &[1.0, 2.0]), [[0.0; 2]; 0]);
    assert_eq!(jacobian_reverse(|_| Vec::new(), &[1.0, 2.0]), [[0.0; 2]; 0]);
    assert_eq!(hessian(|_| 7.0, empty), Vec::<Vec<f64>>::new());
    assert_eq!(hvp(|_| 7.0, empty, empty), Vec::<f64>::new());
}

#[test]
fn more_columns_than_lanes() {
    let x: Vec<f64> = (1..=6).map(f64::from).collect();
    let f = |x: &[f64]| x.iter().map(|x| x * x * x).collect::<Vec<f64>>();
    let forward = jacobian_forward(f, &x);
    assert_eq!(forward, jacobian_reverse(f, &x));
    assert_eq!(forward, jacobian(f, &x));
    let hessian = hessian(|x| x.iter().map(|x| x * x * x).sum(), &x);
    for (row, x) in x.iter().enumerate() {
        for column in 0..6 {
            let expected = if row == column {
                [3.0 * x * x, 6.0 * x]
            } else {
                [0.0; 2]
            };
            assert_eq!([forward[row][column], hessian[row][column]], expected);
        }
    }
}

#[test]
fn products_agree_with_jacobians() {
    let f = |x: [f64; 3]| [x[0] * x[1], x[1].sin() * x[2]];
    let x = [1.0, 2.0, 3.0];
    let [first, second] = jacobian(f, x);
    let (value, tangent) = jvp(f, x, [1.0, 10.0, 100.0]);
    let dot = |row: [f64; 3]| row[0] + 10.0 * row[1] + 100.0 * row[2];
    assert_eq!(value, f(x));
    assert!((tangent[0] - dot(first)).abs() < 1e-12);
    assert!((tangent[1] - dot(second)).abs() < 1e-12);
    let (value, gradient) = vjp(f, x, [1.0, 10.0]);
    assert_eq!(value, f(x));
    for column in 0..3 {
        assert!((gradient[column] - first[column] - 10.0 * second[column]).abs() < 1e-12);
    }
}

#[test]
fn what_a_function_leaves_alone_has_no_derivative() {
    let f = |x: &[f64], y: &mut [f64]| y[0] = x[0] * x[0];
    let (mut y, mut tangent) = ([5.0; 2], [7.0; 2]);
    jvp_into(f, &[3.0], &[1.0], &mut y, &mut tangent);
    assert_eq!((y, tangent), ([9.0, 5.0], [6.0, 0.0]));
    let (mut seed, mut gradient) = ([1.0, 1.0], [7.0]);
    vjp_into(f, &[3.0], &mut seed, &mut y, &mut gradient);
    assert_eq!((gradient, seed), ([6.0], [0.0, 0.0]));
}

#[test]
#[should_panic = "`gradient` has length 3, but the gradient needs length 2"]
fn gradient_of_another_length() {
    grad_into(squares, &[1.0, 2.0], &mut [0.0; 3]);
}

#[test]
#[should_panic = "`direction` has length 1, but the point needs length 2"]
fn direction_of_another_length() {
    jvp(squares, &[1.0, 2.0], 1.0);
}

#[test]
#[should_panic = "`jacobian` has length 5, but the Jacobian needs length 4"]
fn jacobian_of_another_length() {
    jacobian_forward_into(
        |x, y| y.copy_from_slice(x),
        &[1.0, 2.0],
        &mut [0.0; 2],
        &mut [0.0; 5],
    );
}
