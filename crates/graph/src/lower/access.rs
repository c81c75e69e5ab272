//! At which indices of its inputs a kernel reads to compute an element, in terms of the index of that element.

use super::Fusion;
use super::view::groups;
use crate::graph::{Graph, Op, OpData, Tensor};
use crate::opcode::Opcode;
use crate::payload::Payload;
use crate::types::Shape;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// A coordinate of an element that is read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Coordinate {
    /// That of the element that is computed, along this axis.
    Axis(usize),
    /// The only one that there is.
    Only,
    /// Any other.
    Other,
}

/// The coordinates of an element; none if nothing is known.
pub(crate) type At = Option<SmallVec<[Coordinate; 4]>>;

impl Coordinate {
    /// Those of the element that is computed.
    pub(crate) fn of(shape: &Shape) -> SmallVec<[Coordinate; 4]> {
        let axis = |(axis, &size): (usize, &usize)| match size {
            1 => Coordinate::Only,
            _ => Coordinate::Axis(axis),
        };
        shape.iter().enumerate().map(axis).collect()
    }
}

/// All tensors that are not inlined and read to compute an element of an operation's result, with where they are read.
pub(crate) fn accesses(graph: &Graph, fusion: &Fusion, op: Op) -> Vec<(Tensor, At)> {
    let at = Coordinate::of(&graph.ty(graph.ops[op].results[0]).shape);
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    follow(graph, fusion, op, &Some(at), &mut seen, &mut found);
    found
}

fn follow(
    graph: &Graph,
    fusion: &Fusion,
    op: Op,
    at: &At,
    seen: &mut FxHashSet<(Tensor, At)>,
    found: &mut Vec<(Tensor, At)>,
) {
    let data = &graph.ops[op];
    for (position, &operand) in data.operands.iter().enumerate() {
        let mut inner = at
            .as_ref()
            .and_then(|at| operand_at(graph, data, position, at));
        if let Some(inner) = &mut inner {
            for (coordinate, &size) in inner.iter_mut().zip(graph.ty(operand).shape.iter()) {
                if size == 1 {
                    *coordinate = Coordinate::Only;
                }
            }
        }
        if !seen.insert((operand, inner.clone())) {
            continue;
        }
        match graph.def_op(operand) {
            Some(op) if fusion.inlined.contains(operand) => {
                follow(graph, fusion, op, &inner, seen, found);
            }
            _ => found.push((operand, inner)),
        }
    }
}

/// Where an element of an operand is read for an element of the result.
fn operand_at(graph: &Graph, data: &OpData, position: usize, at: &[Coordinate]) -> At {
    use Coordinate::Other;
    let from = &graph.ty(data.operands[position]).shape;
    Some(match (data.opcode, &data.payload) {
        (Opcode::Elementwise | Opcode::Cast | Opcode::Detach, _) => at.into(),
        (Opcode::Reshape, _) => {
            let to = &graph.ty(data.results[0]).shape;
            let mut source = SmallVec::from_elem(Other, from.len());
            for (old, new) in groups(from, to) {
                // Where a group has one axis on either side, its coordinate is the same.
                let mut long_old = old.filter(|&axis| from[axis] > 1);
                let mut long_new = new.filter(|&axis| to[axis] > 1);
                if let (Some(axis), None, Some(same), None) = (
                    long_old.next(),
                    long_old.next(),
                    long_new.next(),
                    long_new.next(),
                ) {
                    source[axis] = at[same];
                }
            }
            source
        }
        (Opcode::Permute, Payload::Permutation(axes)) => {
            let mut source = SmallVec::from_elem(Other, from.len());
            for (&axis, &at) in axes.iter().zip(at) {
                source[axis] = at;
            }
            source
        }
        (Opcode::Broadcast, Payload::Broadcast(new)) => {
            let is_new = |axis: usize| new.iter().any(|&(other, _)| other == axis);
            let kept = (0..at.len()).filter(|&axis| !is_new(axis));
            kept.map(|axis| at[axis]).collect()
        }
        (Opcode::Slice, Payload::Slice(stretches)) => {
            let moved = at.iter().zip(stretches).map(|(&at, stretch)| {
                match stretch.start == 0 && stretch.step == 1 {
                    true => at,
                    false => Other,
                }
            });
            moved.collect()
        }
        (Opcode::Pad, Payload::Pad(paddings)) => {
            let moved = at.iter().zip(paddings).map(|(&at, padding)| {
                match padding.low == 0 && padding.between == 0 {
                    true => at,
                    false => Other,
                }
            });
            moved.collect()
        }
        (Opcode::Concat, Payload::Axis(axis)) => {
            let mut source: SmallVec<[Coordinate; 4]> = at.into();
            source[*axis] = Other;
            source
        }
        (Opcode::Reduce, Payload::Reduce(_, axes)) => {
            let mut kept = at.iter();
            let coordinate = |axis: usize| match axes.contains(&axis) {
                true => Some(Other),
                false => kept.next().copied(),
            };
            return (0..from.len()).map(coordinate).collect();
        }
        // Its first operand is copied before anything is added.
        (Opcode::ScatterAdd, _) if position == 0 => at.into(),
        _ => return None,
    })
}
