//! The unknowns of the analysis and what is known of them: classes of memory, and cells of bytes.
//!
//! A *class* stands for a set of memory objects that some pointer may point into; classes are merged by union-find
//! with a shift, so that addresses found to be equal get equal offsets. A *cell* stands for some bytes that always have the same
//! meaning: a field of a class, or an integer value that may carry something else. Cells are merged by
//! union-find, too; a cell whose bytes are moved in smaller pieces elsewhere is split in two.
//!
//! Merging is done from a list of tasks, not recursively: structures may be deep. [`Graph::solve`] runs until the list
//! is empty; all public operations call it.

use super::span::{Span, gcd, period};
use super::{Contradiction, Source};
use ferrozyme_ir::{FunctionId, Scalar};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// A class, as numbered while the analysis runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct ClassId(pub u32);

/// A cell, as numbered while the analysis runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
    pub pointer: Option<Target>,
    /// How often the pointer's offsets have grown.
    pub growth: u8,
    /// The description says that nothing is there.
    pub padding: bool,
    pub contradiction: Option<Contradiction>,
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
    /// Spans whose offsets have the same cell already.
    unified: FxHashSet<(ClassId, Span, u64)>,
    /// Grows with every change that can matter to somebody else.
    pub version: u64,
    /// Set when the analysis has gone on for long: pointers that still move may then point anywhere in their class.
    pub hurry: bool,
}

/// More places than this are not looked at one by one.
const MANY: u64 = 4096;

/// No object has offsets beyond this.
const FAR: u64 = 1 << 60;

/// After how many changes the offsets of a pointer in memory are widened.
pub(super) const PATIENCE: u8 = 3;

impl Graph {
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

    fn wrap(&self, root: ClassId, offset: i64) -> (i64, u64) {
        let node = self.node(root);
        wrap(node.start, node.period, offset)
    }

    /// The cell of these bytes; fields are made and split as needed.
    pub(super) fn access(&mut self, class: ClassId, offset: i64, bytes: u64) -> CellId {
        let (root, shift) = self.find(class);
        self.access_root(root, offset.wrapping_add(shift), bytes)
    }

    fn access_root(&mut self, root: ClassId, offset: i64, bytes: u64) -> CellId {
        // Absurdly far offsets would overflow; where every byte is like every other, they are all the same.
        let offset = if offset.unsigned_abs() > FAR {
            self.repeat_root(root, i64::MIN, 1);
            0
        } else {
            offset
        };
        if let Some(&cell) = self.node(root).fields.get(&self.wrap(root, offset).0)
            && self.cells[cell.0 as usize].bytes == bytes
        {
            return cell;
        }
        let mut pieces: SmallVec<[CellId; 4]> = SmallVec::new();
        let mut done = 0;
        while done < bytes {
            let (at, room) = self.wrap(root, offset.wrapping_add(done as i64));
            let length = room.min(bytes - done);
            self.pieces(root, at, length, &mut pieces);
            done += length;
        }
        let mut whole = pieces.pop().expect("an access has at least one byte");
        while let Some(piece) = pieces.pop() {
            whole = self.concatenate(piece, whole);
        }
        whole
    }

    /// The cells of bytes that lie within one turn.
    fn pieces(
        &mut self,
        root: ClassId,
        offset: i64,
        bytes: u64,
        pieces: &mut SmallVec<[CellId; 4]>,
    ) {
        let end = offset + bytes as i64;
        let before = self
            .node(root)
            .fields
            .range(..offset)
            .next_back()
            .map(|(&at, &cell)| (at, cell));
        if let Some((at, cell)) = before
            && at + self.bytes(cell) as i64 > offset
        {
            let (left, right) = self.split(cell, offset.abs_diff(at));
            let fields = &mut self.node_mut(root).fields;
            fields.insert(at, left);
            fields.insert(offset, right);
        }
        let mut at = offset;
        while at < end {
            let next = self
                .node(root)
                .fields
                .range(at..end)
                .next()
                .map(|(&next, &cell)| (next, cell));
            let cell = match next {
                Some((next, cell)) if next == at => {
                    if at + self.bytes(cell) as i64 > end {
                        let (left, right) = self.split(cell, end.abs_diff(at));
                        let fields = &mut self.node_mut(root).fields;
                        fields.insert(at, left);
                        fields.insert(end, right);
                        left
                    } else {
                        cell
                    }
                }
                gap => {
                    let until = gap.map_or(end, |(next, _)| next);
                    let cell = self.new_cell(until.abs_diff(at));
                    self.node_mut(root).fields.insert(at, cell);
                    self.version += 1;
                    cell
                }
            };
            at += self.bytes(cell) as i64;
            pieces.push(cell);
        }
    }

