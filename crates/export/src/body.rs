//! The body of a function: regions become blocks.
//!
//! ```text
//! %r = for %i: i64 = %from to %to step 1 with (%a: f64 = %a0) { … yield %a1 }
//! ```
//! becomes a rotated loop behind a guard, the form that LLVM's loop passes like best:
//! ```text
//!   br (icmp slt %from, %to), body, after
//! body:                                             ; preds: before, body's end
//!   %i = phi [%from], [%next]      %a = phi [%a0], [%a1]
//!   …
//!   %next = add nsw %i, 1          br (icmp slt %next, %to), body, after
//! after:
//!   %r = phi [%a0], [%a1]
//! ```
//! With a step of ±1 the counter cannot overflow before the comparison. With any other, it could, so a second counter counts the iterations.

use ferrozyme_ir::{self as ir, Constant, OpView, Opcode, ValueDef};
use rustc_hash::{FxHashMap, FxHashSet};

use super::cleanup::OpenCleanup;
use super::independent::independent_loops;
use super::innermost::innermost_loops;
use super::processor::has_wide_vectors;
use super::sums::{Sums, find_sums};
use super::{ExportError, Exporter};
use ferrozyme_convention::signature::{llvm_type, put_together, take_apart};
use ferrozyme_llvm::{
    Block, Builder, FastMath, IntPredicate, Metadata, Opcode as Llvm, Type, Value,
};

/// A function while it is being exported.
pub(super) struct Body<'e, 'm, 'c> {
    pub(super) exporter: &'e mut Exporter<'m, 'c>,
    pub(super) code: &'m ir::Function,
    pub(super) function: Value<'c>,
    values: FxHashMap<ir::Value, Value<'c>>,
    /// Where stack memory of a fixed size is made: a block of its own before everything else.
    pub(super) entry: Block<'c>,
    /// How many loops are around the current operation.
    pub(super) loops: u32,
    /// Where control goes when memory runs out; made when first needed.
    pub(super) out_of_memory: Option<Block<'c>>,
    /// Which additions may be reordered.
    sums: Sums,
    /// The loops that may be vectorised.
    innermost: FxHashSet<ir::Op>,
    /// Whether the current operation is in one of them.
    pub(super) in_innermost: bool,
    /// Whether the function is compiled for vectors of 32 bytes or more.
    pub(super) is_wide: bool,
    /// The loops whose iterations do not touch what others write.
    independent: FxHashSet<ir::Op>,
    /// In one of those: what its accesses to memory are marked with.
    pub(super) access_group: Option<Metadata<'c>>,
    /// What is to be done if the operation in hand unwinds, the innermost last.
    pub(super) cleanups: Vec<OpenCleanup<'c>>,
    /// How many of them were opened outside the current region.
    pub(super) outer_cleanups: usize,
    /// The operation in hand, for errors.
    current: Option<ir::Op>,
}

/// How a region ended: with these values, or not at all.
type Ended<'c> = Option<Vec<Value<'c>>>;

/// Defines a function that is declared in the LLVM module.
pub(super) fn define<'c>(
    exporter: &mut Exporter<'_, 'c>,
    id: ir::FunctionId,
) -> Result<(), ExportError> {
    let function = exporter.function(id)?;
    let code = &exporter.module.functions[id];
    let Some(region) = code.body else {
        return Ok(());
    };
    if !function.is_function() || !function.is_declaration() {
        let problem =
            "LLVM's module defines a function of this name already (a bug in Ferrozyme)".to_owned();
        return Err(ExportError {
            function: code.name.clone(),
            place: None,
            problem,
        });
    }
    exporter.describe(function, code);
    let entry = exporter.context.append_block(function, "entry");
    let start = exporter.context.append_block(function, "start");
    exporter.builder.at_end(start);
    let is_wide = has_wide_vectors(function);
    let (sums, innermost) = if exporter.options.strict {
        (Sums::default(), FxHashSet::default())
    } else {
        (find_sums(code), innermost_loops(code, is_wide))
    };
    let independent = independent_loops(exporter.module, code);
    let mut body = Body {
        exporter,
        code,
        function,
        values: FxHashMap::default(),
        entry,
        loops: 0,
        out_of_memory: None,
        sums,
        innermost,
        in_innermost: false,
        is_wide,
        independent,
        access_group: None,
        cleanups: Vec::new(),
        outer_cleanups: 0,
        current: None,
    };
    let leaves: Vec<Value<'c>> = function
        .parameters()
        .into_iter()
        .flat_map(|parameter| take_apart(&body.exporter.builder, parameter))
        .collect();
    for (&argument, value) in code.regions[region].args.iter().zip(leaves) {
        body.set(argument, value);
    }
    if let Some(results) = body.region(region)? {
        let of = function.value_type().result();
        if of.is_void() {
            body.exporter.builder.return_nothing();
        } else {
            let whole = put_together(&body.exporter.builder, of, &mut results.into_iter())
                .ok_or_else(|| body.problem("the results do not fit LLVM's type"))?;
            body.exporter.builder.return_value(whole);
        }
    }
    body.exporter.builder.at_end(entry);
    body.exporter.builder.branch(start);
    Ok(())
}

