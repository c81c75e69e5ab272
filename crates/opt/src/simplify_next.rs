//! Simplifies what a loop passes to its next iteration under the assumption that there is one.
//!
//! What the last iteration passes on is nobody's concern, unless the loop's result is used. Rust's `a..=b` increments its counter only where it is below `b`, since it must
//! not pass the largest number; where the loop goes on, it always does:
//!
//! ```text
//! %e = loop with (%i: i64 = 1) {                  %e = loop with (%i: i64 = 1) {
//!   %more = icmp slt i64 %i, %n                     %more = icmp slt i64 %i, %n
//!   %1 = zext i1 %more to i64                       %j = add i64 %i, 1
//!   %j = add i64 %i, %1                     →
//!   %in = icmp sle i64 %j, %n
//!   %c = select i1 %more, %in, 0
//!   again %c, %j                                    again %more, %j
//! }                                               }
//! ```
//!
//! Likewise the rest of a slice that `chunks` walks over shrinks by `umin(rest, size)`, which is `size` if the loop goes on, and that of `chunks_exact` by a choice between
//! `size` and nothing. After that these values are recurrences that [`count_loops`](crate::count_loops) knows.
//!
//! Parts of the condition that follow from the others are left out.

use crate::conditions::{Comparison, Truth, Truths, comparison, split_conjunction};
use crate::recurrence::step_of;
use ferrozyme_ir::entity::EntitySet;
use ferrozyme_ir::{
    Builder, Cursor, Flags, Function, IntPredicate, Op, OpView, Opcode, Region, Type, Value,
    all_ops,
};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Simplifies the carried values of loops in a function; returns the number of loops changed.
pub(crate) fn simplify_next(function: &mut Function) -> usize {
    let ops = all_ops(function);
    let mut used: EntitySet<Value> = EntitySet::new();
    for &op in &ops {
        for &operand in &function.ops[op].operands {
            used.insert(operand);
        }
    }
    let mut changed = 0;
    for op in ops {
        if function.ops[op].opcode == Opcode::Loop {
            changed += usize::from(simplify_loop(function, op, &used));
        }
    }
    changed
}

fn simplify_loop(function: &mut Function, op: Op, used: &EntitySet<Value>) -> bool {
    let body = function.ops[op].regions[0];
    let terminator = function.terminator(body);
    if function.ops[terminator].opcode != Opcode::Again {
        return false;
    }
    let condition = function.ops[terminator].condition();
    let truths = split_conjunction(function, (condition, true));
    let mut simplifier = Simplifier::new(function, op, truths);
    let mut changed = simplifier.remove_implied();
    if changed {
        let condition = simplifier.build_condition();
        *simplifier.function.ops[terminator].condition_mut() = condition;
    }
    let results = simplifier.function.ops[op].results.clone();
    for (index, &result) in results.iter().enumerate() {
        let ty = simplifier.function.ty(result);
        if used.contains(result) || ty.is_vector() || ty.is_float() {
            continue;
        }
        let next = simplifier.function.ops[terminator].values()[index];
        let simple = simplifier.simplify(next, MAX_DEPTH);
        if simple != next {
            simplifier.function.ops[terminator].values_mut()[index] = simple;
            changed = true;
        }
    }
    if changed {
        let scratch = simplifier.scratch;
        let made = function.take_ops(scratch);
        Cursor::before_terminator(function, body).insert_all(function, made);
    }
    changed
}

/// How many operations within each other are looked through.
const MAX_DEPTH: usize = 8;

/// Whether a comparison holds wherever another does.
fn implies(function: &Function, known: Comparison, asked: Comparison) -> bool {
    let swapped = |(predicate, a, b): Comparison| (predicate.swapped(), b, a);
    [known, swapped(known)].into_iter().any(|(known, a, b)| {
        [asked, swapped(asked)].into_iter().any(|(asked, c, d)| {
            use IntPredicate::*;
            // The next number after one that is below a limit does not pass it.
            let is_next =
                || step_of(function, a, c).is_some_and(|step| step.constant(function) == Some(1));
            d == b
                && (c == a && known.implies(asked)
                    || matches!((known, asked), (Slt, Sle) | (Ult, Ule)) && is_next())
        })
    })
}

