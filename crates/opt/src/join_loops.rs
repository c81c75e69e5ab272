//! Makes one loop of two that add up the two parts of one sum.
//!
//! ```text
//! %m = lshr i64 %n, 4                   ; whole parts of sixteen
//! %whole = mul i64 %m, 16
//! %rest = and i64 %n, 15
//! %a = for %i: i64 = 0 to %rest step 1 with (…: f64 = 0.0) { … += x[whole + i] }
//! %b = for %i: i64 = 0 to %whole step 1 with (…: f64 = 0.0) { … += x[i] }
//! %s = fadd f64 %a, %b
//! ```
//! becomes
//! ```text
//! %s = for %i: i64 = 0 to %n step 1 with (…: f64 = 0.0) { … += x[i] }
//! ```
//!
//! The order of the additions changes, so it takes leave to do that (design decision D10).
//!
//! Who needs it: people who write partial sums. Once these are [merged](crate::merge_partial_sums) and [rolled up](crate::reroll_loops), this is what is left of them and of
//! `for (a, b) in chunks_a.remainder().iter().zip(chunks_b.remainder()) { total += a * b }`. LLVM's own unrolling with a remainder runs behind us, not before.
//!
//! Both loops carry one sum that nobody looks at before it is complete, and do nothing but compute and read; nothing is written between them. What the first one
//! adds in iteration *i* is what the second one would add in iteration *i + its number of iterations*.

use crate::alike::Likeness;
use crate::carried::carried_at;
use crate::indices::Indices;
use crate::pointers::Pointers;
use crate::sums::{Addition, carried_sum, only_computes};
use crate::symbolic::Symbolic;
use crate::uses::Uses;
use crate::whole_parts::{WholeParts, rest_of, with_constant};
use crate::with_function::with_function;
use ferrozyme_ir::{
    Cursor, Effect, Flags, Function, FunctionId, Module, Op, OpData, Opcode, Payload, Region, Type,
    Value, returning_ops,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Joins loops; returns how many were merged.
pub fn join_loops(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |module, function| {
        if function.body.is_none() {
            return 0;
        }
        let plans: Vec<Plan> = {
            let indices = Indices::of(function);
            let pointers = Pointers::of(module, &indices);
            let finder = Finder {
                function,
                indices: &indices,
                pointers: &pointers,
                parts: WholeParts::of(&indices),
                uses: Uses::of(function),
            };
            returning_ops(function)
                .into_iter()
                .filter_map(|op| finder.plan(op))
                .collect()
        };
        let mut replaced = FxHashMap::default();
        for plan in &plans {
            apply(function, plan, &mut replaced);
        }
        function.replace_operands(&replaced);
        plans.len()
    })
}

/// Two loops that are to become one.
struct Plan {
    /// The addition of the two sums.
    addition: Op,
    /// The loop that goes.
    rest: Op,
    /// The loop that stays, and gets longer.
    whole: Op,
    /// The region of all three.
    region: Region,
    /// The trip count of the joined loop, if there is a value for it.
    length: Option<Value>,
}

struct Finder<'a> {
    function: &'a Function,
    indices: &'a Indices<'a>,
    pointers: &'a Pointers,
    parts: WholeParts,
    uses: Uses,
}

