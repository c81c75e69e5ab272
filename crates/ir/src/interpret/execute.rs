//! The main loop of the interpreter.
//!
//! The state of the machine is three stacks: a frame for each active call, a level for each region
//! that control is in, and the values of all frames in one vector, indexed by value id from the frame's base on.

use super::arithmetic::{self, evaluate_lane, is_lanewise};
use super::datum::{Bits, Datum, Pointer};
use super::fault::FaultKind;
use super::memory::function_at;
use super::promises::Promises;
use super::{Machine, Prepared};
use crate::FunctionId;
use crate::facts::Range;
use crate::function::{Function, Op, OpData, Payload, Region, Value, ones, sign_extend};
use crate::opcode::Opcode;
use crate::threads::{TEAM, TEAM_BODY};
use crate::types::Type;
use crate::view::OpView;
use cranelift_entity::EntityRef;
use smallvec::SmallVec;
use std::rc::Rc;

/// An active call.
pub(super) struct Frame<'m> {
    pub(super) code: &'m Function,
    pub(super) function: FunctionId,
    prepared: Rc<Prepared>,
    /// Where its values begin.
    base: usize,
    /// Where its levels begin.
    levels: usize,
    /// Where its stack memory begins.
    stack: usize,
    caller: Caller,
    /// The promises of the call about memory, if any and if they are checked.
    pub(super) promises: Option<Box<Promises>>,
}

/// Who called a function.
#[derive(Clone, Copy)]
enum Caller {
    Host,
    /// The operation of the frame below that gets the results.
    Operation(Op),
    /// A team, whose other bodies that are still to run are the frames below.
    Team,
}

/// A region that control is in.
pub(super) struct Level<'m> {
    ops: &'m [Op],
    next: usize,
    holder: Holder,
}

/// What holds the region, and how far that is.
#[derive(Clone, Copy)]
enum Holder {
    Body,
    Branch(Op),
    For {
        op: Op,
        region: Region,
        counter: u128,
        step: u128,
        /// How many iterations come after this one.
        left: u128,
    },
    Loop {
        op: Op,
        region: Region,
    },
}

impl Level<'_> {
    /// The operation that is being carried out.
    pub(super) fn current(&self) -> Option<Op> {
        self.ops.get(self.next.checked_sub(1)?).copied()
    }
}

/// The values that one operation hands on.
pub(super) type Values = SmallVec<[Bits; 4]>;

/// What the loop does after an operation.
#[derive(Clone, Copy)]
enum Next {
    /// The next operation of the same frame.
    Operation,
    /// The next operation of another frame: there was a call or a return.
    Frame,
    /// Nothing: the host's call has returned, and its results are available.
    Done,
}

impl<'m> Machine<'m> {
    /// Runs a function that has a body to its end.
    pub(super) fn run(
        &mut self,
        function: FunctionId,
        args: &[Datum],
    ) -> Result<Values, FaultKind> {
        let stop_at = self.steps.saturating_add(self.step_limit);
        self.enter(function, Caller::Host)?;
        let code = &self.module.functions[function];
        for (&value, datum) in code.arguments().iter().zip(args) {
            self.slots[value.index()] = datum.bits.clone();
        }
        self.check_arguments(code, 0)?;
        self.note_promises(function, 0);
        loop {
            let frame = self.frames.last().expect("a frame is active while running");
            let (code, base, prepared) = (frame.code, frame.base, frame.prepared.clone());
            loop {
                let level = self.levels.last_mut().expect("a frame has a level");
                let op = level.ops[level.next];
                level.next += 1;
                if self.steps >= stop_at {
                    return Err(FaultKind::StepLimit {
                        steps: self.step_limit,
                    });
                }
                self.steps += 1;
                let data = &code.ops[op];
                match self.step(code, &prepared, base, op, data)? {
                    Next::Operation => {}
                    Next::Frame => break,
                    Next::Done => return Ok(std::mem::take(&mut self.results)),
                }
            }
        }
    }

