//! Functions of the table that the crate `libm` does not have, or has otherwise.

use std::f64::consts::PI;

/// The smaller, −0 below +0; the other where one is NaN.
pub(super) fn smaller(a: f64, b: f64) -> f64 {
    // The order of `total_cmp` has −0 below +0.
    if b.is_nan() || (!a.is_nan() && a.total_cmp(&b).is_lt()) {
        a
    } else {
        b
    }
}

/// The larger, −0 below +0; the other where one is NaN.
pub(super) fn larger(a: f64, b: f64) -> f64 {
    if b.is_nan() || (!a.is_nan() && a.total_cmp(&b).is_gt()) {
        a
    } else {
        b
    }
}

/// NaN where one is NaN, else what the choice is.
pub(super) fn nan_or(a: f64, b: f64, choice: fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else {
        choice(a, b)
    }
}

/// Fraction and whole part, both with the sign of `x`.
pub(super) fn modf(x: f64) -> (f64, f64) {
    let whole = x.trunc();
    let fraction = if x.is_infinite() { 0.0 } else { x - whole };
    (fraction.copysign(x), whole)
}

/// Mantissa and exponent; zero, infinities and NaN are their own mantissas, with exponent 0.
pub(super) fn frexp(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        (x, 0)
    } else {
        libm::frexp(x)
    }
}

pub(super) fn logb(x: f64) -> f64 {
    if x == 0.0 {
        f64::NEG_INFINITY
    } else if !x.is_finite() {
        x.abs()
    } else {
        f64::from(libm::ilogb(x))
    }
}

/// Beyond this order, and for arguments far below it, Bessel functions are 0 or infinite in double precision.
const LARGE_ORDER: u32 = 10_000;

pub(super) fn bessel_j(n: i32, x: f64) -> f64 {
    if n.unsigned_abs() > LARGE_ORDER && x.abs() < f64::from(n.unsigned_abs()) / 2.0 {
        return 0.0;
    }
    libm::jn(n, x)
}

pub(super) fn bessel_y(n: i32, x: f64) -> f64 {
    let order = n.unsigned_abs();
    if order > LARGE_ORDER && x > 0.0 && x < f64::from(order) / 2.0 {
        // Y of order −n is (−1)ⁿ times that of order n.
        return if n < 0 && order % 2 == 1 {
            f64::INFINITY
        } else {
            f64::NEG_INFINITY
        };
    }
    libm::yn(n, x)
}

/// The n-th derivative of digamma, `ψ⁽ⁿ⁾(x) = (−1)ⁿ⁺¹ n! Σ 1/(x+k)ⁿ⁺¹` (for n = 0, digamma itself).
///
/// The relative error is about 1e-14 for positive arguments and orders up to 20, and below 1e-12 up to 170; close to the
/// zeros of even orders it is the absolute error that is small. Above order 170, where factorials leave the range of
/// doubles, logarithms stand in for them and about four digits are lost. Negative orders give NaN.
pub(super) fn polygamma(n: i32, x: f64) -> f64 {
    let Ok(order) = u32::try_from(n) else {
        return f64::NAN;
    };
    let even = order.is_multiple_of(2);
    if x.is_nan() || x == f64::NEG_INFINITY {
        return f64::NAN;
    }
    if x <= 0.0 && x == x.floor() {
        // A pole. The two sides agree for odd orders; for even ones only the sign of a zero tells the side.
        return match (even, x == 0.0) {
            (false, _) => f64::INFINITY,
            (true, true) => f64::NEG_INFINITY.copysign(-x),
            (true, false) => f64::NAN,
        };
    }
    if x > 0.0 {
        return if order == 0 {
            digamma(x)
        } else {
            signed_tail(even, scaled_zeta(order, x))
        };
    }
    if order > 20 {
        // Only the poles next to x count: 8 steps away, terms are below (1/16)²¹ of the nearest.
        let nearest = (-x).round();
        let first = (nearest - 8.0).max(0.0);
        let sum = (0..17)
            .map(|step| scaled_power(order, x + (first + f64::from(step))))
            .sum();
        return signed_tail(even, sum);
    }
    // Reflection: ψ⁽ⁿ⁾(x) = (−1)ⁿ ψ⁽ⁿ⁾(1−x) − dⁿ/dxⁿ π·cot(πx).
    let mirrored = polygamma(n, 1.0 - x);
    let mirrored = if even { mirrored } else { -mirrored };
    mirrored - cotangent_derivative(order, x)
}

/// `(−1)ⁿ⁺¹ s`.
fn signed_tail(even: bool, sum: f64) -> f64 {
    if even { -sum } else { sum }
}

