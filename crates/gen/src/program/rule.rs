//! Functions with derivative rules of their own.
//!
//! The rules are right, but do no more than they must: where the mask says that an argument needs no derivative, they give
//! a number that would be noticed.

use super::helper::{Helper, Outcome, Parameter, define};
use super::memory::eight;
use super::scope::POINTEE;
use super::writer::Shared;
use crate::feature::Feature;
use ferrozyme_ir::{Builder, Function, IntPredicate, MemoryEffect, Opcode, Rule, Type, Value};

/// What a rule gives for an argument that has no derivative.
const NOTICED: f64 = 1234.5;

/// Writes a function with a rule and lists it among those that may be called.
pub(crate) fn write_function_with_rule(shared: &mut Shared<'_>, number: usize) {
    shared.features.note(Feature::CustomRule);
    if shared.profile.memory > 0 && shared.random.percent(40) {
        write_weighted_sum(shared, number);
    } else {
        write_product(shared, number);
    }
}

/// `r = a·sin(b)`, with `dr = da·sin(b) + db·a·cos(b)`.
fn write_product(shared: &mut Shared<'_>, number: usize) {
    let params = vec![Parameter::Float, Parameter::Float];
    let name = format!("rule{number}");
    let mut primal = define(shared, &name, &params, vec![Type::F64]);
    let (a, b) = (primal.arguments()[0], primal.arguments()[1]);
    let mut builder = Builder::at_body(&mut primal);
    let sine = builder.unary(Opcode::Sin, b);
    let result = builder.binary(Opcode::Fmul, a, sine);
    builder.ret(&[result]);

    let forward = function(
        &format!("{name}_forward"),
        &[Type::F64, Type::F64, Type::F64, Type::F64, Type::I64],
        &[Type::F64, Type::F64],
        |builder, arguments| {
            let &[a, da, b, db, mask] = arguments else {
                return;
            };
            let sine = builder.unary(Opcode::Sin, b);
            let result = builder.binary(Opcode::Fmul, a, sine);
            let zero = builder.float(Type::F64, 0.0);
            let da = if_active(builder, mask, 0, da, zero);
            let db = if_active(builder, mask, 1, db, zero);
            let cosine = builder.unary(Opcode::Cos, b);
            let slope = builder.binary(Opcode::Fmul, a, cosine);
            let first = builder.binary(Opcode::Fmul, da, sine);
            let tangent = builder.fma(db, slope, first);
            builder.ret(&[result, tangent]);
        },
    );
    let kept = shared.random.percent(50);
    let augment = kept.then(|| {
        function(
            &format!("{name}_augment"),
            &[Type::F64, Type::F64, Type::I64],
            &[Type::F64, Type::PTR],
            |builder, arguments| {
                let &[a, b, _] = arguments else { return };
                let sine = builder.unary(Opcode::Sin, b);
                let result = builder.binary(Opcode::Fmul, a, sine);
                let size = builder.i64(8);
                let kept = builder.alloc(size, eight(), false);
                builder.store(sine, kept, eight());
                builder.ret(&[result, kept]);
            },
        )
    });
    let mut types = vec![Type::F64, Type::F64, Type::F64];
    types.extend(kept.then_some(Type::PTR));
    types.push(Type::I64);
    let reverse = function(
        &format!("{name}_reverse"),
        &types,
        &[Type::F64, Type::F64],
        |builder, arguments| {
            let (a, b, seed) = (arguments[0], arguments[1], arguments[2]);
            let mask = arguments[arguments.len() - 1];
            let sine = if kept {
                let sine = builder.load(Type::F64, arguments[3], eight());
                builder.free(arguments[3]);
                sine
            } else {
                builder.unary(Opcode::Sin, b)
            };
            let of_a = builder.binary(Opcode::Fmul, seed, sine);
            let cosine = builder.unary(Opcode::Cos, b);
            let slope = builder.binary(Opcode::Fmul, a, cosine);
            let of_b = builder.binary(Opcode::Fmul, seed, slope);
            let noticed = builder.float(Type::F64, NOTICED);
            let of_a = if_active(builder, mask, 0, of_a, noticed);
            let of_b = if_active(builder, mask, 1, of_b, noticed);
            builder.ret(&[of_a, of_b]);
        },
    );
    add(shared, primal, params, forward, augment, reverse);
}

