//! Forward mode, run in the interpreter and compared with finite differences.

mod calls;
mod memory;
mod refused;
mod values;

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
