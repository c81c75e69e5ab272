//! Sums into memory become atomic additions, so that the loops around them are independent.
//!
//! ```text
//! %old = load f32 %p
//! %new = fadd f32 %old, %v       ─▶    atomic_add f32 %p, %v
//! store f32 %new, %p
//! ```
//! Legal if nothing else in the nest touches the memory. The terms are added in another order then, which differs from run to run.

use crate::Abilities;
use crate::parallel::{root, visit_all};
use ferrozyme_ir::{
    Alignment, Function, Op, OpData, OpView, Opcode, Payload, Structure, Type, Value,
};
use ferrozyme_opt::Uses;

/// Rewrites all nests of a kernel in which that is legal and which sum up in several iterations.
pub(crate) fn accumulate(function: &mut Function, abilities: &Abilities) {
    let top = function.regions[function.body()].ops.clone();
    for op in top {
        if function.ops[op].opcode == Opcode::For
            && let Some(sum) = find_sum(function, op, abilities)
        {
            rewrite(function, &sum);
        }
    }
}

struct Sum {
    load: Op,
    add: Op,
    store: Op,
    address: Value,
    term: Value,
    align: Alignment,
}

/// The one sum into memory of a nest that an index from memory chooses: others are independent already.
fn find_sum(function: &Function, nest: Op, abilities: &Abilities) -> Option<Sum> {
    let mut accesses = Vec::new();
    visit_all(function, &[nest], &mut |op| match function.view(op) {
        OpView::Load { address, .. } => accesses.push((op, root(function, address))),
        OpView::Store { address, .. } => accesses.push((op, root(function, address))),
        OpView::Copy { .. } | OpView::Move { .. } | OpView::Fill { .. } | OpView::Call { .. } => {
            accesses.push((op, function.arguments()[0]));
        }
        _ => {}
    });
    let stores: Vec<Op> = accesses
        .iter()
        .map(|&(op, _)| op)
        .filter(|&op| function.ops[op].opcode == Opcode::Store)
        .collect();
    let &[store] = &stores[..] else {
        return None;
    };
    let OpView::Store {
        value,
        address,
        align,
    } = function.view(store)
    else {
        return None;
    };
    let allowed = match function.ty(value) {
        Type::F32 => abilities.atomic_f32,
        Type::F64 => abilities.atomic_f64,
        _ => false,
    };
    let (add, _) = function.def_op(value)?;
    let OpView::Binary(Opcode::Fadd, a, b) = function.view(add) else {
        return None;
    };
    let is_old = |value: Value| {
        let (op, _) = function.def_op(value)?;
        let reads =
            matches!(function.view(op), OpView::Load { address: from, .. } if from == address);
        reads.then_some(op)
    };
    let (load, term) = match (is_old(a), is_old(b)) {
        (Some(load), None) => (load, b),
        (None, Some(load)) => (load, a),
        _ => return None,
    };
    let written = root(function, address);
    let others = accesses
        .iter()
        .filter(|&&(_, root)| root == written)
        .count();
    let uses = Uses::of(function);
    let used_once = [function.result(load), value]
        .iter()
        .all(|&value| uses.of_value(value).len() == 1);
    let is_chosen = depends_on_memory(function, address);
    (allowed && others == 2 && used_once && is_chosen).then_some(Sum {
        load,
        add,
        store,
        address,
        term,
        align,
    })
}

/// Whether an address is computed from a number that is loaded.
fn depends_on_memory(function: &Function, value: Value) -> bool {
    let Some((op, _)) = function.def_op(value) else {
        return false;
    };
    let data = &function.ops[op];
    data.opcode == Opcode::Load
        || !data.regions.is_empty()
        || data
            .operands
            .iter()
            .any(|&operand| depends_on_memory(function, operand))
}

fn rewrite(function: &mut Function, sum: &Sum) {
    let structure = Structure::of(function);
    let ty = function.ty(sum.term);
    for op in [sum.load, sum.add] {
        if let Some(region) = structure.region_of(op) {
            function.regions[region].ops.retain(|&other| other != op);
        }
    }
    let atomic = function.new_op(
        OpData {
            opcode: Opcode::AtomicAdd,
            operands: [sum.address, sum.term].into_iter().collect(),
            results: Default::default(),
            regions: Default::default(),
            payload: Payload::Align(sum.align),
            flags: Default::default(),
            location: function.ops[sum.store].location,
        },
        &[ty],
    );
    if let Some(region) = structure.region_of(sum.store) {
        for op in &mut function.regions[region].ops {
            if *op == sum.store {
                *op = atomic;
            }
        }
    }
}
