//! What single operations compute, in all widths and formats.

use super::*;
use crate::facts::Flags;
use crate::function::{Payload, float_from_bits};
use crate::opcode::{FloatPredicate, IntPredicate, Opcode};
use crate::types::Scalar;

/// The first result of one operation.
fn compute(
    opcode: Opcode,
    flags: Flags,
    payload: Payload,
    operands: &[Datum],
    to: Type,
) -> Result<Datum, FaultKind> {
    let types: Vec<Type> = operands.iter().map(|operand| operand.ty).collect();
    let bits: Vec<&Bits> = operands.iter().map(|operand| &operand.bits).collect();
    let mut results = evaluate(opcode, &payload, flags, &types, &bits, &[to])?;
    Ok(Datum {
        ty: to,
        bits: results.swap_remove(0),
    })
}

/// An operation whose result has the type of its first operand, as text.
fn plain(opcode: Opcode, flags: Flags, operands: &[Datum]) -> String {
    match compute(opcode, flags, Payload::None, operands, operands[0].ty) {
        Ok(datum) => datum.to_string(),
        Err(kind) => kind.to_string(),
    }
}

fn ints(opcode: Opcode, flags: Flags, bits: u8, a: i128, b: i128) -> String {
    plain(opcode, flags, &[Datum::int(bits, a), Datum::int(bits, b)])
}

fn cast(opcode: Opcode, from: Datum, to: Type) -> String {
    compute(opcode, Flags::NONE, Payload::None, &[from], to)
        .map_or_else(|kind| kind.to_string(), |datum| datum.to_string())
}

#[test]
fn integers_wrap_in_every_width() {
    let none = Flags::NONE;
    assert_eq!(ints(Opcode::Add, none, 8, 127, 1), "-128");
    assert_eq!(
        ints(Opcode::Add, none, 37, (1 << 36) - 1, 1),
        format!("{}", -(1i64 << 36))
    );
    assert_eq!(
        ints(Opcode::Sub, none, 64, i64::MIN.into(), 1),
        i64::MAX.to_string()
    );
    assert_eq!(ints(Opcode::Mul, none, 128, i128::MAX, 2), "-2");
    assert_eq!(ints(Opcode::Sdiv, none, 8, -7, 2), "-3");
    assert_eq!(ints(Opcode::Srem, none, 8, -7, 2), "-1");
    assert_eq!(ints(Opcode::Udiv, none, 8, -7, 2), "124");
    assert_eq!(ints(Opcode::Urem, none, 8, -7, 2), "1");
    assert_eq!(ints(Opcode::Shl, none, 8, 3, 7), "-128");
    assert_eq!(ints(Opcode::Lshr, none, 8, -1, 7), "1");
    assert_eq!(ints(Opcode::Ashr, none, 8, -128, 7), "-1");
    assert_eq!(ints(Opcode::Ashr, none, 128, i128::MIN, 127), "-1");
    assert_eq!(ints(Opcode::Shl, none, 8, 1, 8), "undef");
    assert_eq!(ints(Opcode::Smin, none, 8, -1, 1), "-1");
    assert_eq!(ints(Opcode::Umin, none, 8, -1, 1), "1");
    assert_eq!(ints(Opcode::Smax, none, 8, -1, 1), "1");
    assert_eq!(ints(Opcode::Umax, none, 8, -1, 1), "-1");
    assert_eq!(ints(Opcode::And, none, 8, 12, 10), "8");
    assert_eq!(ints(Opcode::Or, none, 8, 12, 10), "14");
    assert_eq!(ints(Opcode::Xor, none, 8, 12, 10), "6");
}

