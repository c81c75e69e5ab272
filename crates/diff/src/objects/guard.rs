//! Bounds of indices from conditions: after a bounds check, `x[i]` stays within the checked length.
//!
//! ```text
//! %c = icmp ult i64 %i, 3
//! if %c { yield } else { trap "out of bounds" }
//! %q = offset %p, %i * 8                            ; %i is 0, 1 or 2 from here on
//! ```
//!
//! A condition holds in the region of its `if`, and behind the `if` where the other region ends in a trap. [`Bounds`] keeps what holds
//! at one place of a walk; [`Intervals`] is found with its help, too.

use super::interval::{Interval, Intervals};
use ferrozyme_ir::{
    Flags, Function, IntPredicate, Op, Opcode, Payload, Region, Scalar, Type, Value,
};
use ferrozyme_opt::{comparison, split_conjunction};
use rustc_hash::FxHashMap;

/// What conditions say about integers at one place of a walk through a function.
#[derive(Default)]
pub(super) struct Bounds {
    /// What holds here.
    bounds: FxHashMap<Value, Interval>,
    /// What held before, to be restored in opposite order.
    replaced: Vec<(Value, Option<Interval>)>,
}

impl Bounds {
    /// What conditions say of a value here, if they do.
    pub(super) fn get(&self, value: Value) -> Option<Interval> {
        self.bounds.get(&value).copied()
    }

    /// A mark to come back to.
    pub(super) fn mark(&self) -> usize {
        self.replaced.len()
    }

    /// Forgets what was assumed since a mark.
    pub(super) fn restore(&mut self, mark: usize) {
        while self.replaced.len() > mark
            && let Some((value, before)) = self.replaced.pop()
        {
            match before {
                Some(interval) => self.bounds.insert(value, interval),
                None => self.bounds.remove(&value),
            };
        }
    }

    /// From here on a condition holds, or does not. `known` says what a value may be here, by all that is known; none where nothing has
    /// reached it yet.
    pub(super) fn assume<K>(
        &mut self,
        function: &Function,
        condition: Value,
        holds: bool,
        known: &K,
    ) where
        K: Fn(&Bounds, Value) -> Option<Interval>,
    {
        for truth in split_conjunction(function, (condition, holds)) {
            if let Some((predicate, a, b)) = comparison(function, truth)
                && is_followed(function.ty(a))
            {
                self.compare(function, predicate, a, b, known);
                self.compare(function, predicate.swapped(), b, a, known);
            }
        }
    }

