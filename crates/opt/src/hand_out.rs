//! Partial redundancy elimination between branches: a branch yields a value that a later branch on the same condition would compute again.
//!
//! ```text
//! %r = if %c -> (f64) {               %r, %s = if %c -> (f64, f64) {
//!   %a = sin f64 %x                     %a = sin f64 %x
//!   yield %a                            yield %a, %a
//! } else { yield %x }          →      } else { yield %x, 0.0 }
//! if %c {                             if %c {
//!   %b = sin f64 %x                     store f64 %s, %p align 8
//!   store f64 %b, %p align 8            yield
//!   yield                             }
//! }
//! ```
//!
//! So the forward sweep of a derivative serves its reverse sweeps, whose rules compute the sine that belongs to a cosine. Only values that cost at least as much as a
//! division are handed out. Before differentiation this would do harm: the result of a branch cannot be recomputed, and may have to be saved.

use crate::carried::{add_yielded, yielded};
use crate::cost::operation_cost;
use crate::cse::{Key, is_commutative, key_of};
use crate::substitution::Substitution;
use crate::with_function::with_function;
use ferrozyme_ir::{Effect, Function, FunctionId, Module, Op, Opcode, Region, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Makes branches yield values that later branches need; returns the number of operations removed.
pub fn hand_out_values(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |_, function| {
        let Some(body) = function.body else { return 0 };
        let mut finder = Finder {
            substitution: Substitution::new(),
            choices: FxHashMap::default(),
            taken: Vec::new(),
            removed: 0,
        };
        finder.visit(function, body);
        finder.removed
    })
}

struct Finder {
    substitution: Substitution,
    /// The branches in the current region or around it, so far, by their condition, the latest last.
    choices: FxHashMap<Value, Vec<Choice>>,
    /// Around the current region, innermost last: which conditions were met, with the number of the region that runs.
    taken: Vec<(Value, usize)>,
    removed: usize,
}

/// A branch, with the expensive operations of each region.
struct Choice {
    op: Op,
    computed: SmallVec<[FxHashMap<Key, Op>; 2]>,
}

/// How many conditions around an operation, and how many branches on each, are looked at.
const MAX_CHOICES: usize = 4;

/// From what cost on a value is handed out of a branch rather than computed again.
const DEAR: u64 = 5;

impl Finder {
    fn visit(&mut self, function: &mut Function, region: Region) {
        let mut entered: Vec<Value> = Vec::new();
        function.retain_ops(region, |function, op| {
            self.substitution.apply(function, op);
            let data = &function.ops[op];
            let condition = (data.opcode == Opcode::If).then(|| data.condition());
            for (number, inner) in data.regions.clone().into_iter().enumerate() {
                self.taken.extend(condition.map(|value| (value, number)));
                self.visit(function, inner);
                if condition.is_some() {
                    self.taken.pop();
                }
            }
            if let Some(condition) = condition
                && let Some(choice) = choice(function, op)
            {
                self.choices.entry(condition).or_default().push(choice);
                entered.push(condition);
            }
            !(is_dear(function, op) && self.take_from_branch(function, op))
        });
        for condition in entered {
            if let Some(choices) = self.choices.get_mut(&condition) {
                choices.pop();
            }
        }
    }

    /// Takes the result of an operation from an earlier branch on a condition around it, if that has computed it.
    fn take_from_branch(&mut self, function: &mut Function, op: Op) -> bool {
        for &(condition, number) in self.taken.iter().rev().take(MAX_CHOICES) {
            let choices = self.choices.get(&condition);
            for choice in choices.into_iter().flatten().rev().take(MAX_CHOICES) {
                let key = key_inside(function, op, choice.op, number);
                let Some(&earlier) = choice.computed[number].get(&key) else {
                    continue;
                };
                let flags = function.ops[op].flags;
                let kept = &mut function.ops[earlier];
                kept.flags = kept.flags.intersection(flags);
                let out = hand_out(function, choice.op, number, function.result(earlier));
                self.substitution.replace(function.result(op), out);
                self.removed += 1;
                return true;
            }
        }
        false
    }
}

