//! Random programs, run for several arguments: no answer "no" may ever be refuted.

use super::trace::{Datum, OUTSIDE, Tracer};
use super::*;
use crate::clobbers::Clobbers;
use ferrozyme_ir::{
    Alignment, Builder, Flags, FunctionId, IntPredicate, Opcode, Param, ParamFacts, Type, all_ops,
    print_module,
};
use rustc_hash::FxHashSet;

/// The programs of one run of the tests; `FERROZYME_ALIAS_PROGRAMS` asks for another number.
const PROGRAMS: u64 = 2000;

#[test]
fn no_proof_is_refuted() {
    let programs = std::env::var("FERROZYME_ALIAS_PROGRAMS")
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(PROGRAMS);
    let mut statistics = Statistics::default();
    for seed in 0..programs {
        check_program(seed, &mut statistics);
    }
    // The test is worth nothing if there is hardly anything to refute.
    assert!(statistics.valid_runs > programs, "{statistics:?}");
    assert!(statistics.proofs > programs, "{statistics:?}");
    assert!(statistics.hulls > programs / 20, "{statistics:?}");
    println!("{statistics:?}");
}

#[derive(Debug, Default)]
struct Statistics {
    valid_runs: u64,
    /// Pairs of a read and a write through one root that are proven apart, of how many.
    proofs: u64,
    pairs: u64,
    hulls: u64,
    reads: u64,
    kept: u64,
}

fn check_program(seed: u64, statistics: &mut Statistics) {
    let (module, id) = generate(seed);
    let function = &module.functions[id];
    let text = || format!("seed {seed}\n{}", print_module(&module));
    if let Err(errors) = ferrozyme_ir::verify_module(&module) {
        panic!("{errors:?}\n{}", text());
    }
    // With a low limit, the summaries of many writes are put to the test too.
    let compared = if seed.is_multiple_of(3) { 2 } else { 32 };
    let clobbers = Clobbers::compute_comparing(&module, function, compared);
    let aliases = clobbers.aliases();
    let ops = all_ops(function);
    let mut hulls = Vec::new();
    for &op in &ops {
        let reads = aliases.reads(op);
        let [access] = reads.accesses.as_slice() else {
            continue;
        };
        for loop_op in aliases.indices().loops_around(op) {
            if let Some(hull) = aliases.hull(access, op, loop_op) {
                hulls.push((op, loop_op, hull));
            }
        }
    }
    statistics.hulls += hulls.len() as u64;
    // Pairs of operations whose executions met, in the ways that the questions distinguish.
    let mut later: FxHashSet<(Op, Op)> = FxHashSet::default();
    let mut later_in_loop: FxHashSet<(Op, Op, Op)> = FxHashSet::default();
    let mut met_in_loop: FxHashSet<(Op, Op, Op)> = FxHashSet::default();
    let mut rng = Rng::new(seed ^ 0x5eed);
    let mut valid = 0;
    for _ in 0..6 {
        let arguments = arguments(&mut rng);
        let mut tracer = Tracer::new(aliases);
        for (op, loop_op, hull) in &hulls {
            tracer.watch(*op, *loop_op, hull.clone());
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            tracer.run(&arguments).is_ok()
        }));
        match outcome {
            Ok(true) => valid += 1,
            Ok(false) => continue,
            Err(_) => panic!("an expression is wrong for {arguments:?}:\n{}", text()),
        }
        for (position, event) in tracer.events.iter().enumerate() {
            if event.write || event.start == event.end {
                continue;
            }
            for (other_position, other) in tracer.events.iter().enumerate() {
                let meet = other.write
                    && other.start < other.end
                    && other.object == event.object
                    && other.start < event.end
                    && event.start < other.end;
                if !meet {
                    continue;
                }
                let after = other_position > position;
                if after {
                    later.insert((event.op, other.op));
                }
                for around in event
                    .loops
                    .iter()
                    .filter(|&around| other.loops.contains(around))
                {
                    met_in_loop.insert((event.op, other.op, around.0));
                    if after {
                        later_in_loop.insert((event.op, other.op, around.0));
                    }
                }
            }
        }
        for claim in &tracer.claims {
            let touched = tracer.events.iter().filter(|event| {
                event.op == claim.op
                    && !event.write
                    && event.loops.contains(&(claim.loop_op, claim.execution))
            });
            let mut range: Option<(u32, i128, i128)> = None;
            for event in touched {
                range = Some(match range {
                    None => (event.object, event.start, event.end),
                    Some((object, start, end)) => {
                        assert_eq!(object, event.object);
                        (object, start.min(event.start), end.max(event.end))
                    }
                });
            }
            assert_eq!(
                range,
                claim.range,
                "{claim:?} for {arguments:?}:\n{}",
                text()
            );
        }
    }
    statistics.valid_runs += valid;
    for &read in &ops {
        let reads = aliases.reads(read);
        if reads.is_empty() {
            continue;
        }
        statistics.reads += 1;
        statistics.kept += u64::from(clobbers.clobber_of(read).is_none());
        for &write in &ops {
            let writes = aliases.writes(write);
            if writes.is_empty() {
                continue;
            }
            check_pair(
                aliases,
                (read, &reads),
                (write, &writes),
                &later,
                statistics,
                &text,
            );
        }
    }
    for &(read, write) in &later {
        assert!(
            clobbers.clobber_of(read).is_some(),
            "{read} is clobbered by {write}:\n{}",
            text()
        );
    }
    for &(read, write, loop_op) in &later_in_loop {
        assert!(
            clobbers.clobbered_in_loop(read, loop_op),
            "{read} is clobbered by {write} in {loop_op}:\n{}",
            text()
        );
    }
    for &(read, write, loop_op) in &met_in_loop {
        assert!(
            clobbers.written_in_loop(read, loop_op),
            "{read} is written by {write} in {loop_op}:\n{}",
            text()
        );
    }
}

