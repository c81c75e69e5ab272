//! Walks functions and collects the constraints of their operations on classes and cells.
//!
//! Mutually recursive functions are treated as one group, in which each function has one result for
//! all calls within the group. All other calls get their own copy of the callee's result ([`instance`]).
//!
//! The walk is repeated until nothing changes: pointers carried around loops and stored in memory grow from
//! round to round, by widening only a few times. What integers are is collected last, in one more round, because whether arithmetic works on a number or
//! on an address is known only when all pointers are.
//!
//! That the walk comes to an end rests on this: each operation makes new classes once at most, classes and cells are only merged and split,
//! periods only shrink, and offsets that go on growing are widened, after [`LIMIT`] rounds to all offsets. Should it still take more than
//! [`ROUNDS`] rounds, or more classes and cells than a multiple of the number of operations, then the walk is given up, and
//! the answer is that all memory is one class in which nothing can be told ([`collapse`]). It is the right answer to any program, and costs one more walk.

mod call;
mod collapse;
mod copy;
mod counted;
mod instance;
mod memory;
mod moves;
mod numbers;

use super::graph::{CellId, Graph, Integer, Target};
use super::span::Span;
use super::{Known, Objects, Source, freeze};
pub(super) use copy::LONG;
use counted::counted_params;
use ferrozyme_ir::entity::{EntitySet, SecondaryMap};
use ferrozyme_ir::{
    Constant, Function, FunctionId, GlobalId, Module, Op, OpView, Opcode, Region, Type, Value,
    ValueDef,
};
use ferrozyme_opt::interval::Interval;
use ferrozyme_opt::intervals::Intervals;
use ferrozyme_opt::{sources_of_result, yielded};
use instance::Instance;
use memory::part_of;
use moves::Moves;
use numbers::Packing;
pub(super) use numbers::is_telling;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What a function is analysed with on top of its declared facts.
#[derive(Clone, Copy)]
pub(super) enum Context<'a> {
    /// What is known of the memory behind its parameters.
    Known(Known<'a>),
    /// The caller's analysis, and the arguments of the call.
    Call(&'a Objects, &'a [Value]),
}

/// Analyses all functions that `function` calls, directly or not, and all that call each other in circles with it.
pub(super) fn analyse_callees(
    module: &Module,
    function: FunctionId,
    finished: &mut FxHashMap<FunctionId, Arc<Objects>>,
) {
    for group in call::groups(module, function) {
        if group != [function] && !finished.contains_key(&group[0]) {
            for (id, objects) in analyse_group(module, &group, finished, None) {
                finished.insert(id, Arc::new(objects));
            }
        }
    }
}

/// Analyses one function in a context. Calls from it to itself, by whatever way, are to the function without context.
pub(super) fn analyse_alone(
    module: &Module,
    function: FunctionId,
    finished: &FxHashMap<FunctionId, Arc<Objects>>,
    context: Context<'_>,
) -> Arc<Objects> {
    let (_, objects) = analyse_group(module, &[function], finished, Some(context))
        .pop()
        .expect("a group of one function has one analysis");
    Arc::new(objects)
}

/// Analyses functions together.
pub(super) fn analyse_group(
    module: &Module,
    group: &[FunctionId],
    finished: &FxHashMap<FunctionId, Arc<Objects>>,
    context: Option<Context<'_>>,
) -> Vec<(FunctionId, Objects)> {
    let mut gather = gather_of(module, group, finished);
    gather.start(context);
    gather.run();
    freeze::freeze(gather)
}

/// What is known of a function when its analysis is given up.
#[cfg(test)]
pub(super) fn give_up(module: &Module, function: FunctionId) -> Objects {
    let finished = FxHashMap::default();
    let mut gather = gather_of(module, &[function], &finished);
    gather.start(None);
    gather.collapse();
    let (_, objects) = freeze::freeze(gather)
        .pop()
        .expect("a group of one function has one analysis");
    objects
}