impl Finder<'_> {
    fn plan(&self, addition: Op) -> Option<Plan> {
        let data = &self.function.ops[addition];
        if data.opcode != Opcode::Fadd {
            return None;
        }
        let loops = data.both().map(|sum| self.sum_loop(sum));
        let [one, other] = [loops[0]?, loops[1]?];
        let structure = self.indices.structure();
        let region = structure.region_of(addition)?;
        if one == other
            || structure.region_of(one) != Some(region)
            || structure.region_of(other) != Some(region)
            || !self.nothing_is_written_between(region, one, other)
        {
            return None;
        }
        [(one, other), (other, one)]
            .into_iter()
            .filter(|&(rest, whole)| self.continues(rest, whole))
            .map(|(rest, whole)| Plan {
                addition,
                rest,
                whole,
                region,
                length: self.length(rest, whole),
            })
            .find(|plan| plan.length.is_some() || self.have_no_negative_lengths(plan))
    }

    fn have_no_negative_lengths(&self, plan: &Plan) -> bool {
        [plan.rest, plan.whole].into_iter().all(|op| {
            let length = self.function.ops[op].to();
            self.indices.interval_of_value(length).min >= 0
        })
    }

    /// The loop that gives this sum, which starts at zero and counts from zero.
    fn sum_loop(&self, sum: Value) -> Option<Op> {
        let (op, _) = self.function.def_op(sum)?;
        let data = &self.function.ops[op];
        if data.opcode != Opcode::For || data.results.len() != 1 || self.uses.only(sum).is_none() {
            return None;
        }
        let [from, _, step] = data.bounds();
        let plain = self.function.ty(from) == Type::I64
            && self.function.int_of(from) == Some(0)
            && self.function.int_of(step) == Some(1)
            && self.function.float_of(data.initial()[0]) == Some(0.0)
            && only_computes(self.function, data.body())
            && self.addition(op).is_some();
        plain.then_some(op)
    }

    /// What the body of a loop adds to its sum, if that is one term.
    fn addition(&self, op: Op) -> Option<Addition> {
        let structure = self.indices.structure();
        let carried = carried_at(self.function, op, 0)?;
        let additions = carried_sum(self.function, structure, &self.uses, op, &carried)?;
        match additions[..] {
            [addition] => Some(addition),
            _ => None,
        }
    }

    fn nothing_is_written_between(&self, region: Region, one: Op, other: Op) -> bool {
        let ops = &self.function.regions[region].ops;
        let mut between = ops
            .iter()
            .skip_while(|&&op| op != one && op != other)
            .skip(1)
            .take_while(|&&op| op != one && op != other);
        between.all(|&op| {
            let data = &self.function.ops[op];
            data.regions.is_empty()
                && matches!(
                    data.opcode.effect(),
                    Effect::Pure | Effect::Partial | Effect::Read
                )
        })
    }

    /// Whether one loop adds what another one would if it went on.
    fn continues(&self, rest: Op, whole: Op) -> bool {
        let bodies = [rest, whole].map(|op| self.function.ops[op].regions[0]);
        let (Some(one), Some(other)) = (self.addition(rest), self.addition(whole)) else {
            return false;
        };
        let (a, b) = (&self.function.ops[one.op], &self.function.ops[other.op]);
        let [terms, other_terms] = [one, other].map(|addition| addition.terms(self.function));
        let mut likeness = Likeness::new(self.function, self.indices.structure(), bodies);
        let mut some = false;
        let mut reads = |one: Op, other: Op| {
            some = true;
            self.function.ops[one].payload == self.function.ops[other].payload
                && self.goes_on(rest, whole, one, other).is_some()
        };
        let alike = a.opcode == b.opcode
            && a.flags == b.flags
            && terms
                .iter()
                .zip(&other_terms)
                .all(|(&one, &other)| likeness.holds(one, other, &mut reads));
        alike && some
    }

    /// Whether the first place that a load of `rest` reads follows on the last of one of `whole`.
    fn goes_on(&self, rest: Op, whole: Op, one: Op, other: Op) -> Option<()> {
        let [one, other] = [one, other].map(|load| self.function.ops[load].address());
        let root = self.pointers.root(one);
        if root != self.pointers.root(other) || self.indices.varies_in(root, whole) {
            return None;
        }
        let split = |address: Value, op: Op| {
            let counter = self.function.regions[self.function.ops[op].regions[0]].args[0];
            let (by_counter, start) = self.pointers.offset(address).split(counter);
            let stride = by_counter.is_constant()?;
            self.indices
                .is_invariant(&start, op)
                .then_some((stride, start))
        };
        let (stride, start) = split(one, rest)?;
        let (other_stride, other_start) = split(other, whole)?;
        if stride != other_stride || stride <= 0 {
            return None;
        }
        let length = self.indices.expression(self.function.ops[whole].to());
        let gap = start.sub(&other_start)?.sub(&length.scale(stride)?)?;
        self.is_nothing(gap, &length).then_some(())
    }

    /// Whether a number is zero, knowing that `n and -16` is sixteen times `n lshr 4`.
    ///
    /// `length` is how often a loop runs that reads more memory in every iteration, so it has no bits above those of addresses: what counts it may be
    /// masked as if it had none.
    fn is_nothing(&self, gap: Symbolic, length: &Symbolic) -> bool {
        if gap.is_constant() == Some(0) {
            return true;
        }
        let variables: SmallVec<[Value; 4]> = gap.variables().collect();
        variables.iter().any(|&value| {
            let Some(rounded) = self.parts.rounded_down(value) else {
                return false;
            };
            variables.iter().any(|&parts| {
                let (number, size) = self.parts.parts_of(self.function, parts);
                let Some(whole) = Symbolic::of_value(parts).scale(1 << size) else {
                    return false;
                };
                let fits = rounded.is_whole || rounded.is_whole_in_memory && whole == *length;
                let counts = with_constant(self.function, parts, Opcode::Lshr).is_some()
                    && size == rounded.size
                    && (number == value || number == rounded.number && fits);
                counts
                    && gap
                        .substitute(value, &whole)
                        .is_some_and(|gap| gap.is_constant() == Some(0))
            })
        })
    }

    /// The value that is the sum of both lengths: *n* for `n and 15` and `(n lshr 4) · 16`.
    fn length(&self, rest: Op, whole: Op) -> Option<Value> {
        let [rest, whole] = [rest, whole].map(|op| self.function.ops[op].to());
        let (number, size) = rest_of(self.function, rest)?;
        let again = match self.parts.rounded_down(whole) {
            Some(rounded) => rounded.is_whole.then_some((rounded.number, rounded.size))?,
            None => {
                let multiplied = with_constant(self.function, whole, Opcode::Mul);
                let (parts, factor) = multiplied.or_else(|| {
                    let (parts, bits) = with_constant(self.function, whole, Opcode::Shl)?;
                    (0..63).contains(&bits).then_some((parts, 1 << bits))
                })?;
                (factor == 1 << size).then(|| self.parts.parts_of(self.function, parts))?
            }
        };
        let positive = self.indices.interval_of_value(whole).min >= 0;
        (positive && again == (number, size)).then_some(number)
    }
}

