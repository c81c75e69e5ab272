//! Memory with derivatives, and memory of constant arguments, behind one pointer.
//!
//! Whoever chooses between an argument without a shadow and memory of his own reads through one pointer what carries derivatives in one case, and none in the other. The constant memory
//! is then its own shadow, so that the addresses tell when the derivative runs: where both are the same, nothing is added, and nothing with a derivative may be put there.
//!
//! ```text
//! %a = load f64 %p align 8      forward:  %same = icmp eq ptr %p, %p'
//!                                         %to = select ptr %same, @ferrozyme.sink, %p'
//!                               reverse:  add the adjoint of %a to what is at %to
//! ```
//!
//! What pointers in constant memory lead to is constant, too.

use crate::activity::{Activities, reachable_from};
use crate::augment::{Augmenter, Sweep};
use crate::error::Error;
use crate::memory;
use crate::objects::Objects;
use crate::unions;
use ferrozyme_ir::{
    Alignment, Builder, Constant, Function, Global, IntPredicate, Module, Op, Opcode, Region, Type,
    Value,
};
use ferrozyme_refusal::Refusal;

/// Where adjoints of constants go. Nobody looks there.
const SINK: &str = "ferrozyme.sink";

/// As many bytes as the largest vector that is loaded at once.
const SINK_BYTES: u64 = 128;

impl Augmenter<'_> {
    fn may_be_constant(&self, pointer: Value) -> bool {
        let Sweep {
            objects,
            activities,
            ..
        } = *self.sweep;
        may_be_constant(objects, activities, &self.augmented.function, pointer)
    }

    pub(crate) fn leads_to_constants(&self, pointer: Value) -> bool {
        let Sweep {
            objects,
            activities,
            ..
        } = *self.sweep;
        leads_to_constants(objects, activities, &self.augmented.function, pointer)
    }

    /// The address of a function in constant memory is its own shadow, which is no table of derivatives.
    pub(crate) fn refuse_constant_code(&mut self, op: Op, pointer: Value) -> Result<(), Error> {
        let Sweep {
            objects,
            activities,
            ..
        } = *self.sweep;
        match may_be_constant_code(objects, activities, &self.augmented.function, pointer) {
            true => Err(self.error(op, Refusal::ConstantCode)),
            false => Ok(()),
        }
    }

    /// Rules do not know that memory may be its own shadow.
    pub(crate) fn refuse_constants(&mut self, op: Op, args: &[Value]) -> Result<(), Error> {
        match args.iter().any(|&arg| self.leads_to_constants(arg)) {
            true => Err(self.error(op, Refusal::ConstantPassed)),
            false => Ok(()),
        }
    }

    /// Whether what a pointer leads to is constant, in this run; none if it surely is not.
    pub(crate) fn is_constant_behind(
        &mut self,
        region: Region,
        op: Op,
        pointer: Value,
        shadow: Value,
    ) -> Option<Value> {
        self.may_be_constant(pointer).then(|| {
            let mut b = self.builder(region, op);
            b.icmp(IntPredicate::Eq, pointer, shadow)
        })
    }

    /// Where the reverse sweep adds what belongs to memory behind a pointer.
    pub(crate) fn shadow_to_add_to(
        &mut self,
        region: Region,
        op: Op,
        pointer: Value,
        shadow: Value,
    ) -> Value {
        let Some(constant) = self.is_constant_behind(region, op, pointer, shadow) else {
            return shadow;
        };
        let sink = sink(self.callees.module());
        let sink = self.function().constant(Type::PTR, sink);
        self.builder(region, op).select(constant, sink, shadow)
    }

    /// As [`Augmenter::shadow_to_add_to`], where a value is stored. If it has a derivative, or is a pointer with a shadow, the memory must have one.
    pub(crate) fn shadow_to_write(
        &mut self,
        region: Region,
        op: Op,
        pointer: Value,
        value: Value,
        shadow: Value,
    ) -> Result<Value, Error> {
        let Some(constant) = self.is_constant_behind(region, op, pointer, shadow) else {
            return Ok(shadow);
        };
        let stored = self.shadow(op, value)?;
        let is_active = self.sweep.activities.is_active(value);
        let (is_union, is_address) = (self.is_union(value), self.has_shadow(value));
        let mut b = self.builder(region, op);
        if is_active && !is_union {
            memory::stop_if(&mut b, constant, &Refusal::StoredToConstant);
        } else if is_address {
            stop_if_shadowed(&mut b, constant, value, stored);
        }
        Ok(self.shadow_to_add_to(region, op, pointer, shadow))
    }

    /// How much of a shadow is copied: nothing into constant memory, to which nothing may be copied but what is constant.
    pub(crate) fn bytes_to_copy(
        &mut self,
        region: Region,
        op: Op,
        (to, to_shadow): (Value, Value),
        (from, from_shadow): (Value, Value),
    ) -> Value {
        let bytes = self.augmented.function.ops[op].operands[2];
        let Some(constant) = self.is_constant_behind(region, op, to, to_shadow) else {
            return bytes;
        };
        let mut b = self.builder(region, op);
        stop_if_shadowed(&mut b, constant, from, from_shadow);
        none_if(&mut b, constant, bytes)
    }

    /// How much of a shadow is filled: nothing of constant memory.
    pub(crate) fn bytes_to_fill(
        &mut self,
        region: Region,
        op: Op,
        to: Value,
        to_shadow: Value,
        bytes: Value,
    ) -> Value {
        match self.is_constant_behind(region, op, to, to_shadow) {
            Some(constant) => none_if(&mut self.builder(region, op), constant, bytes),
            None => bytes,
        }
    }
}

