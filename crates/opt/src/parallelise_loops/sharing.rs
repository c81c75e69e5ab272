//! What the iterations of a loop have in common: values that they carry, and memory.

use super::strategies::{SharedSum, choose};
use super::{Finder, Obstacle};
use crate::alias::Access;
use crate::carried::carried_by;
use crate::distribution::each_op_within;
use crate::raise_contractions::{Test, test_apart, test_for_iterations};
use crate::ranges::Place;
use crate::sums::carried_sum;
use ferrozyme_ir::{Op, OpView, Opcode, Type, Value};

/// How many pairs of accesses of a loop are compared.
const MAX_PAIRS: usize = 20_000;

/// How many tests are made before a loop.
const MAX_TESTS: usize = 64;

/// What the iterations of a loop have in common.
pub(super) struct Sharing {
    /// The tests that must come out well for nothing else to be in common.
    pub(super) tests: Vec<Test>,
    pub(super) carried: Vec<Carried>,
    pub(super) shared: Vec<SharedSum>,
    /// All memory that is touched.
    pub(super) touches: Vec<Touch>,
}

/// How what blocks carry becomes one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Carried {
    /// Floats that are added up.
    Sum(Type),
    /// Truth values of which it matters whether one is true.
    Any(Type),
}

/// An access to memory in a loop's body.
#[derive(Clone)]
pub(super) struct Touch {
    pub(super) op: Op,
    pub(super) access: Access,
    pub(super) writes: bool,
    /// The sum in memory that it is a part of.
    pub(super) sum: Option<MemorySum>,
}

/// A load and a store that only add to memory: one operation where that is atomic.
#[derive(Clone, Copy)]
pub(super) struct MemorySum {
    pub(super) load: Op,
    pub(super) store: Op,
    pub(super) ty: Type,
}

impl Sharing {
    /// Finds out, or why the loop does not qualify.
    pub(super) fn of(finder: &Finder<'_>, place: &Place) -> Result<Sharing, Obstacle> {
        let op = place.op;
        let carried = finder.carried(op)?;
        let touches = finder.touches(op)?;
        let mut conflicts = Conflicts {
            finder,
            around: op,
            place,
            touches: &touches,
            released: finder.released(&touches, op),
            tests: Vec::new(),
            shared: Vec::new(),
            crossing: Vec::new(),
        };
        conflicts.compare_all()?;
        let shared = choose(&mut conflicts)?;
        Ok(Sharing {
            tests: conflicts.tests,
            carried,
            shared,
            touches,
        })
    }
}

impl Finder<'_> {
    /// What a loop carries, if that can be had from blocks of iterations.
    fn carried(&self, op: Op) -> Result<Vec<Carried>, Obstacle> {
        let (function, structure) = (self.function, self.aliases.structure());
        let all = carried_by(function, op);
        let is_wide = function.ty(function.counter(op)).scalar().bits() > 64;
        if is_wide || all.len() != function.ops[op].results.len() {
            return Err(Obstacle::Carried);
        }
        let kind = |carried: &crate::carried::Carried| {
            let ty = function.ty(carried.argument);
            if ty.is_float() && !ty.is_vector() && self.options.reorder {
                carried_sum(function, structure, &self.uses, op, carried)?;
                return Some(Carried::Sum(ty));
            }
            let only = self.uses.only(carried.argument)?;
            let is_or = ty == Type::I1
                && function.ops[only.0].opcode == Opcode::Or
                && function.result(only.0) == carried.next
                && self.uses.only(carried.next).is_some();
            is_or.then_some(Carried::Any(ty))
        };
        let kinds = all
            .iter()
            .map(|carried| kind(carried).ok_or(Obstacle::Carried));
        kinds.collect()
    }

    /// All memory that a loop's body touches, but for code that stops the program.
    fn touches(&self, around: Op) -> Result<Vec<Touch>, Obstacle> {
        let mut touches = Vec::new();
        let mut obstacle = None;
        each_op_within(self.function, around, &mut |op| {
            let (read, written) = (self.aliases.reads(op), self.aliases.writes(op));
            let data = &self.function.ops[op];
            // Memory on the stack of a block ends with it.
            let outlives =
                data.opcode == Opcode::Stack && self.aliases.pointers().is_escaped(data.results[0]);
            if read.elsewhere || written.elsewhere || outlives {
                obstacle.get_or_insert(Obstacle::AnyMemory(op));
            }
            let touch = |access: &Access, writes: bool| Touch {
                op,
                access: access.clone(),
                writes,
                sum: None,
            };
            touches.extend(read.accesses.iter().map(|access| touch(access, false)));
            touches.extend(written.accesses.iter().map(|access| touch(access, true)));
        });
        if let Some(obstacle) = obstacle {
            return Err(obstacle);
        }
        self.find_sums(&mut touches);
        Ok(touches)
    }

    /// The pointers that each iteration gets anew, and with which it releases the memory behind them if it gets there: memory that two iterations have in common would be released twice.
    fn released(&self, touches: &[Touch], around: Op) -> Vec<Value> {
        let (function, structure) = (self.function, self.aliases.structure());
        let body = function.ops[around].body();
        let roots = touches.iter().filter_map(|touch| {
            let root = touch.access.root;
            let home = structure.region_of_value(function, root)?;
            let is_own = structure.is_within(home, body) && function.def_op(root).is_some();
            let is_release = function.ops[touch.op].opcode == Opcode::Free;
            let is_always = structure.region_of(touch.op) == Some(home);
            (is_release && is_own && is_always).then_some(root)
        });
        roots.collect()
    }

    /// Marks the accesses that only add to memory: a load, and a store of what was loaded and something more.
    fn find_sums(&self, touches: &mut [Touch]) {
        if !self.options.reorder {
            return;
        }
        let stores: Vec<Op> = touches
            .iter()
            .filter(|touch| touch.writes)
            .map(|touch| touch.op)
            .collect();
        for store in stores {
            let Some(sum) = self.sum_in_memory(store, touches) else {
                continue;
            };
            for touch in touches.iter_mut() {
                if touch.op == sum.load || touch.op == sum.store {
                    touch.sum = Some(sum);
                }
            }
        }
    }

    /// The sum that a store is a part of, if it only adds to memory.
    fn sum_in_memory(&self, store: Op, touches: &[Touch]) -> Option<MemorySum> {
        let function = self.function;
        if let OpView::AtomicAdd { value, align, .. } = function.view(store) {
            let ty = function.ty(value);
            let is_unused = self.uses.of_value(function.result(store)).is_empty();
            let is_sum = is_unused && ty.is_float() && align.bytes() >= ty.bytes();
            return is_sum.then_some(MemorySum {
                load: store,
                store,
                ty,
            });
        }
        let load = crate::distribution::sum_in_memory(&self.aliases, &self.uses, store, true)?;
        if !function.ty(function.ops[store].value()).is_float() {
            return None;
        }
        let place = &self.aliases.writes(store).accesses[0].clone();
        let structure = self.aliases.structure();
        let between = structure.order(load)..structure.order(store);
        // What is written in between would be lost, as it is in the loop.
        let is_lost = touches.iter().any(|other| {
            other.writes
                && other.op != store
                && between.contains(&structure.order(other.op))
                && self.aliases.may_share(other.access.root, place.root)
                && self
                    .aliases
                    .may_alias_at((other.op, &other.access), (store, place))
        });
        (!is_lost).then(|| MemorySum {
            load,
            store,
            ty: function.ty(function.ops[store].value()),
        })
    }
}

