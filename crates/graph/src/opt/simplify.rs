//! Algebraic rules: each replaces an operation by a tensor that is there already, or by a simpler operation.
//!
//! A rule is a function that looks at one operation and returns what replaces it. The rules of one kind of operation stand together.

use super::lower_precision::{rounded_factor, shows_rounded};
use super::rewrite::rewrite;
use crate::backward::rules::inverse;
use crate::graph::{Graph, Op, OpData, Tensor};
use crate::opcode::Opcode;
use crate::payload::{Function, Indices, Payload, Reduction, Stretch};
use cranelift_entity::SecondaryMap;
use ferrozyme_ir::{Opcode as Loop, Scalar};

/// See the file's head.
pub fn simplify(graph: &mut Graph) -> usize {
    let uses = count_uses(graph);
    rewrite(graph, &mut |graph, op| {
        let data = graph.ops[op].clone();
        let tensor = match data.opcode {
            Opcode::Elementwise => elementwise(graph, &data, &uses),
            Opcode::Reshape => reshape(graph, &data),
            Opcode::Permute => permute(graph, &data, &uses),
            Opcode::Broadcast => broadcast(graph, &data),
            Opcode::Slice => slice(graph, &data),
            Opcode::Pad => pad(&data),
            Opcode::Concat => (data.operands.len() == 1).then(|| data.operands[0]),
            Opcode::Cast => cast(graph, &data),
            Opcode::Reduce => reduce(graph, &data),
            Opcode::Contract => contract(graph, &data),
            _ => None,
        };
        tensor.map(|tensor| vec![tensor])
    })
}

fn count_uses(graph: &Graph) -> SecondaryMap<Tensor, u32> {
    let mut uses = SecondaryMap::new();
    graph.for_each_op(graph.body(), &mut |_, op| {
        for &operand in &graph.ops[op].operands {
            uses[operand] += 1;
        }
        for &region in &graph.ops[op].regions {
            for &result in &graph.regions[region].results {
                uses[result] += 1;
            }
        }
    });
    uses
}

/// The operation that makes a tensor, if it is of this kind.
fn made_by(graph: &Graph, tensor: Tensor, opcode: Opcode) -> Option<&OpData> {
    let op: Op = graph.def_op(tensor)?;
    Some(&graph.ops[op]).filter(|data| data.opcode == opcode)
}

/// `x + 0`, `0 + x`, `x − 0`, `x·1`, `1·x`, `x / 1` are `x`; `x·−1` is `−x`; `−−x` is `x`; `x + −y` is `x − y`. A choice between equal things, or by a constant, is no choice.
fn elementwise(
    graph: &mut Graph,
    data: &OpData,
    uses: &SecondaryMap<Tensor, u32>,
) -> Option<Tensor> {
    let Payload::Function(Function::Of(opcode)) = data.payload else {
        return None;
    };
    let operand = |index: usize| data.operands[index];
    let number = |index: usize| graph.splat_of(operand(index));
    let negated = |graph: &Graph, tensor: Tensor| {
        let inner = made_by(graph, tensor, Opcode::Elementwise)?;
        (inner.payload == Payload::Function(Function::Of(Loop::Fneg))).then(|| inner.operands[0])
    };
    match opcode {
        Loop::Fadd | Loop::Add if number(1) == Some(0.0) => Some(operand(0)),
        Loop::Fadd | Loop::Add if number(0) == Some(0.0) => Some(operand(1)),
        Loop::Fsub | Loop::Sub if number(1) == Some(0.0) => Some(operand(0)),
        Loop::Fmul | Loop::Mul | Loop::Fdiv if number(1) == Some(1.0) => Some(operand(0)),
        Loop::Fmul | Loop::Mul if number(0) == Some(1.0) => Some(operand(1)),
        Loop::Fmul | Loop::Fdiv if number(1) == Some(-1.0) => Some(graph.neg(operand(0))),
        Loop::Fmul if number(0) == Some(-1.0) => Some(graph.neg(operand(1))),
        Loop::Fneg => negated(graph, operand(0)),
        Loop::Fadd => {
            let (a, b) = (operand(0), operand(1));
            match (negated(graph, a), negated(graph, b)) {
                (_, Some(b)) => Some(graph.sub(a, b)),
                (Some(a), None) => Some(graph.sub(b, a)),
                (None, None) => {
                    sum_of_parts(graph, data, uses).or_else(|| sum_of_scattered(graph, data, uses))
                }
            }
        }
        Loop::Select if operand(1) == operand(2) => Some(operand(1)),
        Loop::Select => number(0).map(|holds| operand(if holds != 0.0 { 1 } else { 2 })),
        _ => None,
    }
}

