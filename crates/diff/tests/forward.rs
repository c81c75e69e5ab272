//! Forward mode, run in the interpreter and compared with finite differences.

use expect_test::{Expect, expect};
use ferrozyme_diff::{Activity, Error, Request, differentiate_forward};
use ferrozyme_ir::interpret::{Datum, Machine};
use ferrozyme_ir::{
    Function, FunctionId, Module, Type, parse_module, print_function, verify_module,
};

/// An argument of the function under test.
#[derive(Clone, Debug)]
enum Arg {
    Float(f64),
    Int(i64),
    /// A pointer to doubles, with a shadow.
    Floats(Vec<f64>),
    /// A pointer to integers, without a shadow.
    Ints(Vec<i64>),
}
use Arg::{Float, Floats, Int, Ints};

/// What a run gives: all float results, then what is in the arrays.
type Outcome = Vec<f64>;

fn module_of(text: &str) -> Module {
    let module = parse_module(text).unwrap_or_else(|error| panic!("{error}"));
    verify_module(&module).unwrap_or_else(|errors| panic!("{}", errors[0]));
    module
}

fn function_f(module: &Module) -> FunctionId {
    module.function_named("f").expect("there is a function @f")
}

fn request(module: &Module, args: &[Arg], width: u32) -> Request {
    let function = function_f(module);
    Request {
        args: args
            .iter()
            .map(|arg| match arg {
                Float(_) => Activity::Active,
                Floats(_) => Activity::Duplicated,
                Int(_) | Ints(_) => Activity::Const,
            })
            .collect(),
        width,
        ..Request::usual(module, function)
    }
}

fn run_primal(module: &Module, args: &[Arg]) -> Outcome {
    let mut machine = Machine::new(module);
    let mut data = Vec::new();
    let mut arrays = Vec::new();
    for arg in args {
        data.push(match arg {
            Float(value) => Datum::f64(*value),
            Int(value) => Datum::i64(*value),
            Floats(values) => {
                let at = machine.allocate_f64s(values);
                arrays.push((at, values.len()));
                Datum::ptr(at)
            }
            Ints(values) => {
                let at = machine.allocate(8 * values.len() as u64, 8);
                machine.write_i64s(at, values).expect("it fits");
                Datum::ptr(at)
            }
        });
    }
    let results = machine
        .call(function_f(module), &data)
        .unwrap_or_else(|fault| panic!("{fault}"));
    let mut outcome: Outcome = results.iter().filter_map(Datum::as_f64).collect();
    for (at, count) in arrays {
        outcome.extend(machine.read_f64s(at, count).expect("it is there"));
    }
    outcome
}

/// Runs a derivative; `tangents` has the directions, each with one number for each float of the arguments.
fn run_derivative(
    module: &Module,
    derivative: FunctionId,
    args: &[Arg],
    tangents: &[Vec<f64>],
) -> (Outcome, Vec<Outcome>) {
    let width = tangents.len();
    let mut machine = Machine::new(module);
    let mut data = Vec::new();
    let mut arrays = Vec::new();
    let mut next = 0;
    for arg in args {
        match arg {
            Float(value) => {
                data.push(Datum::f64(*value));
                data.extend(tangents.iter().map(|lane| Datum::f64(lane[next])));
                next += 1;
            }
            Int(value) => data.push(Datum::i64(*value)),
            Floats(values) => {
                let at = machine.allocate_f64s(values);
                data.push(Datum::ptr(at));
                let mut pointers = vec![at];
                for lane in tangents {
                    let shadow = machine.allocate_f64s(&lane[next..next + values.len()]);
                    data.push(Datum::ptr(shadow));
                    pointers.push(shadow);
                }
                next += values.len();
                arrays.push((pointers, values.len()));
            }
            Ints(values) => {
                let at = machine.allocate(8 * values.len() as u64, 8);
                machine.write_i64s(at, values).expect("it fits");
                data.push(Datum::ptr(at));
            }
        }
    }
    let results = machine
        .call(derivative, &data)
        .unwrap_or_else(|fault| panic!("{fault}\n{}", text(module, derivative)));
    machine
        .check_leaks()
        .unwrap_or_else(|fault| panic!("{fault}\n{}", text(module, derivative)));
    // All float results of the tests are active.
    let floats: Vec<f64> = results.iter().filter_map(Datum::as_f64).collect();
    let count = floats.len() / (width + 1);
    let mut primal = floats[..count].to_vec();
    let mut directions: Vec<Outcome> = (0..width)
        .map(|lane| {
            (0..count)
                .map(|k| floats[count + k * width + lane])
                .collect()
        })
        .collect();
    for (pointers, count) in arrays {
        primal.extend(machine.read_f64s(pointers[0], count).expect("it is there"));
        for (lane, at) in pointers[1..].iter().enumerate() {
            directions[lane].extend(machine.read_f64s(*at, count).expect("it is there"));
        }
    }
    (primal, directions)
}

