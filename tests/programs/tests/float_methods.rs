//! Every method of `f64` and `f32` that has a derivative, in both modes and both precisions, against its formula.
//!
//! One table serves both types: the body is used with `f32` and `f64` alike, the formula always with `f64`.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{Field, SINGLE, Scalar, assert_close};

/// The methods of one argument: name, body, derivative, and points at which it is smooth.
macro_rules! methods_of_one_number {
    ($callback:ident) => {
        $callback! {
            sin: |x| x.sin() => x.cos(), at [-2.5, 0.0, 0.75, 4.0];
            cos: |x| x.cos() => -x.sin(), at [-2.5, 0.0, 0.75, 4.0];
            tan: |x| x.tan() => 1.0 / (x.cos() * x.cos()), at [-1.0, 0.0, 0.75, 2.5];
            asin: |x| x.asin() => 1.0 / (1.0 - x * x).sqrt(), at [-0.75, 0.0, 0.5];
            acos: |x| x.acos() => -1.0 / (1.0 - x * x).sqrt(), at [-0.75, 0.0, 0.5];
            atan: |x| x.atan() => 1.0 / (1.0 + x * x), at [-3.0, 0.0, 0.5];
            sinh: |x| x.sinh() => x.cosh(), at [-1.5, 0.0, 2.0];
            cosh: |x| x.cosh() => x.sinh(), at [-1.5, 0.0, 2.0];
            tanh: |x| x.tanh() => 1.0 / (x.cosh() * x.cosh()), at [-1.5, 0.0, 2.0];
            asinh: |x| x.asinh() => 1.0 / (x * x + 1.0).sqrt(), at [-1.5, 0.25, 2.0];
            acosh: |x| x.acosh() => 1.0 / (x * x - 1.0).sqrt(), at [1.5, 2.0, 10.0];
            atanh: |x| x.atanh() => 1.0 / (1.0 - x * x), at [-0.5, 0.25, 0.75];
            sin_cos: |x| { let (sin, cos) = x.sin_cos(); sin * cos * cos } => x.cos().powi(3) - 2.0 * x.sin().powi(2) * x.cos(), at [-2.5, 0.0, 0.75];
            exp: |x| x.exp() => x.exp(), at [-2.0, 0.0, 1.5];
            exp2: |x| x.exp2() => x.exp2() * 2.0f64.ln(), at [-2.0, 0.0, 1.5];
            exp_m1: |x| x.exp_m1() => x.exp(), at [-2.0, 0.0, 1.5];
            ln: |x| x.ln() => 1.0 / x, at [0.25, 1.0, 7.0];
            ln_1p: |x| x.ln_1p() => 1.0 / (1.0 + x), at [-0.5, 0.0, 7.0];
            log_of_base: |x| x.log(3.0) => 1.0 / (x * 3.0f64.ln()), at [0.25, 1.0, 7.0];
            log2: |x| x.log2() => 1.0 / (x * 2.0f64.ln()), at [0.25, 1.0, 7.0];
            log10: |x| x.log10() => 1.0 / (x * 10.0f64.ln()), at [0.25, 1.0, 7.0];
            sqrt: |x| x.sqrt() => 0.5 / x.sqrt(), at [0.25, 1.0, 7.0];
            cbrt: |x| x.cbrt() => 1.0 / (3.0 * x.cbrt().powi(2)), at [-2.0, 0.25, 1.0, 7.0];
            recip: |x| x.recip() => -1.0 / (x * x), at [-2.0, 0.5, 3.0];
            powi: |x| x.powi(5) => 5.0 * x.powi(4), at [-1.5, 0.5, 2.0];
            powi_negative: |x| x.powi(-3) => -3.0 * x.powi(-4), at [-1.5, 0.5, 2.0];
            powi_zero: |x| x.powi(0) + x => 1.0, at [-1.5, 0.5, 2.0];
            powf: |x| x.powf(2.5) => 2.5 * x.powf(1.5), at [0.5, 1.0, 2.0];
            powf_negative: |x| x.powf(-0.5) => -0.5 * x.powf(-1.5), at [0.5, 1.0, 2.0];
            abs: |x| x.abs() => x.signum(), at [-1.5, 0.5, 2.0];
            signum: |x| x.signum() * x * x => 2.0 * x.abs(), at [-1.5, 0.5, 2.0];
            floor: |x| x.floor() * x => x.floor(), at [-1.5, 0.5, 2.25];
            ceil: |x| x.ceil() * x => x.ceil(), at [-1.5, 0.5, 2.25];
            round: |x| x.round() * x => x.round(), at [-1.25, 0.25, 2.75];
            round_ties_even: |x| x.round_ties_even() * x => x.round(), at [-1.25, 0.25, 2.75];
            trunc: |x| x.trunc() * x => x.trunc(), at [-1.5, 0.5, 2.25];
            fract: |x| x.fract() * x => x.fract() + x, at [-1.5, 0.5, 2.25];
            to_degrees: |x| x.to_degrees() => 180.0 / std::f64::consts::PI, at [-1.5, 0.5];
            to_radians: |x| x.to_radians() => std::f64::consts::PI / 180.0, at [-100.0, 45.0];
            negation: |x| -x => -1.0, at [-1.5, 0.5];
            remainder: |x| x % 0.75 => 1.0, at [-1.0, 0.5, 2.0];
            rem_euclid: |x| x.rem_euclid(0.75) => 1.0, at [-1.0, 0.5, 2.0];
            div_euclid: |x| x.div_euclid(0.75) * x => x.div_euclid(0.75), at [-1.0, 0.5, 2.0];
            clamp: |x| x.clamp(-1.0, 1.0) * x => if x.abs() < 1.0 { 2.0 * x } else { x.signum() }, at [-3.0, 0.5, 2.0];
            maximum_with_constant: |x| x.max(0.0) * 3.0 => if x > 0.0 { 3.0 } else { 0.0 }, at [-3.0, 2.0];
            minimum_with_constant: |x| x.min(0.0) * 3.0 => if x < 0.0 { 3.0 } else { 0.0 }, at [-3.0, 2.0];
            mul_add: |x| x.mul_add(x, 2.0) => 2.0 * x, at [-3.0, 2.0];
            classification: |x| if x.is_nan() || x.is_infinite() { 0.0 } else if x.is_sign_negative() { -x } else { x * x } => if x < 0.0 { -1.0 } else { 2.0 * x }, at [-3.0, 2.0];
        }
    };
}

