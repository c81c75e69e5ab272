//! Common subexpression elimination: an operation that repeats an earlier one, in the same region or an enclosing one, is
//! replaced by the earlier one's results.
//!
//! ```text
//! %a = fmul f64 %x, %y                →     %a = fmul f64 %x, %y
//! %r = if %c -> (f64) {                     %r = if %c -> (f64) {
//!   %b = fmul fast f64 %y, %x                 yield %a
//!   yield %b                                } else { … }
//! } else { … }
//! ```
//!
//! It merges operations without effects, also partial ones (the earlier one ran with the same operands), and
//! calls of functions that access no memory and return no pointers. Flags that only one of the two has are dropped.
//! Branches are merged if all their operations can be, and are equal, flags included. So several reverse sweeps of one
//! function, inlined one after the other, share its forward sweep.

use crate::substitution::Substitution;
use crate::with_function::with_function;
use ferrozyme_ir::{
    Effect, Flags, Function, FunctionId, MemoryEffect, Module, Op, Opcode, Payload, Range, Region,
    Type, Value,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Merges common subexpressions of a function; returns the number of operations removed.
pub fn merge_common_subexpressions(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |module, function| {
        let Some(body) = function.body else { return 0 };
        let mut merger = Merger {
            module,
            substitution: Substitution::new(),
            available: FxHashMap::default(),
            branches: FxHashMap::default(),
            merged: 0,
        };
        merger.visit(function, body);
        merger.merged
    })
}

/// Whether the two operands may change places without changing any bit of the result, the payload of a NaN aside.
pub fn is_commutative(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        Add | Mul
            | And
            | Or
            | Xor
            | Smin
            | Smax
            | Umin
            | Umax
            | Fadd
            | Fmul
            | Fminimum
            | Fmaximum
            | Hypot
    )
}

/// The key by which two operations are equal.
#[derive(PartialEq, Eq, Hash, Clone)]
pub(crate) struct Key {
    pub(crate) opcode: Opcode,
    pub(crate) operands: SmallVec<[Value; 4]>,
    payload: Payload,
    results: SmallVec<[Type; 2]>,
}

/// Maximum number of operations of a branch that is compared with others.
const MAX_IN_BRANCH: usize = 512;

/// An operation of a branch in canonical form: values defined inside are numbered in order.
#[derive(PartialEq, Eq, Hash, Clone)]
struct Line {
    opcode: Opcode,
    operands: SmallVec<[Operand; 4]>,
    payload: Payload,
    flags: Flags,
    results: SmallVec<[(Type, Option<Range>); 2]>,
    regions: usize,
}

#[derive(PartialEq, Eq, Hash, Clone, Copy)]
enum Operand {
    Outside(Value),
    Inside(u32),
}

struct Merger<'m> {
    module: &'m Module,
    substitution: Substitution,
    /// The operations in the current region or around it, so far.
    available: FxHashMap<Key, Op>,
    /// The branches that do, by all that they hold.
    branches: FxHashMap<Vec<Line>, Op>,
    merged: usize,
}

