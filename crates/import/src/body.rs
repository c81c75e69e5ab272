//! One function: its values and blocks as a graph, and the translation of each block.
//!
//! Every LLVM parameter and instruction gets consecutive names in the graph, one for each leaf of its type. Phis are parameters of
//! their block. Constants have no names, except for constant expressions in phis, which the preceding block computes.

use super::Importer;
use super::constant::{Leaf, unknown_type};
use super::error::{ImportError, Result, unknown};
use super::structure::{
    Block as GraphBlock, Edge, End, Graph, Name, Operand, StructureError, Translate, Writer,
    structure,
};
use crate::outline::Cleanup;
use ferrozyme_convention::signature::leaves;
use ferrozyme_ir::{self as ir, Builder, Function, FunctionId, Location};
use ferrozyme_llvm::{Block, Opcode, Value, ValueKind};
use ferrozyme_refusal::Refusal;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// The values of the Loop IR that one of LLVM's consists of.
pub(super) type Leaves = SmallVec<[ir::Value; 1]>;

/// Up to how many instructions a block that ends in a trap is copied to each place that leads there.
const SMALL_TRAP: usize = 16;

impl<'c> Importer<'c, '_> {
    /// Imports the body of a function that is declared already.
    pub(super) fn import_body(
        &mut self,
        function: Value<'c>,
        id: FunctionId,
    ) -> Result<(), ImportError> {
        self.move_out_long_doubles(function);
        self.move_out_opaque(function);
        self.straighten_pointers(function);
        self.replace_resizes(function);
        let declared = &self.module.functions[id];
        let mut body = Function::define(
            declared.name.clone(),
            declared.params.clone(),
            declared.results.clone(),
        );
        body.facts = declared.facts.clone();
        let mut names = Names::default();
        let graph = match self.graph(function, &mut body, &mut names) {
            Ok(graph) => graph,
            Err((instruction, problem)) => return Err(self.error(function, instruction, problem)),
        };
        let mut translator = Translator {
            importer: self,
            function,
            names,
            instruction: None,
        };
        match structure(graph, &mut body, &mut translator) {
            Ok(()) => {}
            Err(StructureError::TooDeep) => {
                return Err(self.error(function, None, Refusal::DeepNesting));
            }
            Err(StructureError::Block(problem)) => {
                let instruction = translator.instruction;
                return Err(self.error(function, instruction, problem));
            }
        }
        self.module.functions[id] = body;
        Ok(())
    }

    fn error(
        &self,
        function: Value<'c>,
        instruction: Option<Value<'c>>,
        refusal: Refusal,
    ) -> ImportError {
        // What optimisers made has no place of its own; what uses it has.
        let around = instruction.into_iter().flat_map(|at| {
            let users = at.users().into_iter().filter(|user| user.is_instruction());
            let operands = at.operands().into_iter();
            std::iter::once(at)
                .chain(users)
                .chain(operands.filter(|operand| operand.is_instruction()))
        });
        let mut places = around
            .map(|at| at.source_places(self.context))
            .find(|places| !places.is_empty())
            .unwrap_or_default();
        if places.is_empty() {
            places.extend(function.function_place(self.context));
        }
        ImportError {
            function: function.name(),
            refusal,
            instruction: instruction.map(|instruction| instruction.to_string()),
            places,
        }
    }

    /// The control flow of a function. Fails with the instruction that has no place in the Loop IR.
    fn graph(
        &mut self,
        function: Value<'c>,
        body: &mut Function,
        names: &mut Names<'c>,
    ) -> Result<Graph, (Option<Value<'c>>, Refusal)> {
        let mut graph = Graph::default();
        names.find_blocks(function);
        self.find_cleanups(names);
        for parameter in function.parameters() {
            names
                .add(&mut graph, parameter, 0)
                .map_err(|problem| (None, problem))?;
        }
        for index in 0..names.blocks.len() {
            for instruction in names.blocks[index].instructions() {
                names
                    .add(&mut graph, instruction, index as u32)
                    .map_err(|problem| (Some(instruction), problem))?;
            }
        }
        for index in 0..names.blocks.len() {
            let block = names.blocks[index];
            let data = self
                .graph_block(&mut graph, body, names, index as u32)
                .map_err(|problem| (block.terminator(), problem))?;
            graph.blocks.push(data);
        }
        // What edges hand over as expressions is computed in the blocks that they start from.
        for (index, expressions) in names.expressions.iter().enumerate() {
            let defined = expressions.iter().map(|&(name, _)| name);
            graph.blocks[index].defines.extend(defined);
        }
        Ok(graph)
    }

    fn graph_block(
        &mut self,
        graph: &mut Graph,
        body: &mut Function,
        names: &mut Names<'c>,
        index: u32,
    ) -> Result<GraphBlock> {
        let block = names.blocks[index as usize];
        let mut data = GraphBlock {
            params: Vec::new(),
            uses: Vec::new(),
            defines: Vec::new(),
            end: End::Trap,
            small: false,
        };
        if index == 0 {
            for parameter in block.function().parameters() {
                data.defines.extend(names.of(parameter));
            }
        }
        let mut used: FxHashSet<Name> = FxHashSet::default();
        let mut count = 0;
        for instruction in block.instructions() {
            if instruction.is(Opcode::Phi) {
                data.params.extend(names.of(instruction));
                continue;
            }
            count += 1;
            data.defines.extend(names.of(instruction));
            let unwinding = names.cleanups.get(&instruction);
            let unwinding = unwinding
                .into_iter()
                .flat_map(|cleanup| cleanup.arguments.clone());
            for operand in instruction.operands().into_iter().chain(unwinding) {
                let Some(run) = names.known(operand) else {
                    continue;
                };
                if run.block != index {
                    data.uses.extend(
                        (run.first..run.first + run.count).filter(|&name| used.insert(name)),
                    );
                }
            }
        }
        data.small = count <= SMALL_TRAP;
        let end = block
            .terminator()
            .ok_or_else(|| unknown("a block without an end"))?;
        data.end = self.graph_end(graph, body, names, index, end)?;
        Ok(data)
    }

    fn graph_end(
        &mut self,
        graph: &mut Graph,
        body: &mut Function,
        names: &mut Names<'c>,
        index: u32,
        end: Value<'c>,
    ) -> Result<End> {
        let mut operand = |this: &mut Self, graph: &mut Graph, value: Value<'c>| {
            this.edge_operands(graph, body, names, index, value)
        };
        match end.opcode() {
            Some(Opcode::Ret) => {
                let mut values = Vec::new();
                for value in end.operands() {
                    values.extend(operand(self, graph, value)?);
                }
                Ok(End::Return(values))
            }
            Some(Opcode::Unreachable) => Ok(End::Trap),
            Some(Opcode::Br) => {
                let condition = match end.condition() {
                    Some(condition) => operand(self, graph, condition)?.into_iter().next(),
                    None => None,
                };
                let mut edges = Vec::new();
                for target in end.successors() {
                    edges.push(self.edge(graph, body, names, index, target)?);
                }
                match (condition, <[Edge; 2]>::try_from(edges)) {
                    (Some(condition), Ok(edges)) => Ok(End::Branch(condition, edges)),
                    (_, Err(edges)) => single(edges).map(End::Jump),
                    (None, Ok([edge, _])) => Ok(End::Jump(edge)),
                }
            }
            // Where the callee unwinds to is not imported: unwinding leaves the function by itself, unless it is caught here.
            Some(Opcode::Invoke) => {
                if catches(end.unwind_destination()) {
                    return Err(Refusal::CaughtPanic);
                }
                let edge = self.edge(graph, body, names, index, end.normal_destination())?;
                Ok(End::Jump(edge))
            }
            Some(Opcode::Switch) => self.graph_switch(graph, body, names, index, end),
            Some(opcode) => Err(unknown(format!("a block that ends in {opcode:?}"))),
            None => Err(unknown("a block that ends in an unknown instruction")),
        }
    }

    fn graph_switch(
        &mut self,
        graph: &mut Graph,
        body: &mut Function,
        names: &mut Names<'c>,
        index: u32,
        end: Value<'c>,
    ) -> Result<End> {
        let selector = self.edge_operands(graph, body, names, index, end.operand(0))?;
        let selector = selector.first().copied();
        let selector = selector.ok_or_else(|| unknown("a switch on nothing"))?;
        let default = self.edge(graph, body, names, index, end.switch_default())?;
        // Edges to the same block hand over the same values, since phis know blocks only.
        let mut cases: Vec<Vec<i128>> = Vec::new();
        let mut edges: Vec<Edge> = Vec::new();
        let mut position: FxHashMap<u32, usize> = FxHashMap::default();
        for (constant, target) in end.switch_cases() {
            let target_index = names.block_index[&target];
            if target_index == default.target {
                continue;
            }
            let case = constant
                .as_signed()
                .ok_or_else(|| unknown("a switch on integers of more than 128 bits"))?;
            match position.get(&target_index) {
                Some(&known) => cases[known].push(case),
                None => {
                    position.insert(target_index, cases.len());
                    cases.push(vec![case]);
                    edges.push(self.edge(graph, body, names, index, target)?);
                }
            }
        }
        if cases.is_empty() {
            return Ok(End::Jump(default));
        }
        edges.push(default);
        Ok(End::Switch(selector, cases, edges))
    }

    /// The edge from a block to another, with what its phis take.
    fn edge(
        &mut self,
        graph: &mut Graph,
        body: &mut Function,
        names: &mut Names<'c>,
        from: u32,
        target: Block<'c>,
    ) -> Result<Edge> {
        let mut args = Vec::new();
        let source = names.blocks[from as usize];
        for phi in target
            .instructions()
            .take_while(|instruction| instruction.is(Opcode::Phi))
        {
            let incoming = names.incoming.get(&(phi, source)).copied();
            let value = incoming.ok_or_else(|| unknown("a phi without a value for an edge"))?;
            args.extend(self.edge_operands(graph, body, names, from, value)?);
        }
        Ok(Edge {
            target: names.block_index[&target],
            args,
        })
    }

    /// A value as the end of a block uses it.
    fn edge_operands(
        &mut self,
        graph: &mut Graph,
        body: &mut Function,
        names: &mut Names<'c>,
        block: u32,
        value: Value<'c>,
    ) -> Result<Vec<Operand>> {
        if names.known(value).is_some() {
            return Ok(names.of(value).map(Operand::Named).collect());
        }
        let mut operands = Vec::new();
        for leaf in self.constant_leaves(body, value)? {
            operands.push(match leaf {
                Leaf::Plain(value) => Operand::Constant(value),
                Leaf::Expression(expression, ty) => {
                    let name = graph.types.len() as Name;
                    graph.types.push(ty);
                    names.expressions[block as usize].push((name, expression));
                    Operand::Named(name)
                }
            });
        }
        Ok(operands)
    }
}

