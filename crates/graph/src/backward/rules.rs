//! Derivative rules: from the adjoint of an operation's result, the adjoints of its operands. One rule per operation, named in its row.
//!
//! `x̄` is the adjoint of `x`, `r` the result. Rules compute what is needed only. Those of elementwise functions follow from the formulas in the Loop IR's table of mathematical functions.

use super::formula::FormulaWriter;
use crate::graph::{Graph, OpData, Tensor};
use crate::payload::{Indices, Payload, Reduction, Stretch};
use crate::types::{INDEX, Shape, TensorType};
use ferrozyme_ir::formula::{Known, Number};
use ferrozyme_ir::{Derivative, IntPredicate, Opcode as Loop};
use smallvec::{SmallVec, smallvec};

/// For each operand, what is added to its adjoint, if anything.
pub type Contributions = SmallVec<[Option<Tensor>; 3]>;

/// A rule: the operation, the adjoint of its one result, and which operands need an adjoint.
pub type Vjp = fn(&mut Graph, &OpData, Tensor, &[bool]) -> Contributions;

/// Rules are given operations that verify, so payloads are those of their operations.
const VERIFIED: &str = "a verified operation has the payload of its row";

/// Same elements: `x̄ = reshape r̄`.
pub(crate) fn reshape(g: &mut Graph, data: &OpData, adjoint: Tensor, _: &[bool]) -> Contributions {
    let shape = g.ty(data.operands[0]).shape.clone();
    smallvec![Some(g.reshape(adjoint, shape))]
}

/// The inverse permutation.
pub(crate) fn permute(g: &mut Graph, data: &OpData, adjoint: Tensor, _: &[bool]) -> Contributions {
    let Payload::Permutation(axes) = &data.payload else {
        unreachable!("{VERIFIED}")
    };
    smallvec![Some(g.permute(adjoint, &inverse(axes)))]
}

/// The permutation that undoes another.
pub(crate) fn inverse(axes: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; axes.len()];
    for (to, &from) in axes.iter().enumerate() {
        inverse[from] = to;
    }
    inverse
}

/// An element is used along all new axes: `x̄ = Σ r̄` over them.
pub(crate) fn broadcast(
    g: &mut Graph,
    data: &OpData,
    adjoint: Tensor,
    _: &[bool],
) -> Contributions {
    let Payload::Broadcast(axes) = &data.payload else {
        unreachable!("{VERIFIED}")
    };
    let axes: Vec<usize> = axes.iter().map(|&(axis, _)| axis).collect();
    smallvec![Some(g.sum(adjoint, &axes))]
}

/// Elements that are not taken have adjoint 0: `x̄ = pad r̄`.
pub(crate) fn slice(g: &mut Graph, data: &OpData, adjoint: Tensor, _: &[bool]) -> Contributions {
    let Payload::Slice(stretches) = &data.payload else {
        unreachable!("{VERIFIED}")
    };
    let sizes = g.ty(data.operands[0]).shape.clone();
    let axes = stretches.iter().zip(sizes.iter());
    let paddings: Vec<_> = axes.map(|(stretch, &size)| stretch.padding(size)).collect();
    smallvec![Some(g.pad(adjoint, &paddings))]
}

/// Nobody wants the adjoints of zeros: `x̄ = slice r̄`.
pub(crate) fn pad(g: &mut Graph, data: &OpData, adjoint: Tensor, _: &[bool]) -> Contributions {
    let Payload::Pad(paddings) = &data.payload else {
        unreachable!("{VERIFIED}")
    };
    let sizes = g.ty(data.operands[0]).shape.clone();
    let axes = paddings.iter().zip(sizes.iter());
    let stretches: Vec<_> = axes.map(|(padding, &size)| padding.stretch(size)).collect();
    smallvec![Some(g.slice(adjoint, &stretches))]
}

/// Each part has its part of the adjoint.
pub(crate) fn concat(
    g: &mut Graph,
    data: &OpData,
    adjoint: Tensor,
    needed: &[bool],
) -> Contributions {
    let Payload::Axis(axis) = data.payload else {
        unreachable!("{VERIFIED}")
    };
    let whole = g.ty(adjoint).shape.clone();
    let mut start = 0;
    let mut part = |(&part, &needed): (&Tensor, &bool)| {
        let size = g.ty(part).shape[axis];
        let mut stretches: Vec<Stretch> = whole.iter().map(|&size| Stretch::all(size)).collect();
        stretches[axis] = Stretch {
            start,
            end: start + size,
            step: 1,
        };
        start += size;
        needed.then(|| g.slice(adjoint, &stretches))
    };
    data.operands.iter().zip(needed).map(&mut part).collect()
}

/// An element may be taken several times: `x̄ = scatter_add 0, i, r̄`.
pub(crate) fn gather(g: &mut Graph, data: &OpData, adjoint: Tensor, _: &[bool]) -> Contributions {
    let Payload::Axis(axis) = data.payload else {
        unreachable!("{VERIFIED}")
    };
    let zeros = g.constant_like(data.operands[0], 0.0);
    let scattered = g.scatter_add(zeros, data.operands[1], adjoint, axis);
    smallvec![Some(scattered), None]
}

/// `r = x + (v at i)`: `x̄ = r̄`, `v̄ = gather r̄, i`.
pub(crate) fn scatter_add(
    g: &mut Graph,
    data: &OpData,
    adjoint: Tensor,
    needed: &[bool],
) -> Contributions {
    let Payload::Axis(axis) = data.payload else {
        unreachable!("{VERIFIED}")
    };
    let values = needed[2].then(|| g.gather(adjoint, data.operands[1], axis));
    smallvec![Some(adjoint), None, values]
}

