//! Forward mode where some memory may be constant, and its own shadow: see `crate::constants`. Its tangents are zero, and nothing with a tangent may be put there.

use super::companions::Lanes;
use super::sweep::Sweep;
use crate::constants::{self, PASSED, REMEDY, STORED, either, none_if, sink, stop_if_shadowed};
use crate::error::Error;
use crate::memory::{self, Cells};
use ferrozyme_ir::{IntPredicate, MemoryEffect, Op, Region, Type, Value};

impl Sweep<'_, '_> {
    pub(super) fn may_be_constant(&self, pointer: Value) -> bool {
        constants::may_be_constant(&self.objects, &self.activities, &self.function, pointer)
    }

    pub(super) fn leads_to_constants(&self, pointer: Value) -> bool {
        constants::leads_to_constants(&self.objects, &self.activities, &self.function, pointer)
    }

    /// Rules and functions behind pointers do not know that memory may be its own shadow.
    pub(super) fn refuse_constants(&self, op: Op, args: &[Value]) -> Result<(), Error> {
        match args.iter().any(|&arg| self.leads_to_constants(arg)) {
            true => Err(self.error(op, PASSED, REMEDY)),
            false => Ok(()),
        }
    }

    /// Where memory may be constant, the derivative writes elsewhere, and stops where that would matter.
    pub(super) fn forget_false_facts(&mut self) {
        let mut classes = self.objects.classes();
        if classes.any(|class| self.activities.may_be_constant(class)) {
            self.function.facts.memory = MemoryEffect::Any;
            self.function.facts.willreturn = false;
        }
    }

    pub(super) fn refuse_constant_unions(&self) -> Result<(), Error> {
        constants::refuse_unions(&self.objects, &self.activities, &self.function)
    }

    /// The tangents that were loaded, or zeros where the memory is constant.
    pub(super) fn tangents_unless_constant(
        &mut self,
        region: Region,
        op: Op,
        address: Value,
        shadows: &[Value],
        lanes: Lanes,
    ) -> Lanes {
        let result = self.function.ops[op].results[0];
        if !self.may_be_constant(address) || !self.is_active(result) {
            return lanes;
        }
        let zero = self.function.zero(self.function.ty(result));
        let mut b = self.builder(region, op);
        let pairs = lanes.iter().zip(shadows);
        pairs
            .map(|(&lane, &shadow)| {
                let constant = b.icmp(IntPredicate::Eq, address, shadow);
                b.select(constant, zero, lane)
            })
            .collect()
    }

    /// The shadows to which companions of a value are stored. Where the memory is constant they go nowhere, and must not matter.
    pub(super) fn shadows_to_write(
        &mut self,
        region: Region,
        op: Op,
        (value, lanes): (Value, &[Value]),
        (address, shadows): (Value, &[Value]),
    ) -> Lanes {
        if !self.may_be_constant(address) {
            return Lanes::from_slice(shadows);
        }
        let sink = sink(self.session.module);
        let sink = self.function.constant(Type::PTR, sink);
        let (is_active, is_address) = (self.is_active(value), self.has_shadow(value));
        let mut b = self.builder(region, op);
        let mut targets = Lanes::new();
        for (&lane, &shadow) in lanes.iter().zip(shadows) {
            let constant = b.icmp(IntPredicate::Eq, address, shadow);
            if is_active {
                memory::stop_if(&mut b, constant, STORED);
            } else if is_address {
                stop_if_shadowed(&mut b, constant, value, lane);
            }
            targets.push(b.select(constant, sink, shadow));
        }
        targets
    }

    /// How many bytes of a shadow are written: none of constant memory.
    pub(super) fn bytes_to_write(
        &mut self,
        region: Region,
        op: Op,
        (to, to_shadow): (Value, Value),
        from: Option<(Value, Value)>,
        bytes: Value,
    ) -> Value {
        if !self.may_be_constant(to) {
            return bytes;
        }
        let mut b = self.builder(region, op);
        let constant = b.icmp(IntPredicate::Eq, to, to_shadow);
        if let Some((from, from_shadow)) = from {
            stop_if_shadowed(&mut b, constant, from, from_shadow);
        }
        none_if(&mut b, constant, bytes)
    }

    /// Copies a shadow, of which nothing but the floats is copied from constant memory: they are zero.
    pub(super) fn copy_unless_constant(
        &mut self,
        region: Region,
        op: Op,
        cells: &Cells,
        to_shadow: Value,
        (from, from_shadow): (Value, Value),
        bytes: Value,
    ) {
        let data = self.function.ops[op].clone();
        let mut b = self.builder(region, op);
        let constant = b.icmp(IntPredicate::Eq, from, from_shadow);
        either(
            &mut b,
            constant,
            |b| {
                // A shadow and a primal never overlap.
                memory::copy_other_fields(b, cells, to_shadow, from, bytes, false);
                if cells.has_floats() {
                    memory::zero_floats(b, cells, to_shadow, bytes);
                }
            },
            |b| {
                let operands = [to_shadow, from_shadow, bytes];
                b.op(data.opcode, &operands, data.payload, &[]);
            },
        );
    }
}
