//! Inlining: replaces calls by the bodies of the called functions.
//!
//! Bodies are structured and return only at their end, so inlining is splicing. A body that ends in a trap ends
//! the region around the call. Facts about parameters (`noalias`, ranges) are lost, because the caller has no value
//! to attach them to.
//!
//! Not inlined: functions without a body, marked `noinline` or `inactive`, with a derivative rule of their own, larger than
//! the policy says, those that call themselves, directly or through others, and those that are compiled for a higher level of the
//! processor than the caller.

use crate::substitution::Substitution;
use crate::with_function::with_function;
use ferrozyme_ir::{
    Cursor, Function, FunctionId, Location, LocationData, Module, Op, OpData, OpView, Opcode,
    Payload, Region, Value, ValueData, ValueDef, all_ops,
};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Which calls are inlined.
#[derive(Clone, Debug)]
pub struct InlinePolicy {
    /// How many operations a function may have that is called from several places.
    pub limit: usize,
    /// How many operations may be added to one function in all.
    pub growth: usize,
    /// Which functions are considered at all.
    pub which: Inlining,
}

/// Which functions the inliner considers. No choice may change what a program, or its derivative, computes: tests try them all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Inlining {
    /// Those that are not marked `noinline`.
    #[default]
    Usual,
    /// All inlinable functions, marked or not, of any size.
    All,
    /// None.
    None,
    /// About half of those that are not marked `noinline`, by their names and a seed.
    Half(u64),
}

impl Inlining {
    /// Whether a function of this name is considered, as far as its name is concerned.
    pub fn considers(self, name: &str) -> bool {
        match self {
            Inlining::Usual | Inlining::All => true,
            Inlining::None => false,
            Inlining::Half(seed) => {
                // FNV-1a: the choice must be the same on every machine.
                let start = 0xcbf2_9ce4_8422_2325 ^ seed;
                let hash = name.bytes().fold(start, |hash, byte| {
                    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
                });
                (hash ^ hash >> 32) & 1 == 0
            }
        }
    }
}

impl Default for InlinePolicy {
    /// Generous: an inlined function is differentiated together with its caller, and saves less.
    fn default() -> InlinePolicy {
        InlinePolicy {
            limit: 1_000,
            growth: 20_000,
            which: Inlining::Usual,
        }
    }
}

impl From<Inlining> for InlinePolicy {
    fn from(which: Inlining) -> InlinePolicy {
        let usual = InlinePolicy::default();
        match which {
            Inlining::All => InlinePolicy {
                limit: 10 * usual.limit,
                growth: 5 * usual.growth,
                which,
            },
            _ => InlinePolicy { which, ..usual },
        }
    }
}

/// Inlines calls in a function, also those that come in with inlined bodies; returns the number of calls replaced.
pub fn inline_calls(module: &mut Module, id: FunctionId, policy: &InlinePolicy) -> usize {
    let candidates = candidates(module, id, policy);
    if candidates.is_empty() {
        return 0;
    }
    with_function(module, id, |module, function| {
        let Some(body) = function.body else { return 0 };
        let mut inliner = Inliner {
            module,
            candidates,
            growth: policy.growth,
            substitution: Substitution::new(),
            stacks: Vec::new(),
            inlined: 0,
        };
        inliner.visit(function, body, false);
        Cursor::at_start(body).insert_all(function, inliner.stacks);
        inliner.inlined
    })
}