/// A sum of tensors that are padded to parts of one axis, maybe with one that is not, is the `concat` of stretches where the same tensors are added up: the adjoint of operations on parts. Where that has a buffer, no element asks which parts it is in.
fn sum_of_parts(
    graph: &mut Graph,
    data: &OpData,
    uses: &SecondaryMap<Tensor, u32>,
) -> Option<Tensor> {
    const PARTS: usize = 64;
    let mut waiting = data.operands.to_vec();
    let mut terms: Vec<(usize, Tensor)> = Vec::new();
    let mut whole: Option<Tensor> = None;
    let mut along: Option<usize> = None;
    let mut is_padded = false;
    while let Some(tensor) = waiting.pop() {
        // Sums may be shared, and have more terms than operations.
        if waiting.len() + terms.len() > PARTS {
            return None;
        }
        if let Some(sum) = made_by(graph, tensor, Opcode::Elementwise)
            && sum.payload == Payload::Function(Function::Of(Loop::Fadd))
        {
            waiting.extend(&sum.operands);
        } else if let Some((axis, low, part)) = padded_part(graph, tensor) {
            if *along.get_or_insert(axis) != axis {
                return None;
            }
            is_padded = true;
            terms.push((low, part));
        } else if let Some(concat) = made_by(graph, tensor, Opcode::Concat)
            && let Payload::Axis(axis) = concat.payload
            && uses[tensor] <= 1
            && *along.get_or_insert(axis) == axis
        {
            // What this rule has made of a sum that goes on.
            let mut low = 0;
            for &part in &concat.operands {
                terms.push((low, part));
                low += graph.ty(part).shape[axis];
            }
        } else if whole.replace(tensor).is_some() {
            return None;
        }
    }
    let axis = along.filter(|_| is_padded && terms.len() > 1)?;
    terms.extend(whole.map(|tensor| (0, tensor)));
    let size = |graph: &Graph, tensor: Tensor| graph.ty(tensor).shape[axis];
    let mut ends = vec![0, size(graph, data.results[0])];
    for &(low, part) in &terms {
        ends.extend([low, low + size(graph, part)]);
    }
    ends.sort_unstable();
    ends.dedup();
    let covers = |graph: &Graph, &(low, part): &(usize, Tensor), start: usize| {
        (low..low + size(graph, part)).contains(&start)
    };
    // More stretches than terms are worth no more than the terms; one without any would be zero.
    let starts = &ends[..ends.len() - 1];
    let is_covered = |&start: &usize| terms.iter().any(|term| covers(graph, term, start));
    if starts.len() > terms.len() || !starts.iter().all(is_covered) {
        return None;
    }
    terms.sort_by_key(|&(low, part)| (low, part));
    let mut stretches = Vec::new();
    for stretch in ends.windows(2) {
        let mut sum: Option<Tensor> = None;
        for term in &terms {
            if covers(graph, term, stretch[0]) {
                let &(low, part) = term;
                let part = match (stretch[0] - low, stretch[1] - low) {
                    (0, end) if end == size(graph, part) => part,
                    (start, end) => graph.part(part, axis, start..end),
                };
                sum = Some(match sum {
                    Some(sum) => graph.add(sum, part),
                    None => part,
                });
            }
        }
        stretches.extend(sum);
    }
    Some(graph.concat(&stretches, axis))
}

/// What is padded along one axis to make a tensor, and how many zeros are before it.
fn padded_part(graph: &Graph, tensor: Tensor) -> Option<(usize, usize, Tensor)> {
    let pad = made_by(graph, tensor, Opcode::Pad)?;
    let Payload::Pad(paddings) = &pad.payload else {
        return None;
    };
    let mut padded = paddings.iter().enumerate();
    let mut padded = padded
        .by_ref()
        .filter(|(_, padding)| **padding != Default::default());
    let (axis, padding) = padded.next()?;
    let is_simple = padded.next().is_none() && padding.between == 0;
    is_simple.then_some((axis, padding.low, pad.operands[0]))
}

