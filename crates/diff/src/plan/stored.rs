//! Values that the program itself has stored to memory.
//!
//! A value that is impossible or expensive to recompute is reloaded from where the program stored it, if nothing clobbers it
//! there: the mean that a layer norm stores need not be saved.
//!
//! Exponentials that are divided by their own sum, in place, are found too: `e = p·sum`, where `p` is what stands there now.
//!
//! ```text
//! %sum = for %i … with (%s = 0.0) { %e = exp …  store %e, %q[i]  %s1 = fadd %s, %e  yield %s1 }
//! for %i … { %e2 = load %q[i]  %p = fdiv %e2, %sum  store %p, %q[i]  yield }
//! ```
//! Since no `p` is larger than 1, nothing is lost: where a `p` is so small that it is rounded, so is all that could depend on it.

use super::{Planner, Reason, Recipe, Reload, offset_chain};
use ferrozyme_ir::{Constant, Function, Op, OpView, Opcode, Value, ValueDef, returning_ops};
use ferrozyme_opt::carried_by;
use rustc_hash::FxHashMap;

/// For each value, the operations that store it in the region in which it is defined.
pub(super) fn stores_of(function: &Function) -> FxHashMap<Value, Vec<Op>> {
    let mut stores: FxHashMap<Value, Vec<Op>> = FxHashMap::default();
    for op in returning_ops(function) {
        if let OpView::Store { value, .. } = function.view(op)
            && !function.is_constant(value)
        {
            stores.entry(value).or_default().push(op);
        }
    }
    stores
}