fn check_pair(
    aliases: &Aliases,
    (read, reads): (Op, &Footprint),
    (write, writes): (Op, &Footprint),
    later: &FxHashSet<(Op, Op)>,
    statistics: &mut Statistics,
    text: &dyn Fn() -> String,
) {
    let elsewhere = |footprint: &Footprint, other: &Footprint| {
        footprint.elsewhere
            && (other.elsewhere
                || other
                    .accesses
                    .iter()
                    .any(|access| aliases.is_reachable_from_elsewhere(access.root)))
    };
    let mut may = elsewhere(reads, writes) || elsewhere(writes, reads);
    for a in &reads.accesses {
        for b in &writes.accesses {
            let answer = aliases.may_overwrite_later((read, a), (write, b));
            may |= answer;
            if a.root == b.root {
                statistics.pairs += 1;
                statistics.proofs += u64::from(!answer);
            }
        }
    }
    assert!(
        may || !later.contains(&(read, write)),
        "{read} is overwritten by {write}:\n{}",
        text()
    );
}

fn arguments(rng: &mut Rng) -> Vec<Datum> {
    // Exclusive parameters have objects of their own; the others lie in one, with the globals.
    let mut arguments = vec![Datum::Pointer(2, 0), Datum::Pointer(3, 64)];
    for _ in 0..2 {
        let object = if rng.chance(80) { OUTSIDE } else { 4 };
        arguments.push(Datum::Pointer(object, 4 * rng.below(8) as i128));
    }
    for _ in 0..2 {
        arguments.push(Datum::Int(rng.below(6) as i128 - 1));
    }
    arguments.push(Datum::Int(rng.below(5) as i128));
    arguments.push(Datum::Int(-(rng.below(2) as i128)));
    arguments.push(Datum::Other);
    arguments
}

struct Rng(u64);

impl Rng {
    fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }
}

struct Generator<'f> {
    rng: Rng,
    b: Builder<'f>,
    ints: Vec<Value>,
    narrow: Vec<Value>,
    pointers: Vec<Value>,
    conditions: Vec<Value>,
    float: Value,
    callees: [FunctionId; 4],
    /// How many more operations may be made.
    budget: u32,
}

