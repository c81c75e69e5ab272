//! What is done where iterations of a loop add to the same memory.
//!
//! - *Neighbours*: if only iterations close to each other add to the same place (a stencil in reverse), there are two blocks for each thread, and every second block runs before the others. Between two blocks that run
//!   together lies one that is at least as long as the distance.
//! - *Copies*: if it is known before the loop which range of memory is added to, and if that is small against the work, each block has a copy of it, which starts as zeros.
//! - *Atomic*: otherwise (`x[index[i]] += …`) additions are atomic.

use super::sharing::{Conflicts, Touch};
use super::{Finder, Obstacle, Strategy};
use crate::inequalities::{Inequalities, Sign};
use crate::raise_contractions::stretch_of;
use crate::ranges::Stretch;
use crate::symbolic::Symbolic;
use ferrozyme_ir::{
    Builder, Cursor, Function, Op, OpView, Opcode, Payload, Structure, Type, Value, for_each_op,
};
use rustc_hash::FxHashMap;

/// How far iterations may be from each other to count as neighbours.
const MAX_DISTANCE: i64 = 16;

/// Where an access is in an iteration, but for what the counter adds.
struct Reach {
    start: Symbolic,
    end: Symbolic,
    /// What is not negative where anything is touched: inner loops run.
    runs: Vec<Symbolic>,
}

/// Additions to memory behind one pointer that iterations have in common.
pub(super) struct SharedSum {
    /// The pointer.
    pub(super) root: Value,
    /// The loads and stores of each sum.
    pub(super) sums: Vec<(Op, Op)>,
    /// The type of the sums.
    pub(super) ty: Type,
    pub(super) strategy: Strategy,
    /// The ranges that are added to; known if there are copies.
    pub(super) ranges: Vec<Stretch>,
}

/// Decides for all sums that iterations have in common, and has tested what that rests on.
pub(super) fn choose(conflicts: &mut Conflicts<'_>) -> Result<Vec<SharedSum>, Obstacle> {
    let roots = conflicts.shared.clone();
    let mut shared: Vec<SharedSum> = (roots.into_iter())
        .map(|root| conflicts.shared_sum(root, true))
        .collect();
    for (first, second) in std::mem::take(&mut conflicts.crossing) {
        let pair = [first, second].map(|touch| conflicts.touches[touch].access.root);
        let strategies = pair.map(|root| {
            let known = shared.iter().find(|sum| sum.root == root);
            known.map(|sum| sum.strategy)
        });
        match strategies {
            // Copies are added to the memory when the loop is over.
            [Some(Strategy::Copies), _] | [_, Some(Strategy::Copies)] => {}
            [Some(Strategy::Atomic), Some(Strategy::Atomic)] => {}
            _ if conflicts.test(first, second).is_ok() => {}
            _ => {
                for root in pair {
                    shared.retain(|sum| sum.root != root);
                    shared.push(conflicts.shared_sum(root, false));
                }
            }
        }
    }
    for sum in &shared {
        if sum.strategy == Strategy::Copies {
            conflicts.keep_out(sum)?;
        }
    }
    Ok(shared)
}

