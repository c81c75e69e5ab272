//! Which loads may be clobbered later: the question that decides what a reverse sweep can reload.
//!
//! For each operation that reads memory, [`Clobbers::clobber_of`] returns an operation that may later overwrite or free
//! that memory, or none. Code that ends in a trap does not count: after it, nothing is reloaded.
//!
//! The work is nearly linear. Writes are grouped by root. A read is compared with the writes of its own root one by one as
//! long as they are few; of many, those at constant offsets go into a tree of intervals, and the others count as touching
//! the whole object. Of the writes to other roots only the position of the last one matters.

mod interval_tree;

use self::interval_tree::IntervalTree;
use crate::alias::{Access, Aliases, Footprint};
use crate::pointers::{Bases, Object, Pointers, object_kind};
use ferrozyme_ir::{Function, Module, Op, OpView, Value, all_ops, returning_ops};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Which reads of a function are clobbered, and by what.
pub struct Clobbers<'m> {
    aliases: Aliases<'m>,
    writes: Vec<Write>,
    clobbers: FxHashMap<Op, Op>,
    /// The operations that read memory.
    reads: FxHashMap<Op, Footprint>,
    /// All writes of the function.
    all: Rc<Summary>,
    summaries: RefCell<FxHashMap<Op, Rc<Summary>>>,
    /// A group with more writes than this is not compared one by one.
    compared: usize,
    budget: Cell<u32>,
}

/// Which writes count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// Those after the read.
    Later,
    /// All.
    Ever,
}

/// A query about the writes in a range of the text.
struct Query {
    /// The earlier access.
    op: Op,
    when: When,
    /// Within which loop, in the same execution of it.
    scope: Option<Op>,
    /// Whether only the same iteration of that loop counts.
    iteration: bool,
    /// A write that does not count.
    except: Option<Op>,
}

impl Query {
    fn later(op: Op, scope: Option<Op>) -> Query {
        Query {
            op,
            when: When::Later,
            scope,
            iteration: false,
            except: None,
        }
    }

    fn in_iteration(op: Op, scope: Option<Op>) -> Query {
        Query {
            iteration: true,
            ..Query::later(op, scope)
        }
    }
}

/// A write of a function, by its position in the text.
#[derive(Clone)]
struct Write {
    order: u32,
    op: Op,
    footprint: Rc<Footprint>,
}

/// How many writes of one root are compared one by one.
const MAX_COMPARED: usize = 128;
/// Budget of comparisons with proofs per function; when it is exhausted, they count as failed.
const MAX_COMPARISONS: u32 = 50_000;

