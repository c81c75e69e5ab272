//! Adjoints of loads, stores and copies.

use super::{Mirror, alignment};
use crate::memory;
use crate::step::{Copied, Stored};
use crate::unions;
use ferrozyme_ir::{Builder, Op, Value};

impl Mirror<'_, '_> {
    pub(super) fn reverse_load(&mut self, op: Op, shadow: Value, shape: Option<Value>) {
        let data = &self.source.ops[op];
        let Some(adjoint) = self.adjoints[data.results[0]] else {
            return;
        };
        let (ty, align) = (self.adjoint_type(data.results[0]), alignment(data));
        let shadow = self.lookup(shadow);
        if let Some(shape) = shape {
            let shape = self.lookup(shape);
            return unions::return_word(&mut self.b, adjoint, shadow, align, Some(shape));
        }
        let before = self.b.load(ty, shadow, align);
        let after = self.add(before, adjoint);
        self.b.store(after, shadow, align);
    }

    pub(super) fn reverse_store(&mut self, op: Op, shadow: Value, stored: Stored) {
        let data = &self.source.ops[op];
        let value = data.value();
        let align = alignment(data);
        let shadow = self.lookup(shadow);
        let active = self.forward.activities.is_active(value);
        let found = match stored {
            Stored::Float if !active => None,
            Stored::Other => None,
            Stored::Float | Stored::Word(_) => {
                let ty = self.adjoint_type(value);
                Some(self.b.load(ty, shadow, align))
            }
        };
        let adjoint = match (found, stored) {
            (Some(found), Stored::Word(shape)) => {
                let shape = self.lookup(shape);
                let none = self.b.zero(self.b.ty(found));
                let is_float = unions::is_float(&mut self.b, shape);
                Some(self.b.select(is_float, found, none))
            }
            _ => found,
        };
        let ty = match stored {
            Stored::Float => self.adjoint_type(value),
            Stored::Word(_) | Stored::Other => self.source.ty(value),
        };
        let zero = self.b.zero(ty);
        self.b.store(zero, shadow, align);
        if let Some(adjoint) = adjoint {
            self.accumulate(value, adjoint);
        }
    }

    pub(super) fn reverse_atomic_add(&mut self, op: Op, shadow: Value) {
        let data = &self.source.ops[op];
        let (value, old) = (data.value(), self.adjoints[data.results[0]]);
        if old.is_none() && !self.forward.activities.is_active(value) {
            return;
        }
        let ty = self.source.ty(value);
        let align = alignment(data);
        let shadow = self.lookup(shadow);
        let adjoint = self.b.load(ty, shadow, align);
        self.accumulate(value, adjoint);
        if let Some(old) = old {
            let sum = self.add(adjoint, old);
            self.b.store(sum, shadow, align);
        }
    }

    pub(super) fn reverse_copy(
        &mut self,
        to: Value,
        from: Option<Value>,
        bytes: Value,
        copied: &Copied,
        constant: Option<Value>,
    ) {
        let to = self.lookup(to);
        let from = from.map(|from| self.lookup(from));
        let bytes = self.lookup(bytes);
        match copied {
            Copied::Words { shape } => {
                let shape = shape.map(|shape| self.lookup(shape));
                let constant = constant.map(|constant| self.lookup(constant));
                unions::return_words(&mut self.b, to, (from, constant), bytes, shape);
            }
            Copied::Cells { cells, overlapping } => {
                let return_floats = |b: &mut Builder<'_>| {
                    memory::return_floats(b, cells, to, from, bytes, *overlapping);
                };
                let Some(constant) = constant else {
                    return return_floats(&mut self.b);
                };
                let constant = self.lookup(constant);
                let forget = |b: &mut Builder<'_>| memory::zero_floats(b, cells, to, bytes);
                unions::either(&mut self.b, constant, forget, return_floats);
            }
        }
    }
}
