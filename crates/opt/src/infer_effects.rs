//! Infers from the body of a function which memory of its callers it accesses, which pointers it captures, and whether it always
//! returns.
//!
//! ```text
//! func @scale(%x: ptr) {                 func @scale(%x: ptr nocapture) memory(args) willreturn {
//!   %a = load f64 %x align 8       →       …
//!   %b = fmul f64 %a, 2.0
//!   store f64 %b, %x align 8
//!   return
//! }
//! ```
//!
//! One function at a time, from the facts of its callees. Mutually recursive functions count as unknown
//! in each other. Declared facts are never removed.

use crate::alias::{Aliases, Footprint};
use crate::behaviour::behaviour_of;
use crate::pointers::{Object, is_constant_object, object_kind};
use crate::with_function::with_function;
use ferrozyme_ir::{FunctionId, MemoryEffect, Module, Opcode, Type, Value, all_ops};

/// Infers the memory effects of a function with a body; returns the number of facts that are new.
pub fn infer_effects(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |module, function| {
        if function.body.is_none() {
            return 0;
        }
        let effects = Effects::of(module, &Aliases::new(module, function));
        let mut changes = 0;
        if effects.memory() < function.facts.memory {
            function.facts.memory = effects.memory();
            changes += 1;
        }
        if effects.returns && !function.facts.willreturn {
            function.facts.willreturn = true;
            changes += 1;
        }
        for (param, kept) in function.params.iter_mut().zip(effects.kept) {
            if param.ty == Type::PTR && !kept && !param.facts.nocapture {
                param.facts.nocapture = true;
                changes += 1;
            }
        }
        changes
    })
}

/// The effects of a function's operations on memory that its callers can see.
pub(crate) struct Effects {
    reads: Reach,
    writes: Reach,
    allocates: bool,
    /// For each parameter, whether a copy of it may be left behind.
    pub(crate) kept: Vec<bool>,
    /// Whether it always returns.
    pub(crate) returns: bool,
}

impl Effects {
    /// Finds them from a function's body.
    pub(crate) fn of(module: &Module, aliases: &Aliases<'_>) -> Effects {
        let function = aliases.function();
        let ops = all_ops(function);
        let (mut reads, mut writes) = (Reach::Own, Reach::Own);
        let mut allocates = false;
        for &op in &ops {
            // The effects of a function that stops the program are not observable.
            if function.ops[op].opcode == Opcode::Trap {
                continue;
            }
            allocates |= behaviour_of(module, function, op).allocates;
            reads = reads.max(reach(module, aliases, &aliases.reads(op), false));
            writes = writes.max(reach(module, aliases, &aliases.writes(op), true));
        }
        Effects {
            reads,
            writes,
            allocates,
            kept: kept_parameters(aliases),
            returns: !ops
                .into_iter()
                .any(|op| behaviour_of(module, function, op).stops),
        }
    }

    /// The narrowest description that covers them.
    pub(crate) fn memory(&self) -> MemoryEffect {
        use MemoryEffect::*;
        [None, Read, Args]
            .into_iter()
            .find(|&effect| self.are_within(effect))
            .unwrap_or(Any)
    }

    /// Whether a description covers them.
    pub(crate) fn are_within(&self, effect: MemoryEffect) -> bool {
        match effect {
            // New memory is other memory each time.
            MemoryEffect::None => {
                self.reads == Reach::Own && self.writes == Reach::Own && !self.allocates
            }
            MemoryEffect::Read => self.writes == Reach::Own && !self.allocates,
            MemoryEffect::Args => self.reads <= Reach::Arguments && self.writes <= Reach::Arguments,
            MemoryEffect::Any => true,
        }
    }
}

/// How far memory that is touched is out of a function's own hands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// The function allocated it, or its origin is unknown.
    Own,
    /// It is right behind a parameter.
    Arguments,
    /// It may be anywhere.
    Beyond,
}

fn reach(module: &Module, aliases: &Aliases<'_>, footprint: &Footprint, writes: bool) -> Reach {
    if footprint.elsewhere {
        return Reach::Beyond;
    }
    let function = aliases.function();
    let of_object = |&object: &Value| match object_kind(function, object) {
        Some(Object::Local) => Reach::Own,
        Some(Object::Exclusive | Object::Shared) => Reach::Arguments,
        Some(Object::Global) if !writes && is_constant_object(module, function, object) => {
            Reach::Own
        }
        _ => Reach::Beyond,
    };
    let mut furthest = Reach::Own;
    for access in &footprint.accesses {
        let bases = aliases.pointers().bases(function, access.root);
        let own = match bases.anything || bases.unknown {
            true => Reach::Beyond,
            false => {
                let objects = bases.objects.iter().map(of_object);
                objects.max().unwrap_or(Reach::Own)
            }
        };
        furthest = furthest.max(own);
    }
    furthest
}

/// For each parameter, whether a copy of it may be left behind: in memory, or as a result.
fn kept_parameters(aliases: &Aliases<'_>) -> Vec<bool> {
    let function = aliases.function();
    let pointers = aliases.pointers();
    let mut returned: Vec<Value> = Vec::new();
    let end = &function.ops[function.terminator(function.body())];
    let mut anything = false;
    if end.opcode == Opcode::Return {
        for &value in &end.operands {
            if function.ty(value).is_ptr() {
                let bases = pointers.bases(function, pointers.root(value));
                anything |= bases.anything;
                returned.extend(bases.objects);
            }
        }
    }
    let kept = |argument: &Value| {
        anything || pointers.is_escaped(*argument) || returned.contains(argument)
    };
    function.arguments().iter().map(kept).collect()
}
