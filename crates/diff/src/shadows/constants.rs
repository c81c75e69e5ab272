//! Pointers that may lead to active memory or to memory of a constant argument.
//!
//! A program may select between an argument without a shadow and active memory, and load through the selected pointer. The constant memory
//! is then its own shadow, so that the derivative can compare addresses at run time: if they are equal, nothing is added, tangents are zero, and no active value may be stored there.
//!
//! ```text
//! %a = load f64 %p align 8      forward:  %same = icmp eq ptr %p, %p'
//!                                         %to = select ptr %same, @ferrozyme.sink, %p'
//!                               reverse:  add the adjoint of %a to what is at %to
//! ```
//!
//! Memory behind pointers in constant memory is constant, too.
//!
//! In forward mode a union word from constant memory may be a float, whose tangent is zero, or an address, which is its own shadow.
//! It leaves a *mark* in the shadow, a negative zero: as a float it is a tangent of zero, and code that follows it as a pointer takes the pointer itself in its place.
//! A null pointer, which is the shadow of memory without one, is not a mark.
//!
//! ```text
//! copy %to, %from, 16           %same = icmp eq ptr %from, %from'
//!                               if %same { marks at %to' } else { copy %to', %from', 16 }
//! %p = load ptr %to align 8     %p' = load ptr %to' align 8
//! %a = load f64 %p align 8      %marked = icmp eq ptr %p', mark
//!                               %q = select ptr %marked, %p, %p'      and then as behind any pointer that may lead to constants
//! ```

use super::{Lanes, Mode, Sweep};
use crate::activity::reachable_from;
use crate::error::Error;
use crate::globals;
use crate::memory;
use crate::unions;
use ferrozyme_ir::{
    Builder, Constant, Global, GlobalId, IntPredicate, Module, Op, Opcode, Type, Value,
};
use ferrozyme_refusal::Refusal;

/// Where adjoints of constants go. Nobody looks there.
const SINK: &str = "ferrozyme.sink";

/// As many bytes as the largest vector that is loaded at once.
const SINK_BYTES: u64 = 128;