impl Planner<'_> {
    /// A way to read a value back from where the program stored it, if that is better than what is known so far.
    pub(super) fn recipe_from_store(&self, value: Value, known: &Recipe) -> Option<Recipe> {
        if self.function.ty(value).is_ptr() || !self.is_dear(known) {
            return None;
        }
        let stores = self.stores.get(&value)?;
        let steady = |store: &&Op| !self.augmented.unsteady.contains(**store);
        stores.iter().filter(steady).find_map(|&store| {
            let mut operands = self.way_to(store, value)?;
            let times = match self.why_overwritten(store) {
                None => None,
                Some(_) => Some(self.sum_divided_by(store, value)?),
            };
            operands.extend(times);
            let reload = Reload { store, times };
            Some(Recipe::Stored(reload, operands))
        })
    }

    /// Whether a value had better be found in memory than computed.
    fn is_dear(&self, recipe: &Recipe) -> bool {
        match recipe {
            Recipe::Never(_) => true,
            Recipe::From(operands, cost) => {
                *cost >= 5 || operands.iter().any(|&operand| self.is_lost(operand))
            }
            Recipe::FromRange(..) => true,
            Recipe::Stored(..) => false,
        }
    }

    /// Whether a value is certainly not to be had without saving it.
    fn is_lost(&self, value: Value) -> bool {
        match self.function.values[value].def {
            ValueDef::Constant(_) => false,
            ValueDef::Argument { region, index } => {
                let holder = self.structure().op_of(region);
                holder.is_some_and(|holder| {
                    self.function.ops[holder].opcode != Opcode::For || index > 0
                })
            }
            ValueDef::Result { op, .. } => {
                let data = &self.function.ops[op];
                !data.regions.is_empty()
                    || matches!(data.opcode, Opcode::Call | Opcode::CallIndirect)
                    || (data.opcode == Opcode::Load
                        && self.why_not_reload(op, data.address()).is_some())
            }
        }
    }

    /// The values that lead to where an operation stores a value; all must be there when the value is.
    fn way_to(&self, store: Op, value: Value) -> Option<Vec<Value>> {
        let structure = self.structure();
        let home = structure.region_of_value(self.function, value)?;
        if structure.region_of(store) != Some(home) {
            return None;
        }
        let (made, _) = self.function.def_op(value)?;
        let chain = offset_chain(self.function, self.function.ops[store].address());
        let mut operands = chain.indices();
        operands.push(chain.root);
        let is_there = |operand: &Value| {
            let own = structure.region_of_value(self.function, *operand);
            own != Some(home)
                || match self.function.def_op(*operand) {
                    Some((op, _)) => structure.order(op) < structure.order(made),
                    None => true,
                }
        };
        operands.iter().all(is_there).then_some(operands)
    }

    /// Why what a store wrote cannot be read back in the reverse sweep.
    fn why_overwritten(&self, store: Op) -> Option<Reason> {
        let scope = self.innermost_loop_at_once(store);
        if let Some(clobber) = self.clobbers.overwrites_store(store, scope, None) {
            return Some(Reason::Overwritten(clobber));
        }
        self.why_memory_changes(self.function.ops[store].address())
    }

    /// The sum by which an exponential is divided where it was stored, if it is divided by the sum of all its like.
    fn sum_divided_by(&self, store: Op, value: Value) -> Option<Value> {
        let structure = self.structure();
        let (made, _) = self.function.def_op(value)?;
        let exponential = matches!(
            self.function.ops[made].opcode,
            Opcode::Exp | Opcode::Exp2 | Opcode::Exp10
        );
        let body = structure.region_of(store)?;
        let first = structure.op_of(body)?;
        if !exponential || self.function.ops[first].opcode != Opcode::For {
            return None;
        }
        let sum = self.sum_of(first, value)?;
        let around = structure.region_of(first)?;
        let later = self.function.regions[around].ops.iter();
        let mut later = later.skip_while(|&&op| op != first).skip(1);
        later.find_map(|&second| {
            let same = self.function.ops[second].opcode == Opcode::For
                && self.function.ops[second].bounds() == self.function.ops[first].bounds();
            if !same {
                return None;
            }
            let divided = self.division_in(second, sum)?;
            let scope = self.innermost_loop_at_once(store);
            let alone = self.is_same_place((first, store), (second, divided))
                && self
                    .clobbers
                    .overwrites_store(store, scope, Some(divided))
                    .is_none()
                && self.why_overwritten(divided).is_none();
            alone.then_some(sum)
        })
    }

    /// The result of a loop that is the sum of a value of all iterations, from zero on.
    fn sum_of(&self, op: Op, value: Value) -> Option<Value> {
        carried_by(self.function, op)
            .into_iter()
            .find_map(|carried| {
                let sum = (value, carried.argument);
                let adds = match self.function.definition(carried.next)? {
                    OpView::Binary(Opcode::Fadd, a, b) => [(a, b), (b, a)].contains(&sum),
                    _ => false,
                };
                let start = self.function.constant_of(carried.initial);
                (adds && matches!(start, Some(Constant::Bits(0)))).then_some(carried.result)
            })
    }

    /// The store in a loop's body that divides what stands in its place by a number.
    fn division_in(&self, op: Op, divisor: Value) -> Option<Op> {
        let body = self.function.ops[op].regions[0];
        let is_division = |&store: &Op| {
            let OpView::Store { value, .. } = self.function.view(store) else {
                return false;
            };
            let Some(OpView::Binary(Opcode::Fdiv, dividend, by)) = self.function.definition(value)
            else {
                return false;
            };
            let Some((load, _)) = self.function.def_op(dividend) else {
                return false;
            };
            by == divisor
                && self.function.ops[load].opcode == Opcode::Load
                && self.structure().region_of(load) == Some(body)
                && self.clobbers.aliases().reads(load).accesses
                    == self.clobbers.aliases().writes(store).accesses
        };
        let ops = &self.function.regions[body].ops;
        ops.iter().copied().find(is_division)
    }

    /// Whether two stores in two loops go to the same place in iterations of the same counter.
    fn is_same_place(&self, a: (Op, Op), b: (Op, Op)) -> bool {
        let aliases = self.clobbers.aliases();
        let counter = |op: Op| self.function.regions[self.function.ops[op].regions[0]].args[0];
        let (one, other) = (aliases.writes(a.1).accesses, aliases.writes(b.1).accesses);
        let (Some(one), Some(other)) = (one.first(), other.first()) else {
            return false;
        };
        let renamed = other.offset.substitute(
            counter(b.0),
            &ferrozyme_opt::symbolic::Symbolic::of_value(counter(a.0)),
        );
        one.root == other.root
            && one.size == other.size
            && renamed.is_some_and(|renamed| renamed == one.offset)
    }
}
