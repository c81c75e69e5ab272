//! What a carried value of a loop is in its k-th iteration, and how many iterations there are: where it starts, by how much it grows each time, and how often.
//!
//! Whoever asks what a loop does to a number asks here. A [`Counted`] loop knows its trip count; a [`Step`] is what an iteration adds to a carried value, of which follow what that is
//! in terms of the counter, as an expression ([`Step::elapsed`]) and as operations ([`Step::build`]).
//!
//! A value grows evenly where each iteration adds the same amount to it ([`even_step`]). It also does where each iteration computes it anew from the counter, if it starts
//! with what the iteration before the first would have computed ([`find_steps`] finds both):
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

mod build;

pub use build::{build_iteration_number, build_trip_count};
pub(crate) use build::{distance, widen};

use crate::alias::Aliases;
use crate::carried::{Carried, carried_by};
use crate::indices::Indices;
use crate::symbolic::Symbolic;
use ferrozyme_ir::{
    Flags, Function, Module, Op, OpView, Opcode, Region, Structure, Type, Value, all_ops,
};
use rustc_hash::FxHashMap;

/// A counted loop.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The `for`.
    pub op: Op,
    /// Its region.
    pub body: Region,
    /// The counter.
    pub counter: Value,
    /// The counter's first value.
    pub from: Symbolic,
    /// The bound of the counter, exclusive (from above, for a negative step).
    pub to: Symbolic,
    /// The step.
    pub step: Symbolic,
    /// Whether it counts up (or down), where that is known.
    pub upward: Option<bool>,
}

impl Counted {
    /// The step, if it is a constant.
    pub fn constant_step(&self) -> Option<i64> {
        self.step.is_constant()
    }

    /// A value that the counter never falls below.
    pub fn smallest(&self) -> Option<Symbolic> {
        match self.upward? {
            true => Some(self.from.clone()),
            false => self.to.plus(1),
        }
    }

    /// A value that the counter never exceeds.
    pub fn largest(&self) -> Option<Symbolic> {
        match self.upward? {
            true => self.to.plus(-1),
            false => Some(self.from.clone()),
        }
    }

    /// How often the body runs. The number is to be read as 0 where it is negative.
    ///
    /// There is an answer where the step is constant and divides the distance evenly, or the distance is constant, too.
    pub fn trip_count(&self) -> Option<Symbolic> {
        let distance = self.to.sub(&self.from)?;
        let step = self.constant_step().filter(|&step| step != 0)?;
        match distance.is_constant() {
            Some(distance) => {
                let ahead = i128::from(distance) * i128::from(step.signum());
                let step = i128::from(step).abs();
                let count = (ahead.max(0) + step - 1) / step;
                Some(Symbolic::constant(i64::try_from(count).ok()?))
            }
            None => distance.divide_exactly(step),
        }
    }

    /// The counter's value in the last iteration, if there is one.
    pub fn last_counter(&self) -> Option<Symbolic> {
        let before = self.trip_count()?.plus(-1)?;
        self.from.add(&before.mul(&self.step)?)
    }
}

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

    /// What all iterations before the current one have added, if it is the same in each.
    pub(crate) fn elapsed(&self, indices: &Indices<'_>, op: Op) -> Option<Symbolic> {
        let counted = indices.counted(op)?;
        if indices.function().ty(counted.counter).scalar().bits() > 64 {
            return None;
        }
        let amount = self
            .amount
            .map_or(Symbolic::constant(1), |amount| indices.expression(amount));
        let growth = amount.scale(self.factor)?;
        let distance = Symbolic::of_value(counted.counter).sub(&counted.from)?;
        growth
            .divide_exactly(counted.constant_step()?)?
            .mul(&distance)
    }
}

/// What the operation adds that computes the next value of a carried one from it. Whether that is the same in each iteration is for the caller to see.
pub(crate) fn step_of(function: &Function, carried: Value, next: Value) -> Option<Step> {
    let (op, _) = function.def_op(next)?;
    let data = &function.ops[op];
    let (amount, factor) = match data.view() {
        OpView::Binary(Opcode::Add, a, b) if a == carried => (b, 1),
        OpView::Binary(Opcode::Add, a, b) if b == carried => (a, 1),
        OpView::Binary(Opcode::Sub, a, b) if a == carried => (b, -1),
        OpView::Offset { base, index, scale } if base == carried => (index, scale),
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

/// What each iteration of a loop adds to a carried value, if it is the same value in all of them.
pub(crate) fn even_step(
    function: &Function,
    structure: &Structure,
    op: Op,
    carried: &Carried,
) -> Option<Step> {
    step_of(function, carried.argument, carried.next).filter(|step| {
        step.amount
            .is_none_or(|amount| structure.is_defined_outside(function, amount, op))
    })
}

/// By how much the values grow that counted loops carry, as far as it is the same in each iteration; by loop and place among what it carries.
pub(crate) fn find_steps(module: &Module, function: &Function) -> FxHashMap<(Op, usize), Step> {
    let structure = Structure::of(function);
    let mut found = FxHashMap::default();
    let mut others = Vec::new();
    for op in all_ops(function) {
        if function.ops[op].opcode != Opcode::For {
            continue;
        }
        for (index, carried) in carried_by(function, op).into_iter().enumerate() {
            if let Some(step) = even_step(function, &structure, op, &carried) {
                found.insert((op, index), step);
            } else if matches!(function.ty(carried.next), Type::I64 | Type::PTR)
                && carried.next != carried.argument
            {
                others.push((op, index, carried));
            }
        }
    }
    if others.is_empty() {
        return found;
    }
    let aliases = Aliases::new(module, function);
    for (op, index, carried) in others {
        if let Some(step) = delayed_step(&aliases, op, &carried) {
            found.insert((op, index), step);
        }
    }
    found
}

/// The step of a carried value that is what a function of the counter was one iteration before.
fn delayed_step(aliases: &Aliases<'_>, op: Op, carried: &Carried) -> Option<Step> {
    let (function, indices) = (aliases.function(), aliases.indices());
    let &Carried { initial, next, .. } = carried;
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