/// The expensive operations of a branch's regions, if any.
fn choice(function: &Function, op: Op) -> Option<Choice> {
    let computed: SmallVec<[FxHashMap<Key, Op>; 2]> = function.ops[op]
        .regions
        .iter()
        .map(|&region| {
            let ops = function.regions[region].ops.iter();
            ops.filter(|&&op| is_dear(function, op))
                .map(|&op| (key_of(function, op), op))
                .collect()
        })
        .collect();
    let any = computed.iter().any(|ops| !ops.is_empty());
    any.then_some(Choice { op, computed })
}

/// The key that an operation would have in a region of a branch, where the branch's results are what the region yields.
fn key_inside(function: &Function, op: Op, branch: Op, number: usize) -> Key {
    let region = function.ops[branch].regions[number];
    let mut key = key_of(function, op);
    for operand in &mut key.operands {
        if let Some((made, index)) = function.def_op(*operand)
            && made == branch
            && let Some(values) = yielded(function, region)
        {
            *operand = values[index];
        }
    }
    if is_commutative(key.opcode) {
        key.operands.sort_unstable();
    }
    key
}

/// Whether an operation only computes a float, and at some cost.
fn is_dear(function: &Function, op: Op) -> bool {
    let data = &function.ops[op];
    data.opcode.effect() == Effect::Pure
        && data.results.len() == 1
        && function.ty(data.results[0]).scalar().is_float()
        && operation_cost(data.opcode) >= DEAR
}

/// The result of a branch that is this value where the region of this number runs.
fn hand_out(function: &mut Function, branch: Op, number: usize, value: Value) -> Value {
    let regions = function.ops[branch].regions.clone();
    let there = yielded(function, regions[number]);
    if let Some(index) = there.and_then(|values| values.iter().position(|&other| other == value)) {
        return function.ops[branch].results[index];
    }
    let ty = function.ty(value);
    let zero = function.zero(ty);
    for (other, region) in regions.into_iter().enumerate() {
        let yielded = if other == number { value } else { zero };
        add_yielded(function, region, yielded);
    }
    function.add_result(branch, ty)
}

#[cfg(test)]
mod tests {
    use super::hand_out_values;
    use crate::testing::check;
    use expect_test::expect;

    #[test]
    fn what_a_branch_on_the_same_condition_computed_is_handed_out() {
        check(
            hand_out_values,
            "func @f(%x: f64, %p: ptr, %c: i1) -> (f64) {
               %r, %root = if %c -> (f64, f64) {
                 %a = sqrt f64 %x
                 %b = sin f64 %a
                 %d = fmul f64 %b, %b
                 yield %d, %a
               } else {
                 %e = cos f64 %x
                 yield %e, %x
               }
               if %c {
                 %g = sin f64 %root
                 %h = fmul f64 %g, %g
                 store f64 %h, %p align 8
                 %i = cos f64 %x
                 store f64 %i, %p align 8
                 yield
               } else {
                 %j = sin f64 %root
                 store f64 %j, %p align 8
                 %k = cos f64 %root
                 store f64 %k, %p align 8
                 yield
               }
               return %r
             }",
            expect![[r#"
                func @f(%x: f64, %p: ptr, %c: i1) -> (f64) {
                  %r, %root, %0 = if %c -> (f64, f64, f64) {
                    %a = sqrt f64 %x
                    %b = sin f64 %a
                    %d = fmul f64 %b, %b
                    yield %d, %a, %b
                  } else {
                    %e = cos f64 %x
                    yield %e, %x, 0.0
                  }
                  if %c {
                    %h = fmul f64 %0, %0
                    store f64 %h, %p align 8
                    %i = cos f64 %x
                    store f64 %i, %p align 8
                    yield
                  } else {
                    %j = sin f64 %root
                    store f64 %j, %p align 8
                    store f64 %r, %p align 8
                    yield
                  }
                  return %r
                }
            "#]],
        );
    }
}
