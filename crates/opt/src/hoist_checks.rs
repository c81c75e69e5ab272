//! Range-check elimination: checks indices once before a loop nest instead of in each iteration.
//!
//! ```text
//! for %i = 0 to %n step 1 {                       %fine = (%n <= 0 or %n - 1 < %length)
//!   %inside = icmp ult i64 %i, %length            if %fine { yield } else {
//!   if %inside { yield } else { trap @p(%i) }       for %i = 0 to %n step 1 { … }     ; as before: it panics
//!   …                                         →     trap "…"
//! }                                               }
//!                                                 for %i = 0 to %n step 1 { … }       ; without the check
//! ```
//!
//! A check qualifies if it runs in every iteration of the loops between it and the nest's outermost one, and compares, unsigned, an
//! index that is linear in the counters with a length; or, for equality, a counter with a length. The extremes of such an index are reached at
//! the ends of the loops, so the nest panics if and only if one of them is out of bounds. Then the original nest runs,
//! with all its writes before the panic. Only the nest without checks is differentiated or vectorised.
//!
//! The extremes are computed with 128 bits, from numbers that are small enough for their products. If the program's own index wraps
//! around 64 bits and happens to be in bounds, or sizes are absurd, the nest runs with its checks and the program stops after it.

use crate::conditions::{Truth, comparison, split_conjunction};
use crate::copy_operations::copy_operation;
use crate::indices::{Counted, Indices};
use crate::inequalities::Inequalities;
use crate::symbolic::Symbolic;
use crate::with_function::with_function;
use ferrozyme_ir::{
    Builder, Cursor, Function, FunctionId, IntPredicate, Module, Op, OpView, Opcode, Region,
    Scalar, Type, Value, for_each_op,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// The message when the program stops after a nest that should have panicked.
const MESSAGE: &str = "index arithmetic overflowed in a loop whose bounds are checked ahead";

/// A nest of more operations is not copied.
const MAX_COPIED: usize = 4000;

/// Hoists checks out of loops; returns the number of removed checks.
pub fn hoist_checks(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |_, function| {
        let Some(body) = function.body else { return 0 };
        let mut removed = 0;
        let mut budget = 2 * MAX_COPIED;
        visit(function, body, &mut budget, &mut removed);
        removed
    })
}

/// Hoists out of the loops of a region, outer loops first: what cannot leave those may leave inner ones.
fn visit(function: &mut Function, region: Region, budget: &mut usize, removed: &mut usize) {
    if function.ends_in_trap(region) {
        return;
    }
    for op in function.regions[region].ops.clone() {
        if function.ops[op].opcode == Opcode::For {
            let size = size_of(function, op);
            if size <= MAX_COPIED.min(*budget) && has_checks(function, op) {
                let (checks, fine) = find(function, op);
                if !checks.is_empty() {
                    *budget -= size;
                    *removed += checks.len();
                    apply(function, region, op, &checks, &fine);
                }
            }
        }
        for inner in function.ops[op].regions.clone() {
            visit(function, inner, budget, removed);
        }
    }
}

/// Whether there is a check in a nest at all, before the indices of the whole function are looked at.
fn has_checks(function: &Function, op: Op) -> bool {
    let mut found = false;
    for &region in &function.ops[op].regions {
        for_each_op(function, region, &mut |_, inner| {
            let data = &function.ops[inner];
            let traps = |&region: &Region| function.ends_in_trap(region);
            found |= data.opcode == Opcode::If && data.regions.iter().any(traps);
        });
    }
    found
}

fn size_of(function: &Function, op: Op) -> usize {
    let mut count = 0;
    for &region in &function.ops[op].regions {
        for_each_op(function, region, &mut |_, _| count += 1);
    }
    count
}

/// A condition before a nest under which its checks pass.
#[derive(Clone, PartialEq)]
enum Condition {
    /// An extreme of an expression is at least 0.
    NotNegative(Extreme),
    /// All values of an expression are above 0, or all below; they leave no gaps between the extremes.
    NotZero(Extreme, Extreme),
}

/// The least value of an expression over a nest.
#[derive(Clone, PartialEq)]
struct Extreme {
    /// What counters with constant factors leave, at their ends.
    base: Symbolic,
    /// For counters whose factor is a number that only the run knows: the product at the first and at the last value.
    terms: Vec<(Symbolic, Symbolic)>,
}

