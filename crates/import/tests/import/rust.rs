//! Rust programs, compiled by rustc with and without optimisation, imported, and run by the interpreter beside the originals.

use super::programs;
use ferrozyme_import::outline::outline_cold_code;
use ferrozyme_import::{ImportOptions, import};
use ferrozyme_ir::interpret::{Datum, Machine, Pointer};
use ferrozyme_ir::{Module, Opcode, all_ops, verify_module};
use ferrozyme_llvm::{Context, PassOptions, Place, Value};
use std::process::Command;
use std::sync::OnceLock;

/// An argument of a program.
#[derive(Clone, Debug)]
enum Argument {
    /// `&[f64]`.
    Slice(Vec<f64>),
    /// `&mut [f64]`; what it holds afterwards counts as a result.
    Output(Vec<f64>),
    Float(f64),
    Size(usize),
    Int(i32),
}

/// The outcome of a program: its result, if it has one, and what its outputs hold.
type Outcome = Vec<f64>;

struct Program {
    name: &'static str,
    arguments: Vec<Argument>,
    native: fn(&mut [Argument]) -> Outcome,
    /// How many of its loops cannot be counted before they run, when it is optimised.
    open_loops: Option<usize>,
}

macro_rules! native {
    (@arg $given:ident slice) => { let Argument::Slice($given) = $given else { unreachable!() }; let $given: &[f64] = $given; };
    (@arg $given:ident output) => { let Argument::Output($given) = $given else { unreachable!() }; let $given: &mut [f64] = $given; };
    (@arg $given:ident float) => { let Argument::Float($given) = *$given else { unreachable!() }; };
    (@arg $given:ident size) => { let Argument::Size($given) = *$given else { unreachable!() }; };
    (@arg $given:ident int) => { let Argument::Int($given) = *$given else { unreachable!() }; };
    ($name:ident($($arg:ident: $kind:ident = $value:expr),*), $open:expr) => {
        Program {
            name: stringify!($name),
            arguments: vec![$(native!(@value $kind $value)),*],
            native: |arguments| {
                let [$($arg),*] = arguments else { unreachable!() };
                $(native!(@arg $arg $kind);)*
                let result = programs::$name($($arg),*);
                Result64::list(result)
            },
            open_loops: $open,
        }
    };
    (@value slice $value:expr) => { Argument::Slice($value.to_vec()) };
    (@value output $value:expr) => { Argument::Output($value.to_vec()) };
    (@value float $value:expr) => { Argument::Float($value) };
    (@value size $value:expr) => { Argument::Size($value) };
    (@value int $value:expr) => { Argument::Int($value) };
}

/// What programs return.
trait Result64 {
    fn list(self) -> Outcome;
}

impl Result64 for f64 {
    fn list(self) -> Outcome {
        vec![self]
    }
}

impl Result64 for () {
    fn list(self) -> Outcome {
        vec![]
    }
}

const X: [f64; 7] = [0.5, 1.25, 3.0, -0.75, 2.0, 0.125, 1.5];
const Y: [f64; 7] = [1.0, -2.0, 0.25, 0.5, 4.0, -1.5, 3.0];
const SYMMETRIC: [f64; 9] = [4.0, 1.0, 0.5, 1.0, 3.0, 0.25, 0.5, 0.25, 2.0];
const WAVE: [f64; 8] = [1.0, 0.5, -0.25, 2.0, 0.0, 1.5, -1.0, 0.75];

