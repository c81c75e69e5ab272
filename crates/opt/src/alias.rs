//! Which memory operations touch, and whether two of them may touch the same bytes.
//!
//! Everything here errs on one side: "no" is a proof, "yes" is the absence of one. The proofs rest on
//! [`crate::pointers`] (which objects), [`crate::indices`] and [`crate::facts`] (which bytes of one object), and so on
//! the assumptions written there: above all, that the bytes of an object lie at offsets whose arithmetic does not
//! wrap around.
//!
//! A question about two operations is a question about two of their executions. Values that vary in the loop whose
//! iterations are told apart are different variables for the two; the counter of that loop is `i` for the earlier and
//! `i + step·d`, `d ≥ 1`, for the later. In
//!
//! ```text
//! for %i: i64 = 1 to %n step 1 {
//!   %b = load f64 %x[i - 1]
//!   store f64 …, %x[i]
//! }
//! ```
//!
//! a later store goes to `8·(i + d)`, which is at least 16 bytes behind the load's `8·(i - 1)`: what was loaded stays.

use crate::facts::{Facts, facts_at};
use crate::indices::{Counted, Indices, is_loop, is_tight};
use crate::interval::Interval;
use crate::pointers::{Object, Pointers, is_constant_object, object_kind};
use crate::symbolic::{Monomial, Symbolic, Term, greatest_common_divisor};
use ferrozyme_ir::{Function, MemoryEffect, Module, Op, Opcode, Payload, Region, Structure, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::rc::Rc;

/// Bytes that an operation touches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// The pointer that the place is counted from.
    pub root: Value,
    /// How many bytes behind the root the place starts.
    pub offset: Symbolic,
    /// How many bytes; `None` for an unknown stretch that may also lie before the offset.
    pub size: Option<Symbolic>,
}

/// All that an operation reads, or all that it writes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Footprint {
    /// Places that it names.
    pub accesses: SmallVec<[Access; 1]>,
    /// Besides, anything that other functions can reach: globals, what parameters without `noalias` point to, and
    /// objects whose addresses escaped.
    pub elsewhere: bool,
}

impl Footprint {
    /// Whether no memory is touched.
    pub fn is_empty(&self) -> bool {
        self.accesses.is_empty() && !self.elsewhere
    }
}

/// Answers questions about the memory that a function touches, as of when it was computed.
pub struct Aliases<'m> {
    module: &'m Module,
    indices: Indices<'m>,
    pointers: Pointers,
    facts: RefCell<FxHashMap<Region, Rc<[Symbolic]>>>,
}