impl<'m> Clobbers<'m> {
    /// Computes them for a function of a module.
    pub fn compute(module: &'m Module, function: &'m Function) -> Clobbers<'m> {
        Clobbers::compute_comparing(module, function, MAX_COMPARED)
    }

    /// As [`Clobbers::compute`], with another limit to how many writes of a root are compared one by one.
    pub(crate) fn compute_comparing(
        module: &'m Module,
        function: &'m Function,
        compared: usize,
    ) -> Clobbers<'m> {
        let aliases = Aliases::new(module, function);
        let mut writes = Vec::new();
        let mut reads = FxHashMap::default();
        let mut reading = Vec::new();
        for op in returning_ops(function) {
            let written = aliases.writes(op);
            if !written.is_empty() {
                writes.push(Write {
                    order: aliases.structure().order(op),
                    op,
                    footprint: Rc::new(written),
                });
            }
            let read = aliases.reads(op);
            if !read.is_empty() {
                reads.insert(op, read);
                reading.push(op);
            }
        }
        let summary = Rc::new(Summary::of(&aliases, &writes, compared));
        let mut clobbers = Clobbers {
            aliases,
            writes,
            all: summary.clone(),
            clobbers: FxHashMap::default(),
            reads,
            summaries: RefCell::default(),
            compared,
            budget: Cell::new(MAX_COMPARISONS),
        };
        let mut found = FxHashMap::default();
        for op in reading {
            let footprint = &clobbers.reads[&op];
            let query = Query::later(op, None);
            if let Some(clobber) = clobbers.clobber_in(&summary, footprint, &query) {
                found.insert(op, clobber);
            }
        }
        clobbers.clobbers = found;
        clobbers
    }

    /// The alias questions on which this rests.
    pub fn aliases(&self) -> &Aliases<'m> {
        &self.aliases
    }

    /// An operation that may overwrite or release what `op` read, after it read it; none if there surely is none.
    pub fn clobber_of(&self, op: Op) -> Option<Op> {
        self.clobbers.get(&op).copied()
    }

    /// Whether what `op` reads may be overwritten or released within the same execution of `loop_op`, a loop around it,
    /// after it was read.
    ///
    /// If not, all that it read in all iterations still stands in memory when the loop ends, and can be saved there.
    pub fn clobbered_in_loop(&self, op: Op, loop_op: Op) -> bool {
        let summary = self.summary_of(loop_op);
        let query = Query::later(op, Some(loop_op));
        let footprint = self.reads.get(&op);
        footprint.is_some_and(|footprint| self.clobber_in(&summary, footprint, &query).is_some())
    }

    /// Whether what `op` reads may be overwritten or released in the same iteration of `loop_op`, a loop around it, after it was read.
    pub fn clobbered_in_iteration(&self, op: Op, loop_op: Op) -> bool {
        let summary = self.summary_of(loop_op);
        let query = Query::in_iteration(op, Some(loop_op));
        let footprint = self.reads.get(&op);
        footprint.is_some_and(|footprint| self.clobber_in(&summary, footprint, &query).is_some())
    }

    /// An operation other than `except` that may overwrite or release what a `store` wrote, after it wrote it, and in the
    /// same iteration of a loop if one is given.
    pub fn overwrites_store(&self, store: Op, scope: Option<Op>, except: Option<Op>) -> Option<Op> {
        let summary = match scope {
            Some(scope) => self.summary_of(scope),
            None => self.all.clone(),
        };
        let query = Query {
            except,
            ..Query::in_iteration(store, scope)
        };
        self.clobber_in(&summary, &self.aliases.writes(store), &query)
    }

    /// Whether what `op` reads may be written or released within the same execution of `loop_op`, a loop around it,
    /// before or after.
    ///
    /// If not, what it reads in all iterations stands in memory before, during and after the loop.
    pub fn written_in_loop(&self, op: Op, loop_op: Op) -> bool {
        let summary = self.summary_of(loop_op);
        let query = Query {
            when: When::Ever,
            ..Query::later(op, Some(loop_op))
        };
        let footprint = self.reads.get(&op);
        footprint.is_some_and(|footprint| self.clobber_in(&summary, footprint, &query).is_some())
    }

    /// Whether an operation reads memory, outside code that ends in a trap.
    pub fn is_read(&self, op: Op) -> bool {
        self.reads.contains_key(&op)
    }

    fn summary_of(&self, loop_op: Op) -> Rc<Summary> {
        if let Some(summary) = self.summaries.borrow().get(&loop_op) {
            return summary.clone();
        }
        let range = self.writes_within(loop_op);
        let summary = Rc::new(Summary::of(
            &self.aliases,
            &self.writes[range],
            self.compared,
        ));
        self.summaries.borrow_mut().insert(loop_op, summary.clone());
        summary
    }

    /// The writes inside an operation; they are consecutive, since writes are in the order of the text.
    fn writes_within(&self, op: Op) -> std::ops::Range<usize> {
        let structure = self.aliases.structure();
        let start = structure.order(op);
        let first = self.writes.partition_point(|write| write.order < start);
        let count =
            self.writes[first..].partition_point(|write| is_inside(&self.aliases, write.op, op));
        first..first + count
    }

    fn clobber_in(&self, summary: &Summary, footprint: &Footprint, query: &Query) -> Option<Op> {
        let earliest = self.earliest_clobber(query.op, query.scope);
        if footprint.elsewhere
            && let Some(clobber) = summary.last_reachable(earliest)
        {
            return Some(clobber);
        }
        footprint.accesses.iter().find_map(|access| {
            if self.aliases.is_never_written(access.root) {
                return None;
            }
            self.clobber_by_other_root(summary, access, earliest)
                .or_else(|| self.clobber_by_same_root(summary, access, earliest, query))
        })
    }

    /// The position in the text from which on a write may come after a read: that of the outermost loop around it, or its own.
    fn earliest_clobber(&self, op: Op, scope: Option<Op>) -> u32 {
        let structure = self.aliases.structure();
        let outermost = match scope {
            Some(scope) => Some(scope),
            None => self.aliases.indices().loops_around(op).first().copied(),
        };
        structure.order(outermost.unwrap_or(op))
    }

    fn clobber_by_other_root(
        &self,
        summary: &Summary,
        access: &Access,
        earliest: u32,
    ) -> Option<Op> {
        let function = self.aliases.function();
        let pointers = self.aliases.pointers();
        let bases = pointers.bases(function, access.root);
        let root = access.root;
        let mut candidates = Vec::new();
        let mut classes = &summary.classes;
        if let Some(exclusive) = &bases.exclusive
            && let Some(others) = summary.others.get(&exclusive.tested)
        {
            // Other pointers that are exclusive because of the same test do not matter.
            classes = others;
            for pointer in &exclusive.pointers {
                let through = summary.by_exclusive.get(pointer);
                candidates.extend(through.map(|latest| latest.latest_but(root, earliest)));
            }
        }
        let elsewhere = summary
            .elsewhere
            .filter(|&(order, _)| order >= earliest)
            .map(|(_, op)| op);
        if bases.anything {
            candidates.push(classes.any.latest_but(root, earliest).or(elsewhere));
            return candidates.into_iter().flatten().next();
        }
        candidates.push(classes.anything.latest_but(root, earliest));
        let mut reachable = bases.unknown;
        if bases.unknown {
            candidates.push(classes.reachable.latest_but(root, earliest));
        }
        for &object in &bases.objects {
            // Writes through any root that may point into this object.
            if let Some(merged) = classes.by_object.get(&object) {
                candidates.push(merged.latest_but(root, earliest));
            }
            if object != root
                && let Some(group) = summary.groups.get(&object)
            {
                candidates.push(
                    group
                        .last
                        .filter(|&(order, _)| order >= earliest)
                        .map(|(_, op)| op),
                );
            }
            reachable |= pointers.is_reachable(function, object);
            match object_kind(function, object) {
                Some(Object::Shared) => {
                    candidates.push(classes.shared.latest_but(root, earliest));
                    candidates.push(classes.global.latest_but(root, earliest));
                }
                Some(Object::Global) => candidates.push(classes.shared.latest_but(root, earliest)),
                _ => {}
            }
        }
        if reachable {
            candidates.push(classes.unknown.latest_but(root, earliest));
            candidates.push(elsewhere);
        }
        candidates.into_iter().flatten().next()
    }

    fn clobber_by_same_root(
        &self,
        summary: &Summary,
        access: &Access,
        earliest: u32,
        query: &Query,
    ) -> Option<Op> {
        let read = (query.op, access);
        let group = summary.groups.get(&access.root)?;
        if let Some((order, clobber)) = group.whole
            && order >= earliest
        {
            return Some(clobber);
        }
        for (order, clobber, written) in group.compared.iter().rev() {
            if *order < earliest {
                break;
            }
            if query.except == Some(*clobber) {
                continue;
            }
            let write = (*clobber, written);
            if !(group.fixed && surely_apart(access, written))
                && (!self.spend()
                    || match (query.when, query.scope) {
                        (When::Ever, Some(scope)) => {
                            self.aliases.may_meet_within(read, write, scope)
                        }
                        _ => {
                            let (scope, iteration) = (query.scope, query.iteration);
                            self.aliases
                                .may_overwrite_within(read, write, scope, iteration)
                        }
                    })
            {
                return Some(*clobber);
            }
        }
        let tree = group.constant.as_ref()?;
        let latest = match constant_range(access) {
            Some((start, end)) => tree.latest(start, end),
            None => tree.latest_of_all(),
        };
        latest
            .filter(|&(order, _)| order >= earliest)
            .map(|(_, clobber)| clobber)
    }

    /// Takes one comparison from the budget; false when it is exhausted.
    fn spend(&self) -> bool {
        let left = self.budget.get();
        self.budget.set(left.saturating_sub(1));
        left > 0
    }
}

