//! The caching plan: how the reverse sweep gets the values of the forward sweep that it needs.
//!
//! A value needed in the reverse sweep is either still available (an argument, a constant, a loop counter), *recomputed* from
//! others (which includes reloading it from memory that is not clobbered), or *saved* during the forward sweep. When a loop
//! nest reads memory that is overwritten afterwards, the *range* of memory that it reads can be saved once behind the nest,
//! instead of each value that it reads.
//!
//! A minimum cut decides between these. Every value that may be needed is two nodes, `in` and `out`:
//!
//! | edge | capacity | cutting it means |
//! |---|---|---|
//! | `in → out` | bytes × iterations | the value is saved |
//! | `source → in` | cost of the operation × iterations, or infinite | it is recomputed, or cannot be |
//! | `operand.out → in` | infinite | recomputing needs the operands |
//! | `out → sink` | infinite | the reverse sweep needs it |
//! | `range.out → load.in` | infinite | the load can be repeated on the saved range |
//!
//! Nodes on the sink's side of the cut are available in the reverse sweep. Saving a byte is weighed as
//! [`BYTE_COST`] simple operations, since the memory that a tape takes is what limits programs. Where the reverse sweep of a region
//! follows its forward sweep no tape is needed: values of the region cost nothing, and those of branches in it as much as handing them out
//! does. Iterations that are not known are taken to be [`UNKNOWN_TRIPS`].

mod stored;

use crate::activity::Activities;
use crate::at_once::{AtOnce, find_at_once};
use crate::augment::Augmented;
use crate::minimum_cut::{Graph, INFINITE, SINK, SOURCE};
use crate::request::{Caching, Choices};
use crate::step::needed_by;
use ferrozyme_ir::entity::SecondaryMap;
use ferrozyme_ir::{
    Constant, Effect, Function, MemoryEffect, Module, Op, OpView, Opcode, Payload, Region,
    Structure, Value, ValueDef, all_ops,
};
use ferrozyme_opt::clobbers::Clobbers;
use ferrozyme_opt::cost::operation_cost;
use ferrozyme_opt::indices::{Counted, Indices};
use ferrozyme_opt::symbolic::Symbolic;
use rustc_hash::FxHashMap;

/// What saving one byte costs, in simple operations.
pub(crate) const BYTE_COST: u64 = 8;

/// What it costs to hand a value out of a branch, in simple operations: a register, or a place on the stack.
const HANDING_OUT_COST: u64 = 4;

/// How often a loop is taken to run when nothing is known.
pub(crate) const UNKNOWN_TRIPS: u64 = 64;

/// How the reverse sweep comes by a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Decision {
    /// It does not need it.
    #[default]
    Unneeded,
    /// By repeating the operation.
    Recompute,
    /// By repeating the load on a saved range: index into [`Plan::ranges`].
    FromRange(u32),
    /// By reading it from where the program stored it: see [`Plan::reloads`].
    Stored,
    /// The forward sweep saves it.
    Save,
}

/// Where a value stands that the program stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reload {
    /// Who stored it.
    pub store: Op,
    /// What it has been divided by since.
    pub times: Option<Value>,
}

/// A range of memory that is saved behind a loop nest.
#[derive(Clone, Debug)]
pub(crate) struct RangePlan {
    /// The outermost loop of the nest.
    pub nest: Op,
    /// The pointer that the range is counted from.
    pub root: Value,
    /// Where it starts, in bytes from the root.
    pub start: Symbolic,
    /// How many bytes it has, if every loop of the nest runs at all.
    pub bytes: Symbolic,
    /// If one of these is less than 1, a loop does not run, and nothing was read.
    pub guards: Vec<Symbolic>,
    /// Why the values read there cannot be reloaded.
    pub reason: Option<Reason>,
    /// Whether the plan makes use of it.
    pub used: bool,
}

