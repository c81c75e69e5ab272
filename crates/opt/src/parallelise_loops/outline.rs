//! Makes a function of a loop's iterations, which is called for each block of them.
//!
//! ```text
//! func @f.block(%first: i64, %end: i64, …captures) -> (…sums)       the iterations from one number to another
//! func @f.parallel(%context: ptr, %t: i64)                           body t of a team: finds its block, and calls the other
//! ```
//!
//! What the loop takes from outside is passed in a context in memory. The other function has it as parameters, with facts about pointers, which a context cannot have.

use super::copies::Copied;
use super::profit::product;
use super::sharing::Carried;
use super::strategies::SharedSum;
use super::{ParallelOptions, Plan, Strategy};
use crate::inline::copy_between;
use crate::ranges::RangeBuilder;
use crate::recurrence::build_trip_count;
use ferrozyme_ir::{
    Alignment, Builder, Cursor, Flags, Function, FunctionId, IntPredicate, MemoryEffect, Module,
    Op, Opcode, Param, ParamFacts, Structure, Type, Value, ValueDef,
};
use rustc_hash::FxHashMap;

/// Makes the loop of a plan a choice between both ways to run it.
pub(super) fn apply(
    module: &mut Module,
    function: &mut Function,
    plan: &Plan,
    options: &ParallelOptions,
) {
    // What the team does is not known where it is called.
    function.facts.memory = MemoryEffect::Any;
    function.facts.willreturn = false;
    let block = block_function(module, function, plan);
    let slots = Slots::of(function, plan);
    let body = body_function(module, function, plan, &slots, block);
    let (threads, team) = (module.threads(), module.team());

    let start = function.body();
    let mut entry = Builder::at(function, Cursor::at_start(start));
    let bytes = entry.i64(slots.bytes);
    let context = entry.stack(bytes, context_alignment());

    let region = Structure::of(function)
        .region_of(plan.op)
        .expect("a loop stands in a region");
    let at = Cursor::before(function, region, plan.op);
    at.remove(function);
    let data = &mut function.ops[plan.op];
    data.flags = data.flags.without(Flags::PARALLEL);
    let results = data.results.clone();
    let mut b = Builder::at(function, at);
    b.location = b.function.ops[plan.op].location;
    let site = Site {
        plan,
        slots: &slots,
        threads,
        team,
        body,
        context,
    };
    let known = site.build_members(&mut b, options);
    let one = b.i64(1);
    let several = b.icmp(IntPredicate::Sgt, known.members, one);
    let types: Vec<Type> = results.iter().map(|&value| b.ty(value)).collect();
    let (choice, then, otherwise) = b.if_else(several, &types);
    b.inside(then, |b| {
        let made = site.build_team(b, &known);
        b.yields(&made);
    });
    b.function.append(otherwise, plan.op);
    exchange_results(b.function, choice, plan.op);
    let results = b.function.ops[plan.op].results.clone();
    b.inside(otherwise, |b| b.yields(&results));
}

/// Gives the results of a loop to the choice, and new ones to the loop: who uses them need not know of the change.
fn exchange_results(function: &mut Function, choice: Op, loop_op: Op) {
    let old = std::mem::take(&mut function.ops[loop_op].results);
    let new = std::mem::replace(&mut function.ops[choice].results, old);
    function.ops[loop_op].results = new;
    for op in [choice, loop_op] {
        for (index, result) in function.ops[op].results.clone().into_iter().enumerate() {
            function.values[result].def = ValueDef::Result {
                op,
                index: index as u32,
            };
        }
    }
}

/// The alignment of a context, and of sums.
fn context_alignment() -> Alignment {
    Alignment::new(16).expect("a power of two")
}

/// Where what is in the context lies there.
struct Slots {
    /// The offset of each captured value.
    captures: Vec<i64>,
    /// For each sum that iterations share, the offset of its copies: their memory, the bytes from one to the next, and the address of what they are copies of.
    copies: Vec<i64>,
    bytes: i64,
}

/// The trip count, the number of blocks, which of them run, and where the sums of the blocks are.
const COUNT: i64 = 0;
const BLOCKS: i64 = 8;
const ROUND: i64 = 16;
const SUMS: i64 = 24;
const FIRST_CAPTURE: u64 = 32;

impl Slots {
    fn of(function: &Function, plan: &Plan) -> Slots {
        let mut bytes = FIRST_CAPTURE;
        let mut captures = Vec::new();
        let take = |bytes: &mut u64, size: u64| {
            let offset = bytes.next_multiple_of(size.next_power_of_two());
            *bytes = offset + size;
            offset as i64
        };
        for capture in &plan.captures.values {
            let size = function.ty(capture.value).bytes().max(8);
            captures.push(take(&mut bytes, size));
        }
        let copies = plan.shared.iter().map(|_| {
            let [first, _, _] = [(); 3].map(|()| take(&mut bytes, 8));
            first
        });
        let copies = copies.collect();
        Slots {
            captures,
            copies,
            bytes: bytes as i64,
        }
    }
}