impl<M: Mode> Sweep<'_, M> {
    /// Whether some of the memory of the function may be constant, as only the run can tell.
    pub(crate) fn has_constants(&self) -> bool {
        let mut classes = self.objects.classes();
        classes.any(|class| self.activities.may_be_constant(class))
    }

    /// Whether some of the memory that a pointer leads to may be constant.
    pub(crate) fn may_be_constant(&self, pointer: Value) -> bool {
        let class = self.class(pointer);
        class.is_some_and(|class| self.activities.may_be_constant(class))
    }

    /// Whether memory that may be constant can be reached from a pointer.
    pub(crate) fn leads_to_constants(&self, pointer: Value) -> bool {
        self.class(pointer).is_some_and(|class| {
            let mut classes = reachable_from(self.objects, class).into_iter();
            classes.any(|class| self.activities.may_be_constant(class))
        })
    }

    /// Rules and functions behind pointers do not know that memory may be its own shadow.
    pub(crate) fn refuse_constants(&self, op: Op, args: &[Value]) -> Result<(), Error> {
        match args.iter().any(|&arg| self.leads_to_constants(arg)) {
            true => Err(self.error(op, Refusal::ConstantPassed)),
            false => Ok(()),
        }
    }

    /// The address of a function in constant memory is its own shadow, which is no table of derivatives.
    pub(crate) fn refuse_constant_code(&self, op: Op, pointer: Value) -> Result<(), Error> {
        let objects = self.objects;
        let names = |class, code| class == code || objects.pointees(class).any(|to| to == code);
        let may_be_constant = |code| {
            let mut classes = objects.classes();
            classes.any(|class| self.activities.may_be_constant(class) && names(class, code))
        };
        match self.class(pointer).is_some_and(may_be_constant) {
            true => Err(self.error(op, Refusal::ConstantCode)),
            false => Ok(()),
        }
    }

    /// Whether what a pointer leads to is constant, in this run; none if it surely is not.
    pub(crate) fn is_constant_behind(
        &mut self,
        op: Op,
        pointer: Value,
        shadow: Value,
    ) -> Option<Value> {
        self.may_be_constant(pointer)
            .then(|| self.builder(op).icmp(IntPredicate::Eq, pointer, shadow))
    }

    /// Where the reverse sweep adds what belongs to memory behind a pointer.
    pub(crate) fn shadow_to_add_to(&mut self, op: Op, pointer: Value, shadow: Value) -> Value {
        let Some(constant) = self.is_constant_behind(op, pointer, shadow) else {
            return shadow;
        };
        let sink = self.sink();
        self.builder(op).select(constant, sink, shadow)
    }

    /// The memory for derivatives of constants, one for each thread.
    fn sink(&mut self) -> Value {
        let sink = find_sink(self.module_mut());
        self.function.constant(Type::PTR, Constant::Global(sink))
    }

    /// The shadows to which something that belongs to a stored value is written. Where the memory is constant it goes nowhere, and must not matter.
    pub(crate) fn shadows_to_write(
        &mut self,
        op: Op,
        (value, lanes): (Value, &[Value]),
        (address, shadows): (Value, &[Value]),
    ) -> Lanes {
        if !self.may_be_constant(address) {
            return Lanes::from_slice(shadows);
        }
        let ty = self.function.ty(value);
        let lanes = match ty.is_ptr() {
            true => self.without_marks(op, value, Lanes::from_slice(lanes)),
            false => Lanes::from_slice(lanes),
        };
        let may_be_float = match M::TANGENTS {
            true => ty == Type::I64 && self.is_shared(address, ty.bytes()),
            false => self.is_union(value),
        };
        let (is_active, is_address) = (self.is_active(value), self.has_shadow(value));
        let sink = self.sink();
        let mut b = self.builder(op);
        let mut targets = Lanes::new();
        for (&lane, &shadow) in lanes.iter().zip(shadows) {
            let constant = b.icmp(IntPredicate::Eq, address, shadow);
            if is_active && !may_be_float {
                memory::stop_if(&mut b, constant, &Refusal::StoredToConstant);
            } else if is_active && M::TANGENTS {
                let marked = is_mark(&mut b, lane);
                let no = b.zero(Type::I1);
                let lost = b.select(marked, no, constant);
                memory::stop_if(&mut b, lost, &Refusal::StoredToConstant);
            } else if is_active || is_address {
                stop_if_shadowed(&mut b, constant, value, lane);
            }
            targets.push(b.select(constant, sink, shadow));
        }
        targets
    }

    /// How many bytes of a shadow are written: none of constant memory, to which nothing may be copied but what is constant.
    pub(crate) fn bytes_to_write(
        &mut self,
        op: Op,
        (to, to_shadow): (Value, Value),
        from: Option<(Value, Value)>,
        bytes: Value,
    ) -> Value {
        let Some(constant) = self.is_constant_behind(op, to, to_shadow) else {
            return bytes;
        };
        let mut b = self.builder(op);
        if let Some((from, from_shadow)) = from {
            stop_if_shadowed(&mut b, constant, from, from_shadow);
        }
        let none = b.zero(b.ty(bytes));
        b.select(constant, none, bytes)
    }

    /// The companions of what was loaded. Where the memory is constant, tangents are zero, and what may be a float or an address is marked.
    pub(super) fn tangents_unless_constant(
        &mut self,
        op: Op,
        address: Value,
        shadows: &[Value],
        lanes: Lanes,
    ) -> Lanes {
        if !M::TANGENTS || !self.may_be_constant(address) {
            return lanes;
        }
        let result = self.function.ops[op].results[0];
        let ty = self.function.ty(result);
        let is_shared = !ty.is_float() && !ty.is_vector() && self.is_shared(address, ty.bytes());
        self.looks_at_addresses |= is_shared;
        let found = match is_shared {
            true => unions::mark_at(&mut self.builder(op), address, ty),
            false if self.is_active(result) => self.function.zero(ty),
            false => return lanes,
        };
        let mut b = self.builder(op);
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
        let place = self.objects.class_of(&self.function, address);
        place.is_some_and(|(class, offset)| {
            let kind = self.objects.kind_of_access(class, offset, bytes);
            kind.is_union(bytes)
        })
    }

    /// The shadows of a pointer that is followed.
    pub(crate) fn shadows_to_follow(&mut self, op: Op, pointer: Value) -> Result<Lanes, Error> {
        let lanes = self.companions_of(op, pointer, &[])?;
        Ok(self.without_marks(op, pointer, lanes))
    }

    /// The shadows of an address, which itself stands where there is a mark.
    pub(crate) fn without_marks(&mut self, op: Op, address: Value, lanes: Lanes) -> Lanes {
        let ty = self.function.ty(address);
        if !matches!(ty, Type::PTR | Type::I64) || !self.may_be_marked(address) {
            return lanes;
        }
        let mut b = self.builder(op);
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
        M::TANGENTS
            && !is_made_here
            && !self.function.is_constant(address)
            && self.may_be_constant(address)
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

/// Stops the program if memory is constant and an address with a shadow, or what lies behind one, is put there.
fn stop_if_shadowed(b: &mut Builder<'_>, constant: Value, address: Value, shadow: Value) {
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

fn find_sink(module: &mut Module) -> GlobalId {
    let known = module.global_named(SINK);
    known.unwrap_or_else(|| {
        module.globals.push(Global {
            constant: false,
            thread_local: true,
            ..globals::zeros(SINK, SINK_BYTES)
        })
    })
}