/// Whether some of the memory that a pointer leads to may be constant.
pub(crate) fn may_be_constant(
    objects: &Objects,
    activities: &Activities,
    function: &Function,
    pointer: Value,
) -> bool {
    let class = objects.class_of(function, pointer);
    class.is_some_and(|(class, _)| activities.may_be_constant(class))
}

/// Whether the code that a pointer leads to may be named in constant memory.
pub(crate) fn may_be_constant_code(
    objects: &Objects,
    activities: &Activities,
    function: &Function,
    pointer: Value,
) -> bool {
    let Some((code, _)) = objects.class_of(function, pointer) else {
        return false;
    };
    let names_it = |class| objects.pointees(class).any(|to| to == code);
    objects
        .classes()
        .any(|class| activities.may_be_constant(class) && (class == code || names_it(class)))
}

/// Whether memory that may be constant can be reached from a pointer.
pub(crate) fn leads_to_constants(
    objects: &Objects,
    activities: &Activities,
    function: &Function,
    pointer: Value,
) -> bool {
    let class = objects.class_of(function, pointer);
    class.is_some_and(|(class, _)| {
        let mut classes = reachable_from(objects, class).into_iter();
        classes.any(|class| activities.may_be_constant(class))
    })
}

/// Stops the program if memory is constant and an address with a shadow, or what lies behind one, is put there.
pub(crate) fn stop_if_shadowed(
    b: &mut Builder<'_>,
    constant: Value,
    address: Value,
    shadow: Value,
) {
    if address == shadow {
        return;
    }
    let lost = match b.ty(address).is_vector() {
        true => constant,
        false => {
            let has_shadow = match b.ty(address).is_ptr() {
                true => b.icmp(IntPredicate::Ne, address, shadow),
                false => unions::differ(b, address, shadow),
            };
            b.binary(Opcode::And, constant, has_shadow)
        }
    };
    memory::stop_if(b, lost, &Refusal::StoredToConstant);
}

/// How many bytes of a shadow are written: none of constant memory.
pub(crate) fn none_if(b: &mut Builder<'_>, constant: Value, bytes: Value) -> Value {
    let none = b.zero(b.ty(bytes));
    b.select(constant, none, bytes)
}

/// Does the one or the other.
pub(crate) fn either(
    b: &mut Builder<'_>,
    condition: Value,
    then: impl FnOnce(&mut Builder<'_>),
    otherwise: impl FnOnce(&mut Builder<'_>),
) {
    let (_, then_region, else_region) = b.if_else(condition, &[]);
    b.inside(then_region, |b| {
        then(b);
        b.yields(&[]);
    });
    b.inside(else_region, |b| {
        otherwise(b);
        b.yields(&[]);
    });
}

/// The memory for adjoints of constants, one for each thread.
pub(crate) fn sink(module: &mut Module) -> Constant {
    let known = module.global_named(SINK);
    let global = known.unwrap_or_else(|| {
        module.globals.push(Global {
            name: SINK.to_owned(),
            size: SINK_BYTES,
            align: Alignment::natural(Type::F64),
            constant: false,
            bytes: Some(Vec::new()),
            relocations: Vec::new(),
            inactive: false,
            shared: false,
            thread_local: true,
            parts: Vec::new(),
            layout: None,
        })
    });
    Constant::Global(global)
}
