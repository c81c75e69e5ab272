//! Bodies of functions: statements, regions, and which names are visible where.
//!
//! The parser keeps open regions on a stack of its own, so that nested text does not become recursion.

use super::{Parser, PendingBody, Place, Result};
use crate::facts::{Flags, Range};
use crate::function::{Function, Op, OpData, Payload, Region, Value};
use crate::lexer::Token;
use crate::module::{Location, LocationData};
use crate::opcode::Opcode;
use crate::print::is_number;
use crate::types::Type;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::borrow::Cow;

/// How deep regions may be nested.
const DEPTH_LIMIT: usize = 1000;

/// The names of a statement's results.
pub(super) type ResultNames<'t> = SmallVec<[Place<'t>; 2]>;

/// An operation whose regions are being read.
pub(super) struct Frame<'t> {
    op: Op,
    /// The region that is open now.
    region: Region,
    /// What to call the results once the operation is complete.
    results: ResultNames<'t>,
    /// The cases of a `switch` so far.
    cases: Vec<Box<[i128]>>,
    /// How many names were visible when the region opened.
    outside: usize,
}

/// The value of a name at this point of the text.
#[derive(Clone, Copy)]
enum Entry {
    /// The statement that defines it is not complete.
    Pending,
    Visible(Value),
    /// Its region has ended.
    Hidden,
}

/// The names of a function.
#[derive(Default)]
pub(super) struct Scope<'t> {
    entries: FxHashMap<Cow<'t, str>, Entry>,
    /// The visible names, those of inner regions last.
    visible: Vec<Cow<'t, str>>,
}

impl<'t> Scope<'t> {
    fn define(&mut self, name: Cow<'t, str>, value: Value) {
        self.entries.insert(name.clone(), Entry::Visible(value));
        self.visible.push(name);
    }

    fn leave(&mut self, outside: usize) {
        for name in self.visible.drain(outside..) {
            self.entries.insert(name, Entry::Hidden);
        }
    }
}

impl<'t> Parser<'t> {
    /// The second pass over a function.
    pub(super) fn body(&mut self, pending: PendingBody<'t>) -> Result<()> {
        let PendingBody {
            function,
            start,
            params,
        } = pending;
        let placeholder = Function::declare("", Vec::new(), Vec::new());
        self.function = std::mem::replace(&mut self.module.functions[function], placeholder);
        self.scope = Scope::default();
        for (index, name) in params.into_iter().enumerate() {
            let argument = self.function.arguments()[index];
            self.reserve(&name)?;
            self.define(name, argument);
        }
        self.jump(start)?;
        loop {
            if self.accept("}")? {
                match self.frames.pop() {
                    Some(frame) => self.close_region(frame)?,
                    None => break,
                }
            } else {
                self.statement()?;
            }
        }
        std::mem::swap(&mut self.module.functions[function], &mut self.function);
        Ok(())
    }

    fn statement(&mut self) -> Result<()> {
        let mut results = ResultNames::new();
        while let Token::Value(name) = &mut self.token {
            let name = (std::mem::take(name), self.start);
            self.reserve(&name)?;
            results.push(name);
            self.advance()?;
            if !self.accept(",")? {
                self.expect("=")?;
                break;
            }
        }
        let Token::Word(word) = self.token else {
            return self.expected(if results.is_empty() {
                "an operation or `}`"
            } else {
                "an operation"
            });
        };
        let Some(opcode) = Opcode::from_name(word) else {
            return self.error_at(self.start, unknown_operation(word));
        };
        self.advance()?;
        let flags = self.flags()?;
        match opcode {
            Opcode::If | Opcode::Switch => self.branch(opcode, flags, results),
            Opcode::For | Opcode::Loop => self.loop_head(opcode, flags, results),
            _ => {
                let parts = self.operation(opcode)?;
                let op = self.append(
                    opcode,
                    flags,
                    &parts.operands,
                    parts.payload,
                    &parts.results,
                    &results,
                )?;
                self.define_results(op, results);
                Ok(())
            }
        }
    }

    fn flags(&mut self) -> Result<Flags> {
        let mut flags = Flags::NONE;
        while let Token::Word(word) = self.token {
            let flag = match Flags::NAMES.iter().find(|(_, name)| *name == word) {
                Some(&(flag, _)) => flag,
                None if word == "fast" => Flags::FAST,
                None => break,
            };
            flags = flags.union(flag);
            self.advance()?;
        }
        Ok(flags)
    }

