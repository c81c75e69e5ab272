//! A group for each row: its items share the loops inside, and add up sums in local memory.
//!
//! ```text
//! %sum = for %j: i64 = 0 to 1000 step 1              %part = for %j: i64 = %item to 1000 step 256
//!     with (%s: f32 = 0.0) { … }              ─▶         with (%s: f32 = 0.0) { … }
//! store f32 %sum, %p                                 ; a tree of additions in local memory gives %sum to all items
//!                                                    if %item == 0 { store f32 %sum, %p }
//! ```
//!
//! If it is not the row that is contiguous in memory but neighbouring rows, as columns of a matrix are, a group has several of them: neighbouring items, its *lanes*, read neighbouring elements then.
//!
//! ```text
//! item = part · 8 + lane,  row = group · 8 + lane     %j from %part by the number of parts; a tree over the parts of each lane
//! ```
//!
//! All items run everything else alike, so what they decide is the same for all, as barriers need it. What writes memory outside of shared loops is done by the first item. Where a stage reads what it writes, barriers
//! stand before and behind each write.

use crate::Abilities;
use crate::items::{EXCHANGING, Items};
use crate::parallel::{
    constant_count, identity, is_pure, reads_from, reductions, root, visit_all, written_roots,
};
use crate::widen::{iterations_at_a_time, widen_loop};
use ferrozyme_ir::{
    Alignment, Builder, Function, IntPredicate, Op, OpView, Opcode, Region, Type, Value,
};
use ferrozyme_opt::Uses;
use rustc_hash::{FxHashMap, FxHashSet};

/// The shortest loop that is worth a group.
const SHORTEST: u64 = 32;
/// With more rows than that, there is enough to do without sharing, unless a row is contiguous in memory.
const MANY: u64 = 8192;
/// The most items of a group that has one row.
const ITEMS: u32 = 256;
/// How many neighbouring rows a group may have, the best first.
const LANES: [u64; 4] = [16, 8, 4, 2];
/// The bytes that memory moves at least. Neighbouring rows fill them, and no more, so that there are many groups.
const SECTOR: u64 = 32;
/// How many iterations of the longest loop an item has at least if the group has several rows.
const SHARE: u64 = 4;
/// Each item's place in local memory for one sum.
const PLACE: usize = 8;
/// The most local memory that a group takes: less than any device has.
const MEMORY: usize = 1 << 15;

/// What the items of a group share.
pub(crate) struct Rows {
    /// The loops, with the operations that combine what they carry, and the loop in each whose iterations are dealt out.
    shared: FxHashMap<Op, (Vec<Opcode>, Op)>,
    /// Whether items take several iterations at a time where that makes wider accesses of them.
    widens: bool,
    /// The items of a group.
    pub(crate) items: u32,
    /// The rows of a group, which are neighbours.
    pub(crate) lanes: u32,
    /// Whether memory is read that is written.
    rereads: bool,
    /// Whether neighbouring items exchange numbers without memory.
    exchanges: bool,
}