    #[inline]
    fn step(
        &mut self,
        code: &'m Function,
        prepared: &Prepared,
        base: usize,
        op: Op,
        data: &'m OpData,
    ) -> Result<Next, FaultKind> {
        match data.opcode {
            Opcode::If => {
                let condition = self.scalar(base, data.condition(), "a condition")?;
                let region = data.regions[usize::from(condition == 0)];
                self.push_level(code, region, Holder::Branch(op));
            }
            Opcode::Switch => {
                let OpView::Switch { selector, cases } = data.view() else {
                    unreachable!("it is a switch");
                };
                let raw = self.scalar(base, selector, "the value of a switch")?;
                let bits = code.ty(selector).scalar().bits();
                let case = Function::case_of(cases, sign_extend(raw, bits));
                self.push_level(code, data.regions[case], Holder::Branch(op));
            }
            Opcode::For => self.start_for(code, prepared, base, op, data)?,
            Opcode::Loop => {
                let region = data.regions[0];
                let args = &code.regions[region].args;
                self.transfer(code, prepared, base, &data.operands, args)?;
                self.push_level(code, region, Holder::Loop { op, region });
            }
            Opcode::Yield => self.end_region(code, prepared, base, data)?,
            Opcode::Again => self.end_loop(code, prepared, base, data)?,
            Opcode::Return => return self.leave(base, data),
            Opcode::Trap => {
                let callee = match &data.payload {
                    Payload::Callee(callee) => *callee,
                    Payload::Message(message) => {
                        return Err(FaultKind::Trap {
                            message: message.clone(),
                        });
                    }
                    _ => unreachable!("verified: a trap has a message or a callee"),
                };
                if self.module.functions[callee].body.is_some() {
                    return self.start_call(code, prepared, base, op, callee);
                }
                return Err(self.stop_in(callee));
            }
            Opcode::Call => {
                let Payload::Callee(callee) = data.payload else {
                    unreachable!("verified: a call has a callee");
                };
                return self.start_call(code, prepared, base, op, callee);
            }
            Opcode::CallIndirect => {
                let callee = self.indirect_callee(code, base, data)?;
                return self.start_call(code, prepared, base, op, callee);
            }
            Opcode::Load
            | Opcode::Store
            | Opcode::Stack
            | Opcode::Alloc
            | Opcode::Free
            | Opcode::Copy
            | Opcode::Move
            | Opcode::Fill
            | Opcode::Contract
            | Opcode::AtomicAdd => self.access(code, prepared, base, op, data)?,
            _ => self.compute(code, prepared, base, data)?,
        }
        Ok(Next::Operation)
    }

    // ---- computation

    #[inline]
    fn compute(
        &mut self,
        code: &'m Function,
        prepared: &Prepared,
        base: usize,
        data: &'m OpData,
    ) -> Result<(), FaultKind> {
        let slots = &self.slots[base..];
        let operand = |index: usize| &slots[data.operands[index].index()];
        let result = data.results[0];
        if data.opcode == Opcode::Offset
            && let (Payload::Scale(scale), Bits::Scalar(start), Bits::Scalar(index)) =
                (&data.payload, operand(0), operand(1))
        {
            let address = arithmetic::offset(*start, *index, *scale);
            return self.define(code, prepared, base, result, Bits::Scalar(address));
        }
        if data.opcode == Opcode::Select
            && let Bits::Scalar(condition) = operand(0)
        {
            let chosen = operand(if *condition == 0 { 2 } else { 1 }).clone();
            // A condition of lanes is never a scalar: one choice for all lanes.
            return self.define(code, prepared, base, result, chosen);
        }
        let ty = prepared.types[data.operands[0].index()];
        if ty == Type::F64
            && let &[a, b] = &data.operands[..]
            && let (Bits::Scalar(a), Bits::Scalar(b)) = (&slots[a.index()], &slots[b.index()])
        {
            // By far the most frequent operations of the programs that are differentiated.
            let (a, b) = (f64::from_bits(*a as u64), f64::from_bits(*b as u64));
            let number = match data.opcode {
                Opcode::Fadd => Some(a + b),
                Opcode::Fsub => Some(a - b),
                Opcode::Fmul => Some(a * b),
                Opcode::Fdiv => Some(a / b),
                _ => None,
            };
            if let Some(number) = number {
                let bits = Bits::Scalar(u128::from(number.to_bits()));
                return self.define(code, prepared, base, result, bits);
            }
        }
        if !ty.is_vector() && is_lanewise(data.opcode) {
            let mut operands = [Some(0); 3];
            for (lane, value) in operands.iter_mut().zip(&data.operands) {
                *lane = slots[value.index()].lane(0);
            }
            let to = prepared.types[result.index()].scalar();
            let raw = evaluate_lane(
                data.opcode,
                &data.payload,
                data.flags,
                ty.scalar(),
                to,
                operands,
            )?;
            return self.define(code, prepared, base, result, Bits::from_scalar(raw));
        }
        let operands: SmallVec<[&Bits; 3]> = data
            .operands
            .iter()
            .map(|value| &slots[value.index()])
            .collect();
        let type_of = |value: &Value| prepared.types[value.index()];
        let operand_types: SmallVec<[Type; 3]> = data.operands.iter().map(type_of).collect();
        let result_types: SmallVec<[Type; 2]> = data.results.iter().map(type_of).collect();
        let results = arithmetic::evaluate(
            data.opcode,
            &data.payload,
            data.flags,
            &operand_types,
            &operands,
            &result_types,
        )?;
        drop(operands);
        for (&value, bits) in data.results.iter().zip(results) {
            self.define(code, prepared, base, value, bits)?;
        }
        Ok(())
    }