impl<'m> Aliases<'m> {
    /// Prepares the answers, in nearly linear time.
    pub fn new(module: &'m Module, function: &'m Function) -> Aliases<'m> {
        let indices = Indices::of(function);
        let pointers = Pointers::of(module, &indices);
        Aliases {
            module,
            indices,
            pointers,
            facts: RefCell::default(),
        }
    }

    /// The index expressions of the function.
    pub fn indices(&self) -> &Indices<'m> {
        &self.indices
    }

    /// The origins of its pointers.
    pub fn pointers(&self) -> &Pointers {
        &self.pointers
    }

    /// The function.
    pub fn function(&self) -> &'m Function {
        self.indices.function()
    }

    /// Who holds whom in it.
    pub fn structure(&self) -> &Structure {
        self.indices.structure()
    }

    /// The bytes from a pointer on.
    pub fn access(&self, pointer: Value, size: Option<Symbolic>) -> Access {
        Access {
            root: self.pointers.root(pointer),
            offset: self.pointers.offset(pointer),
            size,
        }
    }

    /// What an operation reads itself, without its regions.
    pub fn reads(&self, op: Op) -> Footprint {
        let function = self.function();
        let data = &function.ops[op];
        match data.opcode {
            Opcode::Load => self.scalar(data.operands[0], function.ty(data.results[0]).bytes()),
            Opcode::AtomicAdd => {
                self.scalar(data.operands[0], function.ty(data.operands[1]).bytes())
            }
            Opcode::Copy | Opcode::Move => self.stretch(data.operands[1], data.operands[2]),
            Opcode::Call | Opcode::CallIndirect => self.call(op, false),
            _ => Footprint::default(),
        }
    }

    /// What an operation writes or releases itself, without its regions.
    pub fn writes(&self, op: Op) -> Footprint {
        let function = self.function();
        let data = &function.ops[op];
        match data.opcode {
            Opcode::Store => self.scalar(data.operands[1], function.ty(data.operands[0]).bytes()),
            Opcode::AtomicAdd => {
                self.scalar(data.operands[0], function.ty(data.operands[1]).bytes())
            }
            Opcode::Copy | Opcode::Move | Opcode::Fill => {
                self.stretch(data.operands[0], data.operands[2])
            }
            Opcode::Free => Footprint {
                accesses: smallvec::smallvec![self.access(data.operands[0], None)],
                elsewhere: false,
            },
            Opcode::Call | Opcode::CallIndirect => self.call(op, true),
            _ => Footprint::default(),
        }
    }

    /// Whether two accesses may touch the same byte, all values being the same for both.
    pub fn may_alias(&self, a: &Access, b: &Access) -> bool {
        if a.root != b.root {
            return self.may_share(a.root, b.root);
        }
        let mut facts = Facts::new(&self.indices);
        self.may_overlap(&mut facts, a, b, None, &mut |_, _| {})
    }

    /// As [`Aliases::may_alias`], where both operations run in the same iteration of all loops around both.
    pub fn may_alias_at(&self, a: (Op, &Access), b: (Op, &Access)) -> bool {
        if a.1.root != b.1.root {
            return self.may_share(a.1.root, b.1.root);
        }
        let mut facts = Facts::new(&self.indices);
        self.may_overlap(&mut facts, a.1, b.1, None, &mut |facts, _| {
            for op in [a.0, b.0] {
                for fact in self.facts_at(op).iter() {
                    facts.assume(fact);
                }
            }
        })
    }

    /// Whether an execution of `write` that comes after an execution of `read` may touch what that one touched.
    pub fn may_overwrite_later(&self, read: (Op, &Access), write: (Op, &Access)) -> bool {
        self.may_overwrite_within(read, write, None)
    }

    /// As [`Aliases::may_overwrite_later`], counting only executions within the same execution of `scope`, a loop
    /// around both.
    pub fn may_overwrite_within(
        &self,
        read: (Op, &Access),
        write: (Op, &Access),
        scope: Option<Op>,
    ) -> bool {
        if self.is_never_written(read.1.root) || !self.may_share(read.1.root, write.1.root) {
            return false;
        }
        let loops = self.common_loops(read.0, write.0, scope);
        if self.may_follow(read.0, write.0)
            && !self.is_copy_onto_itself(read.0, write.0)
            && self.may_alias_at(read, write)
        {
            return true;
        }
        loops
            .iter()
            .any(|&loop_op| self.may_meet_later(read, write, loop_op))
    }

    /// Whether an execution of one operation and any execution of another, within one execution of a loop around
    /// both, may touch the same byte.
    pub fn may_meet_within(&self, a: (Op, &Access), b: (Op, &Access), loop_op: Op) -> bool {
        if a.1.root != b.1.root {
            return self.may_share(a.1.root, b.1.root);
        }
        let root_varies = self.indices.varies_in(a.1.root, loop_op);
        if root_varies && object_kind(self.function(), a.1.root) != Some(Object::Local) {
            return true;
        }
        // A local object made in the loop is another one in another iteration; in the same one, offsets count.
        let mut facts = Facts::new(&self.indices);
        let iteration = Iteration::new(&self.indices, loop_op, None);
        self.may_overlap(
            &mut facts,
            a.1,
            b.1,
            Some(iteration),
            &mut |facts, other| {
                self.assume_both(facts, other, a.0, b.0);
            },
        )
    }

    /// Whether `later` may run after `earlier` in the same iteration of all loops around both.
    pub fn may_follow(&self, earlier: Op, later: Op) -> bool {
        let structure = self.structure();
        if structure.order(later) < structure.order(earlier) {
            return false;
        }
        // The two stand in different branches of one `if` or `switch` if the regions just below their innermost
        // common operation differ.
        let (Some(mut a), Some(mut b)) = (structure.region_of(earlier), structure.region_of(later))
        else {
            return true;
        };
        while structure.depth(a) > structure.depth(b) {
            match structure.parent(a) {
                Some(parent) => a = parent,
                None => return true,
            }
        }
        while structure.depth(b) > structure.depth(a) {
            match structure.parent(b) {
                Some(parent) => b = parent,
                None => return true,
            }
        }
        while a != b {
            if structure.op_of(a) == structure.op_of(b) {
                return false;
            }
            match (structure.parent(a), structure.parent(b)) {
                (Some(parent), Some(other)) => (a, b) = (parent, other),
                _ => return true,
            }
        }
        true
    }

    /// Whether two roots may point into the same object.
    pub fn may_share(&self, a: Value, b: Value) -> bool {
        self.pointers.may_share(self.function(), a, b)
    }

    /// Whether code elsewhere can reach what a root points to.
    pub fn is_reachable_from_elsewhere(&self, root: Value) -> bool {
        self.pointers
            .is_reachable_from_elsewhere(self.function(), root)
    }

    /// Whether all that a root may point into is constant.
    pub fn is_never_written(&self, root: Value) -> bool {
        let bases = self.pointers.bases(self.function(), root);
        !bases.anything
            && !bases.unknown
            && bases
                .objects
                .iter()
                .all(|&object| is_constant_object(self.module, self.function(), object))
    }

    /// Whether an access may touch what a footprint does, all values being the same for both.
    pub fn may_touch(&self, access: &Access, footprint: &Footprint) -> bool {
        (footprint.elsewhere && self.is_reachable_from_elsewhere(access.root))
            || footprint
                .accesses
                .iter()
                .any(|other| self.may_alias(access, other))
    }

    // ---- footprints

    fn scalar(&self, address: Value, bytes: u64) -> Footprint {
        let size = i64::try_from(bytes).ok().map(Symbolic::constant);
        Footprint {
            accesses: smallvec::smallvec![self.access(address, size)],
            elsewhere: false,
        }
    }

    fn stretch(&self, address: Value, bytes: Value) -> Footprint {
        let size = self.indices.expression(bytes);
        Footprint {
            accesses: smallvec::smallvec![self.access(address, Some(size))],
            elsewhere: false,
        }
    }

    fn call(&self, op: Op, writes: bool) -> Footprint {
        let function = self.function();
        let data = &function.ops[op];
        let callee = match data.payload {
            Payload::Callee(callee) => Some(&self.module.functions[callee]),
            _ => None,
        };
        let memory = callee.map_or(MemoryEffect::Any, |callee| callee.facts.memory);
        if memory == MemoryEffect::None || (writes && memory == MemoryEffect::Read) {
            return Footprint::default();
        }
        let mut footprint = Footprint {
            accesses: SmallVec::new(),
            elsewhere: true,
        };
        let first = usize::from(data.opcode == Opcode::CallIndirect);
        for (index, &operand) in data.operands.iter().skip(first).enumerate() {
            let ty = function.ty(operand);
            if !ty.is_ptr() || ty.is_vector() {
                // What a vector of pointers points to has escaped.
                continue;
            }
            let facts = callee
                .and_then(|callee| callee.params.get(index))
                .map(|param| &param.facts);
            let untouched = facts.is_some_and(|facts| {
                if writes {
                    facts.readonly
                } else {
                    facts.writeonly
                }
            });
            if !untouched {
                footprint.accesses.push(self.access(operand, None));
            }
        }
        footprint
    }

    // ---- two executions

    fn facts_at(&self, op: Op) -> Rc<[Symbolic]> {
        let Some(region) = self.structure().region_of(op) else {
            return Rc::from([]);
        };
        if let Some(facts) = self.facts.borrow().get(&region) {
            return facts.clone();
        }
        let facts: Rc<[Symbolic]> = facts_at(&self.indices, Some(region)).into();
        self.facts.borrow_mut().insert(region, facts.clone());
        facts
    }

    /// The loops around both operations, outermost first, from `scope` on inwards.
    pub(crate) fn common_loops(&self, a: Op, b: Op, scope: Option<Op>) -> SmallVec<[Op; 4]> {
        let structure = self.structure();
        let mut loops: SmallVec<[Op; 4]> = SmallVec::new();
        let mut region = structure.region_of(a);
        let target = structure.region_of(b);
        while let (Some(around), Some(target)) = (region, target) {
            let Some(holder) = structure.op_of(around) else {
                break;
            };
            if is_loop(self.function().ops[holder].opcode) && structure.is_within(target, around) {
                loops.push(holder);
            }
            if Some(holder) == scope {
                break;
            }
            region = structure.region_of(holder);
        }
        loops.reverse();
        loops
    }

    fn is_copy_onto_itself(&self, read: Op, write: Op) -> bool {
        // The two places of one `copy` are apart or equal, and nothing changes if they are equal.
        read == write && self.function().ops[read].opcode == Opcode::Copy
    }

    /// Whether `write`, in a later iteration of `loop_op` but the same one of the loops around it, may touch what
    /// `read` touched.
    fn may_meet_later(&self, read: (Op, &Access), write: (Op, &Access), loop_op: Op) -> bool {
        let (a, b) = (read.1, write.1);
        if a.root != b.root {
            return self.may_share(a.root, b.root);
        }
        if self.indices.varies_in(a.root, loop_op) {
            // Memory made in the loop is new in each iteration. Any other pointer may be the same again.
            return object_kind(self.function(), a.root) != Some(Object::Local);
        }
        let mut facts = Facts::new(&self.indices);
        let counted = self.indices.counted(loop_op);
        let distance = counted.map(|counted| facts.invent_distance(counted));
        let iteration = Iteration::new(&self.indices, loop_op, counted.zip(distance));
        self.may_overlap(&mut facts, a, b, Some(iteration), &mut |facts, other| {
            self.assume_both(facts, other, read.0, write.0);
        })
    }

    fn assume_both<'a>(
        &self,
        facts: &mut Facts<'a, 'm>,
        other: Option<&mut Iteration<'a, 'm>>,
        a: Op,
        b: Op,
    ) {
        for fact in self.facts_at(a).iter() {
            facts.assume(fact);
        }
        if let Some(iteration) = other {
            for fact in self.facts_at(b).iter() {
                if let Some(fact) = iteration.rename(facts, fact) {
                    facts.assume(&fact);
                }
            }
        }
    }

    /// Whether `a` and `b`, the latter seen from another iteration if one is given, may share a byte of one root.
    fn may_overlap<'a>(
        &'a self,
        facts: &mut Facts<'a, 'm>,
        a: &Access,
        b: &Access,
        mut other: Option<Iteration<'a, 'm>>,
        assume: &mut dyn FnMut(&mut Facts<'a, 'm>, Option<&mut Iteration<'a, 'm>>),
    ) -> bool {
        let (Some(a_size), Some(b_size)) = (&a.size, &b.size) else {
            return true;
        };
        let rename = |facts: &mut Facts<'a, 'm>,
                      other: &mut Option<Iteration<'a, 'm>>,
                      expression: &Symbolic| match other {
            Some(iteration) => iteration.rename(facts, expression),
            None => Some(expression.clone()),
        };
        let (Some(b_offset), Some(b_size)) = (
            rename(facts, &mut other, &b.offset),
            rename(facts, &mut other, b_size),
        ) else {
            return true;
        };
        let Some(distance) = b_offset.sub(&a.offset) else {
            return true;
        };
        let sizes = (a_size.is_constant(), b_size.is_constant());
        if let (Some(distance), (Some(a_size), Some(b_size))) = (distance.is_constant(), sizes) {
            return constants_overlap(distance, a_size, b_size);
        }
        if self.may_wrap(facts, &distance) {
            return true;
        }
        if let (Some(a_size), Some(b_size)) = sizes {
            if apart_by_remainder(&distance, a_size, b_size) {
                return false;
            }
            if (self.has_strides(&a.offset) || self.has_strides(&b.offset))
                && let (Some(a_strided), Some(b_strided)) =
                    (self.in_strides(&a.offset), self.in_strides(&b.offset))
                && let Some(b_strided) = match &mut other {
                    Some(iteration) => iteration.rename_strided(facts, &b_strided),
                    None => Some(b_strided),
                }
                && let Some(distance) = b_strided.sub(&a_strided)
                && apart_by_remainder(&distance, a_size, b_size)
            {
                return false;
            }
        }
        assume(facts, other.as_mut());
        // Where one of the two is empty, they share nothing.
        for size in [a_size, &b_size] {
            if let Some(rest) = size.plus(-1) {
                facts.assume(&rest);
            }
        }
        let behind = distance.sub(a_size);
        if behind.is_some_and(|behind| facts.prove_at_least(&behind, 0)) {
            return false;
        }
        let before = distance.add(&b_size);
        if before.is_some_and(|before| facts.prove_at_most(&before, 0)) {
            return false;
        }
        !apart_by_column(facts, &distance, a_size, &b_size)
    }

    /// Whether the numbers say that a distance may exceed what addresses can tell apart.
    fn may_wrap(&self, facts: &Facts, distance: &Symbolic) -> bool {
        let interval = |variable| facts.interval_of_variable(variable);
        // Where a variable has no limit but its type's, the assumption of this file has to do.
        distance
            .variables()
            .all(|variable| is_tight(interval(variable)))
            && !self
                .indices
                .interval_of(distance, interval)
                .is_within(Interval::of_bits(63))
    }

    /// Whether an offset mentions a counter of a step other than ±1.
    fn has_strides(&self, offset: &Symbolic) -> bool {
        offset.variables().any(|variable| {
            self.indices.counted_by(variable).is_some_and(|counted| {
                counted
                    .constant_step()
                    .is_some_and(|step| step.unsigned_abs() > 1)
            })
        })
    }

    /// An offset with every counter of a step other than ±1 replaced by first value + step · iteration, where the
    /// iteration's number goes by the counter's name.
    fn in_strides(&self, offset: &Symbolic) -> Option<Symbolic> {
        let mut strided: SmallVec<[Value; 4]> = SmallVec::new();
        let mut replaced = offset.clone();
        loop {
            // The bound of an inner counter may mention outer ones, which then have to be replaced too; the counter
            // defined last goes first, so that no name has two meanings.
            let next = replaced
                .variables()
                .filter(|variable| !strided.contains(variable))
                .filter_map(|variable| {
                    let counted = self.indices.counted_by(variable)?;
                    let step = counted.constant_step()?;
                    (step.unsigned_abs() > 1).then_some((counted, step))
                })
                .max_by_key(|(counted, _)| self.indices.rank(counted.counter));
            let Some((counted, step)) = next else {
                break;
            };
            strided.push(counted.counter);
            let value = Symbolic::of_value(counted.counter)
                .scale(step)?
                .add(&counted.from)?;
            replaced = replaced.substitute(counted.counter, &value)?;
        }
        Some(replaced)
    }
}