fn single(edges: Vec<Edge>) -> Result<Edge> {
    let only = edges.into_iter().next();
    only.ok_or_else(|| unknown("a branch to nowhere"))
}

/// Whether unwinding to this block may stop there.
fn catches(unwind: Block<'_>) -> bool {
    let pad = unwind.first_after_phis();
    pad.is_none_or(|pad| !pad.is(Opcode::LandingPad) || !pad.clauses().is_empty())
}

/// What the values of a function are called in the graph.
#[derive(Default)]
pub(super) struct Names<'c> {
    runs: FxHashMap<Value<'c>, Run>,
    blocks: Vec<Block<'c>>,
    block_index: FxHashMap<Block<'c>, u32>,
    /// What each phi takes from each block.
    incoming: FxHashMap<(Value<'c>, Block<'c>), Value<'c>>,
    /// For each block the expressions that its edges hand over.
    expressions: Vec<Vec<(Name, Value<'c>)>>,
    /// What is done when an `invoke` unwinds.
    pub(super) cleanups: FxHashMap<Value<'c>, Cleanup<'c>>,
}

/// The names of one value, one after the other.
#[derive(Clone, Copy)]
struct Run {
    first: Name,
    count: u32,
    /// Where it is defined.
    block: u32,
}

impl<'c> Names<'c> {
    /// The blocks, in the order in which LLVM has them.
    pub(super) fn blocks(&self) -> &[Block<'c>] {
        &self.blocks
    }

