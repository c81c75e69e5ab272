//! Several derivatives at once: forward mode with width, shadows in one long slice, reverse mode with several seeds.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{EXACT, assert_all_close, assert_close};

#[autodiff_forward(bnorm8, 8, Dual, Dual)]
#[autodiff_forward(bnorm8_only, 8, Dual, DualOnly)]
#[autodiff_reverse(dnorm, Duplicated, Active)]
fn weighted_norm(x: &[f64; 8]) -> f64 {
    let mut sum = 0.0;
    for i in 0..8 {
        sum += (i + 1) as f64 * x[i] * x[i] * x[(i + 3) % 8].cos();
    }
    sum.sqrt()
}

const POINT: [f64; 8] = [0.5, -0.25, 1.0, 0.75, -0.5, 0.3, 0.9, -0.6];

fn unit(i: usize) -> [f64; 8] {
    std::array::from_fn(|j| f64::from(u8::from(i == j)))
}

/// Eight unit directions give the whole gradient in one call.
#[test]
fn forward_width_eight() {
    let units: [[f64; 8]; 8] = std::array::from_fn(unit);
    let [a, b, c, d, e, f, g, h] = &units;
    let all: [f64; 9] = bnorm8(&POINT, a, b, c, d, e, f, g, h);
    let mut gradient = [0.0; 8];
    let value = dnorm(&POINT, &mut gradient, 1.0);
    assert_close("value", all[0], value, 1e-14);
    assert_close(
        "value against the primal",
        all[0],
        weighted_norm(&POINT),
        1e-14,
    );
    assert_all_close("gradient of width 8", &all[1..], &gradient, EXACT);
    let only: [f64; 8] = bnorm8_only(&POINT, a, b, c, d, e, f, g, h);
    assert_all_close("gradient of width 8, alone", &only, &gradient, EXACT);
}

#[autodiff_forward(bpolar4, 4, Dual, Dual, Dual)]
#[autodiff_reverse(dpolar, Active, Active, Active)]
fn polar(radius: f64, angle: f64) -> f64 {
    radius * angle.sin() + radius.ln() * angle
}

#[test]
fn width_four_of_scalars() {
    let all: [f64; 5] = bpolar4(2.0, 1.0, 0.0, 1.0, -0.5, 0.7, 0.0, 1.0, 2.0, 0.25);
    let (value, by_radius, by_angle) = dpolar(2.0, 0.7, 1.0);
    assert_close("value", all[0], value, 1e-14);
    let expected: Vec<f64> = [(1.0, 0.0), (0.0, 1.0), (1.0, 2.0), (-0.5, 0.25)]
        .iter()
        .map(|(r, a)| r * by_radius + a * by_angle)
        .collect();
    assert_all_close("tangents", &all[1..], &expected, EXACT);
}

#[autodiff_forward(bscale3, 3, Dual, Dual, Dual)]
#[autodiff_forward(bscale1, Dual, Dual, Dual)]
fn scale(x: &[f64], factor: f64, y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = factor * x * x;
    }
}

#[test]
fn width_three_with_outputs() {
    let x = [1.0, -2.0, 0.5];
    let directions = [[1.0, 0.0, 0.0], [0.5, 0.25, -1.0], [0.0, 0.0, 0.0]];
    let factors = [0.0, 1.0, -2.0];
    let (mut y, mut t0, mut t1, mut t2) = ([0.0; 3], [9.0; 3], [9.0; 3], [9.0; 3]);
    bscale3(
        &x,
        &directions[0],
        &directions[1],
        &directions[2],
        3.0,
        factors[0],
        factors[1],
        factors[2],
        &mut y,
        &mut t0,
        &mut t1,
        &mut t2,
    );
    assert_eq!(y, [3.0, 12.0, 0.75]);
    for (direction, factor, tangent) in [
        (directions[0], factors[0], t0),
        (directions[1], factors[1], t1),
        (directions[2], factors[2], t2),
    ] {
        let (mut y, mut expected) = ([0.0; 3], [0.0; 3]);
        bscale1(&x, &direction, 3.0, factor, &mut y, &mut expected);
        assert_all_close("one of three", &tangent, &expected, EXACT);
    }
}

#[autodiff_forward(bsoftplus, 4, Dualv, Dual)]
fn softplus_sum(x: &[f64]) -> f64 {
    x.iter().map(|x| x.exp().ln_1p()).sum()
}

/// `Dualv` takes all directions one after the other in one slice.
#[test]
fn directions_in_one_slice() {
    let x = [0.5, -1.0, 2.0];
    let directions = [
        1.0, 0.0, 0.0, //
        0.0, 1.0, 0.0, //
        0.0, 0.0, 1.0, //
        0.5, -2.0, 1.0,
    ];
    let all: [f64; 5] = bsoftplus(&x, &directions);
    assert_close("value", all[0], softplus_sum(&x), 1e-14);
    let gradient = x.map(|x| 1.0 / (1.0 + (-x).exp()));
    assert_all_close("unit directions", &all[1..4], &gradient, EXACT);
    assert_close(
        "another direction",
        all[4],
        0.5 * gradient[0] - 2.0 * gradient[1] + gradient[2],
        EXACT,
    );
}

#[autodiff_forward(bsquares, 2, Dualv, Dualv)]
fn squares(x: &[f32], y: &mut [f32]) {
    for i in 0..x.len() {
        y[i] = x[i] * x[i];
    }
}

#[test]
fn tangents_of_outputs_in_one_slice() {
    let (mut y, mut tangents) = ([0.0f32; 3], [9.0f32; 6]);
    bsquares(
        &[1.0, 2.0, 3.0],
        &[1.0, 0.0, 0.5, 0.0, -1.0, 2.0],
        &mut y,
        &mut tangents,
    );
    assert_eq!(y, [1.0, 4.0, 9.0]);
    assert_eq!(tangents, [2.0, 0.0, 3.0, 0.0, -4.0, 12.0]);
}

#[autodiff_reverse(dpair2, 2, Duplicated, Duplicated)]
fn pair(x: &[f64], y: &mut [f64]) {
    y[0] = x[0] * x[1];
    y[1] = x[0].exp() + x[1];
}

/// Reverse mode with two shadows: both rows of the Jacobian in one call.
#[test]
fn reverse_width_two() {
    let x = [0.5, 2.0];
    let (mut row0, mut row1, mut y) = ([0.0; 2], [0.0; 2], [0.0; 2]);
    let (mut seed0, mut seed1) = ([1.0, 0.0], [0.0, 1.0]);
    dpair2(&x, &mut row0, &mut row1, &mut y, &mut seed0, &mut seed1);
    assert_all_close("values", &y, &[1.0, 0.5f64.exp() + 2.0], 1e-14);
    assert_all_close("first row", &row0, &[2.0, 0.5], EXACT);
    assert_all_close("second row", &row1, &[0.5f64.exp(), 1.0], EXACT);
    assert_eq!((seed0, seed1), ([0.0; 2], [0.0; 2]));
}