/// Another iteration of a loop: what the names of one are called in the other.
struct Iteration<'a, 'f> {
    indices: &'a Indices<'f>,
    loop_op: Op,
    names: FxHashMap<Value, Symbolic>,
    /// The same where counters stand for numbers of iterations.
    strided_names: FxHashMap<Value, Symbolic>,
}

impl<'a, 'f> Iteration<'a, 'f> {
    /// A later iteration, `distance` of them after, or with nothing given any iteration.
    fn new(
        indices: &'a Indices<'f>,
        loop_op: Op,
        distance: Option<(&Counted, Value)>,
    ) -> Iteration<'a, 'f> {
        let mut names = FxHashMap::default();
        let mut strided_names = FxHashMap::default();
        if let Some((counted, distance)) = distance {
            let counter = Symbolic::of_value(counted.counter);
            let distance = Symbolic::of_value(distance);
            let later = distance
                .mul(&counted.step)
                .and_then(|passed| counter.add(&passed));
            if let Some(later) = later {
                names.insert(counted.counter, later);
            }
            // A step of ±1 leaves the counter itself in place, otherwise it numbers the iterations.
            let strided = match counted.constant_step() {
                Some(-1) => counter.sub(&distance),
                _ => counter.add(&distance),
            };
            if let (Some(strided), Some(_)) = (strided, counted.constant_step()) {
                strided_names.insert(counted.counter, strided);
            }
        }
        Iteration {
            indices,
            loop_op,
            names,
            strided_names,
        }
    }

