//! Sums that go through rows: the loop over columns comes first, and each column's sum is carried instead of stored.
//!
//! ```text
//! for %r: i64 = 0 to 1000 step 1 {                   for %c: i64 = 0 to 64 step 1 {
//!   for %c: i64 = 0 to 64 step 1 {                     %first = load f32 %to[c]
//!     %old = load f32 %to[c]                           %sum = for %r: i64 = 0 to 1000 step 1 with (%s: f32 = %first) {
//!     %new = fadd f32 %old, …         ─▶                 %new = fadd f32 %s, …
//!     store f32 %new, %to[c]                             yield %new
//!     yield                                            }
//!   }                                                  store f32 %sum, %to[c]
//!   yield                                              yield
//! }                                                  }
//! ```
//!
//! A processor goes through rows because their elements are neighbours in memory; for a device, columns are what can run at the same time. The loops are exchanged if the one over columns is independent where it is the outer one: then different columns
//! never touch the same memory, and for each column the rows come in the order in which they came before. A place in memory that only one load and one store of a loop touch is a carried value.

use crate::parallel::{constant_count, independent_loops, is_pure, root, visit_all, written_roots};
use ferrozyme_ir::{
    Cursor, Function, FunctionId, Module, Op, OpData, OpView, Opcode, Payload, Region, Structure,
    Value, all_ops,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Exchanges loops of a kernel where that makes the outer one independent; then carries what loops keep in one place.
pub(crate) fn columns_first(module: &mut Module, id: FunctionId) {
    let mut tried: FxHashSet<(Op, Op)> = FxHashSet::default();
    let mut changed = false;
    loop {
        let function = &module.functions[id];
        let independent = independent_loops(module, function);
        let found = all_ops(function).into_iter().find_map(|outer| {
            let inner = exchangeable(function, outer, &independent)?;
            (!tried.contains(&(outer, inner))).then_some((outer, inner))
        });
        let Some((outer, inner)) = found else {
            break;
        };
        tried.insert((outer, inner));
        let before = module.functions[id].clone();
        exchange(&mut module.functions[id], outer, inner);
        let independent = independent_loops(module, &module.functions[id]);
        match independent.contains(&outer) {
            true => changed = true,
            false => module.functions[id] = before,
        }
    }
    if changed {
        let function = &mut module.functions[id];
        for op in all_ops(function) {
            carry_place(function, op);
        }
    }
}

/// The loop that alone stands in another one, which is not independent while the inner one is.
fn exchangeable(function: &Function, outer: Op, independent: &FxHashSet<Op>) -> Option<Op> {
    constant_count(function, outer)?;
    if independent.contains(&outer) || !function.carried(outer).is_empty() {
        return None;
    }
    let ops = &function.regions[function.ops[outer].regions[0]].ops;
    let (_, ops) = ops.split_last()?;
    let written = written_roots(function, ops);
    let is_light = |op: Op| match function.view(op) {
        OpView::Load { address, .. } => !written.contains(&root(function, address)),
        _ => is_pure(function, op),
    };
    let mut heavy = ops.iter().copied().filter(|&op| !is_light(op));
    let (Some(inner), None) = (heavy.next(), heavy.next()) else {
        return None;
    };
    let fits = independent.contains(&inner) && function.carried(inner).is_empty();
    fits.then_some(inner)
}

/// Exchanges two loops, both of which count from 0 by 1: their ends and the uses of their counters change places. What stands beside the inner loop moves into it.
fn exchange(function: &mut Function, outer: Op, inner: Op) {
    let [outside, inside] = [outer, inner].map(|op| function.ops[op].regions[0]);
    let mut beside = std::mem::take(&mut function.regions[outside].ops);
    let end = beside.pop();
    beside.retain(|&op| op != inner);
    function.regions[outside].ops = std::iter::once(inner).chain(end).collect();
    function.regions[inside].ops.splice(0..0, beside);
    let [outer_end, inner_end] = [outer, inner].map(|op| function.ops[op].operands[1]);
    function.ops[outer].operands[1] = inner_end;
    function.ops[inner].operands[1] = outer_end;
    let counters = [function.counter(outer), function.counter(inner)];
    let mut ops = Vec::new();
    visit_all(function, &[inner], &mut |op| ops.push(op));
    for op in ops {
        for operand in &mut function.ops[op].operands {
            if *operand == counters[0] {
                *operand = counters[1];
            } else if *operand == counters[1] {
                *operand = counters[0];
            }
        }
    }
}

/// Carries what a loop keeps in one place of memory, if one load and one store are all that touches it there.
fn carry_place(function: &mut Function, op: Op) {
    if constant_count(function, op).is_none() || !function.carried(op).is_empty() {
        return;
    }
    let body = function.ops[op].regions[0];
    let Some((load, store)) = one_place(function, op, body) else {
        return;
    };
    let OpView::Store {
        value,
        address,
        align,
    } = function.view(store)
    else {
        return;
    };
    let Some(hoisted) = invariant_chain(function, body, address) else {
        return;
    };
    let Some(home) = Structure::of(function).region_of(op) else {
        return;
    };
    let (old, ty) = (function.result(load), function.ty(value));
    let align = Payload::Align(align);
    function.regions[body]
        .ops
        .retain(|other| !hoisted.contains(other) && *other != load && *other != store);
    let data = |opcode: Opcode, operands: &[Value], payload: Payload| OpData {
        opcode,
        operands: operands.iter().copied().collect(),
        results: Default::default(),
        regions: Default::default(),
        payload,
        flags: Default::default(),
        location: None,
    };
    let first = function.new_op(data(Opcode::Load, &[address], align.clone()), &[ty]);
    let first_value = function.result(first);
    let carried = function.add_argument(body, ty);
    let end = function.terminator(body);
    function.ops[end].operands.push(value);
    let mut looped = function.ops[op].clone();
    looped.operands.push(first_value);
    let looped = function.new_op(looped, &[ty]);
    let last = function.result(looped);
    let stored = function.new_op(data(Opcode::Store, &[last, address], align), &[]);
    let mut at = Cursor::before(function, home, op);
    let mut ops = hoisted;
    ops.extend([first, looped, stored]);
    at.replace(function, ops);
    function.replace_operands(&FxHashMap::from_iter([(old, carried)]));
}

/// A load and a store of one address in a loop's body, if nothing else in it touches what the address is counted from.
fn one_place(function: &Function, op: Op, body: Region) -> Option<(Op, Op)> {
    let mut stores = Vec::new();
    let mut loads = Vec::new();
    let mut is_known = true;
    visit_all(function, &[op], &mut |inner| match function.view(inner) {
        OpView::Load { address, .. } => loads.push((inner, address)),
        OpView::Store { address, .. } => stores.push((inner, address)),
        _ => {
            let effect = function.ops[inner].opcode.effect();
            is_known &= matches!(
                effect,
                ferrozyme_ir::Effect::Pure
                    | ferrozyme_ir::Effect::Partial
                    | ferrozyme_ir::Effect::Regions
                    | ferrozyme_ir::Effect::Ends
            );
        }
    });
    let &[(store, address)] = &stores[..] else {
        return None;
    };
    let place = root(function, address);
    loads.retain(|&(_, from)| root(function, from) == place);
    let &[(load, from)] = &loads[..] else {
        return None;
    };
    let ops = &function.regions[body].ops;
    let stand_there = ops.contains(&load) && ops.contains(&store);
    (is_known && from == address && stand_there).then_some((load, store))
}

/// The operations of a body that an address is computed by, in their order. None if it varies in the loop.
fn invariant_chain(function: &Function, body: Region, address: Value) -> Option<Vec<Op>> {
    let arguments = &function.regions[body].args;
    let ops = &function.regions[body].ops;
    let mut chain: FxHashSet<Op> = FxHashSet::default();
    let mut waiting = vec![address];
    while let Some(value) = waiting.pop() {
        if arguments.contains(&value) {
            return None;
        }
        let Some((op, _)) = function.def_op(value) else {
            continue;
        };
        if ops.contains(&op) && chain.insert(op) {
            if !is_pure(function, op) {
                return None;
            }
            waiting.extend(&function.ops[op].operands);
        }
    }
    Some(
        ops.iter()
            .copied()
            .filter(|op| chain.contains(op))
            .collect(),
    )
}
