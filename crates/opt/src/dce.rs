//! Dead-code elimination: removes operations without effect whose results are unused, memory that is only allocated and
//! freed, unused results of `if` and `switch`, and carried values of loops that serve only to compute themselves.
//!
//! ```text
//! %s, %d = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0, %b: f64 = 1.0) {     →     %s = for … with (%a: f64 = 0.0) {
//!   %a1 = fadd f64 %a, 2.0                                                                  %a1 = fadd f64 %a, 2.0
//!   %b1 = fmul f64 %b, %b                                                                   yield %a1
//!   yield %a1, %b1                                                                        }
//! }
//! return %s                                                                             return %s
//! ```
//!
//! It marks live operations, starting from effects, and sweeps the rest; so dead cycles through loops are removed as well. A general
//! `loop` stays even if it does nothing, because it may never end. Unused loads and operations that may be
//! undefined are removed: removing an error is allowed, adding one is not. Stores to memory that does not escape
//! ([`private_memory`](crate::private_memory)) are live only if a live operation reads it.

use crate::behaviour::behaviour_of;
use crate::carried::{first_carried, remove_results, yielded};
use crate::private_memory::PrivateMemory;
use crate::with_function::with_function;
use ferrozyme_ir::entity::EntitySet;
use ferrozyme_ir::{
    Function, FunctionId, Module, Op, OpView, Opcode, Region, Structure, Value, ValueDef, all_ops,
};
use rustc_hash::FxHashMap;

/// Removes dead code from a function; returns the number of operations and results removed.
pub fn remove_dead_code(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |module, function| {
        let Some(body) = function.body else { return 0 };
        let live = Marker::mark(module, function);
        let mut removed = 0;
        sweep(function, body, &live, &mut removed);
        removed
    })
}

struct Live {
    ops: EntitySet<Op>,
    values: EntitySet<Value>,
}

/// The marking: `pending` holds values found to be needed, whose origin is still to be looked at.
struct Marker<'f> {
    function: &'f Function,
    structure: Structure,
    live: Live,
    pending: Vec<Value>,
    /// For each `alloc`, what releases it: needed only if the memory is.
    releases: FxHashMap<Op, Vec<Op>>,
    private: PrivateMemory,
    /// Operations that write memory which something needed reads.
    writers: Vec<Op>,
}

impl<'f> Marker<'f> {
    fn mark(module: &Module, function: &'f Function) -> Live {
        let mut marker = Marker {
            function,
            structure: Structure::of(function),
            live: Live {
                ops: EntitySet::new(),
                values: EntitySet::new(),
            },
            pending: Vec::new(),
            releases: FxHashMap::default(),
            private: PrivateMemory::of(module, function),
            writers: Vec::new(),
        };
        let mut roots = Vec::new();
        for op in all_ops(function) {
            if let OpView::Free { address, .. } = function.view(op)
                && let Some((alloc, _)) = function.def_op(address)
                && function.ops[alloc].opcode == Opcode::Alloc
            {
                marker.releases.entry(alloc).or_default().push(op);
                continue;
            }
            if marker.private.is_write(op) {
                continue;
            }
            if function.ops[op].opcode == Opcode::Return
                || !behaviour_of(module, function, op).is_removable()
            {
                roots.push(op);
            }
        }
        for op in roots {
            marker.need_op(op);
        }
        loop {
            if let Some(value) = marker.pending.pop() {
                marker.need_origin(value);
            } else if let Some(writer) = marker.writers.pop() {
                marker.need_op(writer);
            } else {
                break;
            }
        }
        marker.live
    }

    fn need_value(&mut self, value: Value) {
        if self.live.values.insert(value) {
            self.pending.push(value);
        }
    }

    /// Marks an operation live, with its operands and the conditions under which it runs.
    fn need_op(&mut self, op: Op) {
        let function = self.function;
        let mut next = Some(op);
        while let Some(op) = next.take() {
            if !self.live.ops.insert(op) {
                return;
            }
            let data = &function.ops[op];
            self.writers.extend(self.private.take_writers_of_read(op));
            match data.opcode {
                // The yielded values are needed only where the results are.
                Opcode::Yield => {}
                Opcode::Again => self.need_value(data.condition()),
                Opcode::For => data
                    .bounds()
                    .into_iter()
                    .for_each(|bound| self.need_value(bound)),
                Opcode::Loop => {}
                _ => {
                    for &operand in &data.operands {
                        self.need_value(operand);
                    }
                }
            }
            if let Some(frees) = self.releases.remove(&op) {
                // Frees come after their `alloc`, so this recursion is one level deep.
                for free in frees {
                    self.need_op(free);
                }
            }
            for &region in &function.ops[op].regions {
                let terminator = function.terminator(region);
                if function.ops[terminator].opcode != Opcode::Trap
                    && self.live.ops.insert(terminator)
                    && function.ops[terminator].opcode == Opcode::Again
                {
                    self.need_value(function.ops[terminator].condition());
                }
            }
            next = self
                .structure
                .region_of(op)
                .and_then(|region| self.structure.op_of(region));
        }
    }