/// Decides whether the operations for one point, which has these coordinates, are done by a group.
pub(crate) fn plan_rows(
    function: &Function,
    ops: &[Op],
    independent: &FxHashSet<Op>,
    counters: &[(Value, u64)],
    abilities: &Abilities,
) -> Option<Rows> {
    let points: u64 = counters.iter().map(|&(_, count)| count).product();
    let mut all = Vec::new();
    visit_all(function, ops, &mut |op| all.push(op));
    let mut planner = Planner {
        function,
        uses: Uses::by(function, all),
        independent,
        shared: FxHashMap::default(),
        longest: 0,
        is_contiguous: false,
    };
    planner.find(ops);
    let innermost = counters.iter().rev().find(|&&(_, count)| count > 1);
    let [across, along] = planner.directions(innermost.map(|&(row, _)| row));
    let in_rows = planner.is_contiguous && along.len() >= across.len();
    let pays = planner.longest >= SHORTEST && (points <= MANY || in_rows);
    if !pays || points > u64::from(u32::MAX >> 1) {
        return None;
    }
    let sums = planner.shared.values().map(|(combined, _)| combined.len());
    let places = MEMORY / (PLACE * sums.max().unwrap_or(0).max(1));
    let most = abilities.group.min(places as u32);
    let most = u64::from(previous_power_of_two(most));
    let longest = planner.longest.next_power_of_two();
    let lanes = planner.lanes(ops, counters, abilities).min(most);
    let width = match lanes {
        1 => planner.width(),
        _ => 1,
    };
    let items = match lanes {
        1 => (longest / width).min(u64::from(ITEMS)).min(most),
        _ => lanes * (longest / SHARE).min(most / lanes),
    };
    Some(Rows {
        shared: planner.shared,
        widens: width > 1,
        items: items as u32,
        lanes: lanes as u32,
        rereads: reads_from(function, ops, &written_roots(function, ops)),
        exchanges: abilities.exchange && items >= u64::from(EXCHANGING),
    })
}

fn previous_power_of_two(number: u32) -> u32 {
    1 << number.max(1).ilog2()
}

struct Planner<'f> {
    function: &'f Function,
    uses: Uses,
    independent: &'f FxHashSet<Op>,
    shared: FxHashMap<Op, (Vec<Opcode>, Op)>,
    /// The most iterations that are dealt out.
    longest: u64,
    /// Whether an address in such a loop moves by one element from one iteration to the next.
    is_contiguous: bool,
}

impl Planner<'_> {
    fn find(&mut self, ops: &[Op]) {
        for &op in ops {
            let function = self.function;
            let combined = (self.independent.contains(&op))
                .then(|| reductions(function, &self.uses, op))
                .flatten();
            if let Some(combined) = combined {
                let (dealt, count) = self.longest_of_nest(op);
                self.longest = self.longest.max(count);
                let function = self.function;
                let counter = function.counter(dealt);
                self.is_contiguous |= !contiguous(function, dealt, counter, counter).is_empty();
                self.shared.insert(op, (combined, dealt));
                continue;
            }
            for &region in &function.ops[op].regions {
                self.find(&function.regions[region].ops);
            }
        }
    }

    /// The loop with the most iterations among those of a nest that stand alone in each other.
    fn longest_of_nest(&self, op: Op) -> (Op, u64) {
        let function = self.function;
        let count = constant_count(function, op).unwrap_or(0);
        let ops = &function.regions[function.ops[op].regions[0]].ops;
        let written = written_roots(function, ops);
        let is_light = |op: Op| match function.view(op) {
            OpView::Load { address, .. } => !written.contains(&root(function, address)),
            OpView::Yield { .. } => true,
            _ => is_pure(function, op),
        };
        let mut heavy = ops.iter().copied().filter(|&op| !is_light(op));
        let (Some(only), None) = (heavy.next(), heavy.next()) else {
            return (op, count);
        };
        let passes_on = function.ops[only].opcode == Opcode::For
            && self.independent.contains(&only)
            && function.carried(only).len() == function.carried(op).len();
        if !passes_on {
            return (op, count);
        }
        let (inner, inner_count) = self.longest_of_nest(only);
        if inner_count > count {
            (inner, inner_count)
        } else {
            (op, count)
        }
    }

    /// How many iterations of the longest loop an item takes at a time: several if enough items have something to do.
    fn width(&self) -> u64 {
        let function = self.function;
        let dealt = self.shared.values().map(|&(_, dealt)| dealt);
        let longest = dealt.filter(|&dealt| constant_count(function, dealt) == Some(self.longest));
        let width = longest
            .map(|dealt| iterations_at_a_time(function, dealt))
            .max();
        match width {
            Some(width) if self.longest / width >= u64::from(EXCHANGING) => width,
            _ => 1,
        }
    }

    /// How many bytes addresses in shared loops move by that go from element to element from row to row, and those that do so within rows. What all rows read alike counts for neither.
    fn directions(&self, row: Option<Value>) -> [Vec<u64>; 2] {
        let (mut across, mut along) = (Vec::new(), Vec::new());
        let Some(row) = row else {
            return [across, along];
        };
        for &(_, dealt) in self.shared.values() {
            let counter = self.function.counter(dealt);
            across.extend(contiguous(self.function, dealt, row, counter));
            along.extend(contiguous(self.function, dealt, counter, row));
        }
        [across, along]
    }

    /// How many neighbouring rows a group has: several if more addresses move by one element from row to row than within rows, and if nothing that a row decides stands around a barrier. What all rows read alike is no reason for one or the other.
    fn lanes(&self, ops: &[Op], counters: &[(Value, u64)], abilities: &Abilities) -> u64 {
        let innermost = counters.iter().rev().find(|&&(_, count)| count > 1);
        let Some(&(row, count)) = innermost else {
            return 1;
        };
        let [across, along] = self.directions(Some(row));
        if across.len() <= along.len() || !self.is_uniform(ops) {
            return 1;
        }
        let points: u64 = counters.iter().map(|&(_, count)| count).product();
        let narrowest = across.into_iter().min().unwrap_or(SECTOR);
        let is_good = |&lanes: &u64| {
            // Measured on an H200: sixteen gain only where all units are busy with what is left.
            let enough = match lanes {
                16 => u64::from(abilities.units) * 3 / 2,
                _ => u64::from(abilities.units) / 2,
            };
            let fits = count % lanes == 0 && lanes * narrowest <= SECTOR;
            fits && (lanes == 2 || points / lanes >= enough)
        };
        LANES.into_iter().find(is_good).unwrap_or(1)
    }

    /// Whether every row runs the same operations in the same order, but for those in shared loops.
    fn is_uniform(&self, ops: &[Op]) -> bool {
        let function = self.function;
        ops.iter().all(|op| {
            let regions = &function.ops[*op].regions;
            let mut inner = regions.iter().map(|&region| &function.regions[region].ops);
            self.shared.contains_key(op)
                || regions.is_empty()
                || (constant_count(function, *op).is_some()
                    && inner.all(|ops| self.is_uniform(ops)))
        })
    }
}