fn text(module: &Module, function: FunctionId) -> String {
    print_function(module, function)
}

/// Numbers of moderate size that follow no pattern.
fn direction(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn moved(args: &[Arg], direction: &[f64], step: f64) -> Vec<Arg> {
    let mut next = direction.iter();
    let mut move_one = |value: f64| value + step * next.next().expect("one for each float");
    args.iter()
        .map(|arg| match arg {
            Float(value) => Float(move_one(*value)),
            Floats(values) => Floats(values.iter().map(|&value| move_one(value)).collect()),
            other => other.clone(),
        })
        .collect()
}

fn count_floats(args: &[Arg]) -> usize {
    args.iter()
        .map(|arg| match arg {
            Float(_) => 1,
            Floats(values) => values.len(),
            _ => 0,
        })
        .sum()
}

fn assert_close(what: &str, got: &[f64], wanted: &[f64], context: &str) {
    assert_eq!(
        got.len(),
        wanted.len(),
        "{what}: {got:?} {wanted:?}\n{context}"
    );
    for (a, b) in got.iter().zip(wanted) {
        let close = (a - b).abs() <= 1e-6 * (1.0 + a.abs().max(b.abs()));
        assert!(close, "{what}: got {got:?}, wanted {wanted:?}\n{context}");
    }
}

/// The derivative of @f agrees with finite differences; three directions at once agree with one at a time.
fn check(source: &str, args: &[Arg]) {
    let module = module_of(source);
    let value = run_primal(&module, args);
    let directions: Vec<Vec<f64>> = (1..=3)
        .map(|seed| direction(count_floats(args), seed))
        .collect();
    let mut narrow = module.clone();
    let request_1 = request(&module, args, 1);
    let one = differentiate_forward(&mut narrow, &request_1).unwrap_or_else(|e| panic!("{e}"));
    verify_module(&narrow).unwrap_or_else(|errors| panic!("{}", errors[0]));
    let mut wide = module.clone();
    let request_3 = request(&module, args, 3);
    let three = differentiate_forward(&mut wide, &request_3).unwrap_or_else(|e| panic!("{e}"));
    verify_module(&wide).unwrap_or_else(|errors| panic!("{}", errors[0]));
    let (primal, together) = run_derivative(&wide, three, args, &directions);
    assert_eq!(primal, value, "{}", text(&wide, three));
    for (direction, of_three) in directions.iter().zip(together) {
        let single = std::slice::from_ref(direction);
        let (primal, alone) = run_derivative(&narrow, one, args, single);
        let context = text(&narrow, one);
        assert_eq!(primal, value, "{context}");
        assert_eq!(alone[0], of_three, "{}", text(&wide, three));
        let step = 1e-6;
        let above = run_primal(&module, &moved(args, direction, step));
        let below = run_primal(&module, &moved(args, direction, -step));
        let quotient: Vec<f64> = above
            .iter()
            .zip(below)
            .map(|(a, b)| (a - b) / (2.0 * step))
            .collect();
        assert_close("tangents", &alone[0], &quotient, &context);
    }
}

/// The text of the derivative for the usual request.
fn check_text(source: &str, width: u32, expected: Expect) {
    let mut module = module_of(source);
    let request = Request {
        width,
        ..Request::usual(&module, function_f(&module))
    };
    let derivative = differentiate_forward(&mut module, &request).unwrap_or_else(|e| panic!("{e}"));
    verify_module(&module).unwrap_or_else(|errors| panic!("{}", errors[0]));
    expected.assert_eq(&text(&module, derivative));
}

fn check_error(source: &str, args: &[Activity], expected: Expect) {
    let mut module = module_of(source);
    let request = Request {
        args: args.to_vec(),
        ..Request::usual(&module, function_f(&module))
    };
    expected.assert_eq(&fail(&mut module, &request).to_string());
}

fn fail(module: &mut Module, request: &Request) -> Error {
    differentiate_forward(module, request).expect_err("it cannot be differentiated")
}

// ---- text

#[test]
fn text_of_a_product() {
    check_text(
        "file 0 \"source.rs\"
         func @f(%x: f64, %y: f64) -> (f64) {
           %p = fmul contract nnan f64 %x, %y loc(0:3:9)
           %q = fadd f64 %p, 1.0
           return %q
         }",
        1,
        expect![[r#"
            func @f.fwd(%x: f64, %x': f64, %y: f64, %y': f64) -> (f64, f64) memory(none) willreturn {
              %p = fmul nnan contract f64 %x, %y loc(0:3:9)
              %0 = fmul contract f64 %x', %y loc(0:3:9)
              %1 = fmul contract f64 %y', %x loc(0:3:9)
              %p' = fadd contract f64 %0, %1 loc(0:3:9)
              %q = fadd f64 %p, 1.0
              return %q, %p'
            }
        "#]],
    );
}

#[test]
fn text_of_two_directions_shares_the_formulas() {
    check_text(
        "func @f(%x: f64) -> (f64) {
           %s = sin f64 %x
           return %s
         }",
        2,
        expect![[r#"
            func @f.fwd(%x: f64, %x'0: f64, %x'1: f64) -> (f64, f64, f64) memory(none) willreturn {
              %s = sin f64 %x
              %0 = cos nsz f64 %x
              %s'0 = fmul nsz f64 %x'0, %0
              %s'1 = fmul nsz f64 %x'1, %0
              return %s, %s'0, %s'1
            }
        "#]],
    );
}

#[test]
fn text_of_a_loop_over_memory() {
    check_text(
        "func @f(%x: ptr noalias readonly layout [f64], %n: i64) -> (f64) {
           %sum = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
             %p = offset inbounds %x, %i * 8
             %a = load f64 %p align 8
             %next = fadd fast f64 %acc, %a
             yield %next
           }
           return %sum
         }",
        1,
        expect![[r#"
            func @f.fwd(%x: ptr noalias readonly nocapture layout [f64], %x': ptr noalias readonly nocapture layout [f64], %n: i64) -> (f64, f64) memory(read) willreturn {
              %sum, %sum' = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0, %acc': f64 = 0.0) {
                %p = offset inbounds %x, %i * 8
                %p' = offset inbounds %x', %i * 8
                %a = load f64 %p align 8
                %a' = load f64 %p' align 8
                %next = fadd fast f64 %acc, %a
                %next' = fadd nsz arcp contract afn reassoc f64 %acc', %a'
                yield %next, %next'
              }
              return %sum, %sum'
            }
        "#]],
    );
}

// ---- arithmetic and regions

#[test]
fn closed_forms() {
    check(
        "func @f(%x: f64, %y: f64) -> (f64, f64) {
           %a = sin f64 %x
           %b = exp f64 %y
           %c = fdiv f64 %a, %b
           %d = pow f64 %x, %y
           %e = fma f64 %c, %d, %x
           %g = sqrt f64 %e
           %h = fneg f64 %g
           return %h, %c
         }",
        &[Float(1.3), Float(0.7)],
    );
}

#[test]
fn results_without_derivative_have_zero_tangents() {
    check(
        "func @f(%x: f64) -> (f64, f64, f64) {
           %n = floor f64 %x
           return 3.0, %n, %x
         }",
        &[Float(1.4)],
    );
}

#[test]
fn narrow_floats() {
    check(
        "func @f(%x: f64) -> (f64) {
           %a = fptrunc f64 %x to f32
           %b = fmul f32 %a, 0.0
           %c = fpext f32 %b to f64
           %d = fmul f64 %x, %x
           %e = fadd f64 %c, %d
           return %e
         }",
        &[Float(1.25)],
    );
}

