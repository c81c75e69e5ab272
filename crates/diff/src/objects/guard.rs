//! What conditions say about indices: `x[i]` behind a bounds check reaches no further than the check lets it.
//!
//! ```text
//! %c = icmp ult i64 %i, 3
//! if %c { yield } else { trap "out of bounds" }
//! %q = offset %p, %i * 8                            ; %i is 0, 1 or 2 from here on
//! ```
//!
//! A condition holds in the region of its `if`, and behind the `if` where the other region ends in a trap.

use super::interval::{Interval, Intervals};
use ferrozyme_ir::{
    Flags, Function, IntPredicate, Op, Opcode, Payload, Region, Scalar, Type, Value,
};
use rustc_hash::FxHashMap;

/// The indices of those `offset`s for which conditions say more than [`Intervals`] does.
pub(super) fn guarded_indices(
    function: &Function,
    intervals: &Intervals,
) -> FxHashMap<Op, Interval> {
    let mut walk = Walk {
        function,
        intervals,
        bounds: FxHashMap::default(),
        replaced: Vec::new(),
        found: FxHashMap::default(),
    };
    if let Some(body) = function.body {
        walk.region(body);
    }
    walk.found
}

struct Walk<'f> {
    function: &'f Function,
    intervals: &'f Intervals,
    /// What holds here.
    bounds: FxHashMap<Value, Interval>,
    /// What held before, to be restored in opposite order.
    replaced: Vec<(Value, Option<Interval>)>,
    found: FxHashMap<Op, Interval>,
}

/// How many operations are looked through from an index or a condition.
const DEPTH: u32 = 6;

impl Walk<'_> {
    fn region(&mut self, region: Region) {
        let scope = self.replaced.len();
        for &op in &self.function.regions[region].ops {
            let data = &self.function.ops[op];
            match data.opcode {
                Opcode::If => {
                    let condition = data.operands[0];
                    for (&inner, holds) in data.regions.iter().zip([true, false]) {
                        let scope = self.replaced.len();
                        self.assume(condition, holds, DEPTH);
                        self.region(inner);
                        self.restore(scope);
                    }
                    for (&inner, holds) in data.regions.iter().zip([false, true]) {
                        if ends_in_trap(self.function, inner) {
                            self.assume(condition, holds, DEPTH);
                        }
                    }
                }
                Opcode::Offset => {
                    let index = data.operands[1];
                    let refined = self.get(index, DEPTH);
                    if refined != self.intervals.get(self.function, index) {
                        self.found.insert(op, refined);
                    }
                }
                _ => {
                    for &inner in &data.regions {
                        self.region(inner);
                    }
                }
            }
        }
        self.restore(scope);
    }

    fn restore(&mut self, scope: usize) {
        while self.replaced.len() > scope
            && let Some((value, before)) = self.replaced.pop()
        {
            match before {
                Some(interval) => self.bounds.insert(value, interval),
                None => self.bounds.remove(&value),
            };
        }
    }

    /// What a value may be here.
    fn get(&self, value: Value, depth: u32) -> Interval {
        let plain = self.intervals.get(self.function, value);
        let known = *self.bounds.get(&value).unwrap_or(&plain);
        if depth == 0 {
            return known;
        }
        match self.derived(value, depth - 1) {
            Some(derived) => known.cut(derived.lo, derived.hi).unwrap_or(known),
            None => known,
        }
    }

    /// What an operation makes of what its operands may be here.
    fn derived(&self, value: Value, depth: u32) -> Option<Interval> {
        let (op, _) = self.function.def_op(value)?;
        let data = &self.function.ops[op];
        let bits = self.function.ty(value).scalar().bits();
        let signed = data.flags.contains(Flags::NSW);
        let number = |index: usize| self.function.int_of(data.operands[index]);
        match data.opcode {
            Opcode::Zext | Opcode::Sext => {
                let inner = self.get(data.operands[0], depth);
                (data.opcode == Opcode::Sext || inner.lo >= 0).then_some(inner)
            }
            Opcode::Add => {
                let by = Interval::exact(number(1)?);
                let inner = self.get(data.operands[0], depth);
                Some(inner.plus(by).fitted(bits, signed))
            }
            Opcode::Sub => {
                let by = Interval::exact(-number(1)?);
                let inner = self.get(data.operands[0], depth);
                Some(inner.plus(by).fitted(bits, signed))
            }
            Opcode::Mul => {
                let inner = self.get(data.operands[0], depth);
                Some(inner.times(number(1)?).fitted(bits, signed))
            }
            Opcode::Shl => {
                let by = number(1).filter(|by| (0..64).contains(by))?;
                let inner = self.get(data.operands[0], depth);
                Some(inner.times(1 << by).fitted(bits, signed))
            }
            _ => None,
        }
    }

    fn assume(&mut self, condition: Value, holds: bool, depth: u32) {
        let Some((op, _)) = self.function.def_op(condition) else {
            return;
        };
        let data = &self.function.ops[op];
        let (opcode, operands) = (data.opcode, &data.operands);
        match opcode {
            Opcode::Icmp => {
                if let Payload::IntPredicate(predicate) = data.payload
                    && is_followed(self.function.ty(operands[0]))
                {
                    let predicate = if holds { predicate } else { inverse(predicate) };
                    self.compare(predicate, operands[0], operands[1]);
                    self.compare(swapped(predicate), operands[1], operands[0]);
                }
            }
            Opcode::And | Opcode::Or if depth > 0 && holds == (opcode == Opcode::And) => {
                self.assume(operands[0], holds, depth - 1);
                self.assume(operands[1], holds, depth - 1);
            }
            Opcode::Xor if depth > 0 && self.function.int_of(operands[1]) == Some(-1) => {
                self.assume(operands[0], !holds, depth - 1);
            }
            _ => {}
        }
    }

    /// `value predicate other` holds: what follows for `value`.
    fn compare(&mut self, predicate: IntPredicate, value: Value, other: Value) {
        if self.function.is_constant(value) {
            return;
        }
        let before = self.get(value, DEPTH);
        let limit = self.get(other, DEPTH);
        let (lo, hi) = match predicate {
            IntPredicate::Eq => (limit.lo, limit.hi),
            IntPredicate::Slt => (before.lo, limit.hi.saturating_sub(1)),
            IntPredicate::Sle => (before.lo, limit.hi),
            IntPredicate::Sgt => (limit.lo.saturating_add(1), before.hi),
            IntPredicate::Sge => (limit.lo, before.hi),
            // Below something that is not negative, nothing is.
            IntPredicate::Ult if limit.lo >= 0 => (0, limit.hi.saturating_sub(1)),
            IntPredicate::Ule if limit.lo >= 0 => (0, limit.hi),
            _ => return,
        };
        // An empty rest is code that never runs.
        if let Some(after) = before.cut(lo, hi)
            && after != before
        {
            let old = self.bounds.insert(value, after);
            self.replaced.push((value, old));
        }
    }
}