/// Why a value cannot be recomputed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// Memory it was read from may be overwritten by this operation.
    Overwritten(Op),
    /// Memory it was read from may be overwritten by the caller.
    OverwrittenByCaller,
    /// It was read from a shadow where floats and pointers share their place, which the reverse sweep changes.
    Unsteady,
    /// Memory it was read from is gone when the function has returned.
    Stack,
    /// It is carried from one iteration to the next.
    Carried,
    /// It comes out of a region.
    Region,
    /// It is what a call returned.
    Call,
    /// It is an address that was allocated.
    Allocation,
    /// It could be recomputed, at a higher price.
    Dear,
}

/// The plan for one function.
pub(crate) struct Plan {
    /// How the reverse sweep comes by each value.
    pub decisions: SecondaryMap<Value, Decision>,
    /// Ranges of memory that may be saved.
    pub ranges: Vec<RangePlan>,
    /// For loads that are repeated on a saved range: where they read, in bytes from the root of the range, unless the address
    /// is made of offsets from that root.
    pub range_offsets: FxHashMap<Value, Symbolic>,
    /// Why values that are saved are not recomputed.
    pub reasons: FxHashMap<Value, Reason>,
    /// For values that are read from where the program stored them: where.
    pub reloads: FxHashMap<Value, Reload>,
    /// Whose regions are differentiated at once, so that all values are still there.
    pub at_once: AtOnce,
}

/// What the plan must know of the surroundings of the function.
pub(crate) struct Surroundings<'a> {
    /// For each parameter of the forward sweep: whether the memory behind it may change before the reverse sweep.
    pub overwritten: &'a [bool],
    /// Whether the reverse sweep is another function.
    pub split: bool,
    /// Whether adjoints are added up in the order of a reverse sweep that follows the whole forward sweep.
    pub keep_order: bool,
    /// What the caller chose.
    pub choices: Choices,
}

/// How much dearer what was not chosen is made.
const UNWANTED: u64 = 1 << 16;

/// Makes the plan for a forward sweep.
pub(crate) fn plan(
    module: &Module,
    augmented: &Augmented,
    activities: &Activities,
    surroundings: &Surroundings<'_>,
) -> Plan {
    let function = &augmented.function;
    let clobbers = Clobbers::compute(module, function);
    let indices = clobbers.aliases().indices();
    let at_once = match surroundings.choices.at_once {
        true => find_at_once(clobbers.aliases(), augmented, activities, surroundings),
        false => AtOnce::default(),
    };
    let mut planner = Planner {
        module,
        augmented,
        function,
        surroundings,
        weights: weigh_regions(function, indices),
        clobbers: &clobbers,
        at_once,
        graph: Graph::new(),
        nodes: FxHashMap::default(),
        order: Vec::new(),
        pending: Vec::new(),
        ranges: Vec::new(),
        range_nodes: Vec::new(),
        loads_from_range: FxHashMap::default(),
        stores: stored::stores_of(function),
        reloads: FxHashMap::default(),
        range_offsets: FxHashMap::default(),
        reasons: FxHashMap::default(),
        uses_globals: uses_variable_globals(module, function),
        stack_in_use: all_ops(function)
            .into_iter()
            .any(|op| function.ops[op].opcode == Opcode::Stack),
    };
    for op in all_ops(function) {
        if let Some(step) = augmented.steps.get(&op) {
            for value in needed_by(augmented, activities, op, step) {
                planner.need(value);
            }
        }
    }
    planner.expand();
    planner.conclude()
}

/// The regions of an operation from which control comes back.
pub(crate) fn live_regions(function: &Function, op: Op) -> Vec<Region> {
    function.ops[op]
        .regions
        .iter()
        .copied()
        .filter(|&region| !function.ends_in_trap(region))
        .collect()
}

/// The active operands of an operation, as a set of bits.
pub(crate) fn active_operands(function: &Function, activities: &Activities, op: Op) -> u32 {
    function.ops[op]
        .operands
        .iter()
        .enumerate()
        .filter(|&(_, &operand)| activities.is_active(operand))
        .fold(0, |set, (index, _)| set | 1 << index)
}

