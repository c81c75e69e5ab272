//! Elementwise functions, casts, reductions and contractions.

use super::kernel::{Index, Kernel, value_type};
use super::source::number;
use crate::graph::OpData;
use crate::payload::{Payload, Reduction};
use crate::types::{CONDITION, INDEX, Shape};
use ferrozyme_ir::{
    Contraction, ContractionIndex, Flags, FloatPredicate, IndexClass, IntPredicate, Opcode, Scalar,
    Type, Value,
};
use smallvec::smallvec;

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
    let first = match (reduction, from.element) {
        (Reduction::Sum, _) => 0.0,
        (Reduction::Min, INDEX) => f64::from(i32::MAX),
        (Reduction::Min, _) => f64::INFINITY,
        (_, INDEX) => f64::from(i32::MIN),
        _ => f64::NEG_INFINITY,
    };
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

/// `contract` of the Loop IR.
pub(crate) fn contract(kernel: &mut Kernel<'_>, data: &OpData, to: Value) {
    let Payload::Contract(indices) = &data.payload else {
        unreachable!("the graph verifies")
    };
    let graph = kernel.graph;
    let (left, right) = (data.operands[0], data.operands[1]);
    let tensors = [data.results[0], left, right];
    let ty = graph.ty(data.results[0]);
    let mut contraction = Contraction {
        arrays: [to, kernel.input(left), kernel.input(right)],
        factor: number(kernel, ty.element, 1.0),
        add: false,
        indices: Default::default(),
    };
    // Outermost first: batches, then indices of the result, then sums.
    let mut order: Vec<(IndexClass, u8)> = (0..indices.count())
        .filter_map(|index| Some((indices.class(index)?, index)))
        .collect();
    order.sort();
    for (class, index) in order {
        let mut count = 1;
        let mut strides = [None; 3];
        for ((axes, tensor), stride) in indices.arrays().into_iter().zip(tensors).zip(&mut strides)
        {
            if let Some(axis) = axes.iter().position(|&other| other == index) {
                let shape = &graph.ty(tensor).shape;
                count = shape[axis];
                let bytes = shape.strides()[axis] * ty.element.bytes() as usize;
                *stride = Some(kernel.b.i64(bytes as i64));
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