#[test]
fn bits_are_counted_and_turned_within_the_width() {
    let unary =
        |opcode: Opcode, bits: u8, a: i128| plain(opcode, Flags::NONE, &[Datum::int(bits, a)]);
    assert_eq!(unary(Opcode::Ctpop, 37, -1), "37");
    assert_eq!(unary(Opcode::Ctlz, 37, 1), "36");
    assert_eq!(unary(Opcode::Ctlz, 37, 0), "37");
    assert_eq!(unary(Opcode::Cttz, 37, 0), "37");
    assert_eq!(unary(Opcode::Cttz, 64, 8), "3");
    assert_eq!(unary(Opcode::Bswap, 16, 0x0102), format!("{}", 0x0201));
    assert_eq!(unary(Opcode::Bswap, 48, 0x01), format!("{}", 1i64 << 40));
    assert_eq!(unary(Opcode::Bitreverse, 5, 1), "-16");
    assert_eq!(unary(Opcode::Freeze, 8, 7), "7");
}

#[test]
fn broken_promises_give_undef() {
    let (nsw, nuw, exact) = (Flags::NSW, Flags::NUW, Flags::EXACT);
    assert_eq!(ints(Opcode::Add, nsw, 8, 127, 1), "undef");
    assert_eq!(ints(Opcode::Add, nsw, 8, 126, 1), "127");
    assert_eq!(ints(Opcode::Add, nuw, 8, -1, 1), "undef");
    assert_eq!(ints(Opcode::Add, nsw, 8, -1, 1), "0");
    assert_eq!(ints(Opcode::Add, nsw, 128, i128::MAX, 1), "undef");
    assert_eq!(ints(Opcode::Sub, nuw, 8, 1, 2), "undef");
    assert_eq!(ints(Opcode::Sub, nsw, 8, -128, 1), "undef");
    assert_eq!(ints(Opcode::Mul, nsw, 128, i128::MAX, 2), "undef");
    assert_eq!(ints(Opcode::Mul, nuw, 8, 16, 16), "undef");
    assert_eq!(ints(Opcode::Mul, nuw, 8, 16, 15), "-16");
    assert_eq!(ints(Opcode::Shl, nsw, 8, 64, 1), "undef");
    assert_eq!(ints(Opcode::Shl, nuw, 8, 64, 1), "-128");
    assert_eq!(ints(Opcode::Shl, nuw, 8, 64, 2), "undef");
    assert_eq!(ints(Opcode::Lshr, exact, 8, 3, 1), "undef");
    assert_eq!(ints(Opcode::Ashr, exact, 8, -4, 1), "-2");
    assert_eq!(ints(Opcode::Udiv, exact, 8, 7, 2), "undef");
    assert_eq!(ints(Opcode::Sdiv, exact, 8, -8, 2), "-4");
    let truncate = |flags, value| {
        let operand = [Datum::i32(value)];
        compute(Opcode::TruncInt, flags, Payload::None, &operand, Type::I8).map(|d| d.to_string())
    };
    assert_eq!(truncate(nsw, 128), Ok("undef".to_owned()));
    assert_eq!(truncate(nuw, 128), Ok("-128".to_owned()));
    assert_eq!(truncate(nuw, -1), Ok("undef".to_owned()));
}

#[test]
fn undef_spreads_but_a_choice_stops_it() {
    let undef = || Datum::undef(Type::I64);
    assert_eq!(
        plain(Opcode::Add, Flags::NONE, &[undef(), Datum::i64(1)]),
        "undef"
    );
    assert_eq!(
        plain(Opcode::And, Flags::NONE, &[Datum::i64(0), undef()]),
        "undef"
    );
    let select = |c: Datum, a: Datum, b: Datum| {
        compute(
            Opcode::Select,
            Flags::NONE,
            Payload::None,
            &[c, a, b],
            Type::I64,
        )
    };
    let one = || Datum::i64(1);
    assert_eq!(select(Datum::i1(true), one(), undef()), Ok(one()));
    assert_eq!(select(Datum::i1(false), one(), undef()), Ok(undef()));
    assert_eq!(select(Datum::undef(Type::I1), one(), one()), Ok(undef()));
}