/// A name that no function has.
fn free_name(module: &Module, function: &Function, what: &str) -> String {
    let base = &function.name;
    let names = (1..).map(|number| match number {
        1 => format!("{base}.{what}"),
        _ => format!("{base}.{what}{number}"),
    });
    let mut free = names.filter(|name| module.function_named(name).is_none());
    free.next().expect("there is always another number")
}

/// Makes the function that runs the iterations from one number to another.
fn block_function(module: &mut Module, source: &Function, plan: &Plan) -> FunctionId {
    let mut params: Vec<Param> = vec![Type::I64.into(), Type::I64.into()];
    for capture in &plan.captures.values {
        params.push(Param {
            ty: source.ty(capture.value),
            facts: ParamFacts {
                noalias: capture.alone,
                readonly: capture.readonly,
                ..ParamFacts::default()
            },
        });
    }
    let results: Vec<Type> = plan.carried.iter().map(|carried| carried.ty()).collect();
    let name = free_name(module, source, "block");
    let mut target = Function::define(name, params, results);
    target.facts.level = source.facts.level;
    let arguments = target.arguments().to_vec();
    let (first, end) = (arguments[0], arguments[1]);
    let captured = plan.captures.values.iter().map(|capture| capture.value);
    let mut values: FxHashMap<Value, Value> =
        captured.zip(arguments[2..].iter().copied()).collect();
    for (&from, &to) in &values {
        target.values[to].range = source.values[from].range;
    }
    let (repeated, _) = copy_between(
        module,
        source,
        &mut target,
        &plan.captures.repeated,
        &mut values,
    );
    let body = target.body();
    for op in repeated {
        target.append(body, op);
    }
    let data = &source.ops[plan.op];
    let mut b = Builder::at_body(&mut target);
    b.location = data.location;
    let [from, to, step] = data.bounds().map(|bound| match source.constant_of(bound) {
        Some(constant) if !values.contains_key(&bound) => {
            b.function.constant(source.ty(bound), constant.clone())
        }
        _ => values[&bound],
    });
    let last = build_counter_end(&mut b, [from, to, step], end);
    let start = counter_at(&mut b, from, step, first);
    let initial: Vec<Value> = plan
        .carried
        .iter()
        .map(|carried| carried.neutral(b.function))
        .collect();
    let (again, inner) = b.for_loop(start, last, step, &initial);
    let results = b.function.ops[again].results.to_vec();
    b.ret(&results);
    let original = data.body();
    let arguments = target.regions[inner].args.clone();
    for (&old, &new) in source.regions[original].args.iter().zip(&arguments) {
        target.values[new].range = source.values[old].range;
        values.insert(old, new);
    }
    let ops = &source.regions[original].ops;
    let (copies, copied) = copy_between(module, source, &mut target, ops, &mut values);
    for op in copies {
        target.append(inner, op);
    }
    for shared in &plan.shared {
        if shared.strategy == Strategy::Atomic {
            shared.make_atomic(&mut target, &copied);
        }
    }
    module.functions.push(target)
}

/// The counter's value in an iteration.
fn counter_at(b: &mut Builder<'_>, from: Value, step: Value, number: Value) -> Value {
    let ty = b.ty(from);
    let number = match ty {
        Type::I64 => number,
        _ => b.cast(Opcode::TruncInt, number, ty),
    };
    let passed = b.binary(Opcode::Mul, number, step);
    b.binary(Opcode::Add, from, passed)
}

/// The end of the counter for a block: that of the loop for the last one, since the value behind the last iteration need not exist.
fn build_counter_end(b: &mut Builder<'_>, [from, to, step]: [Value; 3], end: Value) -> Value {
    let count = build_trip_count(b, from, to, step);
    let is_last = b.icmp(IntPredicate::Sge, end, count);
    let inside = counter_at(b, from, step, end);
    b.select(is_last, to, inside)
}

