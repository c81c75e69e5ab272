//! Which memory operations touch, and whether two of them may touch the same bytes.
//!
//! All answers are conservative: "no" is a proof, "yes" is the absence of one. The proofs rest on
//! [`crate::pointers`] (which objects), [`crate::indices`] and [`crate::inequalities`] (which bytes of one object), and so on
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

mod overlap;

use self::overlap::Iteration;
use crate::behaviour::handling;
use crate::indices::{Indices, is_loop};
use crate::inequalities::{Inequalities, inequalities_at};
use crate::pointers::{Object, Pointers, is_constant_object, object_kind};
use crate::symbolic::Symbolic;
use ferrozyme_ir::{
    Function, MemoryEffect, Module, Op, OpView, Opcode, Payload, Region, Structure, Type, Value,
};
use rustc_hash::{FxHashMap, FxHashSet};
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

/// Maximum number of branch combinations per query.
const MAX_CHOICES: usize = 8;

/// What holds in a region, each from a place in the text on.
type RegionInequalities = Rc<[(u32, Symbolic)]>;

/// Alias queries for a function, valid until it changes.
pub struct Aliases<'m> {
    module: &'m Module,
    indices: Indices<'m>,
    pointers: Pointers,
    inequalities: RefCell<FxHashMap<Region, RegionInequalities>>,
    /// What is not known but assumed to hold everywhere: each is not negative.
    assumed: Vec<Symbolic>,
}

