//! Reverse mode on small programs: values against closed forms.

use ferrozyme_diff::{Activity, Choices, Request, differentiate_reverse, differentiate_split};
use ferrozyme_ir::interpret::{Datum, Machine};
use ferrozyme_ir::{FunctionId, Module, parse_module, print_function, verify_module};

fn parse(text: &str) -> Module {
    let module = parse_module(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify_module(&module).unwrap_or_else(|errors| panic!("{errors:?}"));
    module
}

fn activities(words: &str) -> Vec<Activity> {
    words
        .split_whitespace()
        .map(|word| Activity::from_name(word).expect("an activity"))
        .collect()
}

fn request(module: &Module, name: &str, args: &str, results: &str) -> Request {
    Request {
        function: module.function_named(name).expect("the function exists"),
        args: activities(args),
        results: activities(results),
        primal: true,
        width: 1,
        discarded: Vec::new(),
        keep_order: false,
        shaped: Vec::new(),
        choices: Choices::default(),
    }
}

fn verified(module: &Module) {
    if let Err(errors) = verify_module(module) {
        let mut text = String::new();
        for error in errors {
            text += &format!("{error}\n");
        }
        for (id, _) in module.functions.iter() {
            text += &print_function(module, id);
        }
        panic!("{text}");
    }
}

/// The gradient of `f(x, n)` for an array `x`, in both forms; they must agree.
fn gradient_of_array(text: &str, x: &[f64]) -> (f64, Vec<f64>) {
    let mut module = parse(text);
    let request = request(&module, "f", "dup const", "active");
    let combined = differentiate_reverse(&mut module, &request).unwrap_or_else(|e| panic!("{e}"));
    let split = differentiate_split(&mut module, &request).unwrap_or_else(|e| panic!("{e}"));
    verified(&module);
    let show = |id: FunctionId| print_function(&module, id);
    let n = Datum::i64(x.len() as i64);
    let (value, gradient) = {
        let mut machine = Machine::new(&module);
        let (p, d) = arrays(&mut machine, x);
        let results = machine
            .call(
                combined,
                &[p.clone(), d.clone(), n.clone(), Datum::f64(1.0)],
            )
            .unwrap_or_else(|fault| panic!("{fault}\n{}", show(combined)));
        machine
            .check_leaks()
            .unwrap_or_else(|fault| panic!("{fault}\n{}", show(combined)));
        (results[0].as_f64().unwrap(), read(&machine, &d, x.len()))
    };
    let mut machine = Machine::new(&module);
    let (p, d) = arrays(&mut machine, x);
    let all = || show(split.augmented) + &show(split.reverse);
    let results = machine
        .call(split.augmented, &[p.clone(), d.clone(), n.clone()])
        .unwrap_or_else(|fault| panic!("{fault}\n{}", all()));
    assert_eq!(results[0].as_f64().unwrap(), value);
    let tape = results.last().unwrap().clone();
    machine
        .call(split.reverse, &[p, d.clone(), n, Datum::f64(1.0), tape])
        .unwrap_or_else(|fault| panic!("{fault}\n{}", all()));
    machine
        .check_leaks()
        .unwrap_or_else(|fault| panic!("{fault}\n{}", all()));
    assert_eq!(read(&machine, &d, x.len()), gradient, "{}", all());
    (value, gradient)
}

fn arrays(machine: &mut Machine<'_>, x: &[f64]) -> (Datum, Datum) {
    let p = machine.allocate(8 * x.len() as u64, 8);
    machine.write_f64s(p, x).unwrap();
    let d = machine.allocate(8 * x.len() as u64, 8);
    machine.write_f64s(d, &vec![0.0; x.len()]).unwrap();
    (Datum::ptr(p), Datum::ptr(d))
}

fn read(machine: &Machine<'_>, at: &Datum, count: usize) -> Vec<f64> {
    machine.read_f64s(at.as_ptr().unwrap(), count).unwrap()
}

#[test]
fn sum_of_squares() {
    let (value, gradient) = gradient_of_array(
        "func @f(%x: ptr noalias readonly, %n: i64) -> (f64) {
           %s = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
             %p = offset %x, %i * 8
             %a = load f64 %p align 8
             %aa = fmul f64 %a, %a
             %next = fadd f64 %acc, %aa
             yield %next
           }
           return %s
         }",
        &[1.0, 2.0, 3.0],
    );
    assert_eq!(value, 14.0);
    assert_eq!(gradient, [2.0, 4.0, 6.0]);
}