fn generate(seed: u64) -> (Module, FunctionId) {
    let mut module = Module::new();
    let pointer = |facts: ParamFacts| Param {
        ty: Type::PTR,
        facts,
    };
    let any = Function::declare("any", vec![Type::PTR.into()], vec![]);
    let pass = Function::declare(
        "pass",
        vec![pointer(ParamFacts {
            nocapture: true,
            ..ParamFacts::default()
        })],
        vec![],
    );
    let mut look = Function::declare(
        "look",
        vec![pointer(ParamFacts {
            nocapture: true,
            readonly: true,
            ..ParamFacts::default()
        })],
        vec![],
    );
    look.facts.memory = MemoryEffect::Read;
    let mut touch = Function::declare("touch", vec![Type::PTR.into()], vec![]);
    touch.facts.memory = MemoryEffect::Args;
    let callees = [any, pass, look, touch].map(|function| module.functions.push(function));
    let exclusive = pointer(ParamFacts {
        noalias: true,
        ..ParamFacts::default()
    });
    let limited = Param {
        ty: Type::I64,
        facts: ParamFacts {
            range: Some(ferrozyme_ir::Range { min: 0, max: 4 }),
            ..ParamFacts::default()
        },
    };
    let params = vec![
        exclusive.clone(),
        exclusive,
        Type::PTR.into(),
        Type::PTR.into(),
        Type::I64.into(),
        Type::I64.into(),
        limited,
        Type::I1.into(),
        Type::F64.into(),
    ];
    let mut function = Function::define("f", params, vec![]);
    let arguments = function.arguments().to_vec();
    let mut rng = Rng::new(seed);
    let budget = 6 + rng.below(30) as u32;
    let mut generator = Generator {
        rng,
        ints: arguments[4..7].to_vec(),
        narrow: Vec::new(),
        pointers: arguments[..4].to_vec(),
        conditions: vec![arguments[7]],
        float: arguments[8],
        callees,
        budget,
        b: Builder::at_body(&mut function),
    };
    while generator.budget > 0 {
        generator.statement(0);
    }
    generator.b.ret(&[]);
    let id = module.functions.push(function);
    (module, id)
}

