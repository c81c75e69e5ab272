//! Makes carried values grow evenly where they only seem not to: what a loop hands on in its last turn does not matter.
//!
//! ```text
//! %e = loop with (%i: i64 = 1) {                  %e = loop with (%i: i64 = 1) {
//!   …                                               …
//!   %more = icmp slt i64 %i, %n                     %more = icmp slt i64 %i, %n
//!   %1 = zext i1 %more to i64                       %j = add nsw nuw i64 %i, 1
//!   %j = add i64 %i, %1                     →
//!   %in = icmp sle i64 %j, %n
//!   %c = select i1 %more, %in, 0
//!   again %c, %j                                    again %more, %j
//! }                                               }
//! ```
//!
//! So grows the counter of Rust's `a..=b`, which must not pass the largest number. The rest of a slice that `chunks` has still to give
//! shrinks by the smaller of itself and the size of a chunk, which is the latter in all turns but the last:
//!
//! ```text
//!   %m = umin i64 %rest, %size                      %m = umin i64 %rest, %size
//!   %less = sub i64 %rest, %m                       %less = sub i64 %rest, %size
//!   %next = offset %p, %m * 8               →       %next = offset %p, %size * 8
//!   %c = icmp ne i64 %rest, %m                      %c = icmp ugt i64 %rest, %size
//!   again %c, %less, %next                          again %c, %less, %next
//! ```
//!
//! And what `chunks_exact` has still to give shrinks by the size of a chunk or, at the end, by nothing:
//!
//! ```text
//!   %done = icmp ult i64 %rest, %size               %done = icmp ult i64 %rest, %size
//!   %m = select i64 %done, 0, %size                 %m = select i64 %done, 0, %size
//!   %less = sub i64 %rest, %m               →       %less = sub i64 %rest, %size
//!   %c = icmp uge i64 %rest, %size                  %c = icmp uge i64 %rest, %size
//!   again %c, %less                                 again %c, %less
//! ```
//!
//! It is done only where nobody uses the last values of what changes so.

use crate::count_loops::swap;
use ferrozyme_ir::entity::EntitySet;
use ferrozyme_ir::{
    Flags, Function, IntPredicate, Op, OpData, Opcode, Payload, Type, Value, all_ops,
};
use smallvec::SmallVec;

/// Makes growth even; gives the number of loops changed.
pub(crate) fn make_growth_regular(function: &mut Function) -> usize {
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
            changed += usize::from(change_loop(function, op, &used));
        }
    }
    changed
}

/// An amount that is something simpler in every turn but the last.
struct Amount {
    /// What is added or subtracted.
    value: Value,
    /// What it is if the loop goes on.
    simply: Value,
    /// Whether it goes on.
    goes_on: GoesOn,
}

enum GoesOn {
    /// This condition.
    If(Value),
    /// Where the first is larger than the second, without sign.
    Above(Value, Value),
}

fn change_loop(function: &mut Function, op: Op, used: &EntitySet<Value>) -> bool {
    let body = function.ops[op].regions[0];
    let terminator = function.terminator(body);
    if function.ops[terminator].opcode != Opcode::Again {
        return false;
    }
    let condition = function.ops[terminator].operands[0];
    let Some(amount) = find_amount(function, op, condition) else {
        return false;
    };
    // Everything that grows by the amount, and nothing that grows by it may be used afterwards.
    let args = function.regions[body].args.clone();
    let next: SmallVec<[Value; 8]> = SmallVec::from_slice(&function.ops[terminator].operands[1..]);
    let grows: SmallVec<[usize; 4]> = (0..args.len())
        .filter(|&index| growth_by(function, args[index], next[index], amount.value).is_some())
        .collect();
    let results = &function.ops[op].results;
    if grows.is_empty() || grows.iter().any(|&index| used.contains(results[index])) {
        return false;
    }
    for index in grows {
        let Some(mut data) = growth_by(function, args[index], next[index], amount.value) else {
            continue;
        };
        data.operands[1] = amount.simply;
        let ty = function.ty(next[index]);
        let evenly = insert_before(function, terminator, body, data, ty);
        function.ops[terminator].operands[1 + index] = evenly;
    }
    let condition = match amount.goes_on {
        GoesOn::If(condition) => condition,
        GoesOn::Above(a, b) => {
            let data = plain(
                Opcode::Icmp,
                &[a, b],
                Payload::IntPredicate(IntPredicate::Ugt),
            );
            insert_before(function, terminator, body, data, Type::I1)
        }
    };
    function.ops[terminator].operands[0] = condition;
    true
}

