//! Parameters that are integers by all their uses: arithmetic, comparisons, indices, trip counts, switches.
//!
//! The argument of such a parameter is an integer as well, even if it was loaded from a union word; a check before the call makes sure that it is not a float. In particular the parameter of a recursive
//! function that loads the argument of its recursive call need not be everything that the loaded word may be:
//!
//! ```text
//! func @eval(%nodes: ptr, %k: i64) -> (f64) {        ; a node is a float, or the numbers of other nodes
//!   %node = offset %nodes, %k * 24
//!   …
//!   %left = load i64 %operand align 8                ; a float, a number
//!   %a = call @eval(%nodes, %left)
//! ```

use super::super::Objects;
use super::Body;
use ferrozyme_ir::{
    Constant, Form, Function, FunctionId, Op, OpView, Opcode, Value, returning_ops,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// For each function of a group and each of its parameters: whether it is such a number.
pub(super) fn counted_params(
    bodies: &[Body<'_>],
    positions: &FxHashMap<FunctionId, usize>,
    finished: &FxHashMap<FunctionId, Arc<Objects>>,
) -> Vec<Vec<bool>> {
    // All are, until something else is found to be done with them.
    let mut counted: Vec<Vec<bool>> = bodies
        .iter()
        .map(|body| {
            let params = body.function.params.iter();
            let has_body = body.function.body.is_some();
            params
                .map(|param| has_body && param.ty.is_int() && !param.ty.is_vector())
                .collect()
        })
        .collect();
    loop {
        let mut changed = false;
        for (b, body) in bodies.iter().enumerate() {
            if !counted[b].contains(&true) {
                continue;
            }
            let is_counted = |callee: FunctionId, index: usize| {
                let flags = match (positions.get(&callee), finished.get(&callee)) {
                    (Some(&inner), _) => Some(&counted[inner]),
                    (None, Some(objects)) => Some(&objects.counted),
                    (None, None) => None,
                };
                flags.and_then(|flags| flags.get(index)) == Some(&true)
            };
            let moved = moved_values(body, &is_counted);
            for (index, param) in body.function.arguments().iter().enumerate() {
                if counted[b][index] && moved.contains(param) {
                    counted[b][index] = false;
                    changed = true;
                }
            }
        }
        if !changed {
            return counted;
        }
    }
}

/// The values with which something else is done: they are put somewhere, or something is made of them that is.
fn moved_values(
    body: &Body<'_>,
    is_counted: &dyn Fn(FunctionId, usize) -> bool,
) -> FxHashSet<Value> {
    let function = body.function;
    let mut moved = FxHashSet::default();
    // Operands of what gives a number, by that number.
    let mut made_of: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
    let mut work = Vec::new();
    for op in returning_ops(function) {
        let data = &function.ops[op];
        let passes_on = is_calculation(body, op);
        for (index, &operand) in data.operands.iter().enumerate() {
            if !function.ty(operand).is_int() || function.is_constant(operand) {
                continue;
            }
            if passes_on {
                made_of.entry(data.results[0]).or_default().push(operand);
            } else if data.opcode == Opcode::For && index < 3 {
                let counter = function.regions[data.regions[0]].args[0];
                made_of.entry(counter).or_default().push(operand);
            } else if !ends_as_number(function, op, index, is_counted) {
                work.push(operand);
            }
        }
    }
    while let Some(value) = work.pop() {
        if moved.insert(value) {
            work.extend(made_of.get(&value).into_iter().flatten());
        }
    }
    moved
}

/// Whether an operation makes a number of numbers.
fn is_calculation(body: &Body<'_>, op: Op) -> bool {
    let data = &body.function.ops[op];
    match data.opcode.form() {
        Form::IntUnary | Form::IntBinary => !body.packing.moves(op),
        Form::Cast => {
            let widths = [Opcode::TruncInt, Opcode::Zext, Opcode::Sext];
            widths.contains(&data.opcode) && !body.packing.moves(op)
        }
        _ => false,
    }
}

/// Whether an operand is looked at as a number, and nothing of it goes on from there.
fn ends_as_number(
    function: &Function,
    op: Op,
    index: usize,
    is_counted: &dyn Fn(FunctionId, usize) -> bool,
) -> bool {
    let data = &function.ops[op];
    match data.view() {
        OpView::Cast(Opcode::Sitofp | Opcode::Uitofp, _) | OpView::Icmp(..) => true,
        OpView::Call { callee, .. } => is_counted(callee, index),
        // What is so far from a constant address may be any address.
        OpView::Offset { base, .. }
            if matches!(function.constant_of(base), Some(Constant::Bits(_))) =>
        {
            false
        }
        OpView::Again { .. } => false,
        _ => {
            let name = data.opcode.operand_names().get(index).copied();
            let numbers = ["condition", "index", "lane", "size", "selector"];
            name.is_some_and(|name| numbers.contains(&name))
        }
    }
}