fn ends_in_trap(function: &Function, region: Region) -> bool {
    let last = function.regions[region].ops.last();
    last.is_some_and(|&op| function.ops[op].opcode == Opcode::Trap)
}

/// Whether intervals of this type are exact bounds of its values.
fn is_followed(ty: Type) -> bool {
    !ty.is_vector() && matches!(ty.scalar(), Scalar::Int(2..=64))
}

/// The predicate that holds where this one does not.
fn inverse(predicate: IntPredicate) -> IntPredicate {
    match predicate {
        IntPredicate::Eq => IntPredicate::Ne,
        IntPredicate::Ne => IntPredicate::Eq,
        IntPredicate::Slt => IntPredicate::Sge,
        IntPredicate::Sle => IntPredicate::Sgt,
        IntPredicate::Sgt => IntPredicate::Sle,
        IntPredicate::Sge => IntPredicate::Slt,
        IntPredicate::Ult => IntPredicate::Uge,
        IntPredicate::Ule => IntPredicate::Ugt,
        IntPredicate::Ugt => IntPredicate::Ule,
        IntPredicate::Uge => IntPredicate::Ult,
    }
}

/// The predicate that holds with the operands in opposite order.
fn swapped(predicate: IntPredicate) -> IntPredicate {
    match predicate {
        IntPredicate::Eq => IntPredicate::Eq,
        IntPredicate::Ne => IntPredicate::Ne,
        IntPredicate::Slt => IntPredicate::Sgt,
        IntPredicate::Sle => IntPredicate::Sge,
        IntPredicate::Sgt => IntPredicate::Slt,
        IntPredicate::Sge => IntPredicate::Sle,
        IntPredicate::Ult => IntPredicate::Ugt,
        IntPredicate::Ule => IntPredicate::Uge,
        IntPredicate::Ugt => IntPredicate::Ult,
        IntPredicate::Uge => IntPredicate::Ule,
    }
}