/// The bytes of the elements that a loop touches at addresses which move by one element with a counter and depend on another value.
fn contiguous(function: &Function, dealt: Op, counter: Value, on: Value) -> Vec<u64> {
    let mut found = Vec::new();
    visit_all(function, &[dealt], &mut |op| {
        let (address, ty) = match function.view(op) {
            OpView::Load { address, .. } => (address, function.ty(function.result(op))),
            OpView::Store { value, address, .. } => (address, function.ty(value)),
            _ => return,
        };
        if let Some(OpView::Offset { index, .. }) = function.definition(address)
            && mostly_counts_by_one(function, index, counter)
            && depends(function, index, on)
        {
            found.push(ty.bytes());
        }
    });
    found
}

/// Whether pure operations make a value of another one.
fn depends(function: &Function, value: Value, on: Value) -> bool {
    let mut waiting = vec![value];
    let mut seen = FxHashSet::default();
    while let Some(value) = waiting.pop() {
        if value == on {
            return true;
        }
        if let Some((op, _)) = function.def_op(value)
            && is_pure(function, op)
            && seen.insert(op)
        {
            waiting.extend(&function.ops[op].operands);
        }
    }
    false
}

/// Whether an index is a counter plus something else, or what is left of that behind whole rows.
fn mostly_counts_by_one(function: &Function, index: Value, counter: Value) -> bool {
    index == counter
        || match function.definition(index) {
            Some(OpView::Binary(Opcode::Add, a, b)) => {
                mostly_counts_by_one(function, a, counter)
                    || mostly_counts_by_one(function, b, counter)
            }
            Some(OpView::Binary(Opcode::Urem, a, _)) => mostly_counts_by_one(function, a, counter),
            _ => false,
        }
}

