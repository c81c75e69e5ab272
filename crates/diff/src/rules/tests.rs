//! Tests of the rules: the table as text, what is needed, what is emitted, and numbers against finite differences.

mod numbers;
mod straight_line;

use super::*;
use expect_test::{Expect, expect};
use ferrozyme_ir::{Effect, Form, Module, parse_module, print_function};
use straight_line::{forward, reverse};

/// The body of both derivatives of `@f`, as text.
fn check_derivatives(text: &str, expected: Expect) {
    let mut module = parse_module(text).expect("the test's text is right");
    let function = module.function_named("f").expect("there is @f");
    let derivatives = [
        ("forward", forward(&module.functions[function])),
        ("reverse", reverse(&module.functions[function])),
    ];
    let mut found = String::new();
    for (name, mut derivative) in derivatives {
        derivative.name = name.into();
        let id = module.functions.push(derivative);
        found += &print_function(&module, id);
    }
    expected.assert_eq(&found);
}

/// What the reverse rule of the first operation of `@f` reads, for each set of active operands that is asked for.
fn check_needs(text: &str, cases: &[(u32, u32, u32)]) {
    let module: Module = parse_module(text).expect("the test's text is right");
    let function = &module.functions[module.function_named("f").expect("there is @f")];
    let op = function.regions[function.body()].ops[0];
    for &(active, operands, results) in cases {
        let found = needs(function, op, active);
        assert_eq!(
            found,
            Needs { operands, results },
            "{text} with active {active:#b}"
        );
    }
}

#[test]
fn only_what_the_formulas_read_is_needed() {
    let binary = |op: &str| {
        format!("func @f(%x: f64, %y: f64) -> (f64) {{ %r = {op} f64 %x, %y  return %r }}")
    };
    let unary = |op: &str| format!("func @f(%x: f64) -> (f64) {{ %r = {op} f64 %x  return %r }}");
    check_needs(&binary("fadd"), &[(0b11, 0, 0)]);
    check_needs(
        &binary("fmul"),
        &[(0b01, 0b10, 0), (0b10, 0b01, 0), (0b11, 0b11, 0), (0, 0, 0)],
    );
    check_needs(&binary("fdiv"), &[(0b01, 0b10, 0), (0b10, 0b10, 1)]);
    check_needs(&binary("frem"), &[(0b01, 0, 0), (0b10, 0b11, 1)]);
    check_needs(&binary("pow"), &[(0b01, 0b11, 0), (0b10, 0b11, 1)]);
    for op in ["exp", "sqrt", "tanh", "tan", "cbrt", "exp2"] {
        check_needs(&unary(op), &[(1, 0, 1)]);
    }
    for op in ["sin", "log", "erf", "fabs"] {
        check_needs(&unary(op), &[(1, 1, 0)]);
    }
    for op in ["fneg", "floor", "round_even"] {
        check_needs(&unary(op), &[(1, 0, 0)]);
    }
}

#[test]
fn constants_are_never_needed() {
    check_needs(
        "func @f(%x: f64) -> (f64) { %r = fmul f64 %x, 3.0  return %r }",
        &[(1, 0, 0)],
    );
    check_needs(
        "func @f(%x: f64) -> (f64) { %r = fmax f64 %x, 0.0  return %r }",
        &[(1, 1, 0)],
    );
    check_needs(
        "func @f(%x: f64) -> (f64) { %r = pow f64 %x, 1.0  return %r }",
        &[(1, 0, 0)],
    );
    check_needs(
        "func @f(%x: f64) -> (f64) { %r = pow f64 %x, 0.0  return %r }",
        &[(1, 0, 0)],
    );
    check_needs(
        "func @f(%x: f64) -> (f64) { %r = powi f64 %x, 0  return %r }",
        &[(1, 0, 0)],
    );
    let extract = "func @f(%x: <2 x f64>) -> (f64) { %r = extract <2 x f64> %x, 1  return %r }";
    check_needs(extract, &[(1, 0, 0)]);
}

#[test]
fn conditions_and_lane_numbers_are_needed() {
    check_needs(
        "func @f(%c: i1, %x: f64, %y: f64) -> (f64) { %r = select f64 %c, %x, %y  return %r }",
        &[(0b110, 1, 0), (0b010, 1, 0)],
    );
    check_needs(
        "func @f(%v: <2 x f64>, %a: f64, %i: i64) -> (<2 x f64>) { %r = insert <2 x f64> %v, %a, %i  return %r }",
        &[(0b01, 0b100, 0), (0b10, 0b100, 0)],
    );
}