/// A condition, and the loops that must run for it to matter: their bounds.
#[derive(Clone, PartialEq)]
struct Guarded {
    condition: Condition,
    /// Each is at least 1 if the loop runs.
    runs: Vec<Symbolic>,
}

/// The checks of a nest that can be made before it, and the condition under which all of them pass.
fn find(function: &Function, nest: Op) -> (FxHashSet<Op>, Vec<Guarded>) {
    let indices = Indices::of(function);
    let mut finder = Finder {
        function,
        indices: &indices,
        nest,
        loops: Vec::new(),
        checks: FxHashSet::default(),
        conditions: Vec::new(),
    };
    finder.visit_loop(nest);
    (finder.checks, finder.conditions)
}

struct Finder<'a> {
    function: &'a Function,
    indices: &'a Indices<'a>,
    nest: Op,
    /// The loops from the nest's outermost one to the present place.
    loops: Vec<Op>,
    checks: FxHashSet<Op>,
    conditions: Vec<Guarded>,
}

impl Finder<'_> {
    fn visit_loop(&mut self, op: Op) {
        self.loops.push(op);
        let body = self.function.ops[op].regions[0];
        for &inner in &self.function.regions[body].ops {
            match self.function.ops[inner].opcode {
                Opcode::For if !self.function.ends_in_trap(body) => self.visit_loop(inner),
                Opcode::If => self.visit_check(inner),
                _ => {}
            }
        }
        self.loops.pop();
    }

    fn visit_check(&mut self, op: Op) {
        let data = &self.function.ops[op];
        let traps = [0, 1].map(|index| self.function.ends_in_trap(data.regions[index]));
        let passing = match traps {
            [false, true] => 0,
            [true, false] => 1,
            _ => return,
        };
        let nothing_else = self.function.regions[data.regions[passing]].ops.len() == 1;
        if !nothing_else || !data.results.is_empty() {
            return;
        }
        let mut found = Vec::new();
        let mut parts =
            split_conjunction(self.function, (data.condition(), passing == 0)).into_iter();
        if parts.all(|part| self.read_comparison(part, &mut found).is_some()) {
            self.checks.insert(op);
            for condition in found {
                if !self.conditions.contains(&condition) {
                    self.conditions.push(condition);
                }
            }
        }
    }

    /// The conditions before the nest under which a comparison always holds.
    fn read_comparison(&self, truth: Truth, found: &mut Vec<Guarded>) -> Option<()> {
        let (predicate, a, b) = comparison(self.function, truth)?;
        if self.function.ty(a) != Type::I64 {
            return None;
        }
        match predicate {
            IntPredicate::Ult => self.below(a, b, 1, found),
            IntPredicate::Ugt => self.below(b, a, 1, found),
            IntPredicate::Ule => self.below(a, b, 0, found),
            IntPredicate::Uge => self.below(b, a, 0, found),
            IntPredicate::Ne => self.unequal(a, b, found),
            _ => None,
        }
    }

    /// `a + distance ≤ b`, unsigned: 0 ≤ a, and 0 ≤ b - a - distance, where b is less than 2⁶³. Where b is at least 2⁶³, which is how sums
    /// are checked for overflow (`a > !c`), 0 ≤ a and 0 ≤ c are enough.
    fn below(&self, a: Value, b: Value, distance: i64, found: &mut Vec<Guarded>) -> Option<()> {
        let index = self.indices.expression(a);
        if let Some(complement) = self.complement(b) {
            for expression in [index, complement] {
                let condition = Condition::NotNegative(self.least(&expression)?);
                found.push(self.guarded(condition)?);
            }
            return Some(());
        }
        let is_length = self.indices.is_defined_outside(b, self.nest)
            && self.indices.interval_of_value(b).min >= 0;
        let length = match is_length {
            true => Symbolic::of_value(b),
            false => self.indices.expression(b),
        };
        let room = length.sub(&index)?.plus(-distance)?;
        let mut expressions = vec![index, room];
        if !is_length {
            expressions.push(Symbolic::constant(i64::MAX).sub(&length)?);
        }
        for expression in expressions {
            let condition = Condition::NotNegative(self.least(&expression)?);
            found.push(self.guarded(condition)?);
        }
        Some(())
    }

    /// The operand of a complement: `xor c, -1`, or a negative constant.
    fn complement(&self, value: Value) -> Option<Symbolic> {
        if let Some(constant) = self.function.int_of(value) {
            let complement = i64::try_from(!constant).ok()?;
            return (complement >= 0).then(|| Symbolic::constant(complement));
        }
        match self.function.definition(value)? {
            OpView::Binary(Opcode::Xor, a, b) if self.function.int_of(b) == Some(-1) => {
                Some(self.indices.expression(a))
            }
            _ => None,
        }
    }

    /// `a ≠ b`, where they differ by a counter and what does not change.
    fn unequal(&self, a: Value, b: Value, found: &mut Vec<Guarded>) -> Option<()> {
        let distance = self
            .indices
            .exact_expression(a)
            .sub(&self.indices.exact_expression(b))?;
        let mut counters = self.loops.iter().filter_map(|&op| self.indices.counted(op));
        let counter = counters.find(|counted| distance.mentions(counted.counter))?;
        let (factor, rest) = distance.split(counter.counter);
        let step = counter.constant_step()?;
        let dense = factor.is_constant()?.unsigned_abs() == 1 && step.unsigned_abs() == 1;
        if !dense || !self.indices.is_invariant(&rest, self.nest) {
            return None;
        }
        let negated = distance.scale(-1)?;
        let condition = Condition::NotZero(
            self.least(&distance.plus(-1)?)?,
            self.least(&negated.plus(-1)?)?,
        );
        found.push(self.guarded(condition)?);
        Some(())
    }

    /// The least value of an expression at an operation, over the whole nest.
    fn least(&self, expression: &Symbolic) -> Option<Extreme> {
        let mut extreme = Extreme {
            base: expression.clone(),
            terms: Vec::new(),
        };
        for &op in self.loops.iter().rev() {
            let counted = self.indices.counted(op)?;
            if !extreme.base.mentions(counted.counter) {
                continue;
            }
            let (factor, rest) = extreme.base.split(counted.counter);
            let (first, last) = self.ends(counted)?;
            match factor.is_constant() {
                Some(number) => {
                    let rising = (number > 0) == (counted.constant_step()? > 0);
                    let at = if rising { first } else { last };
                    extreme.base = at.scale(number)?.add(&rest)?;
                }
                None => {
                    let (first, last) = (factor.mul(&first)?, factor.mul(&last)?);
                    if !self.is_known_before(&first) || !self.is_known_before(&last) {
                        return None;
                    }
                    extreme.terms.push((first, last));
                    extreme.base = rest;
                }
            }
        }
        self.is_known_before(&extreme.base).then_some(extreme)
    }

    /// First and last value of a counter, if the loop runs.
    fn ends(&self, counted: &Counted) -> Option<(Symbolic, Symbolic)> {
        let last = counted.last_counter()?;
        let narrow = self.function.ty(counted.counter).scalar() != Scalar::Int(64);
        (!narrow).then(|| (counted.from.clone(), last))
    }

    /// Whether an expression can be computed before the nest.
    fn is_known_before(&self, expression: &Symbolic) -> bool {
        self.indices.can_emit(expression)
            && expression
                .variables()
                .all(|value| self.indices.is_defined_outside(value, self.nest))
    }

    /// A condition together with the loops that must run for it to matter.
    ///
    /// Bounds that change within the nest are fine where the loop surely runs; otherwise, its end might be one that is not reached.
    fn guarded(&self, condition: Condition) -> Option<Guarded> {
        let mut runs = Vec::new();
        for &op in &self.loops {
            let counted = self.indices.counted(op)?;
            let distance = match counted.constant_step()? > 0 {
                true => counted.to.sub(&counted.from)?,
                false => counted.from.sub(&counted.to)?,
            };
            if distance.is_constant().is_some_and(|count| count > 0) {
                continue;
            }
            if self.is_known_before(&distance) {
                if !runs.contains(&distance) {
                    runs.push(distance);
                }
                continue;
            }
            let mut known = Inequalities::new(self.indices);
            for &around in self.loops.iter().take_while(|&&around| around != op) {
                known.assume_within(self.indices.counted(around)?);
            }
            if !known.prove_at_least(&distance, 1) {
                return None;
            }
        }
        Some(Guarded { condition, runs })
    }
}