    /// Finds the blocks that control can get to, unwinding aside, in the order in which LLVM has them.
    fn find_blocks(&mut self, function: Value<'c>) {
        let blocks = function.blocks();
        let mut reached: FxHashSet<Block<'c>> = FxHashSet::default();
        let mut work: Vec<Block<'c>> = blocks.first().copied().into_iter().collect();
        while let Some(block) = work.pop() {
            if reached.insert(block) {
                match block.terminator() {
                    Some(end) if end.is(Opcode::Invoke) => work.push(end.normal_destination()),
                    _ => work.extend(block.successors()),
                }
            }
        }
        for block in blocks.into_iter().filter(|block| reached.contains(block)) {
            self.block_index.insert(block, self.blocks.len() as u32);
            self.blocks.push(block);
            self.expressions.push(Vec::new());
        }
    }

    fn add(&mut self, graph: &mut Graph, value: Value<'c>, block: u32) -> Result<()> {
        let of = value.ty();
        let types = match leaves(of) {
            Some(types) => types,
            // What landing pads give is of no interest, and metadata is none.
            None if !value.is_used() => Vec::new(),
            None => return Err(unknown_type(of)),
        };
        let run = Run {
            first: graph.types.len() as Name,
            count: types.len() as u32,
            block,
        };
        graph.types.extend(types);
        self.runs.insert(value, run);
        if value.is(Opcode::Phi) {
            let incoming = value.incoming().into_iter();
            self.incoming
                .extend(incoming.map(|(taken, from)| ((value, from), taken)));
        }
        Ok(())
    }