macro_rules! test_in_double {
    ($($name:ident: |$x:ident| $body:expr => $derivative:expr, at $points:expr;)*) => { $(
        #[test]
        fn $name() {
            #[autodiff_reverse(reverse, Active, Active)]
            #[autodiff_forward(forward, Dual, Dual)]
            fn primal($x: f64) -> f64 {
                $body
            }
            Scalar::new(concat!("f64 ", stringify!($name)), primal)
                .reverse(reverse)
                .forward(forward)
                .closed_form(|$x: f64| {
                    let _ = $x;
                    $derivative
                })
                .check(&$points);
        }
    )* };
}

macro_rules! test_in_single {
    ($($name:ident: |$x:ident| $body:expr => $derivative:expr, at $points:expr;)*) => { $(
        #[test]
        fn $name() {
            #[autodiff_reverse(reverse, Active, Active)]
            #[autodiff_forward(forward, Dual, Dual)]
            fn primal($x: f32) -> f32 {
                $body
            }
            let widen = |(value, derivative): (f32, f32)| (f64::from(value), f64::from(derivative));
            Scalar::new(concat!("f32 ", stringify!($name)), |x| f64::from(primal(x as f32)))
                .in_single_precision()
                .reverse(|x, seed| widen(reverse(x as f32, seed as f32)))
                .forward(|x, direction| widen(forward(x as f32, direction as f32)))
                .closed_form(|$x: f64| { let _ = $x; $derivative })
                .check(&$points);
        }
    )* };
}

