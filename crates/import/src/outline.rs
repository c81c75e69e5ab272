//! Outlines cold code before import: code that cannot return.
//!
//! Blocks from which no `ret` can be reached (panics, landing pads, cleanups, `resume`) become functions that do not return, with
//! the values that they use as parameters. The importer then sees calls that do not return, and unwinding and drops stay LLVM IR:
//!
//! ```text
//!   br i1 %bad, label %panic, label %good            br i1 %bad, label %cold, label %good
//! panic:                                     ⇒     cold:
//!   invoke void @panic_bounds_check(…)               call void @f.cold.0(ptr %vector, i64 %length) noreturn
//!     to label %never unwind label %cleanup          unreachable
//! cleanup: …drop %vector… resume
//! ```
//!
//! An `invoke` that may return stays, with its landing pad. The code there is copied into a function ([`cleanup_of`])
//! during import, so that it can also run when the callee's derivative unwinds.

use std::collections::{HashMap, HashSet};

use crate::catches::{catch_where_terminated, terminate_at_handlers};
use ferrozyme_convention::cleanup::CLEANUP;
use ferrozyme_llvm::{Block, Builder, Context, Linkage, Module, Opcode, Place, Value, ValueKind};

/// Moves the cold code of all functions of a module into functions of their own; gives those.
///
/// `is_outside` says of which functions no body will be looked at.
pub fn outline_cold_code<'c>(
    context: &'c Context,
    module: Module<'c>,
    is_outside: &dyn Fn(Value<'c>) -> bool,
) -> Vec<Value<'c>> {
    module.keep_foreign_lines();
    drop_variables(module);
    let mut made = Vec::new();
    for function in module.functions().collect::<Vec<_>>() {
        if !function.is_declaration() && !is_outside(function) {
            let mut outliner = Outliner {
                context,
                module,
                function,
                cold: HashSet::new(),
            };
            if terminate_at_handlers(context, module, function) {
                outliner.erase_unreachable();
            }
            outliner.cold = cold_blocks(function);
            outliner.run(&mut made);
        }
    }
    for &cold in &made {
        catch_where_terminated(context, cold);
    }
    made
}

/// Drops what debug information says of variables, which cannot be copied along with instructions; lines stay.
fn drop_variables(module: Module<'_>) {
    let dropped = module.run_passes(
        "strip-nonlinetable-debuginfo",
        None,
        ferrozyme_llvm::PassOptions::default(),
    );
    if dropped.is_err() {
        module.strip_debug_information();
    }
}

struct Outliner<'c> {
    context: &'c Context,
    module: Module<'c>,
    function: Value<'c>,
    cold: HashSet<Block<'c>>,
}

impl<'c> Outliner<'c> {
    fn run(&self, made: &mut Vec<Value<'c>>) {
        let blocks = self.function.blocks();
        if self.cold.is_empty() || self.cold.contains(&blocks[0]) {
            // A function that never returns is called as a whole.
            return;
        }
        let mut outlined: HashMap<Block<'c>, Outlined<'c>> = HashMap::new();
        for &block in blocks.iter().filter(|block| !self.cold.contains(block)) {
            let terminator = block.terminator().expect("blocks of functions end");
            if terminator.is(Opcode::Invoke) {
                continue;
            }
            for (index, target) in terminator.successors().into_iter().enumerate() {
                if !self.cold.contains(&target) || is_plain_trap(target) {
                    continue;
                }
                let cold = outlined.entry(target).or_insert_with(|| {
                    let cold = self.outline(target);
                    made.push(cold.function);
                    cold
                });
                let arguments = cold.arguments_from(target, block);
                let stub = self.context.append_block(self.function, "cold");
                let builder = self.context.builder();
                builder.at_end(stub);
                let call = builder.call_function(cold.function, &arguments);
                call.set_debug_location(location_for(self.context, terminator, target));
                call.add_attribute(Place::Function, self.context.attribute("noreturn", 0));
                call.add_attribute(Place::Function, self.context.attribute("cold", 0));
                builder.unreachable();
                terminator.set_successor(index as u32, stub);
            }
        }
        self.erase_unreachable();
    }