impl Conflicts<'_> {
    /// The sums behind a pointer, with the best strategy for them.
    fn shared_sum(&self, root: Value, neighbours: bool) -> SharedSum {
        let members = || {
            let touches = self.touches.iter();
            touches.filter(move |touch| touch.sum.is_some() && touch.access.root == root)
        };
        let mut sums: Vec<(Op, Op)> = Vec::new();
        let mut types = Vec::new();
        for sum in members().filter_map(|touch| touch.sum) {
            if !sums.contains(&(sum.load, sum.store)) {
                sums.push((sum.load, sum.store));
                types.push(sum.ty);
            }
        }
        let writes: Vec<&Touch> = members().filter(|touch| touch.writes).collect();
        let distance = match neighbours {
            true => self.distance(&writes),
            false => None,
        };
        let ranges = self.ranges(root, &writes, &types);
        let strategy = match (distance, &ranges) {
            (Some(distance), _) => Strategy::Neighbours(distance),
            (None, Some(_)) => Strategy::Copies,
            (None, None) => Strategy::Atomic,
        };
        SharedSum {
            root,
            sums,
            ty: types[0],
            strategy,
            ranges: ranges.unwrap_or_default(),
        }
    }

    /// How far two iterations may be from each other that touch the same byte, if that is a small number.
    fn distance(&self, writes: &[&Touch]) -> Option<i64> {
        let aliases = &self.finder.aliases;
        let indices = aliases.indices();
        let counted = indices.counted(self.around)?;
        // Where each access is in an iteration, but for what the counter adds.
        let mut places: Vec<Reach> = Vec::new();
        let mut stride: Option<Symbolic> = None;
        for touch in writes {
            let range = aliases.range_in_iteration(&touch.access, touch.op, self.around)?;
            let mut ends = Vec::new();
            for end in [&range.start, &range.end] {
                let (factor, rest) = end.split(counted.counter);
                let moves = factor.mul(&counted.step)?;
                if factor.mentions(counted.counter) || stride.get_or_insert(moves.clone()) != &moves
                {
                    return None;
                }
                ends.push(rest);
            }
            let runs = range.counts.iter().map(|count| count.plus(-1));
            places.push(Reach {
                start: ends[0].clone(),
                end: ends[1].clone(),
                runs: runs.collect::<Option<_>>()?,
            });
        }
        let stride = stride?;
        let mut distance = 1;
        for one in &places {
            for other in &places {
                // Other loops need not run where these two touch something.
                let mut known = Inequalities::at(indices, self.around);
                known.assume_within(counted);
                for runs in one.runs.iter().chain(&other.runs) {
                    known.assume(runs);
                }
                let forward = match known.sign(&stride)? {
                    Sign::NotNegative => stride.clone(),
                    Sign::NotPositive => stride.scale(-1)?,
                };
                let length = other.end.sub(&one.start)?;
                let is_beyond = |distance: &i64| {
                    let reached = forward.scale(distance + 1);
                    let left = reached.and_then(|reached| reached.sub(&length));
                    left.is_some_and(|left| known.prove_at_least(&left, 0))
                };
                distance = (distance..=MAX_DISTANCE).find(is_beyond)?;
            }
        }
        Some(distance)
    }

    /// The ranges that are added to behind a pointer, if a copy can take their place.
    fn ranges(&self, root: Value, writes: &[&Touch], types: &[Type]) -> Option<Vec<Stretch>> {
        if types.iter().any(|ty| *ty != types[0]) || !self.only_adds_to(root) {
            return None;
        }
        let aliases = &self.finder.aliases;
        let mut ranges: Vec<Stretch> = Vec::new();
        for touch in writes {
            let range = stretch_of(aliases, self.place, &touch.access);
            let range = range.or_else(|| self.whole_object(root))?;
            if !ranges.contains(&range) {
                ranges.push(range);
            }
        }
        Some(ranges)
    }

    /// The memory of an object that the function makes itself.
    fn whole_object(&self, root: Value) -> Option<Stretch> {
        let (function, indices) = (self.finder.function, self.finder.aliases.indices());
        let size = match function.definition(root)? {
            OpView::Stack { size, .. } | OpView::Alloc { size, .. } => size,
            _ => return None,
        };
        let stretch = Stretch::new(root, Symbolic::constant(0), &indices.expression(size))?;
        self.place.is_bounded(function, &stretch).then_some(stretch)
    }

    /// Whether nothing is done with pointers behind a root but to add to the memory there.
    fn only_adds_to(&self, root: Value) -> bool {
        let (function, pointers) = (self.finder.function, self.finder.aliases.pointers());
        let mut only = true;
        for_each_op(function, function.ops[self.around].body(), &mut |_, op| {
            let data = &function.ops[op];
            let leads = |&value: &Value| {
                let ty = function.ty(value);
                ty.is_ptr() && pointers.root(value) == root
            };
            let allowed = match data.view() {
                OpView::Offset { .. } => true,
                OpView::Load { .. } | OpView::AtomicAdd { .. } => self.adds(op),
                OpView::Store { value, .. } => self.adds(op) && !leads(&value),
                _ => false,
            };
            only &= allowed || !data.operands.iter().any(leads);
        });
        only
    }

    fn adds(&self, op: Op) -> bool {
        let mut touches = self.touches.iter();
        touches.any(|touch| touch.op == op && touch.sum.is_some())
    }

    /// Has it tested that nothing else in the loop touches memory of which blocks have copies.
    fn keep_out(&mut self, sum: &SharedSum) -> Result<(), Obstacle> {
        let touches = self.touches;
        for (first, touch) in touches.iter().enumerate() {
            let shares = self.finder.aliases.may_share(touch.access.root, sum.root);
            if touch.sum.is_some() || !shares {
                continue;
            }
            for (second, other) in touches.iter().enumerate() {
                if other.writes && other.access.root == sum.root {
                    self.test(first, second)?;
                }
            }
        }
        Ok(())
    }
}

impl SharedSum {
    /// An operation that adds.
    pub(super) fn store(&self) -> Op {
        self.sums[0].1
    }

    /// The operations that add.
    pub(super) fn stores(&self) -> impl Iterator<Item = Op> + '_ {
        self.sums.iter().map(|&(_, store)| store)
    }

    /// Makes the additions atomic in a copy of the loop.
    pub(super) fn make_atomic(&self, target: &mut Function, copied: &FxHashMap<Op, Op>) {
        for (load, store) in &self.sums {
            let (load, store) = (copied[load], copied[store]);
            if load == store {
                continue;
            }
            // What is added is the new value where the old one is zero.
            let old = target.result(load);
            let zero = target.float(target.ty(old), -0.0);
            target.replace_operands(&FxHashMap::from_iter([(old, zero)]));
            let structure = Structure::of(target);
            let region = structure.region_of(store).expect("it stands in a region");
            Cursor::before(target, region, load).remove(target);
            let at = Cursor::before(target, region, store);
            at.remove(target);
            let data = target.ops[store].clone();
            let mut b = Builder::at(target, at);
            b.location = data.location;
            let Payload::Align(align) = data.payload else {
                unreachable!("a store has an alignment");
            };
            let ty = b.ty(data.value());
            b.value(
                Opcode::AtomicAdd,
                &[data.address(), data.value()],
                Payload::Align(align),
                ty,
            );
        }
    }
}

impl Finder<'_> {
    /// The position of the sums, among those that blocks have copies of, to which a captured pointer leads.
    pub(super) fn copy_of(&self, shared: &[SharedSum], value: Value) -> Option<usize> {
        let root = self.aliases.pointers().root(value);
        let is_copied = |sum: &SharedSum| sum.strategy == Strategy::Copies && sum.root == root;
        let is_pointer = self.function.ty(value).is_ptr();
        shared.iter().position(|sum| is_pointer && is_copied(sum))
    }
}