#[test]
fn vectors() {
    check(
        "func @f(%x: f64, %y: f64) -> (f64) {
           %v = splat <2 x f64> %x
           %w = insert <2 x f64> %v, %y, 1
           %u = fmul <2 x f64> %w, <2.0, 3.0>
           %t = shuffle <2 x f64> %u, %w [1, 2]
           %c = fcmp ogt <2 x f64> %t, splat(1.0)
           %s = select <2 x f64> %c, %t, %w
           %a = extract <2 x f64> %s, 0
           %b = reduce_fadd <2 x f64> %s
           %r = fmul f64 %a, %b
           return %r
         }",
        &[Float(1.25), Float(0.5)],
    );
}

#[test]
fn branches() {
    let source = "func @f(%x: f64, %y: f64, %n: i64) -> (f64, f64) {
           %c = fcmp olt f64 %x, %y
           %a, %b = if %c -> (f64, f64) {
             %p = fmul f64 %x, %y
             yield %p, 2.0
           } else {
             %q = fdiv f64 %x, %y
             yield %y, %q
           }
           %s = switch i64 %n -> (f64) {
             case 0 { yield %a }
             case 1, 2 { %t = fmul f64 %a, %a yield %t }
             case 7 { trap \"never\" }
             default { yield 1.0 }
           }
           return %s, %b
         }";
    for n in [0, 1, 5] {
        check(source, &[Float(0.5), Float(1.5), Int(n)]);
        check(source, &[Float(1.5), Float(0.5), Int(n)]);
    }
}

