//! Which memory of a callee's arguments may be overwritten between its forward sweep and its reverse sweep.
//!
//! A callee may reload a value in its reverse sweep only if neither the rest of its caller nor the
//! caller's own caller overwrites it in between.

use crate::plan::uses_variable_globals;
use ferrozyme_ir::{Constant, Function, Module, Op, Opcode, Type, Value, ValueDef, returning_ops};
use ferrozyme_opt::alias::{Aliases, Footprint};
use rustc_hash::FxHashMap;

/// How many pairs of calls and writes are compared before everything counts as overwritten.
const MAX_COMPARISONS: usize = 200_000;

/// For each call, and for each of its arguments, whether memory that it leads to may be overwritten after the call.
///
/// `by_caller` says it of the function's own parameters. Releases do not count, since reverse mode puts them off. In `split`
/// mode the function's stack is gone when the reverse sweep runs.
pub(crate) fn find_overwritten(
    module: &Module,
    function: &Function,
    by_caller: &[bool],
    split: bool,
) -> FxHashMap<Op, Vec<bool>> {
    let ops = returning_ops(function);
    let calls: Vec<Op> = ops
        .iter()
        .copied()
        .filter(|&op| matches!(function.ops[op].opcode, Opcode::Call | Opcode::CallIndirect))
        .collect();
    if calls.is_empty() {
        return FxHashMap::default();
    }
    let aliases = Aliases::new(module, function);
    let writes: Vec<(Op, Footprint)> = ops
        .iter()
        .filter(|&&op| function.ops[op].opcode != Opcode::Free)
        .map(|&op| (op, aliases.writes(op)))
        .filter(|(_, footprint)| !footprint.is_empty())
        .collect();
    let too_many = calls.len().saturating_mul(writes.len()) > MAX_COMPARISONS;
    let stacks: Vec<Value> = ops
        .iter()
        .filter(|&&op| split && function.ops[op].opcode == Opcode::Stack)
        .map(|&op| function.result(op))
        .collect();
    let stack_escapes = stacks
        .iter()
        .any(|&stack| aliases.pointers().is_escaped(stack));
    let mut found = FxHashMap::default();
    for call in calls {
        let flags = function.ops[call]
            .operands
            .iter()
            .map(|&arg| {
                function.ty(arg) == Type::PTR
                    && (too_many
                        || stack_escapes
                        || stacks
                            .iter()
                            .any(|&stack| aliases.may_share(aliases.pointers().root(arg), stack))
                        || by_caller_of(&aliases, module, by_caller, split, arg)
                        || writes
                            .iter()
                            .any(|(op, footprint)| may_reach(&aliases, call, arg, *op, footprint)))
            })
            .collect();
        found.insert(call, flags);
    }
    found
}

/// Whether the caller may overwrite what an argument of a call leads to.
fn by_caller_of(
    aliases: &Aliases<'_>,
    module: &Module,
    by_caller: &[bool],
    split: bool,
    arg: Value,
) -> bool {
    let function = aliases.function();
    let root = aliases.pointers().root(arg);
    let any = by_caller.iter().any(|&flag| flag);
    let returns_pointers = function.results.iter().any(|ty| ty.is_ptr());
    match &function.values[root].def {
        ValueDef::Argument { region, index } if *region == function.body() => {
            by_caller.get(*index as usize).copied().unwrap_or(true)
        }
        ValueDef::Constant(Constant::Global(global)) => split && !module.globals[*global].constant,
        ValueDef::Constant(_) => false,
        ValueDef::Result { op, .. } if function.ops[*op].opcode == Opcode::Alloc => {
            split && (returns_pointers || aliases.pointers().is_escaped(root))
        }
        _ => any || split && (returns_pointers || uses_variable_globals(module, function)),
    }
}

/// Whether a write may follow a call and touch what one of the call's arguments leads to, directly or through pointers there.
fn may_reach(
    aliases: &Aliases<'_>,
    call: Op,
    arg: Value,
    write: Op,
    footprint: &Footprint,
) -> bool {
    let follows = aliases.may_follow(call, write) && call != write
        || !aliases.indices().loops_around(call).is_empty()
            && aliases
                .indices()
                .loops_around(call)
                .iter()
                .any(|outer| aliases.indices().loops_around(write).contains(outer));
    if !follows {
        return false;
    }
    let reach = aliases.access(arg, None);
    // Memory behind pointers that the callee finds in memory can be anything that code elsewhere can reach.
    footprint.elsewhere
        || footprint.accesses.iter().any(|access| {
            aliases.may_overwrite_later((call, &reach), (write, access))
                || (access.root != reach.root && aliases.is_reachable_from_elsewhere(access.root))
        })
}