    /// Puts a cell into a class, where it becomes one with what is there.
    fn insert(&mut self, root: ClassId, offset: i64, cell: CellId) {
        let bytes = self.bytes(cell);
        let there = self.access_root(root, offset, bytes);
        self.tasks.push(Task::Cells(there, cell));
    }

    /// Makes all addresses of a target alike, as far as they repeat.
    pub(super) fn settle(&mut self, target: Target) {
        if target.span.repeat > 0 {
            let start = if target.span.both {
                i64::MIN
            } else {
                target.span.lo
            };
            self.repeat(target.class, start, target.span.repeat);
        }
    }

    /// The one cell that stands for these bytes at all offsets of a span.
    pub(super) fn access_span(&mut self, target: Target, at: i64, bytes: u64) -> CellId {
        let target = self.resolve(Target {
            class: target.class,
            span: target.span.shifted(at),
        });
        self.settle(target);
        let cell = self.access(target.class, target.span.lo, bytes);
        if target.span.step > 0 && self.unified.insert((target.class, target.span, bytes)) {
            for position in target.span.positions().skip(1) {
                let other = self.access(target.class, position, bytes);
                self.merge_cells(cell, other);
            }
        }
        cell
    }

    /// The one cell that stands for the bytes that an access of a scalar may meet.
    ///
    /// Where a description says what the bytes are, an index that could as well lead to fields of another kind is taken to lead to those of
    /// the access's own kind only. Elsewhere all offsets of the span are taken to be alike.
    pub(super) fn access_scalar(&mut self, target: Target, at: i64, scalar: Scalar) -> CellId {
        let bytes = scalar.bytes();
        match self.described_cell(target, at, scalar) {
            Some(cell) => cell,
            None => self.access_span(target, at, bytes),
        }
    }

    fn described_cell(&mut self, target: Target, at: i64, scalar: Scalar) -> Option<CellId> {
        let target = self.resolve(target);
        let (root, span) = (target.class, target.span.shifted(at));
        let node = self.node(root);
        let step = gcd(node.period, span.repeat);
        if !node.described || node.start != i64::MIN || span.repeat == 0 || step == node.period {
            return None;
        }
        let turns = node.period / step;
        let count = span.positions().count() as u64;
        if turns.saturating_mul(count) > MANY {
            return None;
        }
        let mut fitting: SmallVec<[CellId; 8]> = SmallVec::new();
        let mut others = false;
        for position in span.positions() {
            for turn in 0..turns {
                let offset = position.wrapping_add((turn * step) as i64);
                let (offset, _) = self.wrap(root, offset);
                let cell = self.node(root).fields.get(&offset).copied();
                let cell = cell.map(|cell| self.root_cell(cell));
                match cell.filter(|&cell| self.bytes(cell) == scalar.bytes()) {
                    Some(cell) if self.fits(cell, scalar) => fitting.push(cell),
                    _ => others = true,
                }
            }
        }
        let &first = fitting.first()?;
        if scalar == Scalar::Ptr {
            for &cell in &fitting[1..] {
                self.merge_cells(first, cell);
            }
        } else if scalar.is_int() {
            // Bytes that are only moved say nothing themselves: all that they may be must be the same.
            let float = self.cell(first).evidence.float;
            let alike = |&cell: &CellId| self.cell(cell).evidence.float == float;
            if others || !fitting.iter().all(alike) {
                return None;
            }
        }
        Some(first)
    }

    /// Whether a cell is known to be what an access of this type may meet.
    fn fits(&self, cell: CellId, scalar: Scalar) -> bool {
        let CellNode {
            parts, evidence, ..
        } = self.cell(cell);
        let known = parts.is_none() && evidence.contradiction.is_none();
        known
            && match scalar {
                Scalar::Ptr => evidence.pointer.is_some() && evidence.float.is_none(),
                Scalar::Int(_) => {
                    evidence.pointer.is_none()
                        && (evidence.float.is_some() != (evidence.integer == Integer::Certain))
                }
                float => evidence.float == Some(float) && evidence.pointer.is_none(),
            }
    }

