//! Calls: direct, through pointers, and of functions with a rule.

use super::*;

#[test]
fn direct_calls() {
    check(
        "func @square(%x: f64) -> (f64) {
           %r = fmul f64 %x, %x
           return %r
         }
         func @scale(%p: ptr layout [f64], %by: f64, %n: i64) {
           for %i: i64 = 0 to %n step 1 {
             %q = offset %p, %i * 8
             %v = load f64 %q align 8
             %w = fmul f64 %v, %by
             store f64 %w, %q align 8
             yield
           }
           return
         }
         func @f(%x: f64, %y: ptr layout [f64], %n: i64) -> (f64) {
           %a = call @square(%x)
           call @scale(%y, %a, %n)
           call @scale(%y, 2.0, %n)
           %b = call @square(3.0)
           %c = fmul f64 %a, %b
           return %c
         }",
        &[Float(1.1), Floats(vec![0.5, 2.0]), Int(2)],
    );
}

#[test]
fn recursion() {
    check(
        "func @power(%x: f64, %n: i64) -> (f64) {
           %done = icmp sle i64 %n, 0
           %r = if %done -> (f64) {
             yield 1.0
           } else {
             %m = sub i64 %n, 1
             %rest = call @power(%x, %m)
             %s = fmul f64 %rest, %x
             yield %s
           }
           return %r
         }
         func @f(%x: f64, %n: i64) -> (f64) {
           %r = call @power(%x, %n)
           return %r
         }",
        &[Float(1.1), Int(4)],
    );
}

#[test]
fn functions_that_make_memory() {
    check(
        "func @new(%x: f64) -> (ptr) {
           %p = alloc 16 align 8
           store f64 %x, %p align 8
           return %p
         }
         func @release(%p: ptr) {
           free %p
           return
         }
         func @f(%x: f64) -> (f64) {
           %p = call @new(1.0)
           %q = call @new(%x)
           %at = offset %p, 1 * 8
           store f64 %x, %at align 8
           %a = load f64 %at align 8
           %b = load f64 %p align 8
           %c = load f64 %q align 8
           %ab = fmul f64 %a, %b
           %abc = fmul f64 %ab, %c
           free %q
           call @release(%p)
           return %abc
         }",
        &[Float(1.1)],
    );
}

#[test]
fn callees_that_move_unknown_bytes() {
    check(
        "func @swap(%p: ptr, %q: ptr) {
           %a = load i64 %p align 8
           %b = load i64 %q align 8
           store i64 %a, %q align 8
           store i64 %b, %p align 8
           return
         }
         func @duplicate(%to: ptr, %from: ptr, %n: i64) {
           copy %to, %from, %n align 8
           return
         }
         func @f(%x: ptr layout [f64]) -> (f64) {
           %q = offset %x, 1 * 8
           call @swap(%x, %q)
           %t = stack 16 align 8
           call @duplicate(%t, %x, 16)
           %a = load f64 %t align 8
           %b = load f64 %x align 8
           %c = fmul f64 %a, %b
           return %c
         }",
        &[Floats(vec![0.5, 2.0])],
    );
}

#[test]
fn indirect_calls() {
    let source = "func @square(%x: f64, %p: ptr layout [f64]) -> (f64) {
           %a = load f64 %p align 8
           %b = fmul f64 %x, %x
           %c = fmul f64 %a, %b
           store f64 %b, %p align 8
           return %c
         }
         func @sine(%x: f64, %p: ptr layout [f64]) -> (f64) {
           %r = sin f64 %x
           return %r
         }
         func @f(%x: f64, %y: ptr layout [f64], %n: i64) -> (f64) {
           %c = icmp sgt i64 %n, 0
           %g = select ptr %c, @square, @sine
           %a = call_indirect %g(f64 %x, ptr %y) -> (f64)
           %b = call_indirect %g(f64 %a, ptr %y) -> (f64)
           return %b
         }";
    check(source, &[Float(1.1), Floats(vec![0.5]), Int(1)]);
    check(source, &[Float(1.1), Floats(vec![0.5]), Int(0)]);
}

