//! The reverse sweep: the mirror image of the forward sweep, with adjoints in place of values.
//!
//! The reverse of a region is a region: its operations are gone through from last to first, and for each its [`Step`] is taken. The
//! reverse of a `for` is a `for` that counts down, that of a general `loop` counts down from its number of trips, that of an
//! `if` is an `if` on the same condition. Adjoints of values are values: those that belong to values from outside a region
//! are carried through its reverse, so that nothing but the shadow of memory is in memory.
//!
//! ```text
//! %y = fmul f64 %x, %x          ; forward
//! %t = fmul f64 %dy, %x         ; reverse: dx += 2·x·dy
//! %u = fmul f64 %dy, %x
//! %dx = fadd f64 %t, %u
//! ```
//!
//! What the reverse of a region needs of the forward sweep is made available at its start: values saved are read from the
//! tape, others are recomputed in their original order.

use crate::activity::Activities;
use crate::augment::{Augmented, CallStep, CallTarget, Step};
use crate::constants;
use crate::memory;
use crate::plan::{Decision, Plan, Reload, active_operands, live_regions, offset_chain};
use crate::rules::{self, Primal};
use crate::tape::{Bounds, Tape, count_elements, iteration_number, linear_index, trip_count};
use crate::unions;
use crate::usage::{Choice, Condition, Test, Usage, Usages};
use ferrozyme_ir::entity::{EntityRef, SecondaryMap};
use ferrozyme_ir::{
    Alignment, Builder, Flags, FloatPredicate, Function, IntPredicate, Op, OpData, Opcode, Payload,
    Region, Structure, Type, Value,
};
use ferrozyme_opt::symbolic::Symbolic;
use ferrozyme_opt::{add_carried, first_initial};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// What is allowed with sums of adjoints.
const SUM_FLAGS: Flags = Flags::NSZ.union(Flags::REASSOC).union(Flags::CONTRACT);

/// What the reverse sweep is made from.
pub(crate) struct Forward<'a> {
    /// The forward sweep as it was when the tape was added; the reverse sweep may be appended to a copy of it.
    pub augmented: &'a Augmented,
    /// What is active.
    pub activities: &'a Activities,
    /// How values are come by.
    pub plan: &'a Plan,
    /// Where they are.
    pub tape: &'a Tape,
}

/// Appends the reverse sweep to the body of `target`.
///
/// `seeds` are the adjoints of the active results. `known` maps values of the forward sweep's body and parameters to
/// values of `target`; where the reverse sweep stands in the same function as the forward sweep, they stand for themselves.
/// The result has the adjoint of each of `wanted`, if it is not zero.
pub(crate) fn reverse(
    forward: &Forward<'_>,
    target: &mut Function,
    known: Option<FxHashMap<Value, Value>>,
    seeds: &[(Value, Value)],
    wanted: &[Value],
) -> Vec<Option<Value>> {
    let source = &forward.augmented.function;
    let structure = Structure::of(source);
    let captures = find_captures(forward, &structure);
    let steps = &forward.augmented.steps;
    let at_once = &forward.plan.at_once.ops;
    let usages = Usages::of(source, &structure, steps, forward.activities, at_once);
    let body = target.body();
    let mut mirror = Mirror {
        source,
        steps,
        usages,
        forward,
        structure,
        captures,
        same_function: known.is_none(),
        known: known.unwrap_or_default(),
        adjoints: SecondaryMap::with_default(None),
        numbers: FxHashMap::default(),
        row_starts: FxHashMap::default(),
        complete: Vec::new(),
        conditions: FxHashMap::default(),
        used: FxHashMap::default(),
        last_numbers: FxHashMap::default(),
        b: Builder::new(target, body),
    };
    mirror.begin_complete();
    for &(value, seed) in seeds {
        mirror.accumulate(value, seed);
    }
    mirror.restore(source.body());
    mirror.reverse_ops(source.body());
    mirror.end_complete();
    wanted.iter().map(|&value| mirror.adjoints[value]).collect()
}

/// For each operation with regions: the active values from outside whose adjoints its reverse may change.
fn find_captures(forward: &Forward<'_>, structure: &Structure) -> FxHashMap<Op, Vec<Value>> {
    let function = &forward.augmented.function;
    let mut captures: FxHashMap<Op, Vec<Value>> = FxHashMap::default();
    let mut seen: FxHashSet<(Op, Value)> = FxHashSet::default();
    ferrozyme_ir::for_each_op(function, function.body(), &mut |region, op| {
        let ends = function.ops[op].opcode.effect() == ferrozyme_ir::Effect::Ends;
        let traps = function.ops[op].opcode == Opcode::Trap;
        if traps || !ends && !forward.augmented.steps.contains_key(&op) {
            return;
        }
        for &operand in &function.ops[op].operands {
            if !forward.activities.is_active(operand) {
                continue;
            }
            let Some(home) = structure.region_of_value(function, operand) else {
                continue;
            };
            let mut region = region;
            while region != home {
                let Some(holder) = structure.op_of(region) else {
                    break;
                };
                if !seen.insert((holder, operand)) {
                    break;
                }
                captures.entry(holder).or_default().push(operand);
                match structure.region_of(holder) {
                    Some(outer) => region = outer,
                    None => break,
                }
            }
        }
    });
    captures
}

