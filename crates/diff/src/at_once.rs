//! Which operations with regions are differentiated at once: forward sweep and reverse sweep of one execution of a region, before the
//! next.
//!
//! Where the iterations of a loop share nothing but sums, nothing has to wait until all of them have run. The reverse sweep of an
//! iteration follows its forward sweep, and finds all its values where they are:
//!
//! ```text
//! for %i = 0 to %n step 1 {                        for %i = 0 to %n step 1 {
//!   %y = exp f64 %x[i]                               %y = exp f64 %x[i]
//!   store f64 %y, %out[i]                            store f64 %y, %out[i]
//! }                                         →        %t = fmul f64 %out'[i], %y
//! for %i = %n - 1 to -1 step -1 {                    store f64 0.0, %out'[i]
//!   %y = exp f64 %x[i]                               %x'[i] += %t
//!   …                                              }
//! }
//! ```
//!
//! This takes that nothing is left to do in the reverse sweep between the loop and the end of the region that it stands in, but for
//! operations on values that were there before the loop; and that this region is complete itself: the body of a function that runs both
//! sweeps, or a region of an operation that is differentiated at once. Branches share nothing in any case.
//!
//! Iterations share nothing if none touches memory that another one writes. What several read, they may: what they add to its shadow is
//! a sum. Of carried values those that are active must be sums, so that their adjoint is the same in all iterations.

use crate::activity::Activities;
use crate::augment::{Augmented, Step};
use crate::plan::{live_regions, needed_by};
use ferrozyme_ir::entity::SecondaryMap;
use ferrozyme_ir::{Function, Op, Opcode, Region, Value, for_each_op, returning_ops};
use ferrozyme_opt::alias::{Aliases, Footprint};
use ferrozyme_opt::{first_carried, first_yielded};
use rustc_hash::FxHashSet;

/// What is known of how the regions of a function can be reversed.
#[derive(Default)]
pub(crate) struct AtOnce {
    /// The operations whose regions are differentiated at once.
    pub ops: FxHashSet<Op>,
    /// The loops whose iterations share nothing but sums, so that they can be gone through in any order.
    pub independent: FxHashSet<Op>,
}

impl AtOnce {
    /// Whether the reverse sweep of a region follows its forward sweep, in the same place. `combined` says it of the body.
    pub(crate) fn is_complete(&self, holder: Option<Op>, combined: bool) -> bool {
        match holder {
            Some(holder) => self.ops.contains(&holder),
            None => combined,
        }
    }
}

/// How many comparisons of accesses one function may cost.
const MAX_COMPARISONS: usize = 20_000;

/// Finds them for a forward sweep; only in `combined` mode is anything differentiated at once.
pub(crate) fn find_at_once(
    aliases: &Aliases<'_>,
    augmented: &Augmented,
    activities: &Activities,
    combined: bool,
) -> AtOnce {
    let function = &augmented.function;
    let mut uses: SecondaryMap<Value, u32> = SecondaryMap::new();
    for op in returning_ops(function) {
        for &operand in &function.ops[op].operands {
            uses[operand] += 1;
        }
    }
    let mut finder = Finder {
        aliases,
        augmented,
        activities,
        function,
        uses,
        budget: MAX_COMPARISONS,
        found: AtOnce::default(),
    };
    for op in returning_ops(function) {
        let opcode = function.ops[op].opcode;
        let reversed = matches!(augmented.steps.get(&op), Some(Step::Regions));
        if reversed && matches!(opcode, Opcode::For | Opcode::Loop) && finder.is_independent(op) {
            finder.found.independent.insert(op);
        }
    }
    if combined {
        finder.visit(function.body());
    }
    finder.found
}

struct Finder<'a> {
    aliases: &'a Aliases<'a>,
    augmented: &'a Augmented,
    activities: &'a Activities,
    function: &'a Function,
    /// How often each value is used where it matters.
    uses: SecondaryMap<Value, u32>,
    /// How many comparisons are left.
    budget: usize,
    found: AtOnce,
}

