//! Computes each thing once: an operation that repeats an earlier one, in the same region or one around it, is
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
//! What is merged: operations without effects, also partial ones (the earlier one ran with the same operands), and
//! calls of functions that touch no memory and return no pointers. Flags that only one of the two has are dropped.

use crate::detach::with_function;
use crate::substitution::Substitution;
use ferrozyme_ir::{
    Effect, Function, FunctionId, MemoryEffect, Module, Op, Opcode, Payload, Region, Type, Value,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Merges common subexpressions of a function; gives the number of operations removed.
pub fn merge_common_subexpressions(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |module, function| {
        let Some(body) = function.body else { return 0 };
        let mut merger = Merger {
            module,
            substitution: Substitution::new(),
            available: FxHashMap::default(),
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

/// What makes two operations the same.
#[derive(PartialEq, Eq, Hash, Clone)]
struct Key {
    opcode: Opcode,
    operands: SmallVec<[Value; 4]>,
    payload: Payload,
    results: SmallVec<[Type; 2]>,
}

struct Merger<'m> {
    module: &'m Module,
    substitution: Substitution,
    /// The operations that stand in the current region or around it, so far.
    available: FxHashMap<Key, Op>,
    merged: usize,
}

impl Merger<'_> {
    fn visit(&mut self, function: &mut Function, region: Region) {
        let mut ops = std::mem::take(&mut function.regions[region].ops);
        // Each key was absent when it was entered here, so leaving the region means removing it.
        let mut entered: Vec<Key> = Vec::new();
        ops.retain(|&op| {
            self.substitution.apply(function, op);
            for inner in function.ops[op].regions.clone() {
                self.visit(function, inner);
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
        function.regions[region].ops = ops;
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

fn key_of(function: &Function, op: Op) -> Key {
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