#[test]
fn comparisons() {
    let compare = |predicate: IntPredicate, a: i8, b: i8| {
        let operands = [Datum::i8(a), Datum::i8(b)];
        let payload = Payload::IntPredicate(predicate);
        compute(Opcode::Icmp, Flags::NONE, payload, &operands, Type::I1)
            .ok()
            .and_then(|datum| datum.as_bool())
    };
    for predicate in IntPredicate::ALL {
        let expected = |a: i8, b: i8| match predicate {
            IntPredicate::Eq => a == b,
            IntPredicate::Ne => a != b,
            IntPredicate::Slt => a < b,
            IntPredicate::Sle => a <= b,
            IntPredicate::Sgt => a > b,
            IntPredicate::Sge => a >= b,
            IntPredicate::Ult => (a as u8) < b as u8,
            IntPredicate::Ule => (a as u8) <= b as u8,
            IntPredicate::Ugt => (a as u8) > b as u8,
            IntPredicate::Uge => (a as u8) >= b as u8,
        };
        for (a, b) in [(1, 2), (2, 1), (-1, 1), (1, -1), (3, 3), (-128, 127)] {
            assert_eq!(
                compare(*predicate, a, b),
                Some(expected(a, b)),
                "{predicate:?} {a} {b}"
            );
        }
    }
    for predicate in FloatPredicate::ALL {
        let holds = |a: f64, b: f64| {
            let operands = [Datum::f64(a), Datum::f64(b)];
            let payload = Payload::FloatPredicate(*predicate);
            compute(Opcode::Fcmp, Flags::NONE, payload, &operands, Type::I1)
                .ok()
                .and_then(|datum| datum.as_bool())
        };
        let name = predicate.name();
        let letters = &name[1..];
        for (a, b) in [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0), (0.0, -0.0)] {
            let expected = match letters {
                "eq" => a == b,
                "ne" => a != b,
                "gt" => a > b,
                "ge" => a >= b,
                "lt" => a < b,
                "le" => a <= b,
                "rd" => true,
                _ => false,
            };
            assert_eq!(holds(a, b), Some(expected), "{name} {a} {b}");
        }
        let unordered = name.starts_with('u');
        assert_eq!(holds(f64::NAN, 1.0), Some(unordered), "{name} with NaN");
        assert_eq!(holds(1.0, f64::NAN), Some(unordered), "{name} with NaN");
    }
}

#[test]
fn floats_become_integers_and_back() {
    let (sat, usat) = (Opcode::FptosiSat, Opcode::FptouiSat);
    assert_eq!(cast(Opcode::Fptosi, Datum::f64(-3.9), Type::I8), "-3");
    assert_eq!(cast(Opcode::Fptosi, Datum::f64(128.0), Type::I8), "undef");
    assert_eq!(cast(Opcode::Fptosi, Datum::f64(-128.9), Type::I8), "-128");
    assert_eq!(
        cast(Opcode::Fptosi, Datum::f64(f64::NAN), Type::I8),
        "undef"
    );
    assert_eq!(cast(Opcode::Fptoui, Datum::f64(255.9), Type::I8), "-1");
    assert_eq!(cast(Opcode::Fptoui, Datum::f64(-0.9), Type::I8), "0");
    assert_eq!(cast(Opcode::Fptoui, Datum::f64(-1.0), Type::I8), "undef");
    assert_eq!(
        cast(Opcode::Fptoui, Datum::f64(3e38), Type::I128),
        (3e38f64 as u128 as i128).to_string()
    );
    assert_eq!(cast(sat, Datum::f64(1e9), Type::I8), "127");
    assert_eq!(cast(sat, Datum::f64(-1e9), Type::I8), "-128");
    assert_eq!(cast(sat, Datum::f64(f64::NAN), Type::I8), "0");
    assert_eq!(
        cast(sat, Datum::f64(f64::INFINITY), Type::I128),
        i128::MAX.to_string()
    );
    assert_eq!(cast(usat, Datum::f64(1e9), Type::I8), "-1");
    assert_eq!(cast(usat, Datum::f64(-1.0), Type::I8), "0");
    assert_eq!(cast(usat, Datum::f32(2.5), Type::I8), "2");
    assert_eq!(cast(Opcode::Sitofp, Datum::i8(-1), Type::F32), "-1.0");
    assert_eq!(cast(Opcode::Uitofp, Datum::i8(-1), Type::F32), "255.0");
    assert_eq!(
        cast(Opcode::Sitofp, Datum::int(128, i128::MIN), Type::F64),
        "-1.7014118346046923e38"
    );
    assert_eq!(cast(Opcode::Uitofp, Datum::i32(70000), Type::F16), "inf");
    // Between the two neighbours 2⁵⁴ and 2⁵⁴ + 2⁴⁷ of bf16, one above the middle: it must not be rounded twice.
    let tie = (1i128 << 54) + (1 << 46) + 1;
    let up = ((1i64 << 54) + (1 << 47)) as f64;
    assert_eq!(
        cast(Opcode::Sitofp, Datum::int(64, tie), Type::BF16),
        format!("{up:?}")
    );
}

