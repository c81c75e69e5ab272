//! Separates pointers: where they may alias as far as is known, and do not when the program runs, one test says so for the rest of the function.
//!
//! ```text
//! func @scale(%x: ptr, %w: ptr, %y: ptr, %n: i64) {      func @scale(%x: ptr, %w: ptr, %y: ptr, %n: i64) {
//!   for %i: i64 = 0 to %n step 1 {                         %t = call @__ferrozyme_apart_1_3(…first and last bytes…)
//!     … load f64 %x[i]                                     if %t = 0 {
//!     … load f64 %w[i]                            ──▶        … the loop as it was
//!     store f64 …, %y[i]                                   } else {
//!   }                                                        %x1 = exclusive %x, %t
//! }                                                          … the loop, with %x1, %w1 and %y1
//! ```
//!
//! In the second branch what is read through one pointer is not overwritten through another one, so that a reverse sweep can load it once more instead of
//! having it saved. The first branch is what happens if memory does overlap; the derivatives of both are right.
//!
//! The test is made at the top level of the function, before the first loop that it is about, from the ranges of bytes that are accessed behind each
//! pointer ([`ranges`](crate::ranges)). Accesses whose range cannot be computed there, such as `x[index[i]]`, keep the pointer that they had. The pass
//! does something only where a value that a reverse sweep may need is loaded in a loop and may be overwritten through another pointer.

mod accesses;
mod test;

use crate::alias::Aliases;
use crate::clobbers::Clobbers;
use crate::copy_operations::copy_operation;
use crate::ranges::{Place, RangeBuilder, Stretch, Variables};
use crate::with_function::with_function;
use accesses::{Access, collect_accesses};
use ferrozyme_ir::{
    Builder, Cursor, Function, FunctionId, IntPredicate, Module, Op, OpView, Opcode, Region, Type,
    Value, all_ops,
};
use rustc_hash::{FxHashMap, FxHashSet};
use test::test_function;

/// At how many places of a function the test is tried.
const MAX_PLACES: usize = 8;

/// With more pointers than this there is no test, whose time grows with the square of their number.
const MAX_POINTERS: usize = 128;

/// Separates the pointers of a function; returns 1 if there is a test now.
pub fn separate_pointers(module: &mut Module, id: FunctionId) -> usize {
    let Some(plan) = find_plan(module, &module.functions[id]) else {
        return 0;
    };
    let test = test_function(module, plan.written, plan.pointers.len());
    with_function(module, id, |_, function| apply(function, &plan, test));
    1
}

/// What is to be done.
struct Plan {
    /// Before which operation of the body the test is made.
    place: Place,
    /// The pointers that are to lie apart, those first that are written through.
    pointers: Vec<Value>,
    /// How many are written through.
    written: usize,
    /// The accesses behind them.
    accesses: Vec<Access>,
}

fn find_plan(module: &Module, function: &Function) -> Option<Plan> {
    let body = function.body?;
    let has_loop = |op: &Op| matches!(function.ops[*op].opcode, Opcode::For | Opcode::Loop);
    let is_separated = |op: &Op| function.ops[*op].opcode == Opcode::Exclusive;
    let returns = function.ops[function.terminator(body)].opcode == Opcode::Return;
    let ops = all_ops(function);
    if !returns || !ops.iter().any(has_loop) || ops.iter().any(is_separated) {
        return None;
    }
    let clobbers = Clobbers::compute(module, function);
    let aliases = clobbers.aliases();
    let accesses = collect_accesses(aliases);
    // The loads that would be saved, by the look of it.
    let in_loops = |access: &&Access| !aliases.indices().loops_around(access.op).is_empty();
    let saved: Vec<&Access> = (accesses.iter().filter(in_loops))
        .filter(|access| {
            clobbers.clobber_of(access.op).is_some() && may_be_needed(function, access.op)
        })
        .collect();
    if saved.is_empty() {
        return None;
    }
    let mut places: Vec<Op> = Vec::new();
    for access in accesses.iter().filter(in_loops) {
        let at = aliases.structure().ancestor_in(access.op, body)?;
        if !places.contains(&at) && places.len() < MAX_PLACES {
            places.push(at);
        }
    }
    let variables = Variables::of(aliases);
    let plans = places.iter().filter_map(|&at| {
        let place = Place::before(variables.clone(), function, aliases.structure(), at);
        plan_at(aliases, place, &accesses, &saved)
    });
    // Of equally good ones, the first.
    let best = plans.reduce(|best, next| match next.0 > best.0 {
        true => next,
        false => best,
    });
    best.map(|(_, plan)| plan)
}

