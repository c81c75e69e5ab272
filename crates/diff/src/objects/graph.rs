//! The constraint graph of the analysis: classes of memory, and cells of bytes.
//!
//! A *class* stands for a set of memory objects that some pointer may point into; classes are merged by union-find
//! with a shift, so that addresses found to be equal get equal offsets. A *cell* stands for some bytes that always have the same
//! meaning: a field of a class, or an integer value that may carry something else. Cells are merged by
//! union-find, too; a cell whose bytes are moved in smaller pieces elsewhere is split in two.
//!
//! Merging is done from a list of tasks, not recursively: structures may be deep. [`Graph::solve`] runs until the list
//! is empty; all public operations call it. It gives up when there are more classes and cells than [`Graph::budget`] allows.

mod access;
mod cells;
mod moves;

pub(super) use access::wrap;

use super::span::{Span, gcd};
use super::{Contradiction, Source};
use ferrozyme_ir::{FunctionId, Scalar};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};

/// A class, as numbered while the analysis runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct ClassId(pub u32);

/// A cell, as numbered while the analysis runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct CellId(pub u32);

/// A set of addresses: a class and offsets within it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Target {
    pub class: ClassId,
    pub span: Span,
}

/// How sure it is that bytes are an integer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum Integer {
    /// Nothing says so.
    #[default]
    No,
    /// They are used as one somewhere; they may still be the bits of a float that somebody looks at.
    Used,
    /// They are described as one, or hold the result of integer arithmetic.
    Certain,
}

/// What is known of the bytes of a cell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    pub float: Option<Scalar>,
    pub integer: Integer,
    /// Where it points, or where the whole pointer does of which these bytes are a part.
    pub pointer: Option<Target>,
    /// How often the pointer's offsets have grown.
    pub growth: u8,
    /// The description says that nothing is there.
    pub padding: bool,
    /// Code that is not seen gets these bytes by value, or gives them.
    pub foreign: bool,
    pub contradiction: Option<Contradiction>,
}

impl Evidence {
    fn says_something(&self) -> bool {
        self.float.is_some()
            || self.integer != Integer::No
            || self.pointer.is_some()
            || self.padding
            || self.foreign
            || self.contradiction.is_some()
    }
}

#[derive(Clone, Debug)]
pub(super) struct ClassNode {
    parent: ClassId,
    /// Offset `o` here is offset `o + shift` in the parent.
    shift: i64,
    /// Disjoint; the keys are in the range of [`wrap`].
    pub fields: BTreeMap<i64, CellId>,
    /// From which offset on the fields repeat; `i64::MIN` for everywhere.
    pub start: i64,
    /// After how many bytes they repeat; 0 for never.
    pub period: u64,
    pub sources: BTreeSet<(FunctionId, Source)>,
    /// Code that is not seen may know the address.
    pub escapes: bool,
    /// Code that is not seen may have written to it.
    pub clobbered: bool,
    /// Code that is not seen may have put pointers there that lead anywhere.
    pub repointed: bool,
    /// Something that is seen writes to it.
    pub written: bool,
    /// It is code that something calls through a pointer.
    pub called: bool,
    /// Something that is seen releases it.
    pub released: bool,
    /// Something is put there, or is taken from there without being looked at.
    pub handled: bool,
    /// Any word may be a float at times, and at others something else, and so may those of all memory that it leads to.
    pub union: bool,
    /// A description says that it is floats of eight bytes and nothing else.
    pub plain: bool,
    /// It may be memory that stems from code that is not seen.
    pub unknown_origin: bool,
    /// A description says what each byte of a period is.
    pub described: bool,
}

impl ClassNode {
    /// What it costs to move into another class.
    fn weight(&self) -> usize {
        self.fields.len() + self.sources.len()
    }
}

#[derive(Clone, Debug)]
pub(super) struct CellNode {
    parent: CellId,
    pub bytes: u64,
    pub parts: Option<(CellId, CellId)>,
    pub evidence: Evidence,
}

enum Task {
    /// Two cells of the same size are the same.
    Cells(CellId, CellId),
    /// Offset `o` of the second class is offset `o + shift` of the first.
    Classes(ClassId, ClassId, i64),
}

