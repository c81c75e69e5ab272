//! Writes the structured form as Loop IR.
//!
//! Sequences become regions. What an item hands on ([`Carry`]) becomes results of its operation, unless the value is the same
//! whichever way control went, or is known from the condition, or is handed on already.

use super::carry::{Carry, Kind, Variable, Variables};
use super::graph::{Edge, End, Graph, Name, Operand};
use super::tree::{Again, Go, Item, Selector, Test, Tree};
use ferrozyme_ir::entity::EntityRef;
use ferrozyme_ir::{
    Builder, Constant, Function, Location, OpData, Opcode, Payload, Region, Type, Value,
};
use smallvec::SmallVec;

/// The type of the number that says where control is to go.
const NEXT: Type = Type::I32;

/// Writes what blocks compute.
pub(crate) trait Translate {
    /// Why a block cannot be written.
    type Error;

    /// Writes the operations of a block, but not its end.
    fn block(&mut self, writer: &mut Writer<'_>, block: u32) -> Result<(), Self::Error>;

    /// Writes the trap at the end of a block.
    fn trap(&mut self, writer: &mut Writer<'_>, block: u32) -> Result<(), Self::Error>;

    /// Where the end of a block stands in the source.
    fn location(&mut self, block: u32) -> Option<Location>;
}

/// Where operations go, and what the values of the graph are there.
pub(crate) struct Writer<'a> {
    /// The function that is being written.
    pub(crate) function: &'a mut Function,
    /// The region to which operations are appended.
    pub(crate) region: Region,
    types: &'a [Type],
    variables: Variables,
    slots: Vec<Slot>,
    /// What to restore at the end of the region.
    log: Vec<(Variable, Slot)>,
    /// Where control was last told to go, and when.
    gone: (u32, u32),
    clock: u32,
}

/// What a variable is at this point, and since when.
#[derive(Clone, Copy, Default)]
struct Slot {
    value: Option<Value>,
    since: u32,
}

impl Writer<'_> {
    /// A builder that appends operations here.
    pub(crate) fn builder(&mut self) -> Builder<'_> {
        Builder::new(self.function, self.region)
    }

    /// What a value of the graph is here.
    pub(crate) fn read(&mut self, name: Name) -> Value {
        match self.slots[name as usize].value {
            Some(value) => value,
            None => self.function.undef(self.types[name as usize]),
        }
    }

    /// Says what a value of the graph is from here on.
    pub(crate) fn define(&mut self, name: Name, value: Value) {
        debug_assert_eq!(self.function.ty(value), self.types[name as usize]);
        self.set(name, value);
    }

    fn operand(&mut self, operand: Operand) -> Value {
        match operand {
            Operand::Named(name) => self.read(name),
            Operand::Constant(value) => value,
        }
    }

    fn ty(&self, variable: Variable) -> Type {
        match self.variables.kind(variable) {
            Kind::Named(name) | Kind::Given(name) => self.types[name as usize],
            Kind::Next => NEXT,
            Kind::At(_) => Type::I1,
        }
    }

    fn get(&mut self, variable: Variable) -> Value {
        let slot = self.slots[variable as usize];
        if let Kind::At(node) = self.variables.kind(variable) {
            let (to, since) = self.gone;
            if since > slot.since {
                return self.function.int(Type::I1, i128::from(to == node));
            }
        }
        match slot.value {
            Some(value) => value,
            None => {
                let ty = self.ty(variable);
                self.function.undef(ty)
            }
        }
    }

    fn set(&mut self, variable: Variable, value: Value) {
        self.clock += 1;
        let slot = &mut self.slots[variable as usize];
        self.log.push((variable, *slot));
        *slot = Slot {
            value: Some(value),
            since: self.clock,
        };
    }

    /// Runs `write` for the inside of another region. What is assigned there is forgotten behind it.
    fn inside<R>(&mut self, region: Region, write: impl FnOnce(&mut Self) -> R) -> R {
        let (outer, gone, logged) = (self.region, self.gone, self.log.len());
        self.region = region;
        let result = write(self);
        while self.log.len() > logged {
            if let Some((variable, slot)) = self.log.pop() {
                self.slots[variable as usize] = slot;
            }
        }
        (self.region, self.gone) = (outer, gone);
        result
    }

    fn is_undef(&self, value: Value) -> bool {
        self.function.constant_of(value) == Some(&Constant::Undef)
    }

    fn truth(&self, value: Value) -> Option<bool> {
        let bit = self.function.int_of(value)?;
        (self.function.ty(value) == Type::I1).then_some(bit != 0)
    }
}

