//! Memory: addresses, loads, stores, stack slots, copies and fills.
//!
//! An aggregate in memory is read and written leaf by leaf.

use super::body::{At, Leaves};
use super::constant::unknown_type;
use super::error::{Result, unknown};
use ferrozyme_convention::signature::loop_type;
use ferrozyme_ir::{self as ir, Alignment, Flags, Opcode, Payload, Range, Scalar, Type};
use ferrozyme_llvm::{GepFlags, Opcode as Llvm, Place, Type as LlvmType, TypeKind, Value};
use smallvec::smallvec;

impl<'c> At<'_, '_, 'c, '_, '_> {
    pub(super) fn load(&mut self, instruction: Value<'c>) -> Result<Leaves> {
        let address = self.operand(instruction, 0)?;
        let align = u64::from(instruction.alignment());
        let mut places = Vec::new();
        self.leaf_places(instruction.ty(), 0, &mut places)?;
        let single = places.len() == 1;
        let mut values = Leaves::new();
        for (offset, ty) in places {
            let place = self.at_offset(address, offset);
            let mut builder = self.builder();
            let stored = in_memory(ty);
            let mut value = builder.load(stored, place, align_at(align, offset));
            if stored != ty {
                value = builder.cast(Opcode::Bitcast, value, ty);
            }
            values.push(value);
        }
        if single {
            let ranges = instruction.range_metadata(self.translator.importer.context);
            self.note_range(values[0], &ranges);
        }
        Ok(values)
    }

    pub(super) fn store(&mut self, instruction: Value<'c>) -> Result<Leaves> {
        let values = self.leaves(instruction.operand(0))?;
        let address = self.operand(instruction, 1)?;
        let align = u64::from(instruction.alignment());
        let mut places = Vec::new();
        self.leaf_places(instruction.operand(0).ty(), 0, &mut places)?;
        for ((offset, ty), mut value) in places.into_iter().zip(values) {
            let place = self.at_offset(address, offset);
            let mut builder = self.builder();
            let stored = in_memory(ty);
            if stored != ty {
                value = builder.cast(Opcode::Bitcast, value, stored);
            }
            builder.store(value, place, align_at(align, offset));
        }
        Ok(Leaves::new())
    }

    /// The leaves of a type in memory: at which offset, of which type.
    fn leaf_places(
        &self,
        of: LlvmType<'c>,
        offset: u64,
        places: &mut Vec<(u64, Type)>,
    ) -> Result<()> {
        let layout = &self.translator.importer.layout;
        match of.kind() {
            TypeKind::Struct => {
                for (index, field) in of.fields().into_iter().enumerate() {
                    let at = offset + layout.field_offset(of, index as u32);
                    self.leaf_places(field, at, places)?;
                }
            }
            TypeKind::Array => {
                let stride = layout.size(of.element());
                for index in 0..of.length() {
                    self.leaf_places(of.element(), offset + index * stride, places)?;
                }
            }
            _ => {
                let ty = loop_type(of).ok_or_else(|| unknown_type(of))?;
                let stored = in_memory(ty);
                if stored != ty
                    && (stored.scalar().bits() > 128 || !stored.scalar().bits().is_multiple_of(8))
                {
                    return Err(unknown_type(of));
                }
                places.push((offset, ty));
            }
        }
        Ok(())
    }

    /// The address some bytes behind another.
    fn at_offset(&mut self, address: ir::Value, offset: u64) -> ir::Value {
        if offset == 0 {
            return address;
        }
        let place = self.builder().offset_bytes(address, offset as i64);
        self.add_flags(place, Flags::INBOUNDS.union(Flags::NUW));
        place
    }

    /// Notes between which limits an integer lies, from LLVM's list of half-open ranges.
    fn note_range(&mut self, value: ir::Value, ranges: &[(i128, i128)]) {
        let &[(low, high)] = ranges else { return };
        let Scalar::Int(bits) = self.writer.function.ty(value).scalar() else {
            return;
        };
        // A range that passes the largest number is none of signed integers.
        let limit = 1i128 << (u32::from(bits).min(127) - 1);
        let (min, max) = (low, high - 1);
        if min <= max && min >= -limit && max < limit && !self.writer.function.ty(value).is_vector()
        {
            self.writer.function.values[value].range = Some(Range { min, max });
        }
    }