/// Whether a reverse sweep may need what a load gives: numbers that are only added up are not needed.
fn may_be_needed(function: &Function, op: Op) -> bool {
    let OpView::Load { .. } = function.view(op) else {
        return false;
    };
    let loaded = function.result(op);
    !function.ty(loaded).is_float()
        || all_ops(function).into_iter().any(|user| {
            let data = &function.ops[user];
            data.operands.contains(&loaded)
                && !matches!(
                    data.opcode,
                    Opcode::Fadd
                        | Opcode::Fsub
                        | Opcode::Fneg
                        | Opcode::Fpext
                        | Opcode::Fptrunc
                        | Opcode::Store
                        | Opcode::Yield
                        | Opcode::Return
                )
        })
}

/// What can be done with a test at one place, and for how many of the loads that would be saved.
fn plan_at(
    aliases: &Aliases<'_>,
    place: Place,
    accesses: &[Access],
    saved: &[&Access],
) -> Option<(usize, Plan)> {
    let function = aliases.function();
    let (structure, body) = (aliases.structure(), function.body());
    let follows = |op: Op| {
        let ancestor = structure.ancestor_in(op, body);
        ancestor.is_some_and(|ancestor| structure.order(ancestor) >= structure.order(place.op))
    };
    let is_bounded = |access: &&Access| {
        let stretches = access.stretches();
        stretches.is_some_and(|all| all.iter().all(|one| place.is_bounded(function, one)))
    };
    let bounded: Vec<&Access> = (accesses.iter())
        .filter(|access| follows(access.op))
        .filter(is_bounded)
        .collect();
    let known: FxHashSet<(Op, usize)> = bounded.iter().map(|a| (a.op, a.operand)).collect();
    let mut pointers = pointers_of(bounded.iter().copied());
    // Only those matter that may be mistaken for each other.
    let all = pointers.clone();
    pointers.retain(|&(root, written)| {
        all.iter().any(|&(other, also)| {
            other != root && (written || also) && aliases.may_share(root, other)
        })
    });
    if pointers.len() < 2 || pointers.len() > MAX_POINTERS {
        return None;
    }
    // Writes about which nothing can be tested.
    let mut other_writes = Vec::new();
    let mut elsewhere = false;
    for op in all_ops(function) {
        if !follows(op) {
            continue;
        }
        let written = aliases.writes(op);
        elsewhere |= written.elsewhere;
        let is_known = accesses
            .iter()
            .filter(|access| access.op == op && access.writes)
            .all(|access| known.contains(&(op, access.operand)));
        let is_access = accesses
            .iter()
            .any(|access| access.op == op && access.writes);
        if !(is_access && is_known) {
            other_writes.extend(written.accesses.iter().map(|access| access.root));
        }
    }
    let is_won = |access: &&&Access| {
        let roots = || access.ways.iter().map(|way| way.root);
        known.contains(&(access.op, access.operand))
            && roots().any(|root| pointers.iter().any(|&(pointer, _)| pointer == root))
            && !(elsewhere && roots().any(|root| aliases.is_reachable_from_elsewhere(root)))
            && !roots().any(|root| {
                let mut writes = other_writes.iter();
                writes.any(|&other| aliases.may_share(root, other))
            })
    };
    let won = saved.iter().filter(is_won).count();
    if won == 0 {
        return None;
    }
    let is_separated = |access: &&Access| {
        let mut ways = access.ways.iter();
        ways.all(|way| pointers.iter().any(|&(pointer, _)| pointer == way.root))
    };
    let accesses: Vec<Access> = bounded.into_iter().filter(is_separated).cloned().collect();
    let mut pointers = pointers_of(&accesses);
    pointers.sort_by_key(|&(_, written)| !written);
    let plan = Plan {
        place,
        written: pointers.iter().filter(|&&(_, written)| written).count(),
        pointers: pointers.into_iter().map(|(root, _)| root).collect(),
        accesses,
    };
    Some((won, plan))
}

/// The pointers that accesses go through, and whether memory is written through them.
fn pointers_of<'a>(accesses: impl IntoIterator<Item = &'a Access>) -> Vec<(Value, bool)> {
    let mut pointers: Vec<(Value, bool)> = Vec::new();
    for access in accesses {
        for way in &access.ways {
            match pointers.iter_mut().find(|(root, _)| *root == way.root) {
                Some((_, written)) => *written |= access.writes,
                None => pointers.push((way.root, access.writes)),
            }
        }
    }
    pointers
}