/// The comparison of all accesses of a loop.
pub(super) struct Conflicts<'a> {
    pub(super) finder: &'a Finder<'a>,
    pub(super) around: Op,
    /// Where tests are made.
    pub(super) place: &'a Place,
    pub(super) touches: &'a [Touch],
    /// Pointers to memory that is released in the iteration that accesses it.
    released: Vec<Value>,
    pub(super) tests: Vec<Test>,
    /// The roots of sums to which several iterations may add.
    pub(super) shared: Vec<Value>,
    /// The pairs of sums behind different roots that may be the same memory.
    pub(super) crossing: Vec<(usize, usize)>,
}

impl Conflicts<'_> {
    fn compare_all(&mut self) -> Result<(), Obstacle> {
        let touches = self.touches;
        let writes = touches.iter().filter(|touch| touch.writes).count();
        if writes * touches.len() > MAX_PAIRS {
            return Err(Obstacle::TooManyAccesses);
        }
        for (first, write) in touches.iter().enumerate() {
            for (second, other) in touches.iter().enumerate() {
                // Of two writes, one order is enough.
                let is_seen = other.writes && second < first;
                if write.writes && !is_seen && self.may_meet(write, other) {
                    self.note(first, second)?;
                }
            }
        }
        Ok(())
    }

    /// Whether two accesses may touch the same byte in different iterations.
    pub(super) fn may_meet(&self, a: &Touch, b: &Touch) -> bool {
        let aliases = &self.finder.aliases;
        if !aliases.may_share(a.access.root, b.access.root) {
            return false;
        }
        if a.access.root == b.access.root && self.released.contains(&a.access.root) {
            return false;
        }
        let (one, other) = ((a.op, &a.access), (b.op, &b.access));
        aliases.may_meet_later(one, other, self.around)
            || aliases.may_meet_later(other, one, self.around)
    }

    fn note(&mut self, first: usize, second: usize) -> Result<(), Obstacle> {
        let (a, b) = (&self.touches[first], &self.touches[second]);
        let is_one_sum = a.sum.zip(b.sum).is_some_and(|(a, b)| a.ty == b.ty);
        if is_one_sum {
            if a.access.root == b.access.root {
                if !self.shared.contains(&a.access.root) {
                    self.shared.push(a.access.root);
                }
            } else {
                self.crossing.push((first, second));
            }
            return Ok(());
        }
        self.test(first, second)
    }

    /// Has it tested that two accesses do not meet.
    pub(super) fn test(&mut self, first: usize, second: usize) -> Result<(), Obstacle> {
        let (a, b) = (&self.touches[first], &self.touches[second]);
        let aliases = &self.finder.aliases;
        let (one, other) = ((a.op, &a.access), (b.op, &b.access));
        // Ranges behind one pointer that are a constant apart are those of neighbours: they overlap.
        let is_fixed = || {
            let distance = a.access.offset.sub(&b.access.offset);
            a.access.root == b.access.root
                && distance.is_none_or(|distance| distance.is_constant().is_some())
        };
        let test = test_for_iterations(aliases, self.place, one, other);
        let test = test.or_else(|| match is_fixed() {
            true => None,
            false => test_apart(aliases, self.place, one.1, other.1),
        });
        let Some(test) = test else {
            return Err(Obstacle::Conflict(a.op, b.op));
        };
        if !self.tests.contains(&test) {
            self.tests.push(test);
        }
        match self.tests.len() > MAX_TESTS {
            true => Err(Obstacle::TooManyAccesses),
            false => Ok(()),
        }
    }
}