#[test]
fn integers_and_addresses_change_width() {
    assert_eq!(cast(Opcode::TruncInt, Datum::i32(0x1ff), Type::I8), "-1");
    assert_eq!(cast(Opcode::Zext, Datum::i8(-1), Type::I32), "255");
    assert_eq!(cast(Opcode::Sext, Datum::i8(-1), Type::I128), "-1");
    assert_eq!(cast(Opcode::Sext, Datum::i1(true), Type::I8), "-1");
    assert_eq!(
        cast(
            Opcode::Ptrtoint,
            Datum::ptr(Pointer(0x1_0000_0005)),
            Type::I32
        ),
        "5"
    );
    assert_eq!(cast(Opcode::Inttoptr, Datum::i8(-1), Type::PTR), "0xff");
}

#[test]
fn half_precision_rounds_once() {
    let f16 = |value: f64| Datum::float(Scalar::F16, value).unwrap_or_else(|| unreachable!());
    assert_eq!(
        plain(Opcode::Fadd, Flags::NONE, &[f16(2048.0), f16(1.0)]),
        "2048.0"
    );
    assert_eq!(
        plain(Opcode::Fadd, Flags::NONE, &[f16(2048.0), f16(3.0)]),
        "2052.0"
    );
    assert_eq!(
        plain(Opcode::Fmul, Flags::NONE, &[f16(300.0), f16(300.0)]),
        "inf"
    );
    // 1 + 2⁻¹¹ is a tie; the smallest bit above it decides, even where single precision no longer sees it.
    let just_above = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
    assert_eq!(
        cast(Opcode::Fptrunc, Datum::f64(just_above), Type::F16),
        "1.0009765625"
    );
    assert_eq!(
        cast(Opcode::Fptrunc, Datum::f64(1.0 + 2f64.powi(-11)), Type::F16),
        "1.0"
    );
    assert_eq!(
        cast(Opcode::Fptrunc, Datum::f64(-just_above), Type::F16),
        "-1.0009765625"
    );
    assert_eq!(cast(Opcode::Fptrunc, Datum::f64(1e300), Type::BF16), "inf");
    assert_eq!(cast(Opcode::Fptrunc, Datum::f64(1e-300), Type::F16), "0.0");
    assert_eq!(
        cast(Opcode::Fptrunc, Datum::f64(f64::NAN), Type::F16),
        "nan"
    );
    assert_eq!(cast(Opcode::Fpext, f16(0.1), Type::F64), "0.0999755859375");
}

#[test]
fn every_half_goes_to_double_and_back() {
    for scalar in [Scalar::F16, Scalar::Bf16] {
        for raw in 0..=u16::MAX {
            let here = Datum::scalar(scalar, raw.into());
            let wide = here.as_float().unwrap_or_else(|| unreachable!());
            assert_eq!(Datum::float(scalar, wide), Some(here.clone()));
            let back = float::convert(scalar, Scalar::F64, raw.into());
            assert_eq!(
                Datum::scalar(scalar, float::convert(Scalar::F64, scalar, back)),
                here
            );
        }
    }
}