/// The writes of a stretch of text, ready for questions.
struct Summary {
    /// By root.
    groups: FxHashMap<Value, Group>,
    /// All, by where they may go.
    classes: Classes,
    /// For each test that makes pointers exclusive, those that do not go through such pointers only.
    others: FxHashMap<Value, Classes>,
    /// By `exclusive` pointer, those that may go through it, and through no pointer but exclusive ones.
    by_exclusive: FxHashMap<Value, Latest>,
    /// The last that may go wherever other functions can reach.
    elsewhere: Option<(u32, Op)>,
}

/// Writes by where they may go.
#[derive(Default)]
struct Classes {
    /// By object, those whose root may point into it without being it.
    by_object: FxHashMap<Value, Latest>,
    /// Those that may go anywhere.
    anything: Latest,
    /// Those through pointers of unknown origin.
    unknown: Latest,
    /// Writes that may alias memory of a parameter without `noalias`.
    shared: Latest,
    /// Those that may go to a global.
    global: Latest,
    /// Those that may go to what pointers of unknown origin can reach.
    reachable: Latest,
    /// All.
    any: Latest,
}

/// The last write of a class, and the last one of another root than that one's.
#[derive(Default)]
struct Latest {
    first: Option<(u32, Op, Value)>,
    second: Option<(u32, Op, Value)>,
}