/// Makes the body of the team.
fn body_function(
    module: &mut Module,
    source: &Function,
    plan: &Plan,
    slots: &Slots,
    block: FunctionId,
) -> FunctionId {
    let name = free_name(module, source, "parallel");
    let params = vec![Type::PTR.into(), Type::I64.into()];
    let mut target = Function::define(name, params, Vec::new());
    target.facts.level = source.facts.level;
    let (context, member) = (target.arguments()[0], target.arguments()[1]);
    let mut b = Builder::at_body(&mut target);
    b.location = source.ops[plan.op].location;
    let read = |b: &mut Builder<'_>, offset: i64, ty: Type| {
        let place = b.offset_bytes(context, offset);
        b.load(ty, place, Alignment::natural(ty))
    };
    let (count, blocks) = (
        read(&mut b, COUNT, Type::I64),
        read(&mut b, BLOCKS, Type::I64),
    );
    let number = match plan.rounds() {
        1 => member,
        rounds => {
            let (round, rounds) = (read(&mut b, ROUND, Type::I64), b.i64(rounds));
            let before = b.binary(Opcode::Mul, member, rounds);
            b.binary(Opcode::Add, before, round)
        }
    };
    // The first blocks have an iteration more than the others, if they cannot all have as many.
    let size = b.binary(Opcode::Udiv, count, blocks);
    let longer = b.binary(Opcode::Urem, count, blocks);
    let start_of = |b: &mut Builder<'_>, number: Value| {
        let before = b.binary(Opcode::Mul, number, size);
        let more = b.binary(Opcode::Smin, number, longer);
        b.binary(Opcode::Add, before, more)
    };
    let one = b.i64(1);
    let next = b.binary(Opcode::Add, number, one);
    let (first, end) = (start_of(&mut b, number), start_of(&mut b, next));
    let mut arguments = vec![first, end];
    for (capture, &offset) in plan.captures.values.iter().zip(&slots.captures) {
        let mut value = read(&mut b, offset, source.ty(capture.value));
        if let Some(position) = capture.copy {
            let parts = [(0, Type::PTR), (8, Type::I64), (16, Type::I64)];
            let [copies, room, start] =
                parts.map(|(part, ty)| read(&mut b, slots.copies[position] + part, ty));
            // The place in the copy that stands for what the pointer points to.
            let before = b.binary(Opcode::Mul, number, room);
            let copy = b.offset(copies, before, 1);
            let address = b.cast(Opcode::Ptrtoint, value, Type::I64);
            let distance = b.binary(Opcode::Sub, address, start);
            value = b.offset(copy, distance, 1);
        }
        arguments.push(value);
    }
    let types: Vec<Type> = plan.carried.iter().map(|carried| carried.ty()).collect();
    let call = b.call(block, &arguments, &types);
    if !types.is_empty() {
        let sums = read(&mut b, SUMS, Type::PTR);
        let results = b.function.ops[call].results.clone();
        for (place, &result) in results.iter().enumerate() {
            let at = sum_place(&mut b, sums, number, place, types.len());
            let ty = b.ty(result);
            b.store(result, at, Alignment::natural(ty));
        }
    }
    b.ret(&[]);
    module.functions.push(target)
}

/// Where the sum of a block is.
fn sum_place(b: &mut Builder<'_>, sums: Value, block: Value, place: usize, of: usize) -> Value {
    let row = b.offset(sums, block, SUM_BYTES * of as i64);
    b.offset_bytes(row, SUM_BYTES * place as i64)
}

/// How many bytes a sum takes.
const SUM_BYTES: i64 = 8;

/// Where a loop is run by a team.
struct Site<'a> {
    plan: &'a Plan,
    slots: &'a Slots,
    threads: FunctionId,
    team: FunctionId,
    body: FunctionId,
    context: Value,
}

/// What is known of a loop before it runs.
struct Known<'a> {
    count: Value,
    members: Value,
    /// The sums of which blocks have copies, with their positions among the shared ones.
    copied: Vec<(usize, &'a SharedSum, Copied)>,
}