    fn rename(&mut self, facts: &mut Facts<'a, 'f>, expression: &Symbolic) -> Option<Symbolic> {
        rename(
            self.indices,
            self.loop_op,
            &mut self.names,
            facts,
            expression,
        )
    }

    fn rename_strided(
        &mut self,
        facts: &mut Facts<'a, 'f>,
        expression: &Symbolic,
    ) -> Option<Symbolic> {
        rename(
            self.indices,
            self.loop_op,
            &mut self.strided_names,
            facts,
            expression,
        )
    }
}

fn rename<'a, 'f>(
    indices: &'a Indices<'f>,
    loop_op: Op,
    names: &mut FxHashMap<Value, Symbolic>,
    facts: &mut Facts<'a, 'f>,
    expression: &Symbolic,
) -> Option<Symbolic> {
    for variable in expression.variables() {
        if !names.contains_key(&variable) && indices.varies_in(variable, loop_op) {
            let name = facts.invent_like(variable);
            names.insert(variable, Symbolic::of_value(name));
        }
    }
    expression.substitute_all(names)
}

/// Whether two places of a matrix are apart because their columns are, whatever their rows.
///
/// For some length `s` of a row, the distance is `s·q + r`, where `q` may be anything. If `a_size ≤ r ≤ s - b_size`, it is at
/// least `a_size` for `q ≥ 0` and at most `-b_size` for `q < 0`. The same goes for `r + s` in place of `r`.
fn apart_by_column(
    facts: &Facts,
    distance: &Symbolic,
    a_size: &Symbolic,
    b_size: &Symbolic,
) -> bool {
    row_lengths(distance).into_iter().any(|row| {
        let apart = || {
            let mut remainder = Symbolic::constant(distance.constant_part());
            let (length, factor) = (row.to_symbolic(), row.coefficient);
            for term in distance.terms() {
                let divides = term.coefficient % factor == 0
                    && without(&term.monomial, &row.monomial).is_some();
                if !divides {
                    remainder = remainder.add(&term.to_symbolic())?;
                }
            }
            let at_least = |a: &Symbolic, b: &Symbolic| {
                a.sub(b)
                    .is_some_and(|difference| facts.prove_at_least(&difference, 0))
            };
            let (behind, shifted) = (length.sub(b_size)?, remainder.add(&length)?);
            Some(
                (at_least(&remainder, a_size) && at_least(&behind, &remainder))
                    || (at_least(&shifted, a_size) && at_least(&behind, &shifted)),
            )
        };
        apart().unwrap_or(false)
    })
}

