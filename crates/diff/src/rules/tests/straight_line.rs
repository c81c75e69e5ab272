//! Differentiation of functions without memory, calls and control, by the rules alone: enough to test them.

use super::super::*;
use ferrozyme_ir::Param;
use rustc_hash::FxHashMap;

/// A function of one operation on arguments of these types.
pub(super) fn function_of(
    opcode: Opcode,
    operands: &[Type],
    results: &[Type],
    payload: Payload,
) -> Function {
    let params = operands.iter().map(|&ty| Param::from(ty)).collect();
    let mut function = Function::define("f", params, results.to_vec());
    let arguments = function.arguments().to_vec();
    let mut b = Builder::at_body(&mut function);
    let op = b.op(opcode, &arguments, payload, results);
    let results = b.function.ops[op].results.clone();
    b.ret(&results);
    function
}

/// The function that takes each argument and then a tangent for each of those that have one, and gives each result and
/// then a tangent for each of those that have one.
pub(super) fn forward(primal: &Function) -> Function {
    let (mut derivative, mut values) = with_more(primal, &differentiable(primal));
    let extra = derivative.arguments()[primal.arguments().len()..].to_vec();
    let mut tangents: FxHashMap<Value, Value> = FxHashMap::default();
    tangents.extend(active_arguments(primal).into_iter().zip(extra));
    let mut b = Builder::at_body(&mut derivative);
    for &op in &primal.regions[primal.body()].ops {
        copy(&mut b, primal, op, &mut values, |b, values| {
            let primal_op = Primal::of(primal, op);
            let given: Vec<Option<Value>> = primal_op
                .operands
                .iter()
                .map(|v| tangents.get(v).copied())
                .collect();
            let found = jvp(
                b,
                &primal_op,
                &mut |b, value| lookup(b, primal, values, value),
                &given,
            );
            for (&result, tangent) in primal_op.results.iter().zip(found) {
                tangents.extend(tangent.map(|tangent| (result, tangent)));
            }
        });
    }
    let returned = &primal.ops[primal.terminator(primal.body())].operands;
    let mut results: Vec<Value> = returned
        .iter()
        .map(|&value| lookup(&mut b, primal, &values, value))
        .collect();
    for &value in returned {
        if primal.ty(value).is_float() {
            let zero = b.zero(primal.ty(value));
            results.push(tangents.get(&value).copied().unwrap_or(zero));
        }
    }
    b.ret(&results);
    set_results(&mut derivative, &results);
    derivative
}

