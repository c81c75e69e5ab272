//! Finds sums of products: what a store adds to memory, and what loops add up in a register before it is stored.
//!
//! ```text
//! %s = for %k: i64 = 0 to %n step 1 with (%a: f32 = 0.0) {     the sum
//!   %x = load f32 %p                                           two factors
//!   %y = load f32 %q
//!   %m = fmul f32 %x, %y
//!   %b = fadd f32 %a, %m
//!   yield %b
//! }
//! %t = fadd f32 %bias, %s                                      the path to the store
//! store f32 %t, %c
//! ```

use crate::carried::{carried_by, yielded};
use crate::indices::Indices;
use crate::uses::Uses;
use ferrozyme_ir::{Function, Op, OpView, Opcode, Value};

/// The maximum number of terms of a stored value, and of factors of a product, that are looked at.
const MAX_PARTS: usize = 16;

/// A condition that must hold, or must not, for a sum to be added.
pub(super) type Guard = (Value, bool);

/// A term of a stored value.
#[derive(Clone, Debug)]
pub(super) struct Term {
    /// Its value.
    pub value: Value,
    /// The use of it that leads to the store.
    pub used: (Op, usize),
    /// What it is multiplied with on the way.
    pub scales: Vec<Value>,
    /// Whether it is subtracted.
    pub negated: bool,
}

/// A sum over loops, complete before it is used.
pub(super) struct Reduction {
    /// The loops, outermost first.
    pub loops: Vec<Op>,
    /// The factors of what is added in each iteration of the innermost, or their products.
    pub product: Vec<Value>,
    /// Whether it is subtracted.
    pub negated: bool,
    /// What the sum starts with.
    pub initial: Value,
    /// When it is computed at all; otherwise it is zero.
    pub guards: Vec<Guard>,
}

/// The factors of a product.
#[derive(Default)]
pub(super) struct Factors {
    /// Loads that vary in the nest.
    pub loads: Vec<Op>,
    /// Values from outside the nest.
    pub scalars: Vec<Value>,
    /// Whether the product is negated.
    pub negated: bool,
}

/// Looks at the values of a nest.
pub(super) struct Products<'a, 'f> {
    pub function: &'f Function,
    pub indices: &'a Indices<'f>,
    pub uses: &'a Uses,
    /// The outermost loop of the nest.
    pub nest: Op,
}

impl Products<'_, '_> {
    fn is_outside(&self, value: Value) -> bool {
        self.indices.is_defined_outside(value, self.nest)
    }

    /// The terms of what a store writes; none if there are too many.
    pub(super) fn terms(&self, store: Op) -> Option<Vec<Term>> {
        let mut terms = Vec::new();
        let mut pending = vec![Term {
            value: self.function.ops[store].value(),
            used: (store, 0),
            scales: Vec::new(),
            negated: false,
        }];
        while let Some(term) = pending.pop() {
            if terms.len() + pending.len() > MAX_PARTS {
                return None;
            }
            let parts = self.parts(&term, term.used == (store, 0));
            match parts.is_empty() {
                true => terms.push(term),
                false => pending.extend(parts),
            }
        }
        Some(terms)
    }

