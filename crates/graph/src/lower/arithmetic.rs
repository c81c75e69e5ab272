//! Elementwise functions, casts, reductions and contractions.

use super::kernel::{Index, Kernel, value_type};
use super::source::number;
use super::sum::Sum;
use crate::graph::{Graph, OpData};
use crate::payload::{Payload, Reduction};
use crate::types::{CONDITION, INDEX, Shape, TensorType};
use ferrozyme_ir::{
    Contraction, ContractionIndex, Flags, FloatPredicate, IndexClass, IntPredicate, Opcode, Scalar,
    Type, Value,
};
use smallvec::{SmallVec, smallvec};

/// The function of the Loop IR.
pub(crate) fn elementwise(kernel: &mut Kernel<'_>, data: &OpData, index: &[Value]) -> Value {
    let Payload::Function(function) = data.payload else {
        unreachable!("the graph verifies")
    };
    let mut operands = Index::new();
    for &operand in &data.operands {
        operands.push(kernel.element(operand, index));
    }
    let ty = value_type(kernel.graph.ty(data.results[0]).element);
    kernel
        .b
        .value(function.opcode(), &operands, function.payload(), ty)
}

pub(crate) fn cast(kernel: &mut Kernel<'_>, data: &OpData, index: &[Value]) -> Value {
    let from = kernel.graph.ty(data.operands[0]).element;
    let to = kernel.graph.ty(data.results[0]).element;
    let value = kernel.element(data.operands[0], index);
    let ty = value_type(to);
    let b = &mut kernel.b;
    match (from, to) {
        _ if from == to => value,
        (INDEX, CONDITION) => {
            let zero = b.zero(Type::I32);
            b.icmp(IntPredicate::Ne, value, zero)
        }
        (_, CONDITION) => {
            let zero = b.zero(value_type(from));
            b.fcmp(FloatPredicate::Une, value, zero)
        }
        (CONDITION, INDEX) => b.cast(Opcode::Zext, value, ty),
        (CONDITION, _) => b.cast(Opcode::Uitofp, value, ty),
        (INDEX, _) => b.cast(Opcode::Sitofp, value, ty),
        (_, INDEX) => b.cast(Opcode::FptosiSat, value, ty),
        _ if from.bits() < to.bits() => b.cast(Opcode::Fpext, value, ty),
        _ if from.bits() > to.bits() => b.cast(Opcode::Fptrunc, value, ty),
        // The two short floats.
        _ => {
            let wide = b.cast(Opcode::Fpext, value, Type::F32);
            b.cast(Opcode::Fptrunc, wide, ty)
        }
    }
}

/// A loop over the axes that go away.
pub(crate) fn reduce(kernel: &mut Kernel<'_>, data: &OpData, index: &[Value]) -> Value {
    let Payload::Reduce(reduction, axes) = &data.payload else {
        unreachable!("the graph verifies")
    };
    let tensor = data.operands[0];
    let from = kernel.graph.ty(tensor).clone();
    let reduced: Shape = axes.iter().map(|&axis| from.shape[axis]).collect();
    let first = first_of(*reduction, from.element);
    let mut initial: Index = smallvec![number(kernel, from.element, first)];
    if *reduction == Reduction::Argmax {
        initial.push(kernel.b.zero(Type::I32));
    }
    let results = kernel.nest(&reduced, &initial, &mut |kernel, inner, carried| {
        let mut source = Index::new();
        let (mut kept, mut gone) = (index.iter(), inner.iter());
        for axis in 0..from.shape.len() {
            let coordinate = match axes.contains(&axis) {
                true => gone.next(),
                false => kept.next(),
            };
            source.push(*coordinate.expect("each axis is kept or goes away"));
        }
        let value = kernel.element(tensor, &source);
        combine(kernel, *reduction, from.element, carried, value, inner)
    });
    results[results.len() - 1]
}

/// The next values of a reduction. Sums may be added in any order; of equal elements the first counts.
fn combine(
    kernel: &mut Kernel<'_>,
    reduction: Reduction,
    element: Scalar,
    carried: &[Value],
    value: Value,
    at: &[Value],
) -> Index {
    let b = &mut kernel.b;
    let best = carried[0];
    let combined = match (reduction, element) {
        (Reduction::Sum, INDEX) => b.binary(Opcode::Add, best, value),
        (Reduction::Sum, _) => {
            let flags = std::mem::replace(&mut b.float_flags, Flags::REASSOC);
            let sum = b.binary(Opcode::Fadd, best, value);
            b.float_flags = flags;
            sum
        }
        (Reduction::Max, INDEX) => b.binary(Opcode::Smax, best, value),
        (Reduction::Min, INDEX) => b.binary(Opcode::Smin, best, value),
        // A tie of `fmaximum` goes to the first operand, one of `fminimum` to the second.
        (Reduction::Max, _) => b.binary(Opcode::Fmaximum, best, value),
        (Reduction::Min, _) => b.binary(Opcode::Fminimum, value, best),
        (Reduction::Argmax, _) => {
            let better = match element {
                INDEX => b.icmp(IntPredicate::Sgt, value, best),
                _ => {
                    // Greater, or a NaN; unless there is a NaN already.
                    let greater = b.fcmp(FloatPredicate::Ugt, value, best);
                    let number = b.fcmp(FloatPredicate::Ord, best, best);
                    b.binary(Opcode::And, greater, number)
                }
            };
            let position = b.cast(Opcode::TruncInt, at[0], Type::I32);
            let best = b.select(better, value, best);
            let position = b.select(better, position, carried[1]);
            return smallvec![best, position];
        }
    };
    smallvec![combined]
}

