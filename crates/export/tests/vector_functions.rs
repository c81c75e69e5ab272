//! The mathematical functions for vectorised loops: values over the whole range, at most two units in the last place off, and what C says at the ends; loops with them are vectorised at every level.

#[allow(dead_code, reason = "other tests use more of it")]
mod native;

use std::collections::BTreeSet;

use ferrozyme_export::{ExportOptions, FOR_WIDE_VECTORS, export};
use ferrozyme_ir::interpret::{Datum, Machine};
use ferrozyme_ir::{Flags, FunctionId, MathValue, Module, Opcode, Type, parse_module};
use ferrozyme_llvm::compile::{OptimisationLevel, optimise};
use ferrozyme_llvm::{Context, Linkage, TargetDescription, TargetMachine};
use native::Native;

const TEXT: &str = concat!(
    include_str!("../src/vectorisable.fz"),
    include_str!("../src/vectorisable/angles.fz"),
    include_str!("../src/vectorisable/erf.fz"),
    include_str!("../src/vectorisable/exponentials.fz"),
    include_str!("../src/vectorisable/logarithms.fz"),
    include_str!("../src/vectorisable/trigonometry.fz"),
);

/// Arguments, values as doubles, and what these lack to be exact: made with mpmath.
const EXACT: &str = include_str!("data/exact.txt");

/// A function of the text: `__ferrozyme_<operation>_<type>`.
struct Subject {
    function: FunctionId,
    opcode: Opcode,
    name: String,
    ty: Type,
}

fn subjects(module: &Module) -> Vec<Subject> {
    let all = module.functions.iter();
    all.map(|(function, data)| {
        let name = data.name.trim_start_matches("__ferrozyme_");
        let (name, ty) = name.rsplit_once('_').expect("it ends in a type");
        Subject {
            function,
            opcode: Opcode::from_name(name).expect("it is the name of an operation"),
            name: name.to_owned(),
            ty: match ty {
                "f32" => Type::F32,
                _ => Type::F64,
            },
        }
    })
    .collect()
}

/// As machine code, with multiplications and additions contracted as in loops.
fn compiled(module: &Module) -> Native {
    let all: Vec<FunctionId> = module.functions.keys().collect();
    let options = ExportOptions {
        relaxed: Flags::CONTRACT,
        strict: true,
        ..ExportOptions::default()
    };
    Native::with(module, &all, OptimisationLevel::O2, &options).unwrap()
}

fn read() -> Module {
    let module = parse_module(TEXT).unwrap();
    ferrozyme_ir::verify_module(&module).unwrap();
    module
}

/// The distance of two floats next to `x`.
fn unit_at(ty: Type, x: f64) -> f64 {
    let (digits, smallest) = match ty {
        Type::F32 => (23, -149),
        _ => (52, -1074),
    };
    let exponent = match x.abs() {
        x if x < f64::MIN_POSITIVE => -1074,
        x => (x.to_bits() >> 52) as i32 - 1023,
    };
    // Below the smallest normal number there is one bit left.
    match (exponent - digits).max(smallest) {
        exponent if exponent < -1022 => f64::from_bits(1 << (exponent + 1074)),
        exponent => f64::from_bits(((exponent + 1023) as u64) << 52),
    }
}

fn is_same(a: f64, b: f64) -> bool {
    a.is_nan() && b.is_nan() || a == b && a.is_sign_negative() == b.is_sign_negative()
}

#[test]
fn doubles_are_close_to_exact_values() {
    let module = read();
    let native = compiled(&module);
    let mut machine = Machine::new(&module);
    let mut tested = BTreeSet::new();
    for line in EXACT.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let float = |index: usize| {
            f64::from_bits(u64::from_str_radix(words[index], 16).expect("sixteen digits"))
        };
        let (x, value, rest) = (float(1), float(2), float(3));
        let name = format!("__ferrozyme_{}_f64", words[0]);
        let function = module.function_named(&name).expect("a known function");
        tested.insert(name.clone());
        let argument = [Datum::f64(x)];
        let results = [
            machine.call(function, &argument).unwrap(),
            native.call(function, &argument).unwrap(),
        ];
        for result in results {
            let found = result[0].as_float().unwrap();
            let off = ((found - value) - rest).abs() / unit_at(Type::F64, value);
            assert!(off <= 2.0, "{name}({x:e}) is {found:e}, {off} units off");
        }
    }
    let doubles = subjects(&module);
    let doubles = doubles.iter().filter(|subject| subject.ty == Type::F64);
    for subject in doubles {
        let name = &module.functions[subject.function].name;
        assert!(tested.contains(name), "{name} has no exact values");
    }
}

const SPECIAL: [f64; 30] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    1e-45,
    -1e-45,
    1e-40,
    1.17e-38,
    3.4028234e38,
    -3.4028234e38,
    88.73,
    -103.98,
    89.42,
    128.0,
    -150.0,
    38.54,
    0.99999994,
    1.0000001,
    -0.99999994,
    1e300,
    -1e300,
];