impl<'m> Aliases<'m> {
    /// Builds the analysis, in nearly linear time.
    pub fn new(module: &'m Module, function: &'m Function) -> Aliases<'m> {
        Aliases::widening(module, function, FxHashSet::default())
    }

    /// The same under the assumption that the narrow arithmetic before these extensions does not wrap. Whoever asks tests that.
    pub(crate) fn widening(
        module: &'m Module,
        function: &'m Function,
        widened: FxHashSet<Value>,
    ) -> Aliases<'m> {
        let indices = Indices::widening(function, widened);
        let pointers = Pointers::of(module, &indices);
        Aliases {
            module,
            indices,
            pointers,
            inequalities: RefCell::default(),
            assumed: Vec::new(),
        }
    }

    /// The same under assumptions: expressions that are not negative wherever their variables are visible. Whoever asks tests them.
    #[must_use]
    pub(crate) fn assuming(self, assumed: Vec<Symbolic>) -> Aliases<'m> {
        Aliases { assumed, ..self }
    }

    /// What is assumed.
    pub(crate) fn assumed(&self) -> &[Symbolic] {
        &self.assumed
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

    /// Its parent links.
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

    /// The memory that an operation reads, without its regions.
    pub fn reads(&self, op: Op) -> Footprint {
        let function = self.function();
        let data = &function.ops[op];
        match data.view() {
            OpView::Load { address, .. } => {
                self.scalar(address, function.ty(data.results[0]).bytes())
            }
            OpView::AtomicAdd { address, value, .. } => {
                self.scalar(address, function.ty(value).bytes())
            }
            OpView::Copy { source, size, .. } | OpView::Move { source, size, .. } => {
                self.stretch(source, size)
            }
            OpView::Contract {
                destination,
                left,
                right,
                add,
                ..
            } => {
                let read = [left, right].into_iter().chain(add.then_some(destination));
                Footprint {
                    accesses: read.map(|array| self.access(array, None)).collect(),
                    elsewhere: false,
                }
            }
            OpView::Call { .. } | OpView::CallIndirect { .. } => self.call(op, false),
            OpView::Trap { .. } => self.trap(op),
            _ => Footprint::default(),
        }
    }

    /// The memory that an operation writes or frees, without its regions.
    pub fn writes(&self, op: Op) -> Footprint {
        let function = self.function();
        match function.view(op) {
            OpView::Store { value, address, .. } | OpView::AtomicAdd { address, value, .. } => {
                self.scalar(address, function.ty(value).bytes())
            }
            OpView::Copy {
                destination, size, ..
            }
            | OpView::Move {
                destination, size, ..
            }
            | OpView::Fill {
                destination, size, ..
            } => self.stretch(destination, size),
            OpView::Contract {
                destination: address,
                ..
            }
            | OpView::Free { address, .. } => Footprint {
                accesses: smallvec::smallvec![self.access(address, None)],
                elsewhere: false,
            },
            OpView::Call { .. } | OpView::CallIndirect { .. } => self.call(op, true),
            _ => Footprint::default(),
        }
    }

    /// The load that defines a value, if it is in the region of a store and has the store's address.
    pub(crate) fn load_before(&self, store: Op, value: Value) -> Option<Op> {
        let (load, _) = self.function().def_op(value)?;
        let same = self.function().ops[load].opcode == Opcode::Load
            && self.structure().region_of(load) == self.structure().region_of(store)
            && self.reads(load).accesses == self.writes(store).accesses;
        same.then_some(load)
    }

    /// Whether two accesses may touch the same byte, all values being the same for both.
    pub fn may_alias(&self, a: &Access, b: &Access) -> bool {
        if a.root != b.root {
            return self.may_share(a.root, b.root);
        }
        let mut known = Inequalities::trusting(&self.indices);
        self.may_overlap(&mut known, a, b, None, &mut |_, _| {})
    }

    /// As [`Aliases::may_alias`], where both operations run in the same iteration of all loops around both.
    pub fn may_alias_at(&self, a: (Op, &Access), b: (Op, &Access)) -> bool {
        if a.1.root != b.1.root {
            return self.may_share(a.1.root, b.1.root);
        }
        // Both see the same choice.
        self.any_choice(&[a.1, b.1], |accesses, ends| {
            let mut known = Inequalities::trusting(&self.indices);
            let (one, other) = (&accesses[0], &accesses[1]);
            self.may_overlap(&mut known, one, other, None, &mut |known, _| {
                for &op in [a.0, b.0].iter().chain(ends) {
                    self.inequalities_at(op, |inequality| known.assume(inequality));
                }
            })
        })
    }

    /// Whether an execution of `write` that comes after an execution of `read` may touch what that one touched.
    pub fn may_overwrite_later(&self, read: (Op, &Access), write: (Op, &Access)) -> bool {
        self.may_overwrite_within(read, write, None, false)
    }

    /// As [`Aliases::may_overwrite_later`], counting only executions within the same execution of `scope`, a loop
    /// around both, or within the same iteration of it.
    pub fn may_overwrite_within(
        &self,
        read: (Op, &Access),
        write: (Op, &Access),
        scope: Option<Op>,
        iteration: bool,
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
            .filter(|&&loop_op| !(iteration && Some(loop_op) == scope))
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
        self.any_two_choices(a, b, |one, other, at| {
            let mut known = Inequalities::trusting(&self.indices);
            let iteration = Iteration::new(&self.indices, loop_op, None);
            self.may_overlap(
                &mut known,
                one,
                other,
                Some(iteration),
                &mut |known, other| self.assume_both(known, other, at),
            )
        })
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

    /// Whether code elsewhere can access the object of a root.
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

    /// Whether an access may overlap a footprint, with the same values for both.
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
        let writing = callee.is_none_or(|callee| callee.may_write());
        if memory == MemoryEffect::None || (writes && !writing) {
            return Footprint::default();
        }
        let mut footprint = Footprint {
            accesses: SmallVec::new(),
            elsewhere: memory != MemoryEffect::Args,
        };
        let first = usize::from(data.opcode == Opcode::CallIndirect);
        for (index, &operand) in data.operands.iter().skip(first).enumerate() {
            let ty = function.ty(operand);
            if ty.is_ptr() && ty.is_vector() {
                // Objects behind a vector of pointers have escaped.
                footprint.elsewhere = true;
            }
            if !ty.is_ptr() || ty.is_vector() {
                continue;
            }
            let handling = handling(callee, index);
            if (writes && handling.writes) || (!writes && handling.reads) {
                footprint.accesses.push(self.access(operand, None));
            }
        }
        footprint
    }

    /// A function that stops the program may read anything it can reach.
    fn trap(&self, op: Op) -> Footprint {
        let function = self.function();
        let data = &function.ops[op];
        if !matches!(data.payload, Payload::Callee(_)) {
            return Footprint::default();
        }
        let pointers = data
            .operands
            .iter()
            .filter(|&&operand| function.ty(operand) == Type::PTR);
        Footprint {
            accesses: pointers
                .map(|&pointer| self.access(pointer, None))
                .collect(),
            elsewhere: true,
        }
    }

    // ---- two executions

    /// Calls `assume` with all that holds where an operation runs.
    pub(crate) fn inequalities_at(&self, op: Op, mut assume: impl FnMut(&Symbolic)) {
        let Some(region) = self.structure().region_of(op) else {
            return;
        };
        let mut by_region = self.inequalities.borrow_mut();
        let known = by_region
            .entry(region)
            .or_insert_with(|| inequalities_at(&self.indices, Some(region), true).into())
            .clone();
        drop(by_region);
        let here = self.structure().order(op);
        self.assumed.iter().for_each(&mut assume);
        // What holds farther out is known first; what it says of products may take what is known farther in.
        for again in [false, true] {
            for (since, inequality) in known.iter().rev() {
                let plain = inequality.terms().len() == 1 && inequality.constant_part() == 0;
                if *since <= here && !(again && plain) {
                    assume(inequality);
                }
            }
        }
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
        // The two places of one `copy` are apart or equal, and nothing changes if they are equal. A store does not undo itself.
        let opcode = self.function().ops[read].opcode;
        read == write && matches!(opcode, Opcode::Copy | Opcode::Store)
    }

    /// Whether `write`, in a later iteration of `loop_op` but the same one of the loops around it, may touch what
    /// `read` touched.
    pub fn may_meet_later(&self, read: (Op, &Access), write: (Op, &Access), loop_op: Op) -> bool {
        let (a, b) = (read.1, write.1);
        if a.root != b.root {
            return self.may_share(a.root, b.root);
        }
        if self.indices.varies_in(a.root, loop_op) {
            // Memory made in the loop is new in each iteration. Any other pointer may be the same again.
            return object_kind(self.function(), a.root) != Some(Object::Local);
        }
        let counted = self.indices.counted(loop_op);
        self.any_two_choices(read, write, |one, other, at| {
            let mut known = Inequalities::trusting(&self.indices);
            let distance = counted.map(|counted| known.invent_distance(counted));
            let iteration = Iteration::new(&self.indices, loop_op, counted.zip(distance));
            self.may_overlap(
                &mut known,
                one,
                other,
                Some(iteration),
                &mut |known, other| self.assume_both(known, other, at),
            )
        })
    }

    /// Assumes what holds at all these operations: first those of this iteration, then those of the other one.
    fn assume_both<'a>(
        &self,
        known: &mut Inequalities<'a, 'm>,
        other: Option<&mut Iteration<'a, 'm>>,
        at: [&[Op]; 2],
    ) {
        for &op in at[0] {
            self.inequalities_at(op, |inequality| known.assume(inequality));
        }
        let Some(iteration) = other else { return };
        for &op in at[1] {
            self.inequalities_at(op, |inequality| {
                if let Some(inequality) = iteration.rename(known, inequality) {
                    known.assume(&inequality);
                }
            });
        }
    }

    // ---- chosen pointers

    /// Whether something may be for any of the offsets between which branches chose for these accesses, which see the same
    /// choices; it is told where the branches end that were taken.
    fn any_choice(
        &self,
        accesses: &[&Access],
        mut check: impl FnMut(&[Access], &[Op]) -> bool,
    ) -> bool {
        let mut pending: Vec<(Vec<Access>, Vec<Op>)> = vec![(
            accesses.iter().map(|&access| access.clone()).collect(),
            Vec::new(),
        )];
        let mut checks = 0;
        while let Some((accesses, ends)) = pending.pop() {
            let variables = accesses.iter().flat_map(|access| access.offset.variables());
            let chosen = variables
                .filter_map(|variable| Some((variable, self.pointers.choices(variable)?)))
                .next()
                .filter(|_| checks + pending.len() < MAX_CHOICES);
            let Some((variable, choices)) = chosen else {
                checks += 1;
                if check(&accesses, &ends) {
                    return true;
                }
                continue;
            };
            for (offset, end) in choices {
                let mut taken = accesses.clone();
                for access in &mut taken {
                    match access.offset.substitute(variable, offset) {
                        Some(offset) => access.offset = offset,
                        // Too long to be looked at.
                        None => return true,
                    }
                }
                let mut ends = ends.clone();
                ends.push(*end);
                pending.push((taken, ends));
            }
        }
        false
    }

    /// As [`Aliases::any_choice`], for two accesses that choose each for itself. It is told where each was, and what branches it took.
    fn any_two_choices(
        &self,
        a: (Op, &Access),
        b: (Op, &Access),
        mut check: impl FnMut(&Access, &Access, [&[Op]; 2]) -> bool,
    ) -> bool {
        self.any_choice(&[a.1], |one, taken| {
            let at_one: SmallVec<[Op; 4]> = [a.0].iter().chain(taken).copied().collect();
            self.any_choice(&[b.1], |other, taken| {
                let at_other: SmallVec<[Op; 4]> = [b.0].iter().chain(taken).copied().collect();
                check(&one[0], &other[0], [&at_one, &at_other])
            })
        })
    }
}

#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trace;
