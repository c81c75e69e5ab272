//! Folds constants and applies algebraic rules that make programs smaller and index expressions canonical.
//!
//! ```text
//! %a = add i64 %x, 1             %b = add i64 %x, 3
//! %b = add i64 %a, 2      →      …
//! %i = shl i64 %b, 3             %q = offset %p, %b * 8
//! %q = offset %p, %i * 1
//! ```
//!
//! One walk forward: operands are simplified before their users. The rules stand in `simplify/`, by the kind of
//! operation; each is a line or two with its condition. Structured operations with a known condition or trip count
//! are replaced by their bodies, and a condition is known to hold where it dominates: in the regions of an
//! `if`, and after an `if` that traps otherwise.
//!
//! Floating-point results never change in any bit, the payload of a NaN aside, unless flags allow it.

mod casts;
mod control;
mod floats;
mod fold;
mod integers;
mod vectors;

use crate::substitution::Substitution;
use crate::with_function::with_function;
use ferrozyme_ir::{
    Flags, Function, FunctionId, Module, Op, Opcode, Payload, Region, Scalar, Value,
};
use smallvec::{SmallVec, smallvec};

/// Simplifies a function; returns the number of rules applied.
pub fn simplify(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |module, function| {
        let Some(body) = function.body else { return 0 };
        let mut simplifier = Simplifier {
            module,
            substitution: Substitution::new(),
            changes: 0,
        };
        simplifier.visit(function, body);
        simplifier.changes
    })
}

/// The result of a rule for an operation with one result.
enum Rewrite {
    /// The result is this value.
    To(Value),
    /// The operation becomes another, with a result of the same type.
    Into(Opcode, SmallVec<[Value; 4]>, Payload, Flags),
}

impl Rewrite {
    fn unary(opcode: Opcode, a: Value, flags: Flags) -> Option<Rewrite> {
        Some(Rewrite::Into(opcode, smallvec![a], Payload::None, flags))
    }

    fn binary(opcode: Opcode, a: Value, b: Value, flags: Flags) -> Option<Rewrite> {
        Some(Rewrite::Into(opcode, smallvec![a, b], Payload::None, flags))
    }
}

/// What becomes of an operation.
enum Outcome {
    /// It stays as it is now.
    Keep,
    /// It goes; its results are these values.
    Replace(SmallVec<[Value; 4]>),
    /// It dissolves: this region's operations take its place, with these values for the region's arguments, and what
    /// the region yields for the results.
    Splice(Region, SmallVec<[Value; 4]>),
    /// It stays, but what this region of it does is done after it.
    Flatten(Region),
}

/// Maximum number of rule applications per operation. Each rule brings an operation closer to its canonical form, so this
/// is never reached; it guards against two rules that undo each other.
const ROUNDS: usize = 32;

struct Simplifier<'m> {
    module: &'m Module,
    substitution: Substitution,
    changes: usize,
}