/// The function that takes each argument and then an adjoint for each float result, and gives what flows back to each
/// float argument.
pub(super) fn reverse(primal: &Function) -> Function {
    let returned = primal.ops[primal.terminator(primal.body())]
        .operands
        .clone();
    let seeds: Vec<Value> = returned
        .iter()
        .copied()
        .filter(|&value| primal.ty(value).is_float())
        .collect();
    let types: Vec<Type> = seeds.iter().map(|&value| primal.ty(value)).collect();
    let (mut derivative, mut values) = with_more(primal, &types);
    let extra = derivative.arguments()[primal.arguments().len()..].to_vec();
    let mut b = Builder::at_body(&mut derivative);
    for &op in &primal.regions[primal.body()].ops {
        copy(&mut b, primal, op, &mut values, |_, _| {});
    }
    let mut adjoints: FxHashMap<Value, Value> = FxHashMap::default();
    let grow = |b: &mut Builder<'_>, adjoints: &mut FxHashMap<Value, Value>, value, by| {
        let sum = match adjoints.get(&value) {
            Some(&old) => b.binary(Opcode::Fadd, old, by),
            None => by,
        };
        adjoints.insert(value, sum);
    };
    for (value, seed) in seeds.into_iter().zip(extra) {
        grow(&mut b, &mut adjoints, value, seed);
    }
    for &op in primal.regions[primal.body()].ops.iter().rev() {
        let primal_op = Primal::of(primal, op);
        if primal_op.opcode == Opcode::Return {
            continue;
        }
        let given: Vec<Option<Value>> = primal_op
            .results
            .iter()
            .map(|v| adjoints.get(v).copied())
            .collect();
        let mut active = 0;
        for (index, &operand) in primal_op.operands.iter().enumerate() {
            let carries = derivative_type(primal.ty(operand)).is_some();
            active |= u32::from(carries && !primal.is_constant(operand)) << index;
        }
        let needs = primal_op.needs(active);
        let found = vjp(
            &mut b,
            &primal_op,
            &mut |b, value| {
                let position = |list: &[Value]| list.iter().position(|&other| other == value);
                let needed = |bits: u32, list: &[Value]| {
                    (0..list.len()).any(|index| bits >> index & 1 == 1 && list[index] == value)
                };
                assert!(
                    primal.is_constant(value)
                        || needed(needs.operands, &primal_op.operands)
                        || needed(needs.results, &primal_op.results),
                    "{} reads operand {:?} or result {:?} without need",
                    primal_op.opcode,
                    position(&primal_op.operands),
                    position(&primal_op.results),
                );
                lookup(b, primal, &values, value)
            },
            &given,
            active,
        );
        for (&operand, contribution) in primal_op.operands.iter().zip(found) {
            if let Some(contribution) = contribution {
                grow(&mut b, &mut adjoints, operand, contribution);
            }
        }
    }
    let mut results = Vec::new();
    for argument in active_arguments(primal) {
        let zero = b.zero(primal.ty(argument));
        results.push(adjoints.get(&argument).copied().unwrap_or(zero));
    }
    b.ret(&results);
    set_results(&mut derivative, &results);
    derivative
}

/// The arguments that are floats.
fn active_arguments(function: &Function) -> Vec<Value> {
    let arguments = function.arguments().iter().copied();
    arguments
        .filter(|&argument| function.ty(argument).is_float())
        .collect()
}

fn differentiable(function: &Function) -> Vec<Type> {
    active_arguments(function)
        .iter()
        .map(|&value| function.ty(value))
        .collect()
}

/// An empty function with more parameters, and where its own arguments are found there.
fn with_more(primal: &Function, types: &[Type]) -> (Function, FxHashMap<Value, Value>) {
    let mut params = primal.params.clone();
    params.extend(types.iter().map(|&ty| Param::from(ty)));
    let derivative = Function::define("df", params, Vec::new());
    let values = primal
        .arguments()
        .iter()
        .copied()
        .zip(derivative.arguments().iter().copied());
    let values = values.collect();
    (derivative, values)
}

fn set_results(function: &mut Function, results: &[Value]) {
    function.results = results.iter().map(|&value| function.ty(value)).collect();
}

fn lookup(
    b: &mut Builder<'_>,
    primal: &Function,
    values: &FxHashMap<Value, Value>,
    value: Value,
) -> Value {
    match primal.constant_of(value) {
        Some(constant) => b.function.constant(primal.ty(value), constant.clone()),
        None => values[&value],
    }
}

/// Copies an operation that is not the terminator, then calls `after`.
fn copy(
    b: &mut Builder<'_>,
    primal: &Function,
    op: Op,
    values: &mut FxHashMap<Value, Value>,
    after: impl FnOnce(&mut Builder<'_>, &FxHashMap<Value, Value>),
) {
    let data = &primal.ops[op];
    if data.opcode == Opcode::Return {
        return;
    }
    let operands: Vec<Value> = data
        .operands
        .iter()
        .map(|&value| lookup(b, primal, values, value))
        .collect();
    let types: Vec<Type> = data.results.iter().map(|&value| primal.ty(value)).collect();
    let copied = b.op(data.opcode, &operands, data.payload.clone(), &types);
    let results = b.function.ops[copied].results.clone();
    values.extend(data.results.iter().copied().zip(results));
    after(b, values);
}