/// The functions that may be inlined into one, with the number of their operations.
fn candidates(
    module: &Module,
    id: FunctionId,
    policy: &InlinePolicy,
) -> FxHashMap<FunctionId, usize> {
    let mut sizes = FxHashMap::default();
    let mut callees: FxHashMap<FunctionId, Vec<FunctionId>> = FxHashMap::default();
    let mut calls: FxHashMap<FunctionId, usize> = FxHashMap::default();
    let mut pending = vec![id];
    while let Some(next) = pending.pop() {
        if callees.contains_key(&next) {
            continue;
        }
        let function = &module.functions[next];
        let ops = all_ops(function);
        let mut called: FxHashSet<FunctionId> = FxHashSet::default();
        for callee in ops.iter().filter_map(|&op| callee_of(function, op)) {
            called.insert(callee);
            *calls.entry(callee).or_default() += 1;
        }
        pending.extend(called.iter().copied());
        callees.insert(next, called.into_iter().collect());
        if function.body.is_some()
            && (!function.facts.noinline || policy.which == Inlining::All)
            && policy.which.considers(&function.name)
            && !function.facts.inactive
            && function.facts.level <= module.functions[id].facts.level
            && !module.rules.contains_key(&next)
        {
            sizes.insert(next, ops.len());
        }
    }
    let recursive = recursive_functions(id, &callees);
    sizes.retain(|candidate, size| {
        let fits = *size <= policy.limit || calls.get(candidate) == Some(&1);
        fits && *candidate != id && !recursive.contains(candidate)
    });
    sizes
}

fn callee_of(function: &Function, op: Op) -> Option<FunctionId> {
    match (function.ops[op].opcode, &function.ops[op].payload) {
        (Opcode::Call, &Payload::Callee(callee)) => Some(callee),
        _ => None,
    }
}

/// The functions that reach themselves: those in a cycle of the call graph (Tarjan's algorithm with a stack of its own).
fn recursive_functions(
    start: FunctionId,
    callees: &FxHashMap<FunctionId, Vec<FunctionId>>,
) -> FxHashSet<FunctionId> {
    let mut recursive = FxHashSet::default();
    let mut number: FxHashMap<FunctionId, usize> = FxHashMap::default();
    let mut lowest: FxHashMap<FunctionId, usize> = FxHashMap::default();
    let mut component: Vec<FunctionId> = Vec::new();
    let mut open: FxHashSet<FunctionId> = FxHashSet::default();
    let mut path: Vec<(FunctionId, usize)> = vec![(start, 0)];
    while let Some((id, next)) = path.pop() {
        if next == 0 {
            let count = number.len();
            number.insert(id, count);
            lowest.insert(id, count);
            component.push(id);
            open.insert(id);
        }
        let called = &callees[&id];
        if let Some(&callee) = called.get(next) {
            path.push((id, next + 1));
            if callee == id {
                recursive.insert(id);
            } else if !number.contains_key(&callee) {
                path.push((callee, 0));
            } else if open.contains(&callee) {
                let low = lowest[&id].min(number[&callee]);
                lowest.insert(id, low);
            }
            continue;
        }
        if let Some(&(parent, _)) = path.last() {
            let low = lowest[&parent].min(lowest[&id]);
            lowest.insert(parent, low);
        }
        if lowest[&id] == number[&id] {
            let at = component
                .iter()
                .rposition(|&member| member == id)
                .expect("an open function is in its component");
            let members = component.split_off(at);
            if members.len() > 1 {
                recursive.extend(members.iter().copied());
            }
            for member in members {
                open.remove(&member);
            }
        }
    }
    recursive
}

struct Inliner<'m> {
    module: &'m mut Module,
    candidates: FxHashMap<FunctionId, usize>,
    growth: usize,
    substitution: Substitution,
    /// Stack memory of functions that were inlined into loops: it moves to the start of the body.
    stacks: Vec<Op>,
    inlined: usize,
}

