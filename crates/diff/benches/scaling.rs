//! How the time for a derivative grows with the size of the program.
//!
//! For functions of several shapes with 1,000, 10,000 and 100,000 operations, prints the time that reverse mode, forward mode,
//! the optimisation of the gradient, and printing and parsing take, and then what each pass takes, per operation of the primal. Where the time grows
//! linearly, the numbers of a shape stay the same.
//!
//! ```text
//! cargo bench -p ferrozyme-diff --bench scaling
//! ```

use ferrozyme_diff::{Activity, Choices, Request, differentiate_forward, differentiate_reverse};
use ferrozyme_ir::{
    Alignment, Builder, FloatPredicate, Function, FunctionId, Module, Opcode, Type, Value, all_ops,
    parse_module, print_module,
};
use ferrozyme_opt::PASSES;
use std::time::{Duration, Instant};

type Shape = (&'static str, fn(usize) -> Module);

const SHAPES: &[Shape] = &[
    ("straight arithmetic", straight),
    ("loads and stores", memory),
    ("small loops", loops),
    ("branches", branches),
    ("calls", calls),
    ("nested loops", nests),
    ("stack slots", slots),
];

fn main() {
    let sizes: &[usize] = if std::env::args().any(|arg| arg == "--test") {
        &[1_000]
    } else {
        &[1_000, 10_000, 100_000]
    };
    println!("nanoseconds per operation of the primal");
    println!(
        "{:<22} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "shape", "operations", "reverse", "forward", "optimise", "text"
    );
    for (name, build) in SHAPES {
        for &size in sizes {
            let module = build(size);
            let request = request(&module);
            let reverse = best(&module, |module| {
                differentiate_reverse(module, &request).expect("it can be differentiated");
            });
            let forward = best(&module, |module| {
                differentiate_forward(module, &request).expect("it can be differentiated");
            });
            let mut with_gradient = module.clone();
            let gradient = differentiate_reverse(&mut with_gradient, &request)
                .expect("it can be differentiated");
            let optimise = best(&with_gradient, |module| {
                ferrozyme_opt::optimise(module, gradient);
            });
            let text = best(&module, |module| {
                parse_module(&print_module(module)).expect("what was printed can be parsed");
            });
            let operations = operations_of(&module);
            let times = [reverse, forward, optimise, text];
            let [reverse, forward, optimise, text] = times.map(|time| per(time, operations));
            println!(
                "{name:<22} {operations:>9} {reverse:>9} {forward:>9} {optimise:>9} {text:>9}"
            );
        }
    }
    println!("\n{:<22} {:<22} nanoseconds for each size", "pass", "shape");
    for &(pass, run) in PASSES {
        for (name, build) in SHAPES {
            let times = sizes.iter().map(|&size| {
                let module = build(size);
                let main = main_function(&module);
                let time = best(&module, |module| {
                    run(module, main);
                });
                format!("{:>9}", per(time, operations_of(&module)))
            });
            let times: Vec<String> = times.collect();
            println!("{pass:<22} {name:<22} {}", times.join(" "));
        }
    }
}

fn operations_of(module: &Module) -> usize {
    let functions = module.functions.values();
    let defined = functions.filter(|function| function.body.is_some());
    defined.map(|function| all_ops(function).len()).sum()
}

fn per(time: Duration, operations: usize) -> usize {
    time.as_nanos() as usize / operations
}

/// The shortest of three runs.
fn best(module: &Module, run: impl Fn(&mut Module)) -> Duration {
    let runs = (0..3).map(|_| {
        let mut module = module.clone();
        let start = Instant::now();
        run(&mut module);
        start.elapsed()
    });
    runs.min().expect("there were three")
}

fn main_function(module: &Module) -> FunctionId {
    module.function_named("main").expect("every shape has it")
}

/// All shapes are `main(x: ptr, n: i64) -> f64`.
fn request(module: &Module) -> Request {
    Request {
        function: main_function(module),
        args: vec![Activity::Duplicated, Activity::Const],
        results: vec![Activity::Active],
        primal: true,
        width: 1,
        discarded: Vec::new(),
        keep_order: false,
        shaped: Vec::new(),
        choices: Choices::default(),
    }
}

const ALIGN: u64 = 8;

fn with_main(build: impl FnOnce(&mut Builder<'_>, Value, Value) -> Value) -> Module {
    let mut module = Module::new();
    let main = define_main(build);
    module.functions.push(main);
    module
}

fn define_main(build: impl FnOnce(&mut Builder<'_>, Value, Value) -> Value) -> Function {
    let mut main = Function::define(
        "main",
        vec![Type::PTR.into(), Type::I64.into()],
        vec![Type::F64],
    );
    let (x, n) = (main.arguments()[0], main.arguments()[1]);
    let mut b = Builder::at_body(&mut main);
    let result = build(&mut b, x, n);
    b.ret(&[result]);
    main
}

fn align() -> Alignment {
    Alignment::new(ALIGN).expect("a power of two")
}

fn element(b: &mut Builder<'_>, x: Value, index: i64) -> Value {
    let index = b.i64(index);
    b.offset(x, index, 8)
}

fn straight(size: usize) -> Module {
    with_main(|b, x, _| {
        let mut recent = [b.load(Type::F64, x, align()); 4];
        for step in 0..size {
            let (a, c) = (recent[step % 4], recent[(step * 7 + 1) % 4]);
            recent[step % 4] = match step % 5 {
                0 => b.unary(Opcode::Sin, a),
                1 => b.binary(Opcode::Fadd, a, c),
                2 => b.binary(Opcode::Fmul, a, c),
                3 => b.unary(Opcode::Exp, a),
                _ => b.binary(Opcode::Fsub, a, c),
            };
        }
        recent[0]
    })
}

fn memory(size: usize) -> Module {
    with_main(|b, x, _| {
        let mut sum = b.float(Type::F64, 0.0);
        for step in 0..size as i64 / 6 {
            let from = element(b, x, (step * 5) % 97);
            let a = b.load(Type::F64, from, align());
            let square = b.binary(Opcode::Fmul, a, a);
            let to = element(b, x, (step * 3) % 97);
            b.store(square, to, align());
            sum = b.binary(Opcode::Fadd, sum, square);
        }
        sum
    })
}

/// Floats that go through memory behind a pointer which is in memory itself.
fn slots(size: usize) -> Module {
    with_main(|b, x, _| {
        let mut value = b.load(Type::F64, x, align());
        for _ in 0..size / 7 {
            let eight = b.i64(8);
            let (slot, pointer) = (b.stack(eight, align()), b.stack(eight, align()));
            b.store(value, slot, align());
            b.store(slot, pointer, align());
            let found = b.load(Type::PTR, pointer, align());
            let loaded = b.load(Type::F64, found, align());
            value = b.binary(Opcode::Fmul, loaded, value);
        }
        value
    })
}

fn loops(size: usize) -> Module {
    with_main(|b, x, n| {
        let mut sum = b.float(Type::F64, 0.0);
        for _ in 0..size / 7 {
            let (zero, one) = (b.i64(0), b.i64(1));
            let (op, body) = b.for_loop(zero, n, one, &[sum]);
            let args = b.function.regions[body].args.clone();
            b.inside(body, |b| {
                let at = b.offset(x, args[0], 8);
                let a = b.load(Type::F64, at, align());
                let square = b.binary(Opcode::Fmul, a, a);
                b.store(square, at, align());
                let next = b.binary(Opcode::Fadd, args[1], square);
                b.yields(&[next]);
            });
            sum = b.function.result(op);
        }
        sum
    })
}

fn branches(size: usize) -> Module {
    with_main(|b, x, _| {
        let mut value = b.load(Type::F64, x, align());
        for _ in 0..size / 6 {
            let half = b.float(Type::F64, 0.5);
            let condition = b.fcmp(FloatPredicate::Olt, value, half);
            let (op, then_region, else_region) = b.if_else(condition, &[Type::F64]);
            b.inside(then_region, |b| {
                let square = b.binary(Opcode::Fmul, value, value);
                b.yields(&[square]);
            });
            b.inside(else_region, |b| {
                let sine = b.unary(Opcode::Sin, value);
                b.yields(&[sine]);
            });
            value = b.function.result(op);
        }
        value
    })
}

fn calls(size: usize) -> Module {
    let mut module = Module::new();
    let mut callees = Vec::new();
    for number in 0..size / 20 {
        let mut callee = Function::define(
            format!("step{number}"),
            vec![Type::PTR.into(), Type::F64.into()],
            vec![Type::F64],
        );
        let (x, y) = (callee.arguments()[0], callee.arguments()[1]);
        let mut b = Builder::at_body(&mut callee);
        let mut value = b.load(Type::F64, x, align());
        for _ in 0..8 {
            let product = b.binary(Opcode::Fmul, value, y);
            value = b.unary(Opcode::Sin, product);
        }
        b.store(value, x, align());
        b.ret(&[value]);
        callees.push(module.functions.push(callee));
    }
    let main = define_main(|b, x, _| {
        let mut value = b.float(Type::F64, 1.0);
        for &callee in &callees {
            let op = b.call(callee, &[x, value], &[Type::F64]);
            value = b.function.result(op);
        }
        value
    });
    module.functions.push(main);
    module
}

fn nests(size: usize) -> Module {
    with_main(|b, x, n| {
        let mut sum = b.float(Type::F64, 0.0);
        for _ in 0..size / 14 {
            sum = nest(b, x, n, sum, 3);
        }
        sum
    })
}

fn nest(b: &mut Builder<'_>, x: Value, n: Value, start: Value, depth: usize) -> Value {
    let (zero, one) = (b.i64(0), b.i64(1));
    let (op, body) = b.for_loop(zero, n, one, &[start]);
    let args = b.function.regions[body].args.clone();
    b.inside(body, |b| {
        let next = if depth == 1 {
            let at = b.offset(x, args[0], 8);
            let a = b.load(Type::F64, at, align());
            let sine = b.unary(Opcode::Sin, a);
            b.binary(Opcode::Fmul, args[1], sine)
        } else {
            nest(b, x, n, args[1], depth - 1)
        };
        b.yields(&[next]);
    });
    b.function.result(op)
}