    pub(super) fn alloca(&mut self, instruction: Value<'c>) -> Result<Leaves> {
        let of = instruction.allocated_type();
        let size = self.translator.importer.layout.size(of);
        let count = self.operand(instruction, 0)?;
        let align = alignment(u64::from(instruction.alignment()));
        let mut builder = self.builder();
        let bytes = match builder.function.int_of(count) {
            Some(count) => {
                let bytes = (size as i128).wrapping_mul(count);
                builder.function.int(Type::I64, bytes)
            }
            None => {
                let size = builder.i64(size as i64);
                let count = to_word(&mut builder, count);
                builder.binary(Opcode::Mul, count, size)
            }
        };
        Ok(smallvec![builder.stack(bytes, align)])
    }

    /// `getelementptr`: the base, plus a constant, plus each index times the size of its element.
    pub(super) fn address(&mut self, instruction: Value<'c>) -> Result<Leaves> {
        if loop_type(instruction.ty()) != Some(Type::PTR) {
            return self.addresses(instruction);
        }
        let base = self.operand(instruction, 0)?;
        let given = instruction.gep_flags();
        let mut flags = Flags::NONE;
        if given.contains(GepFlags::INBOUNDS) {
            flags = flags.union(Flags::INBOUNDS);
        }
        let grows = given.contains(GepFlags::NUW);
        let mut steps = Vec::new();
        let constant = self.steps(instruction, &mut steps)?;
        let mut address = base;
        if constant != 0 {
            address = self.builder().offset_bytes(address, constant);
            let forward = grows || constant > 0;
            self.add_flags(address, with_growth(flags, forward));
        }
        for (index, scale) in steps {
            let forward = grows || (scale > 0 && is_non_negative(index, 4));
            let index = self.value(index)?;
            let mut builder = self.builder();
            let index = sign_extended(&mut builder, index);
            address = builder.offset(address, index, scale);
            self.add_flags(address, with_growth(flags, forward));
        }
        Ok(smallvec![address])
    }

    /// The indices of `getelementptr` that are not constant, with their scale; gives the sum of the others in bytes.
    fn steps(&self, instruction: Value<'c>, steps: &mut Vec<(Value<'c>, i64)>) -> Result<i64> {
        let layout = &self.translator.importer.layout;
        let mut of = instruction.gep_source_type();
        let mut constant: i64 = 0;
        for (position, index) in instruction.operands().into_iter().skip(1).enumerate() {
            let known = index.as_signed();
            if position > 0 && of.kind() == TypeKind::Struct {
                let field = known
                    .ok_or_else(|| unknown("an index into a structure that is not constant"))?;
                constant = constant.wrapping_add(layout.field_offset(of, field as u32) as i64);
                of = of.fields()[field as usize];
                continue;
            }
            if position > 0 {
                of = of.element();
            }
            let size = layout.size(of) as i64;
            match known {
                Some(known) => constant = constant.wrapping_add((known as i64).wrapping_mul(size)),
                None if size == 0 => {}
                None => steps.push((index, size)),
            }
        }
        Ok(constant)
    }

    /// A vector of addresses, lane by lane.
    fn addresses(&mut self, instruction: Value<'c>) -> Result<Leaves> {
        let ty = self.result_type(instruction)?;
        let mut steps = Vec::new();
        let constant = self.steps(instruction, &mut steps)?;
        let base = self.operand(instruction, 0)?;
        let mut indices = Vec::new();
        for (index, scale) in steps {
            indices.push((self.value(index)?, scale));
        }
        let mut builder = self.builder();
        let mut result = builder.function.undef(ty);
        for lane in 0..i64::from(ty.lanes()) {
            let mut address = extract(&mut builder, base, lane);
            if constant != 0 {
                address = builder.offset_bytes(address, constant);
            }
            for &(index, scale) in &indices {
                let index = extract(&mut builder, index, lane);
                let index = sign_extended(&mut builder, index);
                address = builder.offset(address, index, scale);
            }
            let place = builder.i64(lane);
            result = builder.value(Opcode::Insert, &[result, address, place], Payload::None, ty);
        }
        Ok(smallvec![result])
    }

    /// `memcpy`, `memmove` and `memset`.
    pub(super) fn copy_or_fill(&mut self, call: Value<'c>, opcode: Opcode) -> Result<Leaves> {
        let arguments = call.arguments();
        let to = self.value(arguments[0])?;
        let from = self.value(arguments[1])?;
        let bytes = self.value(arguments[2])?;
        let align_of = |index: u32| {
            call.attribute_value(Place::Parameter(index), "align")
                .unwrap_or(1)
        };
        let align = match opcode {
            Opcode::Fill => align_of(0),
            _ => align_of(0).min(align_of(1)),
        };
        let mut builder = self.builder();
        let bytes = to_word(&mut builder, bytes);
        builder.op(
            opcode,
            &[to, from, bytes],
            Payload::Align(alignment(align)),
            &[],
        );
        Ok(Leaves::new())
    }
}