impl Finder<'_> {
    /// Looks in a complete region for the one operation that can be differentiated at once: the last that is reversed, but for
    /// operations on values that were there before it.
    fn visit(&mut self, region: Region) {
        let ops = &self.function.regions[region].ops;
        let mut later: Vec<Op> = Vec::new();
        for &op in ops.iter().rev() {
            let Some(step) = self.augmented.steps.get(&op) else {
                continue;
            };
            match step {
                Step::Rule => later.push(op),
                Step::Regions if self.can_wait_for(op, &later) => {
                    let loops = matches!(self.function.ops[op].opcode, Opcode::For | Opcode::Loop);
                    if !loops || self.found.independent.contains(&op) {
                        self.found.ops.insert(op);
                        for inner in live_regions(self.function, op) {
                            self.visit(inner);
                        }
                    }
                    return;
                }
                _ => return,
            }
        }
    }

    /// Whether the reverse of these operations, which stand behind `op` in the same region, needs nothing that was not there before it.
    fn can_wait_for(&self, op: Op, later: &[Op]) -> bool {
        let structure = self.aliases.structure();
        later.iter().all(|&other| {
            let needed = needed_by(self.augmented, self.activities, other, &Step::Rule);
            needed.into_iter().all(|value| {
                self.function.is_constant(value)
                    || match self.function.def_op(value) {
                        Some((made, _)) => structure.order(made) < structure.order(op),
                        None => true,
                    }
            })
        })
    }

    /// Whether the iterations of a loop share nothing but sums.
    fn is_independent(&mut self, op: Op) -> bool {
        self.carries_sums(op) && self.touches_memory_of_its_own(op)
    }

    /// Whether all active values that a loop carries are sums.
    fn carries_sums(&self, op: Op) -> bool {
        let data = &self.function.ops[op];
        let body = data.regions[0];
        let end = &self.function.ops[self.function.terminator(body)];
        if end.opcode == Opcode::Trap {
            return false;
        }
        let first = first_carried(data.opcode);
        let yielded = &end.operands[first_yielded(end.opcode)..];
        (0..data.results.len()).all(|index| {
            let carried = self.function.regions[body].args[first + index];
            let active = self.activities.is_active(carried)
                || self.activities.is_active(data.results[index]);
            !active || self.is_sum(body, carried, yielded[index])
        })
    }

    /// Whether a value is another one plus something, and that one is used for nothing else.
    fn is_sum(&self, body: Region, carried: Value, value: Value) -> bool {
        let mut value = value;
        loop {
            if self.uses[value] != 1 {
                return false;
            }
            if value == carried {
                return true;
            }
            let Some((op, _)) = self.function.def_op(value) else {
                return false;
            };
            let data = &self.function.ops[op];
            if self.aliases.structure().region_of(op) != Some(body) {
                return false;
            }
            let leads_on = |operand: Value| {
                operand == carried || {
                    let def = self.function.def_op(operand);
                    def.is_some_and(|(op, _)| {
                        matches!(self.function.ops[op].opcode, Opcode::Fadd | Opcode::Fsub)
                            && self.reaches(carried, operand)
                    })
                }
            };
            value = match data.opcode {
                Opcode::Fadd if leads_on(data.operands[0]) => data.operands[0],
                Opcode::Fadd if leads_on(data.operands[1]) => data.operands[1],
                Opcode::Fsub if leads_on(data.operands[0]) => data.operands[0],
                _ => return false,
            };
        }
    }

    /// Whether a chain of sums leads from one value back to another.
    fn reaches(&self, target: Value, from: Value) -> bool {
        let mut pending = vec![from];
        let mut steps = 0;
        while let Some(value) = pending.pop() {
            steps += 1;
            if value == target {
                return true;
            }
            if steps > 64 {
                return false;
            }
            if let Some((op, _)) = self.function.def_op(value)
                && matches!(self.function.ops[op].opcode, Opcode::Fadd | Opcode::Fsub)
            {
                pending.extend(&self.function.ops[op].operands);
            }
        }
        false
    }

    /// Whether no iteration touches memory that another one writes.
    fn touches_memory_of_its_own(&mut self, loop_op: Op) -> bool {
        let mut reads: Vec<(Op, Footprint)> = Vec::new();
        let mut writes: Vec<(Op, Footprint)> = Vec::new();
        let body = self.function.ops[loop_op].regions[0];
        for_each_op(self.function, body, &mut |region, op| {
            if self.function.ends_in_trap(region) {
                return;
            }
            let (read, written) = (self.aliases.reads(op), self.aliases.writes(op));
            if !read.is_empty() && self.function.ops[op].opcode != Opcode::Trap {
                reads.push((op, read));
            }
            if !written.is_empty() {
                writes.push((op, written));
            }
        });
        for write in &writes {
            if reads.iter().any(|read| self.may_meet(loop_op, read, write)) {
                return false;
            }
        }
        for (position, one) in writes.iter().enumerate() {
            let others = &writes[position..];
            if others
                .iter()
                .any(|other| self.may_meet(loop_op, one, other))
            {
                return false;
            }
        }
        true
    }

    /// Whether two operations may touch the same bytes in different iterations of a loop.
    fn may_meet(&mut self, loop_op: Op, a: &(Op, Footprint), b: &(Op, Footprint)) -> bool {
        let reachable = |footprint: &Footprint| {
            footprint.elsewhere
                || footprint
                    .accesses
                    .iter()
                    .any(|access| self.aliases.is_reachable_from_elsewhere(access.root))
        };
        if (a.1.elsewhere && reachable(&b.1)) || (b.1.elsewhere && reachable(&a.1)) {
            return true;
        }
        for one in &a.1.accesses {
            for other in &b.1.accesses {
                if !self.aliases.may_share(one.root, other.root) {
                    continue;
                }
                if self.budget == 0 {
                    return true;
                }
                self.budget -= 1;
                let (one, other) = ((a.0, one), (b.0, other));
                if self.aliases.may_meet_later(one, other, loop_op)
                    || self.aliases.may_meet_later(other, one, loop_op)
                {
                    return true;
                }
            }
        }
        false
    }
}
