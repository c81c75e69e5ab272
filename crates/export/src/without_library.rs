//! Functions of floats in double precision where there is no C library, as formulas of functions that the exporter has.
//!
//! Those of this file are off by a few units in the last place next to where they are small, by some 10⁻¹³ of the value where a formula multiplies a large logarithm. Trigonometric functions of numbers beyond 2³⁰ are NaN: their argument
//! would have to be reduced with more digits. Single precision and narrower go through double precision.

use ferrozyme_ir::Opcode;
use ferrozyme_ir::formula::*;
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, LN_2, LN_10, LOG2_E, LOG10_E, PI};

/// What is missing of π/2 in a double, in two pieces.
const FRAC_PI_2_REST: [f64; 2] = [6.123233995736766e-17, -1.4973849048591833e-33];
/// Beyond this, trigonometric functions are NaN.
const FARTHEST: f64 = (1u64 << 30) as f64;

/// The formula of an operation, if it has one.
pub(crate) fn formula(opcode: Opcode) -> Option<Formula> {
    Some(match opcode {
        Opcode::Exp10 => exp(X * LN_10),
        Opcode::Log2 => log(X) * LOG2_E,
        Opcode::Log10 => log(X) * LOG10_E,
        Opcode::Sin => sine(0.0),
        Opcode::Cos => sine(1.0),
        Opcode::Tan => sine(0.0) / sine(1.0),
        Opcode::Asin => atan(X / sqrt((1.0 - X) * (1.0 + X))),
        Opcode::Acos => 2.0 * atan(sqrt((1.0 - X) / (1.0 + X))),
        Opcode::Atan2 => angle(),
        Opcode::Asinh => {
            let near = log1p(size() + size() * size() / (1.0 + sqrt(1.0 + size() * size())));
            copysign(where_(greater(size(), 1e8), log(size()) + LN_2, near), X)
        }
        Opcode::Acosh => {
            let above = X - 1.0;
            let near = log1p(above.clone() + sqrt(2.0 * above.clone() + above.clone() * above));
            where_(greater(X, 1e8), log(X) + LN_2, near)
        }
        Opcode::Atanh => copysign(0.5 * log1p(2.0 * size() / (1.0 - size())), X),
        Opcode::Pow => power(X, Y),
        Opcode::Powi => power(X, float(N)),
        Opcode::Ldexp => {
            let half = floor(0.5 * float(N));
            X * exp2(half.clone()) * exp2(float(N) - half)
        }
        Opcode::Hypot => {
            let (large, small) = (fmax(size(), fabs(Y)), fmin(size(), fabs(Y)));
            let ratio = small / large.clone();
            let length = large.clone() * sqrt(1.0 + ratio.clone() * ratio);
            let plain = or(
                equal(large.clone(), 0.0),
                equal(large.clone(), f64::INFINITY),
            );
            where_(
                or(is_nan(X), is_nan(Y)),
                X + Y,
                where_(plain, large, length),
            )
        }
        Opcode::Remainder => nearest_remainder(),
        Opcode::Erfc => where_(less(X, 2.0), 1.0 - erf(X), tail()),
        Opcode::Tgamma => where_(less(X, 0.5), PI / (sinpi(X) * gamma(1.0 - X)), gamma(X)),
        Opcode::Lgamma => {
            let mirrored = log(PI / fabs(sinpi(X))) - log_gamma(1.0 - X);
            where_(less(X, 0.5), mirrored, log_gamma(X))
        }
        _ => return None,
    })
}

fn size() -> Formula {
    fabs(X)
}

/// `a·b + c`, rounded once.
fn fma(a: impl Into<Formula>, b: impl Into<Formula>, c: impl Into<Formula>) -> Formula {
    apply(Opcode::Fma, vec![a.into(), b.into(), c.into()])
}

/// A polynomial with these coefficients, that of the highest power first.
fn polynomial(x: &Formula, coefficients: &[f64]) -> Formula {
    let (first, rest) = coefficients.split_first().expect("it has coefficients");
    let start = Formula::Constant(*first);
    rest.iter()
        .fold(start, |sum, &next| fma(sum, x.clone(), next))
}

