//! Reads again what a loop that is meant for several threads carries from one iteration to the next, only because the one before has read it:
//!
//! ```text
//! %before = load f64 %x[0]
//! … for parallel %i: i64 = 1 to %n step 1              for parallel %i: i64 = 1 to %n step 1 {
//!                 with (%a: f64 = %before) {    ──▶      %a = load f64 %x[i - 1]
//!   %b = load f64 %x[i]                                  %b = load f64 %x[i]
//!   … %a … %b                                            … %a … %b
//!   yield %b                                             yield
//! }                                                    }
//! ```
//!
//! LLVM saves loads so. It is right if nothing is written to that memory between the two loads; a carried value would keep the loop on one thread.

use crate::alias::{Access, Aliases};
use crate::carried::{Carried, carried_by};
use crate::distribution::each_op_within;
use crate::symbolic::Symbolic;
use crate::uses::Uses;
use crate::with_function::with_function;
use ferrozyme_ir::{
    Alignment, Builder, Cursor, Flags, Function, FunctionId, Module, Op, OpView, Opcode, Type,
    Value, returning_ops,
};
use rustc_hash::FxHashMap;

/// Reads again what marked loops of a function carry; returns how many values.
pub fn reload_carried(module: &mut Module, id: FunctionId) -> usize {
    let is_meant = |function: &Function, op: Op| {
        let data = &function.ops[op];
        data.opcode == Opcode::For
            && data.flags.contains(Flags::PARALLEL)
            && !data.results.is_empty()
    };
    with_function(module, id, |module, function| {
        if function.body.is_none() {
            return 0;
        }
        let ops = returning_ops(function).into_iter();
        let loops: Vec<Op> = ops.filter(|&op| is_meant(function, op)).collect();
        if loops.is_empty() {
            return 0;
        }
        let plans = find_plans(module, function, &loops);
        for plan in &plans {
            apply(function, plan);
        }
        plans.len()
    })
}

/// A carried value that is to be read again.
struct Plan {
    op: Op,
    argument: Value,
    root: Value,
    /// How many bytes behind the root it is, in terms of the counter.
    offset: Symbolic,
    ty: Type,
    align: Alignment,
}

fn find_plans(module: &Module, function: &Function, loops: &[Op]) -> Vec<Plan> {
    let aliases = Aliases::new(module, function);
    let uses = Uses::of(function);
    let mut plans = Vec::new();
    for &op in loops {
        let carried = carried_by(function, op).into_iter();
        let carried = carried.filter(|carried| !uses.of_value(carried.argument).is_empty());
        plans.extend(carried.filter_map(|carried| plan_for(&aliases, op, &carried)));
    }
    plans
}

fn plan_for(aliases: &Aliases<'_>, around: Op, carried: &Carried) -> Option<Plan> {
    let (function, structure) = (aliases.function(), aliases.structure());
    let counted = aliases.indices().counted(around)?;
    let [first, next] = [carried.initial, carried.next].map(|value| function.def_op(value));
    let ((first, _), (next, _)) = (first?, next?);
    let (OpView::Load { align, .. }, OpView::Load { .. }) =
        (function.view(next), function.view(first))
    else {
        return None;
    };
    let ty = function.ty(carried.next);
    let is_here = structure.region_of(next) == Some(function.ops[around].body())
        && structure.region_of(first) == structure.region_of(around)
        && function.ty(carried.initial) == ty;
    let (read, start) = (
        aliases.reads(next).accesses.first()?.clone(),
        aliases.reads(first).accesses.first()?.clone(),
    );
    // An iteration before is a step before.
    let counter = Symbolic::of_value(counted.counter);
    let before = counter.sub(&counted.step)?;
    let offset = read.offset.substitute(counted.counter, &before)?;
    let at_start = offset.substitute(counted.counter, &counted.from)?;
    let indices = aliases.indices();
    let is_visible = indices.is_defined_outside(read.root, around)
        && indices.can_emit(&offset)
        && offset
            .variables()
            .all(|value| value == counted.counter || indices.is_defined_outside(value, around));
    let is_same = read.root == start.root && at_start == start.offset;
    (is_here && is_visible && is_same && is_kept(aliases, around, first, &read)).then_some(Plan {
        op: around,
        argument: carried.argument,
        root: read.root,
        offset,
        ty,
        align,
    })
}

/// Whether nothing is written behind a root in a loop, nor between an operation and the loop.
fn is_kept(aliases: &Aliases<'_>, around: Op, first: Op, read: &Access) -> bool {
    let (function, structure) = (aliases.function(), aliases.structure());
    let leaves = |op: Op| {
        let written = aliases.writes(op);
        let mut places = written.accesses.iter();
        let elsewhere = written.elsewhere && aliases.is_reachable_from_elsewhere(read.root);
        !elsewhere && places.all(|place| !aliases.may_share(place.root, read.root))
    };
    let mut kept = true;
    each_op_within(function, around, &mut |op| kept &= leaves(op));
    let between = structure.order(first)..structure.order(around);
    kept && returning_ops(function)
        .into_iter()
        .filter(|&op| between.contains(&structure.order(op)))
        .all(leaves)
}

fn apply(function: &mut Function, plan: &Plan) {
    let body = function.ops[plan.op].body();
    let mut b = Builder::at(function, Cursor::at_start(body));
    b.location = b.function.ops[plan.op].location;
    let offset = plan.offset.emit(&mut b);
    let offset = offset.expect("the offset consists of visible integers");
    let place = b.offset(plan.root, offset, 1);
    let value = b.load(plan.ty, place, plan.align);
    function.replace_operands(&FxHashMap::from_iter([(plan.argument, value)]));
}

#[cfg(test)]
mod tests {
    use super::reload_carried;
    use crate::testing::{check, check_unchanged};
    use expect_test::expect;

    const LOADS: &str = "
        %before = load f64 %x align 8
        %last = for parallel %i: i64 = 1 to %n step 1 with (%a: f64 = %before) {
          %p = offset %x, %i * 8
          %b = load f64 %p align 8
          %c = fmul f64 %a, %b
          %q = offset %y, %i * 8
          store f64 %c, %q align 8
          yield %b
        }
        return";

    #[test]
    fn what_the_iteration_before_has_read_is_read_again() {
        let text = format!("func @f(%x: ptr noalias, %y: ptr noalias, %n: i64) {{ {LOADS} }}");
        check(
            reload_carried,
            &text,
            expect![[r#"
            func @f(%x: ptr noalias, %y: ptr noalias, %n: i64) {
              %before = load f64 %x align 8
              %last = for parallel %i: i64 = 1 to %n step 1 with (%a: f64 = %before) {
                %0 = mul i64 %i, 8
                %1 = add i64 %0, -8
                %2 = offset %x, %1
                %3 = load f64 %2 align 8
                %p = offset %x, %i * 8
                %b = load f64 %p align 8
                %c = fmul f64 %3, %b
                %q = offset %y, %i * 8
                store f64 %c, %q align 8
                yield %b
              }
              return
            }
        "#]],
        );
    }

    #[test]
    fn what_may_be_overwritten_stays() {
        check_unchanged(
            reload_carried,
            &format!("func @f(%x: ptr, %y: ptr, %n: i64) {{ {LOADS} }}"),
        );
        let marked = "for parallel";
        let text = format!("func @f(%x: ptr noalias, %y: ptr noalias, %n: i64) {{ {LOADS} }}");
        check_unchanged(reload_carried, &text.replace(marked, "for"));
        check_unchanged(reload_carried, &text.replace("load f64 %x", "load f64 %y"));
    }
}
