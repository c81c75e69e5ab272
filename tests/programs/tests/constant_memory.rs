//! Data without derivatives and values with derivatives, looked at through the same pointers.

use ferrozyme::{autodiff_forward, autodiff_reverse, grad, jvp};
use ferrozyme_programs::Field;
use std::collections::VecDeque;

fn rows() -> Vec<Vec<f64>> {
    vec![vec![1.0, 2.0], vec![3.0, 4.0, 5.0, 6.0], vec![0.0]]
}

/// Rows of the data, and rows that are made of the variables, are sorted together.
#[autodiff_reverse(dsorted, Const, Duplicated, Active)]
#[autodiff_forward(fsorted, Const, Dual, Dual)]
fn sorted(data: &[Vec<f64>], x: &[f64]) -> f64 {
    let multiple = |i: usize| x.iter().map(|v| v * (i as f64 + 1.0)).collect();
    let own: Vec<Vec<f64>> = (0..3).map(multiple).collect();
    let mut rows: Vec<&[f64]> = data.iter().map(Vec::as_slice).collect();
    rows.extend(own.iter().map(Vec::as_slice));
    rows.sort_by_key(|row| row.len());
    let dot = |row: &[f64]| row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
    let terms = rows.iter().enumerate();
    terms.map(|(i, row)| dot(row) * (i as f64 + 1.0)).sum()
}

#[test]
fn rows_of_both_kinds() {
    let data = rows();
    Field::new("rows of both kinds", |x| sorted(&data, x))
        .reverse(|x, dx, seed| dsorted(&data, x, dx, seed))
        .forward(|x, v| fsorted(&data, x, v))
        .check(&[0.3, -0.7, 1.1]);
    // Nothing was added to the data.
    assert_eq!(data, rows());
}

/// What a closure captures is copied to where results go in other rounds.
#[test]
fn captured_data() {
    let captured = vec![2.0, -1.0, 0.0];
    let f = |x: &[f64]| {
        let mut window = VecDeque::new();
        for round in 0..4 {
            let squares: Vec<f64> = x.iter().map(|v| v * v).collect();
            let next = if round % 2 == 0 { &captured } else { &squares };
            window.push_back(next.clone());
            if window.len() > 2 {
                window.pop_front();
            }
        }
        let sum = |v: &Vec<f64>| v.iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
        window.iter().map(sum).sum::<f64>()
    };
    let x = [0.3, -0.7, 1.1];
    let expected: Vec<f64> = (0..3).map(|i| captured[i] + 3.0 * x[i] * x[i]).collect();
    let found = grad(f, &x[..]);
    let (_, tangent) = jvp(f, &x[..], &[1.0, 2.0, 3.0][..]);
    for i in 0..3 {
        assert!((found[i] - expected[i]).abs() < 1e-12, "{found:?}");
    }
    let along = expected[0] + 2.0 * expected[1] + 3.0 * expected[2];
    assert!((tangent - along).abs() < 1e-12, "{tangent}");
    assert_eq!(captured, [2.0, -1.0, 0.0]);
}

#[inline(never)]
fn weighted(values: &[f64], x: &[f64]) -> f64 {
    values.iter().zip(x).map(|(v, x)| v * x * x).sum()
}

/// A function of its own is given the one or the other.
#[autodiff_reverse(dgiven, Const, Duplicated, Active)]
#[autodiff_forward(fgiven, Const, Dual, Dual)]
fn given(data: &[f64], x: &[f64]) -> f64 {
    let own: Vec<f64> = x.iter().map(|x| x.sin()).collect();
    (0..x.len())
        .map(|i| weighted(if i % 2 == 0 { data } else { &own }, &x[i..]))
        .sum()
}

#[test]
fn given_to_a_function() {
    let data = [0.5, 0.0, -2.0];
    Field::new("given to a function", |x| given(&data, x))
        .reverse(|x, dx, seed| dgiven(&data, x, dx, seed))
        .forward(|x, v| fgiven(&data, x, v))
        .check(&[0.3, -0.7, 1.1]);
    assert_eq!(data, [0.5, 0.0, -2.0]);
}