/// All that is known of the structured form.
pub(super) struct Form<'a> {
    pub(super) graph: &'a Graph,
    pub(super) tree: &'a Tree,
    pub(super) carry: &'a Carry,
    /// How many blocks there were at first; those behind have nothing to translate.
    pub(super) blocks: usize,
    /// How many blocks and dispatches there are.
    pub(super) nodes: usize,
}

impl Form<'_> {
    /// Writes it into the body of a function.
    pub(super) fn emit<T: Translate>(
        &self,
        function: &mut Function,
        translate: &mut T,
    ) -> Result<(), T::Error> {
        let variables = Variables::of(self.graph);
        let region = function.body();
        let mut writer = Writer {
            function,
            region,
            types: &self.graph.types,
            variables,
            slots: vec![Slot::default(); variables.at(self.nodes as u32) as usize],
            log: Vec::new(),
            gone: (0, 0),
            clock: 0,
        };
        let mut emitter = Emitter {
            graph: self.graph,
            tree: self.tree,
            carry: self.carry,
            blocks: self.blocks,
            translate,
            location: None,
        };
        emitter.sequence(&mut writer, 0)
    }
}

struct Emitter<'a, T> {
    graph: &'a Graph,
    tree: &'a Tree,
    carry: &'a Carry,
    blocks: usize,
    translate: &'a mut T,
    /// Of the last end of a block: where operations that choose stand in the source.
    location: Option<Location>,
}