#[test]
fn in_place_products() {
    // x[i] = x[i] * x[i - 1]: the last element becomes the product of all.
    let (value, gradient) = gradient_of_array(
        "func @f(%x: ptr, %n: i64) -> (f64) {
           for %i: i64 = 1 to %n step 1 {
             %p = offset %x, %i * 8
             %before = sub i64 %i, 1
             %q = offset %x, %before * 8
             %a = load f64 %p align 8
             %b = load f64 %q align 8
             %ab = fmul f64 %a, %b
             store f64 %ab, %p align 8
             yield
           }
           %last = sub i64 %n, 1
           %e = offset %x, %last * 8
           %r = load f64 %e align 8
           return %r
         }",
        &[2.0, 3.0, 5.0, 7.0],
    );
    assert_eq!(value, 210.0);
    assert_eq!(gradient, [105.0, 70.0, 42.0, 30.0]);
}

#[test]
fn recursion_and_branches() {
    // x[0]^n by repeated multiplication, recursively.
    let (value, gradient) = gradient_of_array(
        "func @power(%x: ptr, %n: i64) -> (f64) {
           %done = icmp eq i64 %n, 0
           %r = if %done -> (f64) {
             yield 1.0
           } else {
             %m = sub i64 %n, 1
             %rest = call @power(%x, %m)
             %a = load f64 %x align 8
             %p = fmul f64 %rest, %a
             yield %p
           }
           return %r
         }
         func @f(%x: ptr, %n: i64) -> (f64) {
           %r = call @power(%x, 5)
           return %r
         }",
        &[2.0],
    );
    assert_eq!(value, 32.0);
    assert_eq!(gradient, [80.0]);
}

#[test]
fn general_loop_with_allocation() {
    // y = x; while y < 100: y = y * x, through memory that is allocated in each turn.
    let (value, gradient) = gradient_of_array(
        "func @f(%x: ptr, %n: i64) -> (f64) {
           %a = load f64 %x align 8
           %r = loop with (%y: f64 = %a) {
             %m = alloc 8 align 8
             store f64 %y, %m align 8
             %z = load f64 %m align 8
             %t = fmul f64 %z, %a
             free %m
             %c = fcmp olt f64 %t, 100.0
             again %c, %t
           }
           return %r
         }",
        &[3.0],
    );
    assert_eq!(value, 243.0);
    assert_eq!(gradient, [405.0]);
}

#[test]
fn triangular_nest_with_overwriting() {
    // for i, for j < i: x[i] = x[i] * sin-like mix of x[j]; checked against finite differences.
    let text = "func @f(%x: ptr, %n: i64) -> (f64) {
           for %i: i64 = 0 to %n step 1 {
             %p = offset %x, %i * 8
             for %j: i64 = 0 to %i step 1 {
               %q = offset %x, %j * 8
               %a = load f64 %p align 8
               %b = load f64 %q align 8
               %s = sin f64 %b
               %ab = fmul f64 %a, %s
               %t = fadd f64 %ab, %b
               store f64 %t, %p align 8
               yield
             }
             yield
           }
           %last = sub i64 %n, 1
           %e = offset %x, %last * 8
           %r = load f64 %e align 8
           return %r
         }";
    let x = [0.3, 0.7, -0.4, 1.1, 0.2];
    let (_, gradient) = gradient_of_array(text, &x);
    for k in 0..x.len() {
        let step = 1e-6;
        let (mut up, mut down) = (x, x);
        up[k] += step;
        down[k] -= step;
        let slope =
            (gradient_of_array(text, &up).0 - gradient_of_array(text, &down).0) / (2.0 * step);
        assert!(
            (slope - gradient[k]).abs() < 1e-7,
            "{k}: {slope} {}",
            gradient[k]
        );
    }
}