impl Simplifier<'_> {
    fn visit(&mut self, function: &mut Function, region: Region) {
        // The operations still to do, the next one last.
        let mut pending = function.take_ops(region);
        pending.reverse();
        // Conditions that are known from some operation of this region on.
        let mut known: Vec<Value> = Vec::new();
        while let Some(op) = pending.pop() {
            self.substitution.apply(function, op);
            let mut outcome = self.apply_rules(function, op);
            if matches!(outcome, Outcome::Keep) && !function.ops[op].regions.is_empty() {
                self.visit_regions(function, op);
                outcome =
                    control::after_regions(function, op, &mut self.substitution, &mut self.changes);
            }
            match outcome {
                Outcome::Keep => {
                    if self.stop_at_call(function, op) {
                        // This call does not return.
                        pending.clear();
                    }
                    function.append(region, op);
                    known.extend(self.learn_from_trap(function, op));
                }
                Outcome::Replace(values) => {
                    self.changes += 1;
                    self.replace_results(function, op, &values);
                }
                Outcome::Splice(inner, arguments) => {
                    self.changes += 1;
                    let parameters = function.regions[inner].args.clone();
                    for (&parameter, &argument) in parameters.iter().zip(&arguments) {
                        self.substitution.replace(parameter, argument);
                    }
                    let mut ops = function.take_ops(inner);
                    let terminator = ops.pop().expect("a region ends in a terminator");
                    if function.ops[terminator].opcode == Opcode::Trap {
                        // Control never comes to what followed.
                        pending.clear();
                        pending.push(terminator);
                    } else {
                        let values = function.ops[terminator].values();
                        let values = SmallVec::<[Value; 4]>::from_slice(values);
                        self.replace_results(function, op, &values);
                    }
                    pending.extend(ops.into_iter().rev());
                }
                Outcome::Flatten(inner) => {
                    self.changes += 1;
                    let mut ops = function.take_ops(inner);
                    let terminator = ops.pop().expect("a region ends in a terminator");
                    let values = function.ops[terminator].operands.clone();
                    self.replace_results(function, op, &values);
                    function.ops[op].results.clear();
                    function.ops[terminator].operands.clear();
                    function.append(inner, terminator);
                    pending.extend(ops.into_iter().rev());
                    pending.push(op);
                }
            }
        }
        for condition in known {
            self.substitution.restore(condition);
        }
    }

    /// Turns a call that does not return into a trap.
    fn stop_at_call(&mut self, function: &mut Function, op: Op) -> bool {
        let data = &mut function.ops[op];
        let (Opcode::Call, &Payload::Callee(callee)) = (data.opcode, &data.payload) else {
            return false;
        };
        if !self.module.functions[callee].facts.noreturn {
            return false;
        }
        data.opcode = Opcode::Trap;
        data.results.clear();
        self.changes += 1;
        true
    }

    fn replace_results(&mut self, function: &mut Function, op: Op, values: &[Value]) {
        let results = function.ops[op].results.clone();
        for (&result, &value) in results.iter().zip(values) {
            keep_name(function, result, value);
            self.substitution.replace(result, value);
        }
    }

    /// Applies rules to one operation until none fits. Regions within are left aside.
    fn apply_rules(&mut self, function: &mut Function, op: Op) -> Outcome {
        for _ in 0..ROUNDS {
            if let Some(values) = fold::fold(self.module, function, op) {
                return Outcome::Replace(values);
            }
            let outcome = control::simplify(
                self.module,
                function,
                op,
                &mut self.substitution,
                &mut self.changes,
            );
            if !matches!(outcome, Outcome::Keep) {
                return outcome;
            }
            let rewrite = integers::simplify(function, op)
                .or_else(|| floats::simplify(function, op))
                .or_else(|| casts::simplify(function, op))
                .or_else(|| vectors::simplify(function, op));
            match rewrite {
                None => return Outcome::Keep,
                Some(Rewrite::To(value)) => return Outcome::Replace(smallvec![value]),
                Some(Rewrite::Into(opcode, operands, payload, flags)) => {
                    self.changes += 1;
                    let data = &mut function.ops[op];
                    data.opcode = opcode;
                    data.operands = operands;
                    data.payload = payload;
                    data.flags = flags;
                }
            }
        }
        Outcome::Keep
    }

    /// Simplifies the regions of an operation, each under its conditions.
    fn visit_regions(&mut self, function: &mut Function, op: Op) {
        let data = &function.ops[op];
        let regions = data.regions.clone();
        if data.opcode != Opcode::If {
            for region in regions {
                self.visit(function, region);
            }
            return;
        }
        let condition = data.condition();
        for (region, holds) in regions.into_iter().zip([true, false]) {
            let known = self.assume(function, condition, holds);
            self.visit(function, region);
            for value in known {
                self.substitution.restore(value);
            }
        }
    }

    /// After `if %c { trap }` the condition is known not to hold.
    fn learn_from_trap(&mut self, function: &mut Function, op: Op) -> SmallVec<[Value; 2]> {
        let data = &function.ops[op];
        if data.opcode != Opcode::If {
            return SmallVec::new();
        }
        let condition = data.condition();
        match (
            function.ends_in_trap(data.regions[0]),
            function.ends_in_trap(data.regions[1]),
        ) {
            (true, false) => self.assume(function, condition, false),
            (false, true) => self.assume(function, condition, true),
            _ => SmallVec::new(),
        }
    }

    /// From now on a condition is known, and so is its negation; gives the values to restore later.
    fn assume(
        &mut self,
        function: &mut Function,
        condition: Value,
        holds: bool,
    ) -> SmallVec<[Value; 2]> {
        let mut known = SmallVec::new();
        if function.is_constant(condition) {
            return known;
        }
        let ty = function.ty(condition);
        let constant = function.int(ty, i128::from(holds));
        if let Some(negated) = integers::negated_condition(function, condition)
            && !function.is_constant(negated)
        {
            let opposite = function.int(ty, i128::from(!holds));
            self.substitution.replace(negated, opposite);
            known.push(negated);
        }
        self.substitution.replace(condition, constant);
        known.push(condition);
        known
    }
}