#[test]
fn loops_carry_tangents() {
    check(
        "func @f(%x: f64, %n: i64) -> (f64, f64) {
           %a, %b, %k = for %i: i64 = 0 to %n step 1 with (%p: f64 = %x, %q: f64 = 1.0, %c: i64 = 0) {
             %s = sin f64 %p
             %t = fmul f64 %q, %x
             %d = add i64 %c, 2
             yield %s, %t, %d
           }
           %r = loop with (%u: f64 = %a) {
             %h = fmul f64 %u, 1.5
             %again = fcmp olt f64 %h, 10.0
             again %again, %h
           }
           return %r, %b
         }",
        &[Float(1.25), Int(3)],
    );
}

#[test]
fn carried_values_that_change_places() {
    check(
        "func @f(%x: f64, %y: f64) -> (f64) {
           %a, %b, %c = for %i: i64 = 0 to 5 step 1 with (%p: f64 = %x, %q: f64 = %y, %r: f64 = 0.0) {
             %s = fmul f64 %q, %x
             yield %q, %s, %p
           }
           return %c
         }",
        &[Float(1.25), Float(0.75)],
    );
}

#[test]
fn loops_that_do_not_run() {
    check(
        "func @f(%x: f64) -> (f64) {
           %a = for %i: i64 = 0 to 0 step 1 with (%p: f64 = %x) {
             %s = sin f64 %p
             yield %s
           }
           return %a
         }",
        &[Float(1.25)],
    );
}

// ---- memory

#[test]
fn arrays_in_place() {
    check(
        "func @f(%x: ptr layout [f64], %n: i64) {
           for %i: i64 = 1 to %n step 1 {
             %p = offset %x, %i * 8
             %j = sub i64 %i, 1
             %q = offset %x, %j * 8
             %a = load f64 %p align 8
             %b = load f64 %q align 8
             %c = fmul f64 %a, %b
             store f64 %c, %p align 8
             yield
           }
           %first = offset %x, 0 * 8
           store f64 4.0, %first align 8
           return
         }",
        &[Floats(vec![1.5, 0.5, -2.0, 3.0]), Int(4)],
    );
}

#[test]
fn gather_by_index() {
    check(
        "func @f(%x: ptr layout [f64], %at: ptr readonly layout [i64], %n: i64) -> (f64) {
           %sum = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
             %p = offset %at, %i * 8
             %k = load i64 %p align 8
             %q = offset %x, %k * 8
             %a = load f64 %q align 8
             %s = fmul f64 %a, %a
             %next = fadd f64 %acc, %s
             yield %next
           }
           return %sum
         }",
        &[Floats(vec![1.5, 0.5, -2.0]), Ints(vec![2, 0, 2, 1]), Int(4)],
    );
}

