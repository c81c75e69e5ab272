//! Casts between the two precisions, between integers and floats, and through bits.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{Field, SINGLE, Scalar, assert_close};

#[autodiff_reverse(dmixed, Duplicated, Duplicated, Active)]
#[autodiff_forward(bmixed, Dual, Dual, Dual)]
fn mixed_precision(weights: &[f32], x: &[f64]) -> f64 {
    let mut sum = 0.0f64;
    for (w, x) in weights.iter().zip(x) {
        sum += f64::from(*w) * x * x;
    }
    sum
}

#[test]
fn single_precision_weights_and_double_precision_sum() {
    let (weights, x) = ([0.5f32, -1.25, 2.0], [1.5, 0.3, -0.7]);
    let (mut dweights, mut dx) = ([0.0f32; 3], [0.0; 3]);
    let value = dmixed(&weights, &mut dweights, &x, &mut dx, 2.0);
    assert_close("value", value, 0.5 * 2.25 - 1.25 * 0.09 + 2.0 * 0.49, 1e-12);
    for i in 0..3 {
        assert_close(
            "f32 gradient",
            f64::from(dweights[i]),
            2.0 * x[i] * x[i],
            1e-6,
        );
        assert_close(
            "f64 gradient",
            dx[i],
            4.0 * f64::from(weights[i]) * x[i],
            1e-12,
        );
    }
    let (_, tangent) = bmixed(&weights, &[1.0, 0.5, -1.0], &x, &[0.25, 1.0, -0.5]);
    let expected: f64 = (0..3)
        .map(|i| {
            let (tw, tx) = ([1.0, 0.5, -1.0][i], [0.25, 1.0, -0.5][i]);
            tw * x[i] * x[i] + 2.0 * f64::from(weights[i]) * x[i] * tx
        })
        .sum();
    assert_close("tangent", tangent, expected, 1e-12);
}

#[autodiff_reverse(dnarrow, Active, Active)]
#[autodiff_forward(bnarrow, Dual, Dual)]
fn through_single(x: f64) -> f64 {
    let narrow = (x * 3.0) as f32;
    let wide = f64::from(narrow.sin());
    wide * x
}

#[test]
fn down_and_up_again() {
    for x in [0.3f64, 1.7] {
        let expected = 3.0 * (3.0 * x).cos() * x + (3.0 * x).sin();
        assert_close("reverse", dnarrow(x, 1.0).1, expected, SINGLE);
        assert_close("forward", bnarrow(x, 1.0).1, expected, SINGLE);
    }
}

#[autodiff_reverse(dsingle, Active, Active, Active)]
fn single_arguments(x: f32, y: f32) -> f64 {
    f64::from(x) * f64::from(y).exp()
}

#[test]
fn single_arguments_and_double_result() {
    let (value, by_x, by_y): (f64, f32, f32) = dsingle(1.5, 0.25, 2.0);
    assert_close("value", value, 1.5 * 0.25f64.exp(), 1e-12);
    assert_close("by x", f64::from(by_x), 2.0 * 0.25f64.exp(), 1e-6);
    assert_close("by y", f64::from(by_y), 3.0 * 0.25f64.exp(), 1e-6);
}

#[autodiff_reverse(dinteger, Active, Active)]
#[autodiff_forward(binteger, Dual, Dual)]
fn through_integers(x: f64) -> f64 {
    // What passes through an integer has no derivative; what stays a float keeps it.
    let n = x as i64;
    let clipped = (x * 10.0) as u8;
    let index = x.floor() as usize % 4;
    let table = [1.0, 2.0, 4.0, 8.0];
    let rest = x - n as f64;
    rest * rest * table[index] + f64::from(clipped) * x + (n as u32 as f32 as f64) * x
}

#[test]
fn floats_to_integers_and_back() {
    Scalar::new("integers", through_integers)
        .reverse(dinteger)
        .forward(binteger)
        .closed_form(|x| {
            let n = x.trunc();
            2.0 * (x - n) * [1.0, 2.0, 4.0, 8.0][x as usize % 4] + f64::from((x * 10.0) as u8) + n
        })
        .check(&[0.33, 2.77, 5.25]);
}

#[autodiff_reverse(dbits, Active, Active)]
fn through_bits(x: f64) -> f64 {
    // The absolute value and the exponent by their bits, as fast code does.
    let magnitude = f64::from_bits(x.to_bits() & !(1 << 63));
    let exponent = ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    magnitude * f64::from(exponent + 1)
}

/// Reading the bits of an active number as an integer has no derivative that anyone could know: what matters is that the
/// sign trick is understood, which LLVM turns into `fabs`.
#[test]
fn absolute_value_by_bits() {
    for (x, expected) in [(1.5, 1.0), (-2.5, -2.0), (9.0, 4.0)] {
        assert_close("bits", dbits(x, 1.0).1, expected, 1e-12);
    }
}

#[autodiff_reverse(dsum, Duplicated, Active)]
fn sum_in_single(x: &[f32]) -> f32 {
    let mut total = 0.0f64;
    for &x in x {
        total += f64::from(x).powi(3);
    }
    (total / x.len() as f64) as f32
}

#[test]
fn accumulate_singles_in_double() {
    let x = [0.5f32, -1.5, 2.0];
    let mut dx = [0.0f32; 3];
    dsum(&x, &mut dx, 1.0);
    for i in 0..3 {
        assert_close("cube", f64::from(dx[i]), f64::from(x[i]).powi(2), 1e-6);
    }
}

#[autodiff_reverse(dscaled, Duplicated, Const, Const, Active)]
fn quantised(scale: &[f64], codes: &[i8], zero: i32) -> f64 {
    codes
        .iter()
        .zip(scale)
        .map(|(&code, scale)| scale * scale * f64::from(i32::from(code) - zero))
        .sum()
}

#[test]
fn quantised_integers() {
    let codes = [-3i8, 100, 7];
    Field::new("quantised", |x| quantised(x, &codes, 5))
        .reverse(|x, dx, seed| dscaled(x, dx, &codes, 5, seed))
        .closed_form(|x| vec![-16.0 * x[0], 190.0 * x[1], 4.0 * x[2]])
        .check(&[0.5, 0.25, -1.0]);
}