#[test]
fn fused_products_are_rounded_once() {
    let fma = |operands: [Datum; 3]| plain(Opcode::Fma, Flags::NONE, &operands);
    let e = f64::EPSILON;
    assert_eq!(
        fma([Datum::f64(1.0 + e), Datum::f64(1.0 - e), Datum::f64(-1.0)]),
        format!("{:?}", -e * e)
    );
    let e = f32::EPSILON;
    assert_eq!(
        fma([Datum::f32(1.0 + e), Datum::f32(1.0 - e), Datum::f32(-1.0)]),
        format!("{:?}", -e * e)
    );
    // 1 + 2⁻¹¹ plus a trace: the trace is lost in double precision but decides the tie.
    let f16 = |value: f64| Datum::float(Scalar::F16, value).unwrap_or_else(|| unreachable!());
    let tie = f16(2f64.powi(-11));
    let bf16 = |value: f64| Datum::float(Scalar::Bf16, value).unwrap_or_else(|| unreachable!());
    assert_eq!(fma([tie, f16(1.0), f16(1.0)]), "1.0");
    let middle = 1.0 + 2f64.powi(-7);
    assert_eq!(
        fma([bf16(2f64.powi(-60)), bf16(2f64.powi(-60)), bf16(middle)]),
        "1.0078125"
    );
    let (a, b) = (1.0 + 2f64.powi(-4), 1.0 - 2f64.powi(-4) + 2f64.powi(-8));
    let exact = a * b;
    assert_eq!(
        fma([bf16(a), bf16(b), bf16(-(2f64.powi(-100)))]),
        Datum::float(Scalar::Bf16, exact - 2f64.powi(-50))
            .map_or_else(String::new, |d| d.to_string())
    );
}

#[test]
fn neighbours() {
    let next = |a: Datum, b: Datum| plain(Opcode::Nextafter, Flags::NONE, &[a, b]);
    assert_eq!(next(Datum::f64(1.0), Datum::f64(2.0)), "1.0000000000000002");
    assert_eq!(next(Datum::f64(1.0), Datum::f64(0.0)), "0.9999999999999999");
    assert_eq!(
        next(Datum::f64(-1.0), Datum::f64(0.0)),
        "-0.9999999999999999"
    );
    assert_eq!(next(Datum::f64(0.0), Datum::f64(-1.0)), "-5e-324");
    assert_eq!(next(Datum::f64(0.0), Datum::f64(-0.0)), "-0.0");
    assert_eq!(next(Datum::f64(f64::MAX), Datum::f64(f64::INFINITY)), "inf");
    assert_eq!(next(Datum::f32(1.0), Datum::f32(2.0)), "1.0000001");
    assert_eq!(next(Datum::f32(f32::NAN), Datum::f32(2.0)), "nan");
}

#[test]
fn functions_of_narrow_floats_are_rounded_from_double() {
    for opcode in [
        Opcode::Exp,
        Opcode::Sin,
        Opcode::Log1p,
        Opcode::Erf,
        Opcode::Sqrt,
    ] {
        let wide = compute(
            opcode,
            Flags::NONE,
            Payload::None,
            &[Datum::f64(0.5)],
            Type::F64,
        );
        let narrow = compute(
            opcode,
            Flags::NONE,
            Payload::None,
            &[Datum::f32(0.5)],
            Type::F32,
        );
        let wide = wide
            .ok()
            .and_then(|datum| datum.as_f64())
            .map(|value| value as f32);
        assert_eq!(
            narrow.ok().and_then(|datum| datum.as_f32()),
            wide,
            "{opcode}"
        );
    }
}