/// The Bernoulli numbers B₂, B₄, …, B₂₄.
const BERNOULLI: [f64; 12] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
    43867.0 / 798.0,
    -174611.0 / 330.0,
    854513.0 / 138.0,
    -236364091.0 / 2730.0,
];

/// ψ(x) for positive x: `ψ(x) = ψ(x+1) − 1/x` up to 15, from there `ln x − 1/2x − Σ B₂ₖ/(2k x²ᵏ)`.
fn digamma(x: f64) -> f64 {
    if x == f64::INFINITY {
        return x;
    }
    let mut shifted = x;
    let mut below = 0.0;
    while shifted < 15.0 {
        below += 1.0 / shifted;
        shifted += 1.0;
    }
    let inverse_square = 1.0 / (shifted * shifted);
    let mut power = inverse_square;
    let mut series = 0.0;
    for (k, bernoulli) in (1..).zip(BERNOULLI) {
        series += bernoulli / f64::from(2 * k) * power;
        power *= inverse_square;
    }
    libm::log(shifted) - 0.5 / shifted - series - below
}

/// `n! Σ 1/(x+k)ⁿ⁺¹` for positive x and n: terms up to `x + k ≥ n + 15`, from there Euler–Maclaurin's
/// `(n−1)!/xⁿ + n!/2xⁿ⁺¹ + Σ B₂ₖ (2k+n−1)!/((2k)! x²ᵏ⁺ⁿ)`.
fn scaled_zeta(order: u32, x: f64) -> f64 {
    if x == f64::INFINITY {
        return 0.0;
    }
    let n = f64::from(order);
    let mut shifted = x;
    let mut sum = 0.0;
    while shifted < n + 15.0 {
        let term = scaled_power(order, shifted);
        sum += term;
        // The terms decrease: the rest of the sum is at most `term` times the number of remaining terms.
        if term * (n + 15.0) < sum * 1e-18 || sum == f64::INFINITY {
            return sum;
        }
        shifted += 1.0;
    }
    // The common factor (n−1)!/xⁿ.
    let factor = scaled_power(order, shifted) * shifted / n;
    let inverse_square = 1.0 / (shifted * shifted);
    // (2k+n−1)! / ((n−1)! (2k)! x²ᵏ)
    let mut coefficient = 1.0;
    let mut series = 1.0 + n / (2.0 * shifted);
    for (k, bernoulli) in (1..).zip(BERNOULLI) {
        let k = f64::from(k);
        coefficient *= (2.0 * k + n - 2.0) * (2.0 * k + n - 1.0) / ((2.0 * k - 1.0) * (2.0 * k))
            * inverse_square;
        series += bernoulli * coefficient;
    }
    sum + factor * series
}

/// `n!/xⁿ⁺¹`, without overflow in between.
fn scaled_power(order: u32, x: f64) -> f64 {
    if order <= 170 {
        let mut result = 1.0 / x;
        for k in 1..=order {
            result *= f64::from(k) / x;
        }
        return result;
    }
    let n = f64::from(order);
    let magnitude = libm::exp(libm::lgamma(n + 1.0) - (n + 1.0) * libm::log(x.abs()));
    if x < 0.0 && order.is_multiple_of(2) {
        -magnitude
    } else {
        magnitude
    }
}