    /// The cold code that starts at `entry`, as a function that does not return.
    fn outline(&self, entry: Block<'c>) -> Outlined<'c> {
        let outlined = self.outline_region(entry, &reachable(entry), "cold", None);
        for fact in ["noreturn", "cold", "noinline"] {
            let fact = self.context.attribute(fact, 0);
            outlined.function.add_attribute(Place::Function, fact);
        }
        outlined
    }

    /// A copy of a region as a function. If it is what is done on unwinding to `pad`, it returns where the exception would be passed on.
    fn outline_region(
        &self,
        entry: Block<'c>,
        region: &[Block<'c>],
        kind: &str,
        pad: Option<Value<'c>>,
    ) -> Outlined<'c> {
        let captured = self.captured(region);
        let phis: Vec<Value<'c>> = entry
            .instructions()
            .take_while(|instruction| instruction.is(Opcode::Phi))
            .collect();
        let mut types: Vec<_> = phis.iter().map(|phi| phi.ty()).collect();
        types.extend(captured.iter().map(|value| value.ty()));
        let function = self.new_function(kind, self.context.void().function(&types, false));

        let builder = self.context.builder();
        let start = self.context.append_block(function, "entry");
        builder.at_end(start);
        let mut copy = Copy::new(self.context, function, region);
        let parameters = function.parameters();
        let given = parameters[phis.len()..].iter().copied();
        copy.values.extend(captured.iter().copied().zip(given));
        if let Some(pad) = pad {
            copy.values.insert(pad, pad.ty().poison());
            copy.pad = Some(pad);
        }
        copy.allocas(&builder, &self.sunk_allocas(region));
        builder.branch(copy.blocks[&entry]);
        copy.region(region, Some((entry, start, &parameters[..phis.len()])));
        Outlined {
            function,
            phis,
            captured,
        }
    }

    fn new_function(&self, kind: &str, ty: ferrozyme_llvm::Type<'c>) -> Value<'c> {
        let name = format!("{}.{kind}", self.function.name());
        let function = self.module.add_function(&name, ty);
        function.set_linkage(Linkage::Internal);
        function.set_personality(self.function.personality());
        function.adopt_processor(self.context, self.function);
        function.add_attribute(Place::Function, self.context.attribute("uwtable", 2));
        function
    }

    /// The values that a region uses and does not define, in order, without those that move into it.
    fn captured(&self, region: &[Block<'c>]) -> Vec<Value<'c>> {
        let inside: HashSet<Block<'c>> = region.iter().copied().collect();
        let sunk: HashSet<Value<'c>> = self.sunk_allocas(region).into_iter().collect();
        let mut seen = HashSet::new();
        let mut captured = Vec::new();
        let entry = region[0];
        for &block in region {
            for instruction in block.instructions() {
                if is_marker(instruction) {
                    continue;
                }
                let operands: Vec<Value<'c>> = if instruction.is(Opcode::Phi) {
                    let incoming = instruction.incoming().into_iter();
                    incoming
                        .filter(|(_, from)| inside.contains(from))
                        .filter(|(_, from)| block != entry || inside.contains(from))
                        .map(|(value, _)| value)
                        .collect()
                } else {
                    instruction.operands()
                };
                for operand in operands {
                    let outside = is_captured(operand)
                        && operand.block().is_none_or(|block| !inside.contains(&block));
                    if outside && !sunk.contains(&operand) && seen.insert(operand) {
                        captured.push(operand);
                    }
                }
            }
        }
        captured
    }

    /// Stack slots that only this region uses.
    fn sunk_allocas(&self, region: &[Block<'c>]) -> Vec<Value<'c>> {
        let inside: HashSet<Block<'c>> = region.iter().copied().collect();
        let entry = self
            .function
            .entry_block()
            .expect("the function has a body");
        let only_here = |slot: &Value<'c>| {
            slot.is(Opcode::Alloca)
                && slot.operand(0).is_constant()
                && slot.users().into_iter().all(|user| {
                    user.is_instruction()
                        && (is_marker(user)
                            || user.block().is_some_and(|block| inside.contains(&block)))
                })
        };
        entry.instructions().filter(only_here).collect()
    }

    /// Deletes what nothing leads to any more.
    fn erase_unreachable(&self) {
        let blocks = self.function.blocks();
        let kept: HashSet<Block<'c>> = reachable(blocks[0]).into_iter().collect();
        for &block in &kept {
            self.forget_edges(block, &kept);
        }
        let gone: Vec<Block<'c>> = blocks
            .into_iter()
            .filter(|block| !kept.contains(block))
            .collect();
        self.function.erase_blocks(&gone);
    }

    /// Takes out of the phis of a block what comes from blocks that no longer lead there.
    fn forget_edges(&self, block: Block<'c>, kept: &HashSet<Block<'c>>) {
        let leads_here =
            |from: &Block<'c>| kept.contains(from) && from.successors().contains(&block);
        let phis: Vec<Value<'c>> = block
            .instructions()
            .take_while(|instruction| instruction.is(Opcode::Phi))
            .collect();
        for phi in phis {
            let incoming = phi.incoming();
            if incoming.iter().all(|(_, from)| leads_here(from)) {
                continue;
            }
            let builder = self.context.builder();
            builder.before(phi);
            let shorter = builder.phi(phi.ty());
            shorter.set_debug_location(phi.debug_location(self.context));
            for (value, from) in incoming {
                if leads_here(&from) {
                    shorter.add_incoming(value, from);
                }
            }
            phi.replace_uses_with(shorter);
            phi.erase();
        }
    }
}

/// What is done when a call unwinds, as a function of its own.
pub(crate) struct Cleanup<'c> {
    /// It does what the landing pad does, and returns.
    pub(crate) function: Value<'c>,
    /// What it takes.
    pub(crate) arguments: Vec<Value<'c>>,
}

/// Beyond this many blocks, what is done on unwinding is not copied.
const LARGEST_CLEANUP: usize = 1000;

/// What is done when an `invoke` unwinds, as a function; none if there is nothing to do, or the exception itself is looked at.
///
/// `known` holds the functions that were made already, by landing pad.
pub(crate) fn cleanup_of<'c>(
    context: &'c Context,
    module: Module<'c>,
    invoke: Value<'c>,
    known: &mut HashMap<Block<'c>, Option<Outlined<'c>>>,
) -> Option<Cleanup<'c>> {
    let unwind = invoke.unwind_destination();
    let block = invoke.block()?;
    let made = known.entry(unwind).or_insert_with(|| {
        let outliner = Outliner {
            context,
            module,
            function: block.function(),
            cold: HashSet::new(),
        };
        outliner.outline_cleanup(unwind)
    });
    let made = made.as_ref()?;
    Some(Cleanup {
        function: made.function,
        arguments: made.arguments_from(unwind, block),
    })
}

impl<'c> Outliner<'c> {
    fn outline_cleanup(&self, unwind: Block<'c>) -> Option<Outlined<'c>> {
        let region = reachable(unwind);
        let pad = unwind.first_after_phis()?;
        let ends = |opcode: Opcode| {
            region
                .iter()
                .any(|block| block.terminator().is_some_and(|end| end.is(opcode)))
        };
        let does_nothing = region.len() == 1 && pad.next_instruction() == unwind.terminator();
        if !pad.is(Opcode::LandingPad)
            || !pad.clauses().is_empty()
            || ends(Opcode::Ret)
            || does_nothing
            || region.len() > LARGEST_CLEANUP
            || !only_resumed(pad)
        {
            return None;
        }
        let outlined = self.outline_region(unwind, &region, "cleanup", Some(pad));
        let function = outlined.function;
        function.add_attribute(Place::Function, self.context.attribute("cold", 0));
        function.add_attribute(Place::Function, self.context.attribute("noinline", 0));
        function.add_attribute(Place::Function, self.context.text_attribute(CLEANUP, ""));
        Some(outlined)
    }
}

/// Whether an exception is passed on and not looked at.
fn only_resumed(pad: Value<'_>) -> bool {
    let mut seen = HashSet::from([pad]);
    let mut work = vec![pad];
    while let Some(value) = work.pop() {
        for user in value.users() {
            match user.opcode() {
                Some(Opcode::Resume) => {}
                Some(Opcode::Phi | Opcode::ExtractValue | Opcode::InsertValue | Opcode::Freeze) => {
                    if seen.insert(user) {
                        work.push(user);
                    }
                }
                _ => return false,
            }
        }
    }
    true
}

/// A function made of a copied region, and what it takes.
pub(crate) struct Outlined<'c> {
    function: Value<'c>,
    /// Its first parameters: what the phis of the entry get.
    phis: Vec<Value<'c>>,
    /// The others.
    captured: Vec<Value<'c>>,
}

impl<'c> Outlined<'c> {
    fn arguments_from(&self, entry: Block<'c>, from: Block<'c>) -> Vec<Value<'c>> {
        debug_assert!(self.phis.iter().all(|phi| phi.block() == Some(entry)));
        let phis = self.phis.iter().map(|phi| {
            let incoming = phi.incoming().into_iter().find(|(_, block)| *block == from);
            incoming.expect("each predecessor has a value").0
        });
        phis.chain(self.captured.iter().copied()).collect()
    }
}