/// sin(x + k·π/2) for a whole number k: with n, the nearest whole number to 2x/π, and r = x − n·π/2, it is ±sin r or ±cos r, by n + k modulo 4. Taylor's series for |r| ≤ π/4 end below 10⁻¹⁸.
fn sine(quarters: f64) -> Formula {
    let n = round_even(X * FRAC_2_PI);
    let [middle, last] = FRAC_PI_2_REST;
    let r = fma(-n.clone(), FRAC_PI_2, X);
    let r = fma(-n.clone(), middle, r);
    let r = fma(-n.clone(), last, r);
    let z = r.clone() * r.clone();
    let inverse_factorials = |last: u32| -> Vec<f64> {
        let powers = (1..=last).rev().step_by(2);
        let powers = powers.take_while(|&power| power > 1);
        powers
            .map(|power| {
                let sign = if (power / 2) % 2 == 0 { 1.0 } else { -1.0 };
                sign / (1..=u64::from(power)).product::<u64>() as f64
            })
            .collect()
    };
    let small = r.clone() + r * z.clone() * polynomial(&z, &inverse_factorials(17));
    let large = 1.0 + z.clone() * polynomial(&z, &inverse_factorials(18));
    let turned = n + quarters;
    let modulo = |by: f64| turned.clone() - by * floor(turned.clone() * (1.0 / by));
    let value = where_(equal(modulo(2.0), 1.0), large, small);
    let signed = where_(at_least(modulo(4.0), 2.0), -value.clone(), value);
    where_(less(size(), FARTHEST), signed, f64::NAN)
}

/// atan2 x, y.
fn angle() -> Formula {
    let half_turn = where_(
        less(copysign(1.0, Y), 0.0),
        copysign(PI, X),
        copysign(0.0, X),
    );
    where_(
        equal(X, 0.0),
        half_turn.clone() + X,
        atan(X / Y) + half_turn,
    )
}

/// x to the power of y, by e^(y·log|x|): its sign is that of x for odd whole numbers y.
fn power(x: Formula, y: Formula) -> Formula {
    let large = exp(y.clone() * log(fabs(x.clone())));
    let half = 0.5 * y.clone();
    let whole = equal(floor(y.clone()), y.clone());
    let even = equal(floor(half.clone()), half);
    let signed = where_(even, large.clone(), copysign(large.clone(), x.clone()));
    let of_negative = where_(whole, signed, f64::NAN);
    let value = where_(less(x.clone(), 0.0), of_negative, large);
    where_(or(equal(y, 0.0), equal(x, 1.0)), ONE, value)
}

/// IEEE's remainder, from that of truncated division by 2y: of what is left, y is taken away up to two times.
fn nearest_remainder() -> Formula {
    let divisor = fabs(Y);
    let less_than_two = frem(size(), 2.0 * divisor.clone());
    let take = |rest: Formula, strict: bool| {
        let twice = rest.clone() + rest.clone();
        let beyond = match strict {
            true => greater(twice, divisor.clone()),
            false => at_least(twice, divisor.clone()),
        };
        (beyond, rest - divisor.clone())
    };
    let (first, once) = take(less_than_two.clone(), true);
    let (second, twice) = take(once.clone(), false);
    let rest = where_(first, where_(second, twice, once), less_than_two);
    rest.clone() * copysign(1.0, X)
}

/// 1 − erf x for x ≥ 2, by its continued fraction: e^(−x²)/√π · 1/(x + ½/(x + 1/(x + 1½/(x + …)))).
fn tail() -> Formula {
    let mut fraction = X;
    for number in (1..=60).rev() {
        fraction = X + 0.5 * f64::from(number) / fraction;
    }
    exp(-(X * X)) / (PI.sqrt() * fraction)
}

/// Lanczos' approximation with g = 7: Γ(x) = √2π · t^(x−½) · e^(−t) · a(x) with t = x + 6½.
const LANCZOS: [f64; 9] = [
    0.999_999_999_999_809_9,
    676.520_368_121_885_1,
    -1_259.139_216_722_402_8,
    771.323_428_777_653_1,
    -176.615_029_162_140_6,
    12.507_343_278_686_905,
    -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6,
    1.505_632_735_149_311_6e-7,
];

fn log_gamma(x: Formula) -> Formula {
    let mut sum = Formula::Constant(LANCZOS[0]);
    for (number, &coefficient) in LANCZOS.iter().enumerate().skip(1) {
        sum = sum + coefficient / (x.clone() + (number as f64 - 1.0));
    }
    let t = x.clone() + 6.5;
    (x - 0.5) * log(t.clone()) - t + log((2.0 * PI).sqrt() * sum)
}

