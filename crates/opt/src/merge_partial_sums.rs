//! Makes one sum of several that a loop runs side by side, if they only meet in one sum behind it.
//!
//! ```text
//! %a, %b = for %i: i64 = 0 to %n step 1 with (%s: f64 = 0.0, %t: f64 = 0.0) {
//!   %s1 = fadd f64 %s, %x
//!   %t1 = fadd f64 %t, %y
//!   yield %s1, %t1
//! }
//! %r = fadd f64 %a, %b
//! ```
//! becomes
//! ```text
//! %a = for %i: i64 = 0 to %n step 1 with (%s: f64 = 0.0) {
//!   %s1 = fadd f64 %s, %x
//!   %s2 = fadd f64 %s1, %y
//!   yield %s2
//! }
//! ```
//!
//! People write partial sums so that compilers may use vectors, and compilers unroll the loop over them. Sums that may be reordered need no such help, and
//! their derivatives are better off without: of one sum it is plain that all terms have the same adjoint.
//!
//! The order of the additions changes, so this is for programs that gave leave to (design decision D10). A partial sum starts at zero, nothing
//! looks at it until the loop is over, and then it is added up, with the others, once.

use crate::carried::{first_carried, first_initial, remove_results, yielded};
use crate::with_function::with_function;
use ferrozyme_ir::{
    Function, FunctionId, Module, Op, Opcode, Region, Structure, Value, for_each_op, returning_ops,
};
use rustc_hash::FxHashMap;

/// Merges partial sums; returns how many were merged.
pub fn merge_partial_sums(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |_, function| {
        if function.body.is_none() {
            return 0;
        }
        let loops: Vec<Op> = returning_ops(function)
            .into_iter()
            .filter(|&op| {
                let data = &function.ops[op];
                data.opcode == Opcode::For && data.results.len() >= 2
            })
            .collect();
        if loops.is_empty() {
            return 0;
        }
        let mut uses = Uses::of(function);
        let structure = Structure::of(function);
        loops
            .into_iter()
            .map(|op| merge(function, &structure, &mut uses, op))
            .sum()
    })
}

/// The use of each value that is used once.
struct Uses {
    single: FxHashMap<Value, Option<Op>>,
}

impl Uses {
    fn of(function: &Function) -> Uses {
        let mut single: FxHashMap<Value, Option<Op>> = FxHashMap::default();
        for_each_op(function, function.body(), &mut |_, op| {
            for &operand in &function.ops[op].operands {
                single
                    .entry(operand)
                    .and_modify(|user| *user = None)
                    .or_insert(Some(op));
            }
        });
        Uses { single }
    }

    /// The only operation that uses a value.
    fn only(&self, value: Value) -> Option<Op> {
        self.single.get(&value).copied().flatten()
    }
}

/// Merges the partial sums of one loop.
fn merge(function: &mut Function, structure: &Structure, uses: &mut Uses, op: Op) -> usize {
    let mut groups: FxHashMap<Op, usize> = FxHashMap::default();
    let sums: Vec<Option<Op>> = (0..function.ops[op].results.len())
        .map(|index| total_of(function, structure, uses, op, index))
        .collect();
    let mut keep = vec![true; sums.len()];
    for (index, total) in sums.into_iter().enumerate() {
        let Some(total) = total else { continue };
        match groups.get(&total) {
            None => drop(groups.insert(total, index)),
            Some(&first) => {
                add_to_another(function, op, index, first);
                leave_out(function, uses, function.ops[op].results[index]);
                keep[index] = false;
            }
        }
    }
    let merged = keep.iter().filter(|&&keep| !keep).count();
    if merged > 0 {
        remove_results(function, op, &keep);
    }
    merged
}

/// The last addition of the sum that a partial sum ends up in; none if it is not such a sum.
fn total_of(
    function: &Function,
    structure: &Structure,
    uses: &Uses,
    op: Op,
    index: usize,
) -> Option<Op> {
    let data = &function.ops[op];
    let body = data.regions[0];
    let start = data.operands[first_initial(data.opcode) + index];
    let carried = function.regions[body].args[first_carried(data.opcode) + index];
    let sum = yielded(function, body)?[index];
    let (addition, _) = function.def_op(sum)?;
    let is_sum = function.float_of(start) == Some(0.0)
        && uses.only(carried) == Some(addition)
        && uses.only(sum) == Some(function.terminator(body))
        && structure.region_of(addition) == Some(body)
        && addend(function, addition, carried).is_some();
    if !is_sum {
        return None;
    }
    let region: Region = structure.region_of(op)?;
    let mut value = data.results[index];
    let mut last = None;
    while let Some(user) = uses.only(value)
        && function.ops[user].opcode == Opcode::Fadd
        && structure.region_of(user) == Some(region)
    {
        last = Some(user);
        value = function.ops[user].results[0];
    }
    last
}