    /// Sets the bits of a value.
    #[inline(always)]
    pub(super) fn define(
        &mut self,
        code: &Function,
        prepared: &Prepared,
        base: usize,
        value: Value,
        bits: Bits,
    ) -> Result<(), FaultKind> {
        if prepared.ranges {
            check_range(code.values[value].range, code.ty(value), &bits)?;
        }
        self.slots[base + value.index()] = bits;
        Ok(())
    }

    /// The bits of a scalar that must be defined.
    #[inline]
    pub(super) fn scalar(
        &self,
        base: usize,
        value: Value,
        role: &'static str,
    ) -> Result<u128, FaultKind> {
        match self.slots[base + value.index()] {
            Bits::Scalar(raw) => Ok(raw),
            _ => Err(FaultKind::UndefUsed { role }),
        }
    }

    /// Copies the bits of values to others, in parallel.
    fn transfer(
        &mut self,
        code: &Function,
        prepared: &Prepared,
        base: usize,
        sources: &[Value],
        targets: &[Value],
    ) -> Result<(), FaultKind> {
        if let ([source], [target]) = (sources, targets) {
            let bits = self.slots[base + source.index()].clone();
            return self.define(code, prepared, base, *target, bits);
        }
        let values: Values = sources
            .iter()
            .map(|source| self.slots[base + source.index()].clone())
            .collect();
        for (&target, bits) in targets.iter().zip(values) {
            self.define(code, prepared, base, target, bits)?;
        }
        Ok(())
    }

    // ---- control

    fn push_level(&mut self, code: &'m Function, region: Region, holder: Holder) {
        self.levels.push(Level {
            ops: &code.regions[region].ops,
            next: 0,
            holder,
        });
    }

    fn start_for(
        &mut self,
        code: &'m Function,
        prepared: &Prepared,
        base: usize,
        op: Op,
        data: &'m OpData,
    ) -> Result<(), FaultKind> {
        let [from, to, step] = data.bounds();
        let bits = prepared.types[from.index()].scalar().bits();
        let bound = |value| self.scalar(base, value, "a bound or step of a loop");
        let (from, to, step) = (bound(from)?, bound(to)?, bound(step)?);
        let trips = trip_count(
            sign_extend(from, bits),
            sign_extend(to, bits),
            sign_extend(step, bits),
        )
        .ok_or(FaultKind::ZeroStep)?;
        let initial = data.initial();
        let Some(left) = trips.checked_sub(1) else {
            return self.transfer(code, prepared, base, initial, &data.results);
        };
        let region = data.regions[0];
        let args = &code.regions[region].args;
        self.transfer(code, prepared, base, initial, &args[1..])?;
        self.define(code, prepared, base, args[0], Bits::Scalar(from))?;
        let holder = Holder::For {
            op,
            region,
            counter: from,
            step,
            left,
        };
        self.push_level(code, region, holder);
        Ok(())
    }

    /// Carries out `yield`.
    fn end_region(
        &mut self,
        code: &'m Function,
        prepared: &Prepared,
        base: usize,
        data: &'m OpData,
    ) -> Result<(), FaultKind> {
        let level = self.levels.last_mut().expect("a yield stands in a region");
        match &mut level.holder {
            Holder::For {
                region,
                counter,
                step,
                left,
                ..
            } if *left > 0 => {
                let args = &code.regions[*region].args;
                let bits = prepared.types[args[0].index()].scalar().bits();
                *left -= 1;
                *counter = counter.wrapping_add(*step) & ones(bits);
                let counter = Bits::Scalar(*counter);
                level.next = 0;
                self.transfer(code, prepared, base, &data.operands, &args[1..])?;
                self.define(code, prepared, base, args[0], counter)
            }
            Holder::For { op, .. } | Holder::Branch(op) => {
                let results = &code.ops[*op].results;
                self.transfer(code, prepared, base, &data.operands, results)?;
                self.levels.pop();
                Ok(())
            }
            Holder::Body | Holder::Loop { .. } => {
                unreachable!("verified: a yield ends regions of if, switch and for")
            }
        }
    }