/// What is scattered over zeros that nobody else uses, and then added to a tensor, is scattered over the tensor.
fn sum_of_scattered(
    graph: &mut Graph,
    data: &OpData,
    uses: &SecondaryMap<Tensor, u32>,
) -> Option<Tensor> {
    for (scattered, other) in [(0, 1), (1, 0)] {
        let (scattered, other) = (data.operands[scattered], data.operands[other]);
        let Some(inner) = made_by(graph, scattered, Opcode::ScatterAdd) else {
            continue;
        };
        let Payload::Axis(axis) = inner.payload else {
            continue;
        };
        let (indices, values) = (inner.operands[1], inner.operands[2]);
        if uses[scattered] == 1 && graph.splat_of(inner.operands[0]) == Some(0.0) {
            return Some(graph.scatter_add(other, indices, values, axis));
        }
    }
    None
}

/// To the same shape; of another `reshape`.
fn reshape(graph: &mut Graph, data: &OpData) -> Option<Tensor> {
    let tensor = data.operands[0];
    let shape = graph.ty(data.results[0]).shape.clone();
    if graph.ty(tensor).shape == shape {
        return Some(tensor);
    }
    let inner = made_by(graph, tensor, Opcode::Reshape)?.operands[0];
    Some(graph.reshape(inner, shape))
}

/// That changes nothing; of another `permute`; of a contraction that nobody else uses, which gets the other order itself.
fn permute(graph: &mut Graph, data: &OpData, uses: &SecondaryMap<Tensor, u32>) -> Option<Tensor> {
    let Payload::Permutation(axes) = &data.payload else {
        return None;
    };
    let tensor = data.operands[0];
    if axes.iter().copied().eq(0..axes.len()) {
        return Some(tensor);
    }
    if let Some(inner) = made_by(graph, tensor, Opcode::Permute)
        && let Payload::Permutation(first) = &inner.payload
    {
        let (source, both): (Tensor, Vec<usize>) = (
            inner.operands[0],
            axes.iter().map(|&axis| first[axis]).collect(),
        );
        return Some(graph.permute(source, &both));
    }
    let inner = made_by(graph, tensor, Opcode::Contract)?;
    let Payload::Contract(indices) = &inner.payload else {
        return None;
    };
    if uses[tensor] != 1 {
        return None;
    }
    let result: Vec<u8> = axes.iter().map(|&axis| indices.result[axis]).collect();
    let indices = Indices::new(&indices.left, &indices.right, &result).ok()?;
    let operands = inner.operands.clone();
    Some(graph.contract_by(indices, operands[0], operands[1]))
}

/// Of another `broadcast`.
fn broadcast(graph: &mut Graph, data: &OpData) -> Option<Tensor> {
    let Payload::Broadcast(axes) = &data.payload else {
        return None;
    };
    let inner = made_by(graph, data.operands[0], Opcode::Broadcast)?;
    let Payload::Broadcast(first) = &inner.payload else {
        return None;
    };
    let source = inner.operands[0];
    // Where the axes of the first are in the result of the second.
    let is_new = |axis: usize| axes.iter().any(|&(new, _)| new == axis);
    let rank = graph.ty(data.results[0]).shape.len();
    let kept: Vec<usize> = (0..rank).filter(|&axis| !is_new(axis)).collect();
    let moved = first.iter().map(|&(axis, size)| (kept[axis], size));
    let mut all: Vec<(usize, usize)> = axes.iter().copied().chain(moved).collect();
    all.sort_unstable();
    Some(graph.broadcast(source, &all))
}

/// Of everything; of another `slice`.
fn slice(graph: &mut Graph, data: &OpData) -> Option<Tensor> {
    let Payload::Slice(stretches) = &data.payload else {
        return None;
    };
    let tensor = data.operands[0];
    if graph.ty(tensor).shape == graph.ty(data.results[0]).shape {
        return Some(tensor);
    }
    let inner = made_by(graph, tensor, Opcode::Slice)?;
    let Payload::Slice(first) = &inner.payload else {
        return None;
    };
    let both = first.iter().zip(stretches).map(|(first, second)| {
        let start = first.start + second.start * first.step;
        let step = first.step * second.step;
        Stretch {
            start,
            end: start + (second.count() - 1) * step + 1,
            step,
        }
    });
    let (source, both): (Tensor, Vec<Stretch>) = (inner.operands[0], both.collect());
    Some(graph.slice(source, &both))
}

/// By nothing.
fn pad(data: &OpData) -> Option<Tensor> {
    let Payload::Pad(paddings) = &data.payload else {
        return None;
    };
    let nothing = |padding: &crate::Padding| *padding == crate::Padding::default();
    paddings.iter().all(nothing).then(|| data.operands[0])
}