impl Merger<'_> {
    fn visit(&mut self, function: &mut Function, region: Region) {
        // Each key was absent when it was entered here, so leaving the region means removing it.
        let mut entered: Vec<Key> = Vec::new();
        let mut entered_branches: Vec<Vec<Line>> = Vec::new();
        function.retain_ops(region, |function, op| {
            self.substitution.apply(function, op);
            for inner in function.ops[op].regions.clone() {
                self.visit(function, inner);
            }
            if let Some(lines) = self.lines_of_branch(function, op) {
                if let Some(&earlier) = self.branches.get(&lines) {
                    self.merge(function, op, earlier);
                    return false;
                }
                self.branches.insert(lines.clone(), op);
                entered_branches.push(lines);
                return true;
            }
            if !self.is_mergeable(function, op) {
                return true;
            }
            let key = key_of(function, op);
            if let Some(&earlier) = self.available.get(&key) {
                self.merge(function, op, earlier);
                return false;
            }
            self.available.insert(key.clone(), op);
            entered.push(key);
            true
        });
        for key in entered {
            self.available.remove(&key);
        }
        for lines in entered_branches {
            self.branches.remove(&lines);
        }
    }

    fn is_mergeable(&self, function: &Function, op: Op) -> bool {
        let data = &function.ops[op];
        match data.opcode.effect() {
            Effect::Pure | Effect::Partial => true,
            Effect::Call => match data.payload {
                Payload::Callee(callee) => {
                    self.module.functions[callee].facts.memory == MemoryEffect::None
                        // A fresh allocation is a different one each time.
                        && !data.results.iter().any(|&result| function.ty(result).is_ptr())
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// The contents of a branch with results, if it only computes.
    fn lines_of_branch(&self, function: &Function, op: Op) -> Option<Vec<Line>> {
        let is_branch = |op: Op| matches!(function.ops[op].opcode, Opcode::If | Opcode::Switch);
        if !is_branch(op) || function.ops[op].results.is_empty() {
            return None;
        }
        let mut lines = Vec::new();
        let mut numbers: FxHashMap<Value, u32> = FxHashMap::default();
        let mut pending = vec![op];
        while let Some(op) = pending.pop() {
            let data = &function.ops[op];
            let computes =
                is_branch(op) || data.opcode == Opcode::Yield || self.is_mergeable(function, op);
            if !computes || lines.len() == MAX_IN_BRANCH {
                return None;
            }
            let operand = |&value: &Value| match numbers.get(&value) {
                Some(&number) => Operand::Inside(number),
                None => Operand::Outside(value),
            };
            lines.push(Line {
                opcode: data.opcode,
                operands: data.operands.iter().map(operand).collect(),
                payload: data.payload.clone(),
                flags: data.flags,
                results: data
                    .results
                    .iter()
                    .map(|&result| (function.ty(result), function.values[result].range))
                    .collect(),
                regions: data.regions.len(),
            });
            for &result in &data.results {
                let number = numbers.len() as u32;
                numbers.insert(result, number);
            }
            // Each region ends with its terminator, so that the order tells where it does.
            for &region in data.regions.iter().rev() {
                pending.extend(function.regions[region].ops.iter().rev());
            }
        }
        Some(lines)
    }

    fn merge(&mut self, function: &mut Function, op: Op, earlier: Op) {
        let flags = function.ops[op].flags;
        let kept = &mut function.ops[earlier];
        kept.flags = kept.flags.intersection(flags);
        let pairs: SmallVec<[(Value, Value); 2]> = function.ops[op]
            .results
            .iter()
            .copied()
            .zip(function.ops[earlier].results.iter().copied())
            .collect();
        for (old, new) in pairs {
            if function.values[new].name.is_none() {
                function.values[new].name = function.values[old].name.take();
            }
            self.substitution.replace(old, new);
        }
        self.merged += 1;
    }
}

/// The key of an operation.
pub(crate) fn key_of(function: &Function, op: Op) -> Key {
    let data = &function.ops[op];
    let mut operands = data.operands.clone();
    if is_commutative(data.opcode) {
        operands.sort_unstable();
    }
    Key {
        opcode: data.opcode,
        operands,
        payload: data.payload.clone(),
        results: data
            .results
            .iter()
            .map(|&result| function.ty(result))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::merge_common_subexpressions;
    use crate::testing::{check, check_unchanged};
    use expect_test::expect;

    #[test]
    fn a_value_of_an_outer_region_serves_inner_ones() {
        check(
            merge_common_subexpressions,
            "func @f(%x: f64, %y: f64, %c: i1) -> (f64) {
               %a = fmul f64 %x, %y
               %r = if %c -> (f64) {
                 %b = fmul f64 %y, %x
                 %d = fadd f64 %b, %b
                 yield %d
               } else {
                 yield %x
               }
               %e = fmul f64 %x, %y
               %s = fadd f64 %r, %e
               return %s
             }",
            expect![[r#"
                func @f(%x: f64, %y: f64, %c: i1) -> (f64) {
                  %a = fmul f64 %x, %y
                  %r = if %c -> (f64) {
                    %d = fadd f64 %a, %a
                    yield %d
                  } else {
                    yield %x
                  }
                  %s = fadd f64 %r, %a
                  return %s
                }
            "#]],
        );
    }

    #[test]
    fn only_common_flags_stay() {
        check(
            merge_common_subexpressions,
            "func @f(%x: i64, %y: i64) -> (i64, i64, i64) {
               %a = add nsw nuw i64 %x, %y
               %b = add nsw i64 %x, %y
               %c = mul i64 %x, %y
               %d = mul nsw i64 %x, %y
               %e = add i64 %c, %d
               return %a, %b, %e
             }",
            expect![[r#"
                func @f(%x: i64, %y: i64) -> (i64, i64, i64) {
                  %a = add nsw i64 %x, %y
                  %c = mul i64 %x, %y
                  %e = add i64 %c, %c
                  return %a, %a, %e
                }
            "#]],
        );
    }

    #[test]
    fn calls_without_memory_merge() {
        check(
            merge_common_subexpressions,
            "declare @pure(f64) -> (f64) memory(none)
             declare @reads(f64) -> (f64) memory(read)
             func @f(%x: f64) -> (f64, f64, f64, f64) {
               %a = call @pure(%x)
               %b = call @pure(%x)
               %c = call @reads(%x)
               %d = call @reads(%x)
               return %a, %b, %c, %d
             }",
            expect![[r#"
                declare @pure(f64) -> (f64) memory(none)
                declare @reads(f64) -> (f64) memory(read)

                func @f(%x: f64) -> (f64, f64, f64, f64) {
                  %a = call @pure(%x)
                  %c = call @reads(%x)
                  %d = call @reads(%x)
                  return %a, %a, %c, %d
                }
            "#]],
        );
    }

    #[test]
    fn branches_that_compute_the_same_merge() {
        check(
            merge_common_subexpressions,
            "func @f(%x: f64, %c: i1, %d: i1) -> (f64, f64, f64, f64) {
               %r = if %c -> (f64) {
                 %a = sin f64 %x
                 %i = if %d -> (f64) {
                   yield %a
                 } else {
                   yield 1.0
                 }
                 yield %i
               } else {
                 yield %x
               }
               %s = if %c -> (f64) {
                 %b = sin f64 %x
                 %j = if %d -> (f64) {
                   yield %b
                 } else {
                   yield 1.0
                 }
                 yield %j
               } else {
                 yield %x
               }
               %t = if %d -> (f64) {
                 %e = sin f64 %x
                 yield %e
               } else {
                 yield %x
               }
               %u = if %d -> (f64) {
                 %g = sin f64 %x
                 yield %x
               } else {
                 yield %x
               }
               return %r, %s, %t, %u
             }",
            expect![[r#"
                func @f(%x: f64, %c: i1, %d: i1) -> (f64, f64, f64, f64) {
                  %r = if %c -> (f64) {
                    %a = sin f64 %x
                    %i = if %d -> (f64) {
                      yield %a
                    } else {
                      yield 1.0
                    }
                    yield %i
                  } else {
                    yield %x
                  }
                  %t = if %d -> (f64) {
                    %e = sin f64 %x
                    yield %e
                  } else {
                    yield %x
                  }
                  %u = if %d -> (f64) {
                    %g = sin f64 %x
                    yield %x
                  } else {
                    yield %x
                  }
                  return %r, %r, %t, %u
                }
            "#]],
        );
    }

    #[test]
    fn branches_with_effects_or_other_flags_stay() {
        check_unchanged(
            merge_common_subexpressions,
            "func @f(%x: f64, %p: ptr, %c: i1) -> (f64, f64, f64, f64) {
               %r = if %c -> (f64) {
                 %a = load f64 %p align 8
                 yield %a
               } else {
                 yield %x
               }
               store f64 %x, %p align 8
               %s = if %c -> (f64) {
                 %b = load f64 %p align 8
                 yield %b
               } else {
                 yield %x
               }
               %t = if %c -> (f64) {
                 %d = fadd f64 %x, 1.0
                 yield %d
               } else {
                 yield %x
               }
               %u = if %c -> (f64) {
                 %e = fadd nnan f64 %x, 1.0
                 yield %e
               } else {
                 yield %x
               }
               return %r, %s, %t, %u
             }",
        );
    }

    #[test]
    fn regions_side_by_side_share_nothing() {
        check_unchanged(
            merge_common_subexpressions,
            "func @f(%x: f64, %p: ptr, %c: i1) -> (f64, f64, f64) {
               %r = if %c -> (f64) {
                 %a = fmul f64 %x, %x
                 yield %a
               } else {
                 %b = fmul f64 %x, %x
                 yield %b
               }
               %d = fmul f64 %x, %x
               %e = load f64 %p align 8
               %g = load f64 %p align 8
               %h = fsub f64 %e, %g
               %k = fsub f64 %g, %e
               return %r, %h, %k
             }",
        );
    }
}
