//! The range of bytes that an access covers over all iterations of a loop nest.
//!
//! In
//!
//! ```text
//! for %i: i64 = 0 to %m step 1 {
//!   for %j: i64 = 0 to %n step 1 {
//!     … load f64 %x[i*n + j]
//! ```
//!
//! the load covers, over the outer loop, the `8·m·n` bytes from `%x` on, provided that both loops run at all. Both ends of
//! the range are bytes that the access does touch, so that all in between are bytes of the same object and can be copied.

use crate::alias::{Access, Aliases};
use crate::indices::{Counted, Indices, is_loop};
use crate::inequalities::{Inequalities, Sign};
use crate::symbolic::Symbolic;
use ferrozyme_ir::{Builder, IntPredicate, Op, Opcode, Type, Value};

/// A range of bytes, in terms of values that are visible outside the loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hull {
    /// The pointer that the range is counted from.
    pub root: Value,
    /// How many bytes behind the root it starts.
    pub min: Symbolic,
    /// How many bytes it has.
    pub bytes: Symbolic,
    /// If one of these is less than 1, a loop does not run, nothing is touched, and `min` and `bytes` mean nothing.
    pub guards: Vec<Symbolic>,
}

/// A range of bytes behind a root that is touched in one iteration of a loop.
pub(crate) struct IterationRange {
    /// Where it starts.
    pub start: Symbolic,
    /// Where it ends.
    pub end: Symbolic,
    /// How often inner loops run, where it matters: nothing is touched unless they run.
    pub counts: Vec<Symbolic>,
}

impl Hull {
    /// Builds the number of bytes, 0 if the loops do not run.
    pub fn emit_bytes(&self, b: &mut Builder) -> Option<Value> {
        let mut bytes = self.bytes.emit(b)?;
        let zero = b.i64(0);
        for guard in &self.guards {
            let guard = guard.emit(b)?;
            let runs = b.icmp(IntPredicate::Sgt, guard, zero);
            bytes = b.select(runs, bytes, zero);
        }
        Some(bytes)
    }

    /// Builds the address of the first byte.
    pub fn emit_address(&self, b: &mut Builder) -> Option<Value> {
        if let Some(bytes) = self.min.is_constant() {
            return Some(match bytes {
                0 => self.root,
                _ => b.offset_bytes(self.root, bytes),
            });
        }
        let min = self.min.emit(b)?;
        debug_assert_eq!(b.ty(min), Type::I64);
        Some(b.offset(self.root, min, 1))
    }
}

impl Aliases<'_> {
    /// The smallest range around all that an access of `op` touches over the iterations of `loop_op`, which is around it.
    ///
    /// There is one only if `op` runs in every iteration of `loop_op` and of the loops in between, all of them counted,
    /// and if the extreme counters are known to be reached.
    pub fn hull(&self, access: &Access, op: Op, loop_op: Op) -> Option<Hull> {
        let nest = self.nest(op, loop_op, true)?;
        let indices = self.indices();
        let size = access.size.as_ref()?;
        if !indices.is_defined_outside(access.root, loop_op) || !indices.is_invariant(size, loop_op)
        {
            return None;
        }
        let mut known = Inequalities::at(indices, loop_op);
        for counted in &nest {
            known.assume_within(counted);
        }
        let mut guards = Vec::new();
        let min = extreme(
            indices,
            &known,
            &nest,
            &access.offset,
            Sign::NotPositive,
            &mut guards,
        )?;
        let max = extreme(
            indices,
            &known,
            &nest,
            &access.offset,
            Sign::NotNegative,
            &mut guards,
        )?;
        let bytes = max.sub(&min)?.add(size)?;
        let visible = |expression: &Symbolic| {
            indices.can_emit(expression)
                && expression
                    .variables()
                    .all(|value| indices.is_defined_outside(value, loop_op))
        };
        (visible(&min) && visible(&bytes) && guards.iter().all(visible)).then_some(Hull {
            root: access.root,
            min,
            bytes,
            guards,
        })
    }

    /// A range around all that an access of `op` touches in one iteration of `loop_op`, in terms of that loop's counter and of values that do not vary in it.
    pub(crate) fn range_in_iteration(
        &self,
        access: &Access,
        op: Op,
        loop_op: Op,
    ) -> Option<IterationRange> {
        let indices = self.indices();
        let mut nest = self.nest(op, loop_op, false)?;
        let around = nest.pop()?;
        let size = access.size.as_ref()?;
        if !indices.is_defined_outside(access.root, loop_op) || !indices.is_invariant(size, loop_op)
        {
            return None;
        }
        let mut known = Inequalities::at(indices, loop_op);
        known.assume_within(&around);
        for counted in &nest {
            known.assume_within(counted);
        }
        let mut counts = Vec::new();
        let mut end_of =
            |rising| extreme(indices, &known, &nest, &access.offset, rising, &mut counts);
        let (start, last) = (end_of(Sign::NotPositive)?, end_of(Sign::NotNegative)?);
        let end = last.add(size)?;
        let is_known = |expression: &Symbolic| {
            expression
                .variables()
                .all(|value| value == around.counter || indices.is_defined_outside(value, loop_op))
        };
        (is_known(&start) && is_known(&end)).then_some(IterationRange { start, end, counts })
    }

    /// The counted loops from `loop_op` inwards to `op`, innermost first. With `always` only if `op` runs in all their iterations.
    fn nest(&self, op: Op, loop_op: Op, always: bool) -> Option<Vec<Counted>> {
        let (function, structure) = (self.function(), self.structure());
        let mut nest = Vec::new();
        let mut region = structure.region_of(op)?;
        loop {
            let holder = structure.op_of(region)?;
            let data = &function.ops[holder];
            if is_loop(data.opcode) {
                nest.push(self.indices().counted(holder)?.clone());
                if holder == loop_op {
                    return Some(nest);
                }
            } else {
                // A branch is always taken if all others stop the program.
                let mut branches = data.regions.iter();
                let is_taken = !always
                    || branches.all(|&branch| branch == region || function.ends_in_trap(branch));
                if !matches!(data.opcode, Opcode::If | Opcode::Switch) || !is_taken {
                    return None;
                }
            }
            region = structure.region_of(holder)?;
        }
    }
}

