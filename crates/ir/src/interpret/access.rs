//! The operations on memory.

use super::datum::{Bits, Pointer};
use super::fault::FaultKind;
use super::memory::{Origin, check_alignment, is_word};
use super::promises::Touch;
use super::{Machine, Prepared, float};
use crate::function::{Function, Op, OpData, Payload, Value, ones};
use crate::opcode::Opcode;
use crate::types::{Scalar, Type};
use crate::view::OpView;
use cranelift_entity::EntityRef;

impl<'m> Machine<'m> {
    /// Carries out an operation on memory.
    pub(super) fn access(
        &mut self,
        code: &'m Function,
        prepared: &Prepared,
        base: usize,
        op: Op,
        data: &'m OpData,
    ) -> Result<(), FaultKind> {
        let address_of = |machine: &Self, address: Value| {
            machine
                .scalar(base, address, "an address")
                .map(|raw| raw as u64)
        };
        let align = alignment_of(data);
        match data.view() {
            OpView::Load { address, .. } => {
                let at = address_of(self, address)?;
                check_alignment(at, align)?;
                let result = data.results[0];
                let ty = prepared.types[result.index()];
                self.touch(at, ty.bytes(), Touch::Read)?;
                let bits = if is_word(ty) {
                    Bits::Scalar(u128::from(self.memory.load_word(at)?))
                } else {
                    self.memory.load(at, ty)?
                };
                self.define(code, prepared, base, result, bits)
            }
            OpView::Store { value, address, .. } => {
                let at = address_of(self, address)?;
                check_alignment(at, align)?;
                let ty = prepared.types[value.index()];
                self.touch(at, ty.bytes(), Touch::Write)?;
                match &self.slots[base + value.index()] {
                    Bits::Scalar(raw) if is_word(ty) => self.memory.store_word(at, *raw as u64),
                    bits => self.memory.store(at, ty, bits),
                }
            }
            OpView::Stack { size, .. } => {
                let bytes = self.size(base, size)?;
                let at = self.memory.stack_allocate(bytes, align, self.origin(op))?;
                self.stack.push(at);
                let bits = Bits::Scalar(u128::from(at.0));
                self.define(code, prepared, base, data.results[0], bits)
            }
            OpView::Alloc {
                size,
                zeroed,
                family,
                ..
            } => {
                let bytes = self.size(base, size)?;
                let origin = self.origin(op);
                let at = self
                    .memory
                    .heap_allocate_from(bytes, align, zeroed, family, origin)?;
                let bits = Bits::Scalar(u128::from(at.0));
                self.define(code, prepared, base, data.results[0], bits)
            }
            OpView::Free {
                address,
                size,
                family,
                ..
            } => {
                let at = Pointer(address_of(self, address)?);
                let all = self.memory.bytes_from(at).unwrap_or(0);
                self.touch(at.0, all, Touch::Write)?;
                if let Some(size) = size {
                    let bytes = self.size(base, size)?;
                    self.memory.check_release(at, bytes, align)?;
                }
                self.memory.heap_free(at, family)
            }
            OpView::Copy {
                destination,
                source,
                size,
                ..
            }
            | OpView::Move {
                destination,
                source,
                size,
                ..
            } => {
                let (to, from) = (address_of(self, destination)?, address_of(self, source)?);
                let bytes = self.size(base, size)?;
                self.copy_bytes(to, from, bytes, align, data.opcode == Opcode::Copy)
            }
            OpView::Fill {
                destination,
                byte,
                size,
                ..
            } => {
                let to = address_of(self, destination)?;
                let bytes = self.size(base, size)?;
                if bytes == 0 {
                    return Ok(());
                }
                check_alignment(to, align)?;
                self.touch(to, bytes, Touch::Write)?;
                let byte = self.slots[base + byte.index()].lane(0);
                self.memory.fill_bytes(to, byte.map(|raw| raw as u8), bytes)
            }
            OpView::AtomicAdd { address, value, .. } => {
                let at = address_of(self, address)?;
                check_alignment(at, align)?;
                let ty = prepared.types[value.index()];
                let old = self.add_at(at, ty, base + value.index())?;
                self.define(code, prepared, base, data.results[0], old)
            }
            OpView::Contract { .. } => self.contract(prepared, base, data, align),
            _ => unreachable!("{} does not touch memory", data.opcode),
        }
    }

    /// Copies bytes between places that may overlap unless they are `apart`.
    fn copy_bytes(
        &mut self,
        to: u64,
        from: u64,
        bytes: u64,
        align: u64,
        apart: bool,
    ) -> Result<(), FaultKind> {
        if bytes == 0 {
            return Ok(());
        }
        check_alignment(to, align)?;
        check_alignment(from, align)?;
        if apart && to != from && to.abs_diff(from) < bytes {
            return Err(FaultKind::OverlappingCopy {
                to: Pointer(to),
                from: Pointer(from),
                bytes,
            });
        }
        self.touch(from, bytes, Touch::Read)?;
        self.touch(to, bytes, Touch::Write)?;
        self.memory.move_bytes(to, from, bytes)
    }

    /// Adds the value of a slot to memory, and returns the old value.
    fn add_at(&mut self, at: u64, ty: Type, slot: usize) -> Result<Bits, FaultKind> {
        self.touch(at, ty.bytes(), Touch::Add)?;
        let old = self.memory.load(at, ty)?;
        let new = match (old.lane(0), self.slots[slot].lane(0)) {
            (Some(a), Some(b)) => Some(add(ty.scalar(), a, b)),
            _ => None,
        };
        self.memory.store(at, ty, &Bits::from_scalar(new))?;
        Ok(old)
    }

    /// A number of bytes.
    fn size(&self, base: usize, value: Value) -> Result<u64, FaultKind> {
        let bytes = self.scalar(base, value, "a size")? as u64 as i64;
        u64::try_from(bytes).map_err(|_| FaultKind::AbsurdSize { bytes })
    }

    fn origin(&self, op: Op) -> Origin {
        self.frames.last().map(|frame| (frame.function, op))
    }
}

fn add(scalar: Scalar, a: u128, b: u128) -> u128 {
    if scalar.is_float() {
        float::compute(Opcode::Fadd, scalar, [a, b, 0])
    } else {
        a.wrapping_add(b) & ones(scalar.bits())
    }
}

/// The alignment that an operation promises, in bytes.
fn alignment_of(data: &OpData) -> u64 {
    match &data.payload {
        Payload::Align(align)
        | Payload::Alloc { align, .. }
        | Payload::Free { align, .. }
        | Payload::Contract { align, .. } => align.bytes(),
        _ => 1,
    }
}