    /// `value predicate other` holds: what follows for `value`.
    fn compare<K>(
        &mut self,
        function: &Function,
        predicate: IntPredicate,
        value: Value,
        other: Value,
        known: &K,
    ) where
        K: Fn(&Bounds, Value) -> Option<Interval>,
    {
        if function.is_constant(value) {
            return;
        }
        let (Some(before), Some(limit)) = (known(self, value), known(self, other)) else {
            return;
        };
        let step = i128::try_from(before.step).unwrap_or(i128::MAX).max(1);
        let (lo, hi) = match predicate {
            IntPredicate::Eq => (limit.lo, limit.hi),
            // Without its first or last number, a row is shorter.
            IntPredicate::Ne if limit.lo == limit.hi && before.lo < before.hi => (
                if before.lo == limit.lo {
                    before.lo.saturating_add(step)
                } else {
                    before.lo
                },
                if before.hi == limit.lo {
                    before.hi.saturating_sub(step)
                } else {
                    before.hi
                },
            ),
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

/// The indices of those `offset`s for which conditions say more than [`Intervals`] does.
pub(super) fn guarded_indices(
    function: &Function,
    intervals: &Intervals,
) -> FxHashMap<Op, Interval> {
    let mut walk = Walk {
        function,
        intervals,
        bounds: Bounds::default(),
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
    bounds: Bounds,
    found: FxHashMap<Op, Interval>,
}

/// How many operations are looked through from an index or a condition.
const DEPTH: u32 = 6;

impl Walk<'_> {
    fn region(&mut self, region: Region) {
        let mark = self.bounds.mark();
        for &op in &self.function.regions[region].ops {
            let data = &self.function.ops[op];
            match data.opcode {
                Opcode::If => {
                    let condition = data.operands[0];
                    for (&inner, holds) in data.regions.iter().zip([true, false]) {
                        let mark = self.bounds.mark();
                        self.assume(condition, holds);
                        self.region(inner);
                        self.bounds.restore(mark);
                    }
                    for (&inner, holds) in data.regions.iter().zip([false, true]) {
                        if ends_in_trap(self.function, inner) {
                            self.assume(condition, holds);
                        }
                    }
                }
                Opcode::Offset => {
                    let index = data.operands[1];
                    let refined = get(self.function, self.intervals, &self.bounds, index, DEPTH);
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
        self.bounds.restore(mark);
    }

    fn assume(&mut self, condition: Value, holds: bool) {
        let (function, intervals) = (self.function, self.intervals);
        let known = |bounds: &Bounds, value| Some(get(function, intervals, bounds, value, DEPTH));
        self.bounds.assume(function, condition, holds, &known);
    }
}

/// What a value may be here.
fn get(
    function: &Function,
    intervals: &Intervals,
    bounds: &Bounds,
    value: Value,
    depth: u32,
) -> Interval {
    let known = bounds
        .get(value)
        .unwrap_or_else(|| intervals.get(function, value));
    if depth == 0 {
        return known;
    }
    match derived(function, intervals, bounds, value, depth - 1) {
        Some(derived) => known.cut(derived.lo, derived.hi).unwrap_or(known),
        None => known,
    }
}

/// What an operation makes of what its operands may be here.
fn derived(
    function: &Function,
    intervals: &Intervals,
    bounds: &Bounds,
    value: Value,
    depth: u32,
) -> Option<Interval> {
    let get = |operand| get(function, intervals, bounds, operand, depth);
    let (op, _) = function.def_op(value)?;
    let data = &function.ops[op];
    let bits = function.ty(value).scalar().bits();
    let signed = data.flags.contains(Flags::NSW);
    let number = |index: usize| function.int_of(data.operands[index]);
    match data.opcode {
        Opcode::Zext | Opcode::Sext => {
            let inner = get(data.operands[0]);
            (data.opcode == Opcode::Sext || inner.lo >= 0).then_some(inner)
        }
        Opcode::Add => {
            let by = Interval::exact(number(1)?);
            let inner = get(data.operands[0]);
            Some(inner.plus(by).fitted(bits, signed))
        }
        Opcode::Sub => {
            let by = Interval::exact(-number(1)?);
            let inner = get(data.operands[0]);
            Some(inner.plus(by).fitted(bits, signed))
        }
        Opcode::Mul => {
            let inner = get(data.operands[0]);
            Some(inner.times(number(1)?).fitted(bits, signed))
        }
        Opcode::Shl => {
            let by = number(1).filter(|by| (0..64).contains(by))?;
            let inner = get(data.operands[0]);
            Some(inner.times(1 << by).fitted(bits, signed))
        }
        _ => None,
    }
}

pub(super) fn ends_in_trap(function: &Function, region: Region) -> bool {
    let last = function.regions[region].ops.last();
    last.is_some_and(|&op| function.ops[op].opcode == Opcode::Trap)
}

/// Words that are cut out of wider products, behind a check that nothing is lost; and the products.
///
/// ```text
/// %w = mul i128 %n, 24
/// %t = trunc_int i128 %w to i64
/// %z = zext i64 %t to i128
/// %lost = icmp ne i128 %w, %z
/// if %lost { trap "overflow" } else { yield }       ; %t is %w from here on
/// ```
///
/// What comes before the check counts as well: the program stops there if it does not hold.
pub(super) fn checked_words(function: &Function) -> FxHashMap<Value, Value> {
    let mut found = FxHashMap::default();
    for op in ferrozyme_ir::returning_ops(function) {
        let data = &function.ops[op];
        if data.opcode == Opcode::If && ends_in_trap(function, data.regions[0]) {
            let mut unseen = vec![data.operands[0]];
            while let Some(value) = unseen.pop() {
                let Some((op, _)) = function.def_op(value) else {
                    continue;
                };
                let data = &function.ops[op];
                match (data.opcode, &data.payload) {
                    (Opcode::Or, _) => unseen.extend(&data.operands),
                    (Opcode::Icmp, Payload::IntPredicate(IntPredicate::Ne)) => {
                        let pairs =
                            [(0, 1), (1, 0)].map(|(a, b)| (data.operands[a], data.operands[b]));
                        found.extend(pairs.iter().filter_map(|&(wide, other)| {
                            let word = operand_of(function, other, Opcode::Zext)?;
                            let cut = operand_of(function, word, Opcode::TruncInt)?;
                            (cut == wide).then_some((word, wide))
                        }));
                    }
                    _ => {}
                }
            }
        }
    }
    found
}

/// The operand of the operation that makes a value, if it is of this kind.
fn operand_of(function: &Function, value: Value, opcode: Opcode) -> Option<Value> {
    let (op, _) = function.def_op(value)?;
    let data = &function.ops[op];
    (data.opcode == opcode).then(|| data.operands[0])
}

/// Whether intervals of this type are exact bounds of its values.
fn is_followed(ty: Type) -> bool {
    !ty.is_vector() && matches!(ty.scalar(), Scalar::Int(2..=64))
}