#[test]
fn tables_of_functions() {
    check(
        "global @methods: 24 bytes align 8 const layout [0: i64, 8: ptr, 16: ptr; 24] = x\"0800000000000000\" { 8: @grow, 16: @value }
         func @grow(%self: ptr layout [f64], %x: f64) {
           %v = load f64 %self align 8
           %w = fmul f64 %v, %x
           store f64 %w, %self align 8
           return
         }
         func @value(%self: ptr layout [f64]) -> (f64) {
           %v = load f64 %self align 8
           return %v
         }
         func @use(%object: ptr, %methods: ptr, %x: f64) -> (f64) noinline {
           %at = offset %methods, 1 * 8
           %grow = load ptr %at align 8
           call_indirect %grow(ptr %object, f64 %x) -> ()
           %next = offset %methods, 2 * 8
           %value = load ptr %next align 8
           %v = call_indirect %value(ptr %object) -> (f64)
           return %v
         }
         func @f(%x: f64) -> (f64) {
           %object = stack 8 align 8
           store f64 3.0, %object align 8
           %r = call @use(%object, @methods, %x)
           %s = call @use(%object, @methods, %r)
           return %s
         }",
        &[Float(1.1)],
    );
}

#[test]
fn functions_as_arguments() {
    check(
        "func @square(%x: f64) -> (f64) {
           %r = fmul f64 %x, %x
           return %r
         }
         func @twice(%g: ptr, %x: f64) -> (f64) noinline {
           %a = call_indirect %g(f64 %x) -> (f64)
           %b = call_indirect %g(f64 %a) -> (f64)
           return %b
         }
         func @f(%x: f64) -> (f64) {
           %r = call @twice(@square, %x)
           return %r
         }",
        &[Float(1.1)],
    );
}

#[test]
fn memory_that_a_callee_passes_on_to_unknown_code() {
    check(
        "func @first(%x: f64, %p: ptr layout [f64]) -> (f64) {
           %a = load f64 %p align 8
           %r = fmul f64 %x, %a
           return %r
         }
         func @apply(%g: ptr, %p: ptr readonly, %x: f64) -> (f64) memory(read) noinline {
           %r = call_indirect %g(f64 %x, ptr %p) -> (f64)
           return %r
         }
         func @f(%x: f64) -> (f64) {
           %p = stack 8 align 8
           store f64 3.0, %p align 8
           %r = call @apply(@first, %p, %x)
           return %r
         }",
        &[Float(1.1)],
    );
}

#[test]
fn tables_behind_tables() {
    check(
        "global @outer: 8 bytes align 8 const layout [ptr] = zero { 0: @inner }
         global @inner: 8 bytes align 8 const layout [ptr] = zero { 0: @square }
         func @square(%x: f64) -> (f64) {
           %r = fmul f64 %x, %x
           return %r
         }
         func @f(%x: f64) -> (f64) {
           %table = load ptr @outer align 8
           %g = load ptr %table align 8
           %r = call_indirect %g(f64 %x) -> (f64)
           return %r
         }",
        &[Float(1.1)],
    );
}

#[test]
fn inactive_functions_are_called_as_they_are() {
    check(
        "func @log_it(%x: f64) -> (f64) inactive {
           %r = floor f64 %x
           return %r
         }
         func @f(%x: f64) -> (f64) {
           %n = call @log_it(%x)
           %r = fmul f64 %n, %x
           return %r
         }",
        &[Float(2.1)],
    );
}

// ---- rules

const WITH_RULE: &str = "
    declare @cube(f64) -> (f64)
    func @cube_forward(%x: f64, %dx: f64, %active: i64) -> (f64, f64) {
      %xx = fmul f64 %x, %x
      %r = fmul f64 %xx, %x
      %t = fmul f64 %xx, 3.0
      %dr = fmul f64 %t, %dx
      return %r, %dr
    }
    rule @cube forward @cube_forward
    func @f(%x: f64, %y: f64) -> (f64) {
      %a = call @cube(%x)
      %b = fmul f64 %a, %y
      %c = call @cube(%b)
      return %c
    }";