fn apply(function: &mut Function, plan: &Plan, test: FunctionId) {
    let body = function.body();
    let mut ops = function.take_ops(body);
    let terminator = ops.pop().expect("a body ends in a terminator");
    let first = (ops.iter().position(|&op| op == plan.place.op)).expect("the place is in the body");
    let rest = ops.split_off(first);
    for &op in &ops {
        function.append(body, op);
    }
    let location = function.ops[plan.place.op].location;
    let mut b = Builder::at(function, Cursor::at_end(body));
    b.location = location;
    let mut ranges = RangeBuilder::new(&plan.place);
    let mut arguments = Vec::new();
    let stretches = (plan.accesses.iter())
        .filter_map(Access::stretches)
        .flatten();
    let stretches: Vec<Stretch> = stretches.collect();
    for &pointer in &plan.pointers {
        let behind = stretches.iter().filter(|stretch| stretch.root == pointer);
        arguments.extend(ranges.build(&mut b, behind.cloned()));
    }
    let call = b.call(test, &arguments, &[Type::I64]);
    let tested = b.function.result(call);
    let zero = b.i64(0);
    let overlaps = b.icmp(IntPredicate::Eq, tested, zero);
    let inexact = ranges.build_inexact(&mut b);
    let unknown = b.binary(Opcode::Or, overlaps, inexact);

    let defined: FxHashSet<Op> = rest.iter().copied().collect();
    let mut results: Vec<Value> = Vec::new();
    for &value in &b.function.ops[terminator].operands {
        let is_inside = (b.function.def_op(value)).is_some_and(|(op, _)| defined.contains(&op));
        if is_inside && !results.contains(&value) {
            results.push(value);
        }
    }
    let types: Vec<Type> = results.iter().map(|&value| b.ty(value)).collect();
    // What overlaps comes first in the text: writes there are then seen to come before all that is read in the other branch.
    let (choice, overlapping, apart) = b.if_else(unknown, &types);

    let mut copies = FxHashMap::default();
    for &op in &rest {
        let copy = copy_operation(b.function, op, &mut copies);
        b.function.append(overlapping, copy);
    }
    b.go_to_end(overlapping);
    let copied: Vec<Value> = results.iter().map(|value| copies[value]).collect();
    b.yields(&copied);

    b.go_to_end(apart);
    let mut exclusive = FxHashMap::default();
    for &pointer in &plan.pointers {
        exclusive.insert(pointer, b.exclusive(pointer, tested));
    }
    let needed = needed_addresses(b.function, &plan.accesses, &exclusive);
    for &op in &ops {
        if computes(b.function, op, &needed) {
            let copy = copy_operation(b.function, op, &mut exclusive);
            b.function.append(apart, copy);
        }
    }
    for &op in &rest {
        b.function.append(apart, op);
    }
    b.go_to_end(apart);
    b.yields(&results);
    b.function.append(body, terminator);
    let chosen = b.function.ops[choice].results.clone();
    for operand in &mut b.function.ops[terminator].operands {
        if let Some(index) = results.iter().position(|value| value == operand) {
            *operand = chosen[index];
        }
    }
    copy_addresses(function, apart, &needed, &mut exclusive);
    for access in &plan.accesses {
        let operand = &mut function.ops[access.op].operands[access.operand];
        *operand = exclusive[operand];
    }
}

/// The addresses between accesses and the pointers that are exclusive now, each of them computed by one operation.
fn needed_addresses(
    function: &Function,
    accesses: &[Access],
    exclusive: &FxHashMap<Value, Value>,
) -> FxHashSet<Value> {
    let mut needed: FxHashSet<Value> = FxHashSet::default();
    let mut pending: Vec<Value> = accesses
        .iter()
        .map(|access| function.ops[access.op].operands[access.operand])
        .collect();
    while let Some(address) = pending.pop() {
        if !exclusive.contains_key(&address) && needed.insert(address) {
            match function.definition(address) {
                Some(OpView::Offset { base, .. }) => pending.push(base),
                Some(OpView::Select {
                    then, otherwise, ..
                }) => pending.extend([then, otherwise]),
                _ => unreachable!("a way to a pointer consists of offsets and selections"),
            }
        }
    }
    needed
}

fn computes(function: &Function, op: Op, needed: &FxHashSet<Value>) -> bool {
    let results = &function.ops[op].results;
    results.first().is_some_and(|it| needed.contains(it))
}

/// Computes addresses a second time from exclusive pointers, right behind the original.
fn copy_addresses(
    function: &mut Function,
    region: Region,
    needed: &FxHashSet<Value>,
    exclusive: &mut FxHashMap<Value, Value>,
) {
    for op in function.take_ops(region) {
        function.append(region, op);
        for inner in function.ops[op].regions.clone() {
            copy_addresses(function, inner, needed, exclusive);
        }
        if computes(function, op, needed) {
            let copy = copy_operation(function, op, exclusive);
            function.append(region, copy);
        }
    }
}