    /// Adds the fields that lie within `length` bytes from an offset on, relative to it. Where they repeat and `length` is more than
    /// `long`, one turn stands for all.
    pub(super) fn fields_from(
        &self,
        root: ClassId,
        offset: i64,
        length: u64,
        long: u64,
        found: &mut BTreeSet<(u64, u64)>,
    ) {
        let node = self.node(root);
        let end = match node.period {
            0 => node.fields.last_key_value().map_or(0, |(&last, &cell)| {
                let past = last.saturating_add(self.bytes(cell) as i64);
                past.saturating_sub(offset).max(0) as u64
            }),
            every if length > long => {
                let before = node.start.saturating_sub(offset).max(0) as u64;
                before.saturating_add(every)
            }
            _ => length,
        };
        let end = end.min(length);
        let mut at = 0;
        while at < end {
            let (here, room) = self.wrap(root, offset.saturating_add(at as i64));
            let turn = room.min(end - at);
            let until = here.saturating_add(turn.min(FAR) as i64);
            let before = node.fields.range(..here).next_back();
            if let Some((&start, &cell)) = before
                && start + self.bytes(cell) as i64 > here
            {
                let rest = (start + self.bytes(cell) as i64).abs_diff(here);
                found.insert((at, rest));
            }
            for (&start, &cell) in node.fields.range(here..until) {
                found.insert((at + start.abs_diff(here), self.bytes(cell)));
            }
            at += turn;
        }
    }

    // ---- cells

    /// A cell of which nothing is known.
    pub(super) fn new_cell(&mut self, bytes: u64) -> CellId {
        let id = CellId(self.cells.len() as u32);
        self.cells.push(CellNode {
            parent: id,
            bytes,
            parts: None,
            evidence: Evidence::default(),
        });
        id
    }

    /// The cell that stands for this one.
    pub(super) fn find_cell(&mut self, cell: CellId) -> CellId {
        let mut root = cell;
        while self.cells[root.0 as usize].parent != root {
            root = self.cells[root.0 as usize].parent;
        }
        let mut at = cell;
        while at != root {
            at = std::mem::replace(&mut self.cells[at.0 as usize].parent, root);
        }
        root
    }

    /// As [`Graph::find_cell`], without making later searches shorter.
    pub(super) fn root_cell(&self, cell: CellId) -> CellId {
        let mut root = cell;
        while self.cells[root.0 as usize].parent != root {
            root = self.cells[root.0 as usize].parent;
        }
        root
    }

    pub(super) fn cell(&self, cell: CellId) -> &CellNode {
        &self.cells[cell.0 as usize]
    }

    fn bytes(&self, cell: CellId) -> u64 {
        self.cells[cell.0 as usize].bytes
    }

    /// Where a cell's bytes point, if they are a pointer.
    pub(super) fn pointer_of(&mut self, cell: CellId) -> Option<Target> {
        let root = self.find_cell(cell);
        self.cell(root).evidence.pointer
    }

    /// A cell that consists of two.
    pub(super) fn concatenate(&mut self, left: CellId, right: CellId) -> CellId {
        let bytes = self.bytes(left) + self.bytes(right);
        let cell = self.new_cell(bytes);
        self.cells[cell.0 as usize].parts = Some((left, right));
        cell
    }

    /// The first `at` bytes of a cell and the rest.
    pub(super) fn split(&mut self, cell: CellId, at: u64) -> (CellId, CellId) {
        let mut root = self.find_cell(cell);
        debug_assert!(at > 0 && at < self.bytes(root));
        let mut before: SmallVec<[CellId; 4]> = SmallVec::new();
        let mut after: SmallVec<[CellId; 4]> = SmallVec::new();
        let mut at = at;
        let (mut left, mut right) = loop {
            match self.cell(root).parts {
                None => break self.split_leaf(root, at),
                Some((left, right)) => {
                    let size = self.bytes(left);
                    if at == size {
                        break (left, right);
                    } else if at < size {
                        after.push(right);
                        root = self.find_cell(left);
                    } else {
                        before.push(left);
                        at -= size;
                        root = self.find_cell(right);
                    }
                }
            }
        };
        while let Some(piece) = before.pop() {
            left = self.concatenate(piece, left);
        }
        while let Some(piece) = after.pop() {
            right = self.concatenate(right, piece);
        }
        (left, right)
    }

