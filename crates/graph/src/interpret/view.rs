//! Elements at other places: views, and indexing by tensors.

use super::{Array, round_to};
use crate::graph::OpData;
use crate::payload::Payload;
use crate::types::{Shape, TensorType};
use smallvec::SmallVec;

type Elements = Result<Vec<f64>, String>;
type Index = SmallVec<[usize; 4]>;

const DOES_NOT_VERIFY: &str = "the operation does not verify";

pub(crate) fn reshape(_: &OpData, operands: &[&Array], _: &TensorType) -> Elements {
    Ok(operands[0].elements.to_vec())
}

pub(crate) fn detach(_: &OpData, operands: &[&Array], _: &TensorType) -> Elements {
    Ok(operands[0].elements.to_vec())
}

/// Each element of the result is the one at `source` of its index.
fn pick(from: &Array, shape: &Shape, source: impl Fn(&[usize]) -> Index) -> Elements {
    Ok(shape
        .indices()
        .map(|index| from.at(&source(&index)))
        .collect())
}

pub(crate) fn permute(data: &OpData, operands: &[&Array], ty: &TensorType) -> Elements {
    let Payload::Permutation(axes) = &data.payload else {
        return Err(DOES_NOT_VERIFY.into());
    };
    pick(operands[0], &ty.shape, |index| {
        let mut source: Index = SmallVec::from_elem(0, index.len());
        for (&axis, &at) in axes.iter().zip(index) {
            source[axis] = at;
        }
        source
    })
}

pub(crate) fn broadcast(data: &OpData, operands: &[&Array], ty: &TensorType) -> Elements {
    let Payload::Broadcast(axes) = &data.payload else {
        return Err(DOES_NOT_VERIFY.into());
    };
    let is_new = |axis: usize| axes.iter().any(|&(new, _)| new == axis);
    pick(operands[0], &ty.shape, |index| {
        let kept = (0..index.len()).filter(|&axis| !is_new(axis));
        kept.map(|axis| index[axis]).collect()
    })
}

pub(crate) fn slice(data: &OpData, operands: &[&Array], ty: &TensorType) -> Elements {
    let Payload::Slice(stretches) = &data.payload else {
        return Err(DOES_NOT_VERIFY.into());
    };
    pick(operands[0], &ty.shape, |index| {
        let along = stretches.iter().zip(index);
        along
            .map(|(stretch, at)| stretch.start + at * stretch.step)
            .collect()
    })
}

pub(crate) fn pad(data: &OpData, operands: &[&Array], ty: &TensorType) -> Elements {
    let Payload::Pad(paddings) = &data.payload else {
        return Err(DOES_NOT_VERIFY.into());
    };
    let mut result = vec![0.0; ty.shape.count()];
    let strides = ty.shape.strides();
    for index in operands[0].ty.shape.indices() {
        let along = paddings.iter().zip(&index).zip(&strides);
        let at: usize = along
            .map(|((padding, at), stride)| (padding.low + at * (padding.between + 1)) * stride)
            .sum();
        result[at] = operands[0].at(&index);
    }
    Ok(result)
}

pub(crate) fn concat(data: &OpData, operands: &[&Array], ty: &TensorType) -> Elements {
    let Payload::Axis(axis) = data.payload else {
        return Err(DOES_NOT_VERIFY.into());
    };
    let mut result = Vec::with_capacity(ty.shape.count());
    for mut index in ty.shape.indices() {
        let mut part = 0;
        while index[axis] >= operands[part].ty.shape[axis] {
            index[axis] -= operands[part].ty.shape[axis];
            part += 1;
        }
        result.push(operands[part].at(&index));
    }
    Ok(result)
}

/// For an index of what is gathered, the index of the element.
fn gathered_from(
    from: &TensorType,
    indices: &Array,
    axis: usize,
    at: &[usize],
) -> Result<Index, String> {
    let behind = axis + indices.ty.shape.len();
    let chosen = indices.at(&at[axis..behind]);
    let size = from.shape[axis];
    if chosen < 0.0 || chosen >= size as f64 {
        return Err(format!(
            "index {chosen} is out of range of axis {axis} of {from}"
        ));
    }
    let mut source: Index = SmallVec::from_slice(&at[..axis]);
    source.push(chosen as usize);
    source.extend_from_slice(&at[behind..]);
    Ok(source)
}

pub(crate) fn gather(data: &OpData, operands: &[&Array], ty: &TensorType) -> Elements {
    let Payload::Axis(axis) = data.payload else {
        return Err(DOES_NOT_VERIFY.into());
    };
    let element = |at: Index| {
        let source = gathered_from(&operands[0].ty, operands[1], axis, &at)?;
        Ok(operands[0].at(&source))
    };
    ty.shape.indices().map(element).collect()
}

pub(crate) fn scatter_add(data: &OpData, operands: &[&Array], ty: &TensorType) -> Elements {
    let Payload::Axis(axis) = data.payload else {
        return Err(DOES_NOT_VERIFY.into());
    };
    let mut result = operands[0].elements.to_vec();
    for at in operands[2].ty.shape.indices() {
        let source = gathered_from(ty, operands[1], axis, &at)?;
        let position = operands[0].position(&source);
        result[position] = round_to(ty.element, result[position] + operands[2].at(&at));
    }
    Ok(result)
}
