//! Loop distribution: may a statement of a loop nest run ahead of the nest, or behind it, in a nest of its own?
//!
//! A statement is a store with the loads that it takes. It may run ahead if nothing that the nest does before one of its executions touches what the statement writes, or writes
//! what it reads; and behind if that is true of all that the nest does afterwards. All executions of it then run as one, in any order, so it must not read what it
//! writes itself, but for the sums that it adds to. Neither is possible if the nest may stop the program: a check that fails
//! would come too late for what it guards.
//!
//! Sums commute: a statement that adds to memory may be moved past others that add to the same memory, if all additions may be reordered or if they are marked so (`reassoc`).

use crate::alias::{Access, Aliases, Footprint};
use crate::behaviour::Behaviours;
use crate::uses::Uses;
use ferrozyme_ir::{
    Effect, Flags, Function, Module, Op, OpView, Opcode, Region, Type, Value, for_each_op,
    returning_ops,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Where a statement is to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Site {
    /// Before its nest.
    Ahead,
    /// After its nest.
    Behind,
}

/// What keeps a statement where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Conflict {
    /// The nest may stop the program.
    MayStop,
    /// An operation that may touch the same memory.
    Memory(Op),
}

/// A statement of a nest.
pub(crate) struct Statement {
    /// The store.
    pub store: Op,
    /// What it writes.
    pub place: Access,
    /// The load of the sum that the store adds to, if it does.
    pub own: Option<Op>,
    /// The other loads.
    pub reads: Vec<Op>,
}

/// Answers whether statements may be distributed, of a function as it stands.
pub(crate) struct Distribution<'a, 'm> {
    aliases: &'a Aliases<'m>,
    behaviours: Behaviours,
    /// The stores that add to memory, and the loads of what they add to, with the type of the sum.
    sums: FxHashMap<Op, Type>,
}

impl<'a, 'm> Distribution<'a, 'm> {
    /// `any_order` says whether all additions may be reordered, or only those that are marked.
    pub(crate) fn new(
        module: &Module,
        aliases: &'a Aliases<'m>,
        any_order: bool,
    ) -> Distribution<'a, 'm> {
        let function = aliases.function();
        let uses = Uses::by(function, returning_ops(function));
        let mut sums = FxHashMap::default();
        for store in returning_ops(function) {
            if let Some(load) = sum_in_memory(aliases, &uses, store, any_order) {
                let ty = function.ty(function.ops[store].value());
                sums.extend([(store, ty), (load, ty)]);
            }
        }
        Distribution {
            aliases,
            behaviours: Behaviours::of(module, function),
            sums,
        }
    }

    /// Whether two operations are parts of sums in memory, of one type.
    pub(crate) fn commute(&self, a: Op, b: Op) -> bool {
        self.sums.contains_key(&a) && self.sums.get(&a) == self.sums.get(&b)
    }