/// Puts the conditions before a nest, with the nest as it was for where they do not hold, and removes the checks from it.
fn apply(
    function: &mut Function,
    region: Region,
    nest: Op,
    checks: &FxHashSet<Op>,
    conditions: &[Guarded],
) {
    let ahead = Cursor::before(function, region, nest);
    let mut b = Builder::at(function, ahead);
    b.location = b.function.ops[nest].location;
    let mut fine: Option<Value> = None;
    for condition in conditions {
        let holds = emit_guarded(&mut b, condition);
        fine = Some(match fine {
            Some(fine) => b.binary(Opcode::And, fine, holds),
            None => holds,
        });
    }
    if let Some(fine) = fine {
        let (_, then_region, else_region) = b.if_else(fine, &[]);
        b.inside(then_region, |b| b.yields(&[]));
        let copy = copy_operation(b.function, nest, &mut FxHashMap::default());
        b.inside(else_region, |b| {
            b.insert(copy);
            b.trap(MESSAGE)
        });
    }
    remove(function, nest, checks);
}

fn remove(function: &mut Function, op: Op, checks: &FxHashSet<Op>) {
    for region in function.ops[op].regions.clone() {
        function.retain_ops(region, |function, op| {
            remove(function, op, checks);
            !checks.contains(&op)
        });
    }
}