fn gather_of<'a>(
    module: &'a Module,
    group: &[FunctionId],
    finished: &'a FxHashMap<FunctionId, Arc<Objects>>,
) -> Gather<'a> {
    let mut bodies: Vec<Body<'a>> = group
        .iter()
        .map(|&id| Body::of(id, &module.functions[id]))
        .collect();
    let positions = group.iter().copied().zip(0..).collect();
    let counted = counted_params(&bodies, &positions, finished);
    for (body, counted) in bodies.iter_mut().zip(counted) {
        body.counted = counted;
    }
    let steps: usize = bodies.iter().map(|body| body.steps.len()).sum();
    Gather {
        module,
        finished,
        graph: Graph::of(SIZE + steps * SIZE_OF_EACH),
        bodies,
        positions,
        globals: FxHashMap::default(),
        functions: FxHashMap::default(),
        instances: FxHashMap::default(),
        copied: 0,
        late: false,
        last: false,
        hidden: Vec::new(),
        forged: Vec::new(),
        unknown_callees: None,
    }
}

/// After how many rounds pointers that still move are taken to point anywhere in their class.
const LIMIT: u32 = 16;

/// After how many rounds the analysis is given up. Pointers move no more by then; what still changes is merged or split, which takes few.
const ROUNDS: u32 = 64;

/// How many classes and cells there may be in any case before the analysis is given up.
const SIZE: usize = 1 << 18;

/// How many more there may be for each operation, and for each class and cell that calls copy. A round makes a cell for each piece of what
/// an operation reads or writes in pieces.
const SIZE_OF_EACH: usize = 256;

/// Fields beyond this offset are not believed.
const FAR: u64 = 1 << 48;

pub(super) struct Gather<'a> {
    pub(super) module: &'a Module,
    finished: &'a FxHashMap<FunctionId, Arc<Objects>>,
    pub(super) graph: Graph,
    pub(super) bodies: Vec<Body<'a>>,
    /// Where in `bodies` a function is.
    positions: FxHashMap<FunctionId, usize>,
    /// Where the parts of globals lie.
    pub(super) globals: FxHashMap<(GlobalId, u32), Target>,
    pub(super) functions: FxHashMap<FunctionId, Target>,
    instances: FxHashMap<instance::Key, Instance>,
    /// How many classes and cells these hold.
    copied: usize,
    /// Whether addresses made of integers that carry none are to be given memory of their own now.
    late: bool,
    /// Whether this is the round in which integers are told.
    last: bool,
    /// What is known by addresses of which something was made that carries none, though they could be made of it again.
    hidden: Vec<Target>,
    /// The pointers that are made of numbers, by the function's position.
    forged: Vec<(usize, Value)>,
    /// The cell of all floats that are passed to functions that are not known.
    pub(super) unknown_callees: Option<CellId>,
}

/// One function of the group.
pub(super) struct Body<'a> {
    pub(super) id: FunctionId,
    pub(super) function: &'a Function,
    pub(super) pointers: SecondaryMap<Value, Pointer>,
    pub(super) cells: SecondaryMap<Value, Option<CellId>>,
    pub(super) results: Vec<Outlet>,
    /// Integers that were calculated.
    pub(super) numbers: EntitySet<Value>,
    /// For each parameter: whether it is a number by all that is done with it.
    pub(super) counted: Vec<bool>,
    /// Pointers that are made of numbers in which an address may be hidden.
    pub(super) forged: EntitySet<Value>,
    intervals: Intervals,
    packing: Packing,
    /// Words that are moved as floats.
    pub(super) moves: Moves,
    steps: Vec<Step>,
}

/// Where a pointer may point, so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Pointer {
    pub(super) target: Option<Target>,
    growth: u8,
}

/// What a function returns.
#[derive(Clone, Copy)]
pub(super) struct Outlet {
    pub(super) pointer: Pointer,
    pub(super) cell: Option<CellId>,
}

/// What is known of an integer as the distance between two pointers.
enum Difference {
    /// From the first to the second, which lie in the same memory, by one of these distances.
    Known(Value, Value, Span),
    /// It is one, but where the pointers lead is not known yet.
    Pending,
    /// It is none.
    Unknown,
}

/// One thing to do in each round.
#[derive(Clone, Copy)]
enum Step {
    /// An operation without regions, or the way into one with regions.
    Enter(Op),
    /// The way out of an operation with regions.
    Leave(Op),
}