    fn split_leaf(&mut self, root: CellId, at: u64) -> (CellId, CellId) {
        let evidence = self.cell(root).evidence;
        let mut inherited = Evidence {
            integer: evidence.integer,
            padding: evidence.padding,
            contradiction: evidence.contradiction,
            ..Evidence::default()
        };
        if let Some(float) = evidence.float {
            inherited.contradiction = Some(Contradiction::Torn(float));
        } else if evidence.pointer.is_some() {
            inherited.contradiction = Some(Contradiction::Torn(Scalar::Ptr));
        }
        let left = self.new_cell(at);
        let right = self.new_cell(self.bytes(root) - at);
        for part in [left, right] {
            self.cells[part.0 as usize].evidence = inherited;
        }
        let node = &mut self.cells[root.0 as usize];
        node.parts = Some((left, right));
        node.evidence = Evidence::default();
        self.version += 1;
        (left, right)
    }

    /// Some bytes of a cell.
    pub(super) fn part(&mut self, cell: CellId, from: u64, bytes: u64) -> CellId {
        let mut cell = cell;
        if from > 0 {
            cell = self.split(cell, from).1;
        }
        if bytes < self.bytes(cell) {
            cell = self.split(cell, bytes).0;
        }
        cell
    }

    /// States that two cells of the same size are the same.
    pub(super) fn merge_cells(&mut self, a: CellId, b: CellId) {
        self.tasks.push(Task::Cells(a, b));
        self.solve();
    }

    /// The pieces of a cell that are not split further.
    pub(super) fn leaves(&self, cell: CellId) -> SmallVec<[CellId; 4]> {
        let mut leaves = SmallVec::new();
        let mut stack: SmallVec<[CellId; 8]> = SmallVec::from_slice(&[cell]);
        while let Some(cell) = stack.pop() {
            let root = self.root_cell(cell);
            match self.cell(root).parts {
                None => leaves.push(root),
                Some((left, right)) => {
                    stack.push(right);
                    stack.push(left);
                }
            }
        }
        leaves
    }

    /// States that a cell's bytes are a float.
    pub(super) fn set_float(&mut self, cell: CellId, scalar: Scalar) {
        self.state(
            cell,
            scalar,
            Evidence {
                float: Some(scalar),
                ..Evidence::default()
            },
        );
    }

    /// States that a cell's bytes are a pointer to `target`.
    pub(super) fn set_pointer(&mut self, cell: CellId, target: Target) {
        self.state(
            cell,
            Scalar::Ptr,
            Evidence {
                pointer: Some(target),
                ..Evidence::default()
            },
        );
    }

    fn state(&mut self, cell: CellId, what: Scalar, evidence: Evidence) {
        let leaves = self.leaves(cell);
        if let [leaf] = leaves[..] {
            self.add_evidence(leaf, evidence);
        } else {
            for leaf in leaves {
                self.add_evidence(
                    leaf,
                    Evidence {
                        contradiction: Some(Contradiction::Torn(what)),
                        ..Evidence::default()
                    },
                );
            }
        }
        self.solve();
    }

    /// States that a cell's bytes are an integer.
    pub(super) fn set_integer(&mut self, cell: CellId, integer: Integer) {
        for leaf in self.leaves(cell) {
            self.add_evidence(
                leaf,
                Evidence {
                    integer,
                    ..Evidence::default()
                },
            );
        }
        self.solve();
    }

    /// States that a cell's bytes are nothing.
    pub(super) fn set_padding(&mut self, cell: CellId) {
        for leaf in self.leaves(cell) {
            self.add_evidence(
                leaf,
                Evidence {
                    padding: true,
                    ..Evidence::default()
                },
            );
        }
    }