impl Inliner<'_> {
    fn visit(&mut self, function: &mut Function, region: Region, in_loop: bool) {
        let mut pending = function.take_ops(region);
        pending.reverse();
        while let Some(op) = pending.pop() {
            self.substitution.apply(function, op);
            if let Some(callee) = callee_of(function, op)
                && let Some(&size) = self.candidates.get(&callee)
                && size <= self.growth
                && !(in_loop && self.has_sized_stack(callee))
            {
                self.growth -= size;
                self.inlined += 1;
                let mut ops = self.copy_body(function, op, callee, in_loop);
                let terminator = ops.pop().expect("a body ends in a terminator");
                if function.ops[terminator].opcode == Opcode::Trap {
                    // This call does not return.
                    pending.clear();
                    pending.push(terminator);
                } else {
                    let results = function.ops[op].results.clone();
                    let values = function.ops[terminator].operands.clone();
                    for (&result, &value) in results.iter().zip(&values) {
                        self.substitution.replace(result, value);
                    }
                }
                pending.extend(ops.into_iter().rev());
                continue;
            }
            let loops = matches!(function.ops[op].opcode, Opcode::For | Opcode::Loop);
            for inner in function.ops[op].regions.clone() {
                self.visit(function, inner, in_loop || loops);
            }
            function.append(region, op);
        }
    }

    /// Whether a function has stack memory of a size that is not constant: it could not move out of a loop around the
    /// call.
    fn has_sized_stack(&self, callee: FunctionId) -> bool {
        let function = &self.module.functions[callee];
        all_ops(function).into_iter().any(|op| {
            matches!(function.view(op), OpView::Stack { size, .. } if !function.is_constant(size))
        })
    }

    /// A copy of a function's body with a call's operands for its arguments.
    fn copy_body(
        &mut self,
        function: &mut Function,
        call: Op,
        callee: FunctionId,
        in_loop: bool,
    ) -> Vec<Op> {
        let location = function.ops[call].location;
        let arguments = function.ops[call].operands.clone();
        // Taken out so that the table of locations can grow meanwhile.
        with_function(self.module, callee, |module, source| {
            let body = source.body();
            let mut copier = Copier {
                module,
                source,
                location,
                locations: FxHashMap::default(),
                values: FxHashMap::default(),
                copies: FxHashMap::default(),
                stacks: in_loop.then_some(&mut self.stacks),
            };
            let parameters = copier.source.regions[body].args.clone();
            copier.values.extend(parameters.into_iter().zip(arguments));
            copier.copy_ops(function, &source.regions[body].ops, false)
        })
    }
}

/// Copies operations of one function for another, with their regions; `values` says what values from outside of them are there, and then what their results are. Gives the
/// copies, which belong to no region yet, and what has become of each operation.
pub(crate) fn copy_between(
    module: &mut Module,
    source: &Function,
    target: &mut Function,
    ops: &[Op],
    values: &mut FxHashMap<Value, Value>,
) -> (Vec<Op>, FxHashMap<Op, Op>) {
    let mut copier = Copier {
        module,
        source,
        location: None,
        locations: FxHashMap::default(),
        values: std::mem::take(values),
        copies: FxHashMap::default(),
        stacks: None,
    };
    let copied = copier.copy_ops(target, ops, false);
    *values = copier.values;
    (copied, copier.copies)
}

/// Copies operations of one function into another.
struct Copier<'a> {
    module: &'a mut Module,
    source: &'a Function,
    /// The source location of the call.
    location: Option<Location>,
    locations: FxHashMap<Location, Location>,
    values: FxHashMap<Value, Value>,
    copies: FxHashMap<Op, Op>,
    /// Where `stack`s of constant size outside loops go instead of their place.
    stacks: Option<&'a mut Vec<Op>>,
}

