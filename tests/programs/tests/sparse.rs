//! Sparse Jacobians by blocks, and those where values are not finite: no entry may be lost for that.

use ferrozyme::{Pattern, SparseMatrix, sparse_jacobian};

/// The second result is infinite where `x[2]` is zero, and so is its derivative.
fn with_logarithm(x: &[f64], y: &mut [f64]) {
    y[0] = x[0] * x[1];
    y[1] = x[1] + x[2].ln();
}

#[test]
fn a_missing_entry_is_found_where_it_is_infinite() {
    let lacking = Pattern::new(3, [vec![0, 1], vec![1]]);
    let found = std::panic::catch_unwind(|| {
        sparse_jacobian(
            with_logarithm,
            &[1.0, 2.0, 0.0][..],
            &mut [0.0; 2],
            &lacking,
        )
    });
    let message = found.expect_err("the entry is missing");
    let message = message.downcast_ref::<String>().expect("a message");
    assert!(message.contains("lacks an entry in row 1"), "{message}");
}

#[test]
fn a_complete_pattern_serves_where_entries_are_infinite() {
    let pattern = Pattern::new(3, [vec![0, 1], vec![1, 2]]);
    let mut y = [0.0; 2];
    let jacobian = sparse_jacobian(with_logarithm, &[1.0, 2.0, 0.0][..], &mut y, &pattern);
    assert_eq!(y, [2.0, f64::NEG_INFINITY]);
    assert_eq!(jacobian.row(0).collect::<Vec<_>>(), [(0, 2.0), (1, 1.0)]);
    let (_, by_last) = jacobian.row(1).last().expect("two entries");
    assert!(!by_last.is_finite(), "{by_last}");
}

#[test]
fn patterns_found_where_derivatives_are_infinite_have_all_entries() {
    let pattern = Pattern::detect(with_logarithm, &[1.0, 2.0, 0.0][..], 2);
    let jacobian = sparse_jacobian(
        with_logarithm,
        &[1.0, 2.0, 4.0][..],
        &mut [0.0; 2],
        &pattern,
    );
    assert_eq!(jacobian.to_dense(), [[2.0, 1.0, 0.0], [0.0, 1.0, 0.25]]);
}

#[test]
fn patterns_found_at_infinity_have_all_entries() {
    // Its derivative is zero there, and so it is next to it.
    let f = |x: &[f64], y: &mut [f64]| y[0] = 1.0 / (1.0 + x[0] * x[0]) + x[1];
    for far in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let pattern = Pattern::detect(f, &[far, 1.0][..], 1);
        assert_eq!(pattern, Pattern::new(2, [vec![0, 1]]), "{far}");
    }
}

#[test]
fn sums_that_overflow_are_no_missing_entries() {
    let f = |x: &[f32], y: &mut [f32]| y[0] = 3e38 * x[0] + 3e38 * x[1];
    let pattern = Pattern::new(2, [vec![0, 1]]);
    let jacobian = sparse_jacobian(f, &[0.0, 0.0][..], &mut [0.0], &pattern);
    assert_eq!(jacobian.to_dense(), [[3e38, 3e38]]);
}

/// Three results of a block, with branches and loops, scratch memory, and something that is not differentiated.
fn block(powers: &[u32], x: &[f64; 3]) -> [f64; 3] {
    let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let turned = match length > 1.0 {
        true => (x[0] / length).sin() * x[1],
        false => x[1],
    };
    let terms: Vec<f64> = powers
        .iter()
        .map(|&power| x[2].powi(power as i32))
        .collect();
    let mut sum = turned;
    for (i, term) in terms.iter().enumerate() {
        sum += term * x[i % 2];
    }
    [turned, sum, x[0].max(x[2]) * length]
}

#[test]
fn rows_of_blocks_are_those_of_finite_differences() {
    let powers = [1, 2, 3];
    let blocks = [[0, 1, 2], [3, 1, 0], [2, 2, 3]];
    let mut jacobian = SparseMatrix::new(4);
    for shift in [0.0, 0.25] {
        let x = [0.3 + shift, 0.4, -0.2, 1.7 - shift];
        jacobian.clear();
        jacobian.push_blocks(
            &x,
            blocks,
            |places| *places,
            |_, x: &[f64; 3]| block(&powers, x),
        );
        assert_eq!((jacobian.rows(), jacobian.columns()), (9, 4));
        let dense = jacobian.to_dense();
        let values = |x: &[f64; 4]| blocks.map(|places| block(&powers, &places.map(|i| x[i])));
        for column in 0..4 {
            let at = |step: f64| {
                let mut there = x;
                there[column] += step;
                values(&there)
            };
            let (above, below) = (at(1e-6), at(-1e-6));
            for row in 0..9 {
                let [above, below] = [above, below].map(|all| all.as_flattened()[row]);
                let expected = (above - below) / 2e-6;
                let found = dense[row][column];
                assert!(
                    (found - expected).abs() <= 1e-7 * (1.0 + expected.abs()),
                    "row {row}, column {column}: {found} and {expected}"
                );
            }
        }
    }
}