#[test]
fn functions_agree_with_the_standard_library() {
    type Expected = fn(f64) -> f64;
    let table: &[(Opcode, Expected)] = &[
        (Opcode::Sqrt, f64::sqrt),
        (Opcode::Cbrt, f64::cbrt),
        (Opcode::Exp, f64::exp),
        (Opcode::Exp2, f64::exp2),
        (Opcode::Exp10, |x| 10f64.powf(x)),
        (Opcode::Expm1, f64::exp_m1),
        (Opcode::Log, f64::ln),
        (Opcode::Log2, f64::log2),
        (Opcode::Log10, f64::log10),
        (Opcode::Log1p, f64::ln_1p),
        (Opcode::Sin, f64::sin),
        (Opcode::Cos, f64::cos),
        (Opcode::Tan, f64::tan),
        (Opcode::Asin, f64::asin),
        (Opcode::Acos, f64::acos),
        (Opcode::Atan, f64::atan),
        (Opcode::Sinh, f64::sinh),
        (Opcode::Cosh, f64::cosh),
        (Opcode::Tanh, f64::tanh),
        (Opcode::Asinh, f64::asinh),
        (Opcode::Acosh, f64::acosh),
        (Opcode::Atanh, f64::atanh),
        (Opcode::Floor, f64::floor),
        (Opcode::Ceil, f64::ceil),
        (Opcode::Trunc, f64::trunc),
        (Opcode::Round, f64::round),
        (Opcode::RoundEven, f64::round_ties_even),
        (Opcode::Fabs, f64::abs),
        (Opcode::Fneg, |x| -x),
    ];
    for &(opcode, expected) in table {
        for x in [0.3, 0.75, 0.5, 2.5, 17.25, -0.6, -2.5, 1e-9] {
            let result = compute(
                opcode,
                Flags::NONE,
                Payload::None,
                &[Datum::f64(x)],
                Type::F64,
            );
            let result = result.ok().and_then(|datum| datum.as_f64()).unwrap_or(0.0);
            let expected = expected(x);
            let same = (result.is_nan() && expected.is_nan())
                || (result - expected).abs() <= 4e-15 * expected.abs();
            assert!(same, "{opcode} of {x} is {result}, not {expected}");
        }
    }
}

#[test]
fn functions_at_known_points() {
    let check = |opcode: Opcode, operands: &[Datum], expected: f64| {
        let result = compute(opcode, Flags::NONE, Payload::None, operands, Type::F64);
        let result = result
            .ok()
            .and_then(|datum| datum.as_f64())
            .unwrap_or(f64::NAN);
        assert!(
            (result - expected).abs() <= 1e-14 * expected.abs(),
            "{opcode} is {result}, not {expected}"
        );
    };
    let f = Datum::f64;
    check(Opcode::Erf, &[f(0.5)], 0.520_499_877_813_046_5);
    check(Opcode::Erfc, &[f(2.0)], 0.004_677_734_981_047_266);
    check(Opcode::Tgamma, &[f(5.5)], 52.342_777_784_553_52);
    check(Opcode::Lgamma, &[f(100.0)], 359.134_205_369_575_4);
    check(Opcode::Hypot, &[f(3e200), f(4e200)], 5e200);
    check(Opcode::Pow, &[f(2.0), f(0.5)], std::f64::consts::SQRT_2);
    check(
        Opcode::Atan2,
        &[f(1.0), f(-1.0)],
        0.75 * std::f64::consts::PI,
    );
    check(Opcode::Frem, &[f(-7.5), f(2.0)], -1.5);
    check(Opcode::Remainder, &[f(7.5), f(2.0)], -0.5);
    check(Opcode::Fdim, &[f(3.0), f(1.0)], 2.0);
    check(Opcode::Fdim, &[f(1.0), f(3.0)], 0.0);
    check(Opcode::Copysign, &[f(3.0), f(-0.0)], -3.0);
    check(Opcode::Powi, &[f(-2.0), Datum::i32(-3)], -0.125);
    check(Opcode::Ldexp, &[f(0.75), Datum::i32(4)], 12.0);
    check(
        Opcode::Jn,
        &[f(2.0), Datum::i32(3)],
        0.128_943_249_474_402_05,
    );
    check(
        Opcode::Yn,
        &[f(2.0), Datum::i32(0)],
        0.510_375_672_649_745_1,
    );
    check(
        Opcode::Polygamma,
        &[f(1.0), Datum::i32(1)],
        std::f64::consts::PI.powi(2) / 6.0,
    );
    check(Opcode::Logb, &[f(-10.0)], 3.0);
}

/// Both results of an operation that has two.
fn pair(opcode: Opcode, operand: Datum, second: Type) -> String {
    let results = evaluate(
        opcode,
        &Payload::None,
        Flags::NONE,
        &[operand.ty],
        &[&operand.bits],
        &[operand.ty, second],
    );
    let types = [operand.ty, second];
    match results {
        Ok(results) => {
            let results = results
                .into_iter()
                .zip(types)
                .map(|(bits, ty)| Datum { ty, bits });
            show(&results.collect::<Vec<_>>())
        }
        Err(kind) => kind.to_string(),
    }
}