/// How often each region is taken to run.
fn weigh_regions(function: &Function, indices: &Indices<'_>) -> SecondaryMap<Region, u64> {
    let mut weights = SecondaryMap::with_default(1);
    let mut pending = vec![(function.body(), 1u64)];
    while let Some((region, weight)) = pending.pop() {
        weights[region] = weight;
        for &op in &function.regions[region].ops {
            let data = &function.ops[op];
            let trips = match data.opcode {
                Opcode::For => indices
                    .counted(op)
                    .and_then(Counted::trip_count)
                    .map_or(UNKNOWN_TRIPS, |count| estimate(indices, &count)),
                Opcode::Loop => UNKNOWN_TRIPS,
                _ => 1,
            };
            for &inner in &data.regions {
                pending.push((inner, weight.saturating_mul(trips)));
            }
        }
    }
    weights
}

/// A guess at the size of an expression, at least 1.
fn estimate(indices: &Indices<'_>, expression: &Symbolic) -> u64 {
    estimate_within(indices, expression, MAX_TRIANGLES).clamp(1, 1 << 30) as u64
}

/// How many loops whose bounds are counters of the next one out are looked through for a guess.
const MAX_TRIANGLES: u32 = 3;

fn estimate_within(indices: &Indices<'_>, expression: &Symbolic, depth: u32) -> i128 {
    let guess = |value: Value| -> i128 {
        // On average a counter is half way, as it is seen from a bound that it is compared with.
        if let Some(counted) = indices.counted_by(value)
            && let Some(count) = counted.trip_count()
            && let Some(inner) = depth.checked_sub(1)
        {
            let first = estimate_within(indices, &counted.from, inner);
            let step = estimate_within(indices, &counted.step, inner);
            let trips = estimate_within(indices, &count, inner).max(1);
            return first.saturating_add(step.saturating_mul(trips / 2));
        }
        let interval = indices.interval_of_value(value);
        match (interval.lower(), interval.upper()) {
            (Some(low), Some(high)) if high - low < 1 << 20 => (low + high + 1) / 2,
            _ => i128::from(UNKNOWN_TRIPS),
        }
    };
    let mut sum = i128::from(expression.constant_part());
    for term in expression.terms() {
        let product = term
            .monomial
            .iter()
            .fold(i128::from(term.coefficient), |product, &value| {
                product.saturating_mul(guess(value))
            });
        sum = sum.saturating_add(product);
    }
    sum
}

struct Planner<'a> {
    module: &'a Module,
    augmented: &'a Augmented,
    function: &'a Function,
    surroundings: &'a Surroundings<'a>,
    weights: SecondaryMap<Region, u64>,
    clobbers: &'a Clobbers<'a>,
    at_once: AtOnce,
    graph: Graph,
    /// The `in` and `out` nodes of each value.
    nodes: FxHashMap<Value, (u32, u32)>,
    /// Values with nodes, in the order in which they got them.
    order: Vec<Value>,
    /// Values whose nodes have no edges yet.
    pending: Vec<Value>,
    ranges: Vec<RangePlan>,
    range_nodes: Vec<(u32, u32)>,
    loads_from_range: FxHashMap<Value, u32>,
    /// Which operations store each value.
    stores: FxHashMap<Value, Vec<Op>>,
    reloads: FxHashMap<Value, Reload>,
    range_offsets: FxHashMap<Value, Symbolic>,
    reasons: FxHashMap<Value, Reason>,
    /// Whether memory of this function's stack is in use.
    stack_in_use: bool,
    /// Whether pointers may come from globals that can change.
    uses_globals: bool,
}

/// How a value could be computed once more.
enum Recipe {
    /// From these values, at this cost.
    From(Vec<Value>, u64),
    /// From a saved range and these values.
    FromRange(u32, Vec<Value>),
    /// From where the program stored it, which these values lead to.
    Stored(Reload, Vec<Value>),
    /// Not at all.
    Never(Reason),
}

impl<'a> Planner<'a> {
    fn indices(&self) -> &'a Indices<'a> {
        self.clobbers.aliases().indices()
    }