/// The reference of single precision is a function of double precision, rounded.
#[test]
fn floats_are_close_over_the_whole_range() {
    let module = read();
    let native = compiled(&module);
    let patterns = (0..=u32::MAX).step_by(400_009).map(f32::from_bits);
    let moderate = (-8000..8000).map(|step| step as f32 * 0.0131);
    // Where the reduction of angles takes other pieces of 2/pi: 2^85.
    let turned = (-20_000..20_000).map(|step| f32::from_bits((0x6a00_0000 + step * 997) as u32));
    let points: Vec<f32> = SPECIAL
        .iter()
        .map(|&x| x as f32)
        .chain(patterns)
        .chain(moderate)
        .chain(turned)
        .collect();
    let check = |subject: &Subject, arguments: &[f32], exact: f64| {
        let given: Vec<Datum> = arguments.iter().map(|&x| Datum::f32(x)).collect();
        let found = native.call(subject.function, &given).unwrap();
        let found = found[0].as_float().unwrap();
        let rounded = f64::from(exact as f32);
        let name = &subject.name;
        if !rounded.is_finite() || rounded == 0.0 {
            let near = rounded == 0.0 && found.abs() <= unit_at(Type::F32, 0.0) && exact != 0.0;
            let above = rounded.is_infinite() && exact.is_finite() && found == f64::from(f32::MAX);
            let fits = is_same(found, rounded) || near || above;
            assert!(fits, "{name}({arguments:?}) is {found:e}, not {rounded:e}");
            return;
        }
        let off = (found - exact).abs() / unit_at(Type::F32, exact);
        let most = if ["exp", "log", "tanh"].contains(&name.as_str()) {
            2.0
        } else {
            0.6
        };
        let text = format!("{name}({arguments:?}) is {found:e}, not {exact:e}: {off} units off");
        assert!(off <= most, "{text}");
    };
    for subject in subjects(&module) {
        if subject.ty != Type::F32 {
            continue;
        }
        match subject.opcode.math().expect("mathematics").value {
            MathValue::FloatUnary(function) => {
                for &x in &points {
                    check(&subject, &[x], function(f64::from(x)));
                }
            }
            MathValue::FloatBinary(function) => {
                let firsts = points.iter().step_by(97).chain(&points[..SPECIAL.len()]);
                for &x in firsts {
                    let seconds = points[..SPECIAL.len()].iter();
                    for &y in seconds.chain(points.iter().step_by(1013)) {
                        check(&subject, &[x, y], function(f64::from(x), f64::from(y)));
                    }
                }
            }
            _ => panic!("{} has another form", subject.name),
        }
    }
}

/// What double precision gives at the ends is what C's library gives.
#[test]
fn ends_of_doubles() {
    let module = read();
    let native = compiled(&module);
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::MAX,
        f64::MIN,
        -1.5,
        1e5,
        -1e5,
    ];
    for subject in subjects(&module) {
        let Some(MathValue::FloatUnary(function)) = subject.opcode.math().map(|row| row.value)
        else {
            continue;
        };
        if subject.ty != Type::F64 {
            continue;
        }
        for x in special {
            let exact = function(x);
            let found = native.call(subject.function, &[Datum::f64(x)]).unwrap();
            let found = found[0].as_float().unwrap();
            let name = &subject.name;
            let close = (found - exact).abs() <= 3.0 * unit_at(Type::F64, exact);
            let fits = is_same(found, exact) || exact.is_finite() && exact != 0.0 && close;
            assert!(fits, "{name}({x:e}) is {found:e}, not {exact:e}");
        }
    }
}

/// A loop with the function, over arrays.
fn loop_with(subject: &Subject, level: &str) -> String {
    let Subject {
        opcode, name, ty, ..
    } = subject;
    let bytes = ty.scalar().bytes();
    let is_binary = matches!(
        opcode.math().map(|row| row.value),
        Some(MathValue::FloatBinary(_))
    );
    let second = if is_binary { ", %u" } else { "" };
    format!(
        "
func @{name}_{ty}(%y: ptr noalias, %x: ptr noalias readonly, %n: i64){level} {{
  for %i: i64 = 0 to %n step 1 {{
    %px = offset inbounds %x, %i * {bytes}
    %py = offset inbounds %y, %i * {bytes}
    %u = load {ty} %px align {bytes}
    %v = {name} {ty} %u{second}
    store {ty} %v, %py align {bytes}
    yield
  }}
  return
}}
"
    )
}

#[test]
fn loops_are_vectorised_at_every_level() {
    let library = read();
    for (level, widths) in [
        ("", [4, 2]),
        (" level(v3)", [8, 4]),
        (" level(v4)", [16, 8]),
    ] {
        let all = subjects(&library);
        let text: String = all.iter().map(|one| loop_with(one, level)).collect();
        let module = parse_module(&text).unwrap();
        let context = Context::new().unwrap();
        let machine = TargetMachine::new(&TargetDescription::default()).unwrap();
        let into = context.create_module("test");
        into.set_triple(machine.triple());
        into.set_data_layout(&machine.data_layout());
        let functions: Vec<FunctionId> = module.functions.keys().collect();
        let made = export(&module, &functions, into, &ExportOptions::default()).unwrap();
        for function in made {
            function.set_linkage(Linkage::External);
        }
        let optimised = optimise(into, OptimisationLevel::O3, &machine)
            .unwrap()
            .to_string();
        for Subject { name, ty, .. } in &all {
            let start = format!("@{name}_{ty}(");
            let body = optimised
                .split("\ndefine ")
                .find(|part| {
                    part.lines()
                        .next()
                        .is_some_and(|head| head.contains(&start))
                })
                .expect("the function");
            let body = body.split("\n}").next().expect("its end");
            // Some of single precision have vectors of half the length: they are computed in double precision.
            let vectors = widths.map(|width| format!("<{width} x "));
            if level.is_empty() && FOR_WIDE_VECTORS.contains(&format!("{name}_{ty}").as_str()) {
                let called = body.contains("call double @") || body.contains("call float @");
                assert!(called, "{name} {ty}:\n{body}");
                continue;
            }
            let is_vectorised = vectors.iter().any(|vector| body.contains(vector));
            assert!(is_vectorised, "{name} {ty}{level}:\n{body}");
            assert!(
                !body.contains("call double @") && !body.contains("call float @"),
                "{body}"
            );
        }
    }
}