    /// Marks a value live, with its definition.
    fn need_origin(&mut self, value: Value) {
        let function = self.function;
        match function.values[value].def {
            ValueDef::Constant(_) => {}
            ValueDef::Result { op, index } => {
                self.need_op(op);
                let data = &function.ops[op];
                let index = index as usize;
                match data.opcode {
                    Opcode::If | Opcode::Switch => {
                        for &region in &data.regions {
                            self.need_yielded(region, index);
                        }
                    }
                    Opcode::For | Opcode::Loop => self.need_carried(op, index),
                    _ => {}
                }
            }
            ValueDef::Argument { region, index } => {
                let Some(op) = self.structure.op_of(region) else {
                    return;
                };
                self.need_op(op);
                let first = first_carried(function.ops[op].opcode);
                if let Some(carried) = (index as usize).checked_sub(first) {
                    self.need_carried(op, carried);
                }
            }
        }
    }

    fn need_carried(&mut self, op: Op, index: usize) {
        let data = &self.function.ops[op];
        let body = data.regions[0];
        self.need_value(data.results[index]);
        self.need_value(self.function.carried(op)[index]);
        self.need_value(data.initial()[index]);
        self.need_yielded(body, index);
    }

    fn need_yielded(&mut self, region: Region, index: usize) {
        if let Some(values) = yielded(self.function, region) {
            self.need_value(values[index]);
        }
    }
}

fn sweep(function: &mut Function, region: Region, live: &Live, removed: &mut usize) {
    function.retain_ops(region, |function, op| {
        if !live.ops.contains(op) {
            *removed += 1;
            return false;
        }
        if function.ops[op].regions.is_empty() {
            return true;
        }
        let keep: Vec<bool> = function.ops[op]
            .results
            .iter()
            .map(|&result| live.values.contains(result))
            .collect();
        let dead = keep.iter().filter(|kept| !**kept).count();
        if dead > 0 {
            *removed += dead;
            remove_results(function, op, &keep);
        }
        for inner in function.ops[op].regions.clone() {
            sweep(function, inner, live, removed);
        }
        true
    });
}

#[cfg(test)]
mod tests {
    use super::remove_dead_code;
    use crate::testing::{check, check_unchanged};
    use expect_test::expect;

    #[test]
    fn unused_operations_go() {
        check(
            remove_dead_code,
            "func @f(%p: ptr, %x: f64) -> (f64) {
               %a = fadd f64 %x, 1.0
               %b = fmul f64 %a, 2.0
               %c = load f64 %p align 8
               %d = sdiv i64 1, 0
               %r = fadd f64 %x, 3.0
               return %r
             }",
            expect![[r#"
                func @f(%p: ptr, %x: f64) -> (f64) {
                  %r = fadd f64 %x, 3.0
                  return %r
                }
            "#]],
        );
    }

    #[test]
    fn carried_values_that_only_compute_themselves_go() {
        check(
            remove_dead_code,
            "func @f(%n: i64) -> (f64) {
               %s, %d = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0, %b: f64 = 1.0) {
                 %a1 = fadd f64 %a, 2.0
                 %b1 = fmul f64 %b, %b
                 yield %a1, %b1
               }
               return %s
             }",
            expect![[r#"
                func @f(%n: i64) -> (f64) {
                  %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                    %a1 = fadd f64 %a, 2.0
                    yield %a1
                  }
                  return %s
                }
            "#]],
        );
    }

    #[test]
    fn loops_and_branches_without_effect_go() {
        check(
            remove_dead_code,
            "declare @pure(f64) -> (f64) memory(read) willreturn
             func @f(%n: i64, %c: i1) {
               for %i: i64 = 0 to %n step 1 {
                 %x = call @pure(1.0)
                 yield
               }
               %r = if %c -> (f64) { yield 1.0 } else { yield 2.0 }
               return
             }",
            expect![[r#"
                declare @pure(f64) -> (f64) memory(read) willreturn

                func @f(%n: i64, %c: i1) {
                  return
                }
            "#]],
        );
    }

    #[test]
    fn memory_that_is_only_freed_goes() {
        check(
            remove_dead_code,
            "func @f(%c: i1) {
               %p = alloc 8 align 8
               %q = alloc 8 align 8
               store f64 1.0, %q align 8
               if %c { free %p yield } else { free %p yield }
               free %q
               return
             }",
            expect![[r#"
                func @f(%c: i1) {
                  return
                }
            "#]],
        );
    }

    #[test]
    fn unused_results_go_and_traps_stay() {
        check(
            remove_dead_code,
            r#"func @f(%c: i1, %p: ptr) -> (f64) {
               %a, %b = if %c -> (f64, f64) {
                 store f64 1.0, %p align 8
                 %u = fadd f64 1.0, 2.0
                 yield %u, 4.0
               } else {
                 trap "no"
               }
               return %b
             }"#,
            expect![[r#"
                func @f(%c: i1, %p: ptr) -> (f64) {
                  %b = if %c -> (f64) {
                    store f64 1.0, %p align 8
                    yield 4.0
                  } else {
                    trap "no"
                  }
                  return %b
                }
            "#]],
        );
    }

    #[test]
    fn effects_and_endless_loops_stay() {
        check_unchanged(
            remove_dead_code,
            r#"declare @unknown(f64) -> (f64) memory(none)
             func @f(%p: ptr, %c: i1) {
               %x = call @unknown(1.0)
               %old = atomic_add f64 %p, 1.0 align 8
               loop { again %c }
               if %c { trap "no" }
               return
             }"#,
        );
    }
}