#[test]
fn a_quotient_shares_its_division() {
    check_derivatives(
        "func @f(%x: f64, %y: f64) -> (f64) { %r = fdiv f64 %x, %y  return %r }",
        expect![[r#"
            func @forward(%0: f64, %1: f64, %2: f64, %3: f64) -> (f64, f64) {
              %4 = fdiv f64 %0, %1
              %5 = fmul f64 %3, %4
              %6 = fsub f64 %2, %5
              %7 = fdiv f64 %6, %1
              return %4, %7
            }
            func @reverse(%0: f64, %1: f64, %2: f64) -> (f64, f64) {
              %3 = fdiv f64 %0, %1
              %4 = fdiv f64 %2, %1
              %5 = fmul f64 %4, %3
              %6 = fneg f64 %5
              return %4, %6
            }
        "#]],
    );
}

#[test]
fn signs_merge_into_differences() {
    check_derivatives(
        "func @f(%x: f64, %y: f64) -> (f64) { %r = fsub f64 %x, %y  return %r }",
        expect![[r#"
            func @forward(%0: f64, %1: f64, %2: f64, %3: f64) -> (f64, f64) {
              %4 = fsub f64 %0, %1
              %5 = fsub f64 %2, %3
              return %4, %5
            }
            func @reverse(%0: f64, %1: f64, %2: f64) -> (f64, f64) {
              %3 = fsub f64 %0, %1
              %4 = fneg f64 %2
              return %2, %4
            }
        "#]],
    );
}

#[test]
fn a_maximum_is_a_choice() {
    check_derivatives(
        "func @f(%x: f64, %y: f64) -> (f64) { %r = fmax f64 %x, %y  return %r }",
        expect![[r#"
            func @forward(%0: f64, %1: f64, %2: f64, %3: f64) -> (f64, f64) {
              %4 = fmax f64 %0, %1
              %5 = fcmp oge f64 %0, %1
              %6 = fcmp uno f64 %1, %1
              %7 = or i1 %5, %6
              %8 = select f64 %7, %2, %3
              return %4, %8
            }
            func @reverse(%0: f64, %1: f64, %2: f64) -> (f64, f64) {
              %3 = fmax f64 %0, %1
              %4 = fcmp oge f64 %0, %1
              %5 = fcmp uno f64 %1, %1
              %6 = or i1 %4, %5
              %7 = select f64 %6, %2, 0.0
              %8 = select f64 %6, 0.0, %2
              return %7, %8
            }
        "#]],
    );
}

#[test]
fn a_rectifier_tests_for_nothing_else() {
    check_derivatives(
        "func @f(%x: f64) -> (f64) { %r = fmax f64 %x, 0.0  return %r }",
        expect![[r#"
            func @forward(%0: f64, %1: f64) -> (f64, f64) {
              %2 = fmax f64 %0, 0.0
              %3 = fcmp oge f64 %0, 0.0
              %4 = select f64 %3, %1, 0.0
              return %2, %4
            }
            func @reverse(%0: f64, %1: f64) -> (f64) {
              %2 = fmax f64 %0, 0.0
              %3 = fcmp oge f64 %0, 0.0
              %4 = select f64 %3, %1, 0.0
              return %4
            }
        "#]],
    );
}

#[test]
fn without_nan_nothing_tests_for_it() {
    check_derivatives(
        "func @f(%x: f64, %y: f64) -> (f64) { %r = fmin nnan f64 %x, %y  return %r }",
        expect![[r#"
            func @forward(%0: f64, %1: f64, %2: f64, %3: f64) -> (f64, f64) {
              %4 = fmin f64 %0, %1
              %5 = fcmp olt f64 %0, %1
              %6 = select f64 %5, %2, %3
              return %4, %6
            }
            func @reverse(%0: f64, %1: f64, %2: f64) -> (f64, f64) {
              %3 = fmin f64 %0, %1
              %4 = fcmp olt f64 %0, %1
              %5 = select f64 %4, %2, 0.0
              %6 = select f64 %4, 0.0, %2
              return %5, %6
            }
        "#]],
    );
}

#[test]
fn a_constant_power_is_folded() {
    check_derivatives(
        "func @f(%x: f32) -> (f32) { %r = pow f32 %x, 2.0  return %r }",
        expect![[r#"
            func @forward(%0: f32, %1: f32) -> (f32, f32) {
              %2 = pow f32 %0, 2.0
              %3 = fmul f32 %1, 2.0
              %4 = fmul f32 %3, %0
              return %2, %4
            }
            func @reverse(%0: f32, %1: f32) -> (f32) {
              %2 = pow f32 %0, 2.0
              %3 = fmul f32 %1, 2.0
              %4 = fmul f32 %3, %0
              return %4
            }
        "#]],
    );
    check_derivatives(
        "func @f(%x: f64) -> (f64) { %r = powi f64 %x, 3  return %r }",
        expect![[r#"
            func @forward(%0: f64, %1: f64) -> (f64, f64) {
              %2 = powi f64 %0, 3
              %3 = fmul f64 %1, 3.0
              %4 = powi f64 %0, 2
              %5 = fmul f64 %3, %4
              return %2, %5
            }
            func @reverse(%0: f64, %1: f64) -> (f64) {
              %2 = powi f64 %0, 3
              %3 = fmul f64 %1, 3.0
              %4 = powi f64 %0, 2
              %5 = fmul f64 %3, %4
              return %5
            }
        "#]],
    );
}

#[test]
fn a_division_by_a_constant_is_folded_only_where_exact() {
    check_derivatives(
        "func @f(%x: f32) -> (f32) { %a = fdiv f32 %x, 4.0  %r = fdiv f32 %a, 3.0  return %r }",
        expect![[r#"
            func @forward(%0: f32, %1: f32) -> (f32, f32) {
              %2 = fdiv f32 %0, 4.0
              %3 = fmul f32 %1, 0.25
              %4 = fdiv f32 %2, 3.0
              %5 = fdiv f32 %3, 3.0
              return %4, %5
            }
            func @reverse(%0: f32, %1: f32) -> (f32) {
              %2 = fdiv f32 %0, 4.0
              %3 = fdiv f32 %2, 3.0
              %4 = fdiv f32 %1, 3.0
              %5 = fmul f32 %4, 0.25
              return %5
            }
        "#]],
    );
}

#[test]
fn the_hypotenuse_divides_once() {
    check_derivatives(
        "func @f(%x: f64, %y: f64) -> (f64) { %r = hypot f64 %x, %y  return %r }",
        expect![[r#"
            func @forward(%0: f64, %1: f64, %2: f64, %3: f64) -> (f64, f64) {
              %4 = hypot f64 %0, %1
              %5 = fmul f64 %2, %0
              %6 = fmul f64 %3, %1
              %7 = fadd f64 %5, %6
              %8 = fdiv f64 %7, %4
              %9 = fcmp oeq f64 %4, 0.0
              %10 = select f64 %9, 0.0, %8
              return %4, %10
            }
            func @reverse(%0: f64, %1: f64, %2: f64) -> (f64, f64) {
              %3 = hypot f64 %0, %1
              %4 = fdiv f64 %2, %3
              %5 = fcmp oeq f64 %3, 0.0
              %6 = select f64 %5, 0.0, %4
              %7 = fmul f64 %6, %0
              %8 = fmul f64 %6, %1
              return %7, %8
            }
        "#]],
    );
}

#[test]
fn sine_and_cosine_share() {
    check_derivatives(
        "func @f(%x: f64) -> (f64, f64) { %r, %s = sincos f64 %x  return %r, %s }",
        expect![[r#"
            func @forward(%0: f64, %1: f64) -> (f64, f64, f64, f64) {
              %2, %3 = sincos f64 %0
              %4 = fmul f64 %1, %3
              %5 = fmul f64 %1, %2
              %6 = fneg f64 %5
              return %2, %3, %4, %6
            }
            func @reverse(%0: f64, %1: f64, %2: f64) -> (f64) {
              %3, %4 = sincos f64 %0
              %5 = fmul f64 %1, %4
              %6 = fmul f64 %2, %3
              %7 = fsub f64 %5, %6
              return %7
            }
        "#]],
    );
}

#[test]
fn several_tangents_share_the_formula() {
    let sine = straight_line::function_of(Opcode::Sin, &[Type::F64], &[Type::F64], Payload::None);
    let primal = Primal::of(&sine, sine.regions[sine.body()].ops[0]);
    let mut derivative = Function::define("df", vec![Type::F64.into(); 3], vec![Type::F64; 2]);
    let arguments = derivative.arguments().to_vec();
    let mut b = Builder::at_body(&mut derivative);
    let mut linearisation = Linearisation::new(&primal);
    let results: Vec<Value> = arguments[1..]
        .iter()
        .filter_map(|&tangent| {
            linearisation.jvp(&mut b, &mut |_, _| arguments[0], &[Some(tangent)])[0]
        })
        .collect();
    b.ret(&results);
    let mut module = Module::new();
    let id = module.functions.push(derivative);
    expect![[r#"
        func @df(%0: f64, %1: f64, %2: f64) -> (f64, f64) {
          %3 = cos f64 %0
          %4 = fmul f64 %1, %3
          %5 = fmul f64 %2, %3
          return %4, %5
        }
    "#]]
    .assert_eq(&print_function(&module, id));
}

#[test]
fn integers_that_carry_floats_have_float_derivatives() {
    check_derivatives(
        "func @f(%c: i1, %x: f64, %y: f64) -> (f64) {
          %i = bitcast f64 %x to i64
          %j = bitcast f64 %y to i64
          %k = select i64 %c, %i, %j
          %r = bitcast i64 %k to f64
          return %r
        }",
        expect![[r#"
            func @forward(%0: i1, %1: f64, %2: f64, %3: f64, %4: f64) -> (f64, f64) {
              %5 = bitcast f64 %1 to i64
              %6 = bitcast f64 %2 to i64
              %7 = select i64 %0, %5, %6
              %8 = select f64 %0, %3, %4
              %9 = bitcast i64 %7 to f64
              return %9, %8
            }
            func @reverse(%0: i1, %1: f64, %2: f64, %3: f64) -> (f64, f64) {
              %4 = bitcast f64 %1 to i64
              %5 = bitcast f64 %2 to i64
              %6 = select i64 %0, %4, %5
              %7 = bitcast i64 %6 to f64
              %8 = select f64 %0, %3, 0.0
              %9 = select f64 %0, 0.0, %3
              return %8, %9
            }
        "#]],
    );
}

#[test]
fn vectors_move_lanes_back() {
    check_derivatives(
        "func @f(%v: <2 x f64>, %a: f64, %i: i64) -> (f64) {
          %w = insert <2 x f64> %v, %a, %i
          %s = shuffle <2 x f64> %w, %v [0, 0, 3]
          %t = splat <3 x f64> %a
          %u = fmul <3 x f64> %s, %t
          %e = extract <3 x f64> %u, 2
          %g = reduce_fadd <3 x f64> %u
          %r = fadd f64 %e, %g
          return %r
        }",
        expect![[r#"
            func @forward(%0: <2 x f64>, %1: f64, %2: i64, %3: <2 x f64>, %4: f64) -> (f64, f64) {
              %5 = insert <2 x f64> %0, %1, %2
              %6 = insert <2 x f64> %3, %4, %2
              %7 = shuffle <2 x f64> %5, %0 [0, 0, 3]
              %8 = shuffle <2 x f64> %6, %3 [0, 0, 3]
              %9 = splat <3 x f64> %1
              %10 = splat <3 x f64> %4
              %11 = fmul <3 x f64> %7, %9
              %12 = fmul <3 x f64> %8, %9
              %13 = fmul <3 x f64> %10, %7
              %14 = fadd <3 x f64> %12, %13
              %15 = extract <3 x f64> %11, 2
              %16 = extract <3 x f64> %14, 2
              %17 = reduce_fadd <3 x f64> %11
              %18 = reduce_fadd <3 x f64> %14
              %19 = fadd f64 %15, %17
              %20 = fadd f64 %16, %18
              return %19, %20
            }
            func @reverse(%0: <2 x f64>, %1: f64, %2: i64, %3: f64) -> (<2 x f64>, f64) {
              %4 = insert <2 x f64> %0, %1, %2
              %5 = shuffle <2 x f64> %4, %0 [0, 0, 3]
              %6 = splat <3 x f64> %1
              %7 = fmul <3 x f64> %5, %6
              %8 = extract <3 x f64> %7, 2
              %9 = reduce_fadd <3 x f64> %7
              %10 = fadd f64 %8, %9
              %11 = splat <3 x f64> %3
              %12 = insert <3 x f64> splat(0.0), %3, 2
              %13 = fadd <3 x f64> %11, %12
              %14 = fmul <3 x f64> %13, %6
              %15 = fmul <3 x f64> %13, %5
              %16 = reduce_fadd <3 x f64> %15
              %17 = shuffle <3 x f64> %14, splat(0.0) [0, 3]
              %18 = shuffle <3 x f64> %14, splat(0.0) [1, 3]
              %19 = fadd <2 x f64> %17, %18
              %20 = shuffle <3 x f64> %14, splat(0.0) [3, 2]
              %21 = insert <2 x f64> %19, 0.0, %2
              %22 = extract <2 x f64> %19, %2
              %23 = fadd <2 x f64> %20, %21
              %24 = fadd f64 %16, %22
              return %23, %24
            }
        "#]],
    );
}

#[test]
fn a_bit_cast_that_takes_floats_apart_is_refused() {
    let refused = |from: Type, to: Type| {
        let function = straight_line::function_of(Opcode::Bitcast, &[from], &[to], Payload::None);
        let op = function.regions[function.body()].ops[0];
        refusal(&Primal::of(&function, op)).map(|refusal| refusal.to_string())
    };
    assert_eq!(refused(Type::F64, Type::I64), None);
    assert_eq!(refused(Type::I32, Type::F32), None);
    assert_eq!(refused(Type::F64, Type::vector_of(Scalar::F64, 1)), None);
    let pair = Type::vector_of(Scalar::F32, 2);
    assert_eq!(
        refused(pair, Type::I64).as_deref(),
        Some(
            "a bit cast from <2 x f32> to i64 splits or joins floats, so derivatives cannot pass through it [FZ0310]"
        )
    );
    assert!(refused(Type::BF16, Type::I16).is_some());
    assert!(refused(Type::vector_of(Scalar::F32, 4), Type::I128).is_some());
}

#[test]
fn formulas_use_only_operations_that_have_derivatives() {
    fn check(formula: &Formula) {
        if let Formula::Apply(opcode, _) = formula {
            assert_ne!(*rule(*opcode), Rule::Structural, "{formula}");
        }
        formula.parts().iter().for_each(check);
    }
    for &opcode in Opcode::ALL {
        if let Rule::Partials(rows) = rule(opcode) {
            rows.iter().flatten().for_each(check);
        }
    }
}

#[test]
fn rules_fit_the_forms() {
    for &opcode in Opcode::ALL {
        let fits = match rule(opcode) {
            Rule::Partials(_) => opcode.math().is_some(),
            Rule::Linear(_) => matches!(opcode.form(), Form::Cast | Form::Special),
            Rule::Inactive(_) => matches!(opcode.effect(), Effect::Pure | Effect::Partial),
            Rule::Structural => opcode.math().is_none(),
        };
        assert!(fits, "{opcode}");
    }
}

fn check_table(expected: Expect) {
    let rows = Opcode::ALL
        .iter()
        .filter(|&&opcode| opcode.math().is_none() && *rule(opcode) != Rule::Structural);
    let text: String = rows
        .map(|&opcode| format!("{:13}  {}\n", opcode.name(), rule(opcode)))
        .collect();
    expected.assert_eq(&text);
}

#[test]
fn the_table_without_mathematical_functions() {
    check_table(expect![[r#"
        add            none: whole numbers
        sub            none: whole numbers
        mul            none: whole numbers
        sdiv           none: whole numbers
        udiv           none: whole numbers
        srem           none: whole numbers
        urem           none: whole numbers
        shl            none: whole numbers
        lshr           none: whole numbers
        ashr           none: whole numbers
        and            none: whole numbers
        or             none: whole numbers
        xor            none: whole numbers
        smin           none: whole numbers
        smax           none: whole numbers
        umin           none: whole numbers
        umax           none: whole numbers
        ctpop          none: whole numbers
        ctlz           none: whole numbers
        cttz           none: whole numbers
        bswap          none: whole numbers
        bitreverse     none: whole numbers
        freeze         none: whole numbers
        icmp           none: whole numbers
        fcmp           0 almost everywhere
        trunc_int      none: whole numbers
        zext           none: whole numbers
        sext           none: whole numbers
        fptrunc        x' = fpext(r')
        fpext          x' = fptrunc(r')
        fptosi         0 almost everywhere
        fptoui         0 almost everywhere
        fptosi_sat     0 almost everywhere
        fptoui_sat     0 almost everywhere
        sitofp         none: whole numbers
        uitofp         none: whole numbers
        bitcast        x' = r', floats of one width on both sides
        select         x' = select(c, r', 0), y' = select(c, 0, r')
        splat          x' = reduce_fadd(r')
        extract        v' = insert(0, r', i)
        insert         v' = insert(r', 0, i), x' = extract(r', i)
        shuffle        each lane of x' and y' is the sum of the lanes of r' that it went to
        reduce_fadd    x' = splat(r')
    "#]]);
}