/// A value that takes another's place takes its name too, if it has none itself.
fn keep_name(function: &mut Function, old: Value, new: Value) {
    if !function.is_constant(new) && function.values[new].name.is_none() {
        function.values[new].name = function.values[old].name.take();
    }
}

/// The integer that all lanes of a value are, read as signed.
fn number(function: &Function, value: Value) -> Option<i128> {
    match (function.ty(value).scalar(), function.constant_of(value)) {
        (Scalar::Int(bits), Some(ferrozyme_ir::Constant::Bits(raw))) => {
            Some(ferrozyme_ir::sign_extend(*raw, u32::from(bits)))
        }
        _ => None,
    }
}

/// The operation that a value is the only result of, if it is of this kind: its operands and flags.
fn matching(
    function: &Function,
    value: Value,
    opcode: Opcode,
) -> Option<(SmallVec<[Value; 4]>, Flags)> {
    let (op, _) = function.def_op(value)?;
    let data = &function.ops[op];
    (data.opcode == opcode).then(|| (data.operands.clone(), data.flags))
}

#[cfg(test)]
mod tests {
    use super::simplify;
    use crate::testing::{check, check_same_results, check_unchanged};
    use expect_test::expect;
    use ferrozyme_ir::interpret::Datum;

    #[test]
    fn comparisons_with_the_smaller_or_larger_of_two() {
        let text = "func @main(%x: i64, %y: i64) -> (i1, i1, i1, i1) {
               %a = umin i64 %x, %y
               %b = icmp ne i64 %x, %a
               %c = umax i64 %y, %x
               %d = icmp eq i64 %c, %x
               %e = smin i64 %y, %x
               %f = icmp eq i64 %x, %e
               %g = smax i64 %x, %y
               %h = sub i64 %x, %g
               %i = icmp ne i64 %h, 0
               return %b, %d, %f, %i
             }";
        check(
            simplify,
            text,
            expect![[r#"
                func @main(%x: i64, %y: i64) -> (i1, i1, i1, i1) {
                  %a = umin i64 %x, %y
                  %b = icmp ugt i64 %x, %y
                  %c = umax i64 %y, %x
                  %d = icmp uge i64 %x, %y
                  %e = smin i64 %y, %x
                  %f = icmp sle i64 %x, %y
                  %g = smax i64 %x, %y
                  %h = sub i64 %x, %g
                  %i = icmp slt i64 %x, %y
                  return %b, %d, %f, %i
                }
            "#]],
        );
        let inputs = [(1, 2), (2, 1), (3, 3), (-1, 1), (1, -1), (-2, -5)];
        let inputs = inputs.map(|(x, y)| [Datum::i64(x), Datum::i64(y)]);
        let inputs = inputs.each_ref().map(|input| &input[..]);
        check_same_results(simplify, text, &inputs);
    }

    #[test]
    fn distances_from_an_address_of_the_same_branch_are_products() {
        check(
            simplify,
            "func @f(%c: i1, %d: i1, %n: i64, %m: i64) -> (i64, i64, i64) {
               %p, %a, %b = if %c -> (ptr, i64, i64) {
                 yield 0x8, 8, 16
               } else {
                 %q, %qa = if %d -> (ptr, i64) {
                   %new = alloc %n align 8
                   %na = ptrtoint ptr %new to i64
                   yield %new, %na
                 } else {
                   yield 0x8, 8
                 }
                 %qb = ptrtoint ptr %q to i64
                 yield %q, %qa, %qb
               }
               %e = offset nuw inbounds %p, %n * 8
               %ea = ptrtoint ptr %e to i64
               %x = sub i64 %ea, %a
               %y = lshr i64 %x, 3
               %z = sub i64 %ea, %b
               %g = offset inbounds %p, %m * 8
               %ga = ptrtoint ptr %g to i64
               %u = sub i64 %ga, %a
               %v = lshr i64 %u, 3
               return %y, %z, %v
             }",
            expect![[r#"
                func @f(%c: i1, %d: i1, %n: i64, %m: i64) -> (i64, i64, i64) {
                  %p, %a, %b = if %c -> (ptr, i64, i64) {
                    yield 0x8, 8, 16
                  } else {
                    %q, %qa = if %d -> (ptr, i64) {
                      %new = alloc %n align 8
                      %na = ptrtoint ptr %new to i64
                      yield %new, %na
                    } else {
                      yield 0x8, 8
                    }
                    %qb = ptrtoint ptr %q to i64
                    yield %q, %qa, %qb
                  }
                  %e = offset nuw inbounds %p, %n * 8
                  %ea = ptrtoint ptr %e to i64
                  %x = mul nuw i64 %n, 8
                  %z = sub i64 %ea, %b
                  %g = offset inbounds %p, %m * 8
                  %ga = ptrtoint ptr %g to i64
                  %u = mul i64 %m, 8
                  %v = lshr i64 %u, 3
                  return %n, %z, %v
                }
            "#]],
        );
    }

    #[test]
    fn constants_fold() {
        check(
            simplify,
            r#"global @table: 16 bytes align 8 const = x"0000000000000840"
             func @f() -> (i64, f64, f64, f64, i1, i32) {
               %a = add i64 2, 3
               %b = mul i64 %a, %a
               %c = fadd f64 1.5, 2.5
               %p = offset @table, 1 * 8
               %d = load f64 @table align 8
               %e = load f64 %p align 8
               %g = icmp slt i64 %b, 30
               %h = trunc_int i64 %b to i32
               return %b, %c, %d, %e, %g, %h
             }"#,
            expect![[r#"
                global @table: 16 bytes align 8 const = x"0000000000000840"

                func @f() -> (i64, f64, f64, f64, i1, i32) {
                  %p = offset @table, 8
                  return 25, 4.0, 3.0, 0.0, 1, 25
                }
            "#]],
        );
    }

    #[test]
    fn integers() {
        check(
            simplify,
            "func @f(%x: i64, %y: i64) -> (i64, i64, i64, i64, i64, i64, i64, i64, i64) {
               %a = add i64 %x, 0
               %b = mul i64 1, %a
               %c = sub i64 %b, %x
               %d = add nsw i64 %x, 1
               %e = add nsw i64 %d, 2
               %g = sub i64 %e, 7
               %h = shl nsw i64 %x, 3
               %i = add i64 %x, %y
               %j = sub i64 %i, %y
               %k = xor i64 %x, 5
               %l = xor i64 %k, 5
               %m = smax i64 %x, -9223372036854775808
               %n = and i64 %x, 0
               %o = udiv i64 %x, 1
               return %b, %c, %e, %g, %h, %j, %l, %m, %n
             }",
            expect![[r#"
                func @f(%x: i64, %y: i64) -> (i64, i64, i64, i64, i64, i64, i64, i64, i64) {
                  %d = add nsw i64 %x, 1
                  %e = add nsw i64 %x, 3
                  %g = add i64 %x, -4
                  %h = mul nsw i64 %x, 8
                  %i = add i64 %x, %y
                  %k = xor i64 %x, 5
                  return %x, 0, %e, %g, %h, %x, %x, %x, 0
                }
            "#]],
        );
    }

    #[test]
    fn floats_without_flags_keep_every_bit() {
        check(
            simplify,
            "func @f(%x: f64, %y: f64) -> (f64, f64, f64, f64, f64, f64, f64) {
               %a = fadd f64 %x, -0.0
               %b = fsub f64 %a, 0.0
               %c = fmul f64 1.0, %b
               %d = fneg f64 %c
               %e = fneg f64 %d
               %g = fadd f64 %x, %d
               %h = fabs f64 %y
               %i = fadd f64 %h, 0.0
               %j = fdiv f64 %x, 1.0
               %k = fadd nsz f64 %x, 0.0
               %l = fmul nnan nsz f64 %x, 0.0
               %m = fsub nnan f64 %x, %x
               return %e, %g, %i, %j, %k, %l, %m
             }",
            expect![[r#"
                func @f(%x: f64, %y: f64) -> (f64, f64, f64, f64, f64, f64, f64) {
                  %d = fneg f64 %x
                  %g = fsub f64 %x, %x
                  %h = fabs f64 %y
                  return %x, %g, %h, %x, %x, 0.0, 0.0
                }
            "#]],
        );
    }

    #[test]
    fn floats_that_must_stay() {
        check_unchanged(
            simplify,
            "func @f(%x: f64) -> (f64, f64, f64, f64, f64) {
               %a = fadd f64 %x, 0.0
               %b = fmul f64 %x, 0.0
               %c = fsub f64 %x, %x
               %d = fsub f64 0.0, %x
               %e = fadd f64 %x, 1.0
               %g = fadd f64 %e, 2.0
               return %a, %b, %c, %d, %g
             }",
        );
    }

    #[test]
    fn choices_comparisons_and_casts() {
        check(
            simplify,
            "func @f(%x: i32, %c: i1, %n: i64 range 0..=100) -> (i32, i1, i64, i32, i1, i1, i64, f32) {
               %not = xor i1 %c, true
               %a = select i32 %not, %x, 3
               %b = xor i1 %not, true
               %d = sext i32 %x to i64
               %e = sext i64 %d to i128
               %g = trunc_int i128 %e to i64
               %h = trunc_int i64 %d to i32
               %i = icmp slt i32 %x, 3
               %j = xor i1 %i, true
               %k = icmp sge i64 %n, 0
               %l = smax i64 %n, 0
               %m = fpext f32 1.5 to f64
               %o = fptrunc f64 %m to f32
               return %a, %b, %g, %h, %j, %k, %l, %o
             }",
            expect![[r#"
                func @f(%x: i32, %c: i1, %n: i64 range 0..=100) -> (i32, i1, i64, i32, i1, i1, i64, f32) {
                  %not = xor i1 %c, 1
                  %a = select i32 %c, 3, %x
                  %d = sext i32 %x to i64
                  %e = sext i32 %x to i128
                  %g = sext i32 %x to i64
                  %i = icmp slt i32 %x, 3
                  %j = icmp sge i32 %x, 3
                  return %a, %c, %g, %x, %j, 1, %n, 1.5
                }
            "#]],
        );
    }

    #[test]
    fn addresses() {
        check(
            simplify,
            "func @f(%p: ptr, %i: i64) -> (ptr, ptr, ptr, ptr) {
               %a = offset inbounds %p, 0 * 8
               %b = offset inbounds %a, 2 * 8
               %c = offset %b, 3 * 4
               %d = mul i64 %i, 8
               %e = offset %p, %d * 1
               %g = shl i64 %i, 1
               %h = offset %p, %g * 4
               return %a, %c, %e, %h
             }",
            expect![[r#"
                func @f(%p: ptr, %i: i64) -> (ptr, ptr, ptr, ptr) {
                  %b = offset inbounds %p, 16
                  %c = offset %p, 28
                  %d = mul i64 %i, 8
                  %e = offset %p, %i * 8
                  %g = mul i64 %i, 2
                  %h = offset %p, %i * 8
                  return %p, %c, %e, %h
                }
            "#]],
        );
    }

    #[test]
    fn known_conditions_dissolve() {
        check(
            simplify,
            r#"declare @callee(f64) -> (f64)
             func @f(%c: i1, %x: f64, %p: ptr) -> (f64, f64, f64, i1) {
               %a = if true -> (f64) {
                 %u = fadd f64 %x, 1.0
                 yield %u
               } else {
                 yield %x
               }
               %b = if %c -> (f64) {
                 %v = select f64 %c, 1.0, 2.0
                 yield %v
               } else {
                 %w = if %c -> (f64) { yield 3.0 } else { yield 4.0 }
                 yield %w
               }
               %d = switch i64 2 -> (f64) { case 0 { yield 1.0 } case 1, 2 { yield 7.0 } default { yield 9.0 } }
               %e = call_indirect @callee(f64 %d) -> (f64)
               %t = if %c -> (i1) { yield true } else { yield false }
               return %a, %b, %e, %t
             }"#,
            expect![[r#"
                declare @callee(f64) -> (f64)

                func @f(%c: i1, %x: f64, %p: ptr) -> (f64, f64, f64, i1) {
                  %u = fadd f64 %x, 1.0
                  %b = if %c -> (f64) {
                    yield 1.0
                  } else {
                    yield 4.0
                  }
                  %e = call @callee(7.0)
                  if %c {
                    yield
                  }
                  return %u, %b, %e, %c
                }
            "#]],
        );
    }

    #[test]
    fn traps_flatten_and_teach() {
        check(
            simplify,
            r#"func @f(%i: i64, %n: i64, %p: ptr) -> (f64) {
               %c = icmp ult i64 %i, %n
               %r = if %c -> (f64) {
                 %q = offset %p, %i * 8
                 %a = load f64 %q align 8
                 %d = if %c -> (f64) { yield %a } else { yield 0.0 }
                 yield %d
               } else {
                 trap "index out of bounds"
               }
               if %c { yield } else { trap "again" }
               return %r
             }"#,
            expect![[r#"
                func @f(%i: i64, %n: i64, %p: ptr) -> (f64) {
                  %c = icmp ult i64 %i, %n
                  if %c {
                    yield
                  } else {
                    trap "index out of bounds"
                  }
                  %q = offset %p, %i * 8
                  %a = load f64 %q align 8
                  return %a
                }
            "#]],
        );
    }

    #[test]
    fn everything_after_a_sure_trap_goes() {
        check(
            simplify,
            r#"func @f(%p: ptr) -> (f64) {
               if false { yield } else {
                 store f64 1.0, %p align 8
                 trap "always"
               }
               store f64 2.0, %p align 8
               return 1.0
             }"#,
            expect![[r#"
                func @f(%p: ptr) -> (f64) {
                  store f64 1.0, %p align 8
                  trap "always"
                }
            "#]],
        );
    }

    #[test]
    fn loops_with_few_turns_dissolve() {
        check(
            simplify,
            "func @f(%n: i64, %x: f64) -> (f64, f64, f64, f64, f64) {
               %a = for %i: i64 = 3 to 3 step 1 with (%s: f64 = 1.0) {
                 %s1 = fadd f64 %s, %x
                 yield %s1
               }
               %b = for %j: i64 = 0 to 5 step 5 with (%u: f64 = 1.0) {
                 %g = sitofp i64 %j to f64
                 %u1 = fadd f64 %u, %x
                 %u2 = fadd f64 %u1, %g
                 yield %u2
               }
               %c = loop with (%v: f64 = 2.0) {
                 %v1 = fmul f64 %v, %x
                 again false, %v1
               }
               %d, %e = for %k: i64 = 0 to %n step 1 with (%w: f64 = %x, %t: f64 = 0.0) {
                 %t1 = fadd f64 %t, %w
                 yield %w, %t1
               }
               return %a, %b, %c, %d, %e
             }",
            expect![[r#"
                func @f(%n: i64, %x: f64) -> (f64, f64, f64, f64, f64) {
                  %u1 = fadd f64 %x, 1.0
                  %v1 = fmul f64 %x, 2.0
                  %e = for %k: i64 = 0 to %n step 1 with (%t: f64 = 0.0) {
                    %t1 = fadd f64 %t, %x
                    yield %t1
                  }
                  return 1.0, %u1, %v1, %x, %e
                }
            "#]],
        );
    }

    #[test]
    fn results_stay_the_same() {
        let text = "func @main(%x: f64, %n: i64) -> (f64, i64) {
               %c = icmp sgt i64 %n, 2
               %s, %k = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0, %j: i64 = 1) {
                 %b = if %c -> (f64) {
                   %d = select f64 %c, %x, 0.0
                   yield %d
                 } else {
                   %z = fadd f64 %x, 0.0
                   yield %z
                 }
                 %a1 = fadd f64 %a, %b
                 %j1 = shl i64 %j, 1
                 %j2 = add i64 %j1, 1
                 %j3 = sub i64 %j2, 3
                 yield %a1, %j3
               }
               return %s, %k
             }";
        check_same_results(
            simplify,
            text,
            &[
                &[Datum::f64(1.5), Datum::i64(0)],
                &[Datum::f64(-0.0), Datum::i64(1)],
                &[Datum::f64(3.25), Datum::i64(7)],
            ],
        );
    }
}