    /// Reads what is known of the results and where the operation stands in the source, and appends it to the open
    /// region.
    fn append(
        &mut self,
        opcode: Opcode,
        flags: Flags,
        operands: &[Value],
        payload: Payload,
        types: &[Type],
        names: &[Place<'t>],
    ) -> Result<Op> {
        // Unused results may have no names.
        if let Some((_, start)) = names.first()
            && names.len() != types.len()
        {
            let message = format!(
                "`{opcode}` has {} here, but {} named",
                count(types.len(), "result"),
                match names.len() {
                    1 => "1 is".to_owned(),
                    several => format!("{several} are"),
                }
            );
            return self.error_at(*start, message);
        }
        let ranges = self.ranges(types.len())?;
        let location = self.location()?;
        let op = self.function.new_op(
            OpData {
                opcode,
                operands: SmallVec::from_slice(operands),
                results: SmallVec::new(),
                regions: SmallVec::new(),
                payload,
                flags,
                location,
            },
            types,
        );
        for (index, range) in ranges.into_iter().enumerate() {
            let result = self.function.ops[op].results[index];
            self.function.values[result].range = range;
        }
        let region = match self.frames.last() {
            Some(frame) => frame.region,
            None => self.function.body(),
        };
        self.function.append(region, op);
        Ok(op)
    }

    /// `range 0..=10`, with one range for each result or `_` where nothing is known.
    fn ranges(&mut self, results: usize) -> Result<SmallVec<[Option<Range>; 2]>> {
        let mut ranges = SmallVec::new();
        let start = self.start;
        if self.accept_word("range")? {
            if results == 0 {
                return self.error_at(start, "there is no result whose range this could be");
            }
            for index in 0..results {
                if index > 0 {
                    self.expect(",")?;
                }
                let unknown = self.accept_word("_")?;
                ranges.push(if unknown { None } else { Some(self.range()?) });
            }
        }
        Ok(ranges)
    }

    /// `loc(0:12:5 from 0:30:1)`.
    fn location(&mut self) -> Result<Option<Location>> {
        if !self.accept_word("loc")? {
            return Ok(None);
        }
        let mut chain = Vec::new();
        self.expect("(")?;
        loop {
            let file = self.integer("the number of a file")?;
            self.expect(":")?;
            let line = self.integer("a line")?;
            self.expect(":")?;
            let column = self.integer("a column")?;
            chain.push((file, line, column));
            if !self.accept_word("from")? {
                break;
            }
        }
        self.expect(")")?;
        let mut inlined_at = None;
        for (file, line, column) in chain.into_iter().rev() {
            inlined_at = Some(self.module.location(LocationData {
                file,
                line,
                column,
                inlined_at,
            }));
        }
        Ok(inlined_at)
    }

    // ---- regions

    /// An `if` or `switch`, up to the first operation inside.
    fn branch(&mut self, opcode: Opcode, flags: Flags, results: ResultNames<'t>) -> Result<()> {
        let scrutinee = if opcode == Opcode::Switch {
            let ty = self.ty()?;
            self.typed_operand(ty)?
        } else {
            self.operand(Some(Type::I1))?
        };
        let types = self.result_types()?;
        let op = self.append(opcode, flags, &[scrutinee], Payload::None, &types, &results)?;
        let frame = self.frame(op, results);
        self.expect("{")?;
        if opcode == Opcode::Switch {
            self.case(frame)
        } else {
            self.open_region(frame)
        }
    }

    /// A `for` or `loop`, up to the first operation inside.
    fn loop_head(&mut self, opcode: Opcode, flags: Flags, results: ResultNames<'t>) -> Result<()> {
        let mut operands: SmallVec<[Value; 8]> = SmallVec::new();
        let mut arguments: SmallVec<[(Place<'t>, Type, Option<Range>); 4]> = SmallVec::new();
        if opcode == Opcode::For {
            let counter = self.argument()?;
            let ty = counter.1;
            arguments.push(counter);
            self.expect("=")?;
            operands.push(self.operand(Some(ty))?);
            self.expect_word("to")?;
            operands.push(self.operand(Some(ty))?);
            self.expect_word("step")?;
            operands.push(self.operand(Some(ty))?);
        }
        let first_carried = arguments.len();
        if self.accept_word("with")? {
            self.expect("(")?;
            while !self.accept(")")? {
                let carried = self.argument()?;
                let ty = carried.1;
                arguments.push(carried);
                self.expect("=")?;
                operands.push(self.operand(Some(ty))?);
                if !self.accept(",")? {
                    self.expect(")")?;
                    break;
                }
            }
        }
        let types: SmallVec<[Type; 4]> = arguments[first_carried..]
            .iter()
            .map(|(_, ty, _)| *ty)
            .collect();
        let op = self.append(opcode, flags, &operands, Payload::None, &types, &results)?;
        let frame = self.frame(op, results);
        self.expect("{")?;
        let region = frame.region;
        self.open_region(frame)?;
        for (name, ty, range) in arguments {
            let argument = self.function.add_argument(region, ty);
            self.function.values[argument].range = range;
            self.define(name, argument);
        }
        Ok(())
    }

    /// `%i: i64`, where a loop defines it.
    fn argument(&mut self) -> Result<(Place<'t>, Type, Option<Range>)> {
        let Token::Value(name) = &mut self.token else {
            return self.expected("the value that the loop defines, such as `%i: i64`");
        };
        let name = (std::mem::take(name), self.start);
        self.reserve(&name)?;
        self.advance()?;
        self.expect(":")?;
        let ty = self.ty()?;
        let known = self.accept_word("range")?;
        let range = if known { Some(self.range()?) } else { None };
        Ok((name, ty, range))
    }

    /// A case of a `switch`, up to the first operation inside, or the end of the `switch`.
    fn case(&mut self, mut frame: Frame<'t>) -> Result<()> {
        if self.accept_word("default")? {
            let cases = std::mem::take(&mut frame.cases);
            self.function.ops[frame.op].payload = Payload::Cases(cases.into());
        } else if self.accept_word("case")? {
            let mut values = Vec::new();
            while self.token != Token::Mark("{") {
                values.push(self.integer("a value of the case")?);
                if !self.accept(",")? {
                    break;
                }
            }
            frame.cases.push(values.into());
        } else {
            return self.expected("`case` or `default`");
        }
        self.expect("{")?;
        self.open_region(frame)
    }

    fn frame(&mut self, op: Op, results: ResultNames<'t>) -> Frame<'t> {
        let region = self.new_region(op);
        Frame {
            op,
            region,
            results,
            cases: Vec::new(),
            outside: self.scope.visible.len(),
        }
    }

    fn new_region(&mut self, op: Op) -> Region {
        let region = self.function.new_region(&[]);
        self.function.ops[op].regions.push(region);
        region
    }

    fn open_region(&mut self, frame: Frame<'t>) -> Result<()> {
        if self.frames.len() >= DEPTH_LIMIT {
            return self.error_at(
                self.start,
                format!("regions are nested more than {DEPTH_LIMIT} levels deep"),
            );
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Handles the closing brace of a region: the operation's next region follows, or the next operation.
    fn close_region(&mut self, mut frame: Frame<'t>) -> Result<()> {
        self.scope.leave(frame.outside);
        let data = &self.function.ops[frame.op];
        match data.opcode {
            Opcode::If if data.regions.len() == 1 => {
                frame.region = self.new_region(frame.op);
                if self.accept_word("else")? {
                    self.expect("{")?;
                    return self.open_region(frame);
                }
                let end = self.function.new_op(
                    OpData {
                        opcode: Opcode::Yield,
                        operands: SmallVec::new(),
                        results: SmallVec::new(),
                        regions: SmallVec::new(),
                        payload: Payload::None,
                        flags: Flags::NONE,
                        location: None,
                    },
                    &[],
                );
                self.function.append(frame.region, end);
            }
            // The payload is set when the default, which is the last region, has been seen.
            Opcode::Switch if data.payload == Payload::None => {
                frame.region = self.new_region(frame.op);
                return self.case(frame);
            }
            Opcode::Switch => self.expect("}")?,
            _ => {}
        }
        self.define_results(frame.op, frame.results);
        Ok(())
    }

    /// The operands of the open region's terminator, if it is of the right kind.
    pub(super) fn terminator_types(&self, opcode: Opcode) -> SmallVec<[Type; 4]> {
        let mut types = SmallVec::new();
        if opcode == Opcode::Return {
            types.extend_from_slice(&self.function.results);
            return types;
        }
        if opcode == Opcode::Again {
            types.push(Type::I1);
        }
        if let Some(frame) = self.frames.last() {
            let results = &self.function.ops[frame.op].results;
            types.extend(results.iter().map(|&result| self.function.ty(result)));
        }
        types
    }

    // ---- names

    /// Notes that a name is used from here on, though not yet for what.
    fn reserve(&mut self, (name, start): &Place<'t>) -> Result<()> {
        let entry = self.scope.entries.insert(name.clone(), Entry::Pending);
        match entry {
            None => Ok(()),
            Some(_) => self.error_at(
                *start,
                format!("value %{name} is defined twice: names are unique within a function"),
            ),
        }
    }

    fn define(&mut self, (name, _): Place<'t>, value: Value) {
        if !is_number(&name) {
            self.function.set_name(value, &*name);
        }
        self.scope.define(name, value);
    }

    fn define_results(&mut self, op: Op, names: ResultNames<'t>) {
        for (index, name) in names.into_iter().enumerate() {
            let result = self.function.ops[op].results[index];
            self.define(name, result);
        }
    }

    pub(super) fn lookup(&self, name: &str) -> Result<Value> {
        let reason = match self.scope.entries.get(name) {
            Some(&Entry::Visible(value)) => return Ok(value),
            Some(Entry::Hidden) => ": its region has ended",
            Some(Entry::Pending) => ": the operation that defines it is not complete",
            None => "",
        };
        self.error_at(
            self.start,
            format!("value %{name} is not defined here{reason}"),
        )
    }
}

fn unknown_operation(word: &str) -> String {
    let mut message = format!("unknown operation `{word}`");
    if matches!(word, "func" | "declare" | "global" | "rule" | "file") {
        message.push_str(": is a `}` missing before it?");
        return message;
    }
    let similar = Opcode::ALL
        .iter()
        .map(|opcode| (distance(word, opcode.name()), opcode))
        .min_by_key(|(distance, _)| *distance);
    if let Some((1..=2, opcode)) = similar {
        message.push_str(&format!(", did you mean `{opcode}`?"));
    }
    message
}

/// How many letters must change to make one word of the other; long words are not compared.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > 30 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// `1 result`, `2 results`.
pub(super) fn count(number: usize, noun: &str) -> String {
    match number {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}