    /// Carries out `again`.
    fn end_loop(
        &mut self,
        code: &'m Function,
        prepared: &Prepared,
        base: usize,
        data: &'m OpData,
    ) -> Result<(), FaultKind> {
        let condition = self.scalar(base, data.condition(), "a condition")?;
        let level = self.levels.last_mut().expect("an again stands in a region");
        let Holder::Loop { op, region } = level.holder else {
            unreachable!("verified: an again ends the region of a loop");
        };
        let carried = data.values();
        if condition != 0 {
            level.next = 0;
            self.transfer(code, prepared, base, carried, &code.regions[region].args)
        } else {
            self.transfer(code, prepared, base, carried, &code.ops[op].results)?;
            self.levels.pop();
            Ok(())
        }
    }

    // ---- calls

    /// Makes a frame for a function that has a body.
    fn enter(&mut self, function: FunctionId, caller: Caller) -> Result<(), FaultKind> {
        if self.frames.len() >= self.depth_limit {
            return Err(FaultKind::RecursionLimit {
                depth: self.depth_limit,
            });
        }
        let code = &self.module.functions[function];
        if let Some(level) = code.facts.level
            && self.processor_level < Some(level)
        {
            return Err(FaultKind::ProcessorLevel {
                function: code.name.as_str().into(),
                level,
            });
        }
        let prepared = self.prepare(function);
        let base = self.slots.len();
        self.slots.extend_from_slice(&prepared.template);
        self.frames.push(Frame {
            code,
            function,
            prepared,
            base,
            levels: self.levels.len(),
            stack: self.stack.len(),
            caller,
            promises: None,
        });
        self.push_level(code, code.body(), Holder::Body);
        Ok(())
    }

    fn check_arguments(&self, code: &Function, base: usize) -> Result<(), FaultKind> {
        for (&value, param) in code.arguments().iter().zip(&code.params) {
            let bits = &self.slots[base + value.index()];
            check_range(param.facts.range, param.ty, bits)?;
            check_range(code.values[value].range, param.ty, bits)?;
        }
        Ok(())
    }

    /// Calls a function with the arguments of an operation.
    fn start_call(
        &mut self,
        code: &'m Function,
        prepared: &Prepared,
        base: usize,
        op: Op,
        callee: FunctionId,
    ) -> Result<Next, FaultKind> {
        let data = &code.ops[op];
        let args = data.arguments();
        let callee_code = &self.module.functions[callee];
        if callee_code.body.is_none() {
            let args: Vec<Datum> = args
                .iter()
                .map(|value| Datum {
                    ty: prepared.types[value.index()],
                    bits: self.slots[base + value.index()].clone(),
                })
                .collect();
            if callee_code.name == TEAM && !self.externals.contains_key(&callee) {
                return self.start_team(&args);
            }
            let results = self.call_external(callee, &args)?;
            for (&value, datum) in data.results.iter().zip(results) {
                self.define(code, prepared, base, value, datum.bits)?;
            }
            return Ok(Next::Operation);
        }
        self.enter(callee, Caller::Operation(op))?;
        let callee_base = self.frames.last().map_or(0, |frame| frame.base);
        for (&parameter, argument) in callee_code.arguments().iter().zip(args) {
            self.slots[callee_base + parameter.index()] =
                self.slots[base + argument.index()].clone();
        }
        let ranges = self
            .frames
            .last()
            .is_some_and(|frame| frame.prepared.ranges);
        if ranges {
            self.check_arguments(callee_code, callee_base)?;
        }
        self.note_promises(callee, callee_base);
        Ok(Next::Frame)
    }

    /// Makes a frame for each body of a team; the one that is made last is carried out first.
    fn start_team(&mut self, args: &[Datum]) -> Result<Next, FaultKind> {
        let [count, body, context] = args else {
            return Err(FaultKind::ArgumentCount {
                expected: 3,
                given: args.len(),
            });
        };
        let scalar = |datum: &Datum, role| {
            let raw = datum.bits.lane(0);
            raw.ok_or(FaultKind::UndefUsed { role })
        };
        let count = scalar(count, "the number of bodies of a team")? as i64;
        let address = Pointer(scalar(body, "the address of a function")? as u64);
        let body = self.function_behind(address)?;
        let code = &self.module.functions[body];
        let params = code.params.iter().map(|param| param.ty);
        if !params.eq(TEAM_BODY) || !code.results.is_empty() || code.body.is_none() {
            return Err(FaultKind::WrongSignature {
                function: code.name.as_str().into(),
            });
        }
        self.note_team(usize::try_from(count).unwrap_or(0));
        for place in (0..count).rev() {
            let number = if self.last_first {
                count - 1 - place
            } else {
                place
            };
            self.enter(body, Caller::Team)?;
            let base = self.frames.last().map_or(0, |frame| frame.base);
            let given = [context.bits.clone(), Datum::i64(number).bits];
            for (&parameter, bits) in code.arguments().iter().zip(given) {
                self.slots[base + parameter.index()] = bits;
            }
        }
        Ok(match count > 0 {
            true => Next::Frame,
            false => Next::Operation,
        })
    }

