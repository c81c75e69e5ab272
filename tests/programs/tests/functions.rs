//! The function interface: gradients and products of closures, without attributes.

use ferrozyme::{
    grad, grad_into, hessian, hessian_into, hvp, hvp_into, jacobian, jacobian_forward,
    jacobian_reverse, jvp, jvp_into, value_and_grad, value_and_grad_into, vjp, vjp_into,
};
use ferrozyme_programs::{
    DIFFERENCES, EXACT, Field, assert_all_close, assert_close, gradient_by_differences,
    random_vector,
};

#[test]
fn gradient_of_one_number() {
    assert_close("sine", grad(|x: f64| x.sin(), 0.7), 0.7f64.cos(), EXACT);
    assert_close(
        "single",
        f64::from(grad(|x: f32| x * x * x, 2.0f32)),
        12.0,
        1e-6,
    );
    let (value, slope) = value_and_grad(|x: f64| x.exp() * x, 0.5);
    assert_close("value", value, 0.5 * 0.5f64.exp(), EXACT);
    assert_close("slope", slope, 1.5 * 0.5f64.exp(), EXACT);
}

#[test]
fn closure_that_captures() {
    let weights = vec![1.0, -2.0, 0.5];
    let bias = 0.25;
    let names = ["a".to_string(), "bc".to_string()];
    let loss = |x: &[f64]| {
        let sum: f64 = x.iter().zip(&weights).map(|(x, w)| w * x).sum();
        (sum + bias).tanh() * names.len() as f64
    };
    let x = [0.5, 0.25, -1.0];
    let expected = gradient_by_differences(loss, &x);
    assert_all_close("captured", &grad(loss, &x), &expected, DIFFERENCES);
}

#[test]
fn one_closure_in_every_way() {
    let scale = 3.0;
    let f = |x: &[f64]| scale * x[0] * x[1].sin() + x[2].powi(3) * x[0];
    let x = [0.8, -0.4, 1.2];
    Field::new("closure", f)
        .reverse(|x, dx, seed| {
            let (value, gradient) = value_and_grad(f, x);
            for (dx, g) in dx.iter_mut().zip(gradient) {
                *dx += seed * g;
            }
            value
        })
        .forward(|x, v| jvp(f, x, v))
        .check(&x);
    let mut gradient = [9.0; 3];
    grad_into(f, &x, &mut gradient);
    assert_all_close("grad_into", &gradient, &grad(f, &x), 1e-15);
    let value = value_and_grad_into(f, &x, &mut gradient);
    assert_close("value_and_grad_into", value, f(&x), 1e-15);
}

#[test]
fn products_with_the_jacobian() {
    let f = |x: &[f64]| vec![x[0] * x[1], x[0].exp() - x[1], x[0].sin() * x[1].cos()];
    let x = [0.3, 0.9];
    let (v, u) = (random_vector(2, 1), random_vector(3, 2));
    let (value, tangent) = jvp(f, &x, &v);
    let (same, gradient) = vjp(f, &x, &u);
    assert_all_close("values", &value, &f(&x), 1e-15);
    assert_all_close("values", &same, &f(&x), 1e-15);
    let forward: f64 = tangent.iter().zip(&u).map(|(t, u)| t * u).sum();
    let backward: f64 = gradient.iter().zip(&v).map(|(g, v)| g * v).sum();
    assert_close("⟨Jv, u⟩ = ⟨v, Jᵀu⟩", forward, backward, EXACT);

    let whole = jacobian(f, &x);
    let by_columns = jacobian_forward(f, &x);
    let by_rows = jacobian_reverse(f, &x);
    let expected = [
        [x[1], x[0]],
        [x[0].exp(), -1.0],
        [x[0].cos() * x[1].cos(), -x[0].sin() * x[1].sin()],
    ];
    for row in 0..3 {
        assert_all_close("jacobian", &whole[row][..], &expected[row], EXACT);
        assert_all_close(
            "jacobian_forward",
            &by_columns[row][..],
            &expected[row],
            EXACT,
        );
        assert_all_close("jacobian_reverse", &by_rows[row][..], &expected[row], EXACT);
    }
}

