//! Finds loops and branches that are differentiated at once: the reverse sweep of one execution of a region follows its forward sweep, before the
//! next execution.
//!
//! If the iterations of a loop share nothing but sums, the reverse sweep of an iteration need not wait for the others. It
//! directly follows the forward sweep of that iteration, and uses its values without a tape:
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
//! The adjoints of the loop's results must be known at the loop. Its sums may go through further operations
//! whose reverse needs only values from before the loop. Memory that the loop writes must not be read by operations that are reversed before it,
//! and those must not write memory that it accesses. Other operations after the loop are reversed later, as if the loop were not there. The
//! region that holds the loop must itself run both sweeps: the body of a function in combined mode, or a region of an operation that is
//! differentiated at once. Branches never share anything.
//!
//! Iterations are independent if none accesses memory that another one writes. Several may read the same memory: their additions to its shadow are
//! a sum. Privatisable memory, which each iteration writes before it reads it, is allowed too: its shadow is zero before
//! and after the reverse sweep of each iteration. Active carried values must be sums, so that their adjoint is the same
//! in all iterations.
//!
//! A loop that is differentiated at once adds to shadows before the operations that follow it do, so these sums have another order than in a
//! reverse sweep that follows the whole forward sweep. If that order must be kept, only the last operation of a region qualifies.

use crate::activity::Activities;
use crate::augment::Augmented;
use crate::plan::{Surroundings, live_regions};
use crate::step::{Step, needed_by};
use ferrozyme_ir::{Effect, Function, Op, Opcode, Region, Value, for_each_op, returning_ops};
use ferrozyme_opt::alias::{Aliases, Footprint};
use ferrozyme_opt::pointers::{Object, object_kind};
use ferrozyme_opt::{Uses, carried_by, carried_sum};
use rustc_hash::{FxHashMap, FxHashSet};

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

/// Finds them for a forward sweep; only where both sweeps are one function is anything differentiated at once.
pub(crate) fn find_at_once(
    aliases: &Aliases<'_>,
    augmented: &Augmented,
    activities: &Activities,
    surroundings: &Surroundings<'_>,
) -> AtOnce {
    // What is reversed already leaves derivatives in shadows. They must be zero in the whole forward sweep where they tell floats from pointers, and hold nothing
    // but seeds where memory of the caller's may be released, with which the seeds go.
    if augmented.has_unions || augmented.has_constants || augmented.register().is_some() {
        return AtOnce::default();
    }
    let function = &augmented.function;
    let mut finder = Finder {
        aliases,
        augmented,
        activities,
        function,
        uses: Uses::by(function, returning_ops(function)),
        budget: MAX_COMPARISONS,
        scratch: FxHashMap::default(),
        separate: FxHashSet::default(),
        keep_order: surroundings.keep_order,
        found: AtOnce::default(),
    };
    for op in returning_ops(function) {
        let opcode = function.ops[op].opcode;
        let reversed = matches!(augmented.steps.get(&op), Some(Step::Regions));
        if reversed && matches!(opcode, Opcode::For | Opcode::Loop) && finder.carries_sums(op) {
            match finder.sharing(op) {
                Sharing::Nothing => finder.found.independent.insert(op),
                Sharing::Scratch if surroundings.keep_order => continue,
                Sharing::Scratch => finder.separate.insert(op),
                Sharing::Memory => continue,
            };
        }
    }
    if !surroundings.split {
        finder.visit(function.body());
    }
    finder.found
}

/// What memory the iterations of a loop share.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// None that one of them writes.
    Nothing,
    /// Memory that each writes before it reads it.
    Scratch,
    /// Memory by which one may depend on another.
    Memory,
}

struct Finder<'a> {
    aliases: &'a Aliases<'a>,
    augmented: &'a Augmented,
    activities: &'a Activities,
    function: &'a Function,
    /// Who uses each value where it matters.
    uses: Uses,
    /// How many comparisons are left.
    budget: usize,
    /// Whether the memory behind a root is scratch memory of a loop, as far as that has been asked.
    scratch: FxHashMap<(Op, Value), bool>,
    /// The loops whose iterations share nothing but sums and scratch memory.
    separate: FxHashSet<Op>,
    /// Whether adjoints are added up in the order of a reverse sweep that follows the whole forward sweep.
    keep_order: bool,
    found: AtOnce,
}