/// `dⁿ/dxⁿ π·cot(πx)`, as a polynomial in the cotangent: `c' = −π(1 + c²)`. All its coefficients have one sign.
fn cotangent_derivative(order: u32, x: f64) -> f64 {
    // Exact, and keeps the digits of arguments next to a pole.
    let reduced = x - x.round();
    let cotangent = if reduced.abs() == 0.5 {
        0.0
    } else {
        1.0 / libm::tan(PI * reduced)
    };
    let mut polynomial = vec![0.0, PI];
    for _ in 0..order {
        let mut next = vec![0.0; polynomial.len() + 1];
        for (power, &coefficient) in polynomial.iter().enumerate().skip(1) {
            let slope = -PI * power as f64 * coefficient;
            next[power - 1] += slope;
            next[power + 1] += slope;
        }
        polynomial = next;
    }
    polynomial
        .iter()
        .rev()
        .fold(0.0, |sum, &coefficient| sum * cotangent + coefficient)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(a: f64, b: f64, relative: f64) {
        assert!(
            (a - b).abs() <= relative * b.abs(),
            "{a:e} is not {b:e}: off by {:e}",
            (a - b).abs() / b.abs()
        );
    }

    #[test]
    fn polygamma_at_known_points() {
        const EULER: f64 = 0.577_215_664_901_532_9;
        const APERY: f64 = 1.202_056_903_159_594_3;
        close(polygamma(0, 1.0), -EULER, 1e-15);
        close(polygamma(0, 0.5), -EULER - 2.0 * 2.0f64.ln(), 1e-15);
        close(polygamma(0, 10.0), 2.251_752_589_066_721, 1e-15);
        close(polygamma(0, 1e10), (1e10f64).ln() - 0.5e-10, 1e-15);
        close(polygamma(0, -0.5), 0.036_489_973_978_576_52, 1e-13);
        close(polygamma(1, 1.0), PI * PI / 6.0, 1e-15);
        close(polygamma(1, 0.5), PI * PI / 2.0, 1e-15);
        close(polygamma(1, -0.5), PI * PI / 2.0 + 4.0, 1e-14);
        close(polygamma(2, 1.0), -2.0 * APERY, 1e-15);
        close(polygamma(2, 0.5), -14.0 * APERY, 1e-15);
        close(polygamma(3, 1.0), PI.powi(4) / 15.0, 1e-15);
        close(polygamma(3, 0.5), PI.powi(4), 1e-14);
        close(polygamma(5, 1.0), 8.0 * PI.powi(6) / 63.0, 1e-15);
    }

    #[test]
    fn polygamma_obeys_its_recurrence() {
        for order in [0, 1, 2, 3, 7, 20, 21, 60, 170, 171, 500] {
            for x in [0.1, 0.9, 3.7, 14.99, 40.0, 300.5, -0.3, -2.6, -7.25, -30.5] {
                let step = signed_tail(order % 2 == 0, scaled_power(order, x));
                let (here, next) = (polygamma(order as i32, x), polygamma(order as i32, x + 1.0));
                if !here.is_finite() || !step.is_finite() || step == 0.0 {
                    continue;
                }
                let scale = here.abs().max(next.abs()).max(step.abs());
                let tolerance = if order <= 20 {
                    2e-14
                } else if order <= 170 {
                    1e-12
                } else {
                    1e-10
                };
                assert!(
                    (here - next - step).abs() <= tolerance * scale,
                    "ψ{order}({x}): {here:e} − {next:e} is not {step:e}"
                );
            }
        }
    }

    #[test]
    fn polygamma_is_the_derivative_of_the_order_below() {
        for order in 1..6 {
            for x in [0.7, 2.3, 11.0, 25.0, -1.4, -20.3] {
                let h = 1e-4;
                let slope = (8.0 * (polygamma(order - 1, x + h) - polygamma(order - 1, x - h))
                    - (polygamma(order - 1, x + 2.0 * h) - polygamma(order - 1, x - 2.0 * h)))
                    / (12.0 * h);
                close(slope, polygamma(order, x), 1e-7);
            }
        }
    }

    #[test]
    fn polygamma_at_poles_and_ends() {
        assert_eq!(polygamma(0, 0.0), f64::NEG_INFINITY);
        assert_eq!(polygamma(0, -0.0), f64::INFINITY);
        assert_eq!(polygamma(1, -3.0), f64::INFINITY);
        assert!(polygamma(0, -3.0).is_nan());
        assert!(polygamma(-1, 1.0).is_nan());
        assert_eq!(polygamma(0, f64::INFINITY), f64::INFINITY);
        assert_eq!(polygamma(1, f64::INFINITY), 0.0);
        assert!(polygamma(1, f64::NEG_INFINITY).is_nan());
        assert_eq!(polygamma(i32::MAX, 0.5), f64::INFINITY);
    }

    #[test]
    fn bessel_functions_of_huge_order_return() {
        assert_eq!(bessel_j(i32::MAX, 1e5), 0.0);
        assert_eq!(bessel_y(i32::MAX, 1e5), f64::NEG_INFINITY);
        assert_eq!(bessel_y(-i32::MAX, 1e5), f64::INFINITY);
        close(bessel_j(1, 1.0), 0.440_050_585_744_933_5, 1e-14);
        close(bessel_y(-1, 2.0), 0.107_032_431_540_937_55, 1e-13);
    }

    #[test]
    fn the_smaller_and_the_larger() {
        let nan = f64::NAN;
        assert_eq!(smaller(nan, 1.0), 1.0);
        assert_eq!(larger(1.0, nan), 1.0);
        assert!(nan_or(nan, 1.0, smaller).is_nan());
        let zero = nan_or(0.0, -0.0, smaller);
        assert!(zero == 0.0 && zero.is_sign_negative());
        let zero = nan_or(-0.0, 0.0, larger);
        assert!(zero == 0.0 && zero.is_sign_positive());
    }
}