fn programs() -> Vec<Program> {
    let long: Vec<f64> = (0..100).map(|i| f64::from(i * 7919 % 101) / 8.0).collect();
    vec![
        native!(sum(x: slice = X), Some(0)),
        native!(sum(x: slice = []), Some(0)),
        native!(dot(x: slice = X, y: slice = Y), Some(0)),
        native!(zip(x: slice = X, y: slice = Y[..4]), Some(0)),
        native!(matrix_times_vector(a: slice = SYMMETRIC, x: slice = X[..3], y: output = Y[..3]), Some(0)),
        native!(matrix_product(a: slice = SYMMETRIC, b: slice = SYMMETRIC, c: output = [0.0; 9], n: size = 3), Some(0)),
        native!(windows(x: slice = X), Some(0)),
        native!(windows(x: slice = X[..1]), Some(0)),
        native!(second_differences(x: slice = X, y: output = Y), Some(0)),
        native!(chunks(x: slice = X), Some(0)),
        native!(chunks(x: slice = X[..6]), Some(0)),
        native!(chunks_of(x: slice = X, n: size = 2), Some(0)),
        native!(chunks_of(x: slice = X, n: size = 100), Some(0)),
        native!(chunks_exact(x: slice = WAVE), Some(0)),
        native!(rows_into(x: slice = SYMMETRIC, y: output = Y[..3], n: size = 3), Some(0)),
        native!(backwards(x: slice = X), Some(0)),
        native!(every_other(x: slice = X), Some(0)),
        native!(counting_down(x: slice = X), Some(0)),
        native!(with_their_end(x: slice = X, n: size = 5), Some(0)),
        native!(harmonic(n: int = 9), Some(0)),
        native!(harmonic(n: int = -3), Some(0)),
        native!(scaled_sum(a: float = 0.5, x: slice = X, y: output = Y), Some(0)),
        native!(bend(x: output = X), Some(0)),
        native!(softmax(x: output = X), Some(0)),
        native!(joined(x: slice = X, y: slice = Y), Some(0)),
        native!(filtered(x: slice = Y), Some(0)),
        native!(some_in_between(x: slice = WAVE), Some(0)),
        native!(collected(x: slice = X), Some(0)),
        native!(rows(x: slice = X), None),
        native!(grown(x: slice = X), None),
        native!(cloned(x: slice = X), Some(0)),
        native!(found(x: slice = X, limit: float = 1.4), None),
        native!(found(x: slice = X, limit: float = 10.0), None),
        native!(until_both(x: float = 0.01), None),
        native!(square_root(x: float = 7.0), None),
        native!(adaptive_steps(x: float = 1.5), None),
        native!(cholesky(a: output = SYMMETRIC, n: size = 3), Some(0)),
        native!(determinant(x: slice = SYMMETRIC, n: size = 3), None),
        native!(fourier(re: output = WAVE, im: output = [0.5; 8]), None),
        native!(relaxed(x: output = X, b: slice = Y), Some(0)),
        native!(copied(a: output = X, b: slice = Y), Some(0)),
        native!(sorted(x: output = X), None),
        native!(sorted(x: output = long), None),
        native!(median(x: slice = long), None),
        native!(shapes(x: slice = X), None),
        native!(options(x: slice = X), None),
        native!(tree(x: slice = X), None),
        native!(behind_traits(x: slice = X), None),
        native!(through_pointers(x: float = 0.3, n: size = 7), None),
        native!(narrow(x: slice = X), Some(0)),
        native!(whole_numbers(x: slice = WAVE), Some(0)),
        native!(mathematics(x: float = 1.37), None),
        native!(mathematics(x: float = 0.2), None),
        native!(overflow_is_checked(x: slice = long), Some(0)),
    ]
}

/// The programs as Loop IR, from a build at this level.
fn imported(level: u32) -> &'static Module {
    static LEVELS: [OnceLock<Module>; 3] = [const { OnceLock::new() }; 3];
    LEVELS[level as usize].get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = folder.path().join("programs.bc");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/import/programs.rs");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut command = Command::new(rustc);
        command
            .args(["--crate-type=lib", "--edition=2024", "--emit=llvm-bc"])
            .args(["-Clinker-plugin-lto", "-Ccodegen-units=1", "-Cdebuginfo=1", "-Awarnings"])
            .arg(format!("-Copt-level={level}"))
            .arg("-o")
            .arg(&output)
            .arg(source);
        if level == 0 {
            command.args(["-Cdebug-assertions=on", "-Coverflow-checks=on"]);
        }
        assert!(command.status().expect("rustc runs").success());
        let context = Context::new().expect("rustc brings its LLVM");
        let bitcode = std::fs::read(&output).expect("rustc has written it");
        let module = context.parse_bitcode("programs", &bitcode).expect("rustc's bitcode");
        let options = PassOptions {
            inliner_threshold: Some(1000),
            ..PassOptions::before_differentiation()
        };
        let passes = "thinlto-pre-link<O2>,function(scalarizer<load-store>,sroa,instcombine<no-verify-fixpoint>,simplifycfg)";
        module.run_passes(passes, None, options).expect("LLVM's passes run");
        let is_opaque = |function: Value<'_>| {
            let name = function.name();
            function.has_attribute(Place::Function, "noreturn")
                || ["panic", "core3fmt", "handle_error"].iter().any(|part| name.contains(part))
        };
        outline_cold_code(&context, module, &|function| is_opaque(function));
        module.verify().expect("outlining leaves a module that verifies");
        let mut names: Vec<&str> = programs().iter().map(|program| program.name).collect();
        names.dedup();
        let options = ImportOptions {
            is_opaque: &is_opaque,
            is_inactive: &|_| false,
        };
        let imported = import(&context, module, &names, &options).expect("they can be imported");
        assert!(imported.opaque.is_empty(), "{:?}", imported.opaque);
        module.verify().expect("importing leaves a module that verifies");
        imported.module
    })
}