/// To the same type; back to the type that numbers were of before views of them.
fn cast(graph: &mut Graph, data: &OpData) -> Option<Tensor> {
    let tensor = data.operands[0];
    let element = graph.ty(data.results[0]).element;
    if graph.ty(tensor).element == element {
        return Some(tensor);
    }
    if shows_rounded(graph, tensor, element) {
        return Some(rounded_factor(graph, tensor, element));
    }
    let from = graph.ty(tensor).element;
    let is_shorter = from.is_float() && element.is_float() && element.bits() < from.bits();
    is_shorter.then(|| round_parts(graph, tensor, element))?
}

/// What is put together, maybe in another shape, of parts that are rounded before, so that the kernel goes through one after the other.
fn round_parts(graph: &mut Graph, tensor: Tensor, element: Scalar) -> Option<Tensor> {
    let reshaped = made_by(graph, tensor, Opcode::Reshape).map(|data| data.operands[0]);
    let concat = made_by(graph, reshaped.unwrap_or(tensor), Opcode::Concat)?.clone();
    let parts = concat.operands.iter();
    let parts: Vec<Tensor> = parts.map(|&part| graph.cast(part, element)).collect();
    let concat = graph.must(Opcode::Concat, &parts, concat.payload);
    let rounded = graph.ops[concat].results[0];
    let shape = graph.ty(tensor).shape.clone();
    Some(match reshaped {
        Some(_) => graph.reshape(rounded, shape),
        None => rounded,
    })
}

/// Over no axes; over axes of one element; a sum of a sum; a sum over axes that a `broadcast` has made, which is a multiple.
fn reduce(graph: &mut Graph, data: &OpData) -> Option<Tensor> {
    let Payload::Reduce(reduction, axes) = &data.payload else {
        return None;
    };
    let tensor = data.operands[0];
    let (from, to) = (graph.ty(tensor).clone(), graph.ty(data.results[0]).clone());
    if *reduction == Reduction::Argmax {
        return None;
    }
    if axes.is_empty() {
        return Some(tensor);
    }
    if from.shape.count() == to.shape.count() {
        return Some(graph.reshape(tensor, to.shape));
    }
    if *reduction != Reduction::Sum {
        return None;
    }
    if let Some(inner) = made_by(graph, tensor, Opcode::Reduce)
        && let Payload::Reduce(Reduction::Sum, first) = &inner.payload
    {
        let source = inner.operands[0];
        let rank = graph.ty(source).shape.len();
        let kept: Vec<usize> = (0..rank).filter(|axis| !first.contains(axis)).collect();
        let second = axes.iter().map(|&axis| kept[axis]);
        let mut all: Vec<usize> = first.iter().copied().chain(second).collect();
        all.sort_unstable();
        return Some(graph.sum(source, &all));
    }
    let inner = made_by(graph, tensor, Opcode::Broadcast)?;
    let Payload::Broadcast(new) = &inner.payload else {
        return None;
    };
    if !new.iter().map(|&(axis, _)| axis).eq(axes.iter().copied()) {
        return None;
    }
    let count: usize = new.iter().map(|&(_, size)| size).product();
    let source = inner.operands[0];
    Some(graph.scale(source, count as f64))
}

/// Of a `permute`: the indices are named in the other order.
fn contract(graph: &mut Graph, data: &OpData) -> Option<Tensor> {
    let Payload::Contract(indices) = &data.payload else {
        return None;
    };
    let turned = |operand: Tensor, named: &[u8]| -> Option<(Tensor, Vec<u8>)> {
        let inner = made_by(graph, operand, Opcode::Permute)?;
        let Payload::Permutation(axes) = &inner.payload else {
            return None;
        };
        let back = inverse(axes);
        let named = back.iter().map(|&axis| named[axis]).collect();
        Some((inner.operands[0], named))
    };
    let (left, right) = (data.operands[0], data.operands[1]);
    let same = |tensor: Tensor, named: &[u8]| (tensor, named.to_vec());
    let new_left = turned(left, &indices.left);
    let new_right = turned(right, &indices.right);
    if new_left.is_none() && new_right.is_none() {
        return None;
    }
    let (left, left_indices) = new_left.unwrap_or_else(|| same(left, &indices.left));
    let (right, right_indices) = new_right.unwrap_or_else(|| same(right, &indices.right));
    let indices = Indices::new(&left_indices, &right_indices, &indices.result).ok()?;
    Some(graph.contract_by(indices, left, right))
}