    /// Why the executions of a statement within an execution of a nest may not all run at a site; none if they may.
    ///
    /// Accesses that may meet are shown to `excuse`, which says whether it will see to it when the program runs.
    pub(crate) fn find_conflict(
        &self,
        nest: Op,
        statement: &Statement,
        site: Site,
        excuse: &mut dyn FnMut(&Meeting<'_>) -> bool,
    ) -> Option<Conflict> {
        if self.behaviours.op(nest).stops {
            return Some(Conflict::MayStop);
        }
        let function = self.aliases.function();
        let reads: Vec<(Op, Footprint)> = (statement.reads.iter())
            .map(|&op| (op, self.aliases.reads(op)))
            .collect();
        if let Some((op, _)) = reads.iter().find(|(_, read)| read.elsewhere) {
            return Some(Conflict::Memory(*op));
        }
        let order = |site: Site| Order {
            aliases: self.aliases,
            nest,
            site,
        };
        let mut conflict = None;
        each_op_within(function, nest, &mut |op| {
            if conflict.is_some() || op == statement.store || Some(op) == statement.own {
                return;
            }
            let written = self.aliases.writes(op);
            let place = (statement.store, &statement.place);
            let commutes = statement.own.is_some() && self.commute(op, statement.store);
            let read_there = self.aliases.reads(op);
            let mut crosses = |own: (Op, &Access), other: &Footprint| {
                // The executions of the statement itself are passed in both directions.
                let sites = match statement.reads.contains(&op) {
                    true => &[Site::Ahead, Site::Behind][..],
                    false => &[site],
                };
                let mut sites = sites.iter();
                sites.any(|&site| order(site).crosses(own, op, other, excuse))
            };
            let free = (commutes || !crosses(place, &written) && !crosses(place, &read_there))
                && !reads.iter().any(|(load, read)| {
                    let mut accesses = read.accesses.iter();
                    accesses.any(|access| crosses((*load, access), &written))
                });
            if !free {
                conflict = Some(Conflict::Memory(op));
            }
        });
        conflict
    }
}

/// The load of `store f64 (fadd (load %p), %x), %p`, if nothing else uses it or the sum, and both are aligned: then two such sums
/// either have the same place or nothing in common.
pub(crate) fn sum_in_memory(
    aliases: &Aliases<'_>,
    uses: &Uses,
    store: Op,
    any_order: bool,
) -> Option<Op> {
    let function = aliases.function();
    let OpView::Store { value, align, .. } = function.view(store) else {
        return None;
    };
    let ty = function.ty(value);
    if align.bytes() < ty.bytes() || ty.is_vector() {
        return None;
    }
    let mut sum = value;
    loop {
        uses.only(sum)?;
        if let Some(load) = aliases.load_before(store, sum) {
            return Some(load);
        }
        let (op, _) = function.def_op(sum)?;
        let OpView::Binary(opcode, a, b) = function.view(op) else {
            return None;
        };
        if !any_order && !function.ops[op].flags.contains(Flags::REASSOC) {
            return None;
        }
        sum = match opcode {
            Opcode::Fadd => {
                let is_old = |&value: &Value| aliases.load_before(store, value).is_some();
                [a, b].into_iter().find(is_old).unwrap_or(a)
            }
            Opcode::Fsub => a,
            _ => return None,
        };
    }
}

/// Two accesses of a nest that may meet, though one would be moved past the other.
pub(crate) struct Meeting<'a> {
    /// The one that runs first in the nest.
    pub earlier: (Op, &'a Access),
    pub later: (Op, &'a Access),
}

/// What a statement would be moved past.
struct Order<'a, 'm> {
    aliases: &'a Aliases<'m>,
    nest: Op,
    site: Site,
}

impl Order<'_, '_> {
    /// Whether an access of a statement may touch what another operation touches in an execution that it would be moved past.
    fn crosses(
        &self,
        own: (Op, &Access),
        other: Op,
        footprint: &Footprint,
        excuse: &mut dyn FnMut(&Meeting<'_>) -> bool,
    ) -> bool {
        let aliases = self.aliases;
        (footprint.elsewhere && aliases.is_reachable_from_elsewhere(own.1.root))
            || footprint.accesses.iter().any(|access| {
                let other = (other, access);
                let (earlier, later) = match self.site {
                    Site::Ahead => (other, own),
                    Site::Behind => (own, other),
                };
                aliases.may_share(own.1.root, access.root)
                    && aliases.may_overwrite_within(earlier, later, Some(self.nest), false)
                    && !excuse(&Meeting { earlier, later })
            })
    }
}

/// Visits the operations within a loop, but those of regions that end in a trap.
pub(crate) fn each_op_within(function: &Function, nest: Op, visit: &mut impl FnMut(Op)) {
    let body = function.ops[nest].regions[0];
    for_each_op(function, body, &mut |region, op| {
        if !function.ends_in_trap(region) {
            visit(op);
        }
    });
}

/// Operations in the bodies of these loops, of which the first is around the others, with all operations there that they take, in the order of the text. None if one of these does
/// more than compute and read, or if they take what a loop carries or a region gives. Where an operand is `replaced`, its substitute counts, if there is one.
pub(crate) fn slice_of(
    aliases: &Aliases<'_>,
    ops: &[Op],
    loops: &[Op],
    replaced: &FxHashMap<(Op, usize), Option<Value>>,
) -> Option<Vec<Op>> {
    let (function, structure) = (aliases.function(), aliases.structure());
    let bodies: Vec<Region> = loops.iter().map(|&op| function.ops[op].body()).collect();
    let counters: Vec<Value> = loops.iter().map(|&op| function.counter(op)).collect();
    let mut slice: FxHashSet<Op> = ops.iter().copied().collect();
    let mut pending = ops.to_vec();
    while let Some(op) = pending.pop() {
        for (place, &operand) in function.ops[op].operands.iter().enumerate() {
            let operand = match replaced.get(&(op, place)) {
                Some(Some(substitute)) => *substitute,
                Some(None) => continue,
                None => operand,
            };
            let home = structure.region_of_value(function, operand);
            let inside = home.is_some_and(|home| structure.is_within(home, bodies[0]));
            if !inside || counters.contains(&operand) {
                continue;
            }
            let (made, _) = function.def_op(operand)?;
            let plain = matches!(
                function.ops[made].opcode.effect(),
                Effect::Pure | Effect::Partial | Effect::Read
            );
            if !plain || !home.is_some_and(|home| bodies.contains(&home)) {
                return None;
            }
            if slice.insert(made) {
                pending.push(made);
            }
        }
    }
    let mut slice: Vec<Op> = slice.into_iter().collect();
    slice.sort_by_key(|&op| structure.order(op));
    Some(slice)
}
