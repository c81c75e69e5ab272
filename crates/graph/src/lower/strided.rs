//! Views as strides: where the elements of an inlined view are in the buffer of another tensor, if that can be said with a distance for each axis. Contractions read such views without a copy.

use super::view::groups;
use crate::graph::{Graph, Tensor};
use crate::opcode::Opcode;
use crate::payload::Payload;
use crate::types::Shape;
use smallvec::SmallVec;

/// A view of a buffer, counted in elements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Strided {
    /// The tensor with the buffer.
    pub(crate) base: Tensor,
    /// Where the first element is.
    pub(crate) offset: usize,
    /// The distance of neighbours along each axis.
    pub(crate) strides: SmallVec<[usize; 4]>,
}

/// The view that a tensor is of the buffer that it is read from.
pub(crate) fn strided(
    graph: &Graph,
    is_inlined: &dyn Fn(Tensor) -> bool,
    tensor: Tensor,
) -> Option<Strided> {
    let shape = &graph.ty(tensor).shape;
    if !is_inlined(tensor) {
        return Some(Strided {
            base: tensor,
            offset: 0,
            strides: shape.strides().into_iter().collect(),
        });
    }
    let data = &graph.ops[graph.def_op(tensor)?];
    let &[operand] = &data.operands[..] else {
        return None;
    };
    match data.opcode {
        Opcode::Reshape | Opcode::Permute | Opcode::Broadcast | Opcode::Slice => {}
        Opcode::Detach => return strided(graph, is_inlined, operand),
        _ => return None,
    }
    let mut view = strided(graph, is_inlined, operand)?;
    view.strides = match &data.payload {
        Payload::Permutation(axes) => axes.iter().map(|&axis| view.strides[axis]).collect(),
        Payload::Broadcast(new) => {
            let mut kept = view.strides.iter();
            let is_new = |axis: usize| new.iter().any(|&(other, _)| other == axis);
            let stride = |axis: usize| match is_new(axis) {
                true => Some(0),
                false => kept.next().copied(),
            };
            (0..shape.len()).map(stride).collect::<Option<_>>()?
        }
        Payload::Slice(stretches) => {
            let starts = stretches.iter().zip(&view.strides);
            view.offset += starts
                .map(|(stretch, stride)| stretch.start * stride)
                .sum::<usize>();
            let steps = stretches.iter().zip(&view.strides);
            steps
                .map(|(stretch, stride)| stretch.step * stride)
                .collect()
        }
        Payload::Type(_) => reshaped(&graph.ty(operand).shape, shape, &view.strides)?,
        _ => return None,
    };
    Some(view)
}

/// The strides of another shape; none if axes would be merged between whose elements there are others.
fn reshaped(from: &Shape, to: &Shape, strides: &[usize]) -> Option<SmallVec<[usize; 4]>> {
    let mut result = SmallVec::from_elem(0, to.len());
    for (old, new) in groups(from, to) {
        let mut long = old.filter(|&axis| from[axis] > 1).rev();
        let Some(last) = long.next() else {
            continue;
        };
        let mut next = strides[last] * from[last];
        for axis in long {
            if strides[axis] != next {
                return None;
            }
            next *= from[axis];
        }
        let mut stride = strides[last];
        for axis in new.rev() {
            result[axis] = stride;
            stride *= to[axis];
        }
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_merged_where_nothing_is_between() {
        let shape = |sizes: &[usize]| Shape::from(sizes);
        let contiguous = reshaped(&shape(&[2, 3, 4]), &shape(&[6, 2, 2]), &[12, 4, 1]);
        assert_eq!(contiguous.unwrap()[..], [4, 2, 1]);
        // Rows of which a part was taken.
        let parts = reshaped(&shape(&[2, 3, 2]), &shape(&[6, 2]), &[12, 4, 1]);
        assert_eq!(parts.unwrap()[..], [4, 1]);
        assert_eq!(reshaped(&shape(&[6, 2]), &shape(&[12]), &[4, 1]), None);
        // An axis of one element is in nobody's way.
        let single = reshaped(&shape(&[2, 1, 3]), &shape(&[2, 3]), &[9, 77, 1]);
        assert_eq!(single.unwrap()[..], [9, 1]);
    }
}
