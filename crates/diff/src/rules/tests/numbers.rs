//! Numbers: first and second derivatives in both modes against central differences, and the conventions at the edges.

use super::super::*;
use super::straight_line::{forward, function_of, reverse};
use ferrozyme_ir::interpret::{Datum, Machine};
use ferrozyme_ir::{Form, MathFunction, Module, Slope, float_to_bits, parse_module};

/// A point at which an operation is smooth: its floats, and its whole number if it takes one.
type Point = (Vec<f64>, Option<i32>);

/// Points of the domain that the row of an operation tells, and some beyond.
fn points(opcode: Opcode) -> Vec<Point> {
    use Opcode::*;
    let beyond: &[(&[f64], Option<i32>)] = match opcode {
        Sqrt | Log | Log2 | Log10 | Tgamma => &[(&[0.3], None)],
        Cbrt => &[(&[-2.0], None), (&[0.3], None), (&[8.0], None)],
        Log1p => &[(&[-0.7], None)],
        Lgamma => &[(&[-1.6], None), (&[0.4], None), (&[5.5], None)],
        Tan => &[(&[2.0], None)],
        Acosh => &[(&[1.2], None), (&[9.0], None)],
        Pow => &[
            (&[0.4, 2.5], None),
            (&[0.7, -1.3], None),
            (&[2.0, 3.0], None),
            (&[1.7, 0.0], None),
        ],
        Powi => &[
            (&[1.7], Some(0)),
            (&[1.7], Some(1)),
            (&[1.7], Some(-1)),
            (&[0.6], Some(-3)),
            (&[-1.4], Some(-2)),
        ],
        Ldexp => &[(&[1.3], Some(5))],
        Atan2 => &[(&[0.7, -1.2], None), (&[-0.7, -1.2], None)],
        Hypot => &[(&[0.6, 0.8], None)],
        Frem | Remainder | Copysign | Fmin | Fmax | Fminimum | Fmaximum | Fdim => &[
            (&[5.5, 1.3], None),
            (&[1.2, 3.4], None),
            (&[-5.5, -1.3], None),
        ],
        _ => &[],
    };
    let beyond = beyond
        .iter()
        .map(|&(floats, whole)| (floats.to_vec(), whole));
    let (form, row) = (opcode.form(), opcode.math().expect("it is a function"));
    let domain = match form {
        _ if !row.domain.is_empty() => row.domain,
        Form::FloatBinary => &[(-3.1, 5.5), (-4.4, 1.3)],
        Form::FloatTernary => &[(-2.5, 2.0); 3],
        _ => &[(-1.4, 2.2)],
    };
    let within = |(low, high): (f64, f64), part: f64| {
        let (low, high) = (low.max(-3.0), high.min(low.max(-3.0) + 6.0));
        low + part * (high - low)
    };
    let parts = [[0.2, 0.9, 0.4], [0.55, 0.3, 0.7], [0.9, 0.6, 0.1]];
    let at = parts.iter().flat_map(|parts| {
        let mut floats: Vec<f64> = domain
            .iter()
            .zip(parts)
            .map(|(&interval, &part)| within(interval, part))
            .collect();
        if form != Form::FloatAndInt {
            return vec![(floats, None)];
        }
        floats.truncate(1);
        let (least, most) = (domain[1].0 as i32, domain[1].1 as i32);
        let with_integer = |n: i32| (floats.clone(), Some(n));
        (least..=most).map(with_integer).collect()
    });
    at.chain(beyond).collect()
}

/// A function of one operation on doubles.
fn function_on_doubles(opcode: Opcode) -> Function {
    let (operands, results): (&[Type], &[Type]) = match opcode.form() {
        Form::FloatUnary => (&[Type::F64], &[Type::F64]),
        Form::FloatBinary => (&[Type::F64, Type::F64], &[Type::F64]),
        Form::FloatTernary => (&[Type::F64, Type::F64, Type::F64], &[Type::F64]),
        Form::FloatAndInt => (&[Type::F64, Type::I32], &[Type::F64]),
        Form::FloatSplit => (&[Type::F64], &[Type::F64, Type::I32]),
        Form::FloatPair => (&[Type::F64], &[Type::F64, Type::F64]),
        other => panic!("{opcode} has form {other:?}"),
    };
    function_of(opcode, operands, results, Payload::None)
}