/// Copies blocks into another function.
struct Copy<'c> {
    context: &'c Context,
    blocks: HashMap<Block<'c>, Block<'c>>,
    values: HashMap<Value<'c>, Value<'c>>,
    /// The landing pad that is left out; what would pass its exception on returns.
    pad: Option<Value<'c>>,
}

impl<'c> Copy<'c> {
    fn new(context: &'c Context, function: Value<'c>, region: &[Block<'c>]) -> Copy<'c> {
        let blocks = region
            .iter()
            .map(|&block| (block, context.append_block(function, &block.name())));
        Copy {
            context,
            blocks: blocks.collect(),
            values: HashMap::new(),
            pad: None,
        }
    }

    fn value(&self, original: Value<'c>) -> Value<'c> {
        self.values.get(&original).copied().unwrap_or(original)
    }

    fn allocas(&mut self, builder: &Builder<'c>, slots: &[Value<'c>]) {
        for &slot in slots {
            let copy = builder.insert(slot.duplicate_instruction());
            copy.set_debug_location(None);
            self.values.insert(slot, copy);
        }
    }

    /// Copies the region. `entering` gives, for its entry, the new block it is entered from and the values of its phis there.
    fn region(
        &mut self,
        region: &[Block<'c>],
        entering: Option<(Block<'c>, Block<'c>, &[Value<'c>])>,
    ) {
        let builder = self.context.builder();
        let mut copies = Vec::new();
        for block in region {
            builder.at_end(self.blocks[block]);
            for original in block.instructions() {
                if is_marker(original) || Some(original) == self.pad {
                    continue;
                }
                if self.pad.is_some() && original.is(Opcode::Resume) {
                    builder.return_nothing();
                    continue;
                }
                let copy = if original.is(Opcode::Phi) {
                    builder.phi(original.ty())
                } else {
                    let copy = builder.insert(original.duplicate_instruction());
                    copy.set_debug_location(None);
                    copy
                };
                self.values.insert(original, copy);
                copies.push((original, copy));
            }
        }
        for (original, copy) in copies {
            if original.is(Opcode::Phi) {
                for (value, from) in original.incoming() {
                    if let Some(&from) = self.blocks.get(&from) {
                        copy.add_incoming(self.value(value), from);
                    }
                }
            } else {
                for (index, operand) in original.operands().into_iter().enumerate() {
                    let mapped = match operand.as_block() {
                        Some(block) => self.blocks[&block].as_value(),
                        None => self.value(operand),
                    };
                    copy.set_operand(index as u32, mapped);
                }
            }
        }
        if let Some((entry, from, values)) = entering {
            let phis = entry
                .instructions()
                .take_while(|instruction| instruction.is(Opcode::Phi));
            for (phi, &value) in phis.zip(values) {
                self.values[&phi].add_incoming(value, from);
            }
        }
    }
}

/// The blocks from which no `ret` can be reached.
fn cold_blocks(function: Value<'_>) -> HashSet<Block<'_>> {
    let blocks = function.blocks();
    let mut predecessors: HashMap<Block<'_>, Vec<Block<'_>>> = HashMap::new();
    let mut work = Vec::new();
    for &block in &blocks {
        for target in block.successors() {
            predecessors.entry(target).or_default().push(block);
        }
        if block.terminator().is_some_and(|end| end.is(Opcode::Ret)) {
            work.push(block);
        }
    }
    let mut warm: HashSet<Block<'_>> = work.iter().copied().collect();
    while let Some(block) = work.pop() {
        for &before in predecessors.get(&block).into_iter().flatten() {
            if warm.insert(before) {
                work.push(before);
            }
        }
    }
    blocks
        .into_iter()
        .filter(|block| !warm.contains(block))
        .collect()
}

/// A block and all that can be reached from it, the block first.
fn reachable(entry: Block<'_>) -> Vec<Block<'_>> {
    let mut seen = HashSet::from([entry]);
    let mut reached = vec![entry];
    let mut next = 0;
    while let Some(&block) = reached.get(next) {
        next += 1;
        for target in block.successors() {
            if seen.insert(target) {
                reached.push(target);
            }
        }
    }
    reached
}

/// A call that does not return and nothing else: the importer takes it as it is.
fn is_plain_trap(block: Block<'_>) -> bool {
    let rest: Vec<Value<'_>> = block
        .instructions()
        .filter(|instruction| !is_marker(*instruction))
        .collect();
    match rest.as_slice() {
        [end] => end.is(Opcode::Unreachable),
        [call, end] => end.is(Opcode::Unreachable) && call.is(Opcode::Call),
        _ => false,
    }
}

/// Whether an instruction only tells the optimiser something that need not be told twice.
fn is_marker(instruction: Value<'_>) -> bool {
    instruction.is(Opcode::Call)
        && instruction.called_intrinsic().is_some_and(|name| {
            name.starts_with("llvm.lifetime")
                || name.starts_with("llvm.dbg")
                || name.starts_with("llvm.experimental.noalias.scope")
        })
}

/// Whether a value belongs to a function: an instruction or a parameter.
fn is_captured(value: Value<'_>) -> bool {
    matches!(value.kind(), ValueKind::Instruction | ValueKind::Argument)
}

/// Where the cold code stands, for messages: at its first call, or else where it is entered from.
fn location_for<'c>(
    context: &'c Context,
    terminator: Value<'c>,
    cold: Block<'c>,
) -> Option<ferrozyme_llvm::Metadata<'c>> {
    let own = cold
        .instructions()
        .find_map(|instruction| instruction.debug_location(context));
    own.or_else(|| terminator.debug_location(context))
}