impl<'a> Site<'a> {
    /// Builds the number of members of the team: one if the loop is to run as it was.
    fn build_members(&self, b: &mut Builder<'_>, options: &ParallelOptions) -> Known<'a> {
        let [from, to, step] = b.function.ops[self.plan.op].bounds();
        let count = build_trip_count(b, from, to, step);
        let each = self.plan.work.build(b);
        let work = product(b, count, each);
        let mut ranges = RangeBuilder::new(&self.plan.place);
        let shared = self.plan.shared.iter().enumerate();
        let copied = shared.filter(|(_, sum)| sum.strategy == Strategy::Copies);
        let copied: Vec<_> = copied
            .map(|(position, sum)| (position, sum, Copied::build(b, &mut ranges, sum)))
            .collect();
        let least = b.i64(i64::try_from(options.least_work).unwrap_or(i64::MAX));
        let enough = b.icmp(IntPredicate::Sge, work, least);
        let (choice, large, small) = b.if_else(enough, &[Type::I64]);
        let one = b.i64(1);
        b.inside(small, |b| b.yields(&[one]));
        b.inside(large, |b| {
            let asked = b.call(self.threads, &[], &[Type::I64]);
            let asked = b.function.result(asked);
            let blocks = match self.plan.rounds() * self.plan.least_block() {
                1 => count,
                least => {
                    let least = b.i64(least);
                    b.binary(Opcode::Udiv, count, least)
                }
            };
            let mut members = b.binary(Opcode::Smin, asked, blocks);
            let mut holding: Vec<Value> = Vec::new();
            for test in &self.plan.tests {
                holding.extend(test.build(b, &mut ranges));
            }
            let blocks = self.build_blocks(b, members);
            let work = (options.least_work > 0).then_some(work);
            let worth = copied.iter();
            holding.extend(worth.map(|(_, _, copy)| copy.build_test(b, blocks, work)));
            if let Some(waits) = self.plan.waits.as_ref().filter(|_| options.least_work > 0) {
                // What the other threads take over is more than what all wait for each other.
                let others = b.binary(Opcode::Sub, asked, one);
                let taken = b.binary(Opcode::Mul, others, each);
                let waits = waits.build(b);
                holding.push(b.icmp(IntPredicate::Sgt, taken, waits));
            }
            for holds in holding {
                members = b.select(holds, members, one);
            }
            let inexact = ranges.build_inexact(b);
            members = b.select(inexact, one, members);
            b.yields(&[members]);
        });
        Known {
            count,
            members: b.function.result(choice),
            copied,
        }
    }

    fn build_blocks(&self, b: &mut Builder<'_>, members: Value) -> Value {
        match self.plan.rounds() {
            1 => members,
            rounds => {
                let rounds = b.i64(rounds);
                b.binary(Opcode::Mul, members, rounds)
            }
        }
    }

    /// Builds the call of the team, and gives what the loop gives.
    fn build_team(&self, b: &mut Builder<'_>, known: &Known<'_>) -> Vec<Value> {
        let blocks = self.build_blocks(b, known.members);
        self.write(b, COUNT, known.count);
        self.write(b, BLOCKS, blocks);
        for (capture, &offset) in self.plan.captures.values.iter().zip(&self.slots.captures) {
            self.write(b, offset, capture.value);
        }
        let mut copies = Vec::new();
        for (position, _, copied) in &known.copied {
            let memory = copied.build_memory(b, blocks);
            let slot = self.slots.copies[*position];
            for (part, value) in [(0, memory), (8, copied.room), (16, copied.start)] {
                self.write(b, slot + part, value);
            }
            copies.push(memory);
        }
        let width = SUM_BYTES * self.plan.carried.len() as i64;
        let sums = (width > 0).then(|| {
            let row = b.i64(width);
            let bytes = b.binary(Opcode::Mul, blocks, row);
            let sums = b.alloc(bytes, context_alignment(), false);
            self.write(b, SUMS, sums);
            sums
        });
        let body = b.function_address(self.body);
        for round in 0..self.plan.rounds() {
            if self.plan.rounds() > 1 {
                let round = b.i64(round);
                self.write(b, ROUND, round);
            }
            b.call(self.team, &[known.members, body, self.context], &[]);
        }
        for ((_, sum, copied), memory) in known.copied.iter().zip(copies) {
            copied.add_up(b, sum, memory, blocks);
        }
        match sums {
            Some(sums) => self.add_up(b, sums, blocks),
            None => Vec::new(),
        }
    }

    fn write(&self, b: &mut Builder<'_>, offset: i64, value: Value) {
        let place = b.offset_bytes(self.context, offset);
        let ty = b.ty(value);
        b.store(value, place, Alignment::natural(ty));
    }

    /// Adds up the sums of the blocks, in their order.
    fn add_up(&self, b: &mut Builder<'_>, sums: Value, blocks: Value) -> Vec<Value> {
        let initial = b.function.ops[self.plan.op].initial().to_vec();
        let (zero, one) = (b.i64(0), b.i64(1));
        let (op, body) = b.for_loop(zero, blocks, one, &initial);
        let arguments = b.function.regions[body].args.clone();
        b.inside(body, |b| {
            let mut next = Vec::new();
            for (place, carried) in self.plan.carried.iter().enumerate() {
                let ty = carried.ty();
                let at = sum_place(b, sums, arguments[0], place, self.plan.carried.len());
                let part = b.load(ty, at, Alignment::natural(ty));
                let opcode = match carried {
                    Carried::Sum(_) => Opcode::Fadd,
                    Carried::Any(_) => Opcode::Or,
                };
                next.push(b.binary(opcode, arguments[1 + place], part));
            }
            b.yields(&next);
        });
        b.free(sums);
        b.function.ops[op].results.to_vec()
    }
}

impl Carried {
    fn ty(self) -> Type {
        match self {
            Carried::Sum(ty) | Carried::Any(ty) => ty,
        }
    }

    /// What a block starts with.
    fn neutral(self, function: &mut Function) -> Value {
        match self {
            Carried::Sum(ty) => function.float(ty, -0.0),
            Carried::Any(ty) => function.int(ty, 0),
        }
    }
}