/// Classes and cells.
#[derive(Default)]
pub(super) struct Graph {
    pub classes: Vec<ClassNode>,
    pub cells: Vec<CellNode>,
    tasks: Vec<Task>,
    /// Cells, and others to which they are moved as floats.
    moves: Vec<(CellId, CellId)>,
    /// Spans whose offsets have the same cell already.
    unified: FxHashSet<(ClassId, Span, u64)>,
    /// Grows with every change that can matter to somebody else.
    pub version: u64,
    /// How many classes and cells there may be; from then on nothing is merged any more, and nothing here is right.
    pub budget: usize,
    /// Set when the analysis has gone on for long: pointers that still move may then point anywhere in their class.
    pub hurry: bool,
}

/// No object has offsets beyond this.
const FAR: u64 = 1 << 60;

/// After how many changes the offsets of a pointer in memory are widened.
pub(super) const PATIENCE: u8 = 3;

impl Graph {
    /// An empty one that may grow to this many classes and cells.
    pub(super) fn of(budget: usize) -> Graph {
        Graph {
            budget,
            ..Graph::default()
        }
    }

    /// Whether there are more classes and cells than there may be.
    pub(super) fn is_exhausted(&self) -> bool {
        self.classes.len() + self.cells.len() > self.budget
    }

    // ---- classes

    /// A class of its own.
    pub(super) fn new_class(&mut self, source: Option<(FunctionId, Source)>) -> ClassId {
        let id = ClassId(self.classes.len() as u32);
        self.classes.push(ClassNode {
            parent: id,
            shift: 0,
            fields: BTreeMap::new(),
            start: i64::MIN,
            period: 0,
            sources: source.into_iter().collect(),
            escapes: false,
            clobbered: false,
            repointed: false,
            written: false,
            called: false,
            released: false,
            handled: false,
            union: false,
            plain: false,
            unknown_origin: false,
            described: false,
        });
        self.version += 1;
        id
    }

    /// The class that stands for this one, and by how much offsets are moved there.
    pub(super) fn find(&mut self, class: ClassId) -> (ClassId, i64) {
        let mut root = class;
        let mut shift = 0i64;
        while self.classes[root.0 as usize].parent != root {
            let node = &self.classes[root.0 as usize];
            shift = shift.wrapping_add(node.shift);
            root = node.parent;
        }
        let (mut at, mut rest) = (class, shift);
        while at != root {
            let node = &mut self.classes[at.0 as usize];
            let (next, own) = (node.parent, node.shift);
            (node.parent, node.shift) = (root, rest);
            rest = rest.wrapping_sub(own);
            at = next;
        }
        (root, shift)
    }

    pub(super) fn node(&self, class: ClassId) -> &ClassNode {
        &self.classes[class.0 as usize]
    }

    pub(super) fn node_mut(&mut self, class: ClassId) -> &mut ClassNode {
        &mut self.classes[class.0 as usize]
    }

    /// A target in terms of the class that stands for its own.
    pub(super) fn resolve(&mut self, target: Target) -> Target {
        let (class, shift) = self.find(target.class);
        Target {
            class,
            span: target.span.shifted(shift),
        }
    }

    /// States that offset `o` of `b` is offset `o + shift` of `a`.
    pub(super) fn merge_classes(&mut self, a: ClassId, b: ClassId, shift: i64) {
        self.tasks.push(Task::Classes(a, b, shift));
        self.solve();
    }

    /// The addresses of both; their classes become one.
    pub(super) fn join(&mut self, a: Target, b: Target) -> Target {
        let joined = self.join_later(a, b);
        self.solve();
        joined
    }

    fn join_later(&mut self, a: Target, b: Target) -> Target {
        let (a, b) = (self.resolve(a), self.resolve(b));
        if a.class == b.class {
            return Target {
                class: a.class,
                span: a.span.join(b.span),
            };
        }
        let shift = a.span.lo.wrapping_sub(b.span.lo);
        self.tasks.push(Task::Classes(a.class, b.class, shift));
        Target {
            class: a.class,
            span: a.span.join(b.span.shifted(shift)),
        }
    }