const WIDE: Type = Type::scalar_of(Scalar::Int(128));

fn emit_guarded(b: &mut Builder<'_>, guarded: &Guarded) -> Value {
    let mut small: Vec<(Value, u32)> = Vec::new();
    let zero = b.function.int(WIDE, 0);
    let mut holds = match &guarded.condition {
        Condition::NotNegative(extreme) => {
            let least = emit_extreme(b, extreme, &mut small);
            b.icmp(IntPredicate::Sge, least, zero)
        }
        Condition::NotZero(above, below) => {
            let above = emit_extreme(b, above, &mut small);
            let below = emit_extreme(b, below, &mut small);
            let above = b.icmp(IntPredicate::Sge, above, zero);
            let below = b.icmp(IntPredicate::Sge, below, zero);
            b.binary(Opcode::Or, above, below)
        }
    };
    holds = emit_small(b, holds, small);
    for distance in &guarded.runs {
        let distance = emit_wide(b, distance, &mut Vec::new());
        let idle = b.icmp(IntPredicate::Sle, distance, zero);
        holds = b.binary(Opcode::Or, idle, holds);
    }
    holds
}

/// Adds to a condition that variables are less than powers of two, as [`emit_wide`] needs it.
pub(crate) fn emit_small(b: &mut Builder<'_>, condition: Value, small: Vec<(Value, u32)>) -> Value {
    let mut holds = condition;
    for (value, bits) in small {
        let shift = b.i64(1 << bits);
        let limit = b.i64(1 << (bits + 1));
        let shifted = b.binary(Opcode::Add, value, shift);
        let fits = b.icmp(IntPredicate::Ult, shifted, limit);
        holds = b.binary(Opcode::And, holds, fits);
    }
    holds
}

fn emit_extreme(b: &mut Builder<'_>, extreme: &Extreme, small: &mut Vec<(Value, u32)>) -> Value {
    let mut sum = emit_wide(b, &extreme.base, small);
    for (first, last) in &extreme.terms {
        let ends = [first, last].map(|end| emit_wide(b, end, small));
        let least = b.binary(Opcode::Smin, ends[0], ends[1]);
        sum = b.binary(Opcode::Add, sum, least);
    }
    sum
}

