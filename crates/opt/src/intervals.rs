//! Which values integers may have, carried values and conditions included.
//!
//! [`Indices`](crate::indices::Indices) says in one walk what holds of a value wherever it is computed, and takes what loops carry for anything. [`Intervals`] goes over a function in rounds
//! until nothing changes; carried values that keep growing are widened. So a pointer that moves by 24 bytes in each iteration is known to stand at multiples of 24.
//!
//! Conditions count, in the region of their `if`, and behind it where the other region ends in a trap:
//!
//! ```text
//! %c = icmp ult i64 %i, 3
//! if %c { yield } else { trap "out of bounds" }
//! %q = offset %p, %i * 8                            ; %i is 0, 1 or 2 from here on
//! ```
//!
//! `undef` is whatever suits: it adds nothing. A counted loop is taken to have at most 2^48 iterations.

use crate::carried::yielded;
use crate::conditions::{comparison, narrow, split_conjunction};
use crate::interval::{Interval, transfer};
use ferrozyme_ir::entity::SecondaryMap;
use ferrozyme_ir::{
    Constant, Form, Function, IntPredicate, Op, OpData, OpView, Opcode, Region, Scalar, Type,
    Value, returning_ops,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// How many iterations a counted loop may have.
const ITERATIONS: i128 = 1 << 48;

/// After how many changes a carried value is widened.
const PATIENCE: u8 = 6;

/// After how many rounds over the function every value that still changes keeps its step only.
const LIMIT: usize = 12;

/// After how many rounds every value that still changes is given up.
const LAST: usize = 2 * LIMIT;

/// How many operations are looked through from an index or a condition.
const DEPTH: u32 = 6;

/// The intervals of all integers of a function.
#[derive(Clone, Debug)]
pub struct Intervals {
    known: SecondaryMap<Value, Option<Interval>>,
    /// The indices of those `offset`s for which conditions say more.
    guarded: FxHashMap<Op, Interval>,
    checked: FxHashMap<Value, Value>,
}

impl Intervals {
    /// Computes them.
    pub fn of(function: &Function) -> Intervals {
        let mut analysis = Analysis {
            function,
            known: SecondaryMap::new(),
            changes: SecondaryMap::new(),
            here: FxHashMap::default(),
            replaced: Vec::new(),
            guarded: FxHashMap::default(),
            changed: true,
            effort: Effort::Patient,
        };
        if let Some(body) = function.body {
            for (&argument, param) in function.regions[body].args.iter().zip(&function.params) {
                analysis.set(argument, param.facts.range.map(Interval::from));
            }
            let mut round = 0;
            while analysis.changed {
                analysis.changed = false;
                analysis.effort = match round {
                    0..LIMIT => Effort::Patient,
                    LIMIT..LAST => Effort::Hurried,
                    _ => Effort::None,
                };
                analysis.region(body);
                round += 1;
            }
        }
        Intervals {
            known: analysis.known,
            guarded: analysis.guarded,
            checked: checked_words(function),
        }
    }

    /// Which values an integer may have.
    pub fn get(&self, function: &Function, value: Value) -> Interval {
        let known = || self.known.get(value).copied().flatten();
        let found = function.int_of(value).map(Interval::point).or_else(known);
        found.unwrap_or_else(|| of_type(function, value))
    }

    /// Which values the index of an `offset` may have, there.
    pub fn index(&self, function: &Function, offset: Op) -> Interval {
        let index = function.ops[offset].index();
        match self.guarded.get(&offset) {
            Some(&guarded) => guarded,
            None => self.get(function, *self.checked.get(&index).unwrap_or(&index)),
        }
    }
}

fn of_type(function: &Function, value: Value) -> Interval {
    Interval::of_bits(function.ty(value).scalar().bits())
}

struct Analysis<'f> {
    function: &'f Function,
    known: SecondaryMap<Value, Option<Interval>>,
    changes: SecondaryMap<Value, u8>,
    /// What conditions say at the place that is looked at.
    here: FxHashMap<Value, Interval>,
    /// What they said before, to be restored in opposite order.
    replaced: Vec<(Value, Option<Interval>)>,
    guarded: FxHashMap<Op, Interval>,
    changed: bool,
    effort: Effort,
}

/// How values that change again are treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// They may, a few times.
    Patient,
    /// They keep their step only.
    Hurried,
    /// They may be anything.
    None,
}