/// The writes of one root.
#[derive(Default)]
struct Group {
    /// The last one.
    last: Option<(u32, Op)>,
    /// Whether constant offsets tell places apart in all iterations: the root is always the same pointer, or new memory.
    fixed: bool,
    /// In the order of the text; each is compared with each read.
    compared: Vec<(u32, Op, Access)>,
    /// The last one that may touch everything behind the root; only used when nothing is compared.
    whole: Option<(u32, Op)>,
    /// Those at constant offsets.
    constant: Option<IntervalTree>,
}

impl Summary {
    fn of(aliases: &Aliases, writes: &[Write], compared: usize) -> Summary {
        let function = aliases.function();
        let pointers = aliases.pointers();
        let mut summary = Summary {
            groups: FxHashMap::default(),
            classes: Classes::default(),
            others: FxHashMap::default(),
            by_exclusive: FxHashMap::default(),
            elsewhere: None,
        };
        for op in all_ops(function) {
            if let OpView::Exclusive { tested, .. } = function.view(op) {
                summary.others.entry(tested).or_default();
            }
        }
        for write in writes {
            let (order, op) = (write.order, write.op);
            if write.footprint.elsewhere {
                summary.elsewhere = Some((order, op));
            }
            for access in &write.footprint.accesses {
                let root = access.root;
                let group = summary.groups.entry(root).or_default();
                group.last = Some((order, op));
                group.compared.push((order, op, access.clone()));
                let entry = (order, op, root);
                let bases = pointers.bases(function, root);
                summary.classes.note(pointers, function, &bases, entry);
                let exclusive = bases.exclusive.as_ref();
                for (&tested, others) in &mut summary.others {
                    if exclusive.is_none_or(|exclusive| exclusive.tested != tested) {
                        others.note(pointers, function, &bases, entry);
                    }
                }
                for &pointer in exclusive.iter().flat_map(|exclusive| &exclusive.pointers) {
                    summary.by_exclusive.entry(pointer).or_default().note(entry);
                }
            }
        }
        for (&root, group) in &mut summary.groups {
            group.fixed = object_kind(function, root).is_some() || !aliases.indices().varies(root);
            group.condense(compared);
        }
        summary
    }

