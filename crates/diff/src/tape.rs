//! Where the forward sweep keeps what the caching plan says is to be saved, and the code that keeps it there.
//!
//! - A value outside loops stays a value. Out of a branch it comes as one more result of the `if`.
//! - A value in a nest of counted loops whose trip counts are known before the nest goes into an array with one element for each
//!   iteration; all arrays that one loop needs are one allocation before the outermost loop of the nest. A loop in a branch runs as often as its bounds say only where the
//!   branch is taken: what is asked must be known before the nest as well, and makes the trip count 0 where the branch is not.
//! - Where the trip counts of such a nest depend on the counter of the counted loop around it (a triangle), the rows lie one behind
//!   the other in one allocation; a loop before adds up how many there will be.
//! - A value in a general loop goes into a buffer of records, one for each iteration, which doubles when it is full.
//! - A range of memory is copied behind the nest that reads it.
//!
//! The addresses of these arrays and buffers are values of the region around the nest, and are saved in the same way
//! if that region itself lies in a loop. So everything the reverse sweep needs can be found from outside to inside.
//!
//! ```text
//! for %i = 0 to %n step 1 {           %tape = alloc (8·%n)
//!   %x = load f64 %p              →   for %i = 0 to %n step 1 {
//!   …                                   %x = load f64 %p
//! }                                     store %x, %tape + 8·%i
//! ```

use crate::at_once::AtOnce;
use crate::augment::Augmented;
use crate::plan::{Decision, Plan, RangePlan};
use ferrozyme_ir::{
    Alignment, Builder, Effect, Function, IntPredicate, Op, Opcode, Region, Structure, Type, Value,
    ValueDef, all_ops,
};
use ferrozyme_opt::build_trip_count;
use rustc_hash::{FxHashMap, FxHashSet};

/// Where the saved values are.
#[derive(Default)]
pub(crate) struct Tape {
    /// What each loop saves in each of its iterations.
    pub loops: FxHashMap<Op, LoopStorage>,
    /// For values in branches outside of loops: the value of the body that they come out as.
    pub exports: FxHashMap<Value, Value>,
    /// For each range of the plan that is used: where its copy is.
    pub ranges: FxHashMap<u32, SavedRange>,
    /// What is to be released when the reverse of a loop is done.
    pub released_after: FxHashMap<Op, Vec<Value>>,
    /// Values of the body that the reverse sweep reads.
    pub kept: Vec<Value>,
    /// For each loop: what is saved in rows of different lengths within it, by the loop that saves it.
    pub rows: FxHashMap<Op, Vec<Op>>,
}

/// What one loop saves in each iteration.
#[derive(Clone)]
pub(crate) struct LoopStorage {
    /// The counted loops over which the array extends, outermost first, this loop last; only this one for a general loop.
    pub nest: Vec<Op>,
    /// Where it is: a value around the nest.
    pub memory: Value,
    /// The trip counts of the nest's loops but the first: values around the nest.
    pub extents: Vec<Value>,
    /// How many elements each array has, if there is more than one array or the rows differ in length.
    pub total: Option<Value>,
    /// The loop around the nest in which the rows differ in length, if they do.
    pub rows: Option<Op>,
    /// What is saved, and where: in a record, its offset; otherwise, bytes per iteration of the arrays before its own.
    pub slots: FxHashMap<Value, u64>,
    /// Bytes of one record; 0 if each value has an array of its own.
    pub record: u64,
}

impl LoopStorage {
    /// The address of a saved value of the iteration with this index.
    pub(crate) fn address(
        &self,
        b: &mut Builder<'_>,
        value: Value,
        ty: Type,
        memory: Value,
        index: Value,
        total: Option<Value>,
    ) -> Value {
        let offset = self.slots[&value] as i64;
        if self.record > 0 {
            let record = b.offset(memory, index, self.record as i64);
            return match offset {
                0 => record,
                _ => b.offset_bytes(record, offset),
            };
        }
        let array = match total {
            Some(total) if offset > 0 => b.offset(memory, total, offset),
            _ => memory,
        };
        b.offset(array, index, ty.bytes() as i64)
    }
}

/// A counted loop over which an array extends.
struct NestLoop {
    op: Op,
    /// What must hold in the loop around it, within the nest, for it to be met at all.
    conditions: Vec<Condition>,
}

impl NestLoop {
    fn new(op: Op) -> NestLoop {
        NestLoop {
            op,
            conditions: Vec::new(),
        }
    }
}