struct Mirror<'a, 't> {
    source: &'a Function,
    steps: &'a FxHashMap<Op, Step>,
    /// Which adjoints count only under a condition.
    usages: Usages,
    forward: &'a Forward<'a>,
    structure: Structure,
    captures: FxHashMap<Op, Vec<Value>>,
    /// Whether values of the forward sweep's body are visible as they are.
    same_function: bool,
    /// Values of the forward sweep that have been made available.
    known: FxHashMap<Value, Value>,
    /// The adjoint of each value, so far; none for zero.
    adjoints: SecondaryMap<Value, Option<Value>>,
    /// The number of the present iteration of each loop that is being reversed.
    numbers: FxHashMap<Op, Value>,
    /// For loops that save in rows of different lengths: where the present row starts.
    row_starts: FxHashMap<Op, Value>,
    /// The complete regions that are being reversed, from outside in.
    complete: Vec<Complete>,
    /// Conditions that have been computed, by the region of the reverse sweep that holds them.
    conditions: FxHashMap<(Region, Condition), Value>,
    /// Whether operations with regions used values from outside, where that is asked.
    used: FxHashMap<(Op, Value), Value>,
    /// The number of the last iteration of each loop that is being reversed.
    last_numbers: FxHashMap<Op, Value>,
    b: Builder<'t>,
}

/// A region whose reverse follows it in the same place, and is being built.
struct Complete {
    /// Where in its list the reverse begins.
    mark: usize,
    /// The operations that are differentiated at once, from last to first, each with the adjoints that it takes.
    at_once: Vec<(Op, Vec<Value>)>,
}

impl Mirror<'_, '_> {
    /// The value in the reverse sweep of a value of the forward sweep.
    ///
    /// # Panics
    /// If the plan did not provide for it, which is a bug in the compiler.
    fn lookup(&mut self, value: Value) -> Value {
        if let Some(&known) = self.known.get(&value) {
            return known;
        }
        if let Some(constant) = self.source.constant_of(value) {
            let (ty, constant) = (self.source.ty(value), constant.clone());
            return self.b.function.constant(ty, constant);
        }
        let exported = self.forward.tape.exports.get(&value).copied();
        let outermost = exported.unwrap_or(value);
        if let Some(&known) = self.known.get(&outermost) {
            return known;
        }
        let home = self.structure.region_of_value(self.source, outermost);
        assert!(
            home.is_some_and(|home| self.is_complete(home)),
            "bug in Ferrozyme: the plan for @{} does not provide %{} in the reverse sweep",
            self.source.name,
            value.index()
        );
        outermost
    }

    /// Whether the reverse of a region follows it in the same place, where its values are visible as they are.
    fn is_complete(&self, region: Region) -> bool {
        let at_once = &self.forward.plan.at_once;
        at_once.is_complete(self.structure.op_of(region), self.same_function)
    }

    // ---- adjoints

    /// Adds to the adjoint of a value, if it has one.
    fn accumulate(&mut self, value: Value, contribution: Value) {
        if !self.forward.activities.is_active(value) {
            return;
        }
        let sum = match self.adjoints[value] {
            None => contribution,
            Some(before) => self.add(before, contribution),
        };
        self.adjoints[value] = Some(sum);
    }

    /// The sum of two adjoints. In what order sums are added up, and what sign a zero has, is of no interest.
    fn add(&mut self, a: Value, b: Value) -> Value {
        let sum = self.b.binary(Opcode::Fadd, a, b);
        if let Some((op, _)) = self.b.function.def_op(sum) {
            let flags = self.b.function.ops[op].flags;
            self.b.function.ops[op].flags = flags.union(SUM_FLAGS);
        }
        sum
    }

    fn adjoint_type(&self, value: Value) -> Type {
        rules::derivative_type(self.source.ty(value))
            .expect("active values have types that carry derivatives")
    }

    fn adjoint_or_zero(&mut self, value: Value) -> Value {
        match self.adjoints[value] {
            Some(adjoint) => adjoint,
            None => {
                let ty = self.adjoint_type(value);
                self.b.zero(ty)
            }
        }
    }

    // ---- what the forward sweep left

    /// Makes available, at the start of the reverse of a region, what it needs of the region's values.
    fn restore(&mut self, region: Region) {
        if self.is_complete(region) {
            return;
        }
        for index in 0..self.source.regions[region].args.len() {
            let arg = self.source.regions[region].args[index];
            self.restore_value(arg, None);
        }
        for position in 0..self.source.regions[region].ops.len() {
            let op = self.source.regions[region].ops[position];
            for index in 0..self.source.ops[op].results.len() {
                self.restore_value(self.source.ops[op].results[index], Some(op));
            }
        }
    }

    fn restore_value(&mut self, value: Value, op: Option<Op>) {
        self.b.location = op.and_then(|op| self.source.ops[op].location);
        if let Some(restored) = self.read_slot(value) {
            self.known.insert(value, restored);
            return;
        }
        match (self.forward.plan.decisions[value], op) {
            (Decision::Recompute, Some(op)) => self.recompute(op),
            (Decision::FromRange(range), Some(op)) => self.read_range(op, range),
            (Decision::Stored, _) => self.read_stored(value),
            // Counters were set when the loop was entered; what is saved outside loops is found by `lookup`.
            _ => {}
        }
    }

    fn recompute(&mut self, op: Op) {
        let data = &self.source.ops[op];
        let operands: SmallVec<[Value; 4]> =
            data.operands.iter().map(|&v| self.lookup(v)).collect();
        let types: SmallVec<[Type; 2]> = data.results.iter().map(|&v| self.source.ty(v)).collect();
        let copy = self.b.function.new_op(
            OpData {
                operands,
                results: SmallVec::new(),
                regions: SmallVec::new(),
                ..data.clone()
            },
            &types,
        );
        self.b.function.regions[self.b.region].ops.push(copy);
        for (index, &result) in data.results.iter().enumerate() {
            let again = self.b.function.ops[copy].results[index];
            self.name_after(again, result);
            self.known.insert(result, again);
        }
    }

    fn name_after(&mut self, value: Value, original: Value) {
        if let Some(name) = &self.source.values[original].name {
            self.b.function.set_name(value, name.clone());
        }
    }

