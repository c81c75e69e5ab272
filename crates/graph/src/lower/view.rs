//! Elements of views: those of the operand at other indices.

use super::kernel::{Index, Kernel, value_type};
use super::source::number;
use crate::graph::{OpData, Tensor};
use crate::payload::{Padding, Payload};
use crate::types::Shape;
use ferrozyme_ir::{IntPredicate, Opcode, Type, Value};

pub(crate) fn reshape(kernel: &mut Kernel<'_>, data: &OpData, index: &[Value]) -> Value {
    let graph = kernel.graph;
    let (from, to) = (
        &graph.ty(data.operands[0]).shape,
        &graph.ty(data.results[0]).shape,
    );
    let mut source = Index::new();
    for (old, new) in groups(from, to) {
        let sizes: Shape = new.clone().map(|axis| to[axis]).collect();
        let mut rest = kernel.position(&sizes, &index[new]);
        let sizes: Shape = old.clone().map(|axis| from[axis]).collect();
        let strides = sizes.strides();
        let last = sizes.iter().rposition(|&size| size > 1);
        for (axis, &stride) in strides.iter().enumerate() {
            if sizes[axis] == 1 {
                source.push(kernel.b.i64(0));
                continue;
            }
            source.push(kernel.divided(Opcode::Udiv, rest, stride));
            if Some(axis) != last {
                rest = kernel.divided(Opcode::Urem, rest, stride);
            }
        }
    }
    kernel.element(data.operands[0], &source)
}

pub(super) type Axes = std::ops::Range<usize>;

/// Groups of axes of two shapes that hold the same elements, as small as possible: only within a group are coordinates mixed.
pub(super) fn groups(from: &Shape, to: &Shape) -> Vec<(Axes, Axes)> {
    let mut groups = Vec::new();
    let (mut old, mut new) = (0, 0);
    while old < from.len() || new < to.len() {
        let (first_old, first_new) = (old, new);
        let (mut old_count, mut new_count) = (1, 1);
        loop {
            if old_count <= new_count && old < from.len() {
                old_count *= from[old];
                old += 1;
            } else if new < to.len() {
                new_count *= to[new];
                new += 1;
            } else {
                break;
            }
            if old_count == new_count && old > first_old && new > first_new {
                break;
            }
        }
        groups.push((first_old..old, first_new..new));
    }
    groups
}

pub(crate) fn permute(kernel: &mut Kernel<'_>, data: &OpData, index: &[Value]) -> Value {
    let Payload::Permutation(axes) = &data.payload else {
        unreachable!("the graph verifies")
    };
    let mut source = Index::from_slice(index);
    for (&axis, &at) in axes.iter().zip(index) {
        source[axis] = at;
    }
    kernel.element(data.operands[0], &source)
}

pub(crate) fn broadcast(kernel: &mut Kernel<'_>, data: &OpData, index: &[Value]) -> Value {
    let Payload::Broadcast(axes) = &data.payload else {
        unreachable!("the graph verifies")
    };
    let is_new = |axis: usize| axes.iter().any(|&(new, _)| new == axis);
    let kept = (0..index.len()).filter(|&axis| !is_new(axis));
    let source: Index = kept.map(|axis| index[axis]).collect();
    kernel.element(data.operands[0], &source)
}

pub(crate) fn slice(kernel: &mut Kernel<'_>, data: &OpData, index: &[Value]) -> Value {
    let Payload::Slice(stretches) = &data.payload else {
        unreachable!("the graph verifies")
    };
    let mut source = Index::new();
    for (&at, stretch) in index.iter().zip(stretches) {
        let start = kernel.b.i64(stretch.start as i64);
        let step = kernel.times(at, stretch.step);
        source.push(kernel.plus(start, step));
    }
    kernel.element(data.operands[0], &source)
}

pub(crate) fn pad(kernel: &mut Kernel<'_>, data: &OpData, index: &[Value]) -> Value {
    let Payload::Pad(paddings) = &data.payload else {
        unreachable!("the graph verifies")
    };
    let ty = kernel.graph.ty(data.operands[0]).clone();
    let mut source = Index::new();
    let mut inside: Option<Value> = None;
    for ((&at, padding), &size) in index.iter().zip(paddings).zip(ty.shape.iter()) {
        let (coordinate, condition) = unpadded(kernel, at, *padding, size);
        source.push(coordinate);
        inside = match (inside, condition) {
            (Some(a), Some(b)) => Some(kernel.b.binary(Opcode::And, a, b)),
            (a, b) => a.or(b),
        };
    }
    let operand = data.operands[0];
    match inside {
        None => kernel.element(operand, &source),
        Some(inside) => kernel.either(
            inside,
            value_type(ty.element),
            |kernel| kernel.element(operand, &source),
            |kernel| number(kernel, ty.element, 0.0),
        ),
    }
}