/// What may be the length of a row: the products in a distance with one factor taken out, a few at most.
fn row_lengths(distance: &Symbolic) -> SmallVec<[Term; 4]> {
    let mut rows: SmallVec<[Term; 4]> = SmallVec::new();
    for term in distance.terms() {
        for &variable in &term.monomial {
            let monomial = without(&term.monomial, &[variable]).unwrap_or_default();
            if monomial.is_empty() {
                continue;
            }
            let Ok(factor) = i64::try_from(term.coefficient.unsigned_abs()) else {
                continue;
            };
            if let Some(row) = rows.iter_mut().find(|row| row.monomial == monomial) {
                let common =
                    greatest_common_divisor(row.coefficient.unsigned_abs(), factor.unsigned_abs());
                row.coefficient = i64::try_from(common).unwrap_or(row.coefficient);
            } else if rows.len() < MAX_ROWS {
                rows.push(Term {
                    coefficient: factor,
                    monomial,
                });
            }
        }
    }
    rows
}

/// How many lengths of rows are tried.
const MAX_ROWS: usize = 4;

/// A product without some of its factors, if it has them all.
fn without(monomial: &[Value], factors: &[Value]) -> Option<Monomial> {
    let mut rest = Monomial::from_slice(monomial);
    for factor in factors {
        let position = rest.iter().position(|other| other == factor)?;
        rest.remove(position);
    }
    Some(rest)
}

/// Whether `a_size` bytes at 0 and `b_size` bytes at `distance` share one, modulo 2⁶⁴.
fn constants_overlap(distance: i64, a_size: i64, b_size: i64) -> bool {
    if a_size < 0 || b_size < 0 {
        return true;
    }
    let distance = i128::from(distance);
    distance < i128::from(a_size) && distance + i128::from(b_size) > 0
}

/// Whether the distance, whatever its variables are, leaves room for both modulo the divisor of its coefficients.
fn apart_by_remainder(distance: &Symbolic, a_size: i64, b_size: i64) -> bool {
    let divisor = i128::from(distance.common_divisor());
    if divisor == 0 || a_size < 0 || b_size < 0 {
        return false;
    }
    let remainder = i128::from(distance.constant_part()).rem_euclid(divisor);
    remainder >= i128::from(a_size) && remainder + i128::from(b_size) <= divisor
}

#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trace;