#[test]
fn operations_with_two_results() {
    assert_eq!(
        pair(Opcode::Modf, Datum::f64(-2.5), Type::F64),
        "-0.5, -2.0"
    );
    assert_eq!(
        pair(Opcode::Modf, Datum::f64(f64::NEG_INFINITY), Type::F64),
        "-0.0, -inf"
    );
    assert_eq!(
        pair(Opcode::Modf, Datum::f64(-3.0), Type::F64),
        "-0.0, -3.0"
    );
    assert_eq!(pair(Opcode::Frexp, Datum::f64(12.0), Type::I32), "0.75, 4");
    assert_eq!(pair(Opcode::Frexp, Datum::f64(-0.0), Type::I32), "-0.0, 0");
    assert_eq!(
        pair(Opcode::Frexp, Datum::f64(5e-324), Type::I32),
        "0.5, -1073"
    );
    assert_eq!(
        pair(Opcode::Frexp, Datum::f64(f64::INFINITY), Type::I32),
        "inf, 0"
    );
    assert_eq!(pair(Opcode::Sincos, Datum::f32(0.0), Type::F32), "0.0, 1.0");
    let two = Datum::f64s(&[0.25, 6.0]).unwrap_or_else(|| unreachable!());
    let exponents = Type::vector_of(Scalar::Int(32), 2);
    assert_eq!(pair(Opcode::Frexp, two, exponents), "<0.5, 0.75>, <-1, 3>");
}

#[test]
fn exponents() {
    let ilogb = |value: f64| cast(Opcode::Ilogb, Datum::f64(value), Type::I32);
    assert_eq!(ilogb(10.0), "3");
    assert_eq!(ilogb(5e-324), "-1074");
    assert_eq!(ilogb(0.0), i32::MIN.to_string());
    assert_eq!(cast(Opcode::Logb, Datum::f64(0.0), Type::F64), "-inf");
    assert_eq!(
        cast(Opcode::Logb, Datum::f64(f64::NEG_INFINITY), Type::F64),
        "inf"
    );
}

#[test]
fn vectors_go_lane_by_lane() {
    let v = |lanes: &[Option<u128>]| {
        Datum::vector(Scalar::Int(8), lanes).unwrap_or_else(|| unreachable!())
    };
    let (a, b) = (
        v(&[Some(1), None, Some(3)]),
        v(&[Some(10), Some(20), Some(255)]),
    );
    assert_eq!(
        plain(Opcode::Add, Flags::NONE, &[a.clone(), b.clone()]),
        "<11, undef, 2>"
    );
    assert_eq!(
        plain(Opcode::Add, Flags::NUW, &[a.clone(), b.clone()]),
        "<11, undef, undef>"
    );
    let mask = Datum::vector(Scalar::Int(1), &[Some(1), Some(0), None]);
    let mask = mask.unwrap_or_else(|| unreachable!());
    let select = compute(
        Opcode::Select,
        Flags::NONE,
        Payload::None,
        &[mask, a.clone(), b.clone()],
        a.ty,
    );
    assert_eq!(
        select.map(|d| d.to_string()),
        Ok("<1, 20, undef>".to_owned())
    );
    let extract = |index: i64| {
        let operands = [b.clone(), Datum::i64(index)];
        compute(
            Opcode::Extract,
            Flags::NONE,
            Payload::None,
            &operands,
            Type::I8,
        )
        .map(|d| d.to_string())
    };
    assert_eq!(extract(1), Ok("20".to_owned()));
    assert_eq!(extract(3), Ok("undef".to_owned()));
    assert_eq!(extract(-1), Ok("undef".to_owned()));
    let insert = |index: i64| {
        let operands = [a.clone(), Datum::i8(7), Datum::i64(index)];
        compute(Opcode::Insert, Flags::NONE, Payload::None, &operands, a.ty).map(|d| d.to_string())
    };
    assert_eq!(insert(1), Ok("<1, 7, 3>".to_owned()));
    assert_eq!(insert(9), Ok("undef".to_owned()));
    let payload = Payload::Lanes([5, 0, 1, 3].into());
    let to = Type::vector_of(Scalar::Int(8), 4);
    let shuffle = compute(Opcode::Shuffle, Flags::NONE, payload, &[a, b], to);
    assert_eq!(
        shuffle.map(|d| d.to_string()),
        Ok("<-1, 1, undef, 10>".to_owned())
    );
    let splat = compute(
        Opcode::Splat,
        Flags::NONE,
        Payload::None,
        &[Datum::i8(4)],
        to,
    );
    assert_eq!(splat.map(|d| d.to_string()), Ok("<4, 4, 4, 4>".to_owned()));
    let sum = Datum::f64s(&[1e16, 1.0, -1e16]).unwrap_or_else(|| unreachable!());
    assert_eq!(
        cast(Opcode::ReduceFadd, sum, Type::F64),
        "0.0",
        "from the first lane on"
    );
}

