//! What is left of a nest may run in the other order of its loops.
//!
//! ```text
//! for %o: i64 = 0 to %outputs step 1 {                 for %t: i64 = 0 to %tokens step 1 {
//!   %b = load f32 %bias[o]                               for %o: i64 = 0 to %outputs step 1 {
//!   for %t: i64 = 0 to %tokens step 1 {         →          %b = load f32 %bias[o]
//!     store f32 %b, %out[t, o]                             store f32 %b, %out[t, o]
//!   }                                                    }
//! }                                                    }
//! ```
//!
//! The order of the loops suited the product, whose rows were read one after the other, and what is left would go through memory column by column. The loops are interchanged if more
//! accesses then are to consecutive elements, and if no two iterations touch the same memory but by adding to it.

use super::arrays::Array;
use super::tests_at_run_time::{Test, test_for_iterations};
use super::{Finder, Plan, Rest};
use crate::distribution::{each_op_within, slice_of};
use crate::recurrence::Counted;
use ferrozyme_ir::{Effect, Op, Opcode, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// Two loops that are to be interchanged.
pub(super) struct Interchange {
    /// The inner one.
    pub inner: Op,
    /// The operations that are left in their bodies, in the order of the text, without terminators.
    pub ops: Vec<Op>,
    /// What must hold when the nest runs.
    pub tests: Vec<Test>,
}

impl Finder<'_, '_> {
    /// Whether the loops of a nest are to be interchanged when sums have been taken out of it.
    pub(super) fn interchange(&self, nest: Op, plans: &[Plan]) -> Option<Interchange> {
        let stores = self.stores_left(nest, plans)?;
        let structure = self.aliases.structure();
        let region = structure.region_of(*stores.first()?)?;
        let inner = structure.op_of(region)?;
        let function = self.function;
        let home = function.ops[nest].body();
        let is_pair = function.ops[inner].opcode == Opcode::For
            && structure.region_of(inner) == Some(home)
            && stores
                .iter()
                .all(|&store| structure.region_of(store) == Some(region))
            && [nest, inner]
                .iter()
                .all(|&op| function.ops[op].results.is_empty());
        let bounds = function.ops[inner].opcode == Opcode::For;
        let is_rectangle = bounds
            && (function.ops[inner].bounds().into_iter())
                .all(|bound| self.aliases.indices().is_defined_outside(bound, nest));
        if !is_pair || !is_rectangle {
            return None;
        }
        let ops = self.slice_left(nest, inner, &stores, plans)?;
        let loops = [nest, inner].map(|op| self.aliases.indices().counted(op).cloned());
        let [Some(outer_loop), Some(inner_loop)] = loops else {
            return None;
        };
        if !self.gains(&ops, &[outer_loop, inner_loop]) {
            return None;
        }
        let tests = self.tests_for_iterations(nest, inner, &ops)?;
        Some(Interchange { inner, ops, tests })
    }

    /// The stores of a nest that stay; none if something else in it has an effect.
    fn stores_left(&self, nest: Op, plans: &[Plan]) -> Option<Vec<Op>> {
        let removed: FxHashSet<Op> = (plans.iter())
            .filter(|plan| !matches!(plan.rest, Rest::Others { .. }))
            .map(|plan| plan.store)
            .collect();
        let mut stores = Some(Vec::new());
        each_op_within(self.function, nest, &mut |op| {
            let data = &self.function.ops[op];
            match data.opcode.effect() {
                Effect::Pure | Effect::Partial | Effect::Read | Effect::Regions => {}
                Effect::Ends if data.opcode != Opcode::Trap => {}
                Effect::Write if data.opcode == Opcode::Store => {
                    if let Some(stores) = stores.as_mut().filter(|_| !removed.contains(&op)) {
                        stores.push(op);
                    }
                }
                _ => stores = None,
            }
        });
        stores
    }

    /// The operations in the bodies of both loops that these stores take.
    fn slice_left(&self, nest: Op, inner: Op, stores: &[Op], plans: &[Plan]) -> Option<Vec<Op>> {
        // What stands for the sums: their initial values, or a constant.
        let replaced: FxHashMap<(Op, usize), Option<Value>> = (plans.iter())
            .filter_map(|plan| match plan.rest {
                Rest::Others { used, by } => Some((used, by)),
                Rest::Sum | Rest::Set | Rest::ReadBack(_) => None,
            })
            .collect();
        slice_of(self.aliases, stores, &[nest, inner], &replaced)
    }

    /// Whether more accesses are to consecutive elements in the outer loop than in the inner one.
    fn gains(&self, ops: &[Op], loops: &[Counted; 2]) -> bool {
        let mut consecutive = [0, 0];
        for &op in ops {
            for footprint in [self.aliases.reads(op), self.aliases.writes(op)] {
                for access in &footprint.accesses {
                    let size = access.size.as_ref().and_then(|size| size.is_constant());
                    let Some(array) = Array::of(self.aliases, access, loops) else {
                        continue;
                    };
                    for (count, stride) in consecutive.iter_mut().zip(&array.strides) {
                        let stride = stride.is_constant().map(i64::abs);
                        *count += usize::from(stride.is_some() && stride == size);
                    }
                }
            }
        }
        consecutive[0] > consecutive[1]
    }

    /// What must hold so that no two iterations of both loops touch the same memory but by adding to it; none if no test tells.
    fn tests_for_iterations(&self, nest: Op, inner: Op, ops: &[Op]) -> Option<Vec<Test>> {
        let aliases = self.aliases;
        let place = self.place_before(nest);
        let mut tests = Vec::new();
        for &write in ops {
            let written = aliases.writes(write);
            for &other in ops {
                if self.distribution.commute(write, other) {
                    continue;
                }
                for footprint in [aliases.reads(other), aliases.writes(other)] {
                    if footprint.elsewhere || written.elsewhere {
                        return None;
                    }
                    for a in &written.accesses {
                        for b in &footprint.accesses {
                            let (one, two) = ((write, a), (other, b));
                            let meet = aliases.may_share(a.root, b.root)
                                && [nest, inner].into_iter().any(|around| {
                                    aliases.may_meet_later(one, two, around)
                                        || aliases.may_meet_later(two, one, around)
                                });
                            if meet {
                                tests.push(test_for_iterations(aliases, &place, one, two)?);
                            }
                        }
                    }
                }
            }
        }
        Some(tests)
    }
}