#[test]
fn in_place_products() {
    let f = |x: &[f64], y: &mut [f64]| {
        y[0] = x[0] * x[1];
        y[1] = y[0] * x[1] + x[0];
    };
    let x = [2.0, 3.0];
    let (mut y, mut tangent, mut gradient) = ([0.0; 2], [0.0; 2], [0.0; 2]);
    jvp_into(f, &x, &[1.0, -1.0], &mut y, &mut tangent);
    assert_eq!((y, tangent), ([6.0, 20.0], [1.0, -2.0]));
    vjp_into(f, &x, &mut [1.0, 10.0], &mut y, &mut gradient);
    assert_eq!(gradient, [3.0 + 100.0, 2.0 + 120.0]);
}

#[test]
fn second_derivatives() {
    let center = vec![0.5, -0.25, 1.0];
    let f = |x: &[f64]| {
        let square: f64 = x.iter().zip(&center).map(|(x, c)| (x - c) * (x - c)).sum();
        (-square).exp() + x[0] * x[1] * x[2]
    };
    let x = [0.3, 0.1, 0.7];
    let v = random_vector(3, 5);
    let n = 3;
    let mut expected = vec![vec![0.0; n]; n];
    let gaussian = f(&x) - x[0] * x[1] * x[2];
    for i in 0..n {
        for j in 0..n {
            let (a, b) = (x[i] - center[i], x[j] - center[j]);
            expected[i][j] = gaussian * (4.0 * a * b - if i == j { 2.0 } else { 0.0 });
            if i != j {
                expected[i][j] += x[3 - i - j];
            }
        }
    }
    let product: Vec<f64> = expected
        .iter()
        .map(|row| row.iter().zip(&v).map(|(h, v)| h * v).sum())
        .collect();
    assert_all_close("hvp", &hvp(f, &x, &v), &product, EXACT);
    let (mut gradient, mut by_v) = ([0.0; 3], [0.0; 3]);
    hvp_into(f, &x, &v, &mut gradient, &mut by_v);
    assert_all_close("hvp_into", &by_v, &product, EXACT);
    assert_all_close("gradient beside it", &gradient, &grad(f, &x), EXACT);
    let whole = hessian(f, &x);
    for i in 0..n {
        assert_all_close("hessian", &whole[i][..], &expected[i], EXACT);
    }
    let mut flat = [0.0; 9];
    hessian_into(f, &x, &mut flat);
    assert_all_close("hessian_into", &flat, &expected.concat(), EXACT);
}

/// A generic driver, as an optimiser of the user would be: the closure comes from outside.
fn descend(f: impl Fn(&[f64]) -> f64 + Copy, start: &[f64], rate: f64, steps: usize) -> Vec<f64> {
    let mut x = start.to_vec();
    let mut gradient = vec![0.0; x.len()];
    for _ in 0..steps {
        grad_into(|x: &[f64]| f(x), &x, &mut gradient);
        for (x, g) in x.iter_mut().zip(&gradient) {
            *x -= rate * g;
        }
    }
    x
}

#[test]
fn optimiser_over_closures() {
    let target = [1.0, -2.0, 0.5];
    let found = descend(
        |x| x.iter().zip(&target).map(|(x, t)| (x - t).powi(2)).sum(),
        &[0.0; 3],
        0.1,
        200,
    );
    assert_all_close("descent", &found, &target, 1e-10);
    let other = descend(|x| (x[0] - 2.0).powi(4) + x[0] * x[0], &[0.0], 0.02, 2000);
    assert_close(
        "another closure",
        4.0 * (other[0] - 2.0).powi(3) + 2.0 * other[0],
        0.0,
        1e-9,
    );
}

/// Newton's method with gradient and Hessian of the same closure.
#[test]
fn newton_over_a_closure() {
    let f = |[x, y]: [f64; 2]| (x - 1.0).powi(2) * (1.0 + y * y) + (y - 0.5).powi(4) + 0.5 * y * y;
    let mut point = [0.0, 0.0];
    for _ in 0..40 {
        let [gx, gy] = grad(f, point);
        let [[xx, xy], [yx, yy]] = hessian(f, point);
        let determinant = xx * yy - xy * yx;
        point = [
            point[0] - (gx * yy - gy * xy) / determinant,
            point[1] - (xx * gy - yx * gx) / determinant,
        ];
    }
    assert_all_close("stationary", &grad(f, point), &[0.0, 0.0], 1e-10);
}