impl<T: Translate> Emitter<'_, T> {
    fn sequence(&mut self, writer: &mut Writer<'_>, sequence: u32) -> Result<(), T::Error> {
        let data = &self.tree.sequences[sequence as usize];
        for (position, item) in data.items.iter().enumerate() {
            let handed = self.carry.results(sequence, position as u32);
            match item {
                &Item::Block(block) => {
                    for &param in &self.graph.blocks[block as usize].params {
                        let given = writer.get(writer.variables.given(param));
                        writer.define(param, given);
                    }
                    if (block as usize) < self.blocks {
                        self.translate.block(writer, block)?;
                        self.location = self.translate.location(block);
                    }
                }
                &Item::Trap(block) => self.translate.trap(writer, block)?,
                &Item::Return(block) => {
                    let mut values = Vec::new();
                    if let End::Return(operands) = &self.graph.blocks[block as usize].end {
                        values.extend(operands.iter().map(|&operand| writer.operand(operand)));
                    }
                    let mut builder = writer.builder();
                    builder.location = self.location;
                    builder.ret(&values);
                }
                Item::Go(go) => self.go(writer, go),
                Item::If { test, arms } => {
                    let condition = match *test {
                        Test::Condition(operand) => writer.operand(operand),
                        Test::At(node) => writer.get(writer.variables.at(node)),
                    };
                    self.choice(writer, Opcode::If, condition, Payload::None, arms, handed)?;
                }
                Item::Switch { on, cases, arms } => {
                    let selector = match *on {
                        Selector::Value(operand) => writer.operand(operand),
                        Selector::Next => writer.get(writer.variables.next()),
                    };
                    let cases = cases.iter().map(|case| case.clone().into_boxed_slice());
                    let cases = Payload::Cases(cases.collect());
                    self.choice(writer, Opcode::Switch, selector, cases, arms, handed)?;
                }
                Item::Loop { body, again, .. } => self.repeat(writer, *body, *again, handed)?,
            }
        }
        let ended = matches!(data.items.last(), Some(Item::Trap(_) | Item::Return(_)));
        if !data.completes && !ended {
            writer.builder().trap("unreachable");
        }
        Ok(())
    }

    fn go(&self, writer: &mut Writer<'_>, go: &Go) {
        if let Some(header) = go.leaves {
            for &param in &self.graph.blocks[header as usize].params {
                let nothing = writer.function.undef(writer.types[param as usize]);
                writer.set(writer.variables.given(param), nothing);
            }
        }
        if let (Some((block, edge)), Some(to)) = (go.by, go.to) {
            let Edge { args, .. } = &self.graph.blocks[block as usize].end.edges()[edge as usize];
            for (&param, &arg) in self.graph.blocks[to as usize].params.iter().zip(args) {
                let value = writer.operand(arg);
                writer.set(writer.variables.given(param), value);
            }
        }
        if let Some(to) = go.to {
            let to = writer.function.int(NEXT, i128::from(to));
            writer.set(writer.variables.next(), to);
        }
        writer.clock += 1;
        writer.gone = (go.node, writer.clock);
    }

    /// Writes an `if` or a `switch`.
    fn choice(
        &mut self,
        writer: &mut Writer<'_>,
        opcode: Opcode,
        selector: Value,
        payload: Payload,
        arms: &[u32],
        handed: &[Variable],
    ) -> Result<(), T::Error> {
        let location = self.location;
        let known = writer.function.values.len();
        let mut regions: SmallVec<[Region; 2]> = SmallVec::new();
        // For each arm that gets to its end the values it hands on.
        let mut ends: Vec<(Region, Vec<Value>)> = Vec::new();
        for &arm in arms {
            let region = writer.function.new_region(&[]);
            regions.push(region);
            writer.inside(region, |writer| {
                self.sequence(writer, arm)?;
                if self.tree.sequences[arm as usize].completes {
                    let values = handed.iter().map(|&variable| writer.get(variable));
                    ends.push((region, values.collect()));
                }
                Ok(())
            })?;
        }
        let op = writer.function.new_op(
            OpData {
                opcode,
                operands: SmallVec::from_slice(&[selector]),
                results: SmallVec::new(),
                regions,
                payload,
                flags: Default::default(),
                location,
            },
            &[],
        );
        writer.function.append(writer.region, op);
        let mut kept: Vec<(usize, Value)> = Vec::new();
        for (index, &variable) in handed.iter().enumerate() {
            let column = |row: usize| ends[row].1[index];
            let value = match same_everywhere(writer, &ends, index, known) {
                Some(value) => value,
                None if opcode == Opcode::If
                    && ends.len() == 2
                    && writer.truth(column(0)) == Some(true)
                    && writer.truth(column(1)) == Some(false) =>
                {
                    selector
                }
                None if opcode == Opcode::If
                    && ends.len() == 2
                    && writer.truth(column(0)) == Some(false)
                    && writer.truth(column(1)) == Some(true) =>
                {
                    let mut builder = writer.builder();
                    let truth = builder.function.int(Type::I1, 1);
                    builder.binary(Opcode::Xor, selector, truth)
                }
                None => {
                    let same = |&&(other, _): &&(usize, Value)| {
                        ends.iter()
                            .all(|(_, values)| values[other] == values[index])
                    };
                    match kept.iter().find(same) {
                        Some(&(_, result)) => result,
                        None => {
                            let ty = writer.ty(variable);
                            let result = writer.function.add_result(op, ty);
                            kept.push((index, result));
                            result
                        }
                    }
                }
            };
            writer.set(variable, value);
        }
        for (region, values) in &ends {
            let values: Vec<Value> = kept.iter().map(|&(index, _)| values[index]).collect();
            let mut builder = Builder::new(writer.function, *region);
            builder.location = location;
            builder.yields(&values);
        }
        Ok(())
    }

    /// Writes a loop.
    fn repeat(
        &mut self,
        writer: &mut Writer<'_>,
        body: u32,
        again: Again,
        handed: &[Variable],
    ) -> Result<(), T::Error> {
        let location = self.location;
        let known = writer.function.values.len();
        let mut operands: SmallVec<[Value; 4]> = SmallVec::new();
        let (carried, given): (Vec<Variable>, Vec<Variable>) = handed
            .iter()
            .partition(|&&variable| self.carry.is_read_at_start(body, variable));
        let region = writer.function.new_region(&[]);
        for &variable in &carried {
            operands.push(writer.get(variable));
            let ty = writer.ty(variable);
            writer.function.add_argument(region, ty);
        }
        let (condition, mut ends, outside) = writer.inside(region, |writer| {
            for (index, &variable) in carried.iter().enumerate() {
                let argument = writer.function.regions[region].args[index];
                writer.set(variable, argument);
            }
            self.sequence(writer, body)?;
            if !self.tree.sequences[body as usize].completes {
                return Ok((None, Vec::new(), Vec::new()));
            }
            let condition = match again {
                Again::Always => writer.function.int(Type::I1, 1),
                Again::At(node) => writer.get(writer.variables.at(node)),
                Again::If(operand, wanted) => {
                    let condition = writer.operand(operand);
                    if wanted {
                        condition
                    } else {
                        let mut builder = writer.builder();
                        let truth = builder.function.int(Type::I1, 1);
                        builder.binary(Opcode::Xor, condition, truth)
                    }
                }
            };
            let ends: Vec<Value> = carried
                .iter()
                .map(|&variable| writer.get(variable))
                .collect();
            let outside: Vec<Value> = given.iter().map(|&variable| writer.get(variable)).collect();
            Ok((Some(condition), ends, outside))
        })?;
        let op = writer.function.new_op(
            OpData {
                opcode: Opcode::Loop,
                operands,
                results: SmallVec::new(),
                regions: SmallVec::from_slice(&[region]),
                payload: Payload::None,
                flags: Default::default(),
                location,
            },
            &[],
        );
        writer.function.append(writer.region, op);
        for &variable in &carried {
            let ty = writer.ty(variable);
            let result = writer.function.add_result(op, ty);
            writer.set(variable, result);
        }
        for (&variable, &value) in given.iter().zip(&outside) {
            let ty = writer.ty(variable);
            let result = if is_visible(writer, value, known) {
                value
            } else if let Some(index) = ends.iter().position(|&end| end == value) {
                writer.function.ops[op].results[index]
            } else {
                let start = writer.function.undef(ty);
                writer.function.ops[op].operands.push(start);
                writer.function.add_argument(region, ty);
                ends.push(value);
                writer.function.add_result(op, ty)
            };
            writer.set(variable, result);
        }
        if let Some(condition) = condition {
            let mut builder = Builder::new(writer.function, region);
            builder.location = location;
            builder.again(condition, &ends);
        }
        Ok(())
    }
}

/// The value that all arms hand on, if it can be seen behind them. Where an arm hands on nothing in particular, any will do.
fn same_everywhere(
    writer: &mut Writer<'_>,
    ends: &[(Region, Vec<Value>)],
    index: usize,
    known: usize,
) -> Option<Value> {
    let mut common = None;
    for (_, values) in ends {
        let value = values[index];
        if writer.is_undef(value) {
            common = common.or(Some(value));
            continue;
        }
        match common {
            Some(other) if other == value => {}
            Some(other) if !writer.is_undef(other) => return None,
            _ if is_visible(writer, value, known) => common = Some(value),
            _ => return None,
        }
    }
    common
}

/// Whether a value is a constant, or was there before the regions.
fn is_visible(writer: &Writer<'_>, value: Value, known: usize) -> bool {
    value.index() < known || writer.function.is_constant(value)
}