/// `r = sin(a·(p[0] + … + p[3]))`: a rule on memory, which keeps the sum, because `p` may change before the reverse sweep.
fn write_weighted_sum(shared: &mut Shared<'_>, number: usize) {
    let params = vec![
        Parameter::Array {
            length: POINTEE,
            writable: false,
            noalias: false,
        },
        Parameter::Float,
    ];
    let name = format!("rule{number}");
    let mut primal = define(shared, &name, &params, vec![Type::F64]);
    // Several tangents at once are possible only where the rule is known to leave the program's memory alone.
    primal.facts.memory = MemoryEffect::Read;
    let (p, a) = (primal.arguments()[0], primal.arguments()[1]);
    let mut builder = Builder::at_body(&mut primal);
    let sum = sum_of(&mut builder, p);
    let product = builder.binary(Opcode::Fmul, sum, a);
    let result = builder.unary(Opcode::Sin, product);
    builder.ret(&[result]);

    let forward = function(
        &format!("{name}_forward"),
        &[Type::PTR, Type::PTR, Type::F64, Type::F64, Type::I64],
        &[Type::F64, Type::F64],
        |builder, arguments| {
            let &[p, dp, a, da, mask] = arguments else {
                return;
            };
            let sum = sum_of(builder, p);
            let product = builder.binary(Opcode::Fmul, sum, a);
            let result = builder.unary(Opcode::Sin, product);
            let cosine = builder.unary(Opcode::Cos, product);
            let zero = builder.float(Type::F64, 0.0);
            let da = if_active(builder, mask, 1, da, zero);
            // The shadow of memory without derivative need not exist.
            let active = is_active(builder, mask, 0);
            let (op, then_region, else_region) = builder.if_else(active, &[Type::F64]);
            builder.inside(then_region, |builder| {
                let change = sum_of(builder, dp);
                builder.yields(&[change]);
            });
            builder.inside(else_region, |builder| {
                builder.yields(&[zero]);
            });
            let change = builder.function.result(op);
            let first = builder.binary(Opcode::Fmul, da, sum);
            let inner = builder.fma(a, change, first);
            let tangent = builder.binary(Opcode::Fmul, cosine, inner);
            builder.ret(&[result, tangent]);
        },
    );
    let augment = function(
        &format!("{name}_augment"),
        &[Type::PTR, Type::PTR, Type::F64, Type::I64],
        &[Type::F64, Type::PTR],
        |builder, arguments| {
            let &[p, _, a, _] = arguments else { return };
            let sum = sum_of(builder, p);
            let product = builder.binary(Opcode::Fmul, sum, a);
            let result = builder.unary(Opcode::Sin, product);
            let size = builder.i64(8);
            let kept = builder.alloc(size, eight(), false);
            builder.store(sum, kept, eight());
            builder.ret(&[result, kept]);
        },
    );
    let reverse = function(
        &format!("{name}_reverse"),
        &[
            Type::PTR,
            Type::PTR,
            Type::F64,
            Type::F64,
            Type::PTR,
            Type::I64,
        ],
        &[Type::F64],
        |builder, arguments| {
            let &[_, dp, a, seed, kept, mask] = arguments else {
                return;
            };
            let sum = builder.load(Type::F64, kept, eight());
            builder.free(kept);
            let product = builder.binary(Opcode::Fmul, sum, a);
            let cosine = builder.unary(Opcode::Cos, product);
            let inner = builder.binary(Opcode::Fmul, seed, cosine);
            let active = is_active(builder, mask, 0);
            let (_, then_region, else_region) = builder.if_else(active, &[]);
            builder.inside(then_region, |builder| {
                let share = builder.binary(Opcode::Fmul, inner, a);
                for position in 0..POINTEE {
                    let address = builder.offset_bytes(dp, 8 * position);
                    let old = builder.load(Type::F64, address, eight());
                    let new = builder.binary(Opcode::Fadd, old, share);
                    builder.store(new, address, eight());
                }
                builder.yields(&[]);
            });
            builder.inside(else_region, |builder| {
                builder.yields(&[]);
            });
            let of_a = builder.binary(Opcode::Fmul, inner, sum);
            let noticed = builder.float(Type::F64, NOTICED);
            let of_a = if_active(builder, mask, 1, of_a, noticed);
            builder.ret(&[of_a]);
        },
    );
    add(shared, primal, params, forward, Some(augment), reverse);
}

/// Puts a function and its rule into the module.
fn add(
    shared: &mut Shared<'_>,
    primal: Function,
    params: Vec<Parameter>,
    forward: Function,
    augment: Option<Function>,
    reverse: Function,
) {
    let functions = &mut shared.module.functions;
    let id = functions.push(primal);
    let forward = functions.push(forward);
    let augment = augment.map(|augment| functions.push(augment));
    let reverse = functions.push(reverse);
    let rule = Rule {
        forward: Some(forward),
        augment,
        reverse: Some(reverse),
    };
    shared.module.rules.insert(id, rule);
    shared
        .helpers
        .push(Helper::new(id, params, vec![Outcome::Float], 20));
}

fn function(
    name: &str,
    params: &[Type],
    results: &[Type],
    build: impl FnOnce(&mut Builder<'_>, &[Value]),
) -> Function {
    let params = params.iter().map(|&ty| ty.into()).collect();
    let mut function = Function::define(name, params, results.to_vec());
    let arguments = function.arguments().to_vec();
    build(&mut Builder::at_body(&mut function), &arguments);
    function
}

/// The sum of an array's first elements.
fn sum_of(builder: &mut Builder<'_>, pointer: Value) -> Value {
    let mut sum = builder.float(Type::F64, 0.0);
    for position in 0..POINTEE {
        let address = builder.offset_bytes(pointer, 8 * position);
        let element = builder.load(Type::F64, address, eight());
        sum = builder.binary(Opcode::Fadd, sum, element);
    }
    sum
}

/// Whether the mask says that an argument has a derivative.
fn is_active(builder: &mut Builder<'_>, mask: Value, argument: u32) -> Value {
    let bit = builder.i64(1 << argument);
    let masked = builder.binary(Opcode::And, mask, bit);
    let zero = builder.i64(0);
    builder.icmp(IntPredicate::Ne, masked, zero)
}

fn if_active(
    builder: &mut Builder<'_>,
    mask: Value,
    argument: u32,
    value: Value,
    otherwise: Value,
) -> Value {
    let active = is_active(builder, mask, argument);
    builder.select(active, value, otherwise)
}
