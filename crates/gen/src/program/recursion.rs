//! Functions that call themselves or each other, to a depth that an argument gives.

use super::helper::{Helper, Outcome, Parameter, array_params, define, start};
use super::scope::{Float, SMALL};
use super::writer::{Shared, Writer};
use crate::feature::Feature;
use ferrozyme_ir::{Function, FunctionId, IntPredicate, Opcode, Type, Value};

/// A function that calls itself, or two that call each other, to a depth that an argument gives.
pub(crate) fn write_recursive(shared: &mut Shared<'_>, number: usize) {
    let mut params = Vec::new();
    if shared.profile.memory > 0 && shared.random.percent(70) {
        params = array_params(shared, true);
    }
    let depth = shared.random.between(1, 3);
    params.push(Parameter::Float);
    params.push(Parameter::Int { max: depth });
    let results = vec![Outcome::Float];
    let mutual = shared.random.percent(30);
    let name = if mutual { "even" } else { "recurse" };
    let first = define(shared, &format!("{name}{number}"), &params, vec![Type::F64]);
    let first_id = shared.module.functions.push(first.clone());
    shared.features.note(if mutual {
        Feature::MutualRecursion
    } else {
        Feature::Recursion
    });
    let mut cost = 0;
    if mutual {
        let second = define(shared, &format!("odd{number}"), &params, vec![Type::F64]);
        let second_id = shared.module.functions.push(second.clone());
        let (function, own) = recursive_body(shared, second, &params, first_id, depth);
        shared.module.functions[second_id] = function;
        cost += own;
        let (function, own) = recursive_body(shared, first, &params, second_id, depth);
        shared.module.functions[first_id] = function;
        cost += own;
    } else {
        let (function, own) = recursive_body(shared, first, &params, first_id, depth);
        shared.module.functions[first_id] = function;
        cost += own;
    }
    let helper = Helper::new(first_id, params, results, cost);
    shared.helpers.push(helper);
}

/// Statements, a call of `callee` with a smaller depth where the depth is not zero, and statements after it.
fn recursive_body(
    shared: &mut Shared<'_>,
    function: Function,
    params: &[Parameter],
    callee: FunctionId,
    depth: i64,
) -> (Function, u64) {
    let mut writer = start(shared, function, params);
    // Each level may call twice.
    let calls = writer.random().pick(&[1i64, 1, 2]);
    writer.weight = (1..=depth)
        .map(|level| calls.pow(level as u32) as u64)
        .sum::<u64>()
        + 1;
    writer.limit = 8;
    writer.block(4);
    let arguments = writer.function.arguments().to_vec();
    let level = *arguments.last().expect("the depth is the last parameter");
    let zero = writer.int(0);
    let deeper = writer.b().icmp(IntPredicate::Sgt, level, zero);
    let (op, then_region, else_region) = writer.b().if_else(deeper, &[Type::F64]);

    let (outer, mark) = writer.enter(then_region);
    let one = writer.int(1);
    let below = writer.b().binary(Opcode::Sub, level, one);
    let in_loop = calls == 2 && writer.random().percent(50);
    let result = if in_loop {
        let two = writer.int(2);
        let start = writer.small(1);
        let (op, region) = writer.b().for_loop(zero, two, one, &[start]);
        let (around, inner) = writer.enter(region);
        let sum = writer.function.regions[region].args[1];
        let value = writer.recursive_call(callee, &arguments, below);
        let sum = writer.b().binary(Opcode::Fadd, sum, value);
        writer.release(inner);
        writer.b().yields(&[sum]);
        writer.leave(around);
        writer.function.result(op)
    } else {
        let mut sum = writer.small(1);
        for _ in 0..calls {
            let value = writer.recursive_call(callee, &arguments, below);
            let product = writer.b().binary(Opcode::Fmul, sum, value);
            sum = writer.squash(Float {
                value: product,
                bound: SMALL * SMALL,
            });
        }
        sum
    };
    let result = writer.squash(Float {
        value: result,
        bound: 3.0 * SMALL,
    });
    writer.release(mark);
    writer.b().yields(&[result]);
    writer.leave(outer);

    let (outer, mark) = writer.enter(else_region);
    let base = writer.small(2);
    writer.release(mark);
    writer.b().yields(&[base]);
    writer.leave(outer);

    let result = writer.function.result(op);
    writer.add_float(result, SMALL);
    writer.limit = writer.function.ops.len() + 4;
    if writer.random().percent(50) {
        writer.block(4);
    }
    let own = writer.small(1);
    let sum = writer.b().binary(Opcode::Fadd, result, own);
    let result = writer.squash(Float {
        value: sum,
        bound: 2.0 * SMALL,
    });
    writer.release_all();
    writer.b().ret(&[result]);
    (writer.function, writer.cost)
}

impl Writer<'_, '_> {
    /// The call of a recursion: the same arrays, another float, a smaller depth.
    fn recursive_call(&mut self, callee: FunctionId, arguments: &[Value], below: Value) -> Value {
        let mut passed = arguments.to_vec();
        let last = passed.len() - 1;
        passed[last] = below;
        passed[last - 1] = self.small(2);
        let op = self.b().call(callee, &passed, &[Type::F64]);
        self.function.result(op)
    }
}