impl Generator<'_> {
    fn statements(&mut self, depth: u32) {
        for _ in 0..1 + self.rng.below(5) {
            self.statement(depth);
        }
    }

    /// Runs `build` in a region; what it defines is forgotten afterwards.
    fn inside(&mut self, region: Region, build: impl FnOnce(&mut Self)) {
        let marks = (
            self.ints.len(),
            self.narrow.len(),
            self.pointers.len(),
            self.conditions.len(),
        );
        let outer = self.b.go_to_end(region);
        build(self);
        self.b.cursor = outer;
        self.ints.truncate(marks.0);
        self.narrow.truncate(marks.1);
        self.pointers.truncate(marks.2);
        self.conditions.truncate(marks.3);
    }

    fn int(&mut self) -> Value {
        if self.rng.chance(25) {
            let number = self.rng.below(7) as i64 - 2;
            return self.b.i64(number);
        }
        // Recent values are more interesting than old ones.
        let recent = self.ints.len().saturating_sub(5);
        if self.rng.chance(60) {
            let recent = self.ints[recent..].to_vec();
            self.rng.pick(&recent)
        } else {
            let all = self.ints.clone();
            self.rng.pick(&all)
        }
    }

    fn pointer(&mut self) -> Value {
        let all = self.pointers.clone();
        let recent = all.len().saturating_sub(3);
        if self.rng.chance(30) {
            self.rng.pick(&all[recent..])
        } else {
            self.rng.pick(&all)
        }
    }

    /// A place, mostly one with an index.
    fn place(&mut self) -> Value {
        let base = self.pointer();
        if self.rng.chance(15) {
            return base;
        }
        let index = if self.rng.chance(50) {
            self.affine()
        } else {
            self.int()
        };
        let scale = self.rng.pick(&[8, 8, 8, 8, 16, 24, 4, -8]);
        let place = self.b.offset(base, index, scale);
        if self.rng.chance(30) {
            let bytes = self.rng.pick(&[8, -8, 16, 4, 24]);
            return self.b.offset_bytes(place, bytes);
        }
        place
    }

    /// A sum of products of small values.
    fn affine(&mut self) -> Value {
        let mut sum = self.int();
        for _ in 0..1 + self.rng.below(2) {
            let mut term = self.int();
            if self.rng.chance(50) {
                let factor = self.int();
                term = self.b.binary(Opcode::Mul, term, factor);
            }
            let opcode = self.rng.pick(&[Opcode::Add, Opcode::Add, Opcode::Sub]);
            sum = self.b.binary(opcode, sum, term);
        }
        sum
    }

    fn statement(&mut self, depth: u32) {
        self.budget = self.budget.saturating_sub(1);
        let align = Alignment::ONE;
        match self.rng.below(100) {
            0..15 => self.compute(),
            15..35 => {
                let place = self.place();
                let ty = self.rng.pick(&[
                    Type::F64,
                    Type::F64,
                    Type::F64,
                    Type::F32,
                    Type::I64,
                    Type::PTR,
                ]);
                let loaded = self.b.load(ty, place, align);
                match ty {
                    Type::I64 => self.ints.push(loaded),
                    Type::PTR => self.pointers.push(loaded),
                    _ => {}
                }
            }
            35..55 => {
                let place = self.place();
                let stored = match self.rng.below(10) {
                    0 => self.pointer(),
                    1 => self.int(),
                    _ => self.float,
                };
                self.b.store(stored, place, align);
            }
            55..60 => {
                let (to, from) = (self.place(), self.place());
                let eight = self.b.i64(8);
                let count = self.int();
                let size = self.b.binary(Opcode::Mul, count, eight);
                let byte = self.b.zero(Type::I8);
                match self.rng.below(3) {
                    0 => self.b.copy(to, from, size, align),
                    1 => self
                        .b
                        .op(Opcode::Move, &[to, from, size], Payload::Align(align), &[]),
                    _ => self.b.fill(to, byte, size, align),
                };
            }
            60..64 => self.choose_pointer(),
            64..67 => {
                let bytes = self.b.i64(64);
                let object = if self.rng.chance(50) {
                    self.b.alloc(bytes, align, false)
                } else {
                    self.b.stack(bytes, align)
                };
                self.pointers.push(object);
            }
            67 => {
                let object = self.pointer();
                self.b.free(object);
            }
            68..71 => {
                let callee = self.rng.pick(&self.callees.clone());
                let argument = self.place();
                self.b.call(callee, &[argument], &[]);
            }
            71 => {
                let place = self.place();
                let float = self.float;
                self.b.op(
                    Opcode::AtomicAdd,
                    &[place, float],
                    Payload::Align(align),
                    &[Type::F64],
                );
            }
            72..77 => self.branch(depth),
            77..82 if depth < 3 => self.general_loop(depth),
            82..88 if depth < 2 => self.matrix_nest(),
            _ if depth < 3 => self.counted_loop(depth),
            _ => self.compute(),
        }
    }

    fn compute(&mut self) {
        let (a, c) = (self.int(), self.int());
        let one = self.b.i64(1);
        let two = self.b.i64(2);
        let result = match self.rng.below(14) {
            0..4 => self.affine(),
            4 => self.b.binary(Opcode::Shl, a, one),
            5 => {
                let even = self.b.binary(Opcode::Shl, a, one);
                self.b.binary(Opcode::Or, even, one)
            }
            6 => self.b.binary(Opcode::Sdiv, a, two),
            7 => self.b.binary(Opcode::Smax, a, c),
            8 => {
                let condition = self.condition();
                self.b.select(condition, a, c)
            }
            9 => {
                let opcode =
                    self.rng
                        .pick(&[Opcode::And, Opcode::Smin, Opcode::Urem, Opcode::Srem]);
                self.b.binary(opcode, a, two)
            }
            10..12 => {
                // Through a narrower type, which may wrap.
                let narrow = self.b.cast(Opcode::TruncInt, a, Type::I8);
                self.narrow.push(narrow);
                let factor = self.rng.pick(&[3, 50, 100]);
                let factor = self.b.function.int(Type::I8, factor);
                let product = self.b.binary(Opcode::Mul, narrow, factor);
                let opcode = self.rng.pick(&[Opcode::Sext, Opcode::Zext]);
                self.b.cast(opcode, product, Type::I64)
            }
            _ => {
                let sum = self.b.binary(Opcode::Add, a, c);
                if let Some((op, _)) = self.b.function.def_op(sum) {
                    self.b.function.ops[op].flags = Flags::NSW;
                }
                sum
            }
        };
        self.ints.push(result);
    }

    fn condition(&mut self) -> Value {
        if self.rng.chance(30) {
            let all = self.conditions.clone();
            return self.rng.pick(&all);
        }
        let predicate = self.rng.pick(IntPredicate::ALL);
        let (a, c) = (self.int(), self.int());
        let condition = self.b.icmp(predicate, a, c);
        self.conditions.push(condition);
        condition
    }

    fn choose_pointer(&mut self) {
        let (a, c) = (self.place(), self.place());
        let condition = self.condition();
        let chosen = if self.rng.chance(50) {
            self.b.select(condition, a, c)
        } else {
            let (op, then_region, else_region) = self.b.if_else(condition, &[Type::PTR]);
            self.b.inside(then_region, |b| b.yields(&[a]));
            self.b.inside(else_region, |b| b.yields(&[c]));
            self.b.function.result(op)
        };
        self.pointers.push(chosen);
    }

    fn branch(&mut self, depth: u32) {
        let condition = self.condition();
        let (_, then_region, else_region) = self.b.if_else(condition, &[]);
        self.inside(then_region, |generator| {
            generator.statements(depth);
            generator.b.yields(&[]);
        });
        let traps = self.rng.chance(15);
        self.inside(else_region, |generator| {
            if traps {
                generator.b.trap("no");
            } else {
                if generator.rng.chance(50) {
                    generator.statements(depth);
                }
                generator.b.yields(&[]);
            }
        });
    }

    fn counted_loop(&mut self, depth: u32) {
        if self.rng.chance(10) {
            self.narrow_loop(depth);
            return;
        }
        let zero = self.b.i64(0);
        let (mut from, mut to) = (zero, self.int());
        if self.rng.chance(40) {
            from = self.int();
        }
        if self.rng.chance(15) {
            to = self.affine();
        }
        let step = self.rng.pick(&[1, 1, 1, 1, 1, -1, -1, 2, 3, -2]);
        if step < 0 {
            (from, to) = (to, from);
        }
        let step = if self.rng.chance(3) {
            let all = self.ints.clone();
            self.rng.pick(&all)
        } else {
            self.b.i64(step)
        };
        let carries_int = self.rng.chance(25);
        let carries_pointer = self.rng.chance(25);
        let mut initial = Vec::new();
        if carries_int {
            initial.push(self.int());
        }
        if carries_pointer {
            initial.push(self.pointer());
        }
        let (op, body) = self.b.for_loop(from, to, step, &initial);
        let arguments = self.b.function.regions[body].args.clone();
        self.inside(body, |generator| {
            generator.ints.push(arguments[0]);
            let mut carried = arguments[1..].iter().copied();
            if carries_int {
                generator.ints.extend(carried.next());
            }
            generator.pointers.extend(carried);
            generator.statements(depth + 1);
            let next = generator.carried(&arguments[1..]);
            generator.b.yields(&next);
        });
        self.take_results(op);
    }

    /// What becomes of carried values: mostly they grow evenly.
    fn carried(&mut self, arguments: &[Value]) -> Vec<Value> {
        let mut next = Vec::new();
        for &argument in arguments {
            let amount = self.rng.below(4) as i64 - 1;
            let amount = self.b.i64(amount);
            next.push(match self.b.ty(argument) {
                Type::I64 if self.rng.chance(70) => self.b.binary(Opcode::Add, argument, amount),
                Type::I64 => self.int(),
                _ if self.rng.chance(70) => self.b.offset(argument, amount, 8),
                _ => self.pointer(),
            });
        }
        next
    }

    fn take_results(&mut self, op: Op) {
        for result in self.b.function.ops[op].results.clone() {
            match self.b.ty(result) {
                Type::I64 => self.ints.push(result),
                _ => self.pointers.push(result),
            }
        }
    }

    fn narrow_loop(&mut self, depth: u32) {
        let bound = self.int();
        let to = self.b.cast(Opcode::TruncInt, bound, Type::I8);
        let from = self.b.zero(Type::I8);
        let step = self.b.function.int(Type::I8, 1);
        let (_, body) = self.b.for_loop(from, to, step, &[]);
        let counter = self.b.function.regions[body].args[0];
        self.inside(body, |generator| {
            let opcode = generator.rng.pick(&[Opcode::Sext, Opcode::Zext]);
            let wide = generator.b.cast(opcode, counter, Type::I64);
            generator.ints.push(wide);
            generator.statements(depth + 1);
            generator.b.yields(&[]);
        });
    }

    /// Loops over the rows and columns of a matrix, or a part of it, with accesses to elements nearby.
    fn matrix_nest(&mut self) {
        let matrix = self.pointer();
        let (rows, columns) = (self.int(), self.int());
        let zero = self.b.i64(0);
        let one = self.b.i64(1);
        let width = match self.rng.below(4) {
            0 => rows,
            1 => self.b.binary(Opcode::Add, columns, one),
            _ => columns,
        };
        let first = if self.rng.chance(70) { zero } else { one };
        let (_, outer) = self.b.for_loop(first, rows, one, &[]);
        let row = self.b.function.regions[outer].args[0];
        self.inside(outer, |generator| {
            let next = generator.b.binary(Opcode::Add, row, one);
            let from = generator.rng.pick(&[zero, zero, zero, row, next]);
            let to = generator.rng.pick(&[columns, columns, columns, row, next]);
            if generator.rng.chance(30) {
                generator.element(matrix, width, &[row, next, zero]);
            }
            let (_, inner) = generator.b.for_loop(from, to, one, &[]);
            let column = generator.b.function.regions[inner].args[0];
            generator.inside(inner, |generator| {
                for _ in 0..1 + generator.rng.below(4) {
                    generator.element(matrix, width, &[row, column, column, next]);
                }
                generator.b.yields(&[]);
            });
            generator.b.yields(&[]);
        });
    }

    /// A load or store of an element whose row and column are among some values.
    fn element(&mut self, matrix: Value, width: Value, values: &[Value]) {
        let (row, column) = (self.rng.pick(values), self.rng.pick(values));
        let start = self.b.binary(Opcode::Mul, row, width);
        let index = self.b.binary(Opcode::Add, start, column);
        let place = self.b.offset(matrix, index, 8);
        if self.rng.chance(50) {
            self.b.load(Type::F64, place, Alignment::ONE);
        } else {
            let float = self.float;
            self.b.store(float, place, Alignment::ONE);
        }
    }

    fn general_loop(&mut self, depth: u32) {
        let turn = self.b.i64(0);
        let mut initial = vec![turn, self.int()];
        let carries_pointer = self.rng.chance(50);
        if carries_pointer {
            initial.push(self.place());
        }
        let (op, body) = self.b.loop_while(&initial);
        let arguments = self.b.function.regions[body].args.clone();
        self.inside(body, |generator| {
            generator.ints.extend_from_slice(&arguments[..2]);
            generator.pointers.extend_from_slice(&arguments[2..]);
            generator.statements(depth + 1);
            let one = generator.b.i64(1);
            let limit = generator.rng.below(4) as i64;
            let limit = generator.b.i64(limit);
            let mut next = vec![generator.b.binary(Opcode::Add, arguments[0], one)];
            next.extend(generator.carried(&arguments[1..]));
            let condition = generator.b.icmp(IntPredicate::Slt, next[0], limit);
            generator.b.again(condition, &next);
        });
        self.take_results(op);
    }
}
