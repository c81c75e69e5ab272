//! The parallel loops of a stage become an index space.
//!
//! From the outside in, loops that are independent and stand alone in their bodies, but for pure operations and loads of what the stage does not write, become coordinates of one number: `group · items + item`. The loops inside
//! run in the item, or are shared by a group (`rows.rs`).

use crate::Abilities;
use crate::items::Items;
use crate::parallel::{constant_count, is_pure, root, visit_all, written_roots};
use crate::rows::{plan_rows, share_rows};
use crate::stages::Extent;
use crate::widen::{insert_neighbours, neighbours};
use ferrozyme_ir::{Builder, Function, IntPredicate, Op, OpView, Opcode, Type, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// How many items a group has that share nothing.
const ITEMS: u32 = 256;

/// A loop of so many iterations is not worth to be mentioned.
const SHORT: u64 = 32;

/// A nest of parallel loops: the counters with their trip counts, outermost first, and what runs for each point.
struct Nest {
    counters: Vec<(Value, u64)>,
    ops: Vec<Op>,
}

/// Fills the body of a stage, whose operations are given.
pub(crate) fn over_index_space(
    function: &mut Function,
    ops: Vec<Op>,
    independent: &FxHashSet<Op>,
    items: Items,
    abilities: &Abilities,
) -> Extent {
    let nest = descend(function, ops, independent);
    let points: u64 = nest.counters.iter().map(|&(_, count)| count).product();
    if let Some(rows) = plan_rows(function, &nest.ops, independent, &nest.counters, abilities) {
        let mut b = Builder::at_body(function);
        let (seat, row) = rows.seat(&mut b, items);
        let counters = coordinates(&mut b, row, &nest.counters);
        b.function.replace_operands(&counters);
        let local = share_rows(function, nest.ops, &rows, items, seat);
        return Extent {
            groups: (points / u64::from(rows.lanes)) as u32,
            items: rows.items,
            local,
            alone: false,
        };
    }
    let mut longest = 0;
    visit_all(function, &nest.ops, &mut |op| {
        longest = longest.max(constant_count(function, op).unwrap_or(0));
    });
    let alone = points == 1 && longest > SHORT;
    let width = width_of(function, &nest, points, abilities);
    let points = points / width;
    let size = u64::from(ITEMS.min(abilities.group)).min(points.next_power_of_two());
    let mut b = Builder::at_body(function);
    let (group, item, size_value) = (items.group(&mut b), items.item(&mut b), b.i64(size as i64));
    let first = b.binary(Opcode::Mul, group, size_value);
    let point = b.binary(Opcode::Add, first, item);
    let all = b.i64(points as i64);
    let inside = b.icmp(IntPredicate::Ult, point, all);
    let (_, then, otherwise) = b.if_else(inside, &[]);
    b.ret(&[]);
    let counters = b.inside(then, |b| {
        let first = match width {
            1 => point,
            _ => {
                let width = b.i64(width as i64);
                b.binary(Opcode::Mul, point, width)
            }
        };
        let counters = coordinates(b, first, &nest.counters);
        match nest.counters.last() {
            Some(&(counter, _)) => {
                insert_neighbours(b, &nest.ops, &counters, counter, width);
            }
            None => nest.ops.iter().for_each(|&op| b.insert(op)),
        }
        b.yields(&[]);
        counters
    });
    b.inside(otherwise, |b| b.yields(&[]));
    function.replace_operands(&counters);
    Extent {
        groups: points.div_ceil(size) as u32,
        items: size as u32,
        local: 0,
        alone,
    }
}

/// How many neighbouring points an item takes: several if there are enough items for the device without them.
fn width_of(function: &Function, nest: &Nest, points: u64, abilities: &Abilities) -> u64 {
    let Some(&(counter, count)) = nest.counters.last() else {
        return 1;
    };
    let enough = u64::from(abilities.units) * u64::from(ITEMS);
    let mut width = neighbours(function, &nest.ops, counter, count);
    while width > 1 && points / width < enough {
        width /= 2;
    }
    width
}

/// Takes independent loops apart as long as one stands alone.
fn descend(function: &Function, ops: Vec<Op>, independent: &FxHashSet<Op>) -> Nest {
    let mut nest = Nest {
        counters: Vec::new(),
        ops,
    };
    let written = written_roots(function, &nest.ops);
    loop {
        let is_light = |&op: &Op| {
            let reads = match function.view(op) {
                OpView::Load { address, .. } => !written.contains(&root(function, address)),
                _ => false,
            };
            reads || is_pure(function, op)
        };
        let mut heavy = nest.ops.iter().copied().filter(|op| !is_light(op));
        let (Some(only), None) = (heavy.next(), heavy.next()) else {
            return nest;
        };
        let count = constant_count(function, only);
        let (true, Some(count)) = (independent.contains(&only), count) else {
            return nest;
        };
        if count == 0 || !function.carried(only).is_empty() {
            return nest;
        }
        nest.counters.push((function.counter(only), count));
        let mut inner = function.regions[function.ops[only].regions[0]].ops.clone();
        inner.pop();
        let before = nest.ops.iter().copied().take_while(|&op| op != only);
        nest.ops = before.chain(inner).collect();
    }
}

/// The coordinates of a point, in row-major order. Divisions are of 32 bits if the number of the point is, which are faster on most devices.
fn coordinates(
    b: &mut Builder<'_>,
    point: Value,
    counters: &[(Value, u64)],
) -> FxHashMap<Value, Value> {
    let mut map = FxHashMap::default();
    let many = counters.iter().filter(|&&(_, count)| count > 1).count();
    let points: u64 = counters.iter().map(|&(_, count)| count).product();
    let is_short = many > 1 && i32::try_from(points).is_ok();
    let mut rest = match is_short {
        true => b.cast(Opcode::TruncInt, point, Type::I32),
        false => point,
    };
    let ty = b.ty(rest);
    for (position, &(counter, count)) in counters.iter().enumerate().rev() {
        let is_last = counters[..position].iter().all(|&(_, count)| count == 1);
        let coordinate = match count {
            1 => b.i64(0),
            _ => {
                let mut coordinate = rest;
                if !is_last {
                    let count = b.function.int(ty, i128::from(count));
                    coordinate = b.binary(Opcode::Urem, rest, count);
                    rest = b.binary(Opcode::Udiv, rest, count);
                }
                match is_short {
                    true => b.cast(Opcode::Zext, coordinate, Type::I64),
                    false => coordinate,
                }
            }
        };
        map.insert(counter, coordinate);
    }
    map
}