impl<'a> Body<'a> {
    fn of(id: FunctionId, function: &'a Function) -> Body<'a> {
        let mut steps = Vec::new();
        if let Some(body) = function.body {
            collect_steps(function, body, &mut steps);
        }
        Body {
            id,
            function,
            pointers: SecondaryMap::new(),
            cells: SecondaryMap::new(),
            results: Vec::new(),
            numbers: EntitySet::new(),
            counted: Vec::new(),
            forged: EntitySet::new(),
            intervals: Intervals::of(function),
            packing: Packing::of(function),
            moves: Moves::of(function),
            steps,
        }
    }

    /// The largest value that an integer may have.
    pub(super) fn longest(&self, value: Value) -> i128 {
        self.intervals.get(self.function, value).max
    }
}

/// The operations that move pointers or integers, touch memory, or hand something on; arithmetic on floats says nothing.
fn collect_steps(function: &Function, region: Region, steps: &mut Vec<Step>) {
    if function.ends_in_trap(region) {
        return;
    }
    for &op in &function.regions[region].ops {
        let data = &function.ops[op];
        let structured = !data.regions.is_empty();
        let matters = |value: &Value| !function.ty(*value).is_float();
        if structured
            || matches!(
                data.opcode,
                Opcode::Bitcast | Opcode::Call | Opcode::CallIndirect | Opcode::Return
            )
            || data.operands.iter().any(matters)
            || data.results.iter().any(matters)
        {
            steps.push(Step::Enter(op));
        }
        for &inner in &data.regions {
            collect_steps(function, inner, steps);
        }
        if structured {
            steps.push(Step::Leave(op));
        }
    }
}

impl Gather<'_> {
    fn start(&mut self, context: Option<Context<'_>>) {
        for b in 0..self.bodies.len() {
            let function = self.bodies[b].function;
            for (index, &ty) in function.results.iter().enumerate() {
                let cell = ty.is_int().then(|| self.graph.new_cell(ty.bytes()));
                let mut pointer = Pointer::default();
                // Behind the layouts of the parameters stand those of the results.
                if let Some(Context::Known(known)) = context
                    && let Some(Some(layout)) = known.layouts.get(function.params.len() + index)
                {
                    let class = self.graph.new_class(None);
                    let span = Span::exact(0);
                    let target = Target { class, span };
                    self.describe(target, layout);
                    pointer.target = Some(target);
                }
                self.bodies[b].results.push(Outlet { pointer, cell });
            }
            let Some(body) = function.body else { continue };
            for (index, &argument) in function.regions[body].args.iter().enumerate() {
                if !function.ty(argument).is_ptr() {
                    continue;
                }
                let source = (self.bodies[b].id, Source::Param(index as u32));
                let class = self.graph.new_class(Some(source));
                let target = Target {
                    class,
                    span: Span::exact(0),
                };
                self.bodies[b].pointers[argument].target = Some(target);
                if let Some(layout) = &function.params[index].facts.layout {
                    self.describe(target, layout);
                }
                if let Some(Context::Known(known)) = context {
                    if let Some(Some(layout)) = known.layouts.get(index) {
                        self.describe(target, layout);
                    }
                    let union = known.unions.get(index) == Some(&true);
                    self.graph.node_mut(class).union |= union;
                }
            }
        }
        if let Some(Context::Call(caller, arguments)) = context {
            self.enter_from(caller, arguments);
        }
    }

    fn run(&mut self) {
        let mut round = 0;
        loop {
            let before = self.graph.version;
            self.graph.hurry = round >= LIMIT;
            if round == ROUNDS || !self.round() {
                self.collapse();
                return;
            }
            round += 1;
            if self.graph.version == before {
                if self.late {
                    break;
                }
                self.late = true;
            }
        }
        self.last = true;
        if !self.round() {
            self.collapse();
            return;
        }
        for b in 0..self.bodies.len() {
            self.tell_integers(b);
        }
        // Where something long is made of something short, the fields are more than the cells.
        if self.graph.is_exhausted() || self.graph.count_leaves() > self.graph.budget as u64 {
            self.collapse();
        }
    }