/// Runs a program; none if it calls a function of the standard library of which rustc has given only the declaration.
fn run(module: &Module, program: &Program) -> Option<Outcome> {
    let mut machine = Machine::new(module);
    machine.set_step_limit(10_000_000);
    // What would be done on unwinding: nothing unwinds here.
    for function in module.functions.values() {
        if function.name.contains("cleanup") {
            machine.define_external(&function.name, Box::new(|_, _| Ok(vec![])));
        }
    }
    let mut arguments = Vec::new();
    let mut outputs: Vec<(Pointer, usize)> = Vec::new();
    for argument in &program.arguments {
        match argument {
            Argument::Slice(values) | Argument::Output(values) => {
                let place = machine.allocate_f64s(values);
                if matches!(argument, Argument::Output(_)) {
                    outputs.push((place, values.len()));
                }
                arguments.push(Datum::ptr(place));
                arguments.push(Datum::i64(values.len() as i64));
            }
            Argument::Float(value) => arguments.push(Datum::f64(*value)),
            Argument::Size(value) => arguments.push(Datum::i64(*value as i64)),
            Argument::Int(value) => arguments.push(Datum::i32(*value)),
        }
    }
    let function = module
        .function_named(program.name)
        .expect("it was imported");
    let results = match machine.call(function, &arguments) {
        Ok(results) => results,
        Err(fault) if fault.to_string().contains("which has no body") => return None,
        Err(fault) => panic!("@{}: {fault}", program.name),
    };
    let mut outcome: Outcome = results.iter().filter_map(Datum::as_f64).collect();
    for (place, length) in outputs {
        outcome.extend(
            machine
                .read_f64s(place, length)
                .expect("the outputs are written"),
        );
    }
    assert_eq!(machine.live_heap().0, 0, "@{} leaks", program.name);
    Some(outcome)
}

/// Checks all programs that can run; that must be so many.
fn check(module: &Module, least: usize) {
    let mut ran = 0;
    for program in programs() {
        let mut arguments = program.arguments.clone();
        let mut expected = (program.native)(&mut arguments);
        for argument in arguments {
            if let Argument::Output(values) = argument {
                expected.extend(values);
            }
        }
        let Some(outcome) = run(module, &program) else {
            continue;
        };
        ran += 1;
        assert_eq!(outcome.len(), expected.len());
        for (ours, theirs) in outcome.iter().zip(&expected) {
            let close = (ours - theirs).abs() <= 1e-12 * theirs.abs().max(1.0);
            assert!(close, "@{}: {outcome:?} is not {expected:?}", program.name);
        }
    }
    assert!(ran >= least, "only {ran} programs ran");
}

fn optimised(level: u32) -> Module {
    let mut module = imported(level).clone();
    let functions: Vec<_> = module.functions.keys().collect();
    for function in functions {
        ferrozyme_opt::optimise(&mut module, function);
    }
    verify_module(&module).unwrap_or_else(|errors| panic!("{errors:?}"));
    module
}

#[test]
fn optimised_programs_compute_the_same() {
    verify_module(imported(2)).unwrap_or_else(|errors| panic!("{errors:?}"));
    check(imported(2), 54);
}

#[test]
fn debug_builds_compute_the_same() {
    verify_module(imported(0)).unwrap_or_else(|errors| panic!("{errors:?}"));
    check(imported(0), 40);
}

#[test]
fn they_still_do_after_the_passes_of_the_loop_ir() {
    check(&optimised(2), 54);
    check(&optimised(0), 40);
}

#[test]
fn loops_are_counted() {
    let module = optimised(2);
    for program in programs() {
        let Some(expected) = program.open_loops else {
            continue;
        };
        let function = module
            .function_named(program.name)
            .expect("it was imported");
        let function = &module.functions[function];
        let open = all_ops(function)
            .into_iter()
            .filter(|&op| function.ops[op].opcode == Opcode::Loop)
            .count();
        let text = || ferrozyme_ir::print_module(&module);
        assert_eq!(open, expected, "@{}\n{}", program.name, text());
    }
}

#[test]
fn operations_know_where_they_stand() {
    let module = imported(2);
    let function = &module.functions[module.function_named("windows").expect("it was imported")];
    let places: Vec<String> = all_ops(function)
        .into_iter()
        .filter_map(|op| function.ops[op].location)
        .map(|location| module.describe_location(location))
        .collect();
    assert!(
        places.iter().any(|place| place.contains("programs.rs:")),
        "{places:?}"
    );
}