/// The methods of two arguments, both active: name, body, the two partial derivatives, and points at which it is smooth.
macro_rules! methods_of_two_numbers {
    ($callback:ident) => {
        $callback! {
            powf: |x, y| x.powf(y) => (y * x.powf(y - 1.0), x.powf(y) * x.ln()), at [[0.5, 2.5], [2.0, -1.5], [3.0, 0.25]];
            atan2: |x, y| x.atan2(y) => (y / (x * x + y * y), -x / (x * x + y * y)), at [[0.5, 2.5], [2.0, -1.5], [-3.0, -0.25]];
            hypot: |x, y| x.hypot(y) => (x / x.hypot(y), y / x.hypot(y)), at [[0.5, 2.5], [2.0, -1.5], [-3.0, -0.25]];
            max: |x, y| x.max(y) * x => (x.max(y) + if x > y { x } else { 0.0 }, if x > y { 0.0 } else { x }), at [[0.5, 2.5], [2.0, -1.5]];
            min: |x, y| x.min(y) * x => (x.min(y) + if x < y { x } else { 0.0 }, if x < y { 0.0 } else { x }), at [[0.5, 2.5], [2.0, -1.5]];
            copysign: |x, y| x.copysign(y) * y => ((x.signum() * y.signum()) * y, x.copysign(y)), at [[0.5, 2.5], [2.0, -1.5], [-3.0, 0.25]];
            log: |x, y| x.log(y) => (1.0 / (x * y.ln()), -x.ln() / (y * y.ln() * y.ln())), at [[0.5, 2.5], [2.0, 1.5]];
            remainder: |x, y| x % y => (1.0, -(x / y).trunc()), at [[7.5, 2.0], [-7.5, 2.0], [7.5, -2.0]];
            rem_euclid: |x, y| x.rem_euclid(y) => (1.0, -x.div_euclid(y)), at [[7.5, 2.0], [-7.5, 2.0], [7.5, -2.0]];
            midpoint: |x, y| x.midpoint(y) * x => (x.midpoint(y) + 0.5 * x, 0.5 * x), at [[7.5, 2.0], [-7.5, 2.0]];
            division: |x, y| x / y => (1.0 / y, -x / (y * y)), at [[7.5, 2.0], [-7.5, 2.0]];
            arithmetic: |x, y| (x - y) * (x + y) => (2.0 * x, -2.0 * y), at [[7.5, 2.0], [-7.5, 2.0]];
            assignment: |x, y| { let mut z = x; z += y; z *= x; z -= y * y; z /= 2.0; z } => ((2.0 * x + y) / 2.0, (x - 2.0 * y) / 2.0), at [[1.5, 2.0]];
            comparison: |x, y| match x.total_cmp(&y) { std::cmp::Ordering::Less => x * y, _ => x - y } => if x < y { (y, x) } else { (1.0, -1.0) }, at [[1.5, 2.0], [2.5, 2.0]];
        }
    };
}

macro_rules! test_pairs_in_double {
    ($($name:ident: |$x:ident, $y:ident| $body:expr => $partials:expr, at $points:expr;)*) => { $(
        #[test]
        fn $name() {
            #[autodiff_reverse(reverse, Active, Active, Active)]
            #[autodiff_forward(forward, Dual, Dual, Dual)]
            fn primal($x: f64, $y: f64) -> f64 {
                $body
            }
            for point in $points {
                Field::new(concat!("f64 ", stringify!($name)), |x| primal(x[0], x[1]))
                    .reverse(|x, dx, seed| {
                        let (value, first, second) = reverse(x[0], x[1], seed);
                        dx[0] += first;
                        dx[1] += second;
                        value
                    })
                    .forward(|x, direction| forward(x[0], direction[0], x[1], direction[1]))
                    .closed_form(|x| {
                        let ($x, $y) = (x[0], x[1]);
                        let (first, second): (f64, f64) = $partials;
                        vec![first, second]
                    })
                    .check(&point);
            }
        }
    )* };
}

macro_rules! test_pairs_in_single {
    ($($name:ident: |$x:ident, $y:ident| $body:expr => $partials:expr, at $points:expr;)*) => { $(
        #[test]
        fn $name() {
            #[autodiff_reverse(reverse, Active, Active, Active)]
            #[autodiff_forward(forward, Dual, Dual, Dual)]
            fn primal($x: f32, $y: f32) -> f32 {
                $body
            }
            for point in $points {
                let ($x, $y): (f64, f64) = (point[0], point[1]);
                let (first, second): (f64, f64) = $partials;
                let (x, y) = (point[0] as f32, point[1] as f32);
                let name = format!("f32 {} at {point:?}", stringify!($name));
                let (value, by_first, by_second) = reverse(x, y, 1.0);
                assert_close(&format!("{name}: value"), f64::from(value), f64::from(primal(x, y)), 1e-6);
                assert_close(&format!("{name}: first partial"), f64::from(by_first), first, SINGLE);
                assert_close(&format!("{name}: second partial"), f64::from(by_second), second, SINGLE);
                let (_, tangent) = forward(x, 0.5, y, -2.0);
                assert_close(&format!("{name}: tangent"), f64::from(tangent), 0.5 * first - 2.0 * second, SINGLE);
            }
        }
    )* };
}

mod double {
    use super::*;
    methods_of_one_number!(test_in_double);
    mod pairs {
        use super::*;
        methods_of_two_numbers!(test_pairs_in_double);
    }
}

mod single {
    use super::*;
    methods_of_one_number!(test_in_single);
    mod pairs {
        use super::*;
        methods_of_two_numbers!(test_pairs_in_single);
    }
}

