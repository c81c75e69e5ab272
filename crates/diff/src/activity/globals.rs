//! Which globals may be active, and which calls access them.

use crate::search::Search;
use ferrozyme_ir::{
    Constant, Function, FunctionId, GlobalId, MemoryEffect, Module, Op, OpData, Opcode, Payload,
    Symbol, Value, returning_ops,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Whether values with derivatives may be kept in a global, or behind pointers there.
pub(super) fn may_carry_derivatives(module: &Module, global: GlobalId) -> bool {
    let global = &module.globals[global];
    let may_hold_floats = global
        .layout
        .as_ref()
        .is_none_or(|layout| layout.fields.iter().any(|field| !field.scalar.is_int()));
    !global.constant && !global.inactive && may_hold_floats
}

/// The calls of a function whose callees may read or write floats in globals that are wanted, themselves or by what they call.
///
/// Code behind pointers may do so too, if there are such globals at all.
pub(super) fn find_calls_on_globals(
    module: &Module,
    function: &Function,
    wanted: &dyn Fn(GlobalId) -> bool,
) -> FxHashSet<Op> {
    let leads_there = leading_to(module, wanted);
    if leads_there.is_empty() {
        return FxHashSet::default();
    }
    let names_global = |code: &Function, operands: &[Value]| {
        operands.iter().any(|&operand| {
            matches!(code.constant_of(operand), Some(Constant::Global(global))
                if leads_there.contains(global))
        })
    };
    let ops = returning_ops(function);
    let calls = |search: &mut Search, wanted: &dyn Fn(FunctionId, &OpData) -> bool| {
        let mut found = FxHashSet::default();
        for &op in &ops {
            if let (Opcode::Call, Payload::Callee(callee)) =
                (function.ops[op].opcode, &function.ops[op].payload)
                && !module.functions[*callee].facts.inactive
                && module.functions[*callee].facts.memory != MemoryEffect::None
                && search.reaches(module, *callee, wanted)
            {
                found.insert(op);
            }
        }
        found
    };
    let mut found = calls(&mut Search::default(), &|id, data| {
        names_global(&module.functions[id], &data.operands)
    });
    found.extend(calls(&mut Search::default(), &|_, data| {
        data.opcode == Opcode::CallIndirect
    }));
    let indirect = |op: &Op| function.ops[*op].opcode == Opcode::CallIndirect;
    found.extend(ops.into_iter().filter(indirect));
    found
}

/// The globals that are wanted, and those that hold addresses of such.
pub(super) fn leading_to(
    module: &Module,
    wanted: &dyn Fn(GlobalId) -> bool,
) -> FxHashSet<GlobalId> {
    let mut found: FxHashSet<GlobalId> = module.globals.keys().filter(|&id| wanted(id)).collect();
    let mut pending: Vec<GlobalId> = found.iter().copied().collect();
    let mut named_by: FxHashMap<GlobalId, Vec<GlobalId>> = FxHashMap::default();
    for (id, global) in module.globals.iter() {
        for (_, symbol) in &global.relocations {
            if let Symbol::Global(other) = symbol {
                named_by.entry(*other).or_default().push(id);
            }
        }
    }
    while let Some(global) = pending.pop() {
        for &id in named_by.get(&global).into_iter().flatten() {
            if found.insert(id) {
                pending.push(id);
            }
        }
    }
    found
}