    fn structure(&self) -> &'a Structure {
        self.indices().structure()
    }

    /// Whether a value is at hand everywhere in the reverse sweep.
    fn is_free(&self, value: Value) -> bool {
        match self.function.values[value].def {
            ValueDef::Constant(_) => true,
            ValueDef::Argument { region, .. } => region == self.function.body(),
            ValueDef::Result { .. } => false,
        }
    }

    fn need(&mut self, value: Value) {
        if self.is_free(value) {
            return;
        }
        let (_, out) = self.node(value);
        self.graph.edge(out, SINK, INFINITE);
    }

    fn node(&mut self, value: Value) -> (u32, u32) {
        if let Some(&nodes) = self.nodes.get(&value) {
            return nodes;
        }
        let nodes = (self.graph.node(), self.graph.node());
        self.nodes.insert(value, nodes);
        self.order.push(value);
        self.pending.push(value);
        nodes
    }

    fn region_of(&self, value: Value) -> Region {
        self.structure()
            .region_of_value(self.function, value)
            .expect("only values with a place are asked about")
    }

    /// Gives all nodes their edges, and those that they depend on.
    fn expand(&mut self) {
        while let Some(value) = self.pending.pop() {
            let (enter, out) = self.nodes[&value];
            let region = self.region_of(value);
            self.graph.edge(enter, out, self.saving_cost(value, region));
            let weight = self.weights[region];
            let mut recipe = self.recipe(value);
            if let Some(better) = self.recipe_from_store(value, &recipe) {
                recipe = better;
            }
            match recipe {
                Recipe::Stored(reload, operands) => {
                    let cost = self.recomputing(weight.saturating_mul(2));
                    self.graph.edge(SOURCE, enter, cost);
                    self.reloads.insert(value, reload);
                    self.depend(enter, &operands);
                }
                Recipe::From(operands, cost) => {
                    let cost = self.recomputing(cost.saturating_mul(weight));
                    self.graph.edge(SOURCE, enter, cost);
                    self.depend(enter, &operands);
                }
                Recipe::FromRange(range, operands) => {
                    let cost = self.recomputing(weight.saturating_mul(2));
                    self.graph.edge(SOURCE, enter, cost);
                    let (_, saved) = self.range_nodes[range as usize];
                    self.graph.edge(saved, enter, INFINITE);
                    self.loads_from_range.insert(value, range);
                    self.depend(enter, &operands);
                }
                Recipe::Never(reason) => {
                    self.reasons.insert(value, reason);
                    self.graph.edge(SOURCE, enter, INFINITE);
                }
            }
        }
    }

    fn depend(&mut self, enter: u32, operands: &[Value]) {
        for &operand in operands {
            if !self.is_free(operand) {
                let (_, out) = self.node(operand);
                self.graph.edge(out, enter, INFINITE);
            }
        }
    }

    /// What it costs to save something, by what the caller chose.
    fn saving(&self, cost: u64) -> u64 {
        let factor = match self.surroundings.choices.caching {
            Caching::Recompute => UNWANTED,
            Caching::Planned | Caching::Save => 1,
        };
        cost.saturating_mul(factor).min(INFINITE / 8)
    }

    /// What it costs to compute something again, by what the caller chose.
    fn recomputing(&self, cost: u64) -> u64 {
        let factor = match self.surroundings.choices.caching {
            Caching::Save => UNWANTED,
            Caching::Planned | Caching::Recompute => 1,
        };
        cost.saturating_mul(factor).min(INFINITE / 8)
    }

    /// What it costs to save a value in all iterations of the loops around it.
    fn saving_cost(&self, value: Value, region: Region) -> u64 {
        let holder = self.structure().op_of(region);
        if self.at_once.is_complete(holder, !self.surroundings.split) {
            // It is still there when the reverse sweep of the region begins.
            return 0;
        }
        if self.is_branch_of_complete(region) {
            return self.saving(HANDING_OUT_COST.saturating_mul(self.weights[region]));
        }
        let bytes = self.function.ty(value).bytes();
        let cost = bytes.saturating_mul(BYTE_COST);
        self.saving(cost.saturating_mul(self.weights[region]))
    }

    /// Whether nothing but branches stands between a region and one whose reverse sweep follows its forward sweep.
    fn is_branch_of_complete(&self, region: Region) -> bool {
        let mut region = region;
        while let Some(holder) = self.structure().op_of(region) {
            if !matches!(
                self.function.ops[holder].opcode,
                Opcode::If | Opcode::Switch
            ) {
                return false;
            }
            let Some(around) = self.structure().region_of(holder) else {
                return false;
            };
            let around_holder = self.structure().op_of(around);
            if self
                .at_once
                .is_complete(around_holder, !self.surroundings.split)
            {
                return true;
            }
            region = around;
        }
        false
    }

    fn recipe(&mut self, value: Value) -> Recipe {
        let (op, _) = match self.function.values[value].def {
            ValueDef::Result { op, index } => (op, index),
            ValueDef::Argument { region, index } => {
                return self.recipe_of_argument(region, index, value);
            }
            ValueDef::Constant(_) => return Recipe::From(Vec::new(), 0),
        };
        let data = &self.function.ops[op];
        match data.opcode.effect() {
            Effect::Pure | Effect::Partial => {
                Recipe::From(data.operands.to_vec(), operation_cost(data.opcode))
            }
            Effect::Read => self.recipe_of_load(op),
            Effect::Call => self.recipe_of_call(op),
            Effect::Allocate => Recipe::Never(Reason::Allocation),
            Effect::Regions => Recipe::Never(Reason::Region),
            Effect::Write | Effect::Release | Effect::Ends => Recipe::Never(Reason::Call),
        }
    }

    fn recipe_of_argument(&self, region: Region, index: u32, value: Value) -> Recipe {
        let Some(holder) = self.structure().op_of(region) else {
            return Recipe::From(Vec::new(), 0);
        };
        let data = &self.function.ops[holder];
        if !self.augmented.steps.contains_key(&holder) {
            // The reverse sweep does not run through this loop at all.
            return Recipe::Never(Reason::Carried);
        }
        let counts = match data.opcode {
            Opcode::For => index == 0,
            _ => self
                .augmented
                .trips
                .get(&holder)
                .is_some_and(|trips| trips.number == value),
        };
        match (counts, data.opcode) {
            (true, Opcode::For) => Recipe::From(vec![data.from(), data.step()], 0),
            (true, _) => Recipe::From(Vec::new(), 0),
            (false, _) => Recipe::Never(Reason::Carried),
        }
    }

    /// A call of a function that does nothing but compute may be repeated.
    fn recipe_of_call(&self, op: Op) -> Recipe {
        let data = &self.function.ops[op];
        if let (Opcode::Call, Payload::Callee(callee)) = (data.opcode, &data.payload) {
            let facts = &self.module.functions[*callee].facts;
            if facts.memory == MemoryEffect::None
                && facts.willreturn
                && !self.augmented.steps.contains_key(&op)
            {
                return Recipe::From(data.operands.to_vec(), 60);
            }
        }
        Recipe::Never(Reason::Call)
    }

    fn recipe_of_load(&mut self, op: Op) -> Recipe {
        let address = self.function.ops[op].address();
        if self.augmented.unsteady.contains(op) {
            return Recipe::Never(Reason::Unsteady);
        }
        let Some(reason) = self.why_not_reload(op, address) else {
            return Recipe::From(vec![address], 1);
        };
        match self.range_for(op, reason) {
            Some(range) => Recipe::FromRange(range, self.way_into_range(op, address, range)),
            None => Recipe::Never(reason),
        }
    }

    /// The values that say where a load reads in a saved range.
    fn way_into_range(&mut self, op: Op, address: Value, range: u32) -> Vec<Value> {
        let chain = offset_chain(self.function, address);
        if chain.root == self.ranges[range as usize].root {
            return chain.indices();
        }
        // The alias analysis sees further, for instance through pointers that a loop counts up.
        let offset = self.clobbers.aliases().pointers().offset(address);
        let variables = offset.variables().collect();
        self.range_offsets.insert(self.function.result(op), offset);
        variables
    }

    fn why_not_reload(&self, op: Op, address: Value) -> Option<Reason> {
        if let Some(clobber) = self.clobbers.clobber_of(op) {
            // What is differentiated at once does not see what comes later.
            let stands = self
                .innermost_loop_at_once(op)
                .is_some_and(|around| !self.clobbers.clobbered_in_iteration(op, around));
            if !stands {
                return Some(Reason::Overwritten(clobber));
            }
        }
        self.why_memory_changes(address)
    }

    /// Why memory behind a pointer may not be as it was when the reverse sweep runs, whatever this function does.
    fn why_memory_changes(&self, address: Value) -> Option<Reason> {
        let mut root = offset_chain(self.function, address).root;
        while let Some(OpView::Exclusive { pointer, .. }) = self.function.definition(root) {
            root = offset_chain(self.function, pointer).root;
        }
        let any_overwritten = self.surroundings.overwritten.iter().any(|&flag| flag);
        match &self.function.values[root].def {
            ValueDef::Argument { region, index } if *region == self.function.body() => self
                .surroundings
                .overwritten
                .get(*index as usize)
                .copied()
                .unwrap_or(false)
                .then_some(Reason::OverwrittenByCaller),
            ValueDef::Constant(Constant::Global(global)) => {
                let constant = self.module.globals[*global].constant;
                (!constant && self.surroundings.split).then_some(Reason::OverwrittenByCaller)
            }
            ValueDef::Constant(_) => None,
            ValueDef::Result { op: made, .. } => match self.function.ops[*made].opcode {
                Opcode::Stack => self.surroundings.split.then_some(Reason::Stack),
                Opcode::Alloc if !self.may_leave(root) => None,
                _ => self.why_not_reload_anything(any_overwritten),
            },
            ValueDef::Argument { .. } => self.why_not_reload_anything(any_overwritten),
        }
    }

    /// The innermost loop around an operation that is differentiated at once.
    fn innermost_loop_at_once(&self, op: Op) -> Option<Op> {
        let loops = self.indices().loops_around(op);
        let mut inside_out = loops.iter().rev();
        inside_out
            .find(|around| self.at_once.ops.contains(around))
            .copied()
    }

    /// Whether the caller may get to know memory that was made here, and so overwrite it.
    fn may_leave(&self, made: Value) -> bool {
        let returns_pointers = self.function.results.iter().any(|ty| ty.is_ptr());
        self.surroundings.split
            && (returns_pointers || self.clobbers.aliases().pointers().is_escaped(made))
    }

    /// For a pointer that may lead anywhere.
    fn why_not_reload_anything(&self, any_overwritten: bool) -> Option<Reason> {
        let returns_pointers = self.function.results.iter().any(|ty| ty.is_ptr());
        if !self.surroundings.split {
            return any_overwritten.then_some(Reason::OverwrittenByCaller);
        }
        if any_overwritten || returns_pointers || self.uses_globals {
            Some(Reason::OverwrittenByCaller)
        } else {
            self.stack_in_use.then_some(Reason::Stack)
        }
    }

    /// The cheapest range that covers what a load reads in a loop nest, if there is one.
    fn range_for(&mut self, op: Op, reason: Reason) -> Option<u32> {
        let loops = self.indices().loops_around(op);
        let aliases = self.clobbers.aliases();
        let reads = aliases.reads(op);
        let access = reads.accesses.first()?;
        if !self.indices().can_emit(&access.offset) {
            return None;
        }
        let mut best: Option<(u64, RangePlan)> = None;
        for &nest in &loops {
            // Behind a loop that is differentiated at once it is too late.
            if self.at_once.ops.contains(&nest) || self.clobbers.clobbered_in_loop(op, nest) {
                continue;
            }
            let Some(hull) = aliases.hull(access, op, nest) else {
                continue;
            };
            let outside = self
                .structure()
                .region_of(nest)
                .expect("a loop stands in a region");
            let cost = estimate(self.indices(), &hull.bytes)
                .saturating_mul(BYTE_COST)
                .saturating_mul(self.weights[outside]);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                let range = RangePlan {
                    nest,
                    root: hull.root,
                    start: hull.min,
                    bytes: hull.bytes,
                    guards: hull.guards,
                    reason: Some(reason),
                    used: false,
                };
                best = Some((cost, range));
            }
        }
        let (cost, range) = best?;
        Some(self.add_range(cost, range))
    }

    /// A range like this, or one that covers it and differs by constants.
    fn add_range(&mut self, cost: u64, range: RangePlan) -> u32 {
        for (index, existing) in self.ranges.iter_mut().enumerate() {
            if existing.nest != range.nest
                || existing.root != range.root
                || existing.guards != range.guards
            {
                continue;
            }
            let start = range
                .start
                .sub(&existing.start)
                .and_then(|d| d.is_constant());
            let growth = range
                .bytes
                .sub(&existing.bytes)
                .and_then(|d| d.is_constant());
            let (Some(start), Some(growth)) = (start, growth) else {
                continue;
            };
            // Both in bytes from the existing start: [0, b) and [start, start + b + growth).
            let before = start.min(0);
            let behind = (start + growth).max(0);
            let grown = existing
                .start
                .plus(before)
                .zip(existing.bytes.plus(behind - before));
            if let Some((start, bytes)) = grown {
                existing.start = start;
                existing.bytes = bytes;
                return index as u32;
            }
        }
        let nodes = (self.graph.node(), self.graph.node());
        self.graph.edge(SOURCE, nodes.0, INFINITE);
        let cost = self.saving(cost);
        self.graph.edge(nodes.0, nodes.1, cost);
        self.ranges.push(range);
        self.range_nodes.push(nodes);
        self.ranges.len() as u32 - 1
    }

    fn conclude(self) -> Plan {
        let side = self.graph.cut();
        let on_source_side = |node: u32| side[node as usize];
        let mut plan = Plan {
            decisions: SecondaryMap::new(),
            ranges: self.ranges,
            range_offsets: self.range_offsets,
            reasons: self.reasons,
            reloads: self.reloads.clone(),
            at_once: self.at_once,
        };
        for &value in &self.order {
            let (enter, out) = self.nodes[&value];
            plan.decisions[value] = match (on_source_side(enter), on_source_side(out)) {
                (_, true) => Decision::Unneeded,
                (true, false) => Decision::Save,
                (false, false) => match self.loads_from_range.get(&value) {
                    Some(&range) => {
                        plan.ranges[range as usize].used = true;
                        Decision::FromRange(range)
                    }
                    None if self.reloads.contains_key(&value) => Decision::Stored,
                    None => Decision::Recompute,
                },
            };
            if plan.decisions[value] == Decision::Save {
                plan.reasons.entry(value).or_insert(Reason::Dear);
            }
        }
        plan
    }
}

/// Whether a function names globals that are not constant.
pub(crate) fn uses_variable_globals(module: &Module, function: &Function) -> bool {
    function.values.keys().any(|value| {
        matches!(function.constant_of(value), Some(Constant::Global(global))
            if !module.globals[*global].constant)
    })
}

/// A pointer as a root and the offsets added to it, the first first.
pub(crate) struct OffsetChain {
    /// A pointer that is not an `offset`.
    pub root: Value,
    /// Index and scale of each offset.
    pub offsets: Vec<(Value, i64)>,
}

impl OffsetChain {
    pub(crate) fn indices(&self) -> Vec<Value> {
        self.offsets.iter().map(|(index, _)| *index).collect()
    }
}

/// Takes a pointer apart.
pub(crate) fn offset_chain(function: &Function, pointer: Value) -> OffsetChain {
    let mut chain = OffsetChain {
        root: pointer,
        offsets: Vec::new(),
    };
    while let Some(OpView::Offset { base, index, scale }) = function.definition(chain.root) {
        chain.offsets.push((index, scale));
        chain.root = base;
    }
    chain.offsets.reverse();
    chain
}