/// The largest (`NotNegative`) or smallest value of an expression over a nest, at counters that are reached.
fn extreme(
    indices: &Indices,
    known: &Inequalities,
    nest: &[Counted],
    expression: &Symbolic,
    rising: Sign,
    guards: &mut Vec<Symbolic>,
) -> Option<Symbolic> {
    let mut value = expression.clone();
    // How often each loop dealt with so far runs, at the counters chosen for the loops around it.
    let mut counts: Vec<Symbolic> = Vec::new();
    for counted in nest {
        let (factor, rest) = value.split(counted.counter);
        if factor.mentions(counted.counter) {
            return None;
        }
        let first = counted.from.clone();
        let last = counted.last_counter()?;
        let upward = counted.constant_step()? > 0;
        let choices: &[bool] = if factor.is_constant() == Some(0) {
            // Any iteration will do; which one does is a matter of the inner trip counts.
            &[true, false]
        } else if (known.sign(&factor)? == rising) == upward {
            &[false]
        } else {
            &[true]
        };
        let (chosen, substituted) = choices.iter().find_map(|&takes_first| {
            let chosen = if takes_first { &first } else { &last };
            let largest = takes_first != upward;
            let substituted = substitute_counts(known, &counts, counted, chosen, largest)?;
            Some((chosen.clone(), substituted))
        })?;
        value = factor.mul(&chosen)?.add(&rest)?;
        counts = substituted;
        counts.push(counted.trip_count()?);
    }
    for count in counts {
        // The inequalities hold where the loops run, so that they must not be asked whether a loop runs.
        let surely = indices.interval(&count).0.is_some_and(|least| least >= 1);
        if !surely && !guards.contains(&count) {
            guards.push(count);
        }
    }
    Some(value)
}

/// The trip counts of inner loops at one counter of the loop around them.
///
/// A count that depends on the counter must be positive there, or be the largest of all: only then nothing at all is
/// touched when it is not positive. `largest` says whether the chosen counter is the largest one.
fn substitute_counts(
    known: &Inequalities,
    counts: &[Symbolic],
    counted: &Counted,
    chosen: &Symbolic,
    largest: bool,
) -> Option<Vec<Symbolic>> {
    counts
        .iter()
        .map(|count| {
            if !count.mentions(counted.counter) {
                return Some(count.clone());
            }
            let (factor, rest) = count.split(counted.counter);
            if factor.mentions(counted.counter) {
                return None;
            }
            let there = factor.mul(chosen)?.add(&rest)?;
            let rises = known.sign(&factor) == Some(Sign::NotNegative);
            let falls = known.sign(&factor) == Some(Sign::NotPositive);
            let extreme = if largest { rises } else { falls };
            let positive = there.is_constant().is_some_and(|count| count >= 1);
            (extreme || positive).then_some(there)
        })
        .collect()
}