/// Fused multiplication and clamping with all three arguments active.
#[test]
fn three_numbers() {
    #[autodiff_reverse(dfused, Active, Active, Active, Active)]
    #[autodiff_forward(bfused, Dual, Dual, Dual, Dual)]
    fn fused(x: f64, y: f64, z: f64) -> f64 {
        x.mul_add(y, z) * z
    }
    Field::new("mul_add of three", |x| fused(x[0], x[1], x[2]))
        .reverse(|x, dx, seed| {
            let (value, a, b, c) = dfused(x[0], x[1], x[2], seed);
            dx[0] += a;
            dx[1] += b;
            dx[2] += c;
            value
        })
        .forward(|x, v| bfused(x[0], v[0], x[1], v[1], x[2], v[2]))
        .closed_form(|x| vec![x[1] * x[2], x[0] * x[2], x[0] * x[1] + 2.0 * x[2]])
        .check(&[0.5, -2.0, 3.0]);

    #[autodiff_reverse(dclamped, Active, Active, Active, Active)]
    fn clamped(x: f64, low: f64, high: f64) -> f64 {
        let y = x.clamp(low, high);
        y * y
    }
    for (point, expected) in [
        ([0.5, -1.0, 1.0], [1.0, 0.0, 0.0]),
        ([-2.0, -1.0, 1.0], [0.0, -2.0, 0.0]),
        ([3.0, -1.0, 1.0], [0.0, 0.0, 2.0]),
    ] {
        Field::new("clamp between active bounds", |x| clamped(x[0], x[1], x[2]))
            .reverse(|x, dx, seed| {
                let (value, a, b, c) = dclamped(x[0], x[1], x[2], seed);
                dx[0] += a;
                dx[1] += b;
                dx[2] += c;
                value
            })
            .closed_form(|_| expected.to_vec())
            .check(&point);
    }
}

/// `powi` with an exponent that is only known at run time, and functions of an integer beside the active number.
#[test]
fn exponents_at_run_time() {
    #[autodiff_reverse(dpower, Active, Const, Active)]
    #[autodiff_forward(bpower, Dual, Const, Dual)]
    fn power(x: f64, n: i32) -> f64 {
        x.powi(n) + f64::from(n) * x
    }
    for n in [-3, -1, 0, 1, 2, 7] {
        Scalar::new("powi at run time", |x| power(x, n))
            .reverse(|x, seed| dpower(x, n, seed))
            .forward(|x, direction| bpower(x, direction, n))
            .closed_form(|x| {
                if n == 0 {
                    0.0
                } else {
                    f64::from(n) * x.powi(n - 1) + f64::from(n)
                }
            })
            .check(&[-1.5, 0.5, 2.0]);
    }
}

/// An exponential function that rounds by adding a large constant and subtracting it again, or reading the bits of the sum.
#[test]
fn rounding_by_addition() {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    fn series(r: f64) -> f64 {
        let terms = (1..16).scan(1.0, |power, i| {
            *power *= r / f64::from(i);
            Some(*power)
        });
        1.0 + terms.sum::<f64>()
    }
    #[autodiff_reverse(dsubtracted, Active, Active)]
    #[autodiff_forward(bsubtracted, Dual, Dual)]
    fn subtracted(x: f64) -> f64 {
        let k = (x * std::f64::consts::LOG2_E + ROUND) - ROUND;
        series(x - k * std::f64::consts::LN_2) * 2f64.powi(k as i32)
    }
    #[autodiff_reverse(dbits, Active, Active)]
    #[autodiff_forward(bbits, Dual, Dual)]
    fn bits(x: f64) -> f64 {
        let sum = x * std::f64::consts::LOG2_E + ROUND;
        let scale = f64::from_bits(sum.to_bits().wrapping_add(1023) << 52);
        series(x - (sum - ROUND) * std::f64::consts::LN_2) * scale
    }
    // Steps of 1/128 for a table, in a sum that another function sees in memory.
    const TABLE: f64 = ROUND / 128.0;
    #[inline(never)]
    fn shift(x: f64, sum: &mut [f64]) {
        sum[0] = x.mul_add(128.0 * std::f64::consts::LOG2_E, TABLE);
    }
    #[autodiff_reverse(dtable, Active, Active)]
    #[autodiff_forward(btable, Dual, Dual)]
    fn table(x: f64) -> f64 {
        let mut sum = [0.0];
        shift(x, &mut sum);
        let k = sum[0] - TABLE;
        series(x - k * (std::f64::consts::LN_2 / 128.0)) * (k / 128.0).exp2()
    }
    Scalar::new("steps of a table", table)
        .reverse(dtable)
        .forward(btable)
        .closed_form(f64::exp)
        .check(&[-3.1, -0.2, 0.7, 2.5]);
    Scalar::new("a large constant is subtracted", subtracted)
        .reverse(dsubtracted)
        .forward(bsubtracted)
        .closed_form(f64::exp)
        .check(&[-3.1, -0.2, 0.7, 2.5]);
    Scalar::new("bits of the sum are read", bits)
        .reverse(dbits)
        .forward(bbits)
        .closed_form(f64::exp)
        .check(&[-3.1, -0.2, 0.7, 2.5]);
}