/// `x̄ = r̄·∂r/∂x` with the formula of the function's row; `select` chooses adjoints as it chooses values.
pub(crate) fn elementwise(
    g: &mut Graph,
    data: &OpData,
    adjoint: Tensor,
    needed: &[bool],
) -> Contributions {
    let Payload::Function(function) = data.payload else {
        unreachable!("{VERIFIED}")
    };
    if function.opcode() == Loop::Select {
        let zeros = g.constant_like(adjoint, 0.0);
        let condition = data.operands[0];
        let then = needed[1].then(|| g.select(condition, adjoint, zeros));
        let otherwise = needed[2].then(|| g.select(condition, zeros, adjoint));
        return smallvec![None, then, otherwise];
    }
    let derivative = function.opcode().math().map(|row| row.derivative());
    let Some(Derivative::Partials(partials)) = derivative else {
        // Constant between its jumps.
        return SmallVec::from_elem(None, data.operands.len());
    };
    let constant = |&operand: &Tensor| {
        let value = g.splat_of(operand)?;
        Some(match g.ty(operand).element {
            INDEX => Number::Integer(value as i64),
            _ => Number::Float(value),
        })
    };
    let operands: SmallVec<[Option<Number>; 3]> = data.operands.iter().map(constant).collect();
    let known = Known {
        scalar: g.ty(adjoint).element,
        operands: &operands,
        no_nan: false,
    };
    let mut writer = FormulaWriter::new(data);
    let mut contributions = SmallVec::from_elem(None, data.operands.len());
    // One result; partial derivatives by the float operands, which come first.
    for (index, partial) in partials[0].iter().enumerate() {
        if needed[index] {
            contributions[index] = writer.times(g, adjoint, &partial.specialise(&known));
        }
    }
    contributions
}

/// `x̄` is `r̄` as another float; integers have no adjoint.
pub(crate) fn cast(g: &mut Graph, data: &OpData, adjoint: Tensor, _: &[bool]) -> Contributions {
    let element = g.ty(data.operands[0]).element;
    smallvec![Some(g.cast(adjoint, element))]
}

/// `sum`: `x̄ = broadcast r̄`. `max`, `min`: the adjoint goes to the first element that is the result, as [`Reduction`] says which one it is.
pub(crate) fn reduce(g: &mut Graph, data: &OpData, adjoint: Tensor, _: &[bool]) -> Contributions {
    let Payload::Reduce(reduction, axes) = &data.payload else {
        unreachable!("{VERIFIED}")
    };
    let tensor = data.operands[0];
    let sizes = g.ty(tensor).shape.clone();
    let new: Vec<(usize, usize)> = axes.iter().map(|&axis| (axis, sizes[axis])).collect();
    let spread = g.broadcast(adjoint, &new);
    let ranked = match reduction {
        Reduction::Sum => return smallvec![Some(spread)],
        Reduction::Min => g.neg(tensor),
        Reduction::Max | Reduction::Argmax => tensor,
    };
    let is_first = is_first_largest(g, ranked, axes);
    let zeros = g.constant_like(tensor, 0.0);
    smallvec![Some(g.select(is_first, spread, zeros))]
}

/// Whether an element is the first largest one over some axes.
fn is_first_largest(g: &mut Graph, tensor: Tensor, axes: &[usize]) -> Tensor {
    let sizes = g.ty(tensor).shape.clone();
    // The axes as one, behind all others.
    let kept: Vec<usize> = (0..sizes.len())
        .filter(|axis| !axes.contains(axis))
        .collect();
    let order: Vec<usize> = kept.iter().chain(axes).copied().collect();
    let count: usize = axes.iter().map(|&axis| sizes[axis]).product();
    let turned = g.permute(tensor, &order);
    let turned_shape = g.ty(turned).shape.clone();
    let rows: Shape = kept
        .iter()
        .map(|&axis| sizes[axis])
        .chain([count])
        .collect();
    let rows = g.reshape(turned, rows);
    let at = g.reduce(Reduction::Argmax, rows, &[kept.len()]);
    let at = g.broadcast(at, &[(kept.len(), count)]);
    let ty = TensorType::new(INDEX, g.ty(at).shape.clone());
    let position = g.iota(ty, kept.len());
    let is_first = g.compare_integers(IntPredicate::Eq, position, at);
    let is_first = g.reshape(is_first, turned_shape);
    g.permute(is_first, &inverse(&order))
}

/// `x̄ = contract r̄, y` and `ȳ = contract x, r̄`, with the same indices.
pub(crate) fn contract(
    g: &mut Graph,
    data: &OpData,
    adjoint: Tensor,
    needed: &[bool],
) -> Contributions {
    let Payload::Contract(Indices {
        left,
        right,
        result,
    }) = &data.payload
    else {
        unreachable!("{VERIFIED}")
    };
    const SAME: &str = "each index still counts in two tensors";
    let (x, y) = (data.operands[0], data.operands[1]);
    let for_left = needed[0].then(|| {
        let indices = Indices::new(result, right, left).expect(SAME);
        g.contract_by(indices, adjoint, y)
    });
    let for_right = needed[1].then(|| {
        let indices = Indices::new(left, result, right).expect(SAME);
        g.contract_by(indices, x, adjoint)
    });
    smallvec![for_left, for_right]
}