#[test]
fn rules_take_the_place_of_bodies() {
    let mut module = module_of(WITH_RULE);
    let (x, y) = (1.1, 0.8);
    let args = [Float(x), Float(y)];
    let wanted: f64 = (x * x * x * y).powi(3);
    for width in [1, 3] {
        let request = request(&module, &args, width);
        let derivative = differentiate_forward(&mut module, &request).expect("it has a rule");
        let tangents: Vec<Vec<f64>> = (1..=width).map(|seed| direction(2, seed.into())).collect();
        let (primal, given) = run_derivative(&module, derivative, &args, &tangents);
        assert_close("result", &primal, &[wanted], "");
        for (tangent, given) in tangents.iter().zip(given) {
            let slope = wanted * (9.0 / x * tangent[0] + 3.0 / y * tangent[1]);
            assert_close("tangent", &given, &[slope], "");
        }
    }
}

#[test]
fn a_function_with_a_rule_can_be_asked_for() {
    let mut module = module_of(WITH_RULE);
    let cube = module.function_named("cube").expect("it is there");
    let request = Request {
        width: 2,
        ..Request::usual(&module, cube)
    };
    let derivative = differentiate_forward(&mut module, &request).expect("it has a rule");
    let tangents = [vec![1.0], vec![-2.0]];
    let (primal, given) = run_derivative(&module, derivative, &[Float(2.0)], &tangents);
    assert_eq!((primal, given), (vec![8.0], vec![vec![12.0], vec![-24.0]]));
}

#[test]
fn rules_are_told_what_is_active() {
    let mut module = module_of(
        "declare @weigh(f64, ptr readonly, f64, i64) -> (f64) memory(read)
         func @weigh_forward(%x: f64, %dx: f64, %p: ptr readonly, %dp: ptr readonly, %y: f64, %dy: f64, %n: i64, %active: i64) -> (f64, f64) memory(read) {
           %a = sitofp i64 %active to f64
           return %x, %a
         }
         rule @weigh forward @weigh_forward
         func @f(%x: f64, %p: ptr layout [f64], %n: i64) -> (f64) {
           %r = call @weigh(1.0, %p, %x, %n)
           return %r
         }",
    );
    let args = [Float(2.0), Floats(vec![1.0]), Int(3)];
    let request = request(&module, &args, 1);
    let derivative = differentiate_forward(&mut module, &request).expect("it has a rule");
    let (_, given) = run_derivative(&module, derivative, &args, &[vec![1.0, 1.0]]);
    assert_eq!(given[0][0], 6.0);
}

#[test]
fn rules_that_update_memory_serve_one_direction() {
    let source = "declare @update(ptr)
         func @update_forward(%p: ptr, %dp: ptr, %active: i64) {
           %v = load f64 %p align 8
           %w = fmul f64 %v, 2.0
           store f64 %w, %p align 8
           %dv = load f64 %dp align 8
           %dw = fmul f64 %dv, 2.0
           store f64 %dw, %dp align 8
           return
         }
         rule @update forward @update_forward
         func @f(%p: ptr layout [f64]) {
           call @update(%p)
           return
         }";
    let mut module = module_of(source);
    let args = [Floats(vec![3.0])];
    let narrow = request(&module, &args, 1);
    let derivative = differentiate_forward(&mut module, &narrow).expect("it has a rule");
    let (primal, given) = run_derivative(&module, derivative, &args, &[vec![1.5]]);
    assert_eq!((primal, given), (vec![6.0], vec![vec![3.0]]));
    let wide = request(&module, &args, 2);
    expect![[r#"
        the forward rule of @update handles one direction, and cannot run once per direction because it may update memory in place [FZ0408]
          in @f: call @update(%p)
          help: differentiate with width 1, or mark each pointer of the function `readonly` or `writeonly` where that is true"#]].assert_eq(&fail(&mut module, &wide).to_string());
}

// ---- requests and refusals