    fn known(&self, value: Value<'c>) -> Option<Run> {
        match value.kind() {
            ValueKind::Instruction | ValueKind::Argument => self.runs.get(&value).copied(),
            _ => None,
        }
    }

    fn of(&self, value: Value<'c>) -> impl Iterator<Item = Name> + use<> {
        let run = self.known(value).unwrap_or(Run {
            first: 0,
            count: 0,
            block: 0,
        });
        run.first..run.first + run.count
    }
}

/// Translates the blocks of one function.
pub(super) struct Translator<'i, 'c, 'o> {
    pub(super) importer: &'i mut Importer<'c, 'o>,
    pub(super) function: Value<'c>,
    pub(super) names: Names<'c>,
    /// What is being translated, for messages.
    instruction: Option<Value<'c>>,
}

impl<'c> Translate for Translator<'_, 'c, '_> {
    type Error = Refusal;

    fn block(&mut self, writer: &mut Writer<'_>, block: u32) -> Result<()> {
        if block == 0 {
            let arguments: Leaves = writer.function.arguments().iter().copied().collect();
            let parameters = self.function.parameters();
            let names = parameters
                .into_iter()
                .flat_map(|parameter| self.names.of(parameter));
            for (name, argument) in names.zip(arguments) {
                writer.define(name, argument);
            }
        }
        let data = self.names.blocks[block as usize];
        let trap = trap_call(data);
        for instruction in data.instructions() {
            if instruction.is(Opcode::Phi) {
                self.note_range(writer, instruction);
                continue;
            }
            if Some(instruction) == trap {
                break;
            }
            if instruction.is_terminator() && !instruction.is(Opcode::Invoke) {
                break;
            }
            self.instruction = Some(instruction);
            let location = self.location_of(instruction);
            let mut at = At {
                translator: self,
                writer,
                location,
            };
            let values = at.instruction(instruction)?;
            self.define(writer, instruction, &values)?;
        }
        for (name, expression) in self.names.expressions[block as usize].clone() {
            let location = None;
            let mut at = At {
                translator: self,
                writer,
                location,
            };
            let value = at.expression(expression)?;
            writer.define(name, value);
        }
        Ok(())
    }

    fn trap(&mut self, writer: &mut Writer<'_>, block: u32) -> Result<()> {
        let data = self.names.blocks[block as usize];
        let Some(call) = trap_call(data) else {
            writer.builder().trap("unreachable");
            return Ok(());
        };
        self.instruction = Some(call);
        let location = self.location_of(call);
        let mut at = At {
            translator: self,
            writer,
            location,
        };
        at.trap_by(call)
    }