/// The place of an item in its group: which part of its row it has, and which of the group's rows that is.
#[derive(Clone, Copy)]
pub(crate) struct Seat {
    item: Value,
    part: Value,
    lane: Option<Value>,
}

impl Rows {
    /// Appends the item's place in its group, and the number of its row, to the body of a kernel.
    pub(crate) fn seat(&self, b: &mut Builder<'_>, items: Items) -> (Seat, Value) {
        let (group, item) = (items.group(b), items.item_below(b, u64::from(self.items)));
        if self.lanes == 1 {
            let (part, lane) = (item, None);
            return (Seat { item, part, lane }, group);
        }
        let lanes = b.i64(i64::from(self.lanes));
        let part = b.binary(Opcode::Udiv, item, lanes);
        let lane = b.binary(Opcode::Urem, item, lanes);
        let first = b.binary(Opcode::Mul, group, lanes);
        let row = b.binary(Opcode::Add, first, lane);
        let lane = Some(lane);
        (Seat { item, part, lane }, row)
    }

    /// How many items have a part of each row.
    fn parts(&self) -> u32 {
        self.items / self.lanes
    }
}

/// Appends the operations for one row to the body of a kernel, shared by the items of a group. Returns how much local memory that takes.
pub(crate) fn share_rows(
    function: &mut Function,
    ops: Vec<Op>,
    rows: &Rows,
    items: Items,
    seat: Seat,
) -> usize {
    let carried = rows.shared.values().map(|(combined, _)| combined.len());
    let local = carried.max().unwrap_or(0) * PLACE * rows.items as usize;
    let body = function.body();
    let mut b = Builder::at_body(function);
    let memory = match local {
        0 => None,
        _ => Some(items.local(&mut b, local)),
    };
    let mut sharer = Sharer {
        rows,
        items,
        seat,
        memory,
        totals: FxHashMap::default(),
    };
    sharer.fill(function, body, ops);
    Builder::at_body(function).ret(&[]);
    function.replace_operands(&sharer.totals);
    local
}

struct Sharer<'r> {
    rows: &'r Rows,
    items: Items,
    seat: Seat,
    /// The local memory, if there is any.
    memory: Option<Value>,
    /// What becomes of the results of shared loops.
    totals: FxHashMap<Value, Value>,
}

