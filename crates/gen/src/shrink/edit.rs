//! Edits that may make a program smaller. They ignore the program's meaning: the caller tries them.

use super::visit;
use ferrozyme_ir::{
    Cursor, Effect, Function, FunctionId, MemoryEffect, Module, Op, OpData, OpView, Opcode,
    ParamFacts, Region, Value,
};
use std::collections::HashMap;

/// The replacement for the results of a removed operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stand {
    /// Zeros.
    Zero,
    /// Ones.
    One,
    /// The operand at a position, or the first of the right type behind it.
    Operand(usize),
}

/// Removes an operation from its region. False if its results cannot be replaced so.
pub(super) fn remove(function: &mut Function, region: Region, op: Op, stand: &Stand) -> bool {
    let OpData {
        opcode,
        operands,
        results,
        ..
    } = function.ops[op].clone();
    if matches!(
        opcode,
        Opcode::Yield | Opcode::Again | Opcode::Return | Opcode::Trap
    ) {
        return false;
    }
    if results.is_empty() && *stand != Stand::Zero {
        return false;
    }
    let mut replacement = HashMap::new();
    for result in results {
        let ty = function.ty(result);
        let value = match stand {
            Stand::Zero => function.zero(ty),
            Stand::One if ty.is_float() => function.float(ty, 1.0),
            Stand::One if ty.is_int() => function.int(ty, 1),
            Stand::One => return false,
            Stand::Operand(position) => {
                let fitting = operands.iter().skip(*position);
                match fitting.copied().find(|&operand| function.ty(operand) == ty) {
                    Some(value) => value,
                    None => return false,
                }
            }
        };
        replacement.insert(result, value);
    }
    function.replace_operands(&replacement.into_iter().collect());
    Cursor::before(function, region, op).remove(function);
    true
}

/// Puts the contents of one region of an operation in its place: a branch taken always, a loop run once.
pub(super) fn unwrap(function: &mut Function, region: Region, op: Op, which: usize) -> bool {
    let data = function.ops[op].clone();
    let inner = data.regions[which];
    let last = function.terminator(inner);
    let end = function.ops[last].clone();
    let (OpView::Yield { values } | OpView::Again { values, .. }) = end.view() else {
        return false;
    };
    let initial = match data.view() {
        // The counter becomes its start value.
        OpView::For { from, initial, .. } => std::iter::once(from)
            .chain(initial.iter().copied())
            .collect(),
        OpView::Loop { initial, .. } => initial.to_vec(),
        _ => Vec::new(),
    };
    let mut replacement: HashMap<Value, Value> = HashMap::new();
    for (&argument, value) in function.regions[inner].args.iter().zip(initial) {
        replacement.insert(argument, value);
    }
    for (&result, &value) in data.results.iter().zip(values) {
        replacement.insert(result, value);
    }
    let mut contents = function.take_ops(inner);
    contents.pop();
    Cursor::before(function, region, op).replace(function, contents);
    function.replace_operands(&replacement.into_iter().collect());
    true
}

pub(super) fn simplify_operand(
    function: &mut Function,
    op: Op,
    position: usize,
    choice: usize,
) -> bool {
    let Some(&operand) = function.ops[op].operands.get(position) else {
        return false;
    };
    let ty = function.ty(operand);
    if ty.is_ptr() || ty.is_vector() {
        return false;
    }
    let new = if let Some(number) = function.int_of(operand) {
        match choice {
            0 if number != 0 => function.int(ty, 0),
            1 if number > 1 => function.int(ty, 1),
            2 if number > 2 => function.int(ty, number - 1),
            _ => return false,
        }
    } else if let Some(number) = function.float_of(operand) {
        match choice {
            0 if number != 1.0 && number != 0.0 => function.float(ty, 1.0),
            _ => return false,
        }
    } else if function.is_constant(operand) {
        return false;
    } else if ty.is_float() {
        match choice {
            0 => function.float(ty, 1.0),
            1 => function.float(ty, 0.5),
            _ => return false,
        }
    } else {
        match choice {
            0 => function.int(ty, 0),
            1 => function.int(ty, 1),
            _ => return false,
        }
    };
    function.ops[op].operands[position] = new;
    true
}

/// Removes operations without effect whose results are unused, so that one step of the search handles a chain;
/// returns how many.
pub(super) fn remove_unused(module: &mut Module) -> usize {
    let mut removed = 0;
    for function in module.functions.values_mut() {
        if function.body.is_none() {
            continue;
        }
        let mut uses: HashMap<Value, usize> = HashMap::new();
        let mut places = Vec::new();
        visit(function, &mut |region, op| {
            places.push((region, op));
            for &operand in &function.ops[op].operands {
                *uses.entry(operand).or_default() += 1;
            }
        });
        for (region, op) in places.into_iter().rev() {
            let data = &function.ops[op];
            let idle = matches!(
                data.opcode.effect(),
                Effect::Pure | Effect::Partial | Effect::Read
            ) || data.opcode == Opcode::Stack;
            let unused = (data.results.iter()).all(|value| uses.get(value).is_none_or(|&n| n == 0));
            if idle && unused {
                for operand in &data.operands {
                    if let Some(count) = uses.get_mut(operand) {
                        *count -= 1;
                    }
                }
                Cursor::before(function, region, op).remove(function);
                removed += 1;
            }
        }
    }
    removed
}

/// Drops the facts of parameters and functions, but for layouts, which say what memory holds.
pub(super) fn forget(module: &mut Module, which: impl Fn(FunctionId) -> bool) {
    for (id, function) in module.functions.iter_mut() {
        if !which(id) {
            continue;
        }
        for param in &mut function.params {
            let layout = param.facts.layout.take();
            param.facts = ParamFacts {
                layout,
                ..ParamFacts::default()
            };
        }
        function.facts.memory = MemoryEffect::Any;
        function.facts.willreturn = false;
        function.facts.noinline = false;
    }
}

pub(super) fn promises_nothing(module: &Module) -> bool {
    module.functions.values().all(|function| {
        function.facts.memory == MemoryEffect::Any
            && function.params.iter().all(|param| {
                let facts = &param.facts;
                !(facts.noalias || facts.readonly || facts.writeonly || facts.nocapture)
            })
    })
}