impl<'c> Body<'_, '_, 'c> {
    /// An error at the operation in hand.
    pub(super) fn problem(&self, problem: impl Into<String>) -> ExportError {
        let module = self.exporter.module;
        let place = self
            .current
            .and_then(|op| self.code.ops[op].location)
            .map(|location| module.describe_location(location));
        ExportError {
            function: self.code.name.clone(),
            place,
            problem: problem.into(),
        }
    }

    /// LLVM's type for one of the Loop IR.
    pub(super) fn llvm_type(&self, of: ir::Type) -> Type<'c> {
        llvm_type(self.exporter.context, of)
    }

    /// The type of a Loop IR value.
    pub(super) fn type_of(&self, value: ir::Value) -> ir::Type {
        self.code.ty(value)
    }

    /// Says what LLVM value stands for one of the Loop IR.
    pub(super) fn set(&mut self, value: ir::Value, llvm: Value<'c>) {
        if let Some(name) = &self.code.values[value].name
            && !llvm.is_constant()
            && llvm.name().is_empty()
        {
            llvm.set_name(name);
        }
        self.values.insert(value, llvm);
    }

    /// The LLVM value for one of the Loop IR.
    pub(super) fn get(&mut self, value: ir::Value) -> Result<Value<'c>, ExportError> {
        if let Some(&known) = self.values.get(&value) {
            return Ok(known);
        }
        let data = &self.code.values[value];
        let ValueDef::Constant(constant) = &data.def else {
            return Err(self.problem(format!(
                "the value {value} is used before it is computed (a bug in Ferrozyme)"
            )));
        };
        let of = self.llvm_type(data.ty);
        let built = match constant {
            Constant::Bits(raw) => self.scalar_constant(data.ty, *raw, of),
            Constant::Lanes(lanes) => {
                let lane = self.llvm_type(data.ty.lane_type());
                let lanes: Vec<Value<'c>> = lanes
                    .iter()
                    .map(|raw| self.scalar_constant(data.ty.lane_type(), *raw, lane))
                    .collect();
                self.exporter.context.vector_constant(&lanes)
            }
            Constant::Undef => of.poison(),
            Constant::Global(global) => {
                let global = self.exporter.global(*global)?;
                if global.is_thread_local() {
                    // Each thread has its own address, which is computed where it is used.
                    let intrinsic = self.intrinsic("llvm.threadlocal.address", &[of])?;
                    return Ok(self.exporter.builder.call_function(intrinsic, &[global]));
                }
                global
            }
            Constant::Function(function) => self.exporter.function(*function)?,
        };
        self.values.insert(value, built);
        Ok(built)
    }

    fn scalar_constant(&self, ty: ir::Type, raw: u128, of: Type<'c>) -> Value<'c> {
        if ty.is_vector() {
            let lane = self.scalar_constant(ty.lane_type(), raw, of.element());
            return self
                .exporter
                .context
                .vector_constant(&vec![lane; usize::from(ty.lanes())]);
        }
        match ty.scalar() {
            ir::Scalar::Int(_) => of.constant(raw as i128),
            ir::Scalar::Ptr if raw == 0 => of.zero(),
            ir::Scalar::Ptr => self
                .exporter
                .context
                .integer(64)
                .constant(raw as i128)
                .constant_to_pointer(of),
            _ => of.float_from_bits(raw as u64),
        }
    }

    /// The LLVM values of several.
    pub(super) fn get_all(&mut self, values: &[ir::Value]) -> Result<Vec<Value<'c>>, ExportError> {
        values.iter().map(|value| self.get(*value)).collect()
    }

    /// The declaration of an intrinsic.
    pub(super) fn intrinsic(
        &self,
        name: &str,
        types: &[Type<'c>],
    ) -> Result<Value<'c>, ExportError> {
        self.exporter
            .into
            .intrinsic(name, types)
            .ok_or_else(|| self.problem(format!("this LLVM has no intrinsic {name}")))
    }

    /// The fast-math flags of the operation in hand, in LLVM's numbering.
    pub(super) fn fast_math(&self, flags: ir::Flags) -> FastMath {
        let mut flags = flags.union(self.exporter.options.relaxed);
        if let Some(op) = self.current {
            if self.sums.may_reorder(op) {
                flags = flags.union(ir::Flags::REASSOC);
            }
            if self.sums.may_contract(op) {
                flags = flags.union(ir::Flags::CONTRACT);
            }
        }
        let pairs = [
            (ir::Flags::NNAN, FastMath::NO_NAN),
            (ir::Flags::NINF, FastMath::NO_INFINITY),
            (ir::Flags::NSZ, FastMath::NO_SIGNED_ZERO),
            (ir::Flags::ARCP, FastMath::RECIPROCAL),
            (ir::Flags::CONTRACT, FastMath::CONTRACT),
            (ir::Flags::AFN, FastMath::APPROXIMATE),
            (ir::Flags::REASSOC, FastMath::REASSOCIATE),
        ];
        pairs
            .iter()
            .filter(|(ours, _)| flags.contains(*ours))
            .fold(FastMath::default(), |all, (_, theirs)| all.with(*theirs))
    }

    pub(super) fn new_block(&self, name: &str) -> Block<'c> {
        self.exporter.context.append_block(self.function, name)
    }

    /// Exports the operations of a region at the builder's place. What it ends with, if it ends.
    fn region(&mut self, region: ir::Region) -> Result<Ended<'c>, ExportError> {
        let outer = std::mem::replace(&mut self.outer_cleanups, self.cleanups.len());
        let ended = self.operations(region);
        self.cleanups.truncate(self.outer_cleanups);
        self.outer_cleanups = outer;
        ended
    }

    fn operations(&mut self, region: ir::Region) -> Result<Ended<'c>, ExportError> {
        let code = self.code;
        for &op in &code.regions[region].ops {
            self.current = Some(op);
            let data = &code.ops[op];
            match data.opcode {
                Opcode::Yield | Opcode::Again | Opcode::Return => {
                    return Ok(Some(self.get_all(&data.operands)?));
                }
                Opcode::Trap => {
                    self.trap(data)?;
                    return Ok(None);
                }
                Opcode::If => self.branch(data)?,
                Opcode::Switch => self.switch(data)?,
                Opcode::For => self.counted_loop(op, data)?,
                Opcode::Loop => self.general_loop(data)?,
                _ => self.operation(op, data)?,
            }
        }
        Err(self.problem("a region has no end (a bug in Ferrozyme)"))
    }

    fn branch(&mut self, data: &ir::OpData) -> Result<(), ExportError> {
        let condition = self.get(data.condition())?;
        let blocks = [self.new_block("then"), self.new_block("else")];
        self.exporter
            .builder
            .branch_if(condition, blocks[0], blocks[1]);
        self.arms(data, &blocks)
    }

    fn switch(&mut self, data: &ir::OpData) -> Result<(), ExportError> {
        let OpView::Switch { selector, cases } = data.view() else {
            return Err(self.problem("a switch has no cases (a bug in Ferrozyme)"));
        };
        let on = self.get(selector)?;
        let blocks: Vec<Block<'c>> = data
            .regions
            .iter()
            .map(|_| self.new_block("case"))
            .collect();
        let of = on.ty();
        let pairs: Vec<_> = cases
            .iter()
            .zip(&blocks)
            .flat_map(|(values, block)| {
                values
                    .iter()
                    .map(move |value| (of.constant(*value), *block))
            })
            .collect();
        self.exporter
            .builder
            .switch(on, blocks[blocks.len() - 1], &pairs);
        self.arms(data, &blocks)
    }

    /// The regions of an `if` or `switch`, and the block where those meet that end.
    fn arms(&mut self, data: &ir::OpData, blocks: &[Block<'c>]) -> Result<(), ExportError> {
        let mut ends = Vec::new();
        for (&region, &block) in data.regions.iter().zip(blocks) {
            self.exporter.builder.at_end(block);
            if let Some(values) = self.region(region)? {
                ends.push((self.exporter.builder.block(), values));
            }
        }
        let after = self.new_block("after");
        for (end, _) in &ends {
            self.exporter.builder.at_end(*end);
            self.exporter.builder.branch(after);
        }
        self.exporter.builder.at_end(after);
        self.join(&data.results, &ends);
        Ok(())
    }

    /// Makes the results of an operation from the values that come from each of the blocks before.
    fn join(&mut self, results: &[ir::Value], ends: &[(Block<'c>, Vec<Value<'c>>)]) {
        for (index, &result) in results.iter().enumerate() {
            let of = self.llvm_type(self.type_of(result));
            let value = match ends {
                [] => of.poison(),
                [(_, values)] => values[index],
                [(_, first), rest @ ..]
                    if rest.iter().all(|(_, values)| values[index] == first[index]) =>
                {
                    first[index]
                }
                several => {
                    let phi = self.exporter.builder.phi(of);
                    for (block, values) in several {
                        phi.add_incoming(values[index], *block);
                    }
                    phi
                }
            };
            self.set(result, value);
        }
    }

    /// Phis for values that a loop carries.
    fn carried(
        &mut self,
        arguments: &[ir::Value],
        initial: &[Value<'c>],
        from: Block<'c>,
    ) -> Vec<Value<'c>> {
        let mut phis = Vec::new();
        for (&argument, &start) in arguments.iter().zip(initial) {
            let phi = self.exporter.builder.phi(start.ty());
            phi.add_incoming(start, from);
            self.set(argument, phi);
            phis.push(phi);
        }
        phis
    }

    fn general_loop(&mut self, data: &ir::OpData) -> Result<(), ExportError> {
        let initial = self.get_all(&data.operands)?;
        let region = data.regions[0];
        let before = self.exporter.builder.block();
        let block = self.new_block("loop");
        self.exporter.builder.branch(block);
        self.exporter.builder.at_end(block);
        let phis = self.carried(&self.code.regions[region].args, &initial, before);
        self.loops += 1;
        let ended = self.region(region)?;
        self.loops -= 1;
        let mut ends = Vec::new();
        let after = self.new_block("after");
        if let Some(values) = ended {
            let end = self.exporter.builder.block();
            let (condition, next) = (values[0], &values[1..]);
            self.exporter.builder.branch_if(condition, block, after);
            for (phi, value) in phis.iter().zip(next) {
                phi.add_incoming(*value, end);
            }
            ends.push((end, next.to_vec()));
        }
        self.exporter.builder.at_end(after);
        self.join(&data.results, &ends);
        Ok(())
    }

    fn counted_loop(&mut self, op: ir::Op, data: &ir::OpData) -> Result<(), ExportError> {
        let [from, to, step] = data.bounds();
        let constant_step = self.code.int_of(step);
        let starts_non_negative = self.code.int_of(from).is_some_and(|value| value >= 0)
            || self.code.values[from]
                .range
                .is_some_and(|range| range.min >= 0);
        let initial = self.get_all(data.initial())?;
        let (from, to, step) = (self.get(from)?, self.get(to)?, self.get(step)?);
        let region = data.regions[0];
        let counted = match constant_step {
            Some(1) => Counted::Up,
            Some(-1) => Counted::Down,
            _ => Counted::Trips,
        };
        // The guard: does it run at all?
        let builder = &self.exporter.builder;
        let upwards = match constant_step {
            Some(value) => self.exporter.context.boolean(value > 0),
            None => builder.compare_integers(IntPredicate::Sgt, step, step.ty().zero()),
        };
        let below = builder.compare_integers(IntPredicate::Slt, from, to);
        let runs = match constant_step {
            Some(value) if value > 0 => below,
            Some(_) => builder.compare_integers(IntPredicate::Sgt, from, to),
            None => builder.select(
                upwards,
                below,
                builder.compare_integers(IntPredicate::Sgt, from, to),
            ),
        };
        let guard = builder.block();
        let mut before = guard;
        let mut last = None;
        let body = if counted == Counted::Trips {
            // Behind the guard the distance is positive, read as unsigned, so nothing here overflows.
            let (count, body) = (self.new_block("count"), self.new_block("body"));
            let builder = &self.exporter.builder;
            builder.at_end(count);
            last = Some(last_trip(builder, upwards, (from, to, step)));
            builder.branch(body);
            before = count;
            body
        } else {
            self.new_block("body")
        };
        let entry = if before == guard { body } else { before };
        self.exporter.builder.at_end(body);
        let arguments = &self.code.regions[region].args;
        let counter = self.exporter.builder.phi(from.ty());
        counter.add_incoming(from, before);
        let trip = last.map(|_| {
            let phi = self.exporter.builder.phi(from.ty());
            phi.add_incoming(from.ty().zero(), before);
            phi
        });
        let phis = self.carried(&arguments[1..], &initial, before);
        self.set(arguments[0], counter);
        self.loops += 1;
        self.in_innermost = self.innermost.contains(&op);
        if self.independent.contains(&op) {
            self.access_group = self.exporter.context.access_group();
        }
        let ended = self.region(region)?;
        self.in_innermost = false;
        let access_group = self.access_group.take();
        self.loops -= 1;
        let after = self.new_block("after");
        let mut ends = vec![(guard, initial)];
        if let Some(values) = ended {
            let builder = &self.exporter.builder;
            let end = builder.block();
            let next = builder.binary(Llvm::Add, counter, step);
            let again = match (counted, trip, last) {
                (Counted::Trips, Some(trip), Some(last)) => {
                    // Below 2⁶³ plus a positive step of less than 2⁶³ stays below 2⁶⁴.
                    next.set_no_unsigned_wrap(
                        starts_non_negative && constant_step.is_some_and(|value| value > 0),
                    );
                    let one = step.ty().constant(1);
                    let next_trip = builder.binary(Llvm::Add, trip, one);
                    trip.add_incoming(next_trip, end);
                    builder.compare_integers(IntPredicate::Ne, trip, last)
                }
                (Counted::Down, ..) => {
                    next.set_no_signed_wrap(true);
                    builder.compare_integers(IntPredicate::Sgt, next, to)
                }
                _ => {
                    next.set_no_signed_wrap(true)
                        .set_no_unsigned_wrap(starts_non_negative);
                    builder.compare_integers(IntPredicate::Slt, next, to)
                }
            };
            let back = builder.branch_if(again, body, after);
            let carried = &arguments[1..];
            let vectors = carried
                .iter()
                .filter(|&&value| self.type_of(value).is_vector());
            let is_tile = vectors.count() >= TILE;
            if is_tile {
                back.set_metadata("llvm.loop", Metadata::rolled_loop(self.exporter.context));
            } else if let Some(group) = access_group {
                back.set_metadata("llvm.loop", Metadata::parallel_loop(group));
            }
            counter.add_incoming(next, end);
            for (phi, value) in phis.iter().zip(&values) {
                phi.add_incoming(*value, end);
            }
            ends.push((end, values));
        }
        self.exporter.builder.at_end(guard);
        self.exporter.builder.branch_if(runs, entry, after);
        self.exporter.builder.at_end(after);
        self.join(&data.results, &ends);
        Ok(())
    }
}

/// A loop that carries this many vectors keeps a tile in registers. It has work enough in one iteration; with two, LLVM loads operands of the second ahead, and has no
/// register left for an accumulator.
const TILE: usize = 8;

/// How a counted loop is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// By its own counter, by one.
    Up,
    /// By its own counter, by minus one.
    Down,
    /// By a counter of iterations besides.
    Trips,
}

/// The number of a counted loop's last iteration, from 0 on.
fn last_trip<'c>(
    builder: &Builder<'c>,
    upwards: Value<'c>,
    (from, to, step): (Value<'c>, Value<'c>, Value<'c>),
) -> Value<'c> {
    let distance = builder.select(
        upwards,
        builder.binary(Llvm::Sub, to, from),
        builder.binary(Llvm::Sub, from, to),
    );
    let size = builder.select(upwards, step, builder.negate(step));
    let before = builder.binary(Llvm::Sub, distance, step.ty().constant(1));
    builder.binary(Llvm::UDiv, before.set_no_unsigned_wrap(true), size)
}