    /// Adds to the addresses of a pointer; `growth` counts how often that changed it.
    pub(super) fn grow(&mut self, pointer: &mut Option<Target>, growth: &mut u8, more: Target) {
        self.grow_later(pointer, growth, more);
        self.solve();
    }

    fn grow_later(&mut self, pointer: &mut Option<Target>, growth: &mut u8, more: Target) {
        let Some(old) = *pointer else {
            *pointer = Some(more);
            self.version += 1;
            return;
        };
        let old = self.resolve(old);
        let mut new = self.join_later(old, more);
        if new.span != old.span {
            *growth = growth.saturating_add(1);
            if self.hurry {
                new.span = Span::ANY;
            } else if *growth > PATIENCE {
                new.span = old.span.widen(new.span);
            }
            if new.span != old.span {
                self.version += 1;
            }
        }
        *pointer = Some(new);
    }

    /// States that the fields of a class repeat from `start` on (`i64::MIN`: everywhere) every `every` bytes.
    pub(super) fn repeat(&mut self, class: ClassId, start: i64, every: u64) {
        let (root, shift) = self.find(class);
        let start = if start == i64::MIN {
            start
        } else {
            start.saturating_add(shift)
        };
        self.repeat_root(root, start, every);
        self.solve();
    }

    fn repeat_root(&mut self, root: ClassId, start: i64, every: u64) {
        let node = self.node_mut(root);
        let new_period = gcd(node.period, every);
        let new_start = if node.period == 0 {
            start
        } else {
            node.start.min(start)
        };
        if (new_period, new_start) == (node.period, node.start) || new_period == 0 {
            return;
        }
        (node.period, node.start) = (new_period, new_start);
        let fields = std::mem::take(&mut node.fields);
        self.version += 1;
        for (offset, cell) in fields {
            self.insert(root, offset, cell);
        }
    }

    // ---- merging

    fn solve(&mut self) {
        while let Some(task) = self.tasks.pop() {
            if self.is_exhausted() {
                self.tasks.clear();
                return;
            }
            match task {
                Task::Cells(a, b) => self.solve_cells(a, b),
                Task::Classes(a, b, shift) => self.solve_classes(a, b, shift),
            }
        }
    }

    fn solve_classes(&mut self, a: ClassId, b: ClassId, shift: i64) {
        let (root_a, shift_a) = self.find(a);
        let (root_b, shift_b) = self.find(b);
        // Offset `o` of `root_b` is offset `o + distance` of `root_a`.
        let mut distance = shift.wrapping_add(shift_a).wrapping_sub(shift_b);
        if distance.unsigned_abs() > FAR {
            self.repeat_root(root_a, i64::MIN, 1);
            distance = 0;
        }
        if root_a == root_b {
            if distance != 0 {
                self.repeat_root(root_a, i64::MIN, distance.unsigned_abs());
            }
            return;
        }
        self.version += 1;
        let (big, small, distance) = if self.node(root_a).weight() >= self.node(root_b).weight() {
            (root_a, root_b, distance)
        } else {
            (root_b, root_a, distance.wrapping_neg())
        };
        let node = self.node_mut(small);
        (node.parent, node.shift) = (big, distance);
        let fields = std::mem::take(&mut node.fields);
        let sources = std::mem::take(&mut node.sources);
        let (escapes, clobbered, repointed) = (node.escapes, node.clobbered, node.repointed);
        let unknown_origin = node.unknown_origin;
        let (described, written, called) = (node.described, node.written, node.called);
        let (handled, union, plain) = (node.handled, node.union, node.plain);
        let released = node.released;
        let (start, every) = (node.start, node.period);
        let node = self.node_mut(big);
        node.escapes |= escapes;
        node.clobbered |= clobbered;
        node.repointed |= repointed;
        node.written |= written;
        node.called |= called;
        node.released |= released;
        node.unknown_origin |= unknown_origin;
        node.described |= described;
        node.handled |= handled;
        node.union |= union;
        node.plain &= plain;
        node.sources.extend(sources);
        if every > 0 {
            let start = if start == i64::MIN {
                start
            } else {
                start.saturating_add(distance)
            };
            self.repeat_root(big, start, every);
        }
        for (offset, cell) in fields {
            self.insert(big, offset.wrapping_add(distance), cell);
        }
    }
}