impl Analysis<'_> {
    fn region(&mut self, region: Region) {
        let mark = self.replaced.len();
        for &op in &self.function.regions[region].ops {
            self.op(op);
        }
        self.restore(mark);
    }

    /// Forgets what was assumed since then.
    fn restore(&mut self, mark: usize) {
        while self.replaced.len() > mark
            && let Some((value, before)) = self.replaced.pop()
        {
            match before {
                Some(interval) => self.here.insert(value, interval),
                None => self.here.remove(&value),
            };
        }
    }

    /// From here on a condition holds, or does not.
    fn assume(&mut self, condition: Value, holds: bool) {
        let function = self.function;
        for truth in split_conjunction(function, (condition, holds)) {
            let Some((predicate, a, b)) = comparison(function, truth) else {
                continue;
            };
            // Intervals of wider integers are no exact bounds.
            let ty = function.ty(a);
            if ty.is_vector() || !matches!(ty.scalar(), Scalar::Int(2..=64)) {
                continue;
            }
            for (predicate, a, b) in [(predicate, a, b), (predicate.swapped(), b, a)] {
                if let Some(before) = self.get_here(a, DEPTH)
                    && let Some(limit) = self.get_here(b, DEPTH)
                    && let Some(after) = narrow(predicate, before, limit)
                    && after != before
                    && !function.is_constant(a)
                {
                    let old = self.here.insert(a, after);
                    self.replaced.push((a, old));
                }
            }
        }
    }

    /// The interval of an operand; none where nothing has reached it yet.
    fn get(&self, value: Value) -> Option<Interval> {
        if let Some(number) = self.function.int_of(value) {
            return Some(Interval::point(number));
        }
        if self.function.is_constant(value) || !is_followed(self.function.ty(value)) {
            return Some(of_type(self.function, value));
        }
        self.here.get(&value).copied().or(self.known[value])
    }

    /// The interval of an operand that is one of several; none also for `undef`.
    fn get_defined(&self, value: Value) -> Option<Interval> {
        let defined = self.function.constant_of(value) != Some(&Constant::Undef);
        defined.then(|| self.get(value)).flatten()
    }

    /// The interval of a value by what conditions say here of what it was computed from, too.
    fn get_here(&self, value: Value, depth: u32) -> Option<Interval> {
        let known = self.get(value)?;
        let computed = depth.checked_sub(1).filter(|_| !self.here.is_empty());
        let computed = computed.and_then(|depth| self.compute_here(value, depth));
        Some(computed.map_or(known, |computed| known.intersect(computed)))
    }

    fn compute_here(&self, value: Value, depth: u32) -> Option<Interval> {
        let data = &self.function.ops[self.function.def_op(value)?.0];
        let mut unknown =
            (data.operands.iter()).filter(|&&value| !self.function.is_constant(value));
        // With more than one the work would double at each operation.
        unknown.next()?;
        (unknown.next().is_none() && data.results.len() == 1 && data.regions.is_empty())
            .then(|| self.transfer(data, |value| self.get_here(value, depth)))?
            .flatten()
    }

    /// What an operation gives; the outer `None` where not all of its operands are reached.
    fn transfer(
        &self,
        data: &OpData,
        get: impl Fn(Value) -> Option<Interval>,
    ) -> Option<Option<Interval>> {
        let operands: Option<SmallVec<[Interval; 3]>> =
            data.operands.iter().map(|&value| get(value)).collect();
        Some(transfer(self.function, data, &operands?))
    }

    /// Gives a value an interval; `None` is anything of its type.
    fn set(&mut self, value: Value, interval: Option<Interval>) {
        let full = of_type(self.function, value);
        let mut new = interval.unwrap_or(full);
        if let Some(range) = self.function.values[value].range {
            new = new.intersect(range.into());
        }
        if let Some(old) = self.known[value] {
            new = old.union(new);
            if new == old {
                return;
            }
            self.changes[value] = self.changes[value].saturating_add(1);
            let min = if new.min < old.min { full.min } else { new.min };
            let max = if new.max > old.max { full.max } else { new.max };
            new = match self.effort {
                Effort::Patient if self.changes[value] <= PATIENCE => new,
                Effort::Patient => new.spread_over(Interval::new(min, max)),
                Effort::Hurried => new.spread_over(full),
                Effort::None => full,
            };
        }
        if self.known[value] != Some(new) {
            self.known[value] = Some(new);
            self.changed = true;
        }
    }

    fn op(&mut self, op: Op) {
        let function = self.function;
        let data = &function.ops[op];
        match data.opcode {
            Opcode::If => {
                let condition = data.condition();
                for (&region, holds) in data.regions.iter().zip([true, false]) {
                    let mark = self.replaced.len();
                    self.assume(condition, holds);
                    self.region(region);
                    self.flow(region, &data.results);
                    self.restore(mark);
                }
                for (&region, holds) in data.regions.iter().zip([false, true]) {
                    if function.ends_in_trap(region) {
                        self.assume(condition, holds);
                    }
                }
            }
            Opcode::Switch => {
                for &region in &data.regions {
                    self.region(region);
                    self.flow(region, &data.results);
                }
            }
            Opcode::For => {
                if let Some(counter) = self.counter(data) {
                    self.set(function.counter(op), Some(counter));
                }
                self.loop_body(op);
                self.flow_values(data.initial(), &data.results);
            }
            Opcode::Loop => self.loop_body(op),
            Opcode::Offset => {
                let index = data.index();
                if let Some(here) = self.get_here(index, DEPTH)
                    && self.known[index] != Some(here)
                    && !function.is_constant(index)
                {
                    self.guarded.insert(op, here);
                } else {
                    self.guarded.remove(&op);
                }
            }
            _ => self.compute(data),
        }
    }

    /// What a region hands on at its end flows into these values.
    fn flow(&mut self, region: Region, into: &[Value]) {
        if let Some(values) = yielded(self.function, region) {
            self.flow_values(values, into);
        }
    }

    fn flow_values(&mut self, from: &[Value], into: &[Value]) {
        for (&from, &into) in from.iter().zip(into) {
            if is_followed(self.function.ty(into))
                && let Some(interval) = self.get_defined(from)
            {
                self.set(into, Some(interval));
            }
        }
    }

    /// The body of a loop, what it carries, and what that is at the end.
    fn loop_body(&mut self, op: Op) {
        let function = self.function;
        let data = &function.ops[op];
        let carried = function.carried(op);
        self.flow_values(data.initial(), carried);
        self.region(data.body());
        self.flow(data.body(), carried);
        self.flow(data.body(), &data.results);
    }

    /// The values of a loop's counter; none where its operands are not reached.
    fn counter(&self, data: &OpData) -> Option<Interval> {
        let [from, to, by] = data.bounds().map(|bound| self.get(bound));
        let (from, to, by) = (from?, to?, by?);
        let reach = by.max.max(-by.min).saturating_mul(ITERATIONS);
        let (min, max) = (
            from.min.saturating_sub(reach),
            from.max.saturating_add(reach),
        );
        Some(Interval::of_counter(from, to, by).intersect(Interval::new(min, max)))
    }

    fn compute(&mut self, data: &OpData) {
        for &result in &data.results {
            if !is_followed(self.function.ty(result)) {
                continue;
            }
            let interval = match data.view() {
                _ if data.results.len() > 1 => None,
                OpView::Select {
                    then, otherwise, ..
                } => {
                    let [a, b] = [then, otherwise].map(|value| self.get_defined(value));
                    let both = a.zip(b).map(|(a, b)| a.union(b));
                    match both.or(a).or(b) {
                        None => return,
                        chosen => chosen,
                    }
                }
                _ => {
                    // What else there is may give anything of something undefined.
                    let waits = matches!(data.opcode.form(), Form::IntBinary | Form::Cast);
                    let anything = |value| (!waits).then(|| of_type(self.function, value));
                    match self.transfer(data, |value| self.get(value).or_else(|| anything(value))) {
                        None => return,
                        Some(interval) => interval,
                    }
                }
            };
            self.set(result, interval);
        }
    }
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
fn checked_words(function: &Function) -> FxHashMap<Value, Value> {
    let cast_by = |value: Value, opcode: Opcode| match function.definition(value)? {
        OpView::Cast(other, from) if other == opcode => Some(from),
        _ => None,
    };
    let mut found = FxHashMap::default();
    for op in returning_ops(function) {
        let data = &function.ops[op];
        if data.opcode != Opcode::If || !function.ends_in_trap(data.regions[0]) {
            continue;
        }
        for truth in split_conjunction(function, (data.condition(), false)) {
            let Some((IntPredicate::Eq, a, b)) = comparison(function, truth) else {
                continue;
            };
            for (wide, other) in [(a, b), (b, a)] {
                if let Some(word) = cast_by(other, Opcode::Zext)
                    && cast_by(word, Opcode::TruncInt) == Some(wide)
                {
                    found.insert(word, wide);
                }
            }
        }
    }
    found
}

/// Whether values of this type are followed. The widest are products of which it is checked whether they fit into a word.
fn is_followed(ty: Type) -> bool {
    ty.is_int() && !ty.is_vector() && ty.scalar().bits() <= 128
}