    fn location(&mut self, block: u32) -> Option<Location> {
        let end = self.names.blocks.get(block as usize)?.terminator()?;
        self.location_of(end)
    }
}

/// The call before an `unreachable`, if nothing but a call that does not come back leads there.
fn trap_call(block: Block<'_>) -> Option<Value<'_>> {
    let end = block
        .terminator()
        .filter(|end| end.is(Opcode::Unreachable))?;
    let call = end
        .previous_instruction()
        .filter(|call| call.is(Opcode::Call))?;
    let returns_nothing = !call.is_used();
    returns_nothing.then_some(call)
}

impl<'c> Translator<'_, 'c, '_> {
    fn location_of(&mut self, instruction: Value<'c>) -> Option<Location> {
        let importer = &mut *self.importer;
        importer
            .locations
            .of(importer.context, &mut importer.module, instruction)
    }

    fn define(
        &mut self,
        writer: &mut Writer<'_>,
        instruction: Value<'c>,
        values: &[ir::Value],
    ) -> Result<()> {
        let names: SmallVec<[Name; 2]> = self.names.of(instruction).collect();
        if names.len() != values.len() {
            return Err(unknown(
                "an instruction with another number of values than its type has",
            ));
        }
        for (&name, &value) in names.iter().zip(values) {
            writer.define(name, value);
        }
        if let [value] = *values {
            self.note_name(writer, instruction, value);
        }
        Ok(())
    }

    /// Keeps LLVM's name of a value, where it has one and the value none.
    fn note_name(&self, writer: &mut Writer<'_>, instruction: Value<'c>, value: ir::Value) {
        let data = &writer.function.values[value];
        if data.name.is_some() || writer.function.is_constant(value) {
            return;
        }
        let name = instruction.name();
        if !name.is_empty() {
            writer.function.set_name(value, name);
        }
    }

    /// Ranges of phis are not known to LLVM, but their names are.
    fn note_range(&self, writer: &mut Writer<'_>, phi: Value<'c>) {
        let names: SmallVec<[Name; 2]> = self.names.of(phi).collect();
        if let [name] = names[..] {
            let value = writer.read(name);
            self.note_name(writer, phi, value);
        }
    }
}

/// A place in a block where operations are appended.
pub(super) struct At<'a, 'i, 'c, 'o, 'w> {
    pub(super) translator: &'a mut Translator<'i, 'c, 'o>,
    pub(super) writer: &'a mut Writer<'w>,
    pub(super) location: Option<Location>,
}

impl<'c> At<'_, '_, 'c, '_, '_> {
    /// A builder that appends here.
    pub(super) fn builder(&mut self) -> Builder<'_> {
        let mut builder = self.writer.builder();
        builder.location = self.location;
        builder
    }

    /// What a value of LLVM's consists of.
    pub(super) fn leaves(&mut self, value: Value<'c>) -> Result<Leaves> {
        if self.translator.names.known(value).is_some() {
            let names = self.translator.names.of(value);
            return Ok(names.map(|name| self.writer.read(name)).collect());
        }
        let constants = self
            .translator
            .importer
            .constant_leaves(self.writer.function, value)?;
        let mut found = Leaves::new();
        for leaf in constants {
            found.push(match leaf {
                Leaf::Plain(value) => value,
                Leaf::Expression(expression, _) => self.expression(expression)?,
            });
        }
        Ok(found)
    }

    /// A value of LLVM's that is a scalar or a vector.
    pub(super) fn value(&mut self, value: Value<'c>) -> Result<ir::Value> {
        match self.leaves(value)?[..] {
            [only] => Ok(only),
            _ => Err(unknown(format!(
                "an aggregate where a number is expected: {value}"
            ))),
        }
    }

    /// Operand `index` of an instruction.
    pub(super) fn operand(&mut self, instruction: Value<'c>, index: u32) -> Result<ir::Value> {
        self.value(instruction.operand(index))
    }

    /// A constant expression.
    fn expression(&mut self, expression: Value<'c>) -> Result<ir::Value> {
        match self.instruction(expression)?[..] {
            [only] => Ok(only),
            _ => Err(unknown(format!(
                "an expression that is no number: {expression}"
            ))),
        }
    }
}