    /// The last write that other functions could notice.
    fn last_reachable(&self, earliest: u32) -> Option<Op> {
        let direct = self.elsewhere.filter(|&(order, _)| order >= earliest);
        let named = self
            .classes
            .reachable
            .first
            .filter(|&(order, ..)| order >= earliest);
        direct
            .map(|(_, op)| op)
            .or_else(|| named.map(|(_, op, _)| op))
    }
}

impl Classes {
    fn note(
        &mut self,
        pointers: &Pointers,
        function: &Function,
        bases: &Bases,
        entry: (u32, Op, Value),
    ) {
        let (_, _, root) = entry;
        self.any.note(entry);
        if bases.anything {
            self.anything.note(entry);
            self.reachable.note(entry);
            return;
        }
        if bases.unknown {
            self.unknown.note(entry);
            self.reachable.note(entry);
        }
        for &object in &bases.objects {
            if object != root {
                self.by_object.entry(object).or_default().note(entry);
            }
            if pointers.is_reachable(function, object) {
                self.reachable.note(entry);
            }
            match object_kind(function, object) {
                Some(Object::Shared) => self.shared.note(entry),
                Some(Object::Global) => self.global.note(entry),
                _ => {}
            }
        }
    }
}

impl Latest {
    /// Writes come in the order of the text.
    fn note(&mut self, entry: (u32, Op, Value)) {
        if self.first.is_some_and(|(_, _, root)| root != entry.2) {
            self.second = self.first;
        }
        self.first = Some(entry);
    }

    /// The last write of another root, if it does not come before `earliest`.
    fn latest_but(&self, root: Value, earliest: u32) -> Option<Op> {
        [self.first, self.second]
            .into_iter()
            .flatten()
            .find(|&(_, _, other)| other != root)
            .filter(|&(order, ..)| order >= earliest)
            .map(|(_, op, _)| op)
    }
}

impl Group {
    /// Once there are too many writes to compare, keeps the constant offsets in a tree and the last of the others.
    fn condense(&mut self, most: usize) {
        if self.compared.len() <= most {
            return;
        }
        let mut intervals = Vec::new();
        let mut others = Vec::new();
        for (order, op, access) in std::mem::take(&mut self.compared) {
            match constant_range(&access).filter(|_| self.fixed) {
                Some((start, end)) => intervals.push((start, end, order, op)),
                None => others.push((order, op, access)),
            }
        }
        if others.len() <= most {
            self.compared = others;
        } else {
            self.whole = others.last().map(|&(order, op, _)| (order, op));
        }
        if !intervals.is_empty() {
            self.constant = Some(IntervalTree::of(&intervals));
        }
    }
}

/// Start and end of an access that has constant ones.
fn constant_range(access: &Access) -> Option<(i64, i64)> {
    let start = access.offset.is_constant()?;
    let size = access.size.as_ref()?.is_constant()?;
    // Offsets so large that differences might wrap around are left to the general comparison.
    let sane = 0..1i64 << 61;
    (size > 0 && sane.contains(&size) && sane.contains(&start.checked_abs()?))
        .then_some((start, start + size))
}

/// Whether two accesses behind one root are at constant offsets that do not meet.
fn surely_apart(a: &Access, b: &Access) -> bool {
    match (constant_range(a), constant_range(b)) {
        (Some(a), Some(b)) => a.1 <= b.0 || b.1 <= a.0,
        _ => false,
    }
}

fn is_inside(aliases: &Aliases, op: Op, holder: Op) -> bool {
    let structure = aliases.structure();
    let Some(region) = structure.region_of(op) else {
        return false;
    };
    aliases.function().ops[holder]
        .regions
        .iter()
        .any(|&inner| structure.is_within(region, inner))
}