impl Sharer<'_> {
    /// Appends operations to a region.
    fn fill(&mut self, function: &mut Function, region: Region, ops: Vec<Op>) {
        for op in ops {
            let opcode = function.ops[op].opcode;
            if self.rows.shared.contains_key(&op) {
                self.share(&mut Builder::new(function, region), op);
            } else if matches!(
                opcode,
                Opcode::Store | Opcode::AtomicAdd | Opcode::Copy | Opcode::Move | Opcode::Fill
            ) {
                self.by_first_item(&mut Builder::new(function, region), op);
            } else {
                for inner in function.ops[op].regions.clone() {
                    let ops = std::mem::take(&mut function.regions[inner].ops);
                    self.fill(function, inner, ops);
                }
                Builder::new(function, region).insert(op);
            }
        }
    }

    fn wait_if_reread(&self, b: &mut Builder<'_>) {
        if self.rows.rereads {
            self.items.barrier(b);
        }
    }

    fn by_first_item(&mut self, b: &mut Builder<'_>, op: Op) {
        self.wait_if_reread(b);
        let zero = b.i64(0);
        let is_first = b.icmp(IntPredicate::Eq, self.seat.part, zero);
        let (_, then, otherwise) = b.if_else(is_first, &[]);
        b.inside(then, |b| {
            b.insert(op);
            b.yields(&[]);
        });
        b.inside(otherwise, |b| b.yields(&[]));
        self.wait_if_reread(b);
    }

    fn share(&mut self, b: &mut Builder<'_>, op: Op) {
        let (combined, dealt) = &self.rows.shared[&op];
        self.wait_if_reread(b);
        let width = match self.rows.widens {
            true => iterations_at_a_time(b.function, *dealt),
            false => 1,
        };
        let stride = u64::from(self.rows.parts()) * width;
        let step = b.i64(stride as i64);
        let mut first = self.seat.part;
        if width > 1 {
            let width_value = b.i64(width as i64);
            first = b.binary(Opcode::Mul, first, width_value);
            widen_loop(b.function, *dealt, width);
        }
        // Counted as long as the loop begins at zero.
        let once = *dealt == op && constant_count(b.function, op) == Some(stride);
        let operands = &mut b.function.ops[*dealt].operands;
        (operands[0], operands[2]) = (first, step);
        let results = b.function.ops[op].results.to_vec();
        let initial = b.function.ops[op].operands[3..].to_vec();
        let types: Vec<Type> = results.iter().map(|&value| b.ty(value)).collect();
        let neutral = combined.iter().zip(&types);
        let neutral: Vec<Value> = neutral
            .map(|(&opcode, &ty)| identity(b.function, opcode, ty))
            .collect();
        let parts = if once {
            iterate_once(b, op, first, &neutral)
        } else {
            let mut data = b.function.ops[op].clone();
            data.results.clear();
            data.operands[3..].copy_from_slice(&neutral);
            let part = b.function.new_op(data, &types);
            b.insert(part);
            b.function.ops[part].results.to_vec()
        };
        self.wait_if_reread(b);
        if let (Some(memory), false) = (self.memory, parts.is_empty()) {
            let sums = self.add_up(b, memory, &parts, combined);
            for (((&result, &first), sum), &opcode) in
                results.iter().zip(&initial).zip(sums).zip(combined)
            {
                let total = b.binary(opcode, first, sum);
                self.totals.insert(result, total);
            }
        }
    }

    /// Combines what each item has; all items get the results.
    fn add_up(
        &self,
        b: &mut Builder<'_>,
        memory: Value,
        parts: &[Value],
        combined: &[Opcode],
    ) -> Vec<Value> {
        let is_exchanged = |&part: &Value| matches!(b.ty(part), Type::F32 | Type::I32);
        if self.rows.exchanges && parts.iter().all(is_exchanged) {
            return self.exchange(b, memory, parts, combined);
        }
        let count = self.rows.items as usize;
        let place = |b: &mut Builder<'_>, position: usize, item: Value| {
            let base = b.offset_bytes(memory, (position * PLACE * count) as i64);
            b.offset(base, item, PLACE as i64)
        };
        for (position, &part) in parts.iter().enumerate() {
            let at = place(b, position, self.seat.item);
            let align = Alignment::natural(b.ty(part));
            b.store(part, at, align);
        }
        self.items.barrier(b);
        let (lanes, mut half) = (self.rows.lanes as usize, self.rows.parts() as usize / 2);
        while half > 0 {
            let limit = b.i64(half as i64);
            let adds = b.icmp(IntPredicate::Ult, self.seat.part, limit);
            let (_, then, otherwise) = b.if_else(adds, &[]);
            b.inside(then, |b| {
                for (position, (&part, &opcode)) in parts.iter().zip(combined).enumerate() {
                    let ty = b.ty(part);
                    let align = Alignment::natural(ty);
                    let at = place(b, position, self.seat.item);
                    let other = b.offset_bytes(at, (half * lanes * PLACE) as i64);
                    let (own, other) = (b.load(ty, at, align), b.load(ty, other, align));
                    let sum = b.binary(opcode, own, other);
                    b.store(sum, at, align);
                }
                b.yields(&[]);
            });
            b.inside(otherwise, |b| b.yields(&[]));
            self.items.barrier(b);
            half /= 2;
        }
        let first = self.seat.lane.unwrap_or_else(|| b.i64(0));
        let mut sums = Vec::new();
        for (position, &part) in parts.iter().enumerate() {
            let at = place(b, position, first);
            let ty = b.ty(part);
            sums.push(b.load(ty, at, Alignment::natural(ty)));
        }
        // The memory serves the next loop.
        self.items.barrier(b);
        sums
    }
    /// As [`add_up`](Self::add_up), for numbers that neighbours exchange: all items of a team, which can exchange, combine what they have; then each item combines what the teams have left in local memory.
    fn exchange(
        &self,
        b: &mut Builder<'_>,
        memory: Value,
        parts: &[Value],
        combined: &[Opcode],
    ) -> Vec<Value> {
        let (items, lanes) = (self.rows.items, self.rows.lanes);
        let mut own = parts.to_vec();
        let mut distance = EXCHANGING / 2;
        while distance >= lanes {
            for (own, &opcode) in own.iter_mut().zip(combined) {
                let other = self.items.exchange(b, *own, distance);
                let other = other.expect("the caller looked at the types");
                *own = b.binary(opcode, *own, other);
            }
            distance /= 2;
        }
        let teams = items / EXCHANGING;
        if teams == 1 {
            return own;
        }
        // One number for each lane, team and sum.
        let place = |position: u32, team: u32| ((position * teams + team) * lanes) as i64;
        let size = b.i64(i64::from(EXCHANGING));
        let team = b.binary(Opcode::Udiv, self.seat.item, size);
        let within = b.binary(Opcode::Urem, self.seat.item, size);
        let end = b.i64(i64::from(lanes));
        let leads = b.icmp(IntPredicate::Ult, within, end);
        let (_, then, otherwise) = b.if_else(leads, &[]);
        b.inside(then, |b| {
            let row = b.binary(Opcode::Mul, team, end);
            let own_place = b.binary(Opcode::Add, row, within);
            for (position, &own) in (0..).zip(&own) {
                let at = b.offset(memory, own_place, 4);
                let at = b.offset_bytes(at, 4 * place(position, 0));
                let align = Alignment::natural(b.ty(own));
                b.store(own, at, align);
            }
            b.yields(&[]);
        });
        b.inside(otherwise, |b| b.yields(&[]));
        self.items.barrier(b);
        let lane = self.seat.lane.unwrap_or_else(|| b.i64(0));
        let mut sums = Vec::new();
        for (position, (&own, &opcode)) in (0..).zip(own.iter().zip(combined)) {
            let ty = b.ty(own);
            let mut sum: Option<Value> = None;
            for team in 0..teams {
                let at = b.offset(memory, lane, 4);
                let at = b.offset_bytes(at, 4 * place(position, team));
                let other = b.load(ty, at, Alignment::natural(ty));
                sum = Some(match sum {
                    Some(sum) => b.binary(opcode, sum, other),
                    None => other,
                });
            }
            sums.extend(sum);
        }
        // The memory serves the next loop.
        self.items.barrier(b);
        sums
    }
}

/// Appends the body of a loop of which each item runs one iteration; returns what that passes on. What the loops before it have loaded is then loaded no more.
fn iterate_once(b: &mut Builder<'_>, op: Op, counter: Value, carried: &[Value]) -> Vec<Value> {
    let body = b.function.ops[op].regions[0];
    let arguments = b.function.regions[body].args.clone();
    let mut ops = std::mem::take(&mut b.function.regions[body].ops);
    let end = ops.pop().expect("a body ends with what it passes on");
    ops.into_iter().for_each(|op| b.insert(op));
    let values = std::iter::once(counter).chain(carried.iter().copied());
    let known: FxHashMap<Value, Value> = arguments.into_iter().zip(values).collect();
    let passed = b.function.ops[end].operands.iter();
    let passed = passed.map(|value| known.get(value).copied().unwrap_or(*value));
    let passed = passed.collect();
    b.function.replace_operands(&known);
    passed
}
