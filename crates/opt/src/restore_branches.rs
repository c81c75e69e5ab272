//! Puts what was computed ahead of a choice back behind it, where its derivative may be infinite.
//!
//! ```text
//! %s = sqrt f64 %x                          %r = if %c -> (f64) {
//! %r = select f64 %c, %s, 0.0        →        %s = sqrt f64 %x
//!                                             yield %s
//!                                           } else { yield 0.0 }
//! ```
//!
//! A compiler that knows values only turns `if x > 0 { x.sqrt() } else { 0 }` into a `select`, since to compute a root for nothing is cheaper than to branch.
//! For a derivative it is wrong: the root that is not chosen has adjoint 0, and 0 times an infinite slope is NaN. The opposite of
//! [`select_branches`](crate::select_branches), for what that leaves alone (see [`speculation`]).
//!
//! What moves must be needed for the one choice only, so that nothing is computed that was not before. Several choices by one condition become one branch.

use crate::speculation::{Speculation, speculation};
use crate::with_function::with_function;
use ferrozyme_ir::{
    Builder, Effect, Function, FunctionId, Module, Op, Opcode, Region, Type, Value,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BinaryHeap;

/// Replaces `select`s of values whose derivative may be infinite by `if`s; returns the number of `select`s replaced.
pub fn restore_branches(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |_, function| {
        let Some(body) = function.body else { return 0 };
        let mut changes = 0;
        let mut replaced = FxHashMap::default();
        let uses = Uses::of(function);
        let mut work = vec![body];
        while let Some(region) = work.pop() {
            changes += visit(function, &uses, region, &mut replaced);
            for &op in &function.regions[region].ops {
                work.extend(&function.ops[op].regions);
            }
        }
        if !replaced.is_empty() {
            function.replace_operands(&replaced);
        }
        changes
    })
}

fn visit(
    function: &mut Function,
    uses: &Uses,
    region: Region,
    replaced: &mut FxHashMap<Value, Value>,
) -> usize {
    let choices = choices_of(function, region);
    if choices.is_empty() {
        return 0;
    }
    let places: FxHashMap<Op, usize> = function.regions[region]
        .ops
        .iter()
        .enumerate()
        .map(|(place, &op)| (op, place))
        .collect();
    let mut moved: FxHashSet<Op> = FxHashSet::default();
    let mut branches: FxHashMap<Op, Branch> = FxHashMap::default();
    let mut changes = 0;
    for selects in choices {
        let Some(branch) = find_branch(function, uses, &places, selects, &moved) else {
            continue;
        };
        changes += branch.selects.len();
        moved.extend(branch.sides.iter().flatten().copied());
        moved.extend(&branch.selects);
        let last = *branch.selects.last().expect("a choice has a select");
        branches.insert(last, branch);
    }
    if branches.is_empty() {
        return 0;
    }
    let ops = std::mem::take(&mut function.regions[region].ops);
    let mut done = Vec::with_capacity(ops.len());
    for op in ops {
        if let Some(branch) = branches.remove(&op) {
            done.push(build(function, branch, replaced));
        } else if !moved.contains(&op) {
            done.push(op);
        }
    }
    function.regions[region].ops = done;
    changes
}

/// The `select`s of a region, by condition, in order.
fn choices_of(function: &Function, region: Region) -> Vec<Vec<Op>> {
    let mut order = Vec::new();
    let mut by_condition: FxHashMap<Value, Vec<Op>> = FxHashMap::default();
    for &op in &function.regions[region].ops {
        let data = &function.ops[op];
        if data.opcode == Opcode::Select && function.ty(data.operands[0]) == Type::I1 {
            let selects = by_condition.entry(data.operands[0]).or_default();
            if selects.is_empty() {
                order.push(data.operands[0]);
            }
            selects.push(op);
        }
    }
    order
        .into_iter()
        .filter_map(|condition| by_condition.remove(&condition))
        .collect()
}

/// A branch to be made: the choices it replaces, and what moves into each side.
struct Branch {
    selects: Vec<Op>,
    sides: [Vec<Op>; 2],
}

fn find_branch(
    function: &Function,
    uses: &Uses,
    places: &FxHashMap<Op, usize>,
    selects: Vec<Op>,
    moved: &FxHashSet<Op>,
) -> Option<Branch> {
    // All together if nothing in between looks at the first ones; else the first that needs it.
    let selects = match together(function, uses, places, &selects) {
        true => selects,
        false => vec![*selects.iter().find(|&&select| {
            let alone = [select];
            [0, 1].iter().any(|&side| {
                is_worth(
                    function,
                    &side_of(function, uses, places, &alone, side, moved),
                )
            })
        })?],
    };
    let sides = [0, 1].map(|side| side_of(function, uses, places, &selects, side, moved));
    let worth = sides.iter().any(|side| is_worth(function, side));
    worth.then_some(Branch { selects, sides })
}