    /// Looks at each operation once. False if that takes more memory than the analysis is worth.
    fn round(&mut self) -> bool {
        self.graph.forget_moves();
        for b in 0..self.bodies.len() {
            if let Some(body) = self.bodies[b].function.body {
                for &argument in &self.bodies[b].function.regions[body].args {
                    self.take_address(b, argument);
                }
            }
            self.moves_within(b);
            for index in 0..self.bodies[b].steps.len() {
                match self.bodies[b].steps[index] {
                    Step::Enter(op) => self.enter(b, op),
                    Step::Leave(op) => self.leave(b, op),
                }
                if self.graph.is_exhausted() {
                    return false;
                }
            }
        }
        self.graph.join_moved();
        self.find_hidden();
        true
    }

    // ---- values

    /// Where a pointer points, or the address that an integer carries.
    fn place_of(&mut self, b: usize, value: Value) -> Option<Target> {
        let function = self.bodies[b].function;
        match &function.values[value].def {
            ValueDef::Constant(Constant::Global(id)) => Some(self.global(*id)),
            ValueDef::Constant(Constant::Function(id)) => Some(self.code(b, *id)),
            ValueDef::Constant(_) => None,
            _ => self.bodies[b].pointers[value].target,
        }
    }

    /// An integer that comes from bytes carries the address that these are.
    fn take_address(&mut self, b: usize, value: Value) {
        if self.bodies[b].function.ty(value) == Type::I64
            && let Some(cell) = self.bodies[b].cells[value]
        {
            let target = self.graph.pointer_of(cell);
            self.assign(b, value, target);
        }
    }

    /// Bytes hold the address that an integer carries, if it does.
    fn give_address(&mut self, b: usize, value: Value, cell: CellId) {
        if self.bodies[b].function.ty(value) == Type::I64
            && let Some(target) = self.place_of(b, value)
        {
            self.graph.set_pointer(cell, target);
        }
    }

    /// The cell of an integer value; none for constants and for other types.
    fn cell_of(&mut self, b: usize, value: Value) -> Option<CellId> {
        let function = self.bodies[b].function;
        let ty = function.ty(value);
        if !ty.is_int() || function.is_constant(value) {
            return None;
        }
        if let Some(cell) = self.bodies[b].cells[value] {
            return Some(cell);
        }
        let cell = self.graph.new_cell(ty.bytes());
        self.bodies[b].cells[value] = Some(cell);
        Some(cell)
    }

    fn interval(&self, b: usize, value: Value) -> Interval {
        let body = &self.bodies[b];
        body.intervals.get(body.function, value)
    }

    /// A pointer points to exactly this.
    fn assign(&mut self, b: usize, value: Value, target: Option<Target>) {
        let Some(target) = target else { return };
        let new = self.graph.resolve(target);
        let old = self.bodies[b].pointers[value].target;
        let old = old.map(|old| self.graph.resolve(old));
        if let Some(old) = old
            && old.class != new.class
        {
            // Two answers in two rounds: what was derived from the first must hold for both.
            let joined = self.graph.join(old, new);
            self.bodies[b].pointers[value].target = Some(joined);
            return;
        }
        if old != Some(new) {
            self.graph.version += 1;
            self.bodies[b].pointers[value].target = Some(new);
        }
    }

    /// A pointer points to this, among others.
    fn grow(&mut self, b: usize, value: Value, target: Option<Target>) {
        let Some(target) = target else { return };
        let mut pointer = self.bodies[b].pointers[value];
        self.graph
            .grow(&mut pointer.target, &mut pointer.growth, target);
        self.bodies[b].pointers[value] = pointer;
    }

    /// The addresses of several values together.
    fn join_all(&mut self, b: usize, values: &[Value]) -> Option<Target> {
        let mut joined: Option<Target> = None;
        for &value in values {
            if let Some(target) = self.place_of(b, value) {
                joined = Some(match joined {
                    None => target,
                    Some(others) => self.graph.join(others, target),
                });
            }
        }
        joined
    }

    /// One of `from` is what `into` is.
    fn choose(&mut self, b: usize, from: &[Value], into: Value) {
        let ty = self.bodies[b].function.ty(into);
        if ty.is_ptr() {
            let target = self.join_all(b, from);
            self.assign(b, into, target);
        } else if let Some(cell) = self.cell_of(b, into) {
            for &value in from {
                self.same_integer(b, value, cell);
            }
            if ty == Type::I64 {
                let target = self.join_all(b, from);
                self.assign(b, into, target);
            }
        }
    }

