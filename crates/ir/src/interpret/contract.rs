//! Contractions, one product after the other.

use super::datum::Bits;
use super::fault::FaultKind;
use super::memory::check_alignment;
use super::promises::Touch;
use super::{Machine, Pointer, Prepared, float};
use crate::contraction::{ContractionIndex, IndexClass, sum_type};
use crate::function::{OpData, float_from_bits, float_to_bits};
use crate::opcode::Opcode;
use crate::types::{Scalar, Type};
use cranelift_entity::EntityRef;
use rustc_hash::FxHashSet;

/// An index with its trip count and its strides in bytes; 0 where it does not count.
#[derive(Clone, Copy)]
struct Extent {
    class: IndexClass,
    count: u64,
    strides: [i64; 3],
}

impl Machine<'_> {
    /// Carries out a contraction whose elements have this alignment.
    pub(super) fn contract(
        &mut self,
        prepared: &Prepared,
        base: usize,
        data: &OpData,
        align: u64,
    ) -> Result<(), FaultKind> {
        let Some(contraction) = data.contraction() else {
            unreachable!("verified: a contraction has its operands");
        };
        let mut arrays = [0; 3];
        for (array, value) in arrays.iter_mut().zip(contraction.arrays) {
            *array = self.scalar(base, value, "an address")? as u64;
        }
        let factor = self.slots[base + contraction.factor.index()].lane(0);
        let ty = prepared.types[contraction.factor.index()];
        let wide = sum_type(ty).scalar();
        let factor = converted(ty.scalar(), wide, factor);
        let extents = contraction
            .indices
            .iter()
            .map(|index| self.extent(base, index))
            .collect::<Result<Vec<_>, _>>()?;
        let (sums, places): (Vec<Extent>, Vec<Extent>) = extents
            .into_iter()
            .partition(|extent| extent.class == IndexClass::Sum);
        let mut written = FxHashSet::default();
        let mut read = FxHashSet::default();
        each(&places, arrays, &mut |[to, left, right]| {
            let zero = float_to_bits(wide, 0.0);
            let mut sum = Some(zero);
            let mut terms = false;
            each(&sums, [to, left, right], &mut |[_, left, right]| {
                let a = self.element(left, ty, align)?;
                let b = self.element(right, ty, align)?;
                read.extend([left, right]);
                let [a, b] = [a, b].map(|factor| converted(ty.scalar(), wide, factor));
                let product = combine(Opcode::Fmul, wide, a, b);
                sum = combine(Opcode::Fadd, wide, sum, product);
                terms = true;
                Ok(())
            })?;
            let is_repeated = !written.insert(to);
            if is_repeated {
                return Err(overlapping(to));
            }
            if contraction.add && !terms {
                return Ok(());
            }
            let scaled = combine(Opcode::Fmul, wide, factor, sum);
            let result = match contraction.add {
                true => {
                    let old = self.element(to, ty, align)?;
                    let old = converted(ty.scalar(), wide, old);
                    combine(Opcode::Fadd, wide, old, scaled)
                }
                false => scaled,
            };
            let result = converted(wide, ty.scalar(), result);
            check_alignment(to, align)?;
            self.touch(to, ty.bytes(), Touch::Write)?;
            self.memory.store(to, ty, &Bits::from_scalar(result))
        })?;
        match written.into_iter().find(|to| read.contains(to)) {
            Some(to) => Err(overlapping(to)),
            None => Ok(()),
        }
    }

    fn extent(&self, base: usize, index: &ContractionIndex) -> Result<Extent, FaultKind> {
        let count = self.scalar(base, index.count, "a trip count")? as u64 as i64;
        let mut strides = [0; 3];
        for (stride, value) in strides.iter_mut().zip(index.strides) {
            if let Some(value) = value {
                *stride = self.scalar(base, value, "a stride")? as u64 as i64;
            }
        }
        Ok(Extent {
            class: index.class,
            count: u64::try_from(count).unwrap_or(0),
            strides,
        })
    }

    fn element(&mut self, at: u64, ty: Type, align: u64) -> Result<Option<u128>, FaultKind> {
        check_alignment(at, align)?;
        self.touch(at, ty.bytes(), Touch::Read)?;
        Ok(self.memory.load(at, ty)?.lane(0))
    }
}

fn overlapping(to: u64) -> FaultKind {
    FaultKind::OverlappingContraction { to: Pointer(to) }
}

fn combine(opcode: Opcode, scalar: Scalar, a: Option<u128>, b: Option<u128>) -> Option<u128> {
    Some(float::compute(opcode, scalar, [a?, b?, 0]))
}

/// A float as one of another type, rounded.
fn converted(from: Scalar, to: Scalar, bits: Option<u128>) -> Option<u128> {
    match from == to {
        true => bits,
        false => Some(float_to_bits(to, float_from_bits(from, bits?)?)),
    }
}

/// Visits the addresses of all combinations of indices, the last one fastest.
fn each(
    extents: &[Extent],
    arrays: [u64; 3],
    visit: &mut impl FnMut([u64; 3]) -> Result<(), FaultKind>,
) -> Result<(), FaultKind> {
    if extents.iter().any(|extent| extent.count == 0) {
        return Ok(());
    }
    let mut counters = vec![0; extents.len()];
    let mut at = arrays;
    loop {
        visit(at)?;
        let mut position = extents.len();
        loop {
            let Some(previous) = position.checked_sub(1) else {
                return Ok(());
            };
            position = previous;
            let extent = extents[position];
            counters[position] += 1;
            let wraps = counters[position] == extent.count;
            let steps = if wraps { 1 - extent.count as i64 } else { 1 };
            for (address, stride) in at.iter_mut().zip(extent.strides) {
                *address = address.wrapping_add_signed(stride.wrapping_mul(steps));
            }
            if !wraps {
                break;
            }
            counters[position] = 0;
        }
    }
}