#[test]
fn allocation_and_release() {
    check(
        "func @f(%x: f64, %n: i64) -> (f64) {
           %bytes = mul i64 %n, 8
           %p = alloc %bytes align 8
           for %i: i64 = 0 to %n step 1 {
             %q = offset %p, %i * 8
             %k = sitofp i64 %i to f64
             %v = fmul f64 %k, %x
             store f64 %v, %q align 8
             yield
           }
           %s = stack 8 align 8
           store f64 %x, %s align 8
           %sum = for %j: i64 = 0 to %n step 1 with (%acc: f64 = 1.0) {
             %r = offset %p, %j * 8
             %a = load f64 %r align 8
             %b = load f64 %s align 8
             %c = fadd f64 %a, %b
             %next = fmul f64 %acc, %c
             yield %next
           }
           free %p
           return %sum
         }",
        &[Float(1.1), Int(3)],
    );
}

#[test]
fn pointers_in_memory() {
    check(
        "func @f(%x: f64, %y: ptr layout [f64]) -> (f64) {
           %node = alloc 24 align 8
           %value = alloc 8 align 8
           store f64 %x, %value align 8
           store ptr %value, %node align 8
           %second = offset %node, 8 * 1
           store ptr %y, %second align 8
           %third = offset %node, 16 * 1
           store i64 5, %third align 8
           %p = load ptr %node align 8
           %q = load ptr %second align 8
           %c = fcmp ogt f64 %x, 0.0
           %r = select ptr %c, %p, %q
           %a = load f64 %r align 8
           %b = load f64 %q align 8
           %ab = fmul f64 %a, %b
           store f64 %ab, %q align 8
           %k = load i64 %third align 8
           %kf = sitofp i64 %k to f64
           %s = fmul f64 %ab, %kf
           free %p
           free %node
           return %s
         }",
        &[Float(1.1), Floats(vec![0.5, 2.0])],
    );
}

#[test]
fn linked_list() {
    check(
        "func @f(%x: f64, %n: i64) -> (f64) {
           %head = for %i: i64 = 0 to %n step 1 with (%list: ptr = null) {
             %node = alloc 16 align 8
             %k = sitofp i64 %i to f64
             %v = fmul f64 %k, %x
             store f64 %v, %node align 8
             %at = offset %node, 1 * 8
             store ptr %list, %at align 8
             yield %node
           }
           %some = icmp ne ptr %head, null
           %r = if %some -> (f64) {
             %sum, %end = loop with (%acc: f64 = 0.0, %here: ptr = %head) {
               %u = load f64 %here align 8
               %w = fmul f64 %u, %u
               %next = fadd f64 %acc, %w
               %link = offset %here, 1 * 8
               %rest = load ptr %link align 8
               free %here
               %more = icmp ne ptr %rest, null
               again %more, %next, %rest
             }
             yield %sum
           } else {
             yield 0.0
           }
           return %r
         }",
        &[Float(1.1), Int(4)],
    );
}

#[test]
fn copies_and_fills() {
    check(
        "global @start: 16 bytes align 8 const layout [f64] = x\"000000000000f03f0000000000000040\"
         func @f(%x: ptr layout [f64], %n: i64) -> (f64) {
           %bytes = mul i64 %n, 8
           %t = alloc %bytes align 8
           copy %t, %x, %bytes align 8
           %next = offset %x, 1 * 8
           move %next, %x, 16 align 8
           fill %x, 0, 8 align 8
           copy %t, @start, 16 align 8
           %p = offset %t, 2 * 8
           %a = load f64 %p align 8
           %b = load f64 %t align 8
           %c = fmul f64 %a, %b
           %last = offset %x, 3 * 8
           fill %last, 64, 8 align 8
           free %t
           return %c
         }",
        &[Floats(vec![1.5, 0.5, -2.0, 7.0]), Int(4)],
    );
}

#[test]
fn copies_of_structures() {
    check(
        "global @template: 24 bytes align 8 const layout [0: f64, 8: i64, 16: f64; 24] = x\"000000000000f03f03000000000000000000000000000040\"
         func @f(%x: f64, %y: ptr layout [f64]) -> (f64) {
           %a = stack 48 align 8
           %b = stack 48 align 8
           copy %a, @template, 24 align 8
           %second = offset %a, 24 * 1
           copy %second, @template, 24 align 8
           %slot = offset %second, 16 * 1
           store f64 %x, %slot align 8
           copy %b, %a, 48 align 8
           copy %a, @template, 24 align 8
           %count_at = offset %b, 32 * 1
           %count = load i64 %count_at align 8
           %k = sitofp i64 %count to f64
           %from = offset %b, 40 * 1
           %v = load f64 %from align 8
           %w = load f64 %y align 8
           %vw = fmul f64 %v, %w
           %r = fmul f64 %vw, %k
           %first = load f64 %b align 8
           %s = fadd f64 %r, %first
           return %s
         }",
        &[Float(1.1), Floats(vec![0.5])],
    );
}