/// Simplifies values at the end of a loop's body where something is known to hold.
struct Simplifier<'f> {
    function: &'f mut Function,
    /// What holds.
    truths: Truths,
    /// The operations of the body itself: their results are available at its end.
    inside: FxHashSet<Op>,
    /// Where operations are made, which go to the end of the body if one of them is used.
    scratch: Region,
    /// Values that were simplified already.
    simplified: FxHashMap<Value, Value>,
}

impl<'f> Simplifier<'f> {
    fn new(function: &'f mut Function, op: Op, truths: Truths) -> Simplifier<'f> {
        let body = function.ops[op].regions[0];
        let inside = function.regions[body].ops.iter().copied().collect();
        let scratch = function.new_region(&[]);
        Simplifier {
            function,
            truths,
            inside,
            scratch,
            simplified: FxHashMap::default(),
        }
    }

    /// Leaves out what follows from the rest of what holds; says whether anything was.
    fn remove_implied(&mut self) -> bool {
        let before = self.truths.len();
        let mut index = 0;
        while index < self.truths.len() && self.truths.len() > 1 {
            let truth = self.truths.remove(index);
            self.simplified.clear();
            let follows = self.follows(truth);
            if !follows {
                self.truths.insert(index, truth);
                index += 1;
            }
        }
        // The scratch operations of the search are removed.
        self.simplified.clear();
        self.function.regions[self.scratch].ops.clear();
        self.truths.len() < before
    }

    fn follows(&mut self, (condition, wanted): Truth) -> bool {
        if self.truth_of(condition) == Some(wanted) {
            return true;
        }
        comparison(self.function, (condition, wanted)).is_some_and(|(predicate, a, b)| {
            let a = self.simplify(a, MAX_DEPTH);
            let b = self.simplify(b, MAX_DEPTH);
            self.holds((predicate, a, b))
        })
    }

    /// The conjunction of what holds.
    fn build_condition(&mut self) -> Value {
        let truths = std::mem::take(&mut self.truths);
        let mut builder = Builder::new(self.function, self.scratch);
        let conditions = truths.iter().map(|&(condition, wanted)| match wanted {
            true => condition,
            false => match comparison(builder.function, (condition, false)) {
                Some((predicate, a, b)) => builder.icmp(predicate, a, b),
                None => {
                    let one = builder.function.int(Type::I1, 1);
                    builder.binary(Opcode::Xor, condition, one)
                }
            },
        });
        let conditions: SmallVec<[Value; 4]> = conditions.collect();
        let last = *conditions
            .last()
            .expect("a condition that nothing follows from stays");
        let no = builder.function.int(Type::I1, 0);
        let all = conditions
            .iter()
            .rev()
            .skip(1)
            .fold(last, |rest, &first| builder.select(first, rest, no));
        self.truths = truths;
        all
    }

    /// Whether a condition holds, where that is known.
    fn truth_of(&self, condition: Value) -> Option<bool> {
        if let Some(bit) = self.function.int_of(condition) {
            return Some(bit != 0);
        }
        if let Some(&(_, holds)) = self.truths.iter().find(|truth| truth.0 == condition) {
            return Some(holds);
        }
        let asked = |wanted| comparison(self.function, (condition, wanted));
        match (asked(true), asked(false)) {
            (Some(asked), _) if self.holds(asked) => Some(true),
            (_, Some(asked)) if self.holds(asked) => Some(false),
            _ => None,
        }
    }

    /// Whether a comparison is known to hold.
    fn holds(&self, asked: Comparison) -> bool {
        self.truths.iter().any(|&truth| {
            comparison(self.function, truth)
                .is_some_and(|known| implies(self.function, known, asked))
        })
    }

    /// The simplified value under the assumptions.
    fn simplify(&mut self, value: Value, depth: usize) -> Value {
        if let Some(&simple) = self.simplified.get(&value) {
            return simple;
        }
        let simple = self.compute(value, depth).unwrap_or(value);
        self.simplified.insert(value, simple);
        simple
    }

    fn compute(&mut self, value: Value, depth: usize) -> Option<Value> {
        let (op, _) = self.function.def_op(value)?;
        let ty = self.function.ty(value);
        if depth == 0 || !self.inside.contains(&op) || ty.is_vector() {
            return None;
        }
        let data = self.function.ops[op].clone();
        let truth = |this: &mut Self, condition: Value| {
            let condition = this.simplify(condition, depth - 1);
            this.function.int_of(condition).map(|bit| bit != 0)
        };
        match data.view() {
            _ if ty == Type::I1
                && let Some(holds) = self.truth_of(value) =>
            {
                Some(self.function.int(ty, i128::from(holds)))
            }
            OpView::Select {
                condition,
                then,
                otherwise,
            } => {
                let chosen = match truth(self, condition)? {
                    true => then,
                    false => otherwise,
                };
                Some(self.simplify(chosen, depth - 1))
            }
            OpView::Cast(Opcode::Zext, bit) if self.function.ty(bit) == Type::I1 => {
                let bit = truth(self, bit)?;
                Some(self.function.int(ty, i128::from(bit)))
            }
            OpView::Binary(
                opcode @ (Opcode::Umin | Opcode::Umax | Opcode::Smin | Opcode::Smax),
                a,
                b,
            ) => {
                let below = match opcode {
                    Opcode::Umin | Opcode::Umax => IntPredicate::Ule,
                    _ => IntPredicate::Sle,
                };
                let is_least = matches!(opcode, Opcode::Umin | Opcode::Smin);
                let (least, most) = match (self.holds((below, a, b)), self.holds((below, b, a))) {
                    (true, _) => (a, b),
                    (_, true) => (b, a),
                    _ => return None,
                };
                Some(self.simplify(if is_least { least } else { most }, depth - 1))
            }
            OpView::Binary(Opcode::Add | Opcode::Sub, ..) | OpView::Offset { .. } => {
                let simple = data.operands.iter();
                let simple: SmallVec<[Value; 4]> = simple
                    .map(|&operand| self.simplify(operand, depth - 1))
                    .collect();
                if simple == data.operands {
                    return None;
                }
                let mut builder = Builder::new(self.function, self.scratch);
                builder.location = data.location;
                let made = builder.op(data.opcode, &simple, data.payload, &[ty]);
                // Flags about overflow hold only if there is a next iteration.
                if data.opcode == Opcode::Offset {
                    self.function.ops[made].flags = data.flags.intersection(Flags::INBOUNDS);
                }
                Some(self.function.result(made))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::count_loops::count_loops;
    use crate::simplify::simplify;
    use crate::testing::{check, check_same_results, check_unchanged};
    use expect_test::expect;
    use ferrozyme_ir::interpret::Datum;
    use ferrozyme_ir::{FunctionId, Module};

    fn simplify_and_count(module: &mut Module, id: FunctionId) -> usize {
        simplify(module, id) + count_loops(module, id)
    }

    /// `for i in 1..=n`, as it comes from Rust.
    const INCLUSIVE: &str = "func @main(%n: i64) -> (i64) {
       %some = icmp sgt i64 %n, 0
       %r = if %some -> (i64) {
         %s, %e = loop with (%a: i64 = 0, %i: i64 = 1) {
           %b = mul i64 %a, 3
           %a1 = add i64 %b, %i
           %done = icmp sge i64 %i, %n
           %more = icmp slt i64 %i, %n
           %step = zext i1 %more to i64
           %j = add nsw nuw i64 %i, %step
           %past = icmp sgt i64 %j, %n
           %or = select i1 %done, true, %past
           %again = xor i1 %or, true
           again %again, %a1, %j
         }
         yield %s
       } else {
         yield -1
       }
       return %r
     }";

    #[test]
    fn ranges_with_their_end() {
        check(
            count_loops,
            INCLUSIVE,
            expect![[r#"
                func @main(%n: i64) -> (i64) {
                  %some = icmp sgt i64 %n, 0
                  %r = if %some -> (i64) {
                    %s, %e = for %0: i64 = 0 to %n step 1 with (%a: i64 = 0, %i: i64 = 1) {
                      %b = mul i64 %a, 3
                      %a1 = add i64 %b, %i
                      %done = icmp sge i64 %i, %n
                      %more = icmp slt i64 %i, %n
                      %step = zext i1 %more to i64
                      %j = add nsw nuw i64 %i, %step
                      %past = icmp sgt i64 %j, %n
                      %or = select i1 %done, 1, %past
                      %again = xor i1 %or, 1
                      %1 = icmp slt i64 %i, %n
                      %2 = add i64 %i, 1
                      yield %a1, %2
                    }
                    yield %s
                  } else {
                    yield -1
                  }
                  return %r
                }
            "#]],
        );
        let inputs = [-3, 0, 1, 2, 9].map(|n| [Datum::i64(n)]);
        let inputs = inputs.each_ref().map(|input| &input[..]);
        check_same_results(count_loops, INCLUSIVE, &inputs);
    }

    /// `chunks`: the rest, and where it starts.
    const CHUNKS: &str = "func @main(%n: i64, %size: i64) -> (i64, i64) {
       %s, %k, %e, %f = loop with (%a: i64 = 0, %b: i64 = 0, %rest: i64 = %n, %at: i64 = 100) {
         %m = umin i64 %rest, %size
         %x = mul i64 %at, %m
         %a1 = add i64 %a, %x
         %b1 = add i64 %b, 1
         %less = sub nsw nuw i64 %rest, %m
         %next = add i64 %at, %m
         %c = icmp ne i64 %rest, %m
         again %c, %a1, %b1, %less, %next
       }
       return %s, %k
     }";

    #[test]
    fn chunks() {
        check(
            simplify_and_count,
            CHUNKS,
            expect![[r#"
                func @main(%n: i64, %size: i64) -> (i64, i64) {
                  %0 = umax i64 %size, 1
                  %1 = umax i64 %n, 1
                  %2 = add i64 %1, -1
                  %3 = udiv i64 %2, %0
                  %4 = add i64 %3, 1
                  %s, %k, %e, %f = for %5: i64 = 0 to %4 step 1 with (%a: i64 = 0, %b: i64 = 0, %rest: i64 = %n, %at: i64 = 100) {
                    %m = umin i64 %rest, %size
                    %x = mul i64 %at, %m
                    %a1 = add i64 %a, %x
                    %b1 = add i64 %b, 1
                    %less = sub nsw nuw i64 %rest, %m
                    %next = add i64 %at, %m
                    %c = icmp ugt i64 %rest, %size
                    %6 = sub i64 %rest, %size
                    %7 = add i64 %at, %size
                    yield %a1, %b1, %6, %7
                  }
                  return %s, %k
                }
            "#]],
        );
        let inputs = [(1, 1), (1, 5), (5, 5), (6, 5), (10, 5), (11, 5), (0, 3)];
        let inputs = inputs.map(|(n, size)| [Datum::i64(n), Datum::i64(size)]);
        let inputs: Vec<&[Datum]> = inputs.iter().map(|input| &input[..]).collect();
        check_same_results(simplify_and_count, CHUNKS, &inputs);
    }

    /// `chunks_exact`, unoptimised.
    const CHUNKS_EXACT: &str = "func @main(%n: i64, %size: i64) -> (i64, i64) {
       %s, %k, %e, %f = loop with (%a: i64 = 0, %b: i64 = 0, %rest: i64 = %n, %at: i64 = 100) {
         %x = mul i64 %at, %size
         %a1 = add i64 %a, %x
         %b1 = add i64 %b, 1
         %done = icmp ugt i64 %size, %rest
         %m = select i64 %done, 0, %size
         %less = sub nsw nuw i64 %rest, %m
         %next = add i64 %at, %m
         %c = icmp ule i64 %size, %rest
         again %c, %a1, %b1, %less, %next
       }
       return %s, %k
     }";

    #[test]
    fn exact_chunks() {
        check(
            count_loops,
            CHUNKS_EXACT,
            expect![[r#"
            func @main(%n: i64, %size: i64) -> (i64, i64) {
              %0 = umax i64 %size, 1
              %1 = udiv i64 %n, %0
              %2 = add i64 %1, 1
              %s, %k, %e, %f = for %3: i64 = 0 to %2 step 1 with (%a: i64 = 0, %b: i64 = 0, %rest: i64 = %n, %at: i64 = 100) {
                %x = mul i64 %at, %size
                %a1 = add i64 %a, %x
                %b1 = add i64 %b, 1
                %done = icmp ugt i64 %size, %rest
                %m = select i64 %done, 0, %size
                %less = sub nsw nuw i64 %rest, %m
                %next = add i64 %at, %m
                %c = icmp ule i64 %size, %rest
                %4 = sub i64 %rest, %size
                %5 = add i64 %at, %size
                yield %a1, %b1, %4, %5
              }
              return %s, %k
            }
        "#]],
        );
        let inputs = [
            (1, 1),
            (1, 5),
            (5, 5),
            (6, 5),
            (10, 5),
            (11, 5),
            (0, 3),
            (0, 1),
        ];
        let inputs = inputs.map(|(n, size)| [Datum::i64(n), Datum::i64(size)]);
        let inputs: Vec<&[Datum]> = inputs.iter().map(|input| &input[..]).collect();
        check_same_results(count_loops, CHUNKS_EXACT, &inputs);
        // Another condition than the one that decides by how much it grows.
        check_unchanged(
            count_loops,
            &CHUNKS_EXACT.replace("ugt i64 %size, %rest", "ugt i64 %size, %at"),
        );
    }

    /// A value that is used after the loop is that of the last iteration.
    #[test]
    fn last_values_that_are_used_are_the_same() {
        let inputs = [-3, 0, 1, 2, 9].map(|n| [Datum::i64(n)]);
        let inputs = inputs.each_ref().map(|input| &input[..]);
        let inclusive = INCLUSIVE.replace("yield %s", "yield %e");
        check_same_results(simplify_and_count, &inclusive, &inputs);
        let inputs = [(1, 1), (1, 5), (5, 5), (6, 5), (0, 3)];
        let inputs = inputs.map(|(n, size)| [Datum::i64(n), Datum::i64(size)]);
        let inputs = inputs.each_ref().map(|input| &input[..]);
        let chunks = CHUNKS.replace("return %s, %k", "return %s, %e");
        check_same_results(simplify_and_count, &chunks, &inputs);
    }

    /// Only what follows from the rest of the condition is left out of it.
    #[test]
    fn other_conditions_are_kept() {
        let inputs = [-3, 0, 1, 2, 9, 20].map(|n| [Datum::i64(n)]);
        let inputs = inputs.each_ref().map(|input| &input[..]);
        for limit in ["7", "%a", "-1"] {
            let text =
                INCLUSIVE.replace("icmp sgt i64 %j, %n", &format!("icmp sgt i64 %j, {limit}"));
            check_same_results(simplify_and_count, &text, &inputs);
        }
        check_unchanged(
            count_loops,
            &INCLUSIVE.replace("icmp slt i64 %i, %n", "icmp slt i64 %i, 5"),
        );
        check_unchanged(
            count_loops,
            &CHUNKS.replace("icmp ne i64 %rest, %m", "icmp ne i64 %rest, %b"),
        );
    }
}
