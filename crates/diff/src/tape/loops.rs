//! Saving values in loops: in arrays if the trip count is known before the loop, otherwise in records of a growing buffer.

use super::{
    Bounds, Condition, LoopStorage, NestLoop, Saver, count_elements, limited_product, limited_sum,
    linear_index, slots_of,
};
use ferrozyme_ir::{
    Alignment, Builder, Effect, Flags, IntPredicate, Op, Opcode, Region, Type, Value, ValueDef,
    all_ops,
};
use ferrozyme_opt::build_iteration_number;
use rustc_hash::{FxHashMap, FxHashSet};

/// From how deep a chain of operations a bound is computed ahead of its loop.
const MAX_BOUND_OPERATIONS: usize = 6;

impl Saver<'_> {
    /// Saves what each loop has to save, inner loops first: their arrays are values that outer loops have to save.
    pub(super) fn save_loops(&mut self) {
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
    pub(super) fn nest_of(&self, op: Op) -> Vec<NestLoop> {
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
    pub(super) fn surrounding_loop(&self, op: Op) -> Option<(Op, Vec<Condition>)> {
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
    pub(super) fn condition_of(&self, holder: Op, branch: Region) -> Option<Option<Condition>> {
        let data = &self.function.ops[holder];
        let mut others = data.regions.iter().filter(|&&other| other != branch);
        if others.all(|&other| self.function.ends_in_trap(other)) {
            return Some(None);
        }
        (data.opcode == Opcode::If).then(|| {
            Some(Condition {
                value: data.condition(),
                holds: data.regions[0] == branch,
            })
        })
    }

    pub(super) fn bounds(&self, op: Op) -> [Value; 3] {
        self.function.ops[op].bounds()
    }

    /// The number of the present iteration of a loop, from 0 on.
    pub(super) fn number(&mut self, op: Op) -> Value {
        if let Some(&number) = self.numbers.get(&op) {
            return number;
        }
        let number = match self.function.ops[op].opcode {
            Opcode::For => {
                let [from, _, step] = self.bounds(op);
                let body = self.function.ops[op].regions[0];
                let counter = self.function.regions[body].args[0];
                self.build_at_start(body, |b| build_iteration_number(b, counter, from, step))
            }
            _ => self.trips[&op].number,
        };
        self.numbers.insert(op, number);
        number
    }

    pub(super) fn save_in_arrays(&mut self, op: Op, values: &[Value]) {
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
    pub(super) fn outermost_sharing(&self, nest: Op, bounds: &mut [Bounds]) -> Op {
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

    /// The counted loop right around a nest without branches, if the nest's bounds can be computed from its counter before it runs. Not one that is meant for several threads: where rows lie one behind the other, an iteration has to know
    /// how long all rows before its own are.
    pub(super) fn rows_around(&self, nest: Op, bounds: &[Bounds]) -> Option<Op> {
        let region = self.structure.region_of(nest)?;
        let around = self.structure.op_of(region)?;
        let data = &self.function.ops[around];
        let computable = data.opcode == Opcode::For
            && !data.flags.contains(Flags::PARALLEL)
            && !self.is_complete(region)
            && bounds.iter().all(|bounds| {
                let mut values = bounds.values.into_iter();
                bounds.conditions.is_empty()
                    && values.all(|bound| self.is_computable(bound, region, MAX_BOUND_OPERATIONS))
            });
        computable.then_some(around)
    }

    /// Whether a value follows from a region's counter and from outside of it by a few operations without effect.
    pub(super) fn is_computable(&self, value: Value, region: Region, budget: usize) -> bool {
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
    pub(super) fn count_rows(&mut self, around: Op, bounds: &[Bounds]) -> Value {
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
    pub(super) fn collect_slice(&self, value: Value, region: Region, slice: &mut FxHashSet<Op>) {
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
    pub(super) fn carry_row_start(&mut self, around: Op, nest: Op, row: Value) -> Value {
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
    pub(super) fn build_behind_definition(
        &mut self,
        value: Value,
        build: impl FnOnce(&mut Builder<'_>),
    ) {
        if let Some(&(_, code)) = self.new_values.get(&value) {
            return build(&mut Builder::new(self.function, code));
        }
        match self.function.values[value].def {
            ValueDef::Argument { region, .. } => self.build_at_start(region, build),
            ValueDef::Result { op, .. } => self.build_after(op, build),
            ValueDef::Constant(_) => {}
        }
    }

    pub(super) fn save_in_records(&mut self, op: Op, values: &[Value]) {
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