#[test]
fn atomic_sums() {
    check(
        "func @f(%x: f64, %y: ptr layout [f64]) -> (f64) {
           %old = atomic_add f64 %y, %x align 8
           %older = atomic_add f64 %y, 1.0 align 8
           %p = fmul f64 %old, %older
           return %p
         }",
        &[Float(1.1), Floats(vec![0.5])],
    );
}

#[test]
fn integers_that_transport_floats() {
    check(
        "func @f(%x: f64, %y: ptr layout [f64], %n: i64) -> (f64) {
           %bits = bitcast f64 %x to i64
           %first = load i64 %y align 8
           %c = icmp sgt i64 %n, 0
           %chosen = select i64 %c, %first, %bits
           %second = offset %y, 1 * 8
           store i64 %chosen, %second align 8
           %carried = for %i: i64 = 0 to %n step 1 with (%b: i64 = %bits) {
             %third = offset %y, 2 * 8
             %new = load i64 %third align 8
             store i64 %b, %third align 8
             yield %new
           }
           %z = bitcast i64 %carried to f64
           store i64 4607182418800017408, %y align 8
           %w = fmul f64 %z, %x
           return %w
         }",
        &[Float(1.1), Floats(vec![0.5, 0.25, 2.0]), Int(3)],
    );
}

#[test]
fn an_integer_over_a_float_and_an_integer() {
    check(
        "func @f(%x: f64, %y: f64) -> (f64) {
           %p = stack 8 align 8
           %q = stack 8 align 8
           %x32 = fptrunc f64 %x to f32
           %zero = fsub f32 %x32, %x32
           store f32 %zero, %p align 4
           %high = offset %p, 4 * 1
           store i32 7, %high align 4
           copy %q, %p, 8 align 8
           store f32 %x32, %q align 4
           store i64 34359738368, %q align 8
           %a = load f32 %q align 4
           %at = offset %q, 4 * 1
           %k = load i32 %at align 4
           %kf = sitofp i32 %k to f64
           %low = load f32 %p align 4
           %both = fadd f32 %a, %low
           %wide = fpext f32 %both to f64
           %ky = fmul f64 %kf, %y
           %r = fadd f64 %wide, %ky
           return %r
         }",
        &[Float(1.25), Float(2.0)],
    );
}

// ---- calls

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
fn memory_made_without_derivatives_gets_them_later() {
    check(
        "func @new() -> (ptr) {
           %p = alloc 8 align 8
           store f64 2.0, %p align 8
           return %p
         }
         func @f(%x: f64) -> (f64) {
           %p = call @new()
           %a = load f64 %p align 8
           store f64 %x, %p align 8
           %b = load f64 %p align 8
           %c = fmul f64 %a, %b
           free %p
           return %c
         }",
        &[Float(1.1)],
    );
}

#[test]
fn memory_made_with_integers_gets_floats_later() {
    check(
        "func @new() -> (ptr) {
           %p = alloc 16 align 8
           %at = offset %p, 1 * 8
           store i64 3, %at align 8
           return %p
         }
         func @f(%x: f64) -> (f64) {
           %p = call @new()
           store f64 %x, %p align 8
           %at = offset %p, 1 * 8
           %n = load i64 %at align 8
           %k = sitofp i64 %n to f64
           %v = load f64 %p align 8
           %r = fmul f64 %v, %k
           free %p
           return %r
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
fn globals_hold_tangents() {
    check(
        "global @state: 16 bytes align 8 layout [f64] = x\"000000000000f03f0000000000000040\"
         func @f(%x: f64) -> (f64) {
           %second = offset @state, 1 * 8
           %a = load f64 @state align 8
           store f64 %x, @state align 8
           %b = load f64 @state align 8
           %c = load f64 %second align 8
           %ab = fmul f64 %a, %b
           %abc = fmul f64 %ab, %c
           return %abc
         }",
        &[Float(1.1)],
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