    /// Whether a body of a team is being carried out.
    pub(super) fn is_in_team(&self) -> bool {
        let mut callers = self.frames.iter().map(|frame| frame.caller);
        callers.any(|caller| matches!(caller, Caller::Team))
    }

    /// The end of the program in a function that does not return.
    fn stop_in(&self, function: FunctionId) -> FaultKind {
        FaultKind::Trap {
            message: format!("@{}", self.module.functions[function].name).into(),
        }
    }

    fn indirect_callee(
        &self,
        code: &Function,
        base: usize,
        data: &OpData,
    ) -> Result<FunctionId, FaultKind> {
        let OpView::CallIndirect {
            target,
            arguments,
            results,
        } = data.view()
        else {
            unreachable!("it is an indirect call");
        };
        let raw = self.scalar(base, target, "the address of a function")?;
        let callee = self.function_behind(Pointer(raw as u64))?;
        let callee_code = &self.module.functions[callee];
        let params = callee_code.params.iter().map(|param| param.ty);
        let args = arguments.iter().map(|&value| code.ty(value));
        if !params.eq(args) || *results != *callee_code.results {
            return Err(FaultKind::WrongSignature {
                function: callee_code.name.as_str().into(),
            });
        }
        Ok(callee)
    }

    fn function_behind(&self, address: Pointer) -> Result<FunctionId, FaultKind> {
        function_at(address)
            .filter(|&function| self.module.functions.is_valid(function))
            .ok_or(FaultKind::NotAFunction { address })
    }

    /// Carries out `return`.
    fn leave(&mut self, base: usize, data: &OpData) -> Result<Next, FaultKind> {
        let values: Values = data
            .operands
            .iter()
            .map(|value| self.slots[base + value.index()].clone())
            .collect();
        let frame = self.frames.pop().expect("a return stands in a frame");
        self.levels.truncate(frame.levels);
        self.slots.truncate(frame.base);
        while self.stack.len() > frame.stack {
            if let Some(at) = self.stack.pop() {
                self.memory.stack_release(at);
            }
        }
        if let Some(promises) = &frame.promises {
            self.check_kept(frame.function, promises, &values)?;
        }
        let call = match frame.caller {
            Caller::Host => {
                self.results = values;
                return Ok(Next::Done);
            }
            Caller::Team => {
                self.note_end_of_body();
                return Ok(Next::Frame);
            }
            Caller::Operation(call) => call,
        };
        let caller = self.frames.last().expect("the caller is still active");
        let (code, base, prepared) = (caller.code, caller.base, caller.prepared.clone());
        if code.ops[call].opcode == Opcode::Trap {
            return Err(self.stop_in(frame.function));
        }
        for (&target, bits) in code.ops[call].results.iter().zip(values) {
            self.define(code, &prepared, base, target, bits)?;
        }
        Ok(Next::Frame)
    }
}

/// The trip count of a counted loop; none for a step of zero.
fn trip_count(from: i128, to: i128, step: i128) -> Option<u128> {
    let distance = match step.signum() {
        0 => return None,
        1 if from < to => to.wrapping_sub(from) as u128,
        -1 if from > to => from.wrapping_sub(to) as u128,
        _ => return Some(0),
    };
    Some((distance - 1) / step.unsigned_abs() + 1)
}

fn check_range(range: Option<Range>, ty: Type, bits: &Bits) -> Result<(), FaultKind> {
    let Some(range) = range else {
        return Ok(());
    };
    for lane in 0..usize::from(ty.lanes()) {
        if let Some(raw) = bits.lane(lane) {
            let value = sign_extend(raw, ty.scalar().bits());
            if !(range.min..=range.max).contains(&value) {
                return Err(FaultKind::RangeViolated {
                    value,
                    range: range.to_string().into(),
                });
            }
        }
    }
    Ok(())
}