fn insert_before(
    function: &mut Function,
    terminator: Op,
    body: ferrozyme_ir::Region,
    mut data: OpData,
    ty: Type,
) -> Value {
    data.location = function.ops[terminator].location;
    let op = function.new_op(data, &[ty]);
    let position = function.regions[body].ops.len() - 1;
    function.regions[body].ops.insert(position, op);
    function.result(op)
}

fn plain(opcode: Opcode, operands: &[Value], payload: Payload) -> OpData {
    OpData {
        opcode,
        operands: SmallVec::from_slice(operands),
        results: SmallVec::new(),
        regions: SmallVec::new(),
        payload,
        flags: Flags::NONE,
        location: None,
    }
}

/// The operation by which a carried value becomes its next, if it adds, subtracts or moves by this amount. What it
/// promises of overflow holds for the simpler amount only as long as the loop goes on, and is forgotten but for `inbounds`.
fn growth_by(function: &Function, arg: Value, next: Value, amount: Value) -> Option<OpData> {
    let (op, _) = function.def_op(next)?;
    let data = &function.ops[op];
    let grows = matches!(data.opcode, Opcode::Add | Opcode::Sub | Opcode::Offset);
    if !grows || data.operands[0] != arg || data.operands[1] != amount {
        return None;
    }
    let mut data = plain(data.opcode, &data.operands, data.payload.clone());
    if function
        .def_op(next)
        .is_some_and(|(op, _)| function.ops[op].opcode == Opcode::Offset)
    {
        data.flags = function.ops[op].flags.intersection(Flags::INBOUNDS);
    }
    Some(data)
}

fn find_amount(function: &mut Function, op: Op, condition: Value) -> Option<Amount> {
    smaller_of_rest(function, op, condition)
        .or_else(|| one_if_more(function, op, condition))
        .or_else(|| size_if_more(function, op, condition))
}

/// A size from outside if there is more and nothing otherwise, where the loop goes on only if there is more.
fn size_if_more(function: &Function, op: Op, condition: Value) -> Option<Amount> {
    let mut parts = SmallVec::new();
    conjunction(function, condition, true, &mut parts, 8);
    let body = function.ops[op].regions[0];
    let next = &function.ops[function.terminator(body)].operands[1..];
    let args = &function.regions[body].args;
    args.iter().zip(next).find_map(|(&arg, &next)| {
        let (grow, _) = function.def_op(next)?;
        let grow = &function.ops[grow];
        let &[first, amount] = &grow.operands[..] else {
            return None;
        };
        let (chosen, _) = function.def_op(amount)?;
        let chosen = &function.ops[chosen];
        let &[more, then, otherwise] = &chosen.operands[..] else {
            return None;
        };
        let zero = |value: Value| function.int_of(value) == Some(0);
        let (size, wanted) = match (zero(then), zero(otherwise)) {
            (false, true) => (then, true),
            (true, false) => (otherwise, false),
            _ => return None,
        };
        let asked = || {
            let mut parts = parts.iter();
            parts.any(|&(part, holds)| is_same_truth(function, (part, holds), (more, wanted)))
        };
        let fits = first == arg
            && chosen.opcode == Opcode::Select
            && is_outside(function, op, size)
            && asked();
        fits.then_some(Amount {
            value: amount,
            simply: size,
            goes_on: GoesOn::If(condition),
        })
    })
}

/// The smaller of what is left and a size from outside, where the loop goes on as long as something is left.
fn smaller_of_rest(function: &Function, op: Op, condition: Value) -> Option<Amount> {
    let (compare, _) = function.def_op(condition)?;
    let compare = &function.ops[compare];
    if compare.payload != Payload::IntPredicate(IntPredicate::Ne) {
        return None;
    }
    let (a, b) = (compare.operands[0], compare.operands[1]);
    let is_rest = |rest: Value, amount: Value| {
        let (least, _) = function.def_op(amount)?;
        let least = &function.ops[least];
        let size = match least.operands[..] {
            [first, size] if first == rest => size,
            [size, second] if second == rest => size,
            _ => return None,
        };
        let args = &function.regions[function.ops[op].regions[0]].args;
        (least.opcode == Opcode::Umin && args.contains(&rest) && is_outside(function, op, size))
            .then_some(Amount {
                value: amount,
                simply: size,
                goes_on: GoesOn::Above(rest, size),
            })
    };
    // The rest is compared with the amount itself, or what is left of it with zero.
    if function.int_of(b) == Some(0)
        && let Some((minus, _)) = function.def_op(a)
        && function.ops[minus].opcode == Opcode::Sub
    {
        return is_rest(
            function.ops[minus].operands[0],
            function.ops[minus].operands[1],
        );
    }
    is_rest(a, b).or_else(|| is_rest(b, a))
}

