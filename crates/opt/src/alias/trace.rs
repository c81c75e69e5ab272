//! Runs a function step by step and writes down every byte it touches: what the answers are checked against.
//!
//! Objects have no size and all offsets are allowed, since only places matter here. While it runs, each integer is
//! compared with its expression and intervals, and each pointer with its root and offset.

use super::*;
use crate::hull::Hull;
use crate::indices::Counted;
use crate::interval::Interval;
use crate::intervals::Intervals;
use ferrozyme_ir::{IntPredicate, OpView, Opcode, Scalar, ValueDef, sign_extend};

/// One touch of memory.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) op: Op,
    pub(super) write: bool,
    pub(super) object: u32,
    pub(super) start: i128,
    pub(super) end: i128,
    /// The loops around it, each with the number of its execution.
    pub(super) loops: Vec<(Op, u32)>,
}

/// The value of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Datum {
    Int(i128),
    Pointer(u32, i128),
    Other,
}

/// What a hull was at one execution of its loop.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) op: Op,
    pub(super) loop_op: Op,
    pub(super) execution: u32,
    /// Object, start and end; none if the guards say that nothing is touched.
    pub(super) range: Option<(u32, i128, i128)>,
}

/// Why a run is of no use: it does what no valid program does.
#[derive(Debug)]
pub(super) struct Invalid;

pub(super) struct Tracer<'a, 'm> {
    aliases: &'a Aliases<'m>,
    intervals: Intervals,
    values: FxHashMap<Value, Datum>,
    memory: FxHashMap<(u32, i128), Datum>,
    freed: Vec<u32>,
    captured: Vec<Datum>,
    next_object: u32,
    loops: Vec<(Op, u32)>,
    executions: u32,
    steps: u32,
    hulls: Vec<(Op, Op, Hull)>,
    pub(super) events: Vec<Event>,
    pub(super) claims: Vec<Claim>,
}

/// Where globals, and pointers that were in memory at the start, point.
pub(super) const OUTSIDE: u32 = 1;
const FIRST_LOCAL: u32 = 100;

impl<'a, 'm> Tracer<'a, 'm> {
    pub(super) fn new(aliases: &'a Aliases<'m>) -> Tracer<'a, 'm> {
        Tracer {
            aliases,
            intervals: Intervals::of(aliases.function()),
            values: FxHashMap::default(),
            memory: FxHashMap::default(),
            freed: Vec::new(),
            captured: Vec::new(),
            next_object: FIRST_LOCAL,
            loops: Vec::new(),
            executions: 0,
            steps: 0,
            hulls: Vec::new(),
            events: Vec::new(),
            claims: Vec::new(),
        }
    }

    /// Has a hull evaluated whenever its loop is entered.
    pub(super) fn watch(&mut self, op: Op, loop_op: Op, hull: Hull) {
        self.hulls.push((op, loop_op, hull));
    }

    pub(super) fn run(&mut self, arguments: &[Datum]) -> Result<(), Invalid> {
        let function = self.aliases.function();
        for (&value, &datum) in function.arguments().iter().zip(arguments) {
            self.define(value, datum)?;
        }
        self.region(function.body()).map(|_| ())
    }

    fn get(&self, value: Value) -> Datum {
        let function = self.aliases.function();
        if let Some(number) = function.int_of(value) {
            return Datum::Int(number);
        }
        match &function.values[value].def {
            ValueDef::Constant(_) if function.ty(value).is_ptr() => {
                Datum::Pointer(OUTSIDE, 1000 + 1000 * i128::from(value.as_u32()))
            }
            ValueDef::Constant(_) => Datum::Other,
            _ => self.values[&value],
        }
    }

    fn int(&self, value: Value) -> i128 {
        match self.get(value) {
            Datum::Int(number) => number,
            other => panic!("{value} is {other:?}"),
        }
    }

    fn pointer(&self, value: Value) -> (u32, i128) {
        match self.get(value) {
            Datum::Pointer(object, offset) => (object, offset),
            other => panic!("{value} is {other:?}"),
        }
    }

    /// An expression with the values that are visible now.
    fn evaluate(&self, expression: &Symbolic) -> i128 {
        let mut sum = i128::from(expression.constant_part());
        for term in expression.terms() {
            let mut product = i128::from(term.coefficient);
            for &variable in &term.monomial {
                product *= match self.get(variable) {
                    Datum::Int(number) => number,
                    Datum::Pointer(_, offset) => {
                        offset - self.pointer(self.aliases.pointers().root(variable)).1
                    }
                    Datum::Other => panic!("{variable} is no number"),
                };
            }
            sum += product;
        }
        sum
    }