/// Which operand of an addition is the sum so far.
fn addend(function: &Function, addition: Op, sum: Value) -> Option<usize> {
    let data = &function.ops[addition];
    match data.opcode {
        Opcode::Fadd => data.operands.iter().position(|&operand| operand == sum),
        Opcode::Fma => (data.operands[2] == sum).then_some(2),
        _ => None,
    }
}

/// What one partial sum adds goes to another one, behind what is added there.
fn add_to_another(function: &mut Function, op: Op, index: usize, first: usize) {
    let data = &function.ops[op];
    let body = data.regions[0];
    let carried = function.regions[body].args[first_carried(data.opcode) + index];
    let end = function.terminator(body);
    let (sum, so_far) = (
        function.ops[end].operands[index],
        function.ops[end].operands[first],
    );
    if let Some((addition, _)) = function.def_op(sum)
        && let Some(place) = addend(function, addition, carried)
    {
        function.ops[addition].operands[place] = so_far;
        // What is added there may stand behind this addition.
        let ops = &mut function.regions[body].ops;
        ops.retain(|&other| other != addition);
        let last = ops.len() - 1;
        ops.insert(last, addition);
        function.ops[end].operands[first] = sum;
        // Its own place is about to go.
        function.ops[end].operands[index] = carried;
    }
}

/// Takes a value out of the sum that it is added to.
fn leave_out(function: &mut Function, uses: &mut Uses, value: Value) {
    let Some(addition) = uses.only(value) else {
        return;
    };
    let data = &function.ops[addition];
    let other = if data.operands[0] == value {
        data.operands[1]
    } else {
        data.operands[0]
    };
    let result = data.results[0];
    let next = uses.single.get(&result).copied();
    match next.flatten() {
        Some(user) => {
            for operand in &mut function.ops[user].operands {
                if *operand == result {
                    *operand = other;
                }
            }
        }
        None => function.replace_operands(&FxHashMap::from_iter([(result, other)])),
    }
    let zero = function.zero(function.ty(value));
    function.ops[addition].operands = [zero, zero].into_iter().collect();
    // The addition is gone, and with it a use of the other operand; that one is used by who used the sum.
    if let Some(next) = next {
        let only = uses.only(other).is_some();
        uses.single.insert(other, next.filter(|_| only));
    }
}

#[cfg(test)]
mod tests {
    use super::merge_partial_sums;
    use crate::testing::{check, check_unchanged};
    use expect_test::expect;

    #[test]
    fn sums_that_meet_become_one() {
        check(
            merge_partial_sums,
            "func @f(%x: f64, %y: f64, %z: f64, %n: i64) -> (f64, f64) {
               %a, %b, %c, %d = for %i: i64 = 0 to %n step 1 with (%p: f64 = 0.0, %q: f64 = 0.0, %r: f64 = 0.0, %s: f64 = 0.0) {
                 %p1 = fadd f64 %p, %x
                 %q1 = fma f64 %y, %y, %q
                 %r1 = fadd f64 %z, %r
                 %s1 = fadd f64 %s, %y
                 yield %p1, %q1, %r1, %s1
               }
               %t = fadd f64 %z, %b
               %u = fadd f64 %c, %a
               %v = fadd f64 %t, %u
               %w = fmul f64 %v, 2.0
               return %w, %d
             }",
            expect![[r#"
                func @f(%x: f64, %y: f64, %z: f64, %n: i64) -> (f64, f64) {
                  %a, %d = for %i: i64 = 0 to %n step 1 with (%p: f64 = 0.0, %s: f64 = 0.0) {
                    %p1 = fadd f64 %p, %x
                    %s1 = fadd f64 %s, %y
                    %q1 = fma f64 %y, %y, %p1
                    %r1 = fadd f64 %z, %q1
                    yield %r1, %s1
                  }
                  %t = fadd f64 0.0, 0.0
                  %u = fadd f64 0.0, 0.0
                  %v = fadd f64 %z, %a
                  %w = fmul f64 %v, 2.0
                  return %w, %d
                }
            "#]],
        );
    }

    #[test]
    fn sums_that_somebody_looks_at_stay() {
        check_unchanged(
            merge_partial_sums,
            "func @f(%x: f64, %n: i64) -> (f64) {
               %a, %b, %c = for %i: i64 = 0 to %n step 1 with (%p: f64 = 0.0, %q: f64 = 0.0, %r: f64 = 1.0) {
                 %p1 = fadd f64 %p, %x
                 %y = fmul f64 %q, %x
                 %q1 = fadd f64 %q, %y
                 %r1 = fadd f64 %r, %x
                 yield %p1, %q1, %r1
               }
               %d = fadd f64 %a, %b
               %e = fadd f64 %d, %c
               return %e
             }",
        );
    }
}
