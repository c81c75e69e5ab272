//! `copy` and `move`: fields of source and destination are unified; the classes stay separate.

use super::super::graph::Target;
use super::super::span::gcd;
use super::Gather;
use ferrozyme_ir::{Scalar, Value};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Copies of more bytes than this are taken to be of any length where the fields repeat.
pub(in crate::objects) const LONG: u64 = 4096;

impl Gather<'_> {
    pub(super) fn copy(&mut self, b: usize, to: Value, from: Value, bytes: Value) {
        if let Some(to) = self.place_of(b, to) {
            self.writes(to);
        }
        let (Some(to), Some(from)) = (self.place_of(b, to), self.place_of(b, from)) else {
            return;
        };
        self.share_unions(to, from);
        let length = self.interval(b, bytes);
        let exact = length.as_point().is_some();
        let length = u64::try_from(length.max.max(0)).unwrap_or(u64::MAX);
        if length == 0 {
            return;
        }
        self.graph.settle(to);
        self.graph.settle(from);
        if length > LONG {
            self.repeat_alike(to, from, length);
            self.repeat_alike(from, to, length);
        }
        if exact {
            self.cover(to, length);
            self.cover(from, length);
        }
        let shifted = self.shift_within(to, from);
        if let Some((start, distance)) = shifted
            && length > LONG
        {
            self.graph.repeat(to.class, start, distance);
        }
        let mut known = self.count_fields(to, from);
        loop {
            self.link(to, from, length);
            let count = self.count_fields(to, from);
            if count <= known {
                break;
            }
            known = count;
            if self.graph.hurry {
                // Copies in a circle, each a bit further on: an end is not in sight. To take more fields for the same than must be
                // is never wrong, and a period puts an end to it.
                let period = gcd(self.spacing(to), self.spacing(from)).max(1);
                self.graph.repeat(to.class, to.span.lo, period);
                self.graph.repeat(from.class, from.span.lo, period);
            } else if shifted.is_none() {
                break;
            }
        }
    }

    /// Where any word may be something else at times, so it is where words are copied to.
    fn share_unions(&mut self, to: Target, from: Target) {
        let classes = [to, from].map(|place| self.graph.find(place.class).0);
        let unions = classes.map(|class| self.graph.node(class).union);
        let plain = classes.iter().any(|&class| self.graph.node(class).plain);
        if unions[0] != unions[1] && !plain {
            for class in classes {
                self.graph.node_mut(class).union = true;
            }
            self.graph.version += 1;
        }
    }

    /// What is copied is the same on both sides.
    fn link(&mut self, to: Target, from: Target, length: u64) {
        let mut fields = BTreeSet::new();
        self.fields_from(to, length, &mut fields);
        self.fields_from(from, length, &mut fields);
        for (offset, bytes) in fields {
            let bytes = bytes.min(length - offset);
            let there = self.graph.access_span(to, offset as i64, bytes);
            let here = self.graph.access_span(from, offset as i64, bytes);
            self.graph.merge_cells(there, here);
        }
    }

    /// Where memory is moved within itself, from where on and by how much: what is at one place is then, step by step, at all.
    fn shift_within(&mut self, to: Target, from: Target) -> Option<(i64, u64)> {
        let (to, from) = (self.graph.resolve(to), self.graph.resolve(from));
        let distance = to.span.lo.abs_diff(from.span.lo);
        (to.class == from.class && distance > 0).then_some((to.span.lo.min(from.span.lo), distance))
    }

    /// What all distances of the fields behind a place have in common.
    fn spacing(&mut self, place: Target) -> u64 {
        let place = self.graph.resolve(place);
        let node = self.graph.node(place.class);
        node.fields
            .range(place.span.lo..)
            .fold(node.period, |spacing, (offset, _)| {
                gcd(spacing, offset.abs_diff(place.span.lo))
            })
    }

    fn count_fields(&mut self, to: Target, from: Target) -> usize {
        [to, from]
            .into_iter()
            .map(|target| {
                let (class, _) = self.graph.find(target.class);
                self.graph.node(class).fields.len()
            })
            .sum()
    }

    /// `fill` says nothing about the bytes, except that they are there.
    pub(super) fn fill(&mut self, b: usize, to: Value, bytes: Value) {
        if let Some(to) = self.place_of(b, to) {
            self.writes(to);
            let length = self.interval(b, bytes);
            self.graph.settle(to);
            if let Some(length) = length.as_point() {
                // Where it ends, a field need not end.
                let length = u64::try_from(length).unwrap_or(0);
                let word = Scalar::Ptr.bytes();
                let length = if length > word {
                    length - length % word
                } else {
                    length
                };
                self.cover(to, length);
            }
        }
    }

    /// Makes fields of all bytes of a range, so that those of which nothing else is known are not forgotten. Where the fields of a
    /// class repeat, this is not needed: the whole period counts.
    fn cover(&mut self, place: Target, length: u64) {
        let place = self.graph.resolve(place);
        if self.graph.node(place.class).period > 0 || length == 0 || length > super::FAR {
            return;
        }
        let mut fields = BTreeSet::new();
        self.fields_from(place, length, &mut fields);
        let mut end = 0;
        fields.insert((length, 0));
        for (offset, bytes) in fields {
            if offset > end {
                self.graph.access_span(place, end as i64, offset - end);
            }
            end = end.max(offset + bytes);
        }
    }

    /// Where the fields of `from` repeat, those of `to` do so, too.
    fn repeat_alike(&mut self, to: Target, from: Target, length: u64) {
        let place = self.graph.resolve(from);
        let node = self.graph.node(place.class);
        let (start, period) = (node.start, node.period);
        let spread = gcd(place.span.step, place.span.repeat);
        if period == 0 {
            return;
        }
        let distance = if start == i64::MIN {
            0
        } else {
            start.saturating_sub(place.span.lo).max(0)
        };
        if (distance as u64) < length {
            let start = if to.span.both {
                i64::MIN
            } else {
                to.span.lo.saturating_add(distance)
            };
            self.graph.repeat(to.class, start, gcd(period, spread));
        }
    }

    /// The fields that begin within `length` bytes from a place on, relative to it; each once where they repeat and are many.
    fn fields_from(&mut self, place: Target, length: u64, fields: &mut BTreeSet<(u64, u64)>) {
        let place = self.graph.resolve(place);
        let positions: SmallVec<[i64; 4]> = place.span.positions().collect();
        for position in positions {
            self.graph
                .fields_from(place.class, position, length, LONG, fields);
        }
    }
}