    /// An integer value and some bytes are the same.
    fn same_integer(&mut self, b: usize, value: Value, cell: CellId) {
        match self.cell_of(b, value) {
            Some(own) => self.graph.merge_cells(own, cell),
            None if self.last && numbers::is_telling(self.bodies[b].function, value) => {
                self.graph.set_integer(cell, Integer::Used);
            }
            None => {}
        }
    }

    /// A value flows into another that has other sources, too, which may depend on it.
    ///
    /// What an integer is, its sources and what it flows into share; what address it carries flows one way only, for a number that is counted up
    /// may be put where an address was.
    fn flow(&mut self, b: usize, from: &[Value], into: &[Value]) {
        for (&from, &into) in from.iter().zip(into) {
            let ty = self.bodies[b].function.ty(into);
            if ty.is_ptr() || ty == Type::I64 {
                let target = self.place_of(b, from);
                self.grow(b, into, target);
            }
            if let Some(cell) = self.cell_of(b, into) {
                self.same_integer(b, from, cell);
            }
        }
    }

    // ---- operations

    fn enter(&mut self, b: usize, op: Op) {
        let function = self.bodies[b].function;
        let data = &function.ops[op];
        match data.view() {
            OpView::Load { address, .. } => self.load(b, data.results[0], address, op),
            OpView::Store { value, address, .. } => {
                self.store(b, value, address);
                self.handles(b, address, true);
            }
            OpView::AtomicAdd { address, value, .. } => {
                self.store(b, value, address);
                self.handles(b, address, true);
                self.load(b, data.results[0], address, op);
            }
            OpView::Offset { base, scale, .. } => {
                if let Some(base) = self.place_of(b, base) {
                    let target = self.moved(b, op, base, scale);
                    self.assign(b, data.results[0], target);
                }
            }
            OpView::Exclusive { pointer, .. } => {
                self.choose(b, &[pointer], data.results[0]);
            }
            OpView::Stack { .. } => {
                self.made_by(b, op, 0, Source::Stack(op));
            }
            OpView::Alloc { .. } => {
                self.made_by(b, op, 0, Source::Alloc(op));
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
                self.copy(b, destination, source, size);
                self.handles(b, destination, true);
                self.handles(b, source, false);
            }
            OpView::Free { address, .. } => {
                if let Some(target) = self.place_of(b, address) {
                    let (class, _) = self.graph.find(target.class);
                    self.graph.node_mut(class).released = true;
                }
            }
            OpView::Fill {
                destination, size, ..
            } => {
                self.fill(b, destination, size);
                self.handles(b, destination, true);
            }
            OpView::Select {
                then, otherwise, ..
            } => {
                self.choose(b, &[then, otherwise], data.results[0]);
            }
            OpView::Call { arguments, callee } => self.call(b, op, callee, arguments),
            OpView::CallIndirect {
                target, arguments, ..
            } => match function.constant_of(target) {
                Some(&Constant::Function(callee)) if self.fits(b, op, callee) => {
                    self.call(b, op, callee, arguments);
                }
                _ => {
                    if let Some(target) = self.place_of(b, target) {
                        let (class, _) = self.graph.find(target.class);
                        self.graph.node_mut(class).called = true;
                    }
                    for &argument in arguments {
                        self.passes_to_unknown(b, argument);
                    }
                    self.call_unknown(b, op, arguments, None);
                }
            },
            OpView::For { initial, .. } | OpView::Loop { initial, .. } => {
                self.flow(b, initial, function.carried(op));
            }
            OpView::Return { values } => {
                for (index, &value) in values.iter().enumerate() {
                    self.returns(b, value, index);
                    let target = self.place_of(b, value);
                    let Some(&Outlet { mut pointer, cell }) = self.bodies[b].results.get(index)
                    else {
                        break;
                    };
                    if let Some(cell) = cell {
                        self.same_integer(b, value, cell);
                        self.give_address(b, value, cell);
                    } else if let Some(target) = target {
                        self.graph
                            .grow(&mut pointer.target, &mut pointer.growth, target);
                        self.bodies[b].results[index].pointer = pointer;
                    }
                }
            }
            _ => self.number(b, op),
        }
    }