fn gamma(x: Formula) -> Formula {
    exp(log_gamma(x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrozyme_ir::interpret::{Datum, Machine};
    use ferrozyme_ir::{Builder, Function, Module, Type};

    /// The value of a formula at numbers.
    fn value(formula: &Formula, x: f64, y: f64) -> f64 {
        let params = vec![Type::F64.into(), Type::F64.into(), Type::I32.into()];
        let mut function = Function::define("f", params, vec![Type::F64]);
        let arguments = function.arguments().to_vec();
        let mut b = Builder::at_body(&mut function);
        let mut variable = |_: &mut Builder<'_>, variable| match variable {
            Variable::X => arguments[0],
            Variable::Y => arguments[1],
            _ => arguments[2],
        };
        let result = FormulaWriter::new(Type::F64).emit(&mut b, &mut variable, formula);
        b.ret(&[result]);
        let mut module = Module::new();
        let id = module.functions.push(function);
        let arguments = [Datum::f64(x), Datum::f64(y), Datum::i32(y as i32)];
        let results = Machine::new(&module).call(id, &arguments).unwrap();
        results[0].as_f64().expect("the result is a float")
    }

    fn check(opcode: Opcode, exact: impl Fn(f64, f64) -> f64, points: &[(f64, f64)]) {
        let formula = formula(opcode).expect("it has one");
        for &(x, y) in points {
            let (computed, exact) = (value(&formula, x, y), exact(x, y));
            let close = computed == exact
                || (computed.is_nan() && exact.is_nan())
                || (computed - exact).abs() <= 2e-13 * exact.abs().max(1e-2);
            assert!(close, "{opcode} of {x}, {y} is {computed}, not {exact}");
        }
    }

    #[test]
    fn formulas_are_the_functions() {
        let wide = [
            0.0, 0.3, -0.3, 0.7, -0.99, 1.0, -1.0, 1.5, 2.0, -2.0, 3.7, -5.25, 11.0, 40.5, -123.4,
        ];
        let points: Vec<(f64, f64)> = wide
            .iter()
            .flat_map(|&x| [-3.0, -0.5, 0.0, 1.0, 2.0, 7.5].map(|y| (x, y)))
            .collect();
        check(Opcode::Sin, |x, _| x.sin(), &points);
        check(Opcode::Cos, |x, _| x.cos(), &points);
        check(Opcode::Tan, |x, _| x.tan(), &points);
        check(
            Opcode::Sin,
            |x, _| x.sin(),
            &[(1e9, 0.0), (-12345678.9, 0.0), (3e5, 0.0)],
        );
        check(
            Opcode::Sin,
            |_, _| f64::NAN,
            &[(1e10, 0.0), (f64::INFINITY, 0.0)],
        );
        check(Opcode::Asin, |x, _| x.asin(), &points);
        check(Opcode::Acos, |x, _| x.acos(), &points);
        check(Opcode::Atan2, f64::atan2, &points);
        check(Opcode::Asinh, |x, _| x.asinh(), &points);
        check(Opcode::Acosh, |x, _| x.acosh(), &points);
        check(Opcode::Atanh, |x, _| x.atanh(), &points);
        check(Opcode::Pow, f64::powf, &points);
        check(Opcode::Powi, |x, y| x.powi(y as i32), &points);
        check(Opcode::Hypot, f64::hypot, &points);
        check(Opcode::Exp10, |x, _| 10f64.powf(x), &points);
        check(Opcode::Log2, |x, _| x.log2(), &points);
        check(Opcode::Log10, |x, _| x.log10(), &points);
        let divided: Vec<(f64, f64)> = points.iter().copied().filter(|p| p.1 != 0.0).collect();
        let remainder = |x: f64, y: f64| x - y * (x / y).round_ties_even();
        check(Opcode::Remainder, remainder, &divided);
        let known = [
            (3.0, 2.209_049_699_858_544e-5),
            (5.0, 1.537_459_794_428_034_8e-12),
        ];
        for (x, exact) in known {
            let computed = value(&formula(Opcode::Erfc).unwrap(), x, 0.0);
            assert!(
                (computed / exact - 1.0).abs() < 1e-13,
                "{computed}, not {exact}"
            );
        }
        let factorial = |x: f64, _: f64| (1..x as u64).product::<u64>() as f64;
        check(
            Opcode::Tgamma,
            factorial,
            &[(1.0, 0.0), (2.0, 0.0), (5.0, 0.0), (15.0, 0.0)],
        );
        let root = PI.sqrt();
        check(Opcode::Tgamma, |_, _| -2.0 * root, &[(-0.5, 0.0)]);
        check(Opcode::Lgamma, |_, _| root.ln(), &[(0.5, 0.0)]);
        check(Opcode::Lgamma, |_, _| (2.0 * root).ln(), &[(-0.5, 0.0)]);
    }
}
