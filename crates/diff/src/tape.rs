//! The tape: where the forward sweep saves the values of the caching plan, and the code that saves them.
//!
//! - A value outside loops stays a value. Out of a branch it comes as one more result of the `if`.
//! - A value in a nest of counted loops whose trip counts are known before the nest goes into an array with one element for each
//!   iteration; all arrays that one loop needs are one allocation before the outermost loop of the nest. A loop in a branch runs as often as its bounds say only where the
//!   branch is taken: what is asked must be known before the nest as well, and makes the trip count 0 where the branch is not.
//! - Where the trip counts of such a nest depend on the counter of the counted loop around it (a triangle), the rows lie one behind
//!   the other in one allocation; a loop before adds up how many there will be. In a loop that is meant for several threads, each
//!   iteration has an allocation of its own instead.
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

mod loops;
mod packed;

pub(crate) use packed::{pack_tape, unpack_tape};

use crate::at_once::AtOnce;
use crate::augment::Augmented;
use crate::plan::{Decision, Plan, RangePlan};
use ferrozyme_ir::{
    Alignment, Builder, Cursor, Function, IntPredicate, Op, Opcode, Region, Structure, Type, Value,
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

    /// Puts the new code where it belongs.
    fn splice(&mut self) {
        let body = self.function.body();
        let mut regions = vec![body];
        while let Some(region) = regions.pop() {
            let mut here = Cursor::at_end(region);
            let mut insert = |function: &mut Function, code: Option<&Region>| {
                if let Some(&code) = code {
                    let ops = function.take_ops(code);
                    here.insert_all(function, ops);
                }
            };
            let ops = self.function.take_ops(region);
            insert(self.function, self.start.get(&region));
            for op in ops {
                insert(self.function, self.before.get(&op));
                self.function.append(region, op);
                insert(self.function, self.after.get(&op));
            }
            for &op in &self.function.regions[region].ops {
                regions.extend(&self.function.ops[op].regions);
            }
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
            let count = build_trip_count(b, from, to, step);
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

/// The position in an array over a nest: numbers of iterations, and the trip counts of all loops but the first.
pub(crate) fn linear_index(b: &mut Builder<'_>, numbers: &[Value], extents: &[Value]) -> Value {
    let mut index = numbers[0];
    for (&number, &extent) in numbers[1..].iter().zip(extents) {
        let row = b.binary(Opcode::Mul, index, extent);
        index = b.binary(Opcode::Add, row, number);
    }
    index
}