    /// Something is put where a pointer leads, or taken from there without being looked at.
    fn handles(&mut self, b: usize, pointer: Value, puts: bool) {
        if let Some(target) = self.place_of(b, pointer) {
            let (class, _) = self.graph.find(target.class);
            let node = self.graph.node_mut(class);
            node.handled = true;
            node.written |= puts;
        }
    }

    /// Where an `offset` leads from a place; none if that is not known yet.
    fn moved(&mut self, b: usize, op: Op, base: Target, scale: i64) -> Option<Target> {
        let base = self.graph.resolve(base);
        let data = &self.bodies[b].function.ops[op];
        match self.difference(b, data.index()) {
            Difference::Known(from, to, span) if scale == 1 => {
                // From a pointer by the way from it to another: there.
                if from == data.base() {
                    return self.place_of(b, to);
                }
                let span = base.span.sum(span);
                return Some(Target { span, ..base });
            }
            Difference::Pending if scale == 1 => return None,
            _ => {}
        }
        let body = &self.bodies[b];
        let index = body.intervals.index(body.function, op);
        // Without unsigned overflow an index is not negative.
        let index = if data.flags.contains(ferrozyme_ir::Flags::NUW) {
            index.at_least_zero()
        } else {
            index
        };
        let span = base.span.plus(index, scale);
        if let Some(&Constant::Global(id)) = self.bodies[b].function.constant_of(data.base())
            && let Some(offset) = span.as_exact().and_then(|at| u64::try_from(at).ok())
            && let part @ 1.. = part_of(&self.module.globals[id], offset)
        {
            let Target { class, .. } = self.part_of_global(id, part);
            return Some(Target { class, span });
        }
        Some(Target { span, ..base })
    }

    /// What is known of an integer as the distance between two places of the same memory.
    fn difference(&mut self, b: usize, value: Value) -> Difference {
        let function = self.bodies[b].function;
        // The low bits of the distance between elements are zero already.
        if let Some(OpView::Binary(Opcode::And, distance, mask)) = function.definition(value)
            && let Some(unit) = function.int_of(mask).map(i128::wrapping_neg)
            && let Ok(unit) = u64::try_from(unit)
            && unit.is_power_of_two()
        {
            return match self.difference(b, distance) {
                Difference::Known(_, _, span) if !span.is_multiple_of(unit) => Difference::Unknown,
                same => same,
            };
        }
        let Some(OpView::Binary(Opcode::Sub, to, from)) = function.definition(value) else {
            return Difference::Unknown;
        };
        // An address as an integer is as good as its pointer. Loops carry it beside the pointer at times.
        let end = |value: Value| match function.definition(value) {
            Some(OpView::Cast(Opcode::Ptrtoint, pointer)) => Some((pointer, true)),
            None if function.ty(value) == Type::I64 && !function.is_constant(value) => {
                Some((value, false))
            }
            _ => None,
        };
        let (Some((to, first)), Some((from, second))) = (end(to), end(from)) else {
            return Difference::Unknown;
        };
        if !first && !second {
            return Difference::Unknown;
        }
        match (self.place_of(b, to), self.place_of(b, from)) {
            (Some(there), Some(here)) => {
                let (there, here) = (self.graph.resolve(there), self.graph.resolve(here));
                if there.class == here.class {
                    let span = there.span.sum(here.span.negated());
                    Difference::Known(from, to, span)
                } else {
                    Difference::Unknown
                }
            }
            _ if self.late => Difference::Unknown,
            _ => Difference::Pending,
        }
    }

    fn leave(&mut self, b: usize, op: Op) {
        let function = self.bodies[b].function;
        let data = &function.ops[op];
        match data.opcode {
            Opcode::If | Opcode::Switch => {
                for (index, &result) in data.results.iter().enumerate() {
                    self.choose(b, &sources_of_result(function, op, index), result);
                }
            }
            Opcode::For | Opcode::Loop => {
                let args = function.carried(op);
                self.flow(b, yielded(function, data.body()).unwrap_or(&[]), args);
                for (index, &result) in data.results.iter().enumerate() {
                    match data.opcode {
                        // What the first and the last iteration begin with.
                        Opcode::For => self.choose(b, &[args[index]], result),
                        _ => self.choose(b, &sources_of_result(function, op, index), result),
                    }
                }
            }
            _ => {}
        }
    }
}
