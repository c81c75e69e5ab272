//! Functions of C's library that the Loop IR has no operations for, and that have derivatives: rules for them come along as Loop IR.
//!
//! `library.fz` says what their derivatives are. From that, rules are written for the types that a program calls a function with: complex numbers are two
//! floats, or one vector of two, and single precision is computed in double.
//!
//! ```text
//! declare @cexpf(<2 x f32>) -> (<2 x f32>)
//! ==>
//! func @__ferrozyme_forward_cexpf(%p0: <2 x f32>, %t0: <2 x f32>, %mask: i64) -> (<2 x f32>, <2 x f32>) { … }
//! func @__ferrozyme_reverse_cexpf(%p0: <2 x f32>, %s0: <2 x f32>, %mask: i64) -> (<2 x f32>) { … }
//! rule @cexpf forward @__ferrozyme_forward_cexpf reverse @__ferrozyme_reverse_cexpf
//! ```
//!
//! What a rule calls has a rule too, so that derivatives can be differentiated again.

use super::Importer;
use ferrozyme_ir::{self as ir, FunctionId, MemoryEffect, Payload, Rule, Type};
use std::fmt::Write as _;
use std::sync::LazyLock;

const TEXT: &str = include_str!("library.fz");

static LIBRARY: LazyLock<ir::Module> =
    LazyLock::new(|| ir::parse_module(TEXT).expect("the library's own text is well formed"));

impl Importer<'_, '_> {
    /// Gives a function without a body its rule, if it is one of the library's.
    pub(super) fn add_library_rule(&mut self, id: FunctionId) {
        let function = &self.module.functions[id];
        let name = function.name.clone();
        let params: Vec<Type> = function.params.iter().map(|param| param.ty).collect();
        let Some(known) = known_function(&name, &params, &function.results) else {
            return;
        };
        let text = rule_text(&name, &params, &function.results, &known);
        let made = ir::parse_module(&text).expect("rules are written well formed");
        let rule = Rule {
            forward: Some(self.bring(&made, &format!("__ferrozyme_forward_{name}"))),
            augment: None,
            reverse: Some(self.bring(&made, &format!("__ferrozyme_reverse_{name}"))),
        };
        self.module.rules.insert(id, rule);
        // That it may set errno matters to nobody who differentiates it.
        let facts = &mut self.module.functions[id].facts;
        facts.memory = MemoryEffect::None;
        facts.willreturn = true;
    }

    /// The function of this name, with all that it calls: that of the program if it has one, or else that of the library.
    fn bring(&mut self, library: &ir::Module, name: &str) -> FunctionId {
        if let Some(function) = self.llvm.function(name) {
            return self.function(function);
        }
        if let Some(&known) = self.brought.get(name) {
            return known;
        }
        let from = library
            .function_named(name)
            .expect("the library has what it calls");
        let function = library.functions[from].clone();
        let declared = function.body.is_none();
        let id = self.module.functions.push(function);
        self.brought.insert(name.to_owned(), id);
        if declared {
            self.add_library_rule(id);
            return id;
        }
        let ops: Vec<ir::Op> = self.module.functions[id].ops.keys().collect();
        for op in ops {
            if let Payload::Callee(callee) = self.module.functions[id].ops[op].payload {
                let callee = self.bring(library, &library.functions[callee].name);
                self.module.functions[id].ops[op].payload = Payload::Callee(callee);
            }
        }
        id
    }
}

/// A function of the library, as it is called.
struct Known {
    /// The function of double precision that says what its derivative is.
    base: FunctionId,
    /// Whether its numbers are complex.
    complex: bool,
}

fn known_function(name: &str, params: &[Type], results: &[Type]) -> Option<Known> {
    let count = |types: &[Type], scalar: Type| -> Option<usize> {
        let fits = types.iter().all(|ty| ty.scalar() == scalar.scalar());
        fits.then(|| types.iter().map(|ty| usize::from(ty.lanes())).sum())
    };
    let single = match name {
        "__mulsc3" => Some("__muldc3"),
        "__divsc3" => Some("__divdc3"),
        _ => name.strip_suffix('f'),
    };
    let candidates = [(Some(name), Type::F64), (single, Type::F32)];
    candidates.into_iter().find_map(|(base, scalar)| {
        let base = LIBRARY.function_named(base?)?;
        let function = &LIBRARY.functions[base];
        let fits = function.body.is_none()
            && count(params, scalar) == Some(function.params.len())
            && count(results, scalar) == Some(function.results.len());
        fits.then_some(Known {
            base,
            complex: function.results.len() == 2,
        })
    })
}