#[test]
fn bits_are_recut() {
    let bytes = Datum::vector(Scalar::Int(8), &[Some(1), Some(2), Some(3), Some(4)]);
    let bytes = bytes.unwrap_or_else(|| unreachable!());
    assert_eq!(
        cast(Opcode::Bitcast, bytes.clone(), Type::I32),
        format!("{}", 0x0403_0201)
    );
    let halves = Type::vector_of(Scalar::Int(16), 2);
    assert_eq!(cast(Opcode::Bitcast, bytes, halves), "<513, 1027>");
    assert_eq!(
        cast(Opcode::Bitcast, Datum::f64(1.0), Type::I64),
        "4607182418800017408"
    );
    let bits = Type::vector_of(Scalar::Int(1), 8);
    assert_eq!(
        cast(Opcode::Bitcast, Datum::i8(5), bits),
        "<1, 0, 1, 0, 0, 0, 0, 0>"
    );
    let partial = Datum::vector(Scalar::Int(16), &[Some(0x0201), None]);
    let partial = partial.unwrap_or_else(|| unreachable!());
    let bytes = Type::vector_of(Scalar::Int(8), 4);
    assert_eq!(
        cast(Opcode::Bitcast, partial, bytes),
        "<1, 2, undef, undef>"
    );
    let threes = Type::vector_of(Scalar::Int(3), 8);
    let eights = Type::vector_of(Scalar::Int(8), 3);
    let lanes: Vec<_> = (0..8).map(Some).collect();
    let lanes = Datum::vector(Scalar::Int(3), &lanes).unwrap_or_else(|| unreachable!());
    let there = compute(
        Opcode::Bitcast,
        Flags::NONE,
        Payload::None,
        std::slice::from_ref(&lanes),
        eights,
    );
    let back = there.and_then(|there| {
        compute(
            Opcode::Bitcast,
            Flags::NONE,
            Payload::None,
            &[there],
            threes,
        )
    });
    assert_eq!(back, Ok(lanes));
}

#[test]
fn only_pure_operations_can_be_evaluated() {
    let pointer = Datum::ptr(Pointer::NULL);
    for opcode in [Opcode::Load, Opcode::Call, Opcode::If, Opcode::Alloc] {
        assert_eq!(
            compute(
                opcode,
                Flags::NONE,
                Payload::None,
                std::slice::from_ref(&pointer),
                Type::F64
            ),
            Err(FaultKind::NotPure)
        );
    }
    let offset = compute(
        Opcode::Offset,
        Flags::NONE,
        Payload::Scale(-8),
        &[Datum::ptr(Pointer(100)), Datum::i64(2)],
        Type::PTR,
    );
    assert_eq!(offset, Ok(Datum::ptr(Pointer(84))));
}

#[test]
fn literals_round_as_the_interpreter_does() {
    let value = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
    let literal = Datum::float(Scalar::F16, value).and_then(|datum| datum.raw());
    let rounded = float::narrow(Scalar::F16, value);
    assert_eq!(literal, Some(rounded));
    assert_eq!(float_from_bits(Scalar::F16, rounded), Some(1.0009765625));
}
