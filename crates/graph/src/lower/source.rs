//! Elements of constants, counters and random numbers.

use super::kernel::{Kernel, memory_type, value_type};
use crate::graph::OpData;
use crate::interpret::source::{MIX, STEP, significant_bits};
use crate::interpret::to_bits;
use crate::payload::{Literal, Payload};
use crate::types::{INDEX, TensorType};
use ferrozyme_ir::{Opcode, Scalar, Type, Value};

/// A number, or a load from constant memory.
pub(crate) fn constant(kernel: &mut Kernel<'_>, data: &OpData, index: &[Value]) -> Value {
    let Payload::Constant(literal, ty) = &data.payload else {
        unreachable!("the graph verifies")
    };
    match literal {
        Literal::Splat(value) => number(kernel, ty.element, *value),
        Literal::Dense(values) => {
            let bytes = memory_type(ty.element).bytes() as usize;
            let bytes_of = |value: &f64| {
                let raw = to_bits(ty.element, *value).to_le_bytes();
                raw.into_iter().take(bytes)
            };
            let global = kernel.global(values.iter().flat_map(bytes_of).collect());
            let address = kernel.b.global_address(global);
            kernel.load(address, ty, index)
        }
    }
}

/// An element that is known.
pub(super) fn number(kernel: &mut Kernel<'_>, element: Scalar, value: f64) -> Value {
    let ty = value_type(element);
    match element.is_float() {
        true => kernel.b.float(ty, value),
        false => kernel.b.function.int(ty, value as i128),
    }
}

/// The coordinate.
pub(crate) fn iota(kernel: &mut Kernel<'_>, data: &OpData, index: &[Value]) -> Value {
    let Payload::Iota(axis, ty) = &data.payload else {
        unreachable!("the graph verifies")
    };
    match ty.element {
        INDEX => kernel.b.cast(Opcode::TruncInt, index[*axis], Type::I32),
        float => kernel
            .b
            .cast(Opcode::Sitofp, index[*axis], value_type(float)),
    }
}

/// As `interpret/source.rs` computes it.
pub(crate) fn random(kernel: &mut Kernel<'_>, data: &OpData, index: &[Value]) -> Value {
    let Payload::Random(seed, TensorType { element, shape }) = &data.payload else {
        unreachable!("the graph verifies")
    };
    let counter = kernel.element(data.operands[0], &[]);
    let counter = kernel.b.cast(Opcode::Zext, counter, Type::I64);
    let seed = kernel.b.i64(*seed as i64);
    let state = number_of_sequence(kernel, seed, counter);
    let position = kernel.position(shape, index);
    let bits = number_of_sequence(kernel, state, position);
    let digits = significant_bits(*element);
    let surplus = kernel.b.i64(i64::from(64 - digits));
    let bits = kernel.b.binary(Opcode::Lshr, bits, surplus);
    let ty = value_type(*element);
    let whole = kernel.b.cast(Opcode::Uitofp, bits, ty);
    let unit = kernel.b.float(ty, 1.0 / (1u64 << digits) as f64);
    kernel.b.binary(Opcode::Fmul, whole, unit)
}

/// A number of the sequence of SplitMix64 that begins with a state.
fn number_of_sequence(kernel: &mut Kernel<'_>, state: Value, at: Value) -> Value {
    let b = &mut kernel.b;
    let (one, step) = (b.i64(1), b.i64(STEP as i64));
    let at = b.binary(Opcode::Add, at, one);
    let moved = b.binary(Opcode::Mul, at, step);
    let mut bits = b.binary(Opcode::Add, state, moved);
    for (shift, factor) in MIX {
        let shift = b.i64(i64::from(shift));
        let shifted = b.binary(Opcode::Lshr, bits, shift);
        bits = b.binary(Opcode::Xor, bits, shifted);
        if let Some(factor) = factor {
            let factor = b.i64(factor as i64);
            bits = b.binary(Opcode::Mul, bits, factor);
        }
    }
    bits
}