/// One if there is more, where the loop goes on only if there is more.
fn one_if_more(function: &mut Function, op: Op, condition: Value) -> Option<Amount> {
    let mut parts = SmallVec::new();
    conjunction(function, condition, true, &mut parts, 8);
    let args = function.regions[function.ops[op].regions[0]].args.clone();
    let terminator = function.terminator(function.ops[op].regions[0]);
    let next: SmallVec<[Value; 8]> = SmallVec::from_slice(&function.ops[terminator].operands[1..]);
    for (&arg, &next) in args.iter().zip(&next) {
        let Some((grow, _)) = function.def_op(next) else {
            continue;
        };
        let data = &function.ops[grow];
        if data.opcode != Opcode::Add || data.operands[0] != arg {
            continue;
        }
        let amount = data.operands[1];
        let Some(more) = truth_behind(function, amount) else {
            continue;
        };
        let Some(limit) = limit_above(function, more, arg) else {
            continue;
        };
        // All else that the condition asks must follow: that the next value does not pass the limit.
        let mut asked = false;
        let follows = parts.iter().all(|&(part, holds)| {
            if is_same_truth(function, (part, holds), (more, true)) {
                asked = true;
                return true;
            }
            stays_within(function, part, holds, next, limit)
        });
        if follows && asked {
            let ty = function.ty(arg);
            let one = function.int(ty, 1);
            return Some(Amount {
                value: amount,
                simply: one,
                goes_on: GoesOn::If(more),
            });
        }
    }
    None
}

/// The truth value that an integer of 0 or 1 stands for.
fn truth_behind(function: &Function, value: Value) -> Option<Value> {
    let (op, _) = function.def_op(value)?;
    let data = &function.ops[op];
    let truth = *data.operands.first()?;
    (data.opcode == Opcode::Zext && function.ty(truth) == Type::I1).then_some(truth)
}

/// What a value is below, if that is what a condition says; and whether signs count.
fn limit_above(function: &Function, condition: Value, value: Value) -> Option<(Value, bool)> {
    let (op, _) = function.def_op(condition)?;
    let data = &function.ops[op];
    let Payload::IntPredicate(predicate) = data.payload else {
        return None;
    };
    let (a, b) = (data.operands[0], data.operands[1]);
    match predicate {
        IntPredicate::Slt if a == value => Some((b, true)),
        IntPredicate::Ult if a == value => Some((b, false)),
        IntPredicate::Sgt if b == value => Some((a, true)),
        IntPredicate::Ugt if b == value => Some((a, false)),
        _ => None,
    }
}

/// Whether it is the same that two conditions are as wanted.
fn is_same_truth(function: &Function, one: (Value, bool), other: (Value, bool)) -> bool {
    if one.0 == other.0 {
        return one.1 == other.1;
    }
    let compare = |(value, wanted): (Value, bool)| {
        let (op, _) = function.def_op(value)?;
        let data = &function.ops[op];
        let Payload::IntPredicate(predicate) = data.payload else {
            return None;
        };
        let predicate = if wanted {
            predicate
        } else {
            opposite(predicate)
        };
        Some((predicate, data.operands[0], data.operands[1]))
    };
    let (Some((mine, a, b)), Some((theirs, c, d))) = (compare(one), compare(other)) else {
        return false;
    };
    (mine, a, b) == (theirs, c, d) || (mine, a, b) == (swap(theirs), d, c)
}

