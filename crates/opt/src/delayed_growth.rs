//! Finds carried values that are what a function of the counter was one turn before.
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
//! Neither `j` nor `q` is computed from itself, but since `j` starts with what `i + 1` would have been in the turn before the first, it is `i` in all of them, and
//! `q` is `p + 8·size·i`. Iterators that hand out one element and keep the next look so.

use crate::alias::Aliases;
use crate::carried::yielded;
use crate::symbolic::Symbolic;
use ferrozyme_ir::{Flags, Function, Module, Op, Opcode, Type, Value, all_ops};
use rustc_hash::FxHashMap;

/// By what such a value grows in each turn: the product of both.
pub(crate) struct DelayedGrowth {
    /// A value from outside the loop; one if there is none.
    pub amount: Option<Value>,
    pub factor: i64,
    /// What a pointer promises.
    pub flags: Flags,
}

/// All of them, by loop and by the place among what the loop carries.
pub(crate) fn find_delayed_growth(
    module: &Module,
    function: &Function,
) -> FxHashMap<(Op, usize), DelayedGrowth> {
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
        if let Some(growth) = growth_of(&aliases, op, function.ops[op].operands[index + 3], next) {
            found.insert((op, index), growth);
        }
    }
    found
}

fn growth_of(aliases: &Aliases<'_>, op: Op, initial: Value, next: Value) -> Option<DelayedGrowth> {
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
    fits.then_some(DelayedGrowth {
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