    /// The terms that a term is the sum of; none if it is a single one. What is stored (`whole`) may be used elsewhere, too.
    fn parts(&self, term: &Term, whole: bool) -> Vec<Term> {
        let Some((op, _)) = self.function.def_op(term.value) else {
            return Vec::new();
        };
        // What is used elsewhere, too, must stay complete.
        if self.is_outside(term.value) || !whole && self.uses.only(term.value).is_none() {
            return Vec::new();
        }
        let part = |value: Value, place: usize, negated: bool| Term {
            value,
            used: (op, place),
            scales: term.scales.clone(),
            negated: term.negated ^ negated,
        };
        match self.function.view(op) {
            OpView::Binary(Opcode::Fadd, a, b) => vec![part(a, 0, false), part(b, 1, false)],
            OpView::Binary(Opcode::Fsub, a, b) => vec![part(a, 0, false), part(b, 1, true)],
            OpView::Unary(Opcode::Fneg, a) => vec![part(a, 0, true)],
            OpView::Binary(Opcode::Fmul, a, b) => {
                let scaled = |sum: Value, place: usize, scale: Value| {
                    let mut term = part(sum, place, false);
                    term.scales.push(scale);
                    vec![term]
                };
                match (self.is_sum(a), self.is_sum(b)) {
                    (true, false) if self.is_outside(b) => scaled(a, 0, b),
                    (false, true) if self.is_outside(a) => scaled(b, 1, a),
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    /// Whether a value may be a sum that has terms, rather than a product.
    fn is_sum(&self, value: Value) -> bool {
        let opcode = (self.function.def_op(value)).map(|(op, _)| self.function.ops[op].opcode);
        matches!(
            opcode,
            Some(Opcode::Fadd | Opcode::Fsub | Opcode::Fneg | Opcode::For | Opcode::If)
        )
    }

    /// The sum over loops that a value is. What is stored (`whole`) may be used elsewhere, too.
    pub(super) fn reduction(&self, value: Value, whole: bool) -> Option<Reduction> {
        if self.is_outside(value) || !whole && self.uses.only(value).is_none() {
            return None;
        }
        let (op, place) = self.function.def_op(value)?;
        match self.function.view(op) {
            OpView::For { .. } => self.sum_of_loop(op, place),
            OpView::If {
                condition,
                then,
                otherwise,
            } if self.is_outside(condition) => {
                let sides = [
                    yielded(self.function, then)?,
                    yielded(self.function, otherwise)?,
                ];
                let sides = sides.map(|values| values[place]);
                let is_zero = |value: Value| self.function.float_of(value) == Some(0.0);
                let sum_side = sides.iter().position(|&side| !is_zero(side))?;
                if !is_zero(sides[1 - sum_side]) {
                    return None;
                }
                let mut reduction = self.reduction(sides[sum_side], false)?;
                if !is_zero(reduction.initial) {
                    return None;
                }
                reduction.guards.push((condition, sum_side == 0));
                Some(reduction)
            }
            _ => None,
        }
    }

    /// The sum that a loop carries at one place.
    fn sum_of_loop(&self, op: Op, place: usize) -> Option<Reduction> {
        let carried = *carried_by(self.function, op).get(place)?;
        self.uses.only(carried.argument)?;
        let (inner, inner_place) = self.function.def_op(carried.next)?;
        match self.function.view(inner) {
            OpView::Binary(opcode @ (Opcode::Fadd | Opcode::Fsub), a, b) => {
                self.uses.only(carried.next)?;
                let product = match (a == carried.argument, b == carried.argument) {
                    (true, false) => b,
                    (false, true) if opcode == Opcode::Fadd => a,
                    _ => return None,
                };
                Some(Reduction {
                    loops: vec![op],
                    product: vec![product],
                    negated: opcode == Opcode::Fsub,
                    initial: carried.initial,
                    guards: Vec::new(),
                })
            }
            // One rounding for both, which sums in another order do not promise either.
            OpView::Ternary(Opcode::Fma, a, b, sum) if sum == carried.argument => {
                self.uses.only(carried.next)?;
                Some(Reduction {
                    loops: vec![op],
                    product: vec![a, b],
                    negated: false,
                    initial: carried.initial,
                    guards: Vec::new(),
                })
            }
            // The sum goes on in a loop inside.
            OpView::For { initial, .. } if initial.get(inner_place) == Some(&carried.argument) => {
                let mut reduction = self.sum_of_loop(inner, inner_place)?;
                reduction.loops.insert(0, op);
                reduction.initial = carried.initial;
                Some(reduction)
            }
            _ => None,
        }
    }

    /// The factors of a product; none if one is computed in another way than by products of loads and values from outside the nest.
    pub(super) fn factors(&self, product: &[Value]) -> Option<Factors> {
        let mut factors = Factors::default();
        let mut pending = product.to_vec();
        while let Some(value) = pending.pop() {
            if factors.loads.len() + factors.scalars.len() + pending.len() > MAX_PARTS {
                return None;
            }
            if self.is_outside(value) {
                factors.scalars.push(value);
                continue;
            }
            let (op, _) = self.function.def_op(value)?;
            match self.function.view(op) {
                OpView::Binary(Opcode::Fmul, a, b) => pending.extend([b, a]),
                OpView::Unary(Opcode::Fneg, a) => {
                    factors.negated = !factors.negated;
                    pending.push(a);
                }
                OpView::Load { .. } => factors.loads.push(op),
                _ => return None,
            }
        }
        Some(factors)
    }
}
