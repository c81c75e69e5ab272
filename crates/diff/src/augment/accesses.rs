//! Loads, stores and atomic additions.

use super::Reversible;
use crate::error::Error;
use crate::objects::{Kind, ValueKind};
use crate::rules;
use crate::shadows::Sweep;
use crate::step::{Step, Stored};
use crate::unions;
use ferrozyme_ir::{Constant, Op, Opcode, Type, Value};
use ferrozyme_refusal::Refusal;

impl Sweep<'_, Reversible<'_>> {
    pub(super) fn visit_load(&mut self, op: Op) -> Result<(), Error> {
        let data = self.function.ops[op].clone();
        self.keep(op);
        let result = data.results[0];
        let ty = self.function.ty(result);
        // What is read as a float is one, whatever the shadow says.
        let union = ty != Type::F64 && self.meets_union(op, data.address(), ty.bytes())?;
        if self.is_plain(data.address()) && self.is_union(result) {
            // A float for certain.
            let shape = unions::shape_of_float(&mut self.builder(op), result);
            self.set_companions(result, &[shape]);
        } else if self.has_companions(result) {
            self.load_companions(op)?;
            if union && let Some(shape) = self.shadow_of(result) {
                let (load, _) = self.function.def_op(shape).expect("just made");
                self.mode.unsteady.insert(load);
            }
        }
        if self.activities.is_part(result) {
            return self.check_part(op);
        }
        if self.mode.works.contains(op) {
            let shadow = self.shadow(op, data.address())?;
            let shadow = self.shadow_to_add_to(op, data.address(), shadow);
            let shape = self.shadow_of(result);
            let shape = shape.filter(|_| self.is_union(result));
            self.mode.steps.insert(op, Step::Load { shadow, shape });
        }
        Ok(())
    }

    /// A part of a word must be part of a number, or of an address if it is only moved: then its shadow goes the same way.
    fn check_part(&mut self, op: Op) -> Result<(), Error> {
        let data = self.function.ops[op].clone();
        let (result, address) = (data.results[0], data.address());
        let is_moved = !self.mode.calculated.contains(&result);
        let shadow = self.shadow(op, address)?;
        let mut b = self.builder(op);
        let ty = b.ty(result);
        let found = b.value(Opcode::Load, &[shadow], data.payload, ty);
        match is_moved {
            true => unions::check_no_part_of_float(&mut b, result, found),
            false => unions::check_number(&mut b, result, found),
        }
        let (load, _) = self.function.def_op(found).expect("just made");
        self.mode.unsteady.insert(load);
        Ok(())
    }

    pub(super) fn visit_store(&mut self, op: Op) -> Result<(), Error> {
        let data = self.function.ops[op].clone();
        self.keep(op);
        let (value, address) = (data.value(), data.address());
        if !self.has_shadow(address) {
            return Ok(());
        }
        let shadow = self.shadow(op, address)?;
        let ty = self.function.ty(value);
        let what = self.stored_kind(address, value);
        let is_unclear = matches!(what, ValueKind::Unknown | ValueKind::Conflict(_));
        // A constant has no derivative, whatever it is. As a float it needs a zero in the shadow and its adjoint cleared, which does a number no harm.
        let has_no_derivative = match self.function.constant_of(value) {
            Some(Constant::Bits(0)) => true,
            Some(Constant::Bits(_)) => {
                what == ValueKind::Unknown && rules::derivative_type(ty).is_some()
            }
            _ => false,
        };
        let active = self.mode.works.contains(op);
        if self.meets_union(op, address, ty.bytes())? {
            return self.visit_store_of_union(op, shadow);
        }
        let shadow = self.shadow_to_write(op, value, (address, shadow))?;
        if active && !has_no_derivative && is_unclear {
            return Err(self.error(op, Refusal::UnknownLayout));
        }
        if !ty.is_float() && !matches!(what, ValueKind::CarriesFloat(_)) {
            let to_shadow = match active && is_unclear {
                true => self.function.zero(ty),
                false => {
                    let parts = self.parts_stored(address, ty);
                    self.companions_of(op, value, &parts)?[0]
                }
            };
            self.builder(op)
                .op(Opcode::Store, &[to_shadow, shadow], data.payload, &[]);
        }
        let float = ty.is_float()
            || matches!(what, ValueKind::CarriesFloat(_))
            || (is_unclear && has_no_derivative);
        // Bytes of which nothing is known and that are no float by their number hold no derivative.
        if active && float && rules::derivative_type(ty).is_some() {
            let stored = Stored::Float;
            let step = Step::Store { shadow, stored };
            self.mode.steps.insert(op, step);
        }
        Ok(())
    }

