//! Addresses of a nest as arrays with one stride per loop.

use crate::alias::{Access, Aliases};
use crate::recurrence::Counted;
use crate::symbolic::Symbolic;
use ferrozyme_ir::{Builder, Op, Value};

/// The places that an access touches over a nest: `root + base + Σ stride·iteration`.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub root: Value,
    /// The distance of the first element from the root, in bytes.
    pub base: Symbolic,
    /// By how many bytes each loop of the nest moves, outermost first.
    pub strides: Vec<Symbolic>,
}

impl Array {
    /// The array that an access is over a nest, in terms of values from outside the outermost loop.
    pub(super) fn of(aliases: &Aliases<'_>, access: &Access, loops: &[Counted]) -> Option<Array> {
        let nest = loops.first()?.op;
        if !aliases.indices().is_defined_outside(access.root, nest) {
            return None;
        }
        let mut base = access.offset.clone();
        let mut strides = Vec::new();
        for counted in loops {
            let (factor, rest) = base.split(counted.counter);
            let stride = factor.mul(&counted.step)?;
            if !is_visible(aliases, &stride, nest) {
                return None;
            }
            base = factor.mul(&counted.from)?.add(&rest)?;
            strides.push(stride);
        }
        is_visible(aliases, &base, nest).then_some(Array {
            root: access.root,
            base,
            strides,
        })
    }

    /// Whether a loop of the nest moves.
    pub(super) fn moves(&self, position: usize) -> bool {
        self.strides[position].is_constant() != Some(0)
    }

    /// Builds the address of the first element.
    pub(super) fn emit_base(&self, b: &mut Builder<'_>) -> Value {
        match self.base.is_constant() {
            Some(0) => self.root,
            Some(bytes) => b.offset_bytes(self.root, bytes),
            None => {
                let bytes = emit(&self.base, b);
                b.offset(self.root, bytes, 1)
            }
        }
    }
}

/// Whether an expression can be built outside a loop.
pub(super) fn is_visible(aliases: &Aliases<'_>, expression: &Symbolic, nest: Op) -> bool {
    let indices = aliases.indices();
    indices.can_emit(expression)
        && expression
            .variables()
            .all(|value| indices.is_defined_outside(value, nest))
}

/// Builds an expression that [`is_visible`] outside the nest.
pub(super) fn emit(expression: &Symbolic, b: &mut Builder<'_>) -> Value {
    let value = expression.emit(b);
    value.expect("only expressions of visible integers are looked at")
}