    fn read_range(&mut self, op: Op, range: u32) {
        let data = &self.source.ops[op];
        let result = data.results[0];
        let saved = self.forward.tape.ranges[&range];
        let mut address = self.lookup(saved.root);
        if let Some(offset) = self.forward.plan.range_offsets.get(&result) {
            let bytes = self.evaluate(offset);
            address = self.b.offset(address, bytes, 1);
        } else {
            for (index, scale) in offset_chain(self.source, data.operands[0]).offsets {
                let index = self.lookup(index);
                address = self.b.offset(address, index, scale);
            }
        }
        // The copy need not lie like the original.
        let value = self.b.load(self.source.ty(result), address, Alignment::ONE);
        self.name_after(value, result);
        self.known.insert(result, value);
    }

    /// Reads a value from where the program stored it.
    fn read_stored(&mut self, value: Value) {
        let Reload { store, times } = self.forward.plan.reloads[&value];
        let data = &self.source.ops[store];
        let chain = offset_chain(self.source, data.operands[1]);
        let mut address = self.lookup(chain.root);
        for (index, scale) in chain.offsets {
            let index = self.lookup(index);
            address = self.b.offset(address, index, scale);
        }
        let mut read = self.b.load(self.source.ty(value), address, alignment(data));
        if let Some(times) = times {
            // Divided by infinity, everything is zero, and depends on nothing.
            let times = self.lookup(times);
            let ty = self.b.ty(times);
            let product = self.b.binary(Opcode::Fmul, read, times);
            let magnitude = self.b.unary(Opcode::Fabs, times);
            let infinity = self.b.float(ty, f64::INFINITY);
            let infinite = self.b.fcmp(FloatPredicate::Oeq, magnitude, infinity);
            let zero = self.b.zero(ty);
            read = self.b.select(infinite, zero, product);
        }
        self.name_after(read, value);
        self.known.insert(value, read);
    }

    /// Builds the value of an index expression over values of the forward sweep.
    fn evaluate(&mut self, expression: &Symbolic) -> Value {
        let mut sum = self.b.i64(expression.constant_part());
        for term in expression.terms() {
            let mut product = self.b.i64(term.coefficient);
            for &variable in &term.monomial {
                let factor = self.lookup(variable);
                let factor = match self.b.ty(factor) {
                    Type::I64 => factor,
                    _ => self.b.cast(Opcode::Sext, factor, Type::I64),
                };
                product = self.b.binary(Opcode::Mul, product, factor);
            }
            sum = self.b.binary(Opcode::Add, sum, product);
        }
        sum
    }

    /// Reads a saved value of the present iteration, if it is one.
    fn read_slot(&mut self, value: Value) -> Option<Value> {
        let tape = self.forward.tape;
        let region = self.structure.region_of_value(self.source, value)?;
        let around = self.structure.loop_around(self.source, region)?;
        let storage = tape.loops.get(&around)?;
        if !storage.slots.contains_key(&value) {
            return None;
        }
        let memory = self.lookup(storage.memory);
        let numbers: Vec<Value> = storage.nest.iter().map(|op| self.numbers[op]).collect();
        let extents: Vec<Value> = storage
            .extents
            .iter()
            .map(|&extent| self.lookup(extent))
            .collect();
        let total = storage.total.map(|total| self.lookup(total));
        let mut index = linear_index(&mut self.b, &numbers, &extents);
        if storage.rows.is_some() {
            index = self.b.binary(Opcode::Add, self.row_starts[&around], index);
        }
        let ty = self.source.ty(value);
        let address = storage.address(&mut self.b, value, ty, memory, index, total);
        let loaded = self.b.load(ty, address, Alignment::natural(ty));
        self.name_after(loaded, value);
        Some(loaded)
    }

    // ---- steps

    fn reverse_ops(&mut self, region: Region) {
        for position in (0..self.source.regions[region].ops.len()).rev() {
            let op = self.source.regions[region].ops[position];
            self.b.location = self.source.ops[op].location;
            if let Some(step) = self.steps.get(&op) {
                self.take_step(op, step);
            }
        }
    }