/// Runs a function on its floats in order, lane by lane, with `n` for whole numbers; gives the floats among the results.
fn evaluate(function: &Function, floats: &[f64], n: Option<i32>) -> Vec<f64> {
    let mut floats = floats.iter().copied();
    let arguments: Vec<Datum> = function
        .params
        .iter()
        .map(|param| {
            let (lanes, ty) = (usize::from(param.ty.lanes()), param.ty);
            match ty.scalar() {
                Scalar::Int(bits) => Datum::int(bits, n.expect("there is a number").into()),
                scalar => {
                    let raw = floats
                        .by_ref()
                        .take(lanes)
                        .map(|x| float_to_bits(scalar, x));
                    let raw: Vec<Option<u128>> = raw.map(Some).collect();
                    match ty.is_vector() {
                        true => Datum::vector(scalar, &raw).expect("there are lanes"),
                        false => Datum::scalar(scalar, raw[0].expect("there is a number")),
                    }
                }
            }
        })
        .collect();
    let mut module = Module::new();
    let id = module.functions.push(function.clone());
    let results = Machine::new(&module)
        .call(id, &arguments)
        .expect("the function runs");
    let lanes_of = |datum: &Datum| {
        let lanes = 0..usize::from(datum.ty.lanes());
        lanes
            .filter_map(|lane| datum.lane(lane).as_float())
            .collect::<Vec<f64>>()
    };
    results.iter().flat_map(lanes_of).collect()
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

/// How the floats that a function gives vary along a direction, by central differences of fourth order.
fn difference(function: &Function, at: &[f64], n: Option<i32>, direction: &[f64]) -> Vec<f64> {
    let step = 1e-3;
    let shifted = |by: f64| {
        let point: Vec<f64> = at.iter().zip(direction).map(|(x, d)| x + by * d).collect();
        evaluate(function, &point, n)
    };
    let (near, far) = (
        (shifted(step), shifted(-step)),
        (shifted(2.0 * step), shifted(-2.0 * step)),
    );
    (0..near.0.len())
        .map(|k| (8.0 * (near.0[k] - near.1[k]) - (far.0[k] - far.1[k])) / (12.0 * step))
        .collect()
}

/// Directions that are neither equal nor special.
fn direction(length: usize) -> Vec<f64> {
    (0..length)
        .map(|k| [0.6, -0.9, 0.35, 0.8][k % 4] + k as f64 * 0.01)
        .collect()
}

/// Checks that both modes agree with finite differences of the function at a point, to a relative `tolerance`.
fn check_both_modes(name: &str, function: &Function, at: &[f64], n: Option<i32>, tolerance: f64) {
    let along = direction(at.len());
    let expected = difference(function, at, n, &along);
    let found = evaluate(&forward(function), &[at, &along].concat(), n);
    let tangents = &found[found.len() - expected.len()..];
    for (a, b) in tangents.iter().zip(&expected) {
        assert!(
            close(*a, *b, tolerance),
            "{name} forward at {at:?}, {n:?}: {a} but {b}"
        );
    }
    // ⟨J v, u⟩ = ⟨v, Jᵀ u⟩
    let weights = direction(expected.len());
    let gradient = evaluate(&reverse(function), &[at, &weights].concat(), n);
    let left: f64 = tangents.iter().zip(&weights).map(|(a, b)| a * b).sum();
    let right: f64 = gradient.iter().zip(&along).map(|(a, b)| a * b).sum();
    assert!(
        close(left, right, 1e-11),
        "{name} reverse at {at:?}, {n:?}: {right} but {left}"
    );
}

fn differentiable_opcodes() -> impl Iterator<Item = Opcode> {
    let all = Opcode::ALL.iter().copied();
    all.filter(|&opcode| matches!(rule(opcode), Rule::Partials(_)))
}

#[test]
fn first_derivatives_agree_with_differences() {
    for opcode in differentiable_opcodes() {
        let function = function_on_doubles(opcode);
        for (at, n) in points(opcode) {
            check_both_modes(opcode.name(), &function, &at, n, 1e-8);
        }
    }
}

#[test]
fn second_derivatives_agree_with_differences() {
    for opcode in differentiable_opcodes() {
        let function = function_on_doubles(opcode);
        let (over_forward, over_reverse) = (forward(&function), reverse(&function));
        for (at, n) in points(opcode) {
            for first in [&over_forward, &over_reverse] {
                let floats = first
                    .params
                    .iter()
                    .filter(|param| param.ty.is_float())
                    .count();
                let at = [&at[..], &direction(floats - at.len())].concat();
                check_both_modes(&format!("{opcode} twice"), first, &at, n, 1e-7);
            }
        }
    }
}

/// Where a row says that the derivative is finite, it is: at zero and elsewhere.
#[test]
fn slopes_are_finite_where_the_table_says_so() {
    for row in MathFunction::all().filter(|row| row.opcode.form() == Form::FloatUnary) {
        let finite = !matches!(row.slope, Slope::Infinite(_));
        if finite && matches!(rule(row.opcode), Rule::Partials(_)) {
            for x in [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -17.0, 1e-300] {
                let slope = partials_at(row.opcode, &[x], None)[0];
                assert!(slope.is_finite(), "{} at {x}: {slope}", row.opcode);
            }
        }
    }
}

/// All partial derivatives of an operation with one float result, which both modes must give.
fn partials_at(opcode: Opcode, at: &[f64], n: Option<i32>) -> Vec<f64> {
    let function = function_on_doubles(opcode);
    let gradient = evaluate(&reverse(&function), &[at, &[1.0]].concat(), n);
    for (k, &expected) in gradient.iter().enumerate() {
        let along: Vec<f64> = (0..at.len())
            .map(|i| if i == k { 1.0 } else { 0.0 })
            .collect();
        let tangent = evaluate(&forward(&function), &[at, &along].concat(), n)[1];
        assert!(
            tangent == expected || tangent.is_nan() || expected.is_nan(),
            "{opcode} by operand {k} at {at:?}: forward {tangent}, reverse {expected}"
        );
    }
    gradient
}

#[test]
fn conventions_at_the_edges() {
    use Opcode::*;
    let nan = f64::NAN;
    let check = |opcode, at: &[f64], expected: &[f64]| {
        assert_eq!(
            partials_at(opcode, at, None),
            expected,
            "{opcode} at {at:?}"
        );
    };
    check(Sqrt, &[0.0], &[0.0]);
    check(Sqrt, &[-0.0], &[0.0]);
    check(Fabs, &[0.0], &[1.0]);
    check(Fabs, &[-0.0], &[-1.0]);
    check(Fabs, &[-3.0], &[-1.0]);
    for opcode in [Fmax, Fmaximum] {
        check(opcode, &[2.0, 2.0], &[1.0, 0.0]);
        check(opcode, &[0.0, -0.0], &[1.0, 0.0]);
        check(opcode, &[-0.0, 0.0], &[1.0, 0.0]);
        check(opcode, &[1.0, 2.0], &[0.0, 1.0]);
    }
    for opcode in [Fmin, Fminimum] {
        check(opcode, &[2.0, 2.0], &[0.0, 1.0]);
        check(opcode, &[0.0, -0.0], &[0.0, 1.0]);
        check(opcode, &[1.0, 2.0], &[1.0, 0.0]);
    }
    for opcode in [Fmax, Fmin] {
        check(opcode, &[nan, 2.0], &[0.0, 1.0]);
        check(opcode, &[2.0, nan], &[1.0, 0.0]);
    }
    check(Hypot, &[0.0, 0.0], &[0.0, 0.0]);
    check(Pow, &[0.0, 2.0], &[0.0, 0.0]);
    check(Pow, &[0.0, 1.0], &[1.0, 0.0]);
    check(Pow, &[0.0, 0.0], &[0.0, 0.0]);
    check(Fdim, &[1.0, 1.0], &[0.0, 0.0]);
    check(Frem, &[1.0, 3.0], &[1.0, 0.0]);
    check(Remainder, &[5.0, 3.0], &[1.0, -2.0]);
    // The quotient rounds to 10, yet only nine multiples of 0.1 were taken away.
    assert_eq!(1.0 / 0.1, 10.0);
    check(Frem, &[1.0, 0.1], &[1.0, -9.0]);
    assert_eq!(partials_at(Powi, &[0.0], Some(0)), [0.0]);
    assert_eq!(partials_at(Powi, &[0.0], Some(1)), [1.0]);
    assert_eq!(partials_at(Powi, &[0.0], Some(2)), [0.0]);
    assert!(partials_at(Pow, &[-2.0, 3.0], None)[1].is_nan());
    assert_eq!(partials_at(Pow, &[-2.0, 3.0], None)[0], 12.0);
}

#[test]
fn a_convention_for_the_first_derivative_leaves_the_second_alone() {
    // ∂²(x^y)/∂x∂y at y = 0 is 1/x, though ∂(x^y)/∂x is 0 there.
    let twice = forward(&forward(&function_on_doubles(Opcode::Pow)));
    let found = evaluate(&twice, &[2.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0], None);
    assert_eq!(found, [1.0, 0.0, 2f64.ln(), 0.5]);
}

#[test]
fn the_branch_not_taken_does_not_matter() {
    let function = function_on_doubles(Opcode::Sqrt);
    // An infinite adjoint times the derivative 0 would be NaN.
    assert_eq!(
        evaluate(&reverse(&function), &[0.0, f64::INFINITY], None),
        [0.0]
    );
    let function = function_on_doubles(Opcode::Fmax);
    let gradient = evaluate(&reverse(&function), &[1.0, 2.0, f64::INFINITY], None);
    assert_eq!(gradient, [0.0, f64::INFINITY]);
}

/// Checks `@f` in both modes, once and twice.
fn check_text(text: &str, at: &[f64], n: Option<i32>) {
    let module = parse_module(text).expect("the test's text is right");
    let function = &module.functions[module.function_named("f").expect("there is @f")];
    check_both_modes("@f", function, at, n, 1e-7);
    let twice = forward(function);
    let at = [at, &direction(at.len())].concat();
    check_both_modes("@f twice", &twice, &at, n, 1e-6);
}

#[test]
fn lanes_and_types_change() {
    let vectors = "func @f(%v: <2 x f64>, %a: f64, %i: i64) -> (f64, <2 x f64>) {
        %w = insert <2 x f64> %v, %a, %i
        %s = shuffle <2 x f64> %w, %v [0, 0, 3, 1, 0]
        %t = splat <5 x f64> %a
        %u = fmul <5 x f64> %s, %t
        %e = extract <5 x f64> %u, %i
        %g = reduce_fadd <5 x f64> %u
        %r = fmul f64 %e, %g
        %x = sin <2 x f64> %w
        %y = hypot <2 x f64> %x, %v
        return %r, %y
    }";
    check_text(vectors, &[0.4, 1.3, -0.7], Some(0));
    check_text(vectors, &[0.4, 1.3, -0.7], Some(1));
    let carried = "func @f(%c: i1, %x: f64, %y: <1 x f64>) -> (f64) {
        %i = bitcast f64 %x to i64
        %j = bitcast <1 x f64> %y to i64
        %k = select i64 %c, %i, %j
        %z = bitcast i64 %k to f64
        %r = fmul f64 %z, %x
        return %r
    }";
    check_text(carried, &[0.4, 1.3], Some(0));
    check_text(carried, &[0.4, 1.3], Some(1));
}

#[test]
fn other_widths() {
    // Single precision is too coarse for differences; a polynomial has derivatives that are exact.
    let module = parse_module(
        "func @f(%x: f32, %y: f64) -> (f64) {
            %w = fpext f32 %x to f64
            %p = fmul f64 %w, %y
            %n = fptrunc f64 %p to f32
            %s = fmul f32 %n, %n
            %r = fpext f32 %s to f64
            return %r
        }",
    )
    .expect("the test's text is right");
    let function = &module.functions[module.function_named("f").expect("there is @f")];
    assert_eq!(
        evaluate(&reverse(function), &[3.0, 0.5, 1.0], None),
        [1.5, 9.0]
    );
    assert_eq!(
        evaluate(&forward(function), &[3.0, 0.5, 1.0, 2.0], None),
        [2.25, 19.5]
    );
}
