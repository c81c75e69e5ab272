//! Memory: what the primal does to it, its derivative does to each shadow.
//!
//! Floats of a shadow are tangents. Pointers there lead to shadows; integers are those of the primal, so that a shadow
//! structure has the shape of its primal. Derivative code never looks at them.

use super::sweep::Tangents;
use crate::error::Error;
use crate::memory::{self, Cells};
use crate::shadows::{Lanes, Sweep};
use crate::unions;
use ferrozyme_ir::{Alignment, Builder, Constant, IntPredicate, Op, OpView, Opcode, Type, Value};

impl Sweep<'_, Tangents<'_, '_>> {
    /// The tangent of a loaded float is loaded from the shadow, as is the shadow of a loaded pointer.
    pub(super) fn visit_load(&mut self, op: Op) -> Result<(), Error> {
        self.keep(op);
        let data = self.function.ops[op].clone();
        let (result, address) = (data.results[0], data.address());
        if !self.has_companions(result) {
            return Ok(());
        }
        if self.has_shadow(address) && self.is_union_of_others(result, address) {
            return Err(self.lost_shadow(op));
        }
        let shadows = self.load_companions(op)?;
        self.check_part(op, &shadows);
        Ok(())
    }

    /// What is stored to the shadow: tangents of floats (zeros, where they have none), shadows of pointers, integers as they are.
    pub(super) fn visit_store(&mut self, op: Op) -> Result<(), Error> {
        self.keep(op);
        let data = self.function.ops[op].clone();
        let (value, address) = (data.value(), data.address());
        let ty = self.function.ty(value);
        if !self.has_shadow(address) || (ty.is_float() && !self.points_to_active(address)) {
            return Ok(());
        }
        let parts = self.parts_stored(address, ty);
        let lanes = match self.is_number_among_unions(value, address) {
            true => {
                let tangent = unions::tangent_of_number(&mut self.builder(op), value);
                self.same_in_all_lanes(tangent)
            }
            false if self.is_own_shadow_among_unions(value, address) => {
                self.companions_of(op, value, &parts)?;
                // It may be a constant float.
                let mut b = self.builder(op);
                let number = b.cast(Opcode::Ptrtoint, value, Type::I64);
                let tangent = unions::tangent_of_number(&mut b, number);
                let tangent = b.cast(Opcode::Inttoptr, tangent, Type::PTR);
                self.same_in_all_lanes(tangent)
            }
            false => self.companions_of(op, value, &parts)?,
        };
        let shadows = self.shadows_to_follow(op, address)?;
        let shadows = self.shadows_to_write(op, (value, &lanes), (address, &shadows));
        let mut b = self.builder(op);
        for (&lane, &shadow) in lanes.iter().zip(&shadows) {
            b.op(Opcode::Store, &[lane, shadow], data.payload.clone(), &[]);
        }
        Ok(())
    }

    /// Whether a value is a number, and goes to memory in which other words are floats at times. Callees take all words there for such
    /// words: see `unions.rs`.
    fn is_number_among_unions(&self, value: Value, address: Value) -> bool {
        self.function.ty(value) == Type::I64
            && self.companions.get(value).is_none()
            && self.objects.is_number(&self.function, value)
            && self.is_in_union(address)
    }

    /// Whether a value is a pointer without a shadow, and goes to where floats are at other times.
    fn is_own_shadow_among_unions(&self, value: Value, address: Value) -> bool {
        self.function.ty(value) == Type::PTR
            && self.companions.get(value).is_none()
            && !self.has_shadow(value)
            && self.is_in_union(address)
    }

    /// Adds the tangent to the shadow; what was there is the tangent of the old value. Sums of integers have no part in this.
    pub(super) fn visit_atomic_add(&mut self, op: Op) -> Result<(), Error> {
        self.keep(op);
        let data = self.function.ops[op].clone();
        let (address, value, old) = (data.address(), data.value(), data.results[0]);
        let ty = self.function.ty(value);
        let wanted = self.companions.get(value).is_some() || self.is_active(old);
        if !ty.is_float() || !self.points_to_active(address) || !wanted {
            return Ok(());
        }
        let tangents = self.companions_of(op, value, &[])?;
        let shadows = self.shadows_to_follow(op, address)?;
        let shadows = self.shadows_to_write(op, (value, &tangents), (address, &shadows));
        let mut b = self.builder(op);
        let lanes: Lanes = shadows
            .iter()
            .zip(&tangents)
            .map(|(&shadow, &tangent)| {
                let operands = [shadow, tangent];
                b.value(Opcode::AtomicAdd, &operands, data.payload.clone(), ty)
            })
            .collect();
        if self.is_active(old) {
            self.set_companions(old, &lanes);
        }
        Ok(())
    }

    /// A shadow is as large as its primal and starts as zeros.
    pub(super) fn visit_allocation(&mut self, op: Op) -> Result<(), Error> {
        self.keep(op);
        if self.has_shadow(self.function.result(op)) {
            self.allocate_shadows(op);
        }
        Ok(())
    }

    /// Shadows are released with their primal.
    pub(super) fn visit_free(&mut self, op: Op) -> Result<(), Error> {
        self.keep(op);
        let data = self.function.ops[op].clone();
        let address = data.address();
        if !self.has_shadow(address) {
            return Ok(());
        }
        let shadows = self.shadows_to_follow(op, address)?;
        let is_apart = memory::has_shadow_apart(self.objects, &self.function, address);
        let mut b = self.builder(op);
        for shadow in shadows {
            let mut data = data.clone();
            *data.address_mut() = shadow;
            memory::release_shadow(&mut b, (address, shadow), is_apart, |b| {
                b.op(Opcode::Free, &data.operands, data.payload, &[]);
            });
        }
        Ok(())
    }

    /// Shadows are copied as their primals are. What comes from memory without a shadow has zero tangents.
    pub(super) fn visit_copy(&mut self, op: Op) -> Result<(), Error> {
        self.keep(op);
        let data = self.function.ops[op].clone();
        let (to, from, bytes) = (data.destination(), data.source(), data.size());
        if !self.has_shadow(to) {
            return Ok(());
        }
        let to_shadows = self.shadows_to_follow(op, to)?;
        if self.has_shadow(from) {
            let from_shadows = self.shadows_to_follow(op, from)?;
            let from_shadows = self.shadows_of_source(op, from, from_shadows)?;
            let cells = match self.may_be_constant(from) {
                true => Some(self.cells(op, to, Some(from))?),
                false => None,
            };
            for (&to_shadow, &shadow) in to_shadows.iter().zip(&from_shadows) {
                let from = (from, shadow);
                let bytes = self.bytes_to_write(op, (to, to_shadow), Some(from), bytes);
                if let Some(cells) = &cells {
                    self.copy_unless_constant(op, cells, to_shadow, from, bytes);
                    continue;
                }
                let operands = [to_shadow, shadow, bytes];
                let mut b = self.builder(op);
                b.op(data.opcode, &operands, data.payload.clone(), &[]);
            }
            return Ok(());
        }
        let cells = self.cells(op, to, Some(from))?;
        if cells.has_unions() {
            // Floats have zero tangents, and nobody looks at numbers in a shadow; but pointers would be lost.
            let leads_on = self
                .objects
                .class_of(&self.function, from)
                .is_some_and(|(class, _)| self.objects.pointees(class).next().is_some());
            if leads_on {
                return Err(self.lost_shadow(op));
            }
            self.fill_with_zeros(op, (to, &to_shadows), bytes);
            return Ok(());
        }
        for &shadow in &to_shadows {
            let bytes = self.bytes_to_write(op, (to, shadow), None, bytes);
            copy_without_floats(&mut self.builder(op), &cells, shadow, from, bytes);
        }
        Ok(())
    }

    /// Filled floats have zero tangents; the rest of a shadow is filled as its primal is.
    pub(super) fn visit_fill(&mut self, op: Op) -> Result<(), Error> {
        self.keep(op);
        let data = self.function.ops[op].clone();
        let OpView::Fill {
            destination: to,
            byte,
            size: bytes,
            ..
        } = data.view()
        else {
            unreachable!("only fills are visited here")
        };
        if !self.has_shadow(to) {
            return Ok(());
        }
        let shadows = self.shadows_to_follow(op, to)?;
        let zeros = self.function.constant_of(byte) == Some(&Constant::Bits(0));
        if zeros {
            for &shadow in &shadows {
                let bytes = self.bytes_to_write(op, (to, shadow), None, bytes);
                let mut b = self.builder(op);
                b.op(
                    Opcode::Fill,
                    &[shadow, byte, bytes],
                    data.payload.clone(),
                    &[],
                );
            }
            return Ok(());
        }
        let cells = self.cells(op, to, None)?;
        if cells.has_unions() {
            self.fill_with_zeros(op, (to, &shadows), bytes);
            return Ok(());
        }
        for &shadow in &shadows {
            let bytes = self.bytes_to_write(op, (to, shadow), None, bytes);
            let mut b = self.builder(op);
            memory::fill_other_fields(&mut b, &cells, shadow, byte, bytes);
            if cells.has_floats() {
                memory::zero_floats(&mut b, &cells, shadow, bytes);
            }
        }
        Ok(())
    }

    /// Whether an integer that may be anything is read from memory that code made which knows nothing of shadows.
    fn is_union_of_others(&self, value: Value, address: Value) -> bool {
        let of_others = self
            .objects
            .class_of(&self.function, address)
            .is_some_and(|(class, _)| self.objects.has_unknown_origin(class));
        of_others
            && (self.objects.union_of_value(&self.function, value).is_some()
                || self.objects.is_part_of_union(&self.function, value))
    }

    fn fill_with_zeros(&mut self, op: Op, (to, shadows): (Value, &[Value]), bytes: Value) {
        for &shadow in shadows {
            let bytes = self.bytes_to_write(op, (to, shadow), None, bytes);
            let mut b = self.builder(op);
            let zero = b.zero(Type::I8);
            b.fill(shadow, zero, bytes, Alignment::ONE);
        }
    }

    /// Copies a shadow, of which nothing but the floats is copied from constant memory: they are zero.
    fn copy_unless_constant(
        &mut self,
        op: Op,
        cells: &Cells,
        to_shadow: Value,
        (from, from_shadow): (Value, Value),
        bytes: Value,
    ) {
        let data = self.function.ops[op].clone();
        self.looks_at_addresses |= cells.has_unions();
        let mut b = self.builder(op);
        let constant = b.icmp(IntPredicate::Eq, from, from_shadow);
        unions::either(
            &mut b,
            constant,
            |b| match cells.has_unions() {
                true => unions::put_marks(b, to_shadow, bytes),
                false => copy_without_floats(b, cells, to_shadow, from, bytes),
            },
            |b| {
                let operands = [to_shadow, from_shadow, bytes];
                b.op(data.opcode, &operands, data.payload, &[]);
            },
        );
    }
}

/// Copies memory without derivatives to a shadow: its floats are zero there.
fn copy_without_floats(
    b: &mut Builder<'_>,
    cells: &Cells,
    shadow: Value,
    from: Value,
    bytes: Value,
) {
    // A shadow and a primal never overlap.
    memory::copy_other_fields(b, cells, shadow, from, bytes, false);
    if cells.has_floats() {
        memory::zero_floats(b, cells, shadow, bytes);
    }
}