    fn take_step(&mut self, op: Op, step: &Step) {
        match step {
            Step::Rule => self.apply_rule(op),
            Step::Update {
                replacement,
                kept,
                number,
                last,
            } => {
                let Some(adjoint) = self.adjoints[self.source.result(op)] else {
                    return;
                };
                let (number, last) = (self.lookup(*number), self.lookup(*last));
                let replaced = self.b.icmp(IntPredicate::Eq, number, last);
                let zero = self.b.zero(self.b.ty(adjoint));
                let taken = self.b.select(replaced, adjoint, zero);
                let passed = self.b.select(replaced, zero, adjoint);
                self.accumulate(*replacement, taken);
                self.accumulate(*kept, passed);
            }
            Step::Load { shadow } => self.reverse_load(op, *shadow),
            Step::Store { shadow } => self.reverse_store(op, *shadow),
            Step::LoadUnion { shadow, shape } => self.reverse_load_of_union(op, *shadow, *shape),
            Step::StoreUnion { shadow, shape } => self.reverse_store_of_union(op, *shadow, *shape),
            Step::AtomicAdd { shadow } => self.reverse_atomic_add(op, *shadow),
            Step::Copy {
                to,
                from,
                bytes,
                cells,
                overlapping,
                constant,
            } => {
                let to = self.lookup(*to);
                let from = from.map(|from| self.lookup(from));
                let bytes = self.lookup(*bytes);
                let return_floats = |b: &mut Builder<'_>| {
                    memory::return_floats(b, cells, to, from, bytes, *overlapping);
                };
                match *constant {
                    None => return_floats(&mut self.b),
                    Some(constant) => {
                        let constant = self.lookup(constant);
                        let forget = |b: &mut Builder<'_>| memory::zero_floats(b, cells, to, bytes);
                        constants::either(&mut self.b, constant, forget, return_floats);
                    }
                }
            }
            Step::CopyUnions {
                to,
                from,
                bytes,
                shape,
                constant,
            } => {
                let to = self.lookup(*to);
                let from = from.map(|from| self.lookup(from));
                let bytes = self.lookup(*bytes);
                let shape = shape.map(|shape| self.lookup(shape));
                let constant = constant.map(|constant| self.lookup(constant));
                unions::return_words(&mut self.b, to, (from, constant), bytes, shape);
            }
            Step::FillUnions { to, bytes } => {
                let (to, bytes) = (self.lookup(*to), self.lookup(*bytes));
                unions::forget(&mut self.b, to, bytes);
            }
            Step::Fill { to, bytes, cells } => {
                let to = self.lookup(*to);
                let bytes = self.lookup(*bytes);
                memory::zero_floats(&mut self.b, cells, to, bytes);
            }
            Step::Call(call) => self.reverse_call(call),
            Step::Release {
                pointers,
                size,
                manner,
            } => {
                let size = size.map(|size| self.lookup(size));
                for &pointer in pointers {
                    let pointer = self.lookup(pointer);
                    manner.release(&mut self.b, pointer, size);
                }
            }
            Step::Regions if self.forward.plan.at_once.ops.contains(&op) => {
                self.reverse_at_once(op);
            }
            Step::Regions => match self.source.ops[op].opcode {
                Opcode::For | Opcode::Loop => self.reverse_loop(op),
                _ => self.reverse_branches(op),
            },
        }
    }

    fn apply_rule(&mut self, op: Op) {
        let primal = Primal::of(self.source, op);
        let adjoints: SmallVec<[Option<Value>; 2]> = primal
            .results
            .iter()
            .map(|&result| self.adjoints[result])
            .collect();
        if adjoints.iter().all(Option::is_none) {
            return;
        }
        let active = active_operands(self.source, self.forward.activities, op);
        let mut values: FxHashMap<Value, Value> = FxHashMap::default();
        let needs = primal.needs(active);
        for (index, &operand) in primal.operands.iter().enumerate() {
            if needs.operands >> index & 1 == 1 || self.source.is_constant(operand) {
                values.insert(operand, self.lookup(operand));
            }
        }
        for (index, &result) in primal.results.iter().enumerate() {
            if needs.results >> index & 1 == 1 {
                values.insert(result, self.lookup(result));
            }
        }
        let contributions = rules::vjp(
            &mut self.b,
            &primal,
            &mut |_, value| values[&value],
            &adjoints,
            active,
        );
        for (index, (&operand, contribution)) in
            primal.operands.iter().zip(contributions).enumerate()
        {
            let Some(mut contribution) = contribution else {
                continue;
            };
            if self.usages.is_postponed(op, index)
                && let Some(whole) = adjoints[0]
            {
                contribution = whole;
            } else if let Some(condition) = self.usages.selected(self.source, op, index) {
                contribution = self.only_where(condition, contribution);
            }
            self.accumulate(operand, contribution);
        }
    }

    /// A contribution where a condition holds, zero elsewhere.
    fn only_where(&mut self, condition: Condition, contribution: Value) -> Value {
        let zero = self.b.zero(self.b.ty(contribution));
        if let Test::Chosen {
            by,
            holds: false,
            within: Usage::Always,
        } = self.usages.test(condition)
        {
            let choice = self.choice(by);
            return self.b.select(choice, zero, contribution);
        }
        let condition = self.condition(condition);
        self.b.select(condition, contribution, zero)
    }

    /// The value of a condition under which results are used.
    fn condition(&mut self, condition: Condition) -> Value {
        let place = (self.b.region, condition);
        if let Some(&value) = self.conditions.get(&place) {
            return value;
        }
        let value = match self.usages.test(condition) {
            Test::Chosen { by, holds, within } => {
                let mut value = self.choice(by);
                if !holds {
                    let all = self.b.function.int(self.b.ty(value), 1);
                    value = self.b.binary(Opcode::Xor, value, all);
                }
                match within {
                    Usage::Always => value,
                    Usage::When(around) => {
                        let around = self.condition(around);
                        self.b.binary(Opcode::And, value, around)
                    }
                }
            }
            Test::Either(first, second) => {
                let (first, second) = (self.condition(first), self.condition(second));
                self.b.binary(Opcode::Or, first, second)
            }
        };
        self.conditions.insert(place, value);
        value
    }

    fn choice(&mut self, choice: Choice) -> Value {
        match choice {
            Choice::Value(value) => self.lookup(value),
            Choice::LastUpdate(op) => match self.steps.get(&op) {
                Some(&Step::Update { number, last, .. }) => {
                    let (number, last) = (self.lookup(number), self.lookup(last));
                    self.b.icmp(IntPredicate::Eq, number, last)
                }
                _ => unreachable!("only updates are chosen so"),
            },
            Choice::Inside(op, value) => self.used[&(op, value)],
            Choice::Followed(op) => match self.last_numbers.get(&op) {
                Some(&last) => self.b.icmp(IntPredicate::Ne, self.numbers[&op], last),
                None => self.b.function.int(Type::I1, 1),
            },
        }
    }

    /// Whether a region, whose reverse has been built here, used a value from outside.
    fn used_inside(&mut self, region: Region, value: Value) -> Value {
        match self.usages.inside(region, value) {
            None => self.b.function.int(Type::I1, 0),
            Some(Usage::Always) => self.b.function.int(Type::I1, 1),
            Some(Usage::When(condition)) => self.condition(condition),
        }
    }

    /// For each value of which it is asked whether a loop uses it: whether this iteration or one before did.
    fn used_so_far(&mut self, body: Region, tracked: &[Value], before: &[Value]) -> Vec<Value> {
        let pairs = tracked.iter().zip(before);
        pairs
            .map(|(&value, &before)| {
                let here = self.used_inside(body, value);
                self.b.binary(Opcode::Or, before, here)
            })
            .collect()
    }

    fn reverse_load(&mut self, op: Op, shadow: Value) {
        let data = &self.source.ops[op];
        let Some(adjoint) = self.adjoints[data.results[0]] else {
            return;
        };
        let (ty, align) = (self.adjoint_type(data.results[0]), alignment(data));
        let shadow = self.lookup(shadow);
        let before = self.b.load(ty, shadow, align);
        let after = self.add(before, adjoint);
        self.b.store(after, shadow, align);
    }

    fn reverse_store(&mut self, op: Op, shadow: Value) {
        let data = &self.source.ops[op];
        let value = data.operands[0];
        let (ty, align) = (self.adjoint_type(value), alignment(data));
        let shadow = self.lookup(shadow);
        let zero = self.b.zero(ty);
        if self.forward.activities.is_active(value) {
            let adjoint = self.b.load(ty, shadow, align);
            self.b.store(zero, shadow, align);
            self.accumulate(value, adjoint);
        } else {
            self.b.store(zero, shadow, align);
        }
    }

    fn reverse_load_of_union(&mut self, op: Op, shadow: Value, shape: Value) {
        let data = &self.source.ops[op];
        let Some(adjoint) = self.adjoints[data.results[0]] else {
            return;
        };
        let align = alignment(data);
        let (shadow, shape) = (self.lookup(shadow), self.lookup(shape));
        unions::return_word(&mut self.b, adjoint, shadow, align, Some(shape));
    }

    fn reverse_store_of_union(&mut self, op: Op, shadow: Value, shape: Option<Value>) {
        let data = &self.source.ops[op];
        let (value, align) = (data.operands[0], alignment(data));
        let shadow = self.lookup(shadow);
        if let Some(shape) = shape {
            let shape = self.lookup(shape);
            let ty = self.adjoint_type(value);
            let found = self.b.load(ty, shadow, align);
            let none = self.b.zero(ty);
            let is_float = unions::is_float(&mut self.b, shape);
            let adjoint = self.b.select(is_float, found, none);
            self.accumulate(value, adjoint);
        }
        let zero = self.b.zero(self.source.ty(value));
        self.b.store(zero, shadow, align);
    }

    fn reverse_atomic_add(&mut self, op: Op, shadow: Value) {
        let data = &self.source.ops[op];
        let (value, old) = (data.operands[1], self.adjoints[data.results[0]]);
        if old.is_none() && !self.forward.activities.is_active(value) {
            return;
        }
        let ty = self.source.ty(value);
        let align = alignment(data);
        let shadow = self.lookup(shadow);
        let adjoint = self.b.load(ty, shadow, align);
        self.accumulate(value, adjoint);
        if let Some(old) = old {
            let sum = self.add(adjoint, old);
            self.b.store(sum, shadow, align);
        }
    }

    fn reverse_call(&mut self, call: &CallStep) {
        let mut operands: Vec<Value> = Vec::new();
        for (arg, &ty) in call.args.iter().zip(&call.arg_types) {
            let operand = match arg {
                Some(arg) => self.lookup(*arg),
                None => self.b.function.undef(ty),
            };
            operands.push(operand);
        }
        for &seed in &call.seeds {
            let seed = self.adjoint_or_zero(seed);
            operands.push(seed);
        }
        if let Some(tape) = call.tape {
            operands.push(self.lookup(tape));
        }
        if let Some(mask) = call.mask {
            operands.push(self.b.i64(mask));
        }
        let types: Vec<Type> = call
            .gradients
            .iter()
            .map(|&value| self.adjoint_type(value))
            .collect();
        let op = match call.reverse {
            CallTarget::Direct(reverse) => self.b.call(reverse, &operands, &types),
            CallTarget::Indirect(pointer) => {
                operands.insert(0, self.lookup(pointer));
                let payload = Payload::Results(types.clone().into());
                self.b.op(Opcode::CallIndirect, &operands, payload, &types)
            }
        };
        for (index, &value) in call.gradients.iter().enumerate() {
            let gradient = self.b.function.ops[op].results[index];
            self.accumulate(value, gradient);
        }
    }

    // ---- regions

    /// Adjoints of what a region ends with grow by those of what it ends in.
    fn flow_back_through_end(&mut self, region: Region, skip: usize, adjoints: &[Option<Value>]) {
        let terminator = self.source.terminator(region);
        let operands = &self.source.ops[terminator].operands[skip..];
        for (&operand, adjoint) in operands.iter().zip(adjoints) {
            if let Some(adjoint) = adjoint {
                self.accumulate(operand, *adjoint);
            }
        }
    }

    fn reverse_branches(&mut self, op: Op) {
        let results: Vec<Option<Value>> = self.source.ops[op]
            .results
            .iter()
            .map(|&result| self.adjoints[result])
            .collect();
        let live = live_regions(self.source, op);
        if let [only] = live[..] {
            self.restore(only);
            self.flow_back_through_end(only, 0, &results);
            self.reverse_ops(only);
            for value in self.usages.tracked(op).to_vec() {
                let used = self.used_inside(only, value);
                self.used.insert((op, value), used);
            }
            return;
        }
        let captures = self.captures.get(&op).cloned().unwrap_or_default();
        let before: Vec<Option<Value>> = captures.iter().map(|&v| self.adjoints[v]).collect();
        let tracked = self.usages.tracked(op).to_vec();
        let condition = self.lookup(self.source.ops[op].operands[0]);
        let location = self.b.location;
        let mut regions: SmallVec<[Region; 2]> = SmallVec::new();
        let mut ends: Vec<Vec<Value>> = Vec::new();
        for &region in &self.source.ops[op].regions.clone() {
            let target = self.b.function.new_region(&[]);
            regions.push(target);
            let outer = std::mem::replace(&mut self.b.region, target);
            if self.source.ends_in_trap(region) {
                self.b.trap("the forward sweep does not come here");
                ends.push(Vec::new());
            } else {
                for (&capture, &adjoint) in captures.iter().zip(&before) {
                    self.adjoints[capture] = adjoint;
                }
                self.restore(region);
                self.flow_back_through_end(region, 0, &results);
                self.reverse_ops(region);
                let mut end: Vec<Value> =
                    captures.iter().map(|&v| self.adjoint_or_zero(v)).collect();
                for &value in &tracked {
                    end.push(self.used_inside(region, value));
                }
                ends.push(end);
            }
            self.b.region = outer;
        }
        let mut types: Vec<Type> = captures.iter().map(|&v| self.adjoint_type(v)).collect();
        types.extend(tracked.iter().map(|_| Type::I1));
        let opcode = self.source.ops[op].opcode;
        let payload = self.source.ops[op].payload.clone();
        self.b.location = location;
        let mirrored = self.b.op(opcode, &[condition], payload, &types);
        for (&region, end) in regions.iter().zip(&ends) {
            let outer = std::mem::replace(&mut self.b.region, region);
            let ended = self.b.function.regions[region]
                .ops
                .last()
                .is_some_and(|&last| self.b.function.ops[last].opcode == Opcode::Trap);
            if !ended {
                self.b.yields(end);
            }
            self.b.region = outer;
        }
        self.b.function.ops[mirrored].regions = regions;
        for (index, &capture) in captures.iter().enumerate() {
            self.adjoints[capture] = Some(self.b.function.ops[mirrored].results[index]);
        }
        for (index, &value) in tracked.iter().enumerate() {
            let used = self.b.function.ops[mirrored].results[captures.len() + index];
            self.used.insert((op, value), used);
        }
    }

    /// Puts the reverse of an operation's regions into them, behind what they do.
    ///
    /// The adjoints that it takes, those of its results and of values from outside, are computed before it.
    fn reverse_at_once(&mut self, op: Op) {
        let captures = self.captures.get(&op).cloned().unwrap_or_default();
        let outer = self.b.region;
        let data = &self.source.ops[op];
        let is_loop = matches!(data.opcode, Opcode::For | Opcode::Loop);
        let results: Vec<Option<Value>> = data.results.iter().map(|&v| self.adjoints[v]).collect();
        let before: Vec<Option<Value>> = captures.iter().map(|&v| self.adjoints[v]).collect();
        let types: Vec<Type> = captures.iter().map(|&v| self.adjoint_type(v)).collect();
        let mut inside = before.clone();
        let taken = results.iter().chain(&before).flatten().copied().collect();
        let complete = self.complete.last_mut();
        let complete = complete.expect("what is differentiated at once stands in such a region");
        complete.at_once.push((op, taken));
        if is_loop {
            for (adjoint, &ty) in inside.iter_mut().zip(&types) {
                let start = adjoint.unwrap_or_else(|| self.b.function.zero(ty));
                let (carried, _) = add_carried(self.b.function, op, start);
                *adjoint = Some(carried);
            }
        }
        let tracked = self.usages.tracked(op).to_vec();
        let mut before_used = Vec::new();
        if is_loop {
            for _ in &tracked {
                let unused = self.b.function.int(Type::I1, 0);
                let (carried, _) = add_carried(self.b.function, op, unused);
                before_used.push(carried);
            }
        }
        for &region in &data.regions {
            if self.source.ends_in_trap(region) {
                continue;
            }
            for (&capture, &adjoint) in captures.iter().zip(&inside) {
                self.adjoints[capture] = adjoint;
            }
            let end = self.b.function.regions[region].ops.pop();
            let end = end.expect("a region ends in a terminator");
            self.b.region = region;
            self.begin_complete();
            // The adjoint of a sum is the same in all iterations.
            let skip = usize::from(data.opcode == Opcode::Loop);
            self.flow_back_through_end(region, skip, &results);
            self.reverse_ops(region);
            let used = match is_loop {
                true => self.used_so_far(region, &tracked, &before_used),
                false => {
                    let values = tracked.iter();
                    values.map(|&v| self.used_inside(region, v)).collect()
                }
            };
            self.end_complete();
            for &capture in &captures {
                let adjoint = self.adjoint_or_zero(capture);
                self.b.function.ops[end].operands.push(adjoint);
            }
            self.b.function.ops[end].operands.extend(used);
            self.b.function.regions[region].ops.push(end);
        }
        self.b.region = outer;
        let first = match is_loop {
            true => self.b.function.ops[op].results.len() - captures.len() - tracked.len(),
            false => self.b.function.ops[op].results.len(),
        };
        for (index, (&capture, &ty)) in captures.iter().zip(&types).enumerate() {
            let result = match is_loop {
                true => self.b.function.ops[op].results[first + index],
                false => self.b.function.add_result(op, ty),
            };
            self.adjoints[capture] = Some(result);
        }
        for (index, &value) in tracked.iter().enumerate() {
            let used = match is_loop {
                true => self.b.function.ops[op].results[first + captures.len() + index],
                false => self.b.function.add_result(op, Type::I1),
            };
            self.used.insert((op, value), used);
        }
        if is_loop {
            let initial = first_initial(data.opcode);
            for (index, adjoint) in results.into_iter().enumerate() {
                if let Some(adjoint) = adjoint {
                    self.accumulate(data.operands[initial + index], adjoint);
                }
            }
        }
        self.release_after(op);
    }

    /// Notes that the reverse of a region begins here.
    fn begin_complete(&mut self) {
        let here = self.b.function.regions[self.b.region].ops.len();
        self.complete.push(Complete {
            mark: here,
            at_once: Vec::new(),
        });
    }

    /// Moves what operations take that are differentiated at once before them, when the reverse of their region has been built.
    fn end_complete(&mut self) {
        let complete = self.complete.pop().expect("a complete region is reversed");
        if complete.at_once.is_empty() {
            return;
        }
        let ops = std::mem::take(&mut self.b.function.regions[self.b.region].ops);
        let (forward, built) = ops.split_at(complete.mark);
        let positions: FxHashMap<Op, usize> =
            built.iter().enumerate().map(|(at, &op)| (op, at)).collect();
        let mut moved = vec![false; built.len()];
        let mut before: FxHashMap<Op, Vec<usize>> = FxHashMap::default();
        // What several take goes before the first of them.
        for (op, taken) in complete.at_once.into_iter().rev() {
            let mut pending = taken;
            let mut needed = Vec::new();
            while let Some(value) = pending.pop() {
                let made = self.b.function.def_op(value);
                let Some(&position) = made.and_then(|(made, _)| positions.get(&made)) else {
                    continue;
                };
                if !std::mem::replace(&mut moved[position], true) {
                    needed.push(position);
                    pending.extend(&self.b.function.ops[built[position]].operands);
                }
            }
            needed.sort_unstable();
            before.insert(op, needed);
        }
        let mut placed = Vec::with_capacity(ops.len());
        for &op in forward {
            let needed = before.remove(&op).unwrap_or_default();
            placed.extend(needed.into_iter().map(|position| built[position]));
            placed.push(op);
        }
        let rest = built.iter().zip(&moved).filter(|(_, moved)| !**moved);
        placed.extend(rest.map(|(&op, _)| op));
        self.b.function.regions[self.b.region].ops = placed;
    }

    /// For a loop of which the reverse sweep needs one iteration only, the last that replaced a value: the position of that value
    /// among the carried ones, and the number of the iteration.
    fn only_iteration(&self, op: Op) -> Option<(usize, Value)> {
        let data = &self.source.ops[op];
        let body = data.regions[0];
        if data.opcode != Opcode::For || self.forward.tape.rows.contains_key(&op) {
            return None;
        }
        let mut found = None;
        for &inner in &self.source.regions[body].ops {
            match self.steps.get(&inner) {
                None | Some(Step::Rule | Step::Load { .. }) => {}
                Some(Step::Update { last, .. }) if found.is_none() => {
                    found = Some((self.source.result(inner), *last));
                }
                Some(_) => return None,
            }
        }
        let (updated, last) = found?;
        let end = &self.source.ops[self.source.terminator(body)].operands;
        let position = end.iter().position(|&value| value == updated)?;
        let others = data.results.iter().enumerate();
        let alone = others
            .filter(|(index, _)| *index != position)
            .all(|(_, &result)| !self.forward.activities.is_active(result));
        alone.then_some((position, last))
    }

    /// Reverses one iteration of a loop, if it took place.
    fn reverse_iteration(&mut self, op: Op, position: usize, last: Value) {
        let data = &self.source.ops[op];
        let body = data.regions[0];
        let tracked = self.usages.tracked(op).to_vec();
        let unused = self.b.function.int(Type::I1, 0);
        let Some(adjoint) = self.adjoints[data.results[position]] else {
            for value in tracked {
                self.used.insert((op, value), unused);
            }
            return self.release_after(op);
        };
        let captures = self.captures.get(&op).cloned().unwrap_or_default();
        let before: Vec<Value> = captures.iter().map(|&v| self.adjoint_or_zero(v)).collect();
        let location = self.b.location;
        let last = self.lookup(last);
        let [from, _, step] = [0, 1, 2].map(|index| self.lookup(data.operands[index]));
        let number = iteration_number(&mut self.b, last, from, step);
        let zero = self.b.i64(0);
        let took_place = self.b.icmp(IntPredicate::Sge, number, zero);
        let mut types: Vec<Type> = captures.iter().map(|&v| self.adjoint_type(v)).collect();
        types.push(self.b.ty(adjoint));
        types.extend(tracked.iter().map(|_| Type::I1));
        let (mirrored, then_region, else_region) = self.b.if_else(took_place, &types);
        let outer = std::mem::replace(&mut self.b.region, then_region);
        self.numbers.insert(op, number);
        self.known.insert(self.source.regions[body].args[0], last);
        self.restore(body);
        let mut ends: Vec<Option<Value>> = vec![None; data.results.len()];
        ends[position] = Some(adjoint);
        self.flow_back_through_end(body, 0, &ends);
        self.reverse_ops(body);
        let carried = self.source.regions[body].args[1 + position];
        let mut yields: Vec<Value> = captures.iter().map(|&v| self.adjoint_or_zero(v)).collect();
        yields.push(self.adjoint_or_zero(carried));
        for &value in &tracked {
            yields.push(self.used_inside(body, value));
        }
        self.b.location = location;
        self.b.yields(&yields);
        self.b.region = else_region;
        let mut passed = before;
        passed.push(adjoint);
        passed.extend(tracked.iter().map(|_| unused));
        self.b.yields(&passed);
        self.b.region = outer;
        let results = self.b.function.ops[mirrored].results.clone();
        for (&capture, &result) in captures.iter().zip(&results) {
            self.adjoints[capture] = Some(result);
        }
        self.accumulate(data.operands[3 + position], results[captures.len()]);
        for (&value, &used) in tracked.iter().zip(&results[captures.len() + 1..]) {
            self.used.insert((op, value), used);
        }
        self.release_after(op);
    }

    /// Releases what was kept for the reverse of a loop.
    fn release_after(&mut self, op: Op) {
        if let Some(memory) = self.forward.tape.released_after.get(&op) {
            for &memory in memory {
                let memory = self.lookup(memory);
                self.b.free(memory);
            }
        }
    }

    fn reverse_loop(&mut self, op: Op) {
        if let Some((position, last)) = self.only_iteration(op) {
            return self.reverse_iteration(op, position, last);
        }
        let data = &self.source.ops[op];
        let body = data.regions[0];
        let counted = data.opcode == Opcode::For;
        let (first_initial, first_arg, skip) = if counted { (3, 1, 0) } else { (0, 0, 1) };
        let captures = self.captures.get(&op).cloned().unwrap_or_default();
        // Carried values that are active; their adjoints are carried the other way.
        let carried: Vec<usize> = (0..data.results.len())
            .filter(|&index| {
                let arg = self.source.regions[body].args[first_arg + index];
                self.forward.activities.is_active(data.results[index])
                    || self.forward.activities.is_active(arg)
            })
            .collect();
        let (count, start_and_step) = if counted {
            let from = self.lookup(data.operands[0]);
            let to = self.lookup(data.operands[1]);
            let step = self.lookup(data.operands[2]);
            (trip_count(&mut self.b, from, to, step), Some((from, step)))
        } else {
            (self.lookup(self.forward.augmented.trips[&op].count), None)
        };
        let mut initial: Vec<Value> = captures.iter().map(|&v| self.adjoint_or_zero(v)).collect();
        for &index in &carried {
            let result = data.results[index];
            initial.push(self.adjoint_or_zero(result));
        }
        // Rows of different lengths: the reverse starts behind the last one.
        let rows = self.forward.tape.rows.get(&op).cloned().unwrap_or_default();
        for saving in &rows {
            let total = self.forward.tape.loops[saving].total;
            let total = total.expect("rows of different lengths have a total");
            initial.push(self.lookup(total));
        }
        // What every iteration uses is used if there is one.
        let (always, tracked): (Vec<Value>, Vec<Value>) = self
            .usages
            .tracked(op)
            .iter()
            .partition(|&&v| self.usages.inside(body, v) == Some(Usage::Always));
        let unused = self.b.function.int(Type::I1, 0);
        initial.extend(tracked.iter().map(|_| unused));
        let (zero, one, minus_one) = (self.b.i64(0), self.b.i64(1), self.b.i64(-1));
        if self.usages.asks_what_follows(op) {
            let last = self.b.binary(Opcode::Sub, count, one);
            self.last_numbers.insert(op, last);
        }
        // Where the order does not matter, the usual one is the better one.
        let (mirrored, region) =
            if rows.is_empty() && self.forward.plan.at_once.independent.contains(&op) {
                self.b.for_loop(zero, count, one, &initial)
            } else {
                let last = self.b.binary(Opcode::Sub, count, one);
                self.b.for_loop(last, minus_one, minus_one, &initial)
            };
        let outer = std::mem::replace(&mut self.b.region, region);
        let args = self.b.function.regions[region].args.clone();
        let number = args[0];
        self.numbers.insert(op, number);
        if let Some((from, step)) = start_and_step {
            let counter = self.source.regions[body].args[0];
            let here = self.counter_of(number, from, step);
            self.known.insert(counter, here);
        } else {
            let trips = self.forward.augmented.trips[&op];
            self.known.insert(trips.number, number);
        }
        for (&capture, &arg) in captures.iter().zip(&args[1..]) {
            self.adjoints[capture] = Some(arg);
        }
        self.restore(body);
        let incoming = &args[1 + captures.len()..];
        let used_before = &incoming[carried.len() + rows.len()..];
        for (saving, &end) in rows.iter().zip(&incoming[carried.len()..]) {
            let start = self.start_of_row(*saving, end);
            self.row_starts.insert(*saving, start);
        }
        let mut ends: Vec<Option<Value>> = vec![None; data.results.len()];
        for (&index, &adjoint) in carried.iter().zip(incoming) {
            ends[index] = Some(adjoint);
        }
        self.flow_back_through_end(body, skip, &ends);
        self.reverse_ops(body);
        let mut yields: Vec<Value> = captures.iter().map(|&v| self.adjoint_or_zero(v)).collect();
        for &index in &carried {
            let arg = self.source.regions[body].args[first_arg + index];
            yields.push(self.adjoint_or_zero(arg));
        }
        yields.extend(rows.iter().map(|saving| self.row_starts[saving]));
        yields.extend(self.used_so_far(body, &tracked, used_before));
        self.b.location = data.location;
        self.b.yields(&yields);
        self.b.region = outer;
        let results = self.b.function.ops[mirrored].results.clone();
        for (&capture, &result) in captures.iter().zip(&results) {
            self.adjoints[capture] = Some(result);
        }
        for (&index, &result) in carried.iter().zip(&results[captures.len()..]) {
            self.accumulate(data.operands[first_initial + index], result);
        }
        for (&value, &used) in tracked
            .iter()
            .zip(&results[results.len() - tracked.len()..])
        {
            self.used.insert((op, value), used);
        }
        for value in always {
            let used = self.b.icmp(IntPredicate::Sgt, count, zero);
            self.used.insert((op, value), used);
        }
        self.release_after(op);
    }

    /// Where a row starts that ends before an index.
    fn start_of_row(&mut self, saving: Op, end: Value) -> Value {
        let nest = self.forward.tape.loops[&saving].nest.clone();
        let bounds: Vec<Bounds> = nest
            .iter()
            .map(|&op| {
                let values = [0, 1, 2].map(|k| self.lookup(self.source.ops[op].operands[k]));
                Bounds::unconditional(values)
            })
            .collect();
        let (_, row) = count_elements(&mut self.b, &bounds);
        self.b.binary(Opcode::Sub, end, row)
    }

    /// The counter of a loop from the number of the iteration.
    fn counter_of(&mut self, number: Value, from: Value, step: Value) -> Value {
        let ty = self.b.ty(from);
        let number = match ty {
            Type::I64 => number,
            _ if ty.scalar().bits() < 64 => self.b.cast(Opcode::TruncInt, number, ty),
            _ => self.b.cast(Opcode::Sext, number, ty),
        };
        let distance = match self.b.function.int_of(step) {
            Some(1) => number,
            _ => self.b.binary(Opcode::Mul, number, step),
        };
        match self.b.function.int_of(from) {
            Some(0) => distance,
            _ => self.b.binary(Opcode::Add, from, distance),
        }
    }
}

fn alignment(data: &OpData) -> Alignment {
    match data.payload {
        Payload::Align(align) => align,
        _ => Alignment::ONE,
    }
}
