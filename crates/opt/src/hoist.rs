//! Loop-invariant code motion: moves operations whose operands do not change in a loop before the loop.
//!
//! ```text
//! for %i: i64 = 0 to %n step 1 {            %s = fmul f64 %a, %b
//!   %s = fmul f64 %a, %b             →      for %i: i64 = 0 to %n step 1 {
//!   …                                         …
//! }                                         }
//! ```
//!
//! An operation moves as far out as its operands allow, in one step. Whether it may run speculatively is decided in
//! [`speculation`]. Loads and operations that can be undefined move only out of loops that run at least once,
//! from places that control always reaches, and loads only if the loop does not clobber them.

use crate::alias::Aliases;
use crate::behaviour::{Behaviours, behaviour_of};
use crate::indices::Indices;
use crate::inequalities::Inequalities;
use crate::memory_order::MemoryOrder;
use crate::speculation::{Speculation, forget_ranges, speculation};
use crate::with_function::with_function;
use ferrozyme_ir::entity::SecondaryMap;
use ferrozyme_ir::{
    Effect, Form, Function, FunctionId, MemoryEffect, Module, Op, Opcode, Payload, Region, Value,
};

/// Of a loop with more writes than this, loads are not compared with each of them.
const MAX_WRITES: usize = 64;

/// Moves loop-invariant operations out of loops; returns the number of operations moved.
pub fn hoist_invariants(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |module, function| {
        let Some(body) = function.body else { return 0 };
        let (placed, moved) = Hoister::place(module, function, body);
        for &op in &moved {
            forget_ranges(function, op);
        }
        for (region, ops) in placed {
            function.regions[region].ops = ops;
        }
        moved.len()
    })
}

/// Whether a loop's body surely runs at least once when control comes to it.
pub fn surely_runs(indices: &Indices<'_>, op: Op) -> bool {
    match indices.function().ops[op].opcode {
        Opcode::Loop => true,
        Opcode::For => {
            let Some(counted) = indices.counted(op) else {
                return false;
            };
            let distance = match counted.upward {
                Some(true) => counted.to.sub(&counted.from),
                Some(false) => counted.from.sub(&counted.to),
                None => None,
            };
            distance.is_some_and(|distance| match distance.is_constant() {
                Some(distance) => distance >= 1,
                None => Inequalities::at(indices, op).prove_at_least(&distance, 1),
            })
        }
        _ => false,
    }
}

/// What kind of region is being walked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Body,
    Branch,
    Loop(Op),
}

/// An enclosing region of the current position.
struct Frame {
    kind: Kind,
    /// The operations that it will hold.
    ops: Vec<Op>,
    /// Nothing so far could keep control from coming to the operations that follow.
    straight: bool,
}

/// How an operation may move.
enum Mobility {
    Fixed,
    Free(Speculation),
    Load,
}

struct Hoister<'a, 'm> {
    module: &'m Module,
    aliases: &'a Aliases<'m>,
    behaviours: Behaviours,
    order: MemoryOrder,
    frames: Vec<Frame>,
    /// The frame in which a value is defined; constants count as the body's.
    depth: SecondaryMap<Value, u32>,
    /// Whether a loop runs at least once, for queried loops.
    runs: SecondaryMap<Op, Option<bool>>,
    /// The final operations of each region.
    placed: Vec<(Region, Vec<Op>)>,
    moved: Vec<Op>,
}