/// Whether a derivative in it may be infinite.
fn is_worth(function: &Function, side: &[Op]) -> bool {
    side.iter()
        .any(|&op| speculation(function, op) == Speculation::WhereItRuns)
}

/// Whether no operation between the first and the last of the choices uses one of them.
fn together(
    function: &Function,
    uses: &Uses,
    places: &FxHashMap<Op, usize>,
    selects: &[Op],
) -> bool {
    let end = places[&selects[selects.len() - 1]];
    selects.iter().all(|&select| {
        uses.users(function, select)
            .all(|user| places.get(&user).is_some_and(|&place| place > end))
    })
}

/// The pure operations of the region that only this side of the choices needs, in order.
///
/// Goes backwards from the choices, so that all users of an operation are known when it is looked at.
fn side_of(
    function: &Function,
    uses: &Uses,
    places: &FxHashMap<Op, usize>,
    selects: &[Op],
    side: usize,
    moved: &FxHashSet<Op>,
) -> Vec<Op> {
    let mut inside: FxHashMap<Op, usize> = FxHashMap::default();
    let mut work: BinaryHeap<(usize, Op)> = BinaryHeap::new();
    let want = |work: &mut BinaryHeap<(usize, Op)>, value: Value| {
        if let Some((op, _)) = function.def_op(value)
            && let Some(&place) = places.get(&op)
        {
            work.push((place, op));
        }
    };
    for &select in selects {
        want(&mut work, function.ops[select].operands[1 + side]);
    }
    while let Some((place, op)) = work.pop() {
        let data = &function.ops[op];
        let movable = matches!(data.opcode.effect(), Effect::Pure | Effect::Partial)
            && data.regions.is_empty()
            && !moved.contains(&op)
            && !selects.contains(&op)
            && !inside.contains_key(&op);
        let only_this_side = |user: Op| {
            let operands = &function.ops[user].operands;
            let elsewhere =
                |result: &Value| operands[0] == *result || operands[2 - side] == *result;
            inside.contains_key(&user)
                || (selects.contains(&user) && !data.results.iter().any(elsewhere))
        };
        if movable && uses.users(function, op).all(only_this_side) {
            for &operand in &data.operands {
                want(&mut work, operand);
            }
            inside.insert(op, place);
        }
    }
    let mut ops: Vec<(usize, Op)> = inside.into_iter().map(|(op, place)| (place, op)).collect();
    ops.sort_unstable();
    ops.into_iter().map(|(_, op)| op).collect()
}

fn build(function: &mut Function, branch: Branch, replaced: &mut FxHashMap<Value, Value>) -> Op {
    let first = function.ops[branch.selects[0]].clone();
    let types: Vec<Type> = branch
        .selects
        .iter()
        .map(|&select| function.ty(function.result(select)))
        .collect();
    let scratch = function.new_region(&[]);
    let mut builder = Builder::new(function, scratch);
    builder.location = first.location;
    let (op, then, otherwise) = builder.if_else(first.operands[0], &types);
    for (side, region) in [then, otherwise].into_iter().enumerate() {
        let chosen: Vec<Value> = branch
            .selects
            .iter()
            .map(|&select| function.ops[select].operands[1 + side])
            .collect();
        function.regions[region].ops.clone_from(&branch.sides[side]);
        Builder::new(function, region).yields(&chosen);
    }
    for (index, &select) in branch.selects.iter().enumerate() {
        let result = function.ops[op].results[index];
        let name = function.values[function.result(select)].name.clone();
        function.values[result].name = name;
        replaced.insert(function.result(select), result);
    }
    op
}

/// The uses of each value.
struct Uses {
    users: FxHashMap<Value, Vec<Op>>,
}

impl Uses {
    fn of(function: &Function) -> Uses {
        let mut users: FxHashMap<Value, Vec<Op>> = FxHashMap::default();
        let mut work: Vec<Region> = function.body.into_iter().collect();
        while let Some(region) = work.pop() {
            for &op in &function.regions[region].ops {
                let data = &function.ops[op];
                for &operand in &data.operands {
                    users.entry(operand).or_default().push(op);
                }
                work.extend(&data.regions);
            }
        }
        Uses { users }
    }

    fn users<'a>(&'a self, function: &'a Function, op: Op) -> impl Iterator<Item = Op> + 'a {
        function.ops[op]
            .results
            .iter()
            .flat_map(|result| self.users.get(result).into_iter().flatten().copied())
    }
}
