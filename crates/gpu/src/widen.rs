//! Items take several neighbours, so that each of their accesses to memory is of sixteen bytes.
//!
//! ```text
//!                                  %p1 = offset %from, %at1 * 4
//! %x = load f32 %p         ─▶      %x0 = load f32 %p  %x1 = load f32 %p1  …      ; neighbours in memory: one access
//! %y = exp f32 %x                  %y0 = exp f32 %x0  %y1 = exp f32 %x1  …
//! ```
//! Copies of an operation stand beside each other, where the compiler of the device makes one access of them. Only what is independent is copied: points of an index space, and iterations that are dealt out to items.

use crate::parallel::{constant_count, root, visit_all};
use ferrozyme_ir::{Builder, Function, Op, OpView, Opcode, Value};
use ferrozyme_opt::copy_operation;
use rustc_hash::FxHashMap;

/// The bytes of the widest access.
const ACCESS: u64 = 16;
/// The most operations that there may be in all copies.
const LONGEST: usize = 512;

/// How many neighbours along a counter an item should take, for operations without regions: 1 if that gains nothing, or if whole groups of neighbours do not fit into the trip count.
pub(crate) fn neighbours(function: &Function, ops: &[Op], counter: Value, count: u64) -> u64 {
    let mut widest: u64 = 0;
    let mut is_flat = true;
    visit_all(function, ops, &mut |op| {
        is_flat &= function.ops[op].regions.is_empty();
        let (ty, address) = match function.view(op) {
            OpView::Load { address, .. } => (function.ty(function.result(op)), address),
            OpView::Store { value, address, .. } => (function.ty(value), address),
            OpView::Call { .. } | OpView::AtomicAdd { .. } => {
                is_flat = false;
                return;
            }
            _ => return,
        };
        let Some(OpView::Offset { index, .. }) = function.definition(address) else {
            return;
        };
        // What is in local memory, or on the stack, is no matter.
        let is_parameter = function.arguments().contains(&root(function, address));
        if is_parameter && counts_by_one(function, index, counter) {
            widest = widest.max(ty.bytes());
        }
    });
    if !is_flat || widest == 0 {
        return 1;
    }
    let mut width = ACCESS / widest.min(ACCESS);
    while width > 1 && (!count.is_multiple_of(width) || ops.len() * width as usize > LONGEST) {
        width /= 2;
    }
    width
}

/// Whether an index is a counter plus something else.
fn counts_by_one(function: &Function, index: Value, counter: Value) -> bool {
    index == counter
        || matches!(
            function.definition(index),
            Some(OpView::Binary(Opcode::Add, a, b))
                if counts_by_one(function, a, counter) || counts_by_one(function, b, counter)
        )
}

/// Appends operations for a point, and copies for its neighbours along a counter; `coordinates` says what the counters are at the first point.
pub(crate) fn insert_neighbours(
    b: &mut Builder<'_>,
    ops: &[Op],
    coordinates: &FxHashMap<Value, Value>,
    counter: Value,
    width: u64,
) {
    let mut copies = Vec::new();
    for number in 1..width {
        let mut values = coordinates.clone();
        let number = b.i64(number as i64);
        let moved = b.binary(Opcode::Add, coordinates[&counter], number);
        values.insert(counter, moved);
        copies.push(values);
    }
    for &op in ops {
        b.insert(op);
        for values in &mut copies {
            let copy = copy_operation(b.function, op, values);
            b.insert(copy);
        }
    }
}

/// How many iterations of a loop that is dealt out an item should take at a time.
pub(crate) fn iterations_at_a_time(function: &Function, op: Op) -> u64 {
    let Some(count) = constant_count(function, op) else {
        return 1;
    };
    let ops = &function.regions[function.ops[op].regions[0]].ops;
    neighbours(function, ops, function.counter(op), count)
}

/// Has a loop that is dealt out take several iterations at a time; what it carries goes through them in order.
pub(crate) fn widen_loop(function: &mut Function, op: Op, width: u64) {
    let body = function.ops[op].regions[0];
    let (counter, carried) = (function.counter(op), function.carried(op).to_vec());
    let mut ops = std::mem::take(&mut function.regions[body].ops);
    let Some(end) = ops.pop() else { return };
    let yielded = function.ops[end].operands.to_vec();
    let mut b = Builder::new(function, body);
    let mut copies: Vec<FxHashMap<Value, Value>> = Vec::new();
    for number in 1..width {
        let number = b.i64(number as i64);
        let moved = b.binary(Opcode::Add, counter, number);
        copies.push(FxHashMap::from_iter([(counter, moved)]));
    }
    for op in ops {
        b.insert(op);
        for number in 0..copies.len() {
            for (&carried, &result) in carried.iter().zip(&yielded) {
                // What an iteration begins with is what the one before it ends with.
                let before = match number.checked_sub(1) {
                    Some(before) => copies[before].get(&result).copied(),
                    None => Some(result),
                };
                copies[number].extend(before.map(|before| (carried, before)));
            }
            let copy = copy_operation(b.function, op, &mut copies[number]);
            b.insert(copy);
        }
    }
    if let Some(last) = copies.last() {
        for operand in &mut b.function.ops[end].operands {
            *operand = last.get(operand).copied().unwrap_or(*operand);
        }
    }
    b.insert(end);
}
