//! What a carried value of a loop is in its k-th iteration: where it starts, and by how much it grows each time.
//!
//! A value grows evenly where each iteration adds the same amount to it ([`step_of`]). It also does where each iteration computes it anew from the counter, if it starts
//! with what the iteration before the first would have computed ([`find_delayed`]):
//!
//! ```text
//! for %i: i64 = 0 to %n step 1 with (%j: i64 = 0, %q: ptr = %p) {
//!   %j1 = add i64 %i, 1
//!   %o = mul i64 %j1, %size
//!   %q1 = offset %p, %o * 8
//!   yield %j1, %q1
//! }
//! ```
//!
//! Here `j` is `i`, and `q` is `p + 8·size·i`. Iterators that hand out one element and keep the next look so.

use crate::alias::Aliases;
use crate::carried::yielded;
use crate::symbolic::Symbolic;
use ferrozyme_ir::{Flags, Function, Module, Op, Opcode, Payload, Type, Value, all_ops};
use rustc_hash::FxHashMap;

/// What is added to a carried value in an iteration: `amount · factor`, in bytes for pointers.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// A value of the carried value's type, an `i64` for pointers; one if there is none.
    pub amount: Option<Value>,
    pub factor: i64,
    /// What the addition promises.
    pub flags: Flags,
}

impl Step {
    /// The step as a number.
    pub(crate) fn constant(&self, function: &Function) -> Option<i128> {
        let amount = self
            .amount
            .map_or(Some(1), |amount| function.int_of(amount))?;
        amount.checked_mul(i128::from(self.factor))
    }
}

/// What the operation adds that computes the next value of a carried one from it. Whether that is the same in each iteration is for the caller to see.
pub(crate) fn step_of(function: &Function, carried: Value, next: Value) -> Option<Step> {
    let (op, _) = function.def_op(next)?;
    let data = &function.ops[op];
    let &[a, b] = &data.operands[..] else {
        return None;
    };
    let (amount, factor) = match (data.opcode, &data.payload) {
        (Opcode::Add, _) if a == carried => (b, 1),
        (Opcode::Add, _) if b == carried => (a, 1),
        (Opcode::Sub, _) if a == carried => (b, -1),
        (Opcode::Offset, &Payload::Scale(scale)) if a == carried => (b, scale),
        _ => return None,
    };
    let flags = match data.opcode {
        // Not to fall below zero is no promise of the sum with the opposite.
        Opcode::Sub => data.flags.without(Flags::NUW),
        _ => data.flags,
    };
    (!function.ty(carried).is_vector()).then_some(Step {
        amount: Some(amount),
        factor,
        flags,
    })
}

/// The carried values of counted loops that are what a function of the counter was one iteration before, by loop and place among what it carries.
pub(crate) fn find_delayed(module: &Module, function: &Function) -> FxHashMap<(Op, usize), Step> {
    let mut found = FxHashMap::default();
    let mut candidates = Vec::new();
    for op in all_ops(function) {
        let data = &function.ops[op];
        if data.opcode != Opcode::For {
            continue;
        }
        for (index, &next) in yielded(function, data.regions[0])
            .into_iter()
            .flatten()
            .enumerate()
        {
            let ty = function.ty(next);
            let argument = function.regions[data.regions[0]].args[index + 1];
            if (ty == Type::I64 || ty == Type::PTR) && next != argument {
                candidates.push((op, index, next));
            }
        }
    }
    if candidates.is_empty() {
        return found;
    }
    let aliases = Aliases::new(module, function);
    for (op, index, next) in candidates {
        let initial = function.ops[op].operands[index + 3];
        if let Some(step) = delayed_step(&aliases, op, initial, next) {
            found.insert((op, index), step);
        }
    }
    found
}

fn delayed_step(aliases: &Aliases<'_>, op: Op, initial: Value, next: Value) -> Option<Step> {
    let (function, indices) = (aliases.function(), aliases.indices());
    let counted = indices.counted(op)?;
    let step = counted.constant_step().filter(|step| step.abs() == 1)?;
    let pointer = function.ty(next) == Type::PTR;
    let expression = |value: Value| match pointer {
        true => aliases.pointers().offset(value),
        false => indices.expression(value),
    };
    if pointer && aliases.pointers().root(next) != aliases.pointers().root(initial) {
        return None;
    }
    let (first, next_expression) = (expression(initial), expression(next));
    let (growth, rest) = next_expression.split(counted.counter);
    let before = counted.from.sub(&counted.step)?;
    let would_have_been = growth.mul(&before)?.add(&rest)?;
    let evenly = !growth.mentions(counted.counter) && indices.is_invariant(&growth, op);
    if would_have_been != first || !evenly {
        return None;
    }
    let (amount, factor) = single_product(&growth)?;
    let outside = |value: Value| indices.is_defined_outside(value, op);
    let fits = amount.is_none_or(outside) && (pointer || amount.is_none() || factor.abs() == 1);
    fits.then_some(Step {
        amount,
        factor: factor.checked_mul(step)?,
        flags: match pointer && is_inbounds(function, next) && starts_inbounds(aliases, initial) {
            true => Flags::INBOUNDS,
            false => Flags::NONE,
        },
    })
}

/// A number, or a number times a value.
fn single_product(expression: &Symbolic) -> Option<(Option<Value>, i64)> {
    if let Some(constant) = expression.is_constant() {
        return Some((None, constant));
    }
    match expression.terms() {
        [term] if expression.constant_part() == 0 && term.monomial.len() == 1 => {
            Some((Some(term.monomial[0]), term.coefficient))
        }
        _ => None,
    }
}

fn is_inbounds(function: &Function, pointer: Value) -> bool {
    function
        .def_op(pointer)
        .is_some_and(|(op, _)| function.ops[op].flags.contains(Flags::INBOUNDS))
}

fn starts_inbounds(aliases: &Aliases<'_>, initial: Value) -> bool {
    aliases.pointers().root(initial) == initial || is_inbounds(aliases.function(), initial)
}
