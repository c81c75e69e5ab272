//! Copies and fills of memory.

use super::Reversible;
use crate::error::Error;
use crate::memory::{self, Cells};
use crate::shadows::Sweep;
use crate::step::{Copied, Step};
use crate::unions;
use ferrozyme_ir::{Constant, Op, OpView, Opcode, Value};
use ferrozyme_refusal::Refusal;
use smallvec::smallvec;

impl Sweep<'_, Reversible<'_>> {
    pub(super) fn visit_copy(&mut self, op: Op) -> Result<(), Error> {
        let data = self.function.ops[op].clone();
        self.keep(op);
        let (to, from, bytes) = (data.destination(), data.source(), data.size());
        if !self.has_shadow(to) || self.function.int_of(bytes) == Some(0) {
            return Ok(());
        }
        let to_shadow = self.shadow(op, to)?;
        let from_shadow = self.shadow(op, from)?;
        let from_shadow = self.shadows_of_source(op, from, smallvec![from_shadow])?[0];
        let bytes = self.bytes_to_write(op, (to, to_shadow), Some((from, from_shadow)), bytes);
        let overlapping = data.opcode == Opcode::Move;
        let active = self.mode.works.contains(op);
        if !active {
            // No float here has a derivative: the shadow's floats are zero, and the whole can be copied.
            let mut b = self.builder(op);
            b.op(
                data.opcode,
                &[to_shadow, from_shadow, bytes],
                data.payload,
                &[],
            );
            return Ok(());
        }
        let from_active = self.points_to_active(from);
        if self.is_union_behind(to) || self.is_union_behind(from) {
            let shadows = (to_shadow, from_shadow);
            return self.visit_copy_of_unions(op, shadows, bytes, from_active);
        }
        let cells = self.cells(op, to, Some(from))?;
        if cells.has_unions() {
            let shadows = (to_shadow, from_shadow);
            return self.visit_copy_of_unions(op, shadows, bytes, from_active);
        }
        let mut b = self.builder(op);
        memory::copy_other_fields(&mut b, &cells, to_shadow, from_shadow, bytes, overlapping);
        if cells.has_floats() {
            let constant = self.is_constant_behind(op, from, from_shadow);
            let step = Step::Copy {
                to: to_shadow,
                from: from_active.then_some(from_shadow),
                bytes,
                copied: Copied::Cells { cells, overlapping },
                constant,
            };
            self.mode.steps.insert(op, step);
        }
        Ok(())
    }

    /// A copy where floats share their place with something else: the shadow is copied in the same manner (see `unions.rs`).
    fn visit_copy_of_unions(
        &mut self,
        op: Op,
        (to_shadow, from_shadow): (Value, Value),
        bytes: Value,
        from_active: bool,
    ) -> Result<(), Error> {
        let data = self.function.ops[op].clone();
        let (to, from) = (data.destination(), data.source());
        self.refuse_other_floats(op, to)?;
        self.refuse_other_floats(op, from)?;
        let constant = self.is_constant_behind(op, from, from_shadow);
        let mut shape = None;
        if self.is_plain(to) || self.is_plain(from) {
            if from_active {
                // The reverse sweep gives back whole words only.
                unions::stop_if_in_parts(&mut self.builder(op), to_shadow, from_shadow, bytes);
            }
            if !self.is_plain(to) {
                self.refuse_given(op, to)?;
                let mut b = self.builder(op);
                unions::put_shapes_of_floats(&mut b, to, to_shadow, bytes);
            }
            if !self.is_plain(from) {
                self.refuse_given(op, from)?;
            }
        } else {
            self.refuse_given(op, to)?;
            self.refuse_given(op, from)?;
            let mut b = self.builder(op);
            for read in unions::check_parts(&mut b, to_shadow, to, from_shadow, bytes) {
                self.mode.unsteady.insert(read);
            }
            if from_active {
                let mut b = self.builder(op);
                let (copy, read) = unions::copy_of(&mut b, from_shadow, bytes);
                self.mode.unsteady.insert(read);
                shape = Some(copy);
            }
            let mut b = self.builder(op);
            let operands = [to_shadow, from_shadow, bytes];
            let copied = b.op(data.opcode, &operands, data.payload, &[]);
            self.mode.unsteady.insert(copied);
        }
        let step = Step::Copy {
            to: to_shadow,
            from: from_active.then_some(from_shadow),
            bytes,
            copied: Copied::Words { shape },
            constant,
        };
        self.mode.steps.insert(op, step);
        Ok(())
    }

    /// Whether the caller knows that any word behind a pointer may be a float at times, and at others something else.
    fn is_union_behind(&self, pointer: Value) -> bool {
        let class = self.class(pointer);
        class.is_some_and(|class| self.objects.is_union(class))
    }

    /// Where words are moved that may be anything, floats of other types than those of eight bytes would not be recognised.
    fn refuse_other_floats(&self, op: Op, pointer: Value) -> Result<(), Error> {
        let objects = self.objects;
        let other = objects
            .class_of(&self.function, pointer)
            .is_some_and(|(class, _)| {
                objects
                    .fields(class)
                    .any(|field| field.kind.may_be_other_float())
            });
        match other {
            true => Err(self.error(op, Refusal::MixedCopy)),
            false => Ok(()),
        }
    }

    pub(super) fn visit_fill(&mut self, op: Op) -> Result<(), Error> {
        let data = self.function.ops[op].clone();
        self.keep(op);
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
        let to_shadow = self.shadow(op, to)?;
        let bytes = self.bytes_to_write(op, (to, to_shadow), None, bytes);
        if !self.mode.works.contains(op) {
            let mut b = self.builder(op);
            b.op(Opcode::Fill, &[to_shadow, byte, bytes], data.payload, &[]);
            return Ok(());
        }
        if self.is_union_behind(to) {
            return self.visit_fill_of_unions(op, to_shadow, bytes);
        }
        let zero = matches!(self.function.constant_of(byte), Some(Constant::Bits(0)));
        let cells = if zero {
            self.cells_of(op, Cells::of_zeros(self.objects, &self.function, to))?
        } else {
            self.cells(op, to, None)?
        };
        if cells.has_unions() {
            return self.visit_fill_of_unions(op, to_shadow, bytes);
        }
        let mut b = self.builder(op);
        memory::fill_other_fields(&mut b, &cells, to_shadow, byte, bytes);
        if cells.has_floats() {
            let step = Step::Fill {
                to: to_shadow,
                bytes,
                cells: Some(cells),
            };
            self.mode.steps.insert(op, step);
        }
        Ok(())
    }

    /// Numbers are their own shadows.
    fn visit_fill_of_unions(&mut self, op: Op, shadow: Value, bytes: Value) -> Result<(), Error> {
        let data = self.function.ops[op].clone();
        let OpView::Fill {
            destination: to,
            byte,
            ..
        } = data.view()
        else {
            unreachable!("only fills are visited");
        };
        if self.is_plain(to) {
            return Err(self.error(op, Refusal::UnionFilled));
        }
        self.refuse_given(op, to)?;
        let mut b = self.builder(op);
        let filled = b.op(Opcode::Fill, &[shadow, byte, bytes], data.payload, &[]);
        self.mode.unsteady.insert(filled);
        let step = Step::Fill {
            to: shadow,
            bytes,
            cells: None,
        };
        self.mode.steps.insert(op, step);
        Ok(())
    }
}