/// The condition of a branch.
#[derive(Clone, Copy)]
struct Condition {
    value: Value,
    /// Whether the branch is taken where the value is true.
    holds: bool,
}

/// The bounds of a loop of a nest, and under which conditions it is met.
pub(crate) struct Bounds {
    /// From, to, step.
    values: [Value; 3],
    conditions: Vec<Condition>,
}

impl Bounds {
    /// Those of a loop that is met in any case.
    pub(crate) fn unconditional(values: [Value; 3]) -> Bounds {
        Bounds {
            values,
            conditions: Vec::new(),
        }
    }
}

/// Where each value stands behind those before it.
fn slots_of(values: &[Value], widths: &[u64]) -> FxHashMap<Value, u64> {
    let mut end = 0;
    let mut slots = FxHashMap::default();
    for (&value, &width) in values.iter().zip(widths) {
        slots.insert(value, end);
        end += width;
    }
    slots
}

/// A saved range of memory.
#[derive(Clone, Copy)]
pub(crate) struct SavedRange {
    /// What the root pointer becomes so that the same offsets lead into the copy.
    pub root: Value,
}

/// Adds to a forward sweep the code that saves what the plan says.
pub(crate) fn save(augmented: &mut Augmented, plan: &Plan, combined: bool) -> Tape {
    let structure = Structure::of(&augmented.function);
    let mut saver = Saver {
        function: &mut augmented.function,
        trips: &augmented.trips,
        structure,
        is_kept: FxHashSet::default(),
        groups: FxHashMap::default(),
        before: FxHashMap::default(),
        after: FxHashMap::default(),
        start: FxHashMap::default(),
        new_values: FxHashMap::default(),
        numbers: FxHashMap::default(),
        at_once: &plan.at_once,
        combined,
        tape: Tape::default(),
    };
    saver.collect(plan);
    saver.save_ranges(plan);
    saver.save_loops();
    saver.splice();
    saver.tape
}

/// From how deep a chain of operations a bound is computed ahead of its loop.
const MAX_BOUND_OPERATIONS: usize = 6;

/// How often a counted loop runs, as an `i64` of at least 0.
pub(crate) fn trip_count(b: &mut Builder<'_>, from: Value, to: Value, step: Value) -> Value {
    if let Some(step) = b.function.int_of(step)
        && let Some(count) = build_trip_count(b, from, to, step)
    {
        return count;
    }
    // Only the run knows which way the loop counts: (to - from) / step, rounded away from zero, or 0.
    let (from, to, step) = (widen(b, from), widen(b, to), widen(b, step));
    let (zero, one, minus_one) = (b.i64(0), b.i64(1), b.i64(-1));
    let upward = b.icmp(IntPredicate::Sgt, step, zero);
    let sign = b.select(upward, one, minus_one);
    let distance = b.binary(Opcode::Sub, to, from);
    let toward = b.binary(Opcode::Sub, step, sign);
    let rounded = b.binary(Opcode::Add, distance, toward);
    let count = b.binary(Opcode::Sdiv, rounded, step);
    b.binary(Opcode::Smax, count, zero)
}

/// A count or counter as an `i64`.
fn widen(b: &mut Builder<'_>, value: Value) -> Value {
    if let Some(number) = b.function.int_of(value) {
        return b.function.int(Type::I64, number);
    }
    match b.ty(value) {
        Type::I64 => value,
        ty if ty.scalar().bits() < 64 => b.cast(Opcode::Sext, value, Type::I64),
        _ => b.cast(Opcode::TruncInt, value, Type::I64),
    }
}

struct Saver<'a> {
    function: &'a mut Function,
    trips: &'a FxHashMap<Op, crate::augment::Trips>,
    structure: Structure,
    /// The values in [`Tape::kept`].
    is_kept: FxHashSet<Value>,
    /// What each loop has to save.
    groups: FxHashMap<Op, Vec<Value>>,
    /// Code to be put before and behind operations and at the start of regions, as regions that nobody holds.
    before: FxHashMap<Op, Region>,
    after: FxHashMap<Op, Region>,
    start: FxHashMap<Region, Region>,
    /// For each new value that is to be saved: the region that it will belong to, and the inserted code that makes it.
    new_values: FxHashMap<Value, (Region, Region)>,
    /// The number of the iteration in each loop.
    numbers: FxHashMap<Op, Value>,
    at_once: &'a AtOnce,
    /// Whether both sweeps are one function.
    combined: bool,
    tape: Tape,
}

