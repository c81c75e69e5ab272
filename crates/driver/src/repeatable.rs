//! Reverse sweeps that can run again with the same tape.

use ferrozyme_ir::{Function, FunctionId, Module, Opcode, Payload};
use std::collections::HashMap;

/// A copy of a reverse sweep, and of all that it calls, that releases nothing, so that it can run again with the same tape.
pub(crate) fn without_releases(module: &mut Module, reverse: FunctionId) -> FunctionId {
    let mut copies = HashMap::new();
    let mut work = vec![reverse];
    while let Some(id) = work.pop() {
        if copies.contains_key(&id) {
            continue;
        }
        let mut copy = module.functions[id].clone();
        copy.name = module.fresh_name(&format!("{}.repeatable", copy.name));
        for region in copy.regions.keys().collect::<Vec<_>>() {
            copy.retain_ops(region, |copy, op| copy.ops[op].opcode != Opcode::Free);
        }
        work.extend(callees(&copy).filter(|callee| module.functions[*callee].body.is_some()));
        copies.insert(id, module.functions.push(copy));
    }
    for copy in copies.values() {
        for op in module.functions[*copy].ops.values_mut() {
            if let Payload::Callee(callee) = &mut op.payload
                && let Some(other) = copies.get(callee)
            {
                *callee = *other;
            }
        }
    }
    copies[&reverse]
}

fn callees(function: &Function) -> impl Iterator<Item = FunctionId> {
    function.ops.values().filter_map(|op| match op.payload {
        Payload::Callee(callee) => Some(callee),
        _ => None,
    })
}