/// Whether a part of a condition only says that the next value does not pass the limit.
fn stays_within(
    function: &Function,
    part: Value,
    holds: bool,
    next: Value,
    (limit, signed): (Value, bool),
) -> bool {
    let Some((op, _)) = function.def_op(part) else {
        return false;
    };
    let data = &function.ops[op];
    let Payload::IntPredicate(predicate) = data.payload else {
        return false;
    };
    let predicate = if holds {
        predicate
    } else {
        opposite(predicate)
    };
    let (a, b) = (data.operands[0], data.operands[1]);
    match predicate {
        IntPredicate::Sle => signed && (a, b) == (next, limit),
        IntPredicate::Ule => !signed && (a, b) == (next, limit),
        IntPredicate::Sge => signed && (b, a) == (next, limit),
        IntPredicate::Uge => !signed && (b, a) == (next, limit),
        _ => false,
    }
}

/// The parts that must all hold, or must all not hold, for a condition to be as wanted.
fn conjunction(
    function: &Function,
    condition: Value,
    wanted: bool,
    parts: &mut SmallVec<[(Value, bool); 4]>,
    budget: usize,
) {
    let truth = |value: Value| function.int_of(value).map(|bit| bit != 0);
    let split = function.def_op(condition).and_then(|(op, _)| {
        let data = &function.ops[op];
        let operand = |index: usize| data.operands[index];
        match data.opcode {
            _ if budget == 0 => None,
            Opcode::Xor if truth(operand(1)) == Some(true) => Some((operand(0), None, !wanted)),
            Opcode::And if wanted => Some((operand(0), Some(operand(1)), true)),
            Opcode::Or if !wanted => Some((operand(0), Some(operand(1)), false)),
            Opcode::Select if wanted && truth(operand(2)) == Some(false) => {
                Some((operand(0), Some(operand(1)), true))
            }
            Opcode::Select if !wanted && truth(operand(1)) == Some(true) => {
                Some((operand(0), Some(operand(2)), false))
            }
            _ => None,
        }
    });
    match split {
        Some((first, second, wanted)) => {
            conjunction(function, first, wanted, parts, budget - 1);
            if let Some(second) = second {
                conjunction(function, second, wanted, parts, budget - 1);
            }
        }
        None => parts.push((condition, wanted)),
    }
}

pub(crate) fn opposite(predicate: IntPredicate) -> IntPredicate {
    use IntPredicate::*;
    match predicate {
        Eq => Ne,
        Ne => Eq,
        Slt => Sge,
        Sge => Slt,
        Sgt => Sle,
        Sle => Sgt,
        Ult => Uge,
        Uge => Ult,
        Ugt => Ule,
        Ule => Ugt,
    }
}

/// Whether a value is not defined inside a loop.
fn is_outside(function: &Function, op: Op, value: Value) -> bool {
    if function.is_constant(value) {
        return true;
    }
    let body = function.ops[op].regions[0];
    let mut inside = false;
    ferrozyme_ir::for_each_op(function, body, &mut |region, inner| {
        inside |= function.ops[inner].results.contains(&value);
        inside |= function.regions[region].args.contains(&value);
    });
    !inside && !function.regions[body].args.contains(&value)
}

#[cfg(test)]
mod tests {
    use crate::count_loops::count_loops;
    use crate::testing::{check, check_same_results, check_unchanged};
    use expect_test::expect;
    use ferrozyme_ir::interpret::Datum;

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
                  %1 = add i64 %i, 1
                  yield %a1, %1
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
            count_loops,
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
                %c = icmp ne i64 %rest, %m
                %6 = sub i64 %rest, %size
                %7 = add i64 %at, %size
                %8 = icmp ugt i64 %rest, %size
                yield %a1, %b1, %6, %7
              }
              return %s, %k
            }
        "#]],
        );
        let inputs = [(1, 1), (1, 5), (5, 5), (6, 5), (10, 5), (11, 5), (0, 3)];
        let inputs = inputs.map(|(n, size)| [Datum::i64(n), Datum::i64(size)]);
        let inputs: Vec<&[Datum]> = inputs.iter().map(|input| &input[..]).collect();
        check_same_results(count_loops, CHUNKS, &inputs);
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

    #[test]
    fn last_values_that_are_used_stay() {
        check_unchanged(count_loops, &INCLUSIVE.replace("yield %s", "yield %e"));
        check_unchanged(
            count_loops,
            &CHUNKS.replace("return %s, %k", "return %s, %e"),
        );
    }

    #[test]
    fn other_conditions_stay() {
        check_unchanged(
            count_loops,
            &INCLUSIVE.replace("icmp sgt i64 %j, %n", "icmp sgt i64 %j, 7"),
        );
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