/// The memory that steps of the reverse sweep are about, by the roots of pointers into it.
#[derive(Default)]
struct Touched {
    read: FxHashSet<Value>,
    written: FxHashSet<Value>,
    /// Besides, whatever others can reach.
    read_elsewhere: bool,
    written_elsewhere: bool,
}

/// How many operations may stand between a loop and what its result goes into.
const MAX_FOLLOWERS: usize = 256;

impl Finder<'_> {
    /// Looks in a complete region for operations that can be differentiated at once.
    fn visit(&mut self, region: Region) {
        let mut later = Touched::default();
        for &op in self.function.regions[region].ops.iter().rev() {
            let Some(step) = self.augmented.steps.get(&op) else {
                continue;
            };
            let own = self.touched_by(op);
            if matches!(step, Step::Regions)
                && self.is_separate(op)
                && self.is_left_alone(&own, &later)
                && self.adjoints_are_known(op, region)
            {
                self.found.ops.insert(op);
                for inner in live_regions(self.function, op) {
                    self.visit(inner);
                }
            }
            // With what follows it, an operation may add to the same adjoints.
            if self.keep_order && !matches!(step, Step::Rule) {
                return;
            }
            later.join(own);
        }
    }

    /// Whether the executions of an operation's regions depend on each other by nothing but sums.
    fn is_separate(&self, op: Op) -> bool {
        let loops = matches!(self.function.ops[op].opcode, Opcode::For | Opcode::Loop);
        !loops || self.found.independent.contains(&op) || self.separate.contains(&op)
    }

    /// The memory that the reverse of an operation is about.
    fn touched_by(&self, op: Op) -> Touched {
        let mut touched = Touched::default();
        let mut note = |op: Op| match self.augmented.steps.get(&op) {
            None
            | Some(Step::Rule | Step::Update { .. } | Step::Regions | Step::Release { .. }) => {}
            Some(_) => {
                let (read, written) = (self.aliases.reads(op), self.aliases.writes(op));
                touched.read_elsewhere |= read.elsewhere;
                touched.written_elsewhere |= written.elsewhere;
                let root = |access: &ferrozyme_opt::alias::Access| access.root;
                touched.read.extend(read.accesses.iter().map(root));
                touched.written.extend(written.accesses.iter().map(root));
            }
        };
        note(op);
        for &region in &self.function.ops[op].regions {
            for_each_op(self.function, region, &mut |_, op| note(op));
        }
        touched
    }

    /// Whether the reverse of an operation may come before that of others that follow it: they read nothing that it writes, and write
    /// nothing that it touches. What both read, they add to.
    fn is_left_alone(&mut self, own: &Touched, later: &Touched) -> bool {
        let reachable = |roots: &FxHashSet<Value>| {
            let mut roots = roots.iter();
            roots.any(|&root| self.aliases.is_reachable_from_elsewhere(root))
        };
        if later.written_elsewhere && (own.read_elsewhere || own.written_elsewhere)
            || later.read_elsewhere && own.written_elsewhere
            || later.written_elsewhere && (reachable(&own.read) || reachable(&own.written))
            || later.read_elsewhere && reachable(&own.written)
            || own.written_elsewhere && (reachable(&later.read) || reachable(&later.written))
            || own.read_elsewhere && reachable(&later.written)
        {
            return false;
        }
        !self.may_share_any(&own.written, &later.read)
            && !self.may_share_any(&own.written, &later.written)
            && !self.may_share_any(&own.read, &later.written)
    }

    fn may_share_any(&mut self, some: &FxHashSet<Value>, others: &FxHashSet<Value>) -> bool {
        let comparisons = some.len().saturating_mul(others.len());
        if comparisons > self.budget {
            return true;
        }
        self.budget -= comparisons;
        let mut some = some.iter();
        some.any(|&one| {
            others
                .iter()
                .any(|&other| self.aliases.may_share(one, other))
        })
    }

    /// Whether the adjoints that an operation takes are known where it stands: those of its results, and those of values from outside as far as
    /// operations behind it add to them. What these go into is reversed from values that were there before it, up to the end of the region.
    /// So the sums have the same order as where it is not differentiated at once.
    fn adjoints_are_known(&self, op: Op, region: Region) -> bool {
        let structure = self.aliases.structure();
        let inside = self.inside(op);
        let mut seen: FxHashSet<Op> = FxHashSet::default();
        let mut pending: Vec<Value> = self.function.ops[op].results.to_vec();
        pending.extend(self.captures_of(op, &inside));
        while let Some(value) = pending.pop() {
            if !self.activities.is_active(value) {
                continue;
            }
            for &(user, _) in self.uses.of_value(value) {
                // What stands before the operation, or in it, is reversed after it.
                let earlier = structure.order(user) <= structure.order(op);
                if earlier || inside.contains(&user) {
                    continue;
                }
                let ends = self.function.ops[user].opcode.effect() == Effect::Ends;
                let step = self.augmented.steps.get(&user);
                let here = structure.region_of(user) == Some(region);
                let waits = match step {
                    _ if ends => here,
                    None => continue,
                    Some(Step::Rule) => here && self.needs_nothing_from(op, user),
                    Some(_) => false,
                };
                if !waits {
                    return false;
                }
                if !ends && seen.insert(user) {
                    if seen.len() > MAX_FOLLOWERS {
                        return false;
                    }
                    pending.extend(&self.function.ops[user].results);
                }
            }
        }
        true
    }

    /// The operations in the regions of an operation.
    fn inside(&self, op: Op) -> FxHashSet<Op> {
        let mut inside = FxHashSet::default();
        for &region in &self.function.ops[op].regions {
            for_each_op(self.function, region, &mut |_, op| {
                inside.insert(op);
            });
        }
        inside
    }

    /// The active values from outside that operations in regions use.
    fn captures_of(&self, op: Op, inside: &FxHashSet<Op>) -> Vec<Value> {
        let structure = self.aliases.structure();
        let mut captures = Vec::new();
        for &user in inside {
            for &operand in &self.function.ops[user].operands {
                let home = structure.region_of_value(self.function, operand);
                let own = home.is_some_and(|home| {
                    let holder = structure.op_of(home);
                    holder.is_some_and(|holder| holder == op || inside.contains(&holder))
                });
                if !own && self.activities.is_active(operand) {
                    captures.push(operand);
                }
            }
        }
        captures
    }

    /// Whether the reverse of an operation by its rule needs nothing that was not there before another one.
    fn needs_nothing_from(&self, op: Op, other: Op) -> bool {
        let structure = self.aliases.structure();
        let needed = needed_by(self.augmented, self.activities, other, &Step::Rule);
        needed.into_iter().all(|value| {
            self.function.is_constant(value)
                || match self.function.def_op(value) {
                    Some((made, _)) => structure.order(made) < structure.order(op),
                    None => true,
                }
        })
    }

    /// Whether all active values that a loop carries are sums.
    fn carries_sums(&self, op: Op) -> bool {
        let (function, structure) = (self.function, self.aliases.structure());
        !function.ends_in_trap(function.ops[op].body())
            && carried_by(function, op).iter().all(|carried| {
                let active = [carried.argument, carried.result];
                !active.iter().any(|&value| self.activities.is_active(value))
                    || carried_sum(function, structure, &self.uses, op, carried).is_some()
            })
    }

    /// What memory the iterations of a loop share.
    fn sharing(&mut self, loop_op: Op) -> Sharing {
        let accesses = self.accesses_in(loop_op);
        let mut sharing = Sharing::Nothing;
        for (position, write) in accesses.writes.iter().enumerate() {
            let others = accesses.reads.iter().chain(&accesses.writes[position..]);
            for other in others {
                sharing = match self.may_meet(loop_op, &accesses, other, write) {
                    Sharing::Nothing => continue,
                    Sharing::Scratch => Sharing::Scratch,
                    Sharing::Memory => return Sharing::Memory,
                };
            }
        }
        sharing
    }

    /// What a loop's body reads and writes, but for code that ends in a trap.
    fn accesses_in(&self, loop_op: Op) -> Accesses {
        let mut accesses = Accesses::default();
        let mut pending = vec![self.function.ops[loop_op].regions[0]];
        while let Some(region) = pending.pop() {
            if self.function.ends_in_trap(region) {
                continue;
            }
            for &op in &self.function.regions[region].ops {
                pending.extend(&self.function.ops[op].regions);
                let (read, written) = (self.aliases.reads(op), self.aliases.writes(op));
                if !read.is_empty() {
                    accesses.reads.push((op, read));
                }
                if !written.is_empty() {
                    accesses.writes.push((op, written));
                }
            }
        }
        accesses
    }

    /// Whether the memory behind a root is scratch memory of a loop: made by this function, touched by the loop through this pointer only,
    /// and in each iteration written before it is read.
    fn is_scratch(&mut self, loop_op: Op, accesses: &Accesses, root: Value) -> bool {
        if let Some(&known) = self.scratch.get(&(loop_op, root)) {
            return known;
        }
        let found = self.is_own_memory(loop_op, accesses, root)
            && self.is_written_before_read(loop_op, accesses, root);
        self.scratch.insert((loop_op, root), found);
        found
    }

    fn is_own_memory(&self, loop_op: Op, accesses: &Accesses, root: Value) -> bool {
        let bases = self.aliases.pointers().bases(self.function, root);
        let local = |&object: &Value| object_kind(self.function, object) == Some(Object::Local);
        if bases.anything
            || bases.unknown
            || !bases.objects.iter().all(local)
            || !self.aliases.indices().is_defined_outside(root, loop_op)
        {
            return false;
        }
        let mut all = accesses.reads.iter().chain(&accesses.writes);
        all.all(|(op, footprint)| {
            let elsewhere = footprint.elsewhere && self.aliases.is_reachable_from_elsewhere(root);
            let released = self.function.ops[*op].opcode == Opcode::Free;
            !elsewhere
                && footprint
                    .accesses
                    .iter()
                    .all(|access| match access.root == root {
                        true => !released,
                        false => !self.aliases.may_share(access.root, root),
                    })
        })
    }

    fn is_written_before_read(&mut self, loop_op: Op, accesses: &Accesses, root: Value) -> bool {
        for (reader, read) in &accesses.reads {
            for access in read.accesses.iter().filter(|access| access.root == root) {
                let mut covered = false;
                for (writer, written) in &accesses.writes {
                    for other in written.accesses.iter().filter(|access| access.root == root) {
                        if covered || self.budget == 0 {
                            continue;
                        }
                        self.budget -= 1;
                        let (writer, reader) = ((*writer, other), (*reader, access));
                        covered = self.aliases.is_written_first(writer, reader, loop_op);
                    }
                }
                if !covered {
                    return false;
                }
            }
        }
        true
    }

    /// By what two operations may touch the same bytes in different iterations of a loop.
    fn may_meet(
        &mut self,
        loop_op: Op,
        accesses: &Accesses,
        a: &(Op, Footprint),
        b: &(Op, Footprint),
    ) -> Sharing {
        let reachable = |footprint: &Footprint| {
            footprint.elsewhere
                || footprint
                    .accesses
                    .iter()
                    .any(|access| self.aliases.is_reachable_from_elsewhere(access.root))
        };
        if (a.1.elsewhere && reachable(&b.1)) || (b.1.elsewhere && reachable(&a.1)) {
            return Sharing::Memory;
        }
        let mut sharing = Sharing::Nothing;
        for one in &a.1.accesses {
            for other in &b.1.accesses {
                if !self.aliases.may_share(one.root, other.root) {
                    continue;
                }
                if self.budget == 0 {
                    return Sharing::Memory;
                }
                self.budget -= 1;
                let (at_one, at_other) = ((a.0, one), (b.0, other));
                let meet = self.aliases.may_meet_later(at_one, at_other, loop_op)
                    || self.aliases.may_meet_later(at_other, at_one, loop_op);
                if !meet {
                    continue;
                }
                if one.root != other.root || !self.is_scratch(loop_op, accesses, one.root) {
                    return Sharing::Memory;
                }
                sharing = Sharing::Scratch;
            }
        }
        sharing
    }
}

/// What a loop's body reads and writes.
#[derive(Default)]
struct Accesses {
    reads: Vec<(Op, Footprint)>,
    writes: Vec<(Op, Footprint)>,
}

impl Touched {
    fn join(&mut self, other: Touched) {
        self.read.extend(other.read);
        self.written.extend(other.written);
        self.read_elsewhere |= other.read_elsewhere;
        self.written_elsewhere |= other.written_elsewhere;
    }
}
