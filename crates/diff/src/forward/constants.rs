//! Forward mode where some memory may be constant, and its own shadow: see `crate::constants`. Its tangents are zero, and nothing with a tangent may be put there.
//!
//! Where floats share their place with pointers, nobody can tell whether a word that comes from constant memory is a float, whose tangent is zero, or an address, which is its own shadow.
//! It leaves a *mark* in the shadow, a zero with a sign: to who takes it for a float it is a tangent of zero, and who follows it as a pointer takes the pointer itself in its place.
//! A null pointer, which is what memory without a shadow has, is no mark.
//!
//! ```text
//! copy %to, %from, 16           %same = icmp eq ptr %from, %from'
//!                               if %same { marks at %to' } else { copy %to', %from', 16 }
//! %p = load ptr %to align 8     %p' = load ptr %to' align 8
//! %a = load f64 %p align 8      %marked = icmp eq ptr %p', mark
//!                               %q = select ptr %marked, %p, %p'      and then as behind any pointer that may lead to constants
//! ```

use super::companions::Lanes;
use super::sweep::Sweep;
use crate::constants::{self, either, none_if, sink, stop_if_shadowed};
use crate::error::Error;
use crate::memory::{self, Cells};
use crate::objects::{Class, Source};
use crate::request::Activity;
use crate::search::forget_accesses;
use crate::unions;
use ferrozyme_ir::{Builder, IntPredicate, MemoryEffect, Op, Opcode, Region, Type, Value};
use ferrozyme_refusal::Refusal;

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
            true => Err(self.error(op, Refusal::ConstantPassed)),
            false => Ok(()),
        }
    }

    /// Where memory may be constant, the derivative writes elsewhere, and stops where that would matter.
    pub(super) fn forget_false_facts(&mut self) {
        let mut classes = self.objects.classes();
        if classes.any(|class| self.activities.may_be_constant(class)) {
            self.function.facts.memory = MemoryEffect::Any;
            self.function.facts.willreturn = false;
            // Nobody can tell shadows from constant memory that a function puts beside them.
            self.function.params.iter_mut().for_each(forget_accesses);
        }
    }

    /// Nobody outside knows of marks: they must not get into memory whose shadow comes from there.
    pub(super) fn refuse_marks_outside(&self) -> Result<(), Error> {
        let objects = &self.objects;
        let is_shared = |class: &Class| objects.has_unions(*class);
        let mut shared = objects.classes().filter(is_shared);
        if self.index > 0 || !shared.any(|class| self.activities.may_be_constant(class)) {
            return Ok(());
        }
        let is_outside = |source| match source {
            Source::Param(index) => self.key.args.get(index as usize) != Some(&Activity::Const),
            Source::Global(global) => !self.module().globals[global].constant,
            _ => false,
        };
        let mut written = objects.classes().filter(|&class| {
            self.shadowed.contains(&class) && objects.has_unions(class) && objects.is_written(class)
        });
        match written.any(|class| objects.sources(class).any(is_outside)) {
            true => Err(Error::of(&self.function.name, Refusal::ConstantIntoUnion)),
            false => Ok(()),
        }
    }

    /// The companions of what was loaded. Where the memory is constant, tangents are zero, and what may be a float or an address is marked.
    pub(super) fn tangents_unless_constant(
        &mut self,
        region: Region,
        op: Op,
        address: Value,
        shadows: &[Value],
        lanes: Lanes,
    ) -> Lanes {
        if !self.may_be_constant(address) {
            return lanes;
        }
        let result = self.function.ops[op].results[0];
        let ty = self.function.ty(result);
        let is_shared = !ty.is_float() && !ty.is_vector() && self.is_shared(address, ty.bytes());
        self.session.looks_at_addresses |= is_shared;
        let found = match is_shared {
            true => unions::mark_at(&mut self.builder(region, op), address, ty),
            false if self.is_active(result) => self.function.zero(ty),
            false => return lanes,
        };
        let mut b = self.builder(region, op);
        let pairs = lanes.iter().zip(shadows);
        pairs
            .map(|(&lane, &shadow)| {
                let constant = b.icmp(IntPredicate::Eq, address, shadow);
                b.select(constant, found, lane)
            })
            .collect()
    }

    /// Whether an access meets floats where at other times pointers or numbers are.
    fn is_shared(&self, address: Value, bytes: u64) -> bool {
        let class = self.objects.class_of(&self.function, address);
        class.is_some_and(|(class, offset)| {
            self.objects
                .kind_of_access(class, offset, bytes)
                .is_union(bytes)
        })
    }

    /// The shadows of a pointer that is followed.
    pub(super) fn shadows_to_follow(
        &mut self,
        region: Region,
        op: Op,
        pointer: Value,
    ) -> Result<Lanes, Error> {
        let lanes = self.companions_of(region, op, pointer, &[])?;
        Ok(self.without_marks(region, op, pointer, lanes))
    }

    /// The shadows of an address, which itself stands where there is a mark.
    pub(super) fn without_marks(
        &mut self,
        region: Region,
        op: Op,
        address: Value,
        lanes: Lanes,
    ) -> Lanes {
        let ty = self.function.ty(address);
        if !matches!(ty, Type::PTR | Type::I64) || !self.may_be_marked(address) {
            return lanes;
        }
        let mut b = self.builder(region, op);
        lanes
            .into_iter()
            .map(|lane| match lane == address {
                true => lane,
                false => {
                    let marked = is_mark(&mut b, lane);
                    b.select(marked, address, lane)
                }
            })
            .collect()
    }

    /// Whether an address may come from where floats are at other times, and lead to constant memory.
    fn may_be_marked(&self, address: Value) -> bool {
        let made = self.function.def_op(address);
        let is_made_here = made.is_some_and(|(op, _)| {
            let opcode = self.function.ops[op].opcode;
            matches!(opcode, Opcode::Alloc | Opcode::Stack | Opcode::Offset)
        });
        !is_made_here && !self.function.is_constant(address) && self.may_be_constant(address)
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
        let is_shared = !self.function.ty(value).is_vector()
            && self.is_shared(address, self.function.ty(value).bytes())
            && self.function.ty(value) == Type::I64;
        let lanes = match self.function.ty(value).is_ptr() {
            true => self.without_marks(region, op, value, Lanes::from_slice(lanes)),
            false => Lanes::from_slice(lanes),
        };
        let mut b = self.builder(region, op);
        let mut targets = Lanes::new();
        for (&lane, &shadow) in lanes.iter().zip(shadows) {
            let constant = b.icmp(IntPredicate::Eq, address, shadow);
            if is_active && is_shared {
                let marked = is_mark(&mut b, lane);
                let no = b.zero(Type::I1);
                let lost = b.select(marked, no, constant);
                memory::stop_if(&mut b, lost, &Refusal::StoredToConstant);
            } else if is_active {
                memory::stop_if(&mut b, constant, &Refusal::StoredToConstant);
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
        self.session.looks_at_addresses |= cells.has_unions();
        let mut b = self.builder(region, op);
        let constant = b.icmp(IntPredicate::Eq, from, from_shadow);
        either(
            &mut b,
            constant,
            |b| {
                if cells.has_unions() {
                    unions::put_marks(b, to_shadow, bytes);
                    return;
                }
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

/// Whether a shadow says that a word comes from constant memory.
fn is_mark(b: &mut Builder<'_>, shadow: Value) -> Value {
    let mark = unions::mark(b, b.ty(shadow));
    match b.ty(shadow).is_ptr() {
        true => b.icmp(IntPredicate::Eq, shadow, mark),
        false => {
            let word = b.unary(Opcode::Freeze, shadow);
            b.icmp(IntPredicate::Eq, word, mark)
        }
    }
}