/// Whether a reduction is computed row by row: it is over rows whose elements are neighbours in memory.
pub(crate) fn sums_columns(graph: &Graph, data: &OpData) -> bool {
    let Payload::Reduce(Reduction::Sum | Reduction::Max | Reduction::Min, axes) = &data.payload
    else {
        return false;
    };
    let shape = &graph.ty(data.operands[0]).shape;
    // The last axis that has several elements stays.
    let last = (0..shape.len()).rev().find(|&axis| shape[axis] > 1);
    last.is_some_and(|axis| !axes.contains(&axis)) && axes.iter().any(|&axis| shape[axis] > 1)
}

/// A reduction over rows: the result is where values are combined, so that neighbours are computed side by side.
pub(crate) fn reduce_columns(kernel: &mut Kernel<'_>, data: &OpData, to: Value) {
    let Payload::Reduce(reduction, axes) = &data.payload else {
        unreachable!("the graph verifies")
    };
    let tensor = data.operands[0];
    let from = kernel.graph.ty(tensor).clone();
    let ty = kernel.graph.ty(data.results[0]).clone();
    let first = first_of(*reduction, from.element);
    kernel.for_each(&ty.shape, &mut |kernel, index| {
        let value = number(kernel, ty.element, first);
        kernel.store(value, to, &ty, index);
    });
    kernel.for_each(&from.shape, &mut |kernel, index| {
        let kept = (0..index.len()).filter(|axis| !axes.contains(axis));
        let target: Index = kept.map(|axis| index[axis]).collect();
        let value = kernel.element(tensor, index);
        let old = kernel.load(to, &ty, &target);
        let new = combine(kernel, *reduction, from.element, &[old], value, &[]);
        kernel.store(new[0], to, &ty, &target);
    });
}

/// The value that a reduction begins with.
fn first_of(reduction: Reduction, element: Scalar) -> f64 {
    match (reduction, element) {
        (Reduction::Sum, _) => 0.0,
        (Reduction::Min, INDEX) => f64::from(i32::MAX),
        (Reduction::Min, _) => f64::INFINITY,
        (_, INDEX) => f64::from(i32::MIN),
        _ => f64::NEG_INFINITY,
    }
}

/// A sum: terms that are computed element by element, to which contractions are added.
pub(crate) fn sum(kernel: &mut Kernel<'_>, sum: &Sum, ty: &TensorType, to: Value) {
    if !sum.elements.is_empty() {
        kernel.for_each(&ty.shape, &mut |kernel, index| {
            let mut total: Option<Value> = None;
            for &term in &sum.elements {
                let value = kernel.element(term, index);
                total = Some(match total {
                    Some(total) => kernel.b.binary(Opcode::Fadd, total, value),
                    None => value,
                });
            }
            let total = total.expect("there are terms");
            kernel.store(total, to, ty, index);
        });
    }
    let graph = kernel.graph;
    for (position, &op) in sum.contractions.iter().enumerate() {
        let add = position > 0 || !sum.elements.is_empty();
        contract_into(kernel, &graph.ops[op], to, add);
    }
}

/// `contract` of the Loop IR.
pub(crate) fn contract(kernel: &mut Kernel<'_>, data: &OpData, to: Value) {
    contract_into(kernel, data, to, false);
}

fn contract_into(kernel: &mut Kernel<'_>, data: &OpData, to: Value, add: bool) {
    let Payload::Contract(indices) = &data.payload else {
        unreachable!("the graph verifies")
    };
    let graph = kernel.graph;
    let ty = graph.ty(data.results[0]);
    let size = ty.element.bytes() as usize;
    let operands = [data.operands[0], data.operands[1]].map(|operand| kernel.strided(operand));
    let mut arrays = [to; 3];
    for (array, operand) in arrays[1..].iter_mut().zip(&operands) {
        let base = kernel.input(operand.base);
        *array = match operand.offset {
            0 => base,
            offset => kernel.b.offset_bytes(base, (offset * size) as i64),
        };
    }
    let strides_of: [SmallVec<[usize; 4]>; 3] = [
        ty.shape.strides().into_iter().collect(),
        operands[0].strides.clone(),
        operands[1].strides.clone(),
    ];
    let mut contraction = Contraction {
        arrays,
        factor: number(kernel, ty.element, 1.0),
        add,
        indices: Default::default(),
    };
    // Outermost first: batches, then indices of the result, then sums.
    let mut order: Vec<(IndexClass, u8)> = (0..indices.count())
        .filter_map(|index| Some((indices.class(index)?, index)))
        .collect();
    order.sort();
    let tensors = [data.results[0], data.operands[0], data.operands[1]];
    for (class, index) in order {
        let mut count = 1;
        let mut strides = [None; 3];
        for (position, axes) in indices.arrays().into_iter().enumerate() {
            if let Some(axis) = axes.iter().position(|&other| other == index) {
                count = graph.ty(tensors[position]).shape[axis];
                let bytes = strides_of[position][axis] * size;
                strides[position] = Some(kernel.b.i64(bytes as i64));
            }
        }
        contraction.indices.push(ContractionIndex {
            class,
            count: kernel.b.i64(count as i64),
            strides,
        });
    }
    kernel.b.contract(&contraction);
}