impl Copier<'_> {
    fn copy_ops(&mut self, target: &mut Function, ops: &[Op], in_loop: bool) -> Vec<Op> {
        let source = self.source;
        let mut copies = Vec::with_capacity(ops.len());
        for &op in ops {
            let data = &source.ops[op];
            let operands = data
                .operands
                .iter()
                .map(|&operand| self.value(target, operand))
                .collect();
            let copy = target.ops.push(OpData {
                opcode: data.opcode,
                operands,
                results: SmallVec::new(),
                regions: SmallVec::new(),
                payload: data.payload.clone(),
                flags: data.flags,
                location: self.location_of(data.location),
            });
            self.copies.insert(op, copy);
            for (index, &result) in data.results.iter().enumerate() {
                let def = ValueDef::Result {
                    op: copy,
                    index: index as u32,
                };
                let value = self.new_value(target, result, def);
                target.ops[copy].results.push(value);
            }
            let loops = matches!(data.opcode, Opcode::For | Opcode::Loop);
            for &inner in &data.regions {
                let region = target.new_region(&[]);
                for (index, &arg) in source.regions[inner].args.iter().enumerate() {
                    let def = ValueDef::Argument {
                        region,
                        index: index as u32,
                    };
                    let value = self.new_value(target, arg, def);
                    target.regions[region].args.push(value);
                }
                let inner = &source.regions[inner].ops;
                target.regions[region].ops = self.copy_ops(target, inner, in_loop || loops);
                target.ops[copy].regions.push(region);
            }
            match &mut self.stacks {
                Some(stacks) if data.opcode == Opcode::Stack && !in_loop => stacks.push(copy),
                _ => copies.push(copy),
            }
        }
        copies
    }

    fn value(&mut self, target: &mut Function, value: Value) -> Value {
        match (self.values.get(&value), self.source.constant_of(value)) {
            (None, Some(constant)) => target.constant(self.source.ty(value), constant.clone()),
            _ => self.values[&value],
        }
    }

    fn new_value(&mut self, target: &mut Function, old: Value, def: ValueDef) -> Value {
        let data = &self.source.values[old];
        let new = target.values.push(ValueData {
            ty: data.ty,
            def,
            name: data.name.clone(),
            range: data.range,
        });
        self.values.insert(old, new);
        new
    }

    /// The source location of a copied operation: its own, inlined at the call.
    fn location_of(&mut self, location: Option<Location>) -> Option<Location> {
        let Some(call) = self.location else {
            return location;
        };
        let Some(location) = location else {
            return Some(call);
        };
        // From the innermost place outwards, up to one that is known already or not inlined itself.
        let mut chain = Vec::new();
        let mut next = Some(location);
        let mut outer = call;
        while let Some(place) = next {
            if let Some(&known) = self.locations.get(&place) {
                outer = known;
                break;
            }
            chain.push(place);
            next = self.module.locations[place].inlined_at;
        }
        for place in chain.into_iter().rev() {
            let data = LocationData {
                inlined_at: Some(outer),
                ..self.module.locations[place].clone()
            };
            outer = self.module.location(data);
            self.locations.insert(place, outer);
        }
        Some(outer)
    }
}

#[cfg(test)]
mod tests {
    use super::{InlinePolicy, inline_calls};
    use crate::testing::{check, check_same_results, check_unchanged};
    use expect_test::expect;
    use ferrozyme_ir::interpret::Datum;
    use ferrozyme_ir::{FunctionId, Module};

    /// Inlines into `@main` only, so that the callees stay to be read.
    fn inline(module: &mut Module, id: FunctionId) -> usize {
        if module.functions[id].name != "main" {
            return 0;
        }
        inline_calls(module, id, &InlinePolicy::default())
    }

