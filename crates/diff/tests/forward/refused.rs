//! What has no forward derivative, and what holds of all that there are.

use super::*;

#[test]
fn the_primal_can_be_left_out() {
    let mut module = module_of("func @f(%x: f64, %n: i64) -> (f64, i64) { return %x, %n }");
    let request = Request {
        primal: false,
        ..Request::usual(&module, function_f(&module))
    };
    let derivative = differentiate_forward(&mut module, &request).expect("it is possible");
    let data: &Function = &module.functions[derivative];
    assert_eq!(data.results, [Type::F64]);
    let mut machine = Machine::new(&module);
    let results = machine.call(
        derivative,
        &[Datum::f64(1.0), Datum::f64(2.5), Datum::i64(0)],
    );
    assert_eq!(results.expect("it runs"), [Datum::f64(2.5)]);
}

#[test]
fn unsuitable_requests_are_refused() {
    let mut module = module_of(
        "declare @nothing(f64) -> (f64)
         func @f(%x: f64, %n: i64) -> (f64) { return %x }",
    );
    let good = Request::usual(&module, function_f(&module));
    let nothing = module.function_named("nothing").expect("it is there");
    let bad = [
        Request {
            args: vec![Activity::Active],
            ..good.clone()
        },
        Request {
            args: vec![Activity::Active, Activity::Active],
            ..good.clone()
        },
        Request {
            width: 0,
            ..good.clone()
        },
        Request {
            width: u32::MAX,
            ..good.clone()
        },
        Request {
            discarded: vec![true],
            ..good.clone()
        },
        Request::usual(&module, nothing),
    ];
    let messages: Vec<String> = bad
        .iter()
        .map(|request| fail(&mut module, request).refusal.to_string())
        .collect();
    expect![[r#"
        expected 2 argument activities, but found 1 [FZ0101]
        activity `active` cannot be used for argument of type i64 [FZ0104]
        width 0 is not supported in this mode, which takes 1 to 4096 [FZ0102]
        width 4294967295 is not supported in this mode, which takes 1 to 4096 [FZ0102]
        argument 0 of type f64 is not a pointer, so it has no memory to discard [FZ0103]
        @nothing has no body to differentiate [FZ0107]"#]]
    .assert_eq(&messages.join("\n"));
}

#[test]
fn calls_without_derivative_are_refused() {
    check_error(
        "declare @far(f64) -> (f64)
         func @near(%x: f64) -> (f64) {
           %r = call @far(%x)
           return %r
         }
         func @f(%x: f64) -> (f64) {
           %r = call @near(%x)
           return %r
         }",
        &[Activity::Active],
        expect![[r#"
            active values go through @far, which has neither a body nor a derivative rule [FZ0401]
              in @near: %r = call @far(%x)
              called from @f
              help: give @far a derivative rule, make its body available, or declare it inactive"#]],
    );
}

#[test]
fn functions_behind_constant_pointers_are_refused() {
    check_error(
        "func @f(%g: ptr, %x: f64) -> (f64) {
           %r = call_indirect %g(f64 %x) -> (f64)
           return %r
         }",
        &[Activity::Const, Activity::Active],
        expect![[r#"
            derivatives would flow through the memory of argument 0, which is declared `const` [FZ0201]
              in @f: %r = call_indirect %g(f64 %x) -> (f64)
              help: declare argument 0 `dup` and give it a shadow, or keep active values out of its memory"#]],
    );
}

#[test]
fn torn_floats_are_refused() {
    check_error(
        "func @f(%x: f64) -> (f64) {
           %pair = bitcast f64 %x to <2 x f32>
           %twice = fadd <2 x f32> %pair, %pair
           %r = bitcast <2 x f32> %twice to f64
           return %r
         }",
        &[Activity::Active],
        expect![[r#"
            a bit cast from f64 to <2 x f32> splits or joins floats, so derivatives cannot pass through it [FZ0310]
              in @f: %pair = bitcast f64 %x to <2 x f32>
              help: keep the floats in values of their own type, or compute with these bits in an inactive function"#]],
    );
}

// ---- facts, size, order

#[test]
fn facts_of_the_primal_hold_for_its_derivative() {
    let mut module = module_of(
        "func @f(%p: ptr noalias readonly nocapture align 8 layout [f64], %n: i64 range 0..=9) -> (f64) memory(read) willreturn {
           %r = load f64 %p align 8
           return %r
         }",
    );
    let request = Request::usual(&module, function_f(&module));
    let derivative = differentiate_forward(&mut module, &request).expect("it is possible");
    expect!["func @f.fwd(%p: ptr noalias readonly nocapture align 8 layout [f64], %p': ptr noalias readonly nocapture align 8 layout [f64], %n: i64 range 0..=9) -> (f64, f64) memory(read) willreturn {"].assert_eq(text(&module, derivative).lines().next().unwrap_or_default());
}

#[test]
fn a_derivative_can_be_differentiated_again() {
    let mut module = module_of(
        "func @f(%x: f64) -> (f64) {
           %s = sin f64 %x
           %r = fmul f64 %s, %x
           return %r
         }",
    );
    let first = Request {
        primal: false,
        ..Request::usual(&module, function_f(&module))
    };
    let first = differentiate_forward(&mut module, &first).expect("it is possible");
    let second = Request {
        args: vec![Activity::Active, Activity::Const],
        primal: false,
        ..Request::usual(&module, first)
    };
    let second = differentiate_forward(&mut module, &second).expect("it is possible");
    let x: f64 = 0.9;
    let mut machine = Machine::new(&module);
    let results = machine
        .call(second, &[Datum::f64(x), Datum::f64(1.0), Datum::f64(1.0)])
        .expect("it runs");
    let wanted = 2.0 * x.cos() - x * x.sin();
    assert_close(
        "second derivative",
        &[results[0].as_f64().expect("a float")],
        &[wanted],
        "",
    );
}

#[test]
fn long_functions_take_no_deep_stack() {
    let mut source = String::from("func @f(%x: f64) -> (f64) {\n %v0 = fadd f64 %x, 0.0\n");
    let count = 100_000;
    for index in 1..=count {
        source += &format!(" %v{index} = fmul f64 %v{}, 0.999\n", index - 1);
    }
    source += &format!(" return %v{count}\n}}");
    let mut module = module_of(&source);
    let request = Request::usual(&module, function_f(&module));
    let derivative = differentiate_forward(&mut module, &request).expect("it is possible");
    assert!(module.functions[derivative].ops.len() > 2 * count);
}

#[test]
fn long_chains_of_calls_take_no_deep_stack() {
    let mut source = String::from("func @g0(%x: f64) -> (f64) { return %x }\n");
    let count = 2000;
    for index in 1..=count {
        source += &format!(
            "func @g{index}(%x: f64) -> (f64) {{ %r = call @g{}(%x) return %r }}\n",
            index - 1
        );
    }
    source += &format!("func @f(%x: f64) -> (f64) {{ %r = call @g{count}(%x) return %r }}");
    check(&source, &[Float(1.5)]);
}
