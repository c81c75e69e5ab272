//! From addresses to cells: which cells of a class an access covers.

use super::{CellId, CellNode, ClassId, FAR, Graph, Integer, Target, Task};
use crate::objects::span::{gcd, period};
use ferrozyme_ir::Scalar;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// More places than this are not looked at one by one.
const MANY: u64 = 4096;

/// The offset of the same field in the first period, and how many bytes follow until the next turn, for fields that
/// repeat from `start` on.
pub(in crate::objects) fn wrap(start: i64, repeat: u64, offset: i64) -> (i64, u64) {
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

impl Graph {
    fn wrap(&self, root: ClassId, offset: i64) -> (i64, u64) {
        let node = self.node(root);
        wrap(node.start, node.period, offset)
    }

    /// The cell of these bytes; fields are made and split as needed.
    pub(in crate::objects) fn access(&mut self, class: ClassId, offset: i64, bytes: u64) -> CellId {
        let (root, shift) = self.find(class);
        self.access_root(root, offset.wrapping_add(shift), bytes)
    }

    pub(super) fn access_root(&mut self, root: ClassId, offset: i64, bytes: u64) -> CellId {
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
            let turn = self.node(root).period;
            let turns = (bytes - done).checked_div(turn).unwrap_or(0);
            if turns > 1 && room <= turn && self.node(root).start <= at {
                // What goes around many times is one turn, repeated.
                let mut around = SmallVec::new();
                self.pieces(root, at, room, &mut around);
                let first = at - (turn - room) as i64;
                if room < turn {
                    self.pieces(root, first, turn - room, &mut around);
                }
                let around = self.concatenate_all(around);
                pieces.push(self.repeated(around, turns));
                done += turns * turn;
            } else {
                let length = room.min(bytes - done);
                self.pieces(root, at, length, &mut pieces);
                done += length;
            }
        }
        self.concatenate_all(pieces)
    }

    fn concatenate_all(&mut self, mut pieces: SmallVec<[CellId; 4]>) -> CellId {
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
    pub(super) fn insert(&mut self, root: ClassId, offset: i64, cell: CellId) {
        let bytes = self.bytes(cell);
        let there = self.access_root(root, offset, bytes);
        self.tasks.push(Task::Cells(there, cell));
    }

    /// Makes all addresses of a target alike, as far as they repeat.
    pub(in crate::objects) fn settle(&mut self, target: Target) {
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
    pub(in crate::objects) fn access_span(
        &mut self,
        target: Target,
        at: i64,
        bytes: u64,
    ) -> CellId {
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
    pub(in crate::objects) fn access_scalar(
        &mut self,
        target: Target,
        at: i64,
        scalar: Scalar,
    ) -> CellId {
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
    pub(in crate::objects) fn fields_from(
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
}
