//! Cells: bytes that always have the same meaning, their kinds, and how two cells are unified.

use super::{CellId, CellNode, Evidence, Graph, Integer, Target, Task};
use crate::objects::Contradiction;
use crate::objects::span::Span;
use ferrozyme_ir::Scalar;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

impl Graph {
    /// A cell of which nothing is known.
    pub(in crate::objects) fn new_cell(&mut self, bytes: u64) -> CellId {
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
    pub(in crate::objects) fn find_cell(&mut self, cell: CellId) -> CellId {
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
    pub(in crate::objects) fn root_cell(&self, cell: CellId) -> CellId {
        let mut root = cell;
        while self.cells[root.0 as usize].parent != root {
            root = self.cells[root.0 as usize].parent;
        }
        root
    }

    pub(in crate::objects) fn cell(&self, cell: CellId) -> &CellNode {
        &self.cells[cell.0 as usize]
    }

    pub(super) fn bytes(&self, cell: CellId) -> u64 {
        self.cells[cell.0 as usize].bytes
    }

    /// Where a cell's bytes point, if they are a pointer, and in one piece.
    pub(in crate::objects) fn pointer_of(&mut self, cell: CellId) -> Option<Target> {
        let root = self.find_cell(cell);
        let node = self.cell(root);
        node.evidence
            .pointer
            .filter(|_| node.bytes >= Scalar::Ptr.bytes())
    }

    /// Where a pointer made of a cell's bytes may point: to all that its parts are parts of pointers to.
    pub(in crate::objects) fn address_of(&mut self, cell: CellId) -> Option<Target> {
        let mut address: Option<Target> = None;
        for leaf in self.leaves(cell) {
            let leaf = self.find_cell(leaf);
            let Some(more) = self.cell(leaf).evidence.pointer else {
                continue;
            };
            let more = self.resolve(more);
            address = Some(match address {
                None => more,
                Some(known) => {
                    let known = self.resolve(known);
                    let mut joined = self.join(known, more);
                    // The halves of two addresses may make a third one.
                    if (known.class, known.span) != (more.class, more.span) {
                        joined.span = Span::ANY;
                    }
                    joined
                }
            });
        }
        address
    }

    /// A cell that consists of two.
    pub(in crate::objects) fn concatenate(&mut self, left: CellId, right: CellId) -> CellId {
        let bytes = self.bytes(left) + self.bytes(right);
        let cell = self.new_cell(bytes);
        self.cells[cell.0 as usize].parts = Some((left, right));
        cell
    }

    /// The first `at` bytes of a cell and the rest.
    pub(in crate::objects) fn split(&mut self, cell: CellId, at: u64) -> (CellId, CellId) {
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
        let inherited = self.evidence_of_parts(root);
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

    /// What is known of each part of a cell that is to be split.
    fn evidence_of_parts(&self, root: CellId) -> Evidence {
        let evidence = self.cell(root).evidence;
        // Whoever puts the parts of a pointer together again has the pointer: each part remembers where it leads.
        let mut inherited = Evidence {
            float: None,
            ..evidence
        };
        if let Some(float) = evidence.float {
            inherited.contradiction = Some(Contradiction::Torn(float));
        } else if evidence.pointer.is_some() {
            inherited.contradiction = Some(Contradiction::Torn(Scalar::Ptr));
        }
        inherited
    }

    /// Some bytes of a cell.
    pub(in crate::objects) fn part(&mut self, cell: CellId, from: u64, bytes: u64) -> CellId {
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
    pub(in crate::objects) fn merge_cells(&mut self, a: CellId, b: CellId) {
        self.tasks.push(Task::Cells(a, b));
        self.solve();
    }

    /// The pieces of a cell that are not split further.
    pub(in crate::objects) fn leaves(&self, cell: CellId) -> SmallVec<[CellId; 4]> {
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

    /// As [`Graph::leaves`], each once: a long cell repeats a short one many times.
    fn distinct_leaves(&self, cell: CellId) -> Vec<CellId> {
        let mut leaves = Vec::new();
        let mut seen = FxHashSet::default();
        let mut stack = vec![cell];
        while let Some(cell) = stack.pop() {
            let root = self.root_cell(cell);
            if !seen.insert(root) {
                continue;
            }
            match self.cell(root).parts {
                None => leaves.push(root),
                Some((left, right)) => stack.extend([right, left]),
            }
        }
        leaves
    }

    /// How many undivided cells the fields of all classes consist of, if each is counted as often as it occurs.
    pub(in crate::objects) fn count_leaves(&self) -> u64 {
        let mut counts: FxHashMap<CellId, u64> = FxHashMap::default();
        let mut total = 0u64;
        for &field in self.classes.iter().flat_map(|class| class.fields.values()) {
            let mut stack = vec![self.root_cell(field)];
            while let Some(&cell) = stack.last() {
                let Some((left, right)) = self.cell(cell).parts else {
                    counts.insert(cell, 1);
                    stack.pop();
                    continue;
                };
                let (left, right) = (self.root_cell(left), self.root_cell(right));
                match (counts.get(&left), counts.get(&right)) {
                    (Some(&a), Some(&b)) => {
                        counts.insert(cell, a.saturating_add(b));
                        stack.pop();
                    }
                    (None, _) => stack.push(left),
                    (_, None) => stack.push(right),
                }
            }
            total = total.saturating_add(counts[&self.root_cell(field)]);
        }
        total
    }

    /// A cell that consists of this one so many times. It is made of few others, however many these are.
    pub(super) fn repeated(&mut self, cell: CellId, times: u64) -> CellId {
        let mut whole: Option<CellId> = None;
        let mut power = cell;
        let mut rest = times;
        loop {
            if rest % 2 == 1 {
                whole = Some(match whole {
                    None => power,
                    Some(whole) => self.concatenate(power, whole),
                });
            }
            rest /= 2;
            if rest == 0 {
                return whole.unwrap_or(cell);
            }
            power = self.concatenate(power, power);
        }
    }

    /// States that a cell's bytes are a float.
    pub(in crate::objects) fn set_float(&mut self, cell: CellId, scalar: Scalar) {
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
    pub(in crate::objects) fn set_pointer(&mut self, cell: CellId, target: Target) {
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
                        pointer: evidence.pointer,
                        ..Evidence::default()
                    },
                );
            }
        }
        self.solve();
    }

    /// States that a cell's bytes are an integer.
    pub(in crate::objects) fn set_integer(&mut self, cell: CellId, integer: Integer) {
        for leaf in self.distinct_leaves(cell) {
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
    pub(in crate::objects) fn set_padding(&mut self, cell: CellId) {
        for leaf in self.distinct_leaves(cell) {
            self.add_evidence(
                leaf,
                Evidence {
                    padding: true,
                    ..Evidence::default()
                },
            );
        }
    }

    /// States that code that is not seen gets a cell's bytes, or gives them.
    pub(in crate::objects) fn set_foreign(&mut self, cell: CellId) {
        for leaf in self.distinct_leaves(cell) {
            self.add_evidence(
                leaf,
                Evidence {
                    foreign: true,
                    ..Evidence::default()
                },
            );
        }
    }

    /// States that a cell's bytes are what `evidence` says.
    pub(in crate::objects) fn add_evidence(&mut self, leaf: CellId, more: Evidence) {
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
        if more.foreign && !evidence.foreign {
            evidence.foreign = true;
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

    pub(super) fn solve_cells(&mut self, a: CellId, b: CellId) {
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
            (Some(_), None) | (None, Some(_)) => {
                let (whole, leaf) = if self.cell(a).parts.is_some() {
                    (a, b)
                } else {
                    (b, a)
                };
                let inherited = self.evidence_of_parts(leaf);
                self.version += 1;
                self.cells[leaf.0 as usize].parent = whole;
                if inherited.says_something() {
                    for part in self.distinct_leaves(whole) {
                        self.add_evidence(part, inherited);
                    }
                }
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
}