    #[test]
    fn bodies_take_the_place_of_calls() {
        check(
            inline,
            r#"file 0 "a.rs"
             func @twice(%x: f64) -> (f64) {
               %y = fadd f64 %x, %x loc(0:1:5)
               return %y
             }
             func @four(%x: f64, %c: i1) -> (f64) {
               %r = if %c -> (f64) {
                 %y = call @twice(%x) loc(0:3:9)
                 yield %y
               } else {
                 yield 0.0
               }
               %s = call @twice(%r)
               return %s
             }
             func @main(%x: f64, %c: i1) -> (f64) {
               %y = call @four(%x, %c) loc(0:9:2)
               return %y
             }"#,
            expect![[r#"
                file 0 "a.rs"

                func @twice(%x: f64) -> (f64) {
                  %y = fadd f64 %x, %x loc(0:1:5)
                  return %y
                }

                func @four(%x: f64, %c: i1) -> (f64) {
                  %r = if %c -> (f64) {
                    %y = call @twice(%x) loc(0:3:9)
                    yield %y
                  } else {
                    yield 0.0
                  }
                  %s = call @twice(%r)
                  return %s
                }

                func @main(%x: f64, %c: i1) -> (f64) {
                  %r = if %c -> (f64) loc(0:9:2) {
                    %y = fadd f64 %x, %x loc(0:1:5 from 0:3:9 from 0:9:2)
                    yield %y loc(0:9:2)
                  } else {
                    yield 0.0 loc(0:9:2)
                  }
                  %y_1 = fadd f64 %r, %r loc(0:1:5 from 0:9:2)
                  return %y_1
                }
            "#]],
        );
    }

    #[test]
    fn a_body_that_traps_ends_the_region() {
        check(
            inline,
            r#"func @fail(%x: f64) -> (f64) {
               trap "fails"
             }
             func @main(%c: i1, %x: f64) -> (f64) {
               %r = if %c -> (f64) {
                 %y = call @fail(%x)
                 %z = fadd f64 %y, 1.0
                 yield %z
               } else {
                 yield %x
               }
               return %r
             }"#,
            expect![[r#"
                func @fail(%x: f64) -> (f64) {
                  trap "fails"
                }

                func @main(%c: i1, %x: f64) -> (f64) {
                  %r = if %c -> (f64) {
                    trap "fails"
                  } else {
                    yield %x
                  }
                  return %r
                }
            "#]],
        );
    }

    #[test]
    fn stack_memory_leaves_loops() {
        check(
            inline,
            "func @leaf(%x: f64) -> (f64) {
               %p = stack 8 align 8
               store f64 %x, %p align 8
               %y = load f64 %p align 8
               return %y
             }
             func @main(%n: i64) -> (f64) {
               %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                 %b = call @leaf(%a)
                 yield %b
               }
               return %s
             }",
            expect![[r#"
                func @leaf(%x: f64) -> (f64) {
                  %p = stack 8 align 8
                  store f64 %x, %p align 8
                  %y = load f64 %p align 8
                  return %y
                }

                func @main(%n: i64) -> (f64) {
                  %p = stack 8 align 8
                  %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                    store f64 %a, %p align 8
                    %y = load f64 %p align 8
                    yield %y
                  }
                  return %s
                }
            "#]],
        );
    }

    #[test]
    fn what_must_not_be_inlined_stays() {
        check_unchanged(
            inline,
            "declare @unknown(f64) -> (f64)
             declare @tangent(f64, f64, i64) -> (f64, f64)
             func @kept(%x: f64) -> (f64) noinline {
               return %x
             }
             func @quiet(%x: f64) -> (f64) inactive {
               return %x
             }
             func @ruled(%x: f64) -> (f64) {
               return %x
             }
             func @wide(%x: f64) -> (f64) level(v3) {
               return %x
             }
             func @even(%x: i64) -> (i64) {
               %y = call @odd(%x)
               return %y
             }
             func @odd(%x: i64) -> (i64) {
               %y = call @even(%x)
               return %y
             }
             func @main(%x: f64, %n: i64) -> (f64, i64) {
               %a = call @unknown(%x)
               %b = call @kept(%a)
               %c = call @quiet(%b)
               %d = call @ruled(%c)
               %w = call @wide(%d)
               %e = call @even(%n)
               %g, %h = call @main(%x, %e)
               return %w, %e
             }
             rule @ruled forward @tangent",
        );
    }

    #[test]
    fn results_stay_the_same() {
        check_same_results(
            inline,
            "func @step(%p: ptr, %x: f64) -> (f64) {
               %t = stack 8 align 8
               store f64 %x, %t align 8
               %a = load f64 %p align 8
               %b = load f64 %t align 8
               %c = fadd f64 %a, %b
               store f64 %c, %p align 8
               return %a
             }
             func @main(%x: f64, %n: i64) -> (f64, f64) {
               %p = stack 8 align 8
               store f64 1.0, %p align 8
               %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = %x) {
                 %b = call @step(%p, %a)
                 yield %b
               }
               %r = load f64 %p align 8
               return %r, %s
             }",
            &[
                &[Datum::f64(2.0), Datum::i64(0)],
                &[Datum::f64(2.0), Datum::i64(5)],
            ],
        );
    }
}
