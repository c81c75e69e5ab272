//! Functions of C's library that have rules as Loop IR: their derivatives, compiled, against differences of what the library computes.

#[allow(dead_code, reason = "other tests compare with the interpreter")]
mod native;

use ferrozyme_diff::{Activity, Request, differentiate_forward, differentiate_reverse};
use ferrozyme_import::{ImportOptions, import};
use ferrozyme_ir::interpret::Datum;
use ferrozyme_ir::{FunctionId, Module, verify_module};
use ferrozyme_llvm::Context;
use ferrozyme_llvm::compile::OptimisationLevel;
use native::Native;

/// Functions of one complex number.
const COMPLEX: &[&str] = &[
    "cexp", "clog", "csqrt", "csin", "ccos", "ctan", "csinh", "ccosh", "ctanh", "casin", "cacos",
    "catan", "casinh", "cacosh", "catanh", "cproj",
];
/// Functions of two complex numbers.
const COMPLEX_PAIRS: &[&str] = &["cpow", "__muldc3", "__divdc3"];

/// A module in which `@f` mixes the parts of what a function gives for two numbers into one.
fn imported(text: &str) -> Module {
    let context = Context::new().expect("rustc brings its LLVM");
    let module = context.parse_text("text", text).expect(text);
    let options = ImportOptions {
        is_opaque: &|_| false,
        is_inactive: &|_| false,
    };
    let imported = import(&context, module, &["f"], &options).expect(text);
    assert!(imported.opaque.is_empty(), "{:?}", imported.opaque);
    verify_module(&imported.module).unwrap_or_else(|errors| panic!("{errors:?}"));
    imported.module
}

const MIX: &str = r"
  %u = extractvalue { double, double } %w, 0
  %v = extractvalue { double, double } %w, 1
  %a = fmul double %u, 7.500000e-01
  %b = fmul double %v, 5.000000e-01
  %r = fsub double %a, %b
  ret double %r
}";

fn of_one(name: &str) -> String {
    format!(
        "declare {{ double, double }} @{name}(double, double)
define double @f(double %x, double %y) {{
  %w = call {{ double, double }} @{name}(double %x, double %y)
{MIX}"
    )
}

fn of_two(name: &str, swapped: bool) -> String {
    let (z, constant) = (
        "double %x, double %y",
        "double 1.500000e+00, double 5.000000e-01",
    );
    let arguments = if swapped {
        format!("{constant}, {z}")
    } else {
        format!("{z}, {constant}")
    };
    format!(
        "declare {{ double, double }} @{name}(double, double, double, double)
define double @f(double %x, double %y) {{
  %w = call {{ double, double }} @{name}({arguments})
{MIX}"
    )
}

fn of_singles(name: &str) -> String {
    format!(
        "declare <2 x float> @{name}(<2 x float>)
define double @f(double %x, double %y) {{
  %x.s = fptrunc double %x to float
  %y.s = fptrunc double %y to float
  %z0 = insertelement <2 x float> poison, float %x.s, i64 0
  %z = insertelement <2 x float> %z0, float %y.s, i64 1
  %w = call <2 x float> @{name}(<2 x float> %z)
  %u.s = extractelement <2 x float> %w, i64 0
  %v.s = extractelement <2 x float> %w, i64 1
  %u = fpext float %u.s to double
  %v = fpext float %v.s to double
  %a = fmul double %u, 7.500000e-01
  %b = fmul double %v, 5.000000e-01
  %r = fsub double %a, %b
  ret double %r
}}"
    )
}

fn call(native: &Native, function: FunctionId, arguments: &[f64]) -> Vec<f64> {
    let arguments: Vec<Datum> = arguments.iter().map(|&x| Datum::f64(x)).collect();
    let results = native.call(function, &arguments).expect("it was compiled");
    results
        .iter()
        .map(|datum| datum.to_string().parse().expect("a float"))
        .collect()
}

/// Gradient, tangent and Hessian against central differences at one point.
fn check(what: &str, text: &str, exact: f64) {
    let mut module = imported(text);
    let f = module.function_named("f").expect("the text defines it");
    let request = Request {
        primal: false,
        ..Request::usual(&module, f)
    };
    let reverse = differentiate_reverse(&mut module, &request).expect(what);
    let forward = differentiate_forward(&mut module, &request).expect(what);
    let mut over = Request {
        primal: false,
        ..Request::usual(&module, reverse)
    };
    over.args[2] = Activity::Const;
    let second = differentiate_forward(&mut module, &over).expect(what);
    verify_module(&module).unwrap_or_else(|errors| panic!("{what}: {errors:?}"));
    let functions = [f, reverse, forward, second];
    let native = Native::new(&module, &functions, OptimisationLevel::O2).expect(what);

    let (x, y, h) = (0.7, 0.45, 1e-5);
    let close = |a: f64, b: f64, kind: &str| {
        assert!(
            (a - b).abs() <= exact * (1.0 + b.abs()),
            "{what}: {kind} is {a} instead of {b}"
        );
    };
    let difference = |function, index: usize, at: usize| {
        let mut low = vec![x, y];
        let mut high = low.clone();
        low[index] -= h;
        high[index] += h;
        if function == reverse {
            low.push(1.0);
            high.push(1.0);
        }
        (call(&native, function, &high)[at] - call(&native, function, &low)[at]) / (2.0 * h)
    };
    let gradient = call(&native, reverse, &[x, y, 1.0]);
    for (index, &slope) in gradient.iter().enumerate() {
        // In single precision, differences of doubles say nothing.
        if exact < 1e-4 {
            close(slope, difference(f, index, 0), "the gradient");
        }
        let (dx, dy) = if index == 0 { (1.0, 0.0) } else { (0.0, 1.0) };
        let tangent = call(&native, forward, &[x, dx, y, dy]);
        close(tangent[0], slope, "the tangent");
        let hessian = call(&native, second, &[x, dx, y, dy, 1.0]);
        for (row, &second) in hessian.iter().enumerate() {
            close(second, difference(reverse, index, row), "the Hessian");
        }
    }
}

#[test]
fn complex_functions() {
    for name in COMPLEX {
        check(name, &of_one(name), 1e-8);
    }
    for name in COMPLEX_PAIRS {
        for swapped in [false, true] {
            check(name, &of_two(name, swapped), 1e-8);
        }
    }
}

#[test]
fn complex_functions_of_single_precision() {
    for name in ["cexpf", "csqrtf", "casinf"] {
        check(name, &of_singles(name), 1e-2);
    }
}

/// A call with other types is none of the library's.
#[test]
fn other_types() {
    let module = imported(
        "declare double @cexp(double)
define double @f(double %x) {
  %r = call double @cexp(double %x)
  ret double %r
}",
    );
    assert!(module.rules.is_empty());
}
