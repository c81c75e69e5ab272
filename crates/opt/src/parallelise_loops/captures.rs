//! What a loop takes from outside.

use super::Finder;
use super::sharing::Sharing;
use ferrozyme_ir::{Constant, Op, OpView, Value, for_each_op};
use rustc_hash::FxHashSet;

/// A value that the new function gets as a parameter.
pub(super) struct Capture {
    pub(super) value: Value,
    /// Whether it is a pointer, and the loop accesses the memory behind it through no other.
    pub(super) alone: bool,
    /// Whether the loop does not write there.
    pub(super) readonly: bool,
    /// The sums that the block has a copy of, if it is a pointer to them.
    pub(super) copy: Option<usize>,
}

/// What a loop takes from outside.
pub(super) struct Captures {
    pub(super) values: Vec<Capture>,
    /// Operations that are repeated in the new function, in the order of the text: addresses behind pointers that are captured.
    pub(super) repeated: Vec<Op>,
}

impl Captures {
    pub(super) fn of(finder: &Finder<'_>, around: Op, sharing: &Sharing) -> Captures {
        let function = finder.function;
        let data = &function.ops[around];
        let mut pending: Vec<Value> = data.bounds().to_vec();
        for_each_op(function, data.body(), &mut |_, op| {
            pending.extend(&function.ops[op].operands);
        });
        let mut seen: FxHashSet<Value> = FxHashSet::default();
        let (mut values, mut repeated) = (Vec::new(), Vec::new());
        while let Some(value) = pending.pop() {
            if !finder.comes_from_outside(around, value, sharing) || !seen.insert(value) {
                continue;
            }
            if let Some((op, _)) = function.def_op(value)
                && let OpView::Offset { base, index, .. } = function.view(op)
            {
                repeated.push(op);
                pending.extend([base, index]);
                continue;
            }
            values.push(value);
        }
        values.sort_unstable();
        repeated.sort_by_key(|&op| finder.aliases.structure().order(op));
        let values = values.into_iter();
        Captures {
            values: values.map(|value| finder.capture(value, sharing)).collect(),
            repeated,
        }
    }
}

impl Finder<'_> {
    /// Whether a function made of a loop has to be given a value. Each thread has its own copy of a thread-local global; that of the thread which runs the loop is meant. Where blocks have copies of a global, each
    /// is given its own.
    fn comes_from_outside(&self, around: Op, value: Value, sharing: &Sharing) -> bool {
        match self.function.constant_of(value) {
            Some(Constant::Global(global)) => {
                let is_thread_local = self.module.globals[*global].thread_local;
                is_thread_local || self.copy_of(&sharing.shared, value).is_some()
            }
            Some(_) => false,
            None => self.aliases.indices().is_defined_outside(value, around),
        }
    }

    fn capture(&self, value: Value, sharing: &Sharing) -> Capture {
        let is_root = self.function.ty(value) == ferrozyme_ir::Type::PTR
            && self.aliases.pointers().root(value) == value;
        let others = || {
            let mut touches = sharing.touches.iter();
            touches.all(|touch| {
                touch.access.root == value || !self.aliases.may_share(touch.access.root, value)
            })
        };
        let alone = is_root && others();
        let written = || {
            let mut touches = sharing.touches.iter();
            touches.any(|touch| touch.writes && touch.access.root == value)
        };
        Capture {
            value,
            alone,
            readonly: alone && !written(),
            copy: self.copy_of(&sharing.shared, value),
        }
    }
}