impl Saver<'_> {
    fn region_of(&self, value: Value) -> Region {
        if let Some(&(region, _)) = self.new_values.get(&value) {
            return region;
        }
        self.structure
            .region_of_value(self.function, value)
            .expect("a saved value has a place")
    }

    fn collect(&mut self, plan: &Plan) {
        let mut values = Vec::new();
        let function = &*self.function;
        let mut add = |value: Value| {
            if plan.decisions[value] == Decision::Save {
                values.push(value);
            }
        };
        for op in all_ops(function) {
            function.ops[op].results.iter().copied().for_each(&mut add);
            for &region in &function.ops[op].regions {
                let args = function.regions[region].args.iter().copied();
                args.for_each(&mut add);
            }
        }
        for value in values {
            self.convey(value);
        }
    }

    /// Sees to it that the reverse sweep finds a value in the reverse of its region.
    fn convey(&mut self, value: Value) {
        if self.function.is_constant(value) {
            return;
        }
        let region = self.region_of(value);
        match self.saving_loop(region) {
            Some(around) => self.groups.entry(around).or_default().push(value),
            None => self.export(value, region),
        }
    }

    /// Whether the reverse sweep of a region follows its forward sweep in the same place, so that nothing has to be kept for it.
    fn is_complete(&self, region: Region) -> bool {
        self.at_once
            .is_complete(self.structure.op_of(region), self.combined)
    }

    /// The innermost loop around a region that is reversed later.
    fn saving_loop(&self, region: Region) -> Option<Op> {
        let mut region = region;
        while !self.is_complete(region) {
            let op = self.structure.op_of(region)?;
            if matches!(self.function.ops[op].opcode, Opcode::For | Opcode::Loop) {
                return Some(op);
            }
            region = self.structure.region_of(op)?;
        }
        None
    }

    /// Brings a value out of the branches around it, as far as needed.
    fn export(&mut self, value: Value, region: Region) {
        let body = self.function.body();
        let (mut inner, mut region) = (value, region);
        while region != body && !self.is_complete(region) {
            let op = self
                .structure
                .op_of(region)
                .expect("only the body is held by nothing");
            let ty = self.function.ty(value);
            // Any value will do where the branch is not taken, but it must be one that can be stored and read back.
            let other = self.function.zero(ty);
            for branch in self.function.ops[op].regions.clone() {
                let terminator = self.function.terminator(branch);
                if self.function.ops[terminator].opcode != Opcode::Trap {
                    let yielded = if branch == region { inner } else { other };
                    self.function.ops[terminator].operands.push(yielded);
                }
            }
            inner = self.function.add_result(op, ty);
            region = self
                .structure
                .region_of(op)
                .expect("the operation stands in a region");
        }
        if inner != value {
            self.tape.exports.insert(value, inner);
        }
        let is_parameter = matches!(self.function.values[inner].def, ValueDef::Argument { .. });
        if region == body && !is_parameter && self.is_kept.insert(inner) {
            self.tape.kept.push(inner);
        }
    }

    /// A builder for code that goes to a place.
    fn at<K: std::hash::Hash + Eq>(
        function: &mut Function,
        places: &mut FxHashMap<K, Region>,
        place: K,
    ) -> Region {
        *places
            .entry(place)
            .or_insert_with(|| function.new_region(&[]))
    }

    /// Builds code before an operation.
    fn build_before<R>(&mut self, op: Op, build: impl FnOnce(&mut Builder<'_>) -> R) -> R {
        let region = Self::at(self.function, &mut self.before, op);
        let mut b = Builder::new(self.function, region);
        b.location = b.function.ops[op].location;
        build(&mut b)
    }

    fn build_after<R>(&mut self, op: Op, build: impl FnOnce(&mut Builder<'_>) -> R) -> R {
        let region = Self::at(self.function, &mut self.after, op);
        let mut b = Builder::new(self.function, region);
        b.location = b.function.ops[op].location;
        build(&mut b)
    }

    fn build_at_start<R>(&mut self, body: Region, build: impl FnOnce(&mut Builder<'_>) -> R) -> R {
        let region = Self::at(self.function, &mut self.start, body);
        build(&mut Builder::new(self.function, region))
    }

    /// Saves a value that inserted code makes beside an operation.
    fn convey_new(&mut self, value: Value, op: Op, code: Region) {
        let region = self
            .structure
            .region_of(op)
            .expect("the operation stands in a region");
        self.new_values.insert(value, (region, code));
        self.convey(value);
    }

    // ---- ranges

    fn save_ranges(&mut self, plan: &Plan) {
        for (index, range) in plan.ranges.iter().enumerate() {
            if range.used {
                self.save_range(index as u32, range);
            }
        }
    }

    fn save_range(&mut self, index: u32, range: &RangePlan) {
        let (copy, root) = self.build_after(range.nest, |b| {
            let zero = b.i64(0);
            let start = range
                .start
                .emit(b)
                .expect("the plan takes only what can be built");
            let bytes = range
                .bytes
                .emit(b)
                .expect("the plan takes only what can be built");
            // The range is that of a nest in which every loop runs; otherwise nothing was read.
            let mut size = bytes;
            for guard in &range.guards {
                let guard = guard
                    .emit(b)
                    .expect("the plan takes only what can be built");
                let runs = b.icmp(IntPredicate::Sgt, guard, zero);
                size = b.select(runs, size, zero);
            }
            let copy = b.alloc(size, Alignment::new(16).expect("a power of two"), false);
            b.function.set_name(copy, "range");
            let source = if b.function.int_of(start) == Some(0) {
                range.root
            } else {
                b.offset(range.root, start, 1)
            };
            b.copy(copy, source, size, Alignment::ONE);
            let root = if b.function.int_of(start) == Some(0) {
                copy
            } else {
                b.offset(copy, start, -1)
            };
            (copy, root)
        });
        let code = self.after[&range.nest];
        self.convey_new(copy, range.nest, code);
        if root != copy {
            self.convey_new(root, range.nest, code);
        }
        self.tape.ranges.insert(index, SavedRange { root });
        self.tape
            .released_after
            .entry(range.nest)
            .or_default()
            .push(copy);
    }

    // ---- loops

    /// Saves what each loop has to save, inner loops first: their arrays are values that outer loops have to save.
    fn save_loops(&mut self) {
        let mut loops: Vec<Op> = all_ops(self.function)
            .into_iter()
            .filter(|&op| matches!(self.function.ops[op].opcode, Opcode::For | Opcode::Loop))
            .collect();
        loops.sort_by_key(|&op| {
            std::cmp::Reverse(self.structure.depth(self.function.ops[op].regions[0]))
        });
        for op in loops {
            if let Some(mut values) = self.groups.remove(&op) {
                // Wide elements first, so that each array is aligned for its type.
                values.sort_by_key(|&value| {
                    std::cmp::Reverse(self.function.ty(value).scalar().bytes())
                });
                values.dedup();
                match self.function.ops[op].opcode {
                    Opcode::For => self.save_in_arrays(op, &values),
                    _ => self.save_in_records(op, &values),
                }
            }
        }
    }

    /// The loops from the outermost down to `op` over which an array can extend: counted, with bounds known before
    /// the first, and so are the conditions of the branches in between.
    fn nest_of(&self, op: Op) -> Vec<NestLoop> {
        let mut nest = vec![NestLoop::new(op)];
        while let Some((outer, conditions)) = self.surrounding_loop(nest[0].op) {
            if self.function.ops[outer].opcode != Opcode::For {
                break;
            }
            let body = self.function.ops[outer].regions[0];
            nest[0].conditions = conditions;
            let mut known = nest.iter().flat_map(|inner| {
                let conditions = inner.conditions.iter().map(|condition| condition.value);
                self.bounds(inner.op).into_iter().chain(conditions)
            });
            let known_before = known.all(|value| {
                self.structure
                    .region_of_value(self.function, value)
                    .is_none_or(|region| !self.structure.is_within(region, body))
            });
            if !known_before {
                nest[0].conditions = Vec::new();
                break;
            }
            nest.insert(0, NestLoop::new(outer));
        }
        nest
    }

    /// The innermost loop around a loop that is reversed later, with the conditions under which control comes from there to here; none if nothing tells them.
    fn surrounding_loop(&self, op: Op) -> Option<(Op, Vec<Condition>)> {
        let mut conditions = Vec::new();
        let mut region = self.structure.region_of(op)?;
        while !self.is_complete(region) {
            let holder = self.structure.op_of(region)?;
            if matches!(self.function.ops[holder].opcode, Opcode::For | Opcode::Loop) {
                return Some((holder, conditions));
            }
            conditions.extend(self.condition_of(holder, region)?);
            region = self.structure.region_of(holder)?;
        }
        None
    }

    /// What must hold for a branch to be taken: nothing if all others stop the program. None if it is no simple condition.
    #[allow(clippy::option_option, reason = "there may be nothing that must hold")]
    fn condition_of(&self, holder: Op, branch: Region) -> Option<Option<Condition>> {
        let data = &self.function.ops[holder];
        let mut others = data.regions.iter().filter(|&&other| other != branch);
        if others.all(|&other| self.function.ends_in_trap(other)) {
            return Some(None);
        }
        (data.opcode == Opcode::If).then(|| {
            Some(Condition {
                value: data.operands[0],
                holds: data.regions[0] == branch,
            })
        })
    }

    fn bounds(&self, op: Op) -> [Value; 3] {
        let operands = &self.function.ops[op].operands;
        [operands[0], operands[1], operands[2]]
    }

    /// The number of the present iteration of a loop, from 0 on.
    fn number(&mut self, op: Op) -> Value {
        if let Some(&number) = self.numbers.get(&op) {
            return number;
        }
        let number = match self.function.ops[op].opcode {
            Opcode::For => {
                let [from, _, step] = self.bounds(op);
                let body = self.function.ops[op].regions[0];
                let counter = self.function.regions[body].args[0];
                self.build_at_start(body, |b| iteration_number(b, counter, from, step))
            }
            _ => self.trips[&op].number,
        };
        self.numbers.insert(op, number);
        number
    }

    fn save_in_arrays(&mut self, op: Op, values: &[Value]) {
        let nest = self.nest_of(op);
        let mut bounds: Vec<Bounds> = nest
            .iter()
            .map(|part| Bounds {
                values: self.bounds(part.op),
                conditions: part.conditions.clone(),
            })
            .collect();
        let nest: Vec<Op> = nest.into_iter().map(|part| part.op).collect();
        let widths: Vec<u64> = values
            .iter()
            .map(|&v| self.function.ty(v).bytes())
            .collect();
        // Values of one type get an array each, which is what vector units like. Values of different types are kept as
        // records, so that it can still be told what each byte is when this code is differentiated again.
        let scalar = self.function.ty(values[0]).scalar();
        let uniform = values
            .iter()
            .all(|&v| self.function.ty(v).scalar() == scalar);
        let sum: u64 = widths.iter().sum();
        let record = if uniform {
            sum
        } else {
            sum.next_multiple_of(8)
        };
        let rows = self.rows_around(nest[0], &bounds);
        // What is differentiated at once can use the same memory in each iteration.
        let shared = match rows {
            Some(_) => nest[0],
            None => self.outermost_sharing(nest[0], &mut bounds),
        };
        let (counts, row) = self.build_before(shared, |b| count_elements(b, &bounds));
        let outermost = rows.unwrap_or(shared);
        let total = match rows {
            Some(around) => self.count_rows(around, &bounds),
            None => row,
        };
        let memory = self.build_before(outermost, |b| {
            let width = b.i64(record as i64);
            let bytes = limited_product(b, total, width);
            let memory = b.alloc(bytes, Alignment::new(16).expect("a power of two"), false);
            b.function.set_name(memory, "saved");
            memory
        });
        let storage = LoopStorage {
            memory,
            extents: counts[1..].to_vec(),
            total: (rows.is_some() || uniform && values.len() > 1).then_some(total),
            rows,
            slots: slots_of(values, &widths),
            record: if uniform { 0 } else { record },
            nest,
        };
        let numbers: Vec<Value> = storage.nest.iter().map(|&op| self.number(op)).collect();
        let body = self.function.ops[op].regions[0];
        let mut index = self.build_at_start(body, |b| linear_index(b, &numbers, &storage.extents));
        if let Some(around) = rows {
            let start = self.carry_row_start(around, storage.nest[0], row);
            index = self.build_at_start(body, |b| b.binary(Opcode::Add, start, index));
            self.tape.rows.entry(around).or_default().push(op);
        }
        for &value in values {
            self.build_behind_definition(value, |b| {
                let ty = b.ty(value);
                let slot = storage.address(b, value, ty, memory, index, storage.total);
                b.store(value, slot, Alignment::natural(ty));
            });
        }
        let code = self.before[&outermost];
        for value in [memory].into_iter().chain(storage.total) {
            self.convey_new(value, outermost, code);
        }
        let code = self.before[&shared];
        for &extent in &storage.extents {
            self.convey_new(extent, shared, code);
        }
        self.tape
            .released_after
            .entry(outermost)
            .or_default()
            .push(memory);
        self.tape.loops.insert(op, storage);
    }

    /// The outermost operation before which memory for a nest can be allocated that all its executions share: the nest itself, or one
    /// that is differentiated at once, outside of which the nest's bounds are known. Conditions under which the nest is met there join those of its first loop.
    fn outermost_sharing(&self, nest: Op, bounds: &mut [Bounds]) -> Op {
        let mut found = nest;
        let mut conditions: Vec<Condition> = Vec::new();
        let mut region = self.structure.region_of(nest);
        while let Some(inner) = region {
            let Some(holder) = self.structure.op_of(inner) else {
                break;
            };
            let is_loop = matches!(self.function.ops[holder].opcode, Opcode::For | Opcode::Loop);
            if !is_loop {
                match self.condition_of(holder, inner) {
                    Some(condition) => conditions.extend(condition),
                    None => break,
                }
            }
            let asked = bounds.iter().flat_map(|bounds| {
                let conditions = bounds.conditions.iter().map(|condition| condition.value);
                bounds.values.into_iter().chain(conditions)
            });
            let mut all = asked.chain(conditions.iter().map(|condition| condition.value));
            let known = all.all(|value| {
                let home = self.structure.region_of_value(self.function, value);
                home.is_none_or(|home| !self.structure.is_within(home, inner))
            });
            if !known || !self.at_once.ops.contains(&holder) {
                break;
            }
            if is_loop {
                found = holder;
                bounds[0].conditions.append(&mut conditions);
            }
            region = self.structure.region_of(holder);
        }
        found
    }

    /// The counted loop right around a nest without branches, if the nest's bounds can be computed from its counter before it runs.
    fn rows_around(&self, nest: Op, bounds: &[Bounds]) -> Option<Op> {
        let region = self.structure.region_of(nest)?;
        let around = self.structure.op_of(region)?;
        let computable = self.function.ops[around].opcode == Opcode::For
            && !self.is_complete(region)
            && bounds.iter().all(|bounds| {
                let mut values = bounds.values.into_iter();
                bounds.conditions.is_empty()
                    && values.all(|bound| self.is_computable(bound, region, MAX_BOUND_OPERATIONS))
            });
        computable.then_some(around)
    }

    /// Whether a value follows from a region's counter and from outside of it by a few operations without effect.
    fn is_computable(&self, value: Value, region: Region, budget: usize) -> bool {
        let home = self.structure.region_of_value(self.function, value);
        match self.function.values[value].def {
            _ if home.is_none_or(|home| !self.structure.is_within(home, region)) => true,
            ValueDef::Argument { region: of, index } => of == region && index == 0,
            ValueDef::Result { op, .. } => {
                let data = &self.function.ops[op];
                budget > 0
                    && home == Some(region)
                    && data.opcode.effect() == Effect::Pure
                    && data
                        .operands
                        .iter()
                        .all(|&operand| self.is_computable(operand, region, budget - 1))
            }
            ValueDef::Constant(_) => true,
        }
    }

    /// Builds, before a loop, the sum over its iterations of how many elements a nest within it has.
    fn count_rows(&mut self, around: Op, bounds: &[Bounds]) -> Value {
        let [from, to, step] = self.bounds(around);
        let region = self.function.ops[around].regions[0];
        let counter = self.function.regions[region].args[0];
        let mut repeated = FxHashSet::default();
        for bound in bounds.iter().flat_map(|bounds| bounds.values) {
            self.collect_slice(bound, region, &mut repeated);
        }
        self.build_before(around, |b| {
            let zero = b.i64(0);
            let (op, body) = b.for_loop(from, to, step, &[zero]);
            let (here, sum) = (
                b.function.regions[body].args[0],
                b.function.regions[body].args[1],
            );
            b.inside(body, |b| {
                let mut known = FxHashMap::from_iter([(counter, here)]);
                let bounds: Vec<Bounds> = bounds
                    .iter()
                    .map(|bounds| {
                        let values = bounds.values;
                        Bounds::unconditional(
                            values.map(|bound| compute_again(b, &repeated, bound, &mut known)),
                        )
                    })
                    .collect();
                let (_, row) = count_elements(b, &bounds);
                let next = limited_sum(b, sum, row);
                b.yields(&[next]);
            });
            b.function.result(op)
        })
    }

    /// The operations of a region that lead to a value.
    fn collect_slice(&self, value: Value, region: Region, slice: &mut FxHashSet<Op>) {
        if let Some((op, _)) = self.function.def_op(value)
            && self.structure.region_of(op) == Some(region)
            && slice.insert(op)
        {
            for &operand in &self.function.ops[op].operands {
                self.collect_slice(operand, region, slice);
            }
        }
    }

    /// Makes a loop carry where the present row of a nest within it starts.
    fn carry_row_start(&mut self, around: Op, nest: Op, row: Value) -> Value {
        let body = self.function.ops[around].regions[0];
        let zero = self.function.int(Type::I64, 0);
        self.function.ops[around].operands.push(zero);
        let start = self.function.add_argument(body, Type::I64);
        self.function.add_result(around, Type::I64);
        let next = self.build_before(nest, |b| b.binary(Opcode::Add, start, row));
        let end = self.function.terminator(body);
        self.function.ops[end].operands.push(next);
        start
    }

    /// Builds code right behind the place where a value gets its meaning.
    fn build_behind_definition(&mut self, value: Value, build: impl FnOnce(&mut Builder<'_>)) {
        if let Some(&(_, code)) = self.new_values.get(&value) {
            return build(&mut Builder::new(self.function, code));
        }
        match self.function.values[value].def {
            ValueDef::Argument { region, .. } => self.build_at_start(region, build),
            ValueDef::Result { op, .. } => self.build_after(op, build),
            ValueDef::Constant(_) => {}
        }
    }

    fn save_in_records(&mut self, op: Op, values: &[Value]) {
        let widths: Vec<u64> = values
            .iter()
            .map(|&v| self.function.ty(v).bytes())
            .collect();
        let record = widths.iter().sum::<u64>().next_multiple_of(8);
        let body = self.function.ops[op].regions[0];
        let number = self.trips[&op].number;
        // Two more carried values: the buffer and for how many records it has room.
        let (null, zero) = (
            self.function.zero(Type::PTR),
            self.function.int(Type::I64, 0),
        );
        self.function.ops[op].operands.extend([null, zero]);
        let buffer = self.function.add_argument(body, Type::PTR);
        let room = self.function.add_argument(body, Type::I64);
        let (buffer, room) =
            self.build_at_start(body, |b| grow_buffer(b, buffer, room, number, record));
        let end = self.function.terminator(body);
        self.function.ops[end].operands.extend([buffer, room]);
        let memory = self.function.add_result(op, Type::PTR);
        self.function.add_result(op, Type::I64);
        self.function.set_name(memory, "saved");
        let storage = LoopStorage {
            nest: vec![op],
            memory,
            extents: Vec::new(),
            total: None,
            rows: None,
            slots: slots_of(values, &widths),
            record,
        };
        for &value in values {
            self.build_behind_definition(value, |b| {
                let ty = b.ty(value);
                let slot = storage.address(b, value, ty, buffer, number, None);
                b.store(value, slot, Alignment::natural(ty));
            });
        }
        self.convey(memory);
        self.tape.released_after.entry(op).or_default().push(memory);
        self.tape.loops.insert(op, storage);
    }

    /// Puts the new code where it belongs.
    fn splice(&mut self) {
        let body = self.function.body();
        let mut regions = vec![body];
        while let Some(region) = regions.pop() {
            let old = std::mem::take(&mut self.function.regions[region].ops);
            let mut new = Vec::with_capacity(old.len());
            let insert = |function: &mut Function, new: &mut Vec<Op>, code: Option<&Region>| {
                if let Some(&code) = code {
                    new.append(&mut function.regions[code].ops);
                }
            };
            insert(self.function, &mut new, self.start.get(&region));
            for op in old {
                insert(self.function, &mut new, self.before.get(&op));
                new.push(op);
                insert(self.function, &mut new, self.after.get(&op));
            }
            for &op in &new {
                regions.extend(&self.function.ops[op].regions);
            }
            self.function.regions[region].ops = new;
        }
    }
}

/// The trip counts of the loops of a nest, and their product.
pub(crate) fn count_elements(b: &mut Builder<'_>, bounds: &[Bounds]) -> (Vec<Value>, Value) {
    let zero = b.i64(0);
    let counts: Vec<Value> = bounds
        .iter()
        .map(|bounds| {
            let [from, to, step] = bounds.values;
            let count = trip_count(b, from, to, step);
            let conditions = bounds.conditions.iter();
            conditions.fold(count, |count, condition| match condition.holds {
                true => b.select(condition.value, count, zero),
                false => b.select(condition.value, zero, count),
            })
        })
        .collect();
    let product = counts[1..].iter().fold(counts[0], |product, &count| {
        limited_product(b, product, count)
    });
    (counts, product)
}

/// The product of two numbers that are not negative. Where it would not fit into an `i64` it is more than half of the largest: no memory has that size, so that whoever asks for
/// it is told, instead of getting a few bytes because the product wraps around.
fn limited_product(b: &mut Builder<'_>, factor: Value, by: Value) -> Value {
    let most = match b.function.int_of(by) {
        Some(by) => b.i64(i64::MAX / i64::try_from(by.max(1)).unwrap_or(i64::MAX)),
        None => {
            let (largest, one) = (b.i64(i64::MAX), b.i64(1));
            let by = b.binary(Opcode::Umax, by, one);
            b.binary(Opcode::Udiv, largest, by)
        }
    };
    let fits = match (b.function.int_of(factor), b.function.int_of(most)) {
        (Some(factor), Some(most)) => factor <= most,
        _ => false,
    };
    let factor = match fits {
        true => factor,
        false => b.binary(Opcode::Umin, factor, most),
    };
    b.binary(Opcode::Mul, factor, by)
}

/// The sum of two numbers that are not negative, or the largest `i64` if it would not fit.
fn limited_sum(b: &mut Builder<'_>, a: Value, other: Value) -> Value {
    let sum = b.binary(Opcode::Add, a, other);
    let largest = b.i64(i64::MAX);
    b.binary(Opcode::Umin, sum, largest)
}

/// Repeats those of the operations that lead to a value.
fn compute_again(
    b: &mut Builder<'_>,
    repeated: &FxHashSet<Op>,
    value: Value,
    known: &mut FxHashMap<Value, Value>,
) -> Value {
    if let Some(&known) = known.get(&value) {
        return known;
    }
    let Some((op, index)) = b.function.def_op(value) else {
        return value;
    };
    if !repeated.contains(&op) {
        return value;
    }
    let data = b.function.ops[op].clone();
    let operands: Vec<Value> = data
        .operands
        .iter()
        .map(|&operand| compute_again(b, repeated, operand, known))
        .collect();
    let types: Vec<Type> = data.results.iter().map(|&result| b.ty(result)).collect();
    let copy = b.op(data.opcode, &operands, data.payload, &types);
    b.function.ops[copy].flags = data.flags;
    for (&result, position) in data.results.iter().zip(0..) {
        known.insert(result, b.function.ops[copy].results[position]);
    }
    b.function.ops[copy].results[index]
}

/// The number of an iteration from the loop's counter.
pub(crate) fn iteration_number(
    b: &mut Builder<'_>,
    counter: Value,
    from: Value,
    step: Value,
) -> Value {
    let (counter, from, step) = (widen(b, counter), widen(b, from), widen(b, step));
    let distance = match b.function.int_of(from) {
        Some(0) => counter,
        _ => b.binary(Opcode::Sub, counter, from),
    };
    match b.function.int_of(step) {
        Some(1) => distance,
        _ => b.binary(Opcode::Sdiv, distance, step),
    }
}

/// The position in an array over a nest: numbers of iterations, and the trip counts of all loops but the first.
pub(crate) fn linear_index(b: &mut Builder<'_>, numbers: &[Value], extents: &[Value]) -> Value {
    let mut index = numbers[0];
    for (&number, &extent) in numbers[1..].iter().zip(extents) {
        let row = b.binary(Opcode::Mul, index, extent);
        index = b.binary(Opcode::Add, row, number);
    }
    index
}

/// Makes room for record `number`, and gives the buffer and its room.
fn grow_buffer(
    b: &mut Builder<'_>,
    buffer: Value,
    room: Value,
    number: Value,
    record: u64,
) -> (Value, Value) {
    let full = b.icmp(IntPredicate::Eq, number, room);
    let (op, grow, stay) = b.if_else(full, &[Type::PTR, Type::I64]);
    b.inside(grow, |b| {
        let (two, least, width) = (b.i64(2), b.i64(16), b.i64(record as i64));
        let twice = b.binary(Opcode::Mul, room, two);
        let more = b.binary(Opcode::Smax, twice, least);
        let bytes = b.binary(Opcode::Mul, more, width);
        let align = Alignment::new(16).expect("a power of two");
        let larger = b.alloc(bytes, align, false);
        let used = b.binary(Opcode::Mul, number, width);
        b.copy(larger, buffer, used, Alignment::natural(Type::PTR));
        b.free(buffer);
        b.yields(&[larger, more]);
    });
    b.inside(stay, |b| b.yields(&[buffer, room]));
    let results = &b.function.ops[op].results;
    (results[0], results[1])
}