    /// States that a cell's bytes are what `evidence` says.
    pub(super) fn add_evidence(&mut self, leaf: CellId, more: Evidence) {
        let root = self.find_cell(leaf);
        let mut evidence = self.cell(root).evidence;
        let mut changed = false;
        match (evidence.float, more.float) {
            (None, Some(_)) => {
                evidence.float = more.float;
                changed = true;
            }
            (Some(a), Some(b)) if a != b => {
                let (a, b) = (a.min(b), a.max(b));
                if evidence.contradiction.is_none() {
                    evidence.contradiction = Some(Contradiction::Floats(a, b));
                    changed = true;
                }
            }
            _ => {}
        }
        if more.integer > evidence.integer {
            evidence.integer = more.integer;
            changed = true;
        }
        if more.padding && !evidence.padding {
            evidence.padding = true;
            changed = true;
        }
        if evidence.contradiction.is_none() && more.contradiction.is_some() {
            evidence.contradiction = more.contradiction;
            changed = true;
        }
        if let Some(target) = more.pointer {
            self.grow_later(&mut evidence.pointer, &mut evidence.growth, target);
        }
        if changed {
            self.version += 1;
        }
        self.cells[root.0 as usize].evidence = evidence;
    }

    // ---- merging

    fn solve(&mut self) {
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Cells(a, b) => self.solve_cells(a, b),
                Task::Classes(a, b, shift) => self.solve_classes(a, b, shift),
            }
        }
    }

    fn solve_cells(&mut self, a: CellId, b: CellId) {
        let (a, b) = (self.find_cell(a), self.find_cell(b));
        if a == b {
            return;
        }
        // Cells of different sizes meet only where something has gone wrong before; the common bytes are merged.
        let (size_a, size_b) = (self.bytes(a), self.bytes(b));
        if size_a != size_b {
            debug_assert!(false, "cells of {size_a} and {size_b} bytes are merged");
            let (long, short) = if size_a > size_b { (a, b) } else { (b, a) };
            let (common, _) = self.split(long, size_a.min(size_b));
            self.tasks.push(Task::Cells(common, short));
            return;
        }
        // Only undivided cells count as news: divided ones are made anew by every access to several fields at once.
        match (self.cell(a).parts, self.cell(b).parts) {
            (None, None) => {
                self.version += 1;
                let evidence = self.cell(b).evidence;
                self.cells[b.0 as usize].parent = a;
                self.add_evidence(a, evidence);
            }
            (Some((left, right)), None) | (None, Some((left, right))) => {
                let (whole, leaf) = if self.cell(a).parts.is_some() {
                    (a, b)
                } else {
                    (b, a)
                };
                let (other_left, other_right) = self.split_leaf(leaf, self.bytes(left));
                self.cells[leaf.0 as usize].parent = whole;
                self.tasks.push(Task::Cells(left, other_left));
                self.tasks.push(Task::Cells(right, other_right));
            }
            (Some((left, right)), Some((other_left, other_right))) => {
                self.cells[b.0 as usize].parent = a;
                let (size, other) = (self.bytes(left), self.bytes(other_left));
                if size == other {
                    self.tasks.push(Task::Cells(left, other_left));
                    self.tasks.push(Task::Cells(right, other_right));
                } else if size < other {
                    let (first, second) = self.split(other_left, size);
                    let rest = self.concatenate(second, other_right);
                    self.tasks.push(Task::Cells(left, first));
                    self.tasks.push(Task::Cells(right, rest));
                } else {
                    let (first, second) = self.split(left, other);
                    let rest = self.concatenate(second, right);
                    self.tasks.push(Task::Cells(other_left, first));
                    self.tasks.push(Task::Cells(other_right, rest));
                }
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
        let (escapes, clobbered, unknown_origin) =
            (node.escapes, node.clobbered, node.unknown_origin);
        let described = node.described;
        let (start, every) = (node.start, node.period);
        let node = self.node_mut(big);
        node.escapes |= escapes;
        node.clobbered |= clobbered;
        node.unknown_origin |= unknown_origin;
        node.described |= described;
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

/// The offset of the same field in the first period, and how many bytes follow until the next turn, for fields that
/// repeat from `start` on.
pub(super) fn wrap(start: i64, repeat: u64, offset: i64) -> (i64, u64) {
    if repeat == 0 {
        return (offset, u64::MAX);
    }
    let turn = period(repeat);
    if start == i64::MIN {
        let at = offset.rem_euclid(turn);
        (at, (turn - at) as u64)
    } else if offset < start {
        (offset, start.abs_diff(offset))
    } else {
        let at = offset.wrapping_sub(start).rem_euclid(turn);
        (start + at, (turn - at) as u64)
    }
}