    fn define(&mut self, value: Value, datum: Datum) -> Result<(), Invalid> {
        let function = self.aliases.function();
        let ty = function.ty(value);
        let datum = match (datum, ty.scalar()) {
            (Datum::Int(number), Scalar::Int(bits)) => {
                Datum::Int(sign_extend(number as u128, u32::from(bits)))
            }
            (datum, _) => datum,
        };
        self.values.insert(value, datum);
        let indices = self.aliases.indices();
        match datum {
            Datum::Int(number) if ty.scalar().bits() <= 64 => {
                let expression = indices.expression(value);
                let claimed = self.evaluate(&expression);
                assert_eq!(
                    (number - claimed).rem_euclid(1 << 64),
                    0,
                    "{value} is {number}, its expression {expression} is {claimed}"
                );
                let exact = self.evaluate(&indices.exact_expression(value));
                assert_eq!(number, exact, "exact expression of {value}");
                let intervals = [
                    indices.interval_of_value(value),
                    self.intervals.get(function, value),
                ];
                for interval in intervals {
                    let expected = Some(Interval::point(number));
                    assert_eq!(
                        interval.cut(number, number),
                        expected,
                        "{value} is {number}, its interval {interval:?}"
                    );
                }
            }
            Datum::Pointer(object, offset) => {
                let root = self.aliases.pointers().root(value);
                let (root_object, root_offset) = self.pointer(root);
                let distance = self.evaluate(&self.aliases.pointers().offset(value));
                // Nothing can be known of where `null` and the like lead.
                if function.constant_of(root).is_none() || root == value {
                    assert_eq!(object, root_object, "{value} has the root {root}");
                    assert_eq!(offset, root_offset + distance, "{value} behind {root}");
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn touch(
        &mut self,
        op: Op,
        write: bool,
        place: (u32, i128),
        size: i128,
    ) -> Result<(), Invalid> {
        if self.freed.contains(&place.0) || size < 0 {
            return Err(Invalid);
        }
        self.events.push(Event {
            op,
            write,
            object: place.0,
            start: place.1,
            end: place.1 + size,
            loops: self.loops.clone(),
        });
        Ok(())
    }

    /// Runs a region; gives what its terminator passes on, with the condition of `again` first.
    fn region(&mut self, region: Region) -> Result<Vec<Datum>, Invalid> {
        let function = self.aliases.function();
        for &op in &function.regions[region].ops {
            self.steps += 1;
            if self.steps > 3_000 || self.events.len() > 1_000 {
                return Err(Invalid);
            }
            let data = &function.ops[op];
            match data.opcode {
                Opcode::Yield | Opcode::Again | Opcode::Return => {
                    return Ok(data.operands.iter().map(|&value| self.get(value)).collect());
                }
                Opcode::Trap => return Err(Invalid),
                _ => self.operation(op)?,
            }
        }
        Ok(Vec::new())
    }

    fn operation(&mut self, op: Op) -> Result<(), Invalid> {
        let function = self.aliases.function();
        let data = &function.ops[op];
        let result = data.results.first().copied();
        match data.view() {
            OpView::For { .. } => self.counted(op),
            OpView::Loop { .. } => self.general(op),
            OpView::If { condition, .. } => {
                let branch = usize::from(self.int(condition) == 0);
                let yielded = self.region(data.regions[branch])?;
                for (&result, datum) in data.results.iter().zip(yielded) {
                    self.define(result, datum)?;
                }
                Ok(())
            }
            OpView::Offset { base, index, scale } => {
                let (object, offset) = self.pointer(base);
                let moved = offset + self.int(index) * i128::from(scale);
                self.define(data.results[0], Datum::Pointer(object, moved))
            }
            OpView::Stack { .. } | OpView::Alloc { .. } => {
                let object = self.next_object;
                self.next_object += 1;
                self.define(data.results[0], Datum::Pointer(object, 0))
            }
            OpView::Free { address, .. } => {
                let (object, _) = self.pointer(address);
                if object < FIRST_LOCAL {
                    return Err(Invalid);
                }
                self.touch(op, true, (object, -1 << 40), 1 << 41)?;
                self.freed.push(object);
                Ok(())
            }
            OpView::Load { address, .. } => {
                let place = self.pointer(address);
                let ty = function.ty(data.results[0]);
                self.touch(op, false, place, i128::from(ty.bytes()))?;
                let datum = match (self.memory.get(&place), ty.scalar()) {
                    (Some(&stored @ Datum::Pointer(..)), Scalar::Ptr) => stored,
                    (_, Scalar::Ptr) => {
                        // What was in memory at the start points to what others can reach.
                        Datum::Pointer(OUTSIDE, 8 * (place.1.rem_euclid(3)))
                    }
                    (Some(&stored @ Datum::Int(_)), Scalar::Int(_)) => stored,
                    (_, Scalar::Int(_)) => Datum::Int((place.1 * 7 + 3).rem_euclid(5)),
                    _ => Datum::Other,
                };
                self.define(data.results[0], datum)
            }
            OpView::Store { value, address, .. } => {
                let place = self.pointer(address);
                let bytes = function.ty(value).bytes();
                self.touch(op, true, place, i128::from(bytes))?;
                let stored = self.get(value);
                if matches!(stored, Datum::Pointer(..)) {
                    self.captured.push(stored);
                }
                self.memory.insert(place, stored);
                Ok(())
            }
            OpView::Copy {
                destination,
                source,
                size,
                ..
            }
            | OpView::Move {
                destination,
                source,
                size,
                ..
            } => {
                let (to, from) = (self.pointer(destination), self.pointer(source));
                let size = self.int(size);
                let apart = to.0 != from.0 || (to.1 - from.1).abs() >= size || to == from;
                if data.opcode == Opcode::Copy && !apart {
                    return Err(Invalid);
                }
                self.touch(op, false, from, size)?;
                if data.opcode == Opcode::Move || to != from {
                    self.touch(op, true, to, size)?;
                }
                Ok(())
            }
            OpView::Fill {
                destination, size, ..
            } => {
                let (to, size) = (self.pointer(destination), self.int(size));
                self.touch(op, true, to, size)
            }
            OpView::AtomicAdd { address, .. } => {
                let place = self.pointer(address);
                self.touch(op, false, place, 8)?;
                self.touch(op, true, place, 8)?;
                self.define(data.results[0], Datum::Other)
            }
            OpView::Call { .. } => self.call(op),
            _ => {
                let datum = self.compute(op)?;
                self.define(result.expect("a computation has a result"), datum)
            }
        }
    }

    /// An unknown function reads and writes a bit of all that it can reach.
    fn call(&mut self, op: Op) -> Result<(), Invalid> {
        let function = self.aliases.function();
        let data = &function.ops[op];
        let Payload::Callee(callee) = data.payload else {
            unreachable!("a call has a callee")
        };
        let callee = &self.aliases.module.functions[callee];
        let mut places: Vec<((u32, i128), bool)> = Vec::new();
        for (index, &operand) in data.operands.iter().enumerate() {
            if let Datum::Pointer(object, offset) = self.get(operand) {
                let facts = &callee.params[index].facts;
                places.push(((object, offset), !facts.readonly));
                if !facts.nocapture {
                    self.captured.push(Datum::Pointer(object, offset));
                }
            }
        }
        if callee.facts.memory.reaches_beyond_arguments() {
            for &datum in &self.captured {
                if let Datum::Pointer(object, offset) = datum {
                    places.push(((object, offset), true));
                }
            }
            places.push(((OUTSIDE, 0), true));
        }
        let writes = callee.facts.memory.writes();
        for (place, writable) in places {
            for (distance, size) in [(-16, 4), (0, 8), (24, 8)] {
                let place = (place.0, place.1 + distance);
                if self.freed.contains(&place.0) {
                    continue;
                }
                self.touch(op, false, place, size)?;
                if writable && writes {
                    self.touch(op, true, place, size)?;
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self, op: Op) {
        self.executions += 1;
        let mut claims = Vec::new();
        for (reader, loop_op, hull) in &self.hulls {
            if *loop_op != op {
                continue;
            }
            let runs = hull.guards.iter().all(|guard| self.evaluate(guard) >= 1);
            let range = runs.then(|| {
                let (object, offset) = self.pointer(hull.root);
                let start = offset + self.evaluate(&hull.min);
                (object, start, start + self.evaluate(&hull.bytes))
            });
            claims.push(Claim {
                op: *reader,
                loop_op: op,
                execution: self.executions,
                range,
            });
        }
        self.claims.append(&mut claims);
        self.loops.push((op, self.executions));
    }

    fn counted(&mut self, op: Op) -> Result<(), Invalid> {
        let function = self.aliases.function();
        let data = &function.ops[op];
        let body = data.regions[0];
        let arguments = &function.regions[body].args;
        let [from, to, step] = data.bounds().map(|value| self.int(value));
        if step == 0 {
            return Err(Invalid);
        }
        self.enter(op);
        let indices = self.aliases.indices();
        let claimed = indices
            .counted(op)
            .and_then(Counted::trip_count)
            .map(|count| self.evaluate(&count).max(0));
        let last = indices
            .counted(op)
            .and_then(Counted::last_counter)
            .map(|last| self.evaluate(&last));
        let mut carried: Vec<Datum> = data
            .initial()
            .iter()
            .map(|&value| self.get(value))
            .collect();
        let mut counter = from;
        let mut turns = 0;
        while (step > 0 && counter < to) || (step < 0 && counter > to) {
            self.define(arguments[0], Datum::Int(counter))?;
            for (&argument, &datum) in arguments[1..].iter().zip(&carried) {
                self.define(argument, datum)?;
            }
            carried = self.region(body)?;
            counter += step;
            turns += 1;
        }
        if let Some(claimed) = claimed {
            assert_eq!(claimed, turns, "trip count of {op}");
        }
        if let (Some(last), true) = (last, turns > 0) {
            assert_eq!(last, counter - step, "last counter of {op}");
        }
        self.loops.pop();
        for (&result, &datum) in data.results.iter().zip(&carried) {
            self.define(result, datum)?;
        }
        Ok(())
    }

    fn general(&mut self, op: Op) -> Result<(), Invalid> {
        let function = self.aliases.function();
        let data = &function.ops[op];
        let body = data.regions[0];
        self.enter(op);
        let mut carried: Vec<Datum> = data.operands.iter().map(|&value| self.get(value)).collect();
        loop {
            for (&argument, &datum) in function.regions[body].args.iter().zip(&carried) {
                self.define(argument, datum)?;
            }
            let mut passed = self.region(body)?;
            let again = passed.remove(0);
            carried = passed;
            if again == Datum::Int(0) {
                break;
            }
        }
        self.loops.pop();
        for (&result, &datum) in data.results.iter().zip(&carried) {
            self.define(result, datum)?;
        }
        Ok(())
    }

    fn compute(&self, op: Op) -> Result<Datum, Invalid> {
        let function = self.aliases.function();
        let data = &function.ops[op];
        let bits = function.ty(data.operands[0]).scalar().bits();
        let unsigned = |number: i128| number & ((1i128 << bits.min(64)) - 1);
        let number = match data.view() {
            OpView::Binary(opcode, a, b) => {
                let (a, b) = (self.int(a), self.int(b));
                match opcode {
                    Opcode::Add => a + b,
                    Opcode::Sub => a - b,
                    Opcode::Mul => a * b,
                    Opcode::Shl => a << b,
                    Opcode::Or => a | b,
                    Opcode::And => a & b,
                    Opcode::Smin => a.min(b),
                    Opcode::Smax => a.max(b),
                    Opcode::Ashr => a >> b,
                    Opcode::Lshr => unsigned(a) >> b,
                    Opcode::Sdiv | Opcode::Srem | Opcode::Urem if b == 0 => return Err(Invalid),
                    Opcode::Sdiv => a / b,
                    Opcode::Srem => a % b,
                    Opcode::Urem => unsigned(a) % unsigned(b),
                    _ => panic!("{opcode} does not occur in these programs"),
                }
            }
            OpView::Cast(Opcode::Sext | Opcode::TruncInt, a) => self.int(a),
            OpView::Cast(Opcode::Zext, a) => unsigned(self.int(a)),
            OpView::Select {
                condition,
                then,
                otherwise,
            } => {
                let holds = self.int(condition) != 0;
                return Ok(self.get(if holds { then } else { otherwise }));
            }
            OpView::Icmp(predicate, a, b) => {
                let (a, b) = (self.int(a), self.int(b));
                let holds = match predicate {
                    IntPredicate::Eq => a == b,
                    IntPredicate::Ne => a != b,
                    IntPredicate::Slt => a < b,
                    IntPredicate::Sle => a <= b,
                    IntPredicate::Sgt => a > b,
                    IntPredicate::Sge => a >= b,
                    IntPredicate::Ult => unsigned(a) < unsigned(b),
                    IntPredicate::Ule => unsigned(a) <= unsigned(b),
                    IntPredicate::Ugt => unsigned(a) > unsigned(b),
                    IntPredicate::Uge => unsigned(a) >= unsigned(b),
                };
                return Ok(Datum::Int(if holds { -1 } else { 0 }));
            }
            _ => panic!("{} does not occur in these programs", data.opcode),
        };
        let bits = function.ty(data.results[0]).scalar().bits();
        if bits == 64 && number.abs() > 1 << 40 {
            // Such numbers are no indices, and wrap around some time.
            return Err(Invalid);
        }
        let wraps = sign_extend(number as u128, bits);
        if data.flags.contains(ferrozyme_ir::Flags::NSW) && wraps != number {
            return Err(Invalid);
        }
        Ok(Datum::Int(number))
    }
}
