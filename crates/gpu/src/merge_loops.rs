//! Nests that go through the same points become one.
//!
//! ```text
//! for %i = 0 to 300 { store f32 %sum, s[i] }          for %i = 0 to 300 {
//! for %i = 0 to 300 { … load f32 s[i] … }      ─▶       store f32 %sum, s[i]
//!                                                       … %sum …
//!                                                     }
//! ```
//! Each nest would be a launch of its own, and what the second reads again would come from memory. Legal if the iterations of the merged loops are independent, too: then no iteration of the one needs anything from another iteration of the other.

use crate::parallel::{
    constant_count, independent_loops, is_pure, reads_from, root, visit_all, written_roots,
};
use ferrozyme_ir::{Function, FunctionId, Module, Op, OpView, Opcode, Region};
use ferrozyme_opt::{forward_stores, remove_dead_stores};
use rustc_hash::{FxHashMap, FxHashSet};

/// Merges the nests of a kernel that follow each other where that is legal, then forwards what they pass on to each other.
pub(crate) fn merge_loops(module: &mut Module, id: FunctionId) {
    let mut refused: FxHashSet<(Op, Op)> = FxHashSet::default();
    let mut changed = false;
    loop {
        let function = &module.functions[id];
        let independent = independent_loops(module, function);
        let Some((first, second, depth)) = find_pair(function, &independent, &refused) else {
            break;
        };
        let before = function.clone();
        if merge_nests(module, id, first, second, depth) {
            changed = true;
        } else {
            module.functions[id] = before;
            refused.insert((first, second));
        }
    }
    if changed {
        forward_stores(module, id);
        remove_dead_stores(module, id);
    }
}

/// Two nests of a kernel's body with the same trip counts and nothing but pure operations between them, and how deep they are.
fn find_pair(
    function: &Function,
    independent: &FxHashSet<Op>,
    refused: &FxHashSet<(Op, Op)>,
) -> Option<(Op, Op, usize)> {
    let mut before: Option<(Op, Vec<u64>)> = None;
    for &op in &function.regions[function.body()].ops {
        if is_pure(function, op) {
            continue;
        }
        let counts = trip_counts(function, op, independent);
        if let (Some((first, earlier)), Some(counts)) = (&before, &counts)
            && earlier == counts
            && !refused.contains(&(*first, op))
        {
            return Some((*first, op, counts.len()));
        }
        before = counts.map(|counts| (op, counts));
    }
    None
}

/// The trip counts of a nest of independent loops that carry nothing, outermost first. None if there is none, or if loops of that kind stand beside each other in it.
fn trip_counts(function: &Function, op: Op, independent: &FxHashSet<Op>) -> Option<Vec<u64>> {
    let is_level = |op: Op| independent.contains(&op) && function.carried(op).is_empty();
    if !is_level(op) {
        return None;
    }
    let mut counts = Vec::new();
    let mut level = op;
    loop {
        counts.push(constant_count(function, level)?);
        let ops = &function.regions[body_of(function, level)].ops;
        match inner_loop(function, ops) {
            Some(inner) if is_level(inner) => level = inner,
            _ => {
                let mut has_others = false;
                visit_all(function, ops, &mut |op| {
                    has_others |= function.ops[op].opcode == Opcode::For && is_level(op);
                });
                return (!has_others).then_some(counts);
            }
        }
    }
}

fn body_of(function: &Function, op: Op) -> Region {
    function.ops[op].regions[0]
}

/// The loop that alone stands among operations, but for pure ones and loads of what it does not write.
fn inner_loop(function: &Function, ops: &[Op]) -> Option<Op> {
    let written = written_roots(function, ops);
    let is_light = |op: Op| match function.view(op) {
        OpView::Load { address, .. } => !written.contains(&root(function, address)),
        OpView::Yield { .. } => true,
        _ => is_pure(function, op),
    };
    let mut heavy = ops.iter().copied().filter(|&op| !is_light(op));
    match (heavy.next(), heavy.next()) {
        (Some(only), None) if function.ops[only].opcode == Opcode::For => Some(only),
        _ => None,
    }
}

/// Merges two nests level by level. False, and the function is of no use any more, if that is not legal.
fn merge_nests(
    module: &mut Module,
    id: FunctionId,
    mut first: Op,
    mut second: Op,
    depth: usize,
) -> bool {
    let mut region = module.functions[id].body();
    for level in 1..=depth {
        let function = &module.functions[id];
        let inner = (level < depth)
            .then(|| [first, second].map(|op| &function.regions[body_of(function, op)].ops))
            .map(|bodies| bodies.map(|ops| inner_loop(function, ops)));
        if !merge(&mut module.functions[id], region, first, second)
            || !independent_loops(module, &module.functions[id]).contains(&first)
        {
            return false;
        }
        region = body_of(&module.functions[id], first);
        match inner {
            None => return true,
            Some([Some(outer), Some(other)]) => (first, second) = (outer, other),
            Some(_) => return false,
        }
    }
    true
}

/// Appends the body of the second loop to that of the first. What stands between them moves before both; false if it reads what the first one writes.
fn merge(function: &mut Function, region: Region, first: Op, second: Op) -> bool {
    let ops = function.regions[region].ops.clone();
    let position = |op: Op| ops.iter().position(|&other| other == op);
    let (Some(start), Some(end)) = (position(first), position(second)) else {
        return false;
    };
    let between = &ops[start + 1..end];
    if reads_from(function, between, &written_roots(function, &[first])) {
        return false;
    }
    let before = ops[..start].iter().chain(between).copied();
    function.regions[region].ops = before
        .chain([first])
        .chain(ops[end + 1..].iter().copied())
        .collect();
    let [body, appended] = [first, second].map(|op| body_of(function, op));
    let appended = std::mem::take(&mut function.regions[appended].ops);
    let body = &mut function.regions[body].ops;
    // The end of the second body is that of both.
    body.pop();
    body.extend(appended);
    let counters = [first, second].map(|op| function.counter(op));
    function.replace_operands(&FxHashMap::from_iter([(counters[1], counters[0])]));
    true
}