    /// A store to where floats are at times, and at others something else: the shadow of a float is zero from now on.
    fn visit_store_of_union(&mut self, op: Op, shadow: Value) -> Result<(), Error> {
        let data = self.function.ops[op].clone();
        let (value, address) = (data.value(), data.address());
        let ty = self.function.ty(value);
        let is_float =
            ty.is_float() || matches!(self.stored_kind(address, value), ValueKind::CarriesFloat(_));
        let shape = match is_float {
            true => unions::shape_of_float(&mut self.builder(op), value),
            false => self.shadow(op, value)?,
        };
        if ty == Type::PTR && self.may_be_mistaken(op, value)? {
            unions::check_no_float(&mut self.builder(op), value, shape);
        }
        let shadow = self.shadow_to_write(op, value, (address, shadow))?;
        let store = self
            .builder(op)
            .op(Opcode::Store, &[shape, shadow], data.payload, &[]);
        self.mode.unsteady.insert(store);
        if self.mode.works.contains(op) {
            let stored = match is_float {
                true => Stored::Float,
                false if self.is_union(value) => Stored::Word(shape),
                false => Stored::Other,
            };
            let step = Step::Store { shadow, stored };
            self.mode.steps.insert(op, step);
        }
        Ok(())
    }

    /// Whether a pointer may be a float that was read as a pointer: from where there are floats at times, or by somebody else.
    fn may_be_mistaken(&mut self, op: Op, pointer: Value) -> Result<bool, Error> {
        let function = &self.function;
        if !self.mode.works.contains(op) || function.is_constant(pointer) {
            return Ok(false);
        }
        let Some((source, _)) = function.def_op(pointer) else {
            return Ok(true);
        };
        let data = &function.ops[source];
        match data.opcode {
            Opcode::Stack | Opcode::Alloc | Opcode::Offset | Opcode::Inttoptr => Ok(false),
            Opcode::Exclusive => self.may_be_mistaken(op, data.operands[0]),
            Opcode::Load => {
                let address = data.address();
                let bytes = Type::PTR.bytes();
                Ok(self.is_plain(address) || self.meets_union(source, address, bytes)?)
            }
            _ => Ok(true),
        }
    }

    /// What a stored integer is, by what is known of the memory.
    fn stored_kind(&self, address: Value, value: Value) -> ValueKind {
        let function = &self.function;
        let ty = function.ty(value);
        if !ty.is_int() {
            return ValueKind::Integer;
        }
        let Some((class, offset)) = self.objects.class_of(function, address) else {
            return ValueKind::Unknown;
        };
        match self.objects.kind_of_access(class, offset, ty.bytes()) {
            Kind::Float(scalar) => ValueKind::CarriesFloat(scalar),
            Kind::Integer | Kind::Padding => ValueKind::Integer,
            Kind::Pointer(place) => ValueKind::CarriesPointer(place),
            Kind::Unknown => ValueKind::Unknown,
            Kind::Conflict(contradiction) => ValueKind::Conflict(contradiction),
        }
    }

    /// The shadow to which something that belongs to a stored value is written.
    fn shadow_to_write(
        &mut self,
        op: Op,
        value: Value,
        (address, shadow): (Value, Value),
    ) -> Result<Value, Error> {
        let stored = self.shadow(op, value)?;
        Ok(self.shadows_to_write(op, (value, &[stored]), (address, &[shadow]))[0])
    }

    pub(super) fn visit_atomic_add(&mut self, op: Op) -> Result<(), Error> {
        let data = self.function.ops[op].clone();
        self.keep(op);
        if !self.mode.works.contains(op) || !self.function.ty(data.value()).is_float() {
            return Ok(());
        }
        let shadow = self.shadow(op, data.address())?;
        let (address, value) = (data.address(), data.value());
        let shadow = self.shadow_to_write(op, value, (address, shadow))?;
        self.mode.steps.insert(op, Step::AtomicAdd { shadow });
        Ok(())
    }
}