/// As what a value stands in memory. A vector of bits or odd integers is packed there, lanes of the Loop IR are not.
fn in_memory(ty: Type) -> Type {
    let bits = ty.scalar().bits();
    let packed = u32::from(ty.lanes()) * bits;
    match u8::try_from(packed) {
        Ok(packed) if ty.is_vector() && (bits < 8 || !bits.is_power_of_two()) => {
            Type::scalar_of(Scalar::Int(packed))
        }
        _ => ty,
    }
}

fn with_growth(flags: Flags, forward: bool) -> Flags {
    if forward {
        flags.union(Flags::NUW)
    } else {
        flags
    }
}

/// One lane of a vector, or the value itself if it is none.
fn extract(builder: &mut ir::Builder<'_>, value: ir::Value, lane: i64) -> ir::Value {
    let ty = builder.ty(value);
    if !ty.is_vector() {
        return value;
    }
    let lane = builder.i64(lane);
    builder.value(
        Opcode::Extract,
        &[value, lane],
        Payload::None,
        ty.lane_type(),
    )
}

/// An alignment in bytes; one that makes no sense says nothing.
pub(super) fn alignment(bytes: u64) -> Alignment {
    Alignment::new(bytes).unwrap_or_default()
}

/// What an address is a multiple of, some bytes behind one that is a multiple of `align`.
fn align_at(align: u64, offset: u64) -> Alignment {
    let known = match offset {
        0 => align,
        _ => align.min(1 << offset.trailing_zeros()),
    };
    alignment(known)
}

/// A size of any width as an `i64`.
pub(super) fn to_word(builder: &mut ir::Builder<'_>, value: ir::Value) -> ir::Value {
    change_width(builder, value, Opcode::Zext)
}

/// An index of any width as an `i64`.
fn sign_extended(builder: &mut ir::Builder<'_>, value: ir::Value) -> ir::Value {
    change_width(builder, value, Opcode::Sext)
}

fn change_width(builder: &mut ir::Builder<'_>, value: ir::Value, wider: Opcode) -> ir::Value {
    match builder.ty(value).scalar().bits() {
        64 => value,
        bits if bits < 64 => builder.cast(wider, value, Type::I64),
        _ => builder.cast(Opcode::TruncInt, value, Type::I64),
    }
}

/// Whether an integer is not negative, as far as a few steps back show it.
fn is_non_negative(value: Value<'_>, steps: u32) -> bool {
    if let Some(constant) = value.as_signed() {
        return constant >= 0;
    }
    if steps == 0 || !value.is_instruction() {
        return false;
    }
    let operand = |index: u32| value.operand(index);
    match value.opcode() {
        Some(Llvm::ZExt) => true,
        Some(Llvm::LShr) => operand(1).as_signed().is_some_and(|by| by > 0),
        Some(Llvm::And) => {
            is_non_negative(operand(0), steps - 1) || is_non_negative(operand(1), steps - 1)
        }
        // A quotient is at most its dividend, and at most half of any number where the divisor is no 1; a remainder is less than its divisor.
        Some(Llvm::UDiv) => {
            operand(1).as_unsigned().is_some_and(|by| by > 1)
                || is_non_negative(operand(0), steps - 1)
        }
        Some(Llvm::URem) => is_non_negative(operand(1), steps - 1),
        Some(Llvm::SExt) => is_non_negative(operand(0), steps - 1),
        Some(Llvm::Add | Llvm::Mul) => {
            value.no_signed_wrap()
                && is_non_negative(operand(0), steps - 1)
                && is_non_negative(operand(1), steps - 1)
        }
        Some(Llvm::Shl) => value.no_signed_wrap() && is_non_negative(operand(0), steps - 1),
        _ => false,
    }
}