/// The coordinate before padding, and the condition that there is one.
fn unpadded(
    kernel: &mut Kernel<'_>,
    at: Value,
    padding: Padding,
    size: usize,
) -> (Value, Option<Value>) {
    if padding == Padding::default() {
        return (at, None);
    }
    let low = kernel.b.i64(-(padding.low as i64));
    let moved = kernel.plus(at, low);
    let step = padding.between + 1;
    // Before the first it is negative, which is a large unsigned number.
    let coordinate = kernel.divided(Opcode::Udiv, moved, step);
    let end = kernel.b.i64(size as i64);
    let mut inside = kernel.b.icmp(IntPredicate::Ult, coordinate, end);
    if step > 1 {
        let rest = kernel.divided(Opcode::Urem, moved, step);
        let zero = kernel.b.i64(0);
        let hit = kernel.b.icmp(IntPredicate::Eq, rest, zero);
        inside = kernel.b.binary(Opcode::And, inside, hit);
    }
    (coordinate, Some(inside))
}

pub(crate) fn concat(kernel: &mut Kernel<'_>, data: &OpData, index: &[Value]) -> Value {
    let Payload::Axis(axis) = data.payload else {
        unreachable!("the graph verifies")
    };
    concat_parts(kernel, &data.operands, axis, index)
}

/// One part after the other, each in loops of its own.
pub(super) fn concat_all(kernel: &mut Kernel<'_>, data: &OpData, to: Value) {
    let Payload::Axis(axis) = data.payload else {
        unreachable!("the graph verifies")
    };
    let graph = kernel.graph;
    let ty = graph.ty(data.results[0]);
    let mut start = 0;
    for &part in &data.operands {
        let shape = &graph.ty(part).shape;
        kernel.for_each(shape, &mut |kernel, index| {
            let value = kernel.element(part, index);
            let mut target = Index::from_slice(index);
            let first = kernel.b.i64(start as i64);
            target[axis] = kernel.plus(index[axis], first);
            kernel.store(value, to, ty, &target);
        });
        start += shape[axis];
    }
}

fn concat_parts(kernel: &mut Kernel<'_>, parts: &[Tensor], axis: usize, index: &[Value]) -> Value {
    let (&first, rest) = parts.split_first().expect("a part is left");
    if rest.is_empty() {
        return kernel.element(first, index);
    }
    let ty = kernel.graph.ty(first).clone();
    let size = kernel.b.i64(ty.shape[axis] as i64);
    let is_first = kernel.b.icmp(IntPredicate::Slt, index[axis], size);
    kernel.either(
        is_first,
        value_type(ty.element),
        |kernel| kernel.element(first, index),
        |kernel| {
            let back = kernel.b.i64(-(ty.shape[axis] as i64));
            let mut moved = Index::from_slice(index);
            moved[axis] = kernel.plus(index[axis], back);
            concat_parts(kernel, rest, axis, &moved)
        },
    )
}

pub(crate) fn detach(kernel: &mut Kernel<'_>, data: &OpData, index: &[Value]) -> Value {
    kernel.element(data.operands[0], index)
}

/// For an index of what is gathered, the index of the element, which is checked.
fn gathered_from(
    kernel: &mut Kernel<'_>,
    tensor: Tensor,
    indices: Tensor,
    axis: usize,
    at: &[Value],
) -> Index {
    let graph = kernel.graph;
    let behind = axis + graph.ty(indices).shape.len();
    let chosen = kernel.element(indices, &at[axis..behind]);
    let chosen = kernel.b.cast(Opcode::Sext, chosen, Type::I64);
    let size = graph.ty(tensor).shape[axis];
    let end = kernel.b.i64(size as i64);
    let beyond = kernel.b.icmp(IntPredicate::Uge, chosen, end);
    kernel.stop_if(beyond, "an index is out of range");
    let mut source = Index::from_slice(&at[..axis]);
    source.push(chosen);
    source.extend_from_slice(&at[behind..]);
    source
}

pub(crate) fn gather(kernel: &mut Kernel<'_>, data: &OpData, index: &[Value]) -> Value {
    let Payload::Axis(axis) = data.payload else {
        unreachable!("the graph verifies")
    };
    let source = gathered_from(kernel, data.operands[0], data.operands[1], axis, index);
    kernel.element(data.operands[0], &source)
}

/// A copy, to which the values are added.
pub(crate) fn scatter_add(kernel: &mut Kernel<'_>, data: &OpData, to: Value) {
    let Payload::Axis(axis) = data.payload else {
        unreachable!("the graph verifies")
    };
    let graph = kernel.graph;
    let &[tensor, indices, values] = &data.operands[..] else {
        unreachable!("the graph verifies")
    };
    let ty = graph.ty(tensor);
    if !kernel.is_at(tensor, to) {
        kernel.for_each(&ty.shape, &mut |kernel, index| {
            let value = kernel.element(tensor, index);
            kernel.store(value, to, ty, index);
        });
    }
    kernel.for_each(&graph.ty(values).shape, &mut |kernel, index| {
        let target = gathered_from(kernel, tensor, indices, axis, index);
        let value = kernel.element(values, index);
        let old = kernel.load(to, ty, &target);
        let new = kernel.b.binary(Opcode::Fadd, old, value);
        kernel.store(new, to, ty, &target);
    });
}