impl<'m> Hoister<'_, 'm> {
    /// Finds the new region of every operation, and which operations moved.
    fn place(
        module: &'m Module,
        function: &'m Function,
        body: Region,
    ) -> (Vec<(Region, Vec<Op>)>, Vec<Op>) {
        let aliases = Aliases::new(module, function);
        let mut hoister = Hoister {
            module,
            behaviours: Behaviours::of(module, function),
            order: MemoryOrder::of(&aliases),
            aliases: &aliases,
            frames: Vec::new(),
            depth: SecondaryMap::new(),
            runs: SecondaryMap::new(),
            placed: Vec::new(),
            moved: Vec::new(),
        };
        hoister.visit(function, body, Kind::Body);
        (hoister.placed, hoister.moved)
    }

    fn visit(&mut self, function: &Function, region: Region, kind: Kind) {
        let ops = &function.regions[region].ops;
        let own = self.frames.len();
        for &arg in &function.regions[region].args {
            self.depth[arg] = own as u32;
        }
        self.frames.push(Frame {
            kind,
            ops: Vec::with_capacity(ops.len()),
            straight: true,
        });
        for &op in ops {
            let inner_kind = match function.ops[op].opcode {
                Opcode::For | Opcode::Loop => Kind::Loop(op),
                _ => Kind::Branch,
            };
            for &inner in &function.ops[op].regions {
                self.visit(function, inner, inner_kind);
            }
            let target = self.target(function, op);
            if target < own {
                self.moved.push(op);
            }
            for &result in &function.ops[op].results {
                self.depth[result] = target as u32;
            }
            self.frames[target].ops.push(op);
            if self.behaviours.op(op).stops {
                self.frames[own].straight = false;
            }
        }
        let frame = self.frames.pop().expect("the frame pushed above");
        self.placed.push((region, frame.ops));
    }

    /// The frame that an operation of the innermost frame moves to: that of the outermost loop it can leave.
    fn target(&mut self, function: &Function, op: Op) -> usize {
        let own = self.frames.len() - 1;
        let mobility = self.mobility(function, op);
        if matches!(mobility, Mobility::Fixed) {
            return own;
        }
        let available = function.ops[op]
            .operands
            .iter()
            .map(|&operand| self.depth[operand] as usize)
            .max()
            .unwrap_or(0);
        let mut target = own;
        for inner in (available + 1..=own).rev() {
            let (kind, straight) = (self.frames[inner].kind, self.frames[inner].straight);
            let leaves = match (kind, &mobility) {
                (Kind::Body, _) | (_, Mobility::Fixed) => false,
                (Kind::Branch, Mobility::Free(freedom)) => *freedom == Speculation::Anywhere,
                (Kind::Branch, Mobility::Load) => false,
                (Kind::Loop(_), Mobility::Free(freedom))
                    if *freedom >= Speculation::BeforeLoops =>
                {
                    true
                }
                (Kind::Loop(around), Mobility::Free(_)) => straight && self.surely_runs(around),
                (Kind::Loop(around), Mobility::Load) => {
                    straight && self.surely_runs(around) && !self.may_change(op, around)
                }
            };
            if !leaves {
                break;
            }
            if matches!(kind, Kind::Loop(_)) {
                target = inner - 1;
            }
        }
        target
    }

    fn surely_runs(&mut self, op: Op) -> bool {
        *self.runs[op].get_or_insert_with(|| surely_runs(self.aliases.indices(), op))
    }

    /// Whether a loop may clobber a load inside it.
    fn may_change(&self, load: Op, around: Op) -> bool {
        let writes = self.order.writes_within(around);
        if writes.is_empty() {
            return false;
        }
        let read = self.aliases.reads(load);
        let access = &read.accesses[0];
        if self.aliases.is_never_written(access.root) {
            return false;
        }
        writes.len() > MAX_WRITES
            || writes.iter().any(|(write, footprint)| {
                (footprint.elsewhere && self.aliases.is_reachable_from_elsewhere(access.root))
                    || footprint.accesses.iter().any(|written| {
                        self.aliases
                            .may_meet_within((load, access), (*write, written), around)
                    })
            })
    }

    fn mobility(&self, function: &Function, op: Op) -> Mobility {
        let data = &function.ops[op];
        if matches!(data.opcode.form(), Form::Structured | Form::Terminator) {
            return Mobility::Fixed;
        }
        match data.opcode.effect() {
            Effect::Pure | Effect::Partial => Mobility::Free(speculation(function, op)),
            Effect::Read => Mobility::Load,
            Effect::Call => match data.payload {
                // A function of its arguments alone; what its derivative does is not known.
                Payload::Callee(callee)
                    if self.module.functions[callee].facts.memory == MemoryEffect::None
                        && !behaviour_of(self.module, function, op).stops
                        && !data
                            .results
                            .iter()
                            .any(|&result| function.ty(result).is_ptr()) =>
                {
                    Mobility::Free(Speculation::WhereItRuns)
                }
                _ => Mobility::Fixed,
            },
            _ => Mobility::Fixed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::hoist_invariants;
    use crate::testing::{check, check_unchanged};
    use expect_test::expect;

    #[test]
    fn invariants_move_as_far_as_they_can() {
        check(
            hoist_invariants,
            "func @f(%p: ptr, %a: f64, %b: f64, %n: i64) {
               for %i: i64 = 0 to %n step 1 {
                 for %j: i64 = 0 to %n step 1 {
                   %s = fmul f64 %a, %b
                   %row = mul i64 %i, %n
                   %at = add i64 %row, %j
                   %q = offset %p, %at * 8
                   store f64 %s, %q align 8
                   yield
                 }
                 yield
               }
               return
             }",
            expect![[r#"
                func @f(%p: ptr, %a: f64, %b: f64, %n: i64) {
                  %s = fmul f64 %a, %b
                  for %i: i64 = 0 to %n step 1 {
                    %row = mul i64 %i, %n
                    for %j: i64 = 0 to %n step 1 {
                      %at = add i64 %row, %j
                      %q = offset %p, %at * 8
                      store f64 %s, %q align 8
                      yield
                    }
                    yield
                  }
                  return
                }
            "#]],
        );
    }

    #[test]
    fn cheap_linear_operations_leave_branches_too() {
        check(
            hoist_invariants,
            "func @f(%p: ptr, %a: f64, %n: i64, %c: i1) {
               for %i: i64 = 0 to %n step 1 {
                 if %c {
                   %k = add i64 %n, 1
                   %q = offset %p, %k * 8
                   %e = exp f64 %a
                   store f64 %e, %q align 8
                   yield
                 }
                 yield
               }
               return
             }",
            expect![[r#"
                func @f(%p: ptr, %a: f64, %n: i64, %c: i1) {
                  %k = add i64 %n, 1
                  %q = offset %p, %k * 8
                  for %i: i64 = 0 to %n step 1 {
                    if %c {
                      %e = exp f64 %a
                      store f64 %e, %q align 8
                      yield
                    }
                    yield
                  }
                  return
                }
            "#]],
        );
    }

    #[test]
    fn loads_leave_loops_that_run_and_write_nothing() {
        check(
            hoist_invariants,
            "func @f(%p: ptr, %n: i64, %m: i64) -> (f64, i64) {
               %s = for %i: i64 = 0 to 10 step 1 with (%a: f64 = 0.0) {
                 %x = load f64 %p align 8
                 %a1 = fadd f64 %a, %x
                 yield %a1
               }
               %t = loop with (%b: i64 = 0) {
                 %d = sdiv i64 %n, %m
                 %b1 = add i64 %b, %d
                 %c = icmp slt i64 %b1, 100
                 again %c, %b1
               }
               return %s, %t
             }
             func @g(%p: ptr noalias, %q: ptr noalias, %n: i64 range 1..=1000) {
               for %i: i64 = 0 to %n step 1 {
                 %x = load f64 %p align 8
                 %r = offset %q, %i * 8
                 store f64 %x, %r align 8
                 yield
               }
               return
             }",
            expect![[r#"
                func @f(%p: ptr, %n: i64, %m: i64) -> (f64, i64) {
                  %x = load f64 %p align 8
                  %s = for %i: i64 = 0 to 10 step 1 with (%a: f64 = 0.0) {
                    %a1 = fadd f64 %a, %x
                    yield %a1
                  }
                  %d = sdiv i64 %n, %m
                  %t = loop with (%b: i64 = 0) {
                    %b1 = add i64 %b, %d
                    %c = icmp slt i64 %b1, 100
                    again %c, %b1
                  }
                  return %s, %t
                }

                func @g(%p: ptr noalias, %q: ptr noalias, %n: i64 range 1..=1000) {
                  %x = load f64 %p align 8
                  for %i: i64 = 0 to %n step 1 {
                    %r = offset %q, %i * 8
                    store f64 %x, %r align 8
                    yield
                  }
                  return
                }
            "#]],
        );
    }

    #[test]
    fn what_may_not_run_stays() {
        check_unchanged(
            hoist_invariants,
            r#"func @f(%p: ptr, %q: ptr, %n: i64, %m: i64, %x: f64) -> (f64, i64, f64) {
               %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                 %y = load f64 %p align 8
                 %r = sqrt f64 %x
                 %a1 = fadd f64 %a, %y
                 %a2 = fadd f64 %a1, %r
                 yield %a2
               }
               %t = for %j: i64 = 0 to 10 step 1 with (%b: i64 = 0) {
                 %z = icmp eq i64 %b, 5
                 if %z { trap "guards the division" }
                 %d = sdiv i64 %n, %m
                 %b1 = add i64 %b, %d
                 yield %b1
               }
               %u = for %k: i64 = 0 to 10 step 1 with (%g: f64 = 0.0) {
                 %h = load f64 %p align 8
                 store f64 %g, %q align 8
                 %g1 = fadd f64 %g, %h
                 yield %g1
               }
               return %s, %t, %u
             }"#,
        );
    }
}