/// An expression with 128 bits. `small` gets the variables that must be less than a power of two for it to be exact.
pub(crate) fn emit_wide(
    b: &mut Builder<'_>,
    expression: &Symbolic,
    small: &mut Vec<(Value, u32)>,
) -> Value {
    let mut sum = b.function.int(WIDE, i128::from(expression.constant_part()));
    for term in expression.terms() {
        let degree = term.monomial.len() as u32;
        let bits = (116 - (64 - term.coefficient.unsigned_abs().leading_zeros())) / degree;
        let mut product = b.function.int(WIDE, i128::from(term.coefficient));
        for &variable in &term.monomial {
            let factor = match b.ty(variable) {
                Type::I64 => variable,
                _ => b.cast(Opcode::Sext, variable, Type::I64),
            };
            if bits < 62 && !small.contains(&(factor, bits)) {
                small.push((factor, bits));
            }
            let wide = b.cast(Opcode::Sext, factor, WIDE);
            product = b.binary(Opcode::Mul, product, wide);
        }
        sum = b.binary(Opcode::Add, sum, product);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::hoist_checks;
    use crate::testing::{check_same_outcomes, check_unchanged};
    use ferrozyme_ir::interpret::Datum;

    /// Inputs of all sizes around those where the program panics.
    fn around(limit: i64) -> Vec<[Datum; 3]> {
        let mut inputs = Vec::new();
        for n in -1..=limit {
            for m in -1..=limit {
                for length in [0, 1, 5, 6, 7, 12] {
                    inputs.push([n, m, length].map(Datum::i64));
                }
            }
        }
        inputs
    }

    fn check_around(text: &str) {
        let inputs = around(4);
        let inputs: Vec<&[Datum]> = inputs.iter().map(|input| &input[..]).collect();
        check_same_outcomes(hoist_checks, text, &inputs);
    }

    #[test]
    fn rows_and_columns() {
        check_around(
            r#"func @main(%n: i64, %m: i64, %length: i64 range 0..=100) -> (i64) {
               %p = alloc 96 align 8 zeroed
               %s = for %i: i64 = 0 to %n step 1 with (%a: i64 = 0) {
                 %row = mul i64 %i, %m
                 %t = for %j: i64 = 0 to %m step 1 with (%b: i64 = %a) {
                   %k = add i64 %row, %j
                   %inside = icmp ult i64 %k, %length
                   if %inside { yield } else { trap "outside" }
                   %q = offset %p, %k * 8
                   store i64 %i, %q align 8
                   %c = add i64 %b, %k
                   yield %c
                 }
                 yield %t
               }
               free %p
               return %s
             }"#,
        );
    }

    #[test]
    fn triangles_and_equalities() {
        check_around(
            r#"func @main(%n: i64, %m: i64, %length: i64 range 0..=100) -> (i64) {
               %s = for %i: i64 = 0 to %n step 1 with (%a: i64 = 0) {
                 %end = add i64 %i, 1
                 %t = for %j: i64 = 0 to %end step 1 with (%b: i64 = %a) {
                   %k = add i64 %j, %m
                   %inside = icmp ult i64 %k, %length
                   if %inside { yield } else { trap "outside" }
                   %there = icmp eq i64 %j, %length
                   if %there { trap "at the end" }
                   %c = add i64 %b, %k
                   yield %c
                 }
                 yield %t
               }
               return %s
             }"#,
        );
    }

    #[test]
    fn loops_that_may_not_run_and_negative_factors() {
        check_around(
            r#"func @main(%n: i64, %m: i64, %length: i64 range 0..=100) -> (i64) {
               %s = for %i: i64 = 0 to %n step 1 with (%a: i64 = 0) {
                 %row = mul i64 %i, %m
                 %back = sub i64 %length, %row
                 %t = for %j: i64 = 1 to %m step 1 with (%b: i64 = %a) {
                   %k = sub i64 %back, %j
                   %outside = icmp uge i64 %k, %length
                   if %outside { trap "outside" }
                   %c = add i64 %b, %k
                   yield %c
                 }
                 %u = for %j2: i64 = 0 to %i step 1 with (%b2: i64 = %t) {
                   %inside = icmp ult i64 %j2, %length
                   if %inside { yield } else { trap "outside" }
                   %c2 = add i64 %b2, %j2
                   yield %c2
                 }
                 yield %u
               }
               return %s
             }"#,
        );
    }

    #[test]
    fn sums_that_are_checked_for_overflow() {
        check_around(
            r#"func @main(%n: i64, %m: i64, %length: i64 range 0..=100) -> (i64) {
               %rest = xor i64 %m, -1
               %s = for %i: i64 = 0 to %n step 1 with (%a: i64 = 0) {
                 %overflow = icmp ugt i64 %i, %rest
                 if %overflow { trap "overflow" }
                 %k = add i64 %i, %m
                 %far = icmp ugt i64 %k, -9
                 if %far { trap "overflow" }
                 %inside = icmp ult i64 %k, %length
                 if %inside { yield } else { trap "outside" }
                 %c = add i64 %a, %k
                 yield %c
               }
               return %s
             }"#,
        );
    }

    #[test]
    fn what_depends_on_memory_or_on_branches_stays() {
        check_unchanged(
            hoist_checks,
            r#"func @f(%p: ptr, %n: i64, %length: i64 range 0..=100, %c: i1) {
               for %i: i64 = 0 to %n step 1 {
                 %k = load i64 %p align 8
                 %inside = icmp ult i64 %k, %length
                 if %inside { yield } else { trap "outside" }
                 if %c {
                   %inside1 = icmp ult i64 %i, %length
                   if %inside1 { yield } else { trap "outside" }
                   yield
                 }
                 yield
               }
               return
             }"#,
        );
    }
}