/// The library, and the rule of a function in it.
fn rule_text(name: &str, params: &[Type], results: &[Type], known: &Known) -> String {
    let base = &LIBRARY.functions[known.base];
    let mut text = TEXT.to_owned();
    if base.name != name {
        let _ = writeln!(
            text,
            "declare @{name}({}) -> ({}) memory(none) willreturn",
            list(params, |_, ty| ty.to_string()),
            list(results, |_, ty| ty.to_string()),
        );
    }
    for forward in [true, false] {
        let mut body = Body::default();
        let arguments = body.split("p", params);
        let call = list(params, |index, _| format!("%p{index}"));
        body.line(&format!(
            "{} = call @{name}({call})",
            list(results, |index, _| format!("%r{index}"))
        ));
        let values = body.split("r", results);
        let slopes: Vec<String> = (0..arguments.len()).map(|k| format!("%c{k}")).collect();
        let given = [&arguments[..], &values[..]].concat().join(", ");
        body.line(&format!(
            "{} = call @__ferrozyme_slopes_{}({given})",
            slopes.join(", "),
            base.name
        ));
        let (derivatives, of) = if forward {
            let tangents = body.split("t", params);
            (body.forward(&slopes, &tangents, known.complex), results)
        } else {
            let seeds = body.split("s", results);
            (body.reverse(&slopes, &seeds, known.complex), params)
        };
        let derivatives = body.join(&derivatives, of);
        let (kind, takes, gives) = if forward {
            let takes = list(params, |index, ty| {
                format!("%p{index}: {ty}, %t{index}: {ty}")
            });
            let values = list(results, |index, _| format!("%r{index}"));
            body.line(&format!("return {values}, {}", derivatives.join(", ")));
            (
                "forward",
                takes,
                list(&[results, results].concat(), |_, ty| ty.to_string()),
            )
        } else {
            let takes = format!(
                "{}, {}",
                list(params, |index, ty| format!("%p{index}: {ty}")),
                list(results, |index, ty| format!("%s{index}: {ty}")),
            );
            body.line(&format!("return {}", derivatives.join(", ")));
            ("reverse", takes, list(params, |_, ty| ty.to_string()))
        };
        let _ = writeln!(
            text,
            "func @__ferrozyme_{kind}_{name}({takes}, %mask: i64) -> ({gives}) {{\n{}}}",
            body.text
        );
    }
    text
}

fn list(types: &[Type], mut item: impl FnMut(usize, Type) -> String) -> String {
    let items: Vec<String> = types
        .iter()
        .enumerate()
        .map(|(index, &ty)| item(index, ty))
        .collect();
    items.join(", ")
}

/// The body of a function as it is written.
#[derive(Default)]
struct Body {
    text: String,
    names: usize,
}

impl Body {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "  {line}");
    }

    /// A new value, computed so.
    fn value(&mut self, operation: &str) -> String {
        self.names += 1;
        let name = format!("%v{}", self.names);
        self.line(&format!("{name} = {operation}"));
        name
    }

    /// The numbers in values of these types, in double precision.
    fn split(&mut self, prefix: &str, types: &[Type]) -> Vec<String> {
        let mut numbers = Vec::new();
        for (index, ty) in types.iter().enumerate() {
            for lane in 0..ty.lanes() {
                let mut number = format!("%{prefix}{index}");
                if ty.is_vector() {
                    number = self.value(&format!("extract {ty} {number}, {lane}"));
                }
                if ty.scalar() == Type::F32.scalar() {
                    number = self.value(&format!("fpext f32 {number} to f64"));
                }
                numbers.push(number);
            }
        }
        numbers
    }

    /// The reverse of [`split`](Body::split).
    fn join(&mut self, numbers: &[String], types: &[Type]) -> Vec<String> {
        let mut numbers = numbers.iter();
        let mut values = Vec::new();
        for ty in types {
            let mut value = "undef".to_owned();
            for (lane, number) in (0..ty.lanes()).zip(&mut numbers) {
                let mut number = number.clone();
                if ty.scalar() == Type::F32.scalar() {
                    number = self.value(&format!("fptrunc f64 {number} to f32"));
                }
                value = match ty.is_vector() {
                    true => self.value(&format!("insert {ty} {value}, {number}, {lane}")),
                    false => number,
                };
            }
            values.push(value);
        }
        values
    }

    /// The tangents of the results: each slope times the tangent of its argument, summed.
    fn forward(&mut self, slopes: &[String], tangents: &[String], complex: bool) -> Vec<String> {
        let mut sum: Vec<String> = Vec::new();
        let width = if complex { 2 } else { 1 };
        for (slope, tangent) in slopes.chunks(width).zip(tangents.chunks(width)) {
            let product = self.multiply(slope, tangent, false);
            sum = match sum.is_empty() {
                true => product,
                false => sum
                    .iter()
                    .zip(&product)
                    .map(|(a, b)| self.value(&format!("fadd f64 {a}, {b}")))
                    .collect(),
            };
        }
        sum
    }

    /// The adjoints of the arguments: the adjoint of the result times each slope, conjugated.
    fn reverse(&mut self, slopes: &[String], seeds: &[String], complex: bool) -> Vec<String> {
        let width = if complex { 2 } else { 1 };
        slopes
            .chunks(width)
            .flat_map(|slope| self.multiply(slope, seeds, true))
            .collect()
    }

    /// `c·d`, or `c̄·d`.
    fn multiply(&mut self, c: &[String], d: &[String], conjugate: bool) -> Vec<String> {
        let mut product = |a: &str, b: &str| self.value(&format!("fmul f64 {a}, {b}"));
        let ([x, y], [u, v]) = (c, d) else {
            return vec![product(&c[0], &d[0])];
        };
        let (xu, yv, xv, yu) = (product(x, u), product(y, v), product(x, v), product(y, u));
        let (re, im) = if conjugate {
            ("fadd", "fsub")
        } else {
            ("fsub", "fadd")
        };
        vec![
            self.value(&format!("{re} f64 {xu}, {yv}")),
            self.value(&format!("{im} f64 {xv}, {yu}")),
        ]
    }
}
