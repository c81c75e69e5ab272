//! Tensors that come from nowhere: constants, counters and random numbers.

use super::Array;
use crate::graph::OpData;
use crate::payload::Payload;
use crate::types::TensorType;
use ferrozyme_ir::Scalar;

type Elements = Result<Vec<f64>, String>;

const DOES_NOT_VERIFY: &str = "the operation does not verify";

pub(crate) fn constant(data: &OpData, _: &[&Array], ty: &TensorType) -> Elements {
    let Payload::Constant(literal, _) = &data.payload else {
        return Err(DOES_NOT_VERIFY.into());
    };
    Ok((0..ty.shape.count())
        .map(|position| literal.at(position))
        .collect())
}

pub(crate) fn iota(data: &OpData, _: &[&Array], ty: &TensorType) -> Elements {
    let Payload::Iota(axis, _) = data.payload else {
        return Err(DOES_NOT_VERIFY.into());
    };
    Ok(ty.shape.indices().map(|index| index[axis] as f64).collect())
}

pub(crate) fn random(data: &OpData, operands: &[&Array], ty: &TensorType) -> Elements {
    let Payload::Random(seed, _) = data.payload else {
        return Err(DOES_NOT_VERIFY.into());
    };
    let counter = operands[0].scalar() as i32;
    Ok((0..ty.shape.count())
        .map(|position| random_unit(ty.element, seed, counter, position))
        .collect())
}

/// By how much the state of SplitMix64 (Steele, Lea and Flood, 2014) moves.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number in [0, 1), as many bits of it as the type has digits: number `position` of the sequence of SplitMix64 whose state is number `counter` of that of the seed.
fn random_unit(element: Scalar, seed: u64, counter: i32, position: usize) -> f64 {
    let number = |state: u64, at: u64| mix(state.wrapping_add(STEP.wrapping_mul(at + 1)));
    let state = number(seed, u64::from(counter as u32));
    let bits = number(state, position as u64);
    let digits = significant_bits(element);
    (bits >> (64 - digits)) as f64 / (1u64 << digits) as f64
}

/// The digits of a float, the hidden one among them.
pub(crate) fn significant_bits(element: Scalar) -> u32 {
    match element {
        Scalar::F16 => 11,
        Scalar::Bf16 => 8,
        Scalar::F32 => 24,
        _ => 53,
    }
}

/// How SplitMix64 mixes the bits of its state: each step is an exclusive or with the bits shifted right by so many, and a product.
pub(crate) const MIX: [(u32, Option<u64>); 3] = [
    (30, Some(0xbf58_476d_1ce4_e5b9)),
    (27, Some(0x94d0_49bb_1331_11eb)),
    (31, None),
];

fn mix(bits: u64) -> u64 {
    MIX.into_iter().fold(bits, |bits, (shift, factor)| {
        let bits = bits ^ (bits >> shift);
        factor.map_or(bits, |factor| bits.wrapping_mul(factor))
    })
}