fn apply(function: &mut Function, plan: &Plan, replaced: &mut FxHashMap<Value, Value>) {
    let lengths = [plan.rest, plan.whole].map(|op| function.ops[op].to());
    let mut new = Vec::new();
    let length = plan.length.unwrap_or_else(|| {
        let data = OpData {
            opcode: Opcode::Add,
            operands: lengths.into_iter().collect(),
            results: SmallVec::new(),
            regions: SmallVec::new(),
            payload: Payload::None,
            flags: Flags::NSW.union(Flags::NUW),
            location: function.ops[plan.whole].location,
        };
        let op = function.new_op(data, &[Type::I64]);
        new.push(op);
        function.result(op)
    });
    new.push(plan.whole);
    *function.ops[plan.whole].to_mut() = length;
    let counter = function.counter(plan.whole);
    function.values[counter].range = None;
    let sum = function.result(plan.whole);
    replaced.insert(function.result(plan.addition), sum);

    // The loop stands where the later of the two stood, and before the addition.
    let mut backwards = function.regions[plan.region].ops.iter().rev().copied();
    let later = backwards.find(|&op| op == plan.rest || op == plan.whole);
    let later = later.expect("both loops stand in the region");
    if later != plan.whole {
        Cursor::before(function, plan.region, plan.whole).remove(function);
    }
    Cursor::before(function, plan.region, later).replace(function, new);
    function.retain_ops(plan.region, |_, op| op != plan.addition && op != plan.rest);
}

#[cfg(test)]
mod tests {
    use super::join_loops;
    use crate::testing::{check, check_same_outcomes, check_unchanged};
    use expect_test::expect;
    use ferrozyme_ir::interpret::Datum;

