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

mod accesses;
mod loops;
mod restore;

use crate::activity::Activities;
use crate::augment::Augmented;
use crate::memory;
use crate::plan::{Plan, active_operands, live_regions};
use crate::rules::{self, Primal};
use crate::step::{CallStep, CallTarget, Step};
use crate::tape::Tape;
use crate::unions;
use crate::usage::{Choice, Condition, Test, Usage, Usages};
use ferrozyme_ir::entity::{EntityRef, SecondaryMap};
use ferrozyme_ir::{
    Alignment, Builder, Flags, Function, IntPredicate, Op, OpData, Opcode, Payload, Region,
    Structure, Type, Value,
};
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
            Step::Load { shadow, shape } => self.reverse_load(op, *shadow, *shape),
            Step::Store { shadow, stored } => self.reverse_store(op, *shadow, *stored),
            Step::AtomicAdd { shadow } => self.reverse_atomic_add(op, *shadow),
            Step::Copy {
                to,
                from,
                bytes,
                copied,
                constant,
            } => self.reverse_copy(*to, *from, *bytes, copied, *constant),
            Step::Fill { to, bytes, cells } => {
                let (to, bytes) = (self.lookup(*to), self.lookup(*bytes));
                match cells {
                    Some(cells) => memory::zero_floats(&mut self.b, cells, to, bytes),
                    None => unions::forget(&mut self.b, to, bytes),
                }
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
        let place = (self.b.region(), condition);
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
    fn flow_back_through_end(&mut self, region: Region, adjoints: &[Option<Value>]) {
        let values = self.source.ops[self.source.terminator(region)].values();
        for (&operand, adjoint) in values.iter().zip(adjoints) {
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
            self.flow_back_through_end(only, &results);
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
        let operands = self.source.ops[op].operands.iter();
        let operands: SmallVec<[Value; 1]> = operands.map(|&value| self.lookup(value)).collect();
        let location = self.b.location;
        let mut regions: SmallVec<[Region; 2]> = SmallVec::new();
        let mut ends: Vec<Vec<Value>> = Vec::new();
        for &region in &self.source.ops[op].regions.clone() {
            let target = self.b.function.new_region(&[]);
            regions.push(target);
            let outer = self.b.go_to_end(target);
            if self.source.ends_in_trap(region) {
                self.b.trap("the forward sweep does not come here");
                ends.push(Vec::new());
            } else {
                for (&capture, &adjoint) in captures.iter().zip(&before) {
                    self.adjoints[capture] = adjoint;
                }
                self.restore(region);
                self.flow_back_through_end(region, &results);
                self.reverse_ops(region);
                let mut end: Vec<Value> =
                    captures.iter().map(|&v| self.adjoint_or_zero(v)).collect();
                for &value in &tracked {
                    end.push(self.used_inside(region, value));
                }
                ends.push(end);
            }
            self.b.cursor = outer;
        }
        let mut types: Vec<Type> = captures.iter().map(|&v| self.adjoint_type(v)).collect();
        types.extend(tracked.iter().map(|_| Type::I1));
        let opcode = self.source.ops[op].opcode;
        let payload = self.source.ops[op].payload.clone();
        self.b.location = location;
        let mirrored = self.b.op(opcode, &operands, payload, &types);
        for (&region, end) in regions.iter().zip(&ends) {
            let outer = self.b.go_to_end(region);
            let ended = self.b.function.regions[region]
                .ops
                .last()
                .is_some_and(|&last| self.b.function.ops[last].opcode == Opcode::Trap);
            if !ended {
                self.b.yields(end);
            }
            self.b.cursor = outer;
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
}

fn alignment(data: &OpData) -> Alignment {
    match data.payload {
        Payload::Align(align) => align,
        _ => Alignment::ONE,
    }
}