    fn program(mask: u64, gap: &str) -> String {
        format!(
            "func @dot(%x: ptr, %w: ptr, %n: i64, %k: i64) -> (f32) {{
               %whole = and i64 %n, {mask}
               %few = and i64 %n, 15
               %x1 = offset %x, {gap} * 4
               %w1 = offset %w, %whole * 4
               %a = for %i: i64 = 0 to %few step 1 with (%s: f32 = 0.0) {{
                 %p = offset %x1, %i * 4
                 %q = offset %w1, %i * 4
                 %u = load f32 %p align 4
                 %v = load f32 %q align 4
                 %t = fmul f32 %u, %v
                 %s1 = fadd f32 %s, %t
                 yield %s1
               }}
               %m = lshr i64 %n, 4
               %m1 = mul nsw nuw i64 %m, 16
               %b = for %j: i64 = 0 to %m1 step 1 with (%r: f32 = 0.0) {{
                 %p1 = offset %x, %j * 4
                 %q1 = offset %w, %j * 4
                 %u1 = load f32 %p1 align 4
                 %v1 = load f32 %q1 align 4
                 %t1 = fmul f32 %u1, %v1
                 %r1 = fadd f32 %r, %t1
                 yield %r1
               }}
               %c = fadd f32 %a, %b
               %d = fmul f32 %c, %c
               return %d
             }}"
        )
    }

    /// Sums of whole numbers, which have no order.
    #[test]
    fn results_stay_the_same() {
        let text = format!(
            "{}
             func @main(%n: i64) -> (f32) {{
               %x = alloc 400 align 4
               %w = alloc 400 align 4
               for %k: i64 = 0 to 100 step 1 {{
                 %f = sitofp i64 %k to f32
                 %g = fsub f32 50.0, %f
                 %p = offset %x, %k * 4
                 store f32 %f, %p align 4
                 %q = offset %w, %k * 4
                 store f32 %g, %q align 4
                 yield
               }}
               %s = call @dot(%x, %w, %n, 0)
               free %x
               free %w
               return %s
             }}",
            program((1 << 61) - 16, "%whole")
        );
        let lengths = [0, 1, 15, 16, 17, 31, 32, 47, 64, 99];
        let inputs = lengths.map(|length| [Datum::i64(length)]);
        let inputs: Vec<&[Datum]> = inputs.iter().map(|input| &input[..]).collect();
        check_same_outcomes(join_loops, &text, &inputs);
    }

    #[test]
    fn whole_parts_and_the_rest() {
        check(
            join_loops,
            &program((1 << 61) - 16, "%whole"),
            expect![[r#"
                func @dot(%x: ptr, %w: ptr, %n: i64, %k: i64) -> (f32) {
                  %whole = and i64 %n, 2305843009213693936
                  %few = and i64 %n, 15
                  %x1 = offset %x, %whole * 4
                  %w1 = offset %w, %whole * 4
                  %m = lshr i64 %n, 4
                  %m1 = mul nsw nuw i64 %m, 16
                  %b = for %j: i64 = 0 to %n step 1 with (%r: f32 = 0.0) {
                    %p1 = offset %x, %j * 4
                    %q1 = offset %w, %j * 4
                    %u1 = load f32 %p1 align 4
                    %v1 = load f32 %q1 align 4
                    %t1 = fmul f32 %u1, %v1
                    %r1 = fadd f32 %r, %t1
                    yield %r1
                  }
                  %d = fmul f32 %b, %b
                  return %d
                }
            "#]],
        );
    }

    #[test]
    fn loops_elsewhere_stay() {
        check_unchanged(join_loops, &program((1 << 61) - 16, "%k"));
        check_unchanged(join_loops, &program((1 << 40) - 16, "%whole"));
    }

    /// Both loops work on `n` masked, whatever else is in it; what is joined must, too.
    fn masked(mask: i64) -> String {
        format!(
            "func @f(%x: ptr, %n: i64) -> (f64) {{
               %whole = and i64 %n, {mask}
               %rest = and i64 %n, 1
               %y = offset %x, %whole * 8
               %b = for %i: i64 = 0 to %whole step 1 with (%s: f64 = 0.0) {{
                 %p = offset %x, %i * 8
                 %u = load f64 %p align 8
                 %s1 = fadd f64 %s, %u
                 yield %s1
               }}
               %a = for %j: i64 = 0 to %rest step 1 with (%t: f64 = 0.0) {{
                 %q = offset %y, %j * 8
                 %v = load f64 %q align 8
                 %t1 = fadd f64 %t, %v
                 yield %t1
               }}
               %r = fadd f64 %a, %b
               return %r
             }}"
        )
    }

    #[test]
    fn numbers_with_a_tag_are_no_lengths() {
        check(
            join_loops,
            &masked((1 << 62) - 2),
            expect![[r#"
                func @f(%x: ptr, %n: i64) -> (f64) {
                  %whole = and i64 %n, 4611686018427387902
                  %rest = and i64 %n, 1
                  %y = offset %x, %whole * 8
                  %0 = add nsw nuw i64 %rest, %whole
                  %b = for %i: i64 = 0 to %0 step 1 with (%s: f64 = 0.0) {
                    %p = offset %x, %i * 8
                    %u = load f64 %p align 8
                    %s1 = fadd f64 %s, %u
                    yield %s1
                  }
                  return %b
                }
            "#]],
        );
    }

    #[test]
    fn negative_numbers_still_have_a_rest() {
        check_unchanged(join_loops, &masked(-2));
    }
}
