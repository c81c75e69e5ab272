//! Rules for structured operations and calls: known conditions and trip counts.

use super::integers::negated_condition;
use super::{Outcome, keep_name};
use crate::carried::{remove_results, yielded};
use crate::substitution::Substitution;
use ferrozyme_ir::{
    Constant, Function, Module, Op, OpView, Opcode, Payload, Region, Value, ValueDef,
};
use smallvec::{SmallVec, smallvec};

/// Rules that apply before the regions are simplified. Changes that leave the operation in place count in `changes`.
pub(super) fn simplify(
    module: &Module,
    function: &mut Function,
    op: Op,
    substitution: &mut Substitution,
    changes: &mut usize,
) -> Outcome {
    match function.ops[op].opcode {
        Opcode::If => simplify_if(function, op, changes),
        Opcode::Switch => simplify_switch(function, op),
        Opcode::For => {
            let outcome = simplify_for(function, op);
            if matches!(outcome, Outcome::Keep) {
                *changes += usize::from(bound_without_limit(function, op));
                *changes += remove_unchanging(function, op, substitution);
            }
            outcome
        }
        Opcode::Loop => {
            let outcome = simplify_loop(function, op);
            if matches!(outcome, Outcome::Keep) {
                *changes += remove_unchanging(function, op, substitution);
            }
            outcome
        }
        Opcode::CallIndirect => {
            *changes += usize::from(call_directly(module, function, op));
            Outcome::Keep
        }
        _ => Outcome::Keep,
    }
}

/// Rules that apply after the regions were simplified.
pub(super) fn after_regions(
    function: &mut Function,
    op: Op,
    substitution: &mut Substitution,
    changes: &mut usize,
) -> Outcome {
    match function.ops[op].opcode {
        Opcode::If | Opcode::Switch => {
            *changes += remove_agreeing(function, op, substitution);
            Outcome::Keep
        }
        Opcode::Loop => simplify_loop(function, op),
        _ => Outcome::Keep,
    }
}

fn simplify_if(function: &mut Function, op: Op, changes: &mut usize) -> Outcome {
    let data = &function.ops[op];
    let condition = data.condition();
    match function.int_of(condition) {
        Some(0) => return Outcome::Splice(data.regions[1], SmallVec::new()),
        Some(_) => return Outcome::Splice(data.regions[0], SmallVec::new()),
        None => {}
    }
    if let Some(positive) = negated_condition(function, condition) {
        let data = &mut function.ops[op];
        *data.condition_mut() = positive;
        data.regions.swap(0, 1);
        *changes += 1;
    }
    flatten(function, op)
}

fn simplify_switch(function: &Function, op: Op) -> Outcome {
    let data = &function.ops[op];
    let OpView::Switch { selector, cases } = data.view() else {
        return Outcome::Keep;
    };
    if cases.is_empty() {
        return Outcome::Splice(data.regions[0], SmallVec::new());
    }
    match function.int_of(selector) {
        Some(value) => {
            let taken = Function::case_of(cases, value);
            Outcome::Splice(data.regions[taken], SmallVec::new())
        }
        None => flatten(function, op),
    }
}

/// If all regions but one end in a trap, what that one does can as well be done after the operation.
fn flatten(function: &Function, op: Op) -> Outcome {
    let data = &function.ops[op];
    let mut returning = data
        .regions
        .iter()
        .filter(|&&region| !function.ends_in_trap(region));
    match (returning.next(), returning.next()) {
        (Some(&region), None)
            if function.regions[region].ops.len() > 1 || !data.results.is_empty() =>
        {
            Outcome::Flatten(region)
        }
        _ => Outcome::Keep,
    }
}

/// `for %i = 0 to (smax %n, 0) step 1` runs as often as `for %i = 0 to %n step 1`: a limit that is not beyond the start changes nothing.
fn bound_without_limit(function: &mut Function, op: Op) -> bool {
    let [from, to, step] = function.ops[op].bounds();
    let Some(OpView::Binary(limit @ (Opcode::Smax | Opcode::Smin), a, b)) = function.definition(to)
    else {
        return false;
    };
    let (Some(from), Some(step)) = (function.int_of(from), function.int_of(step)) else {
        return false;
    };
    let changes_nothing = |value: Value| match limit {
        Opcode::Smax => step > 0 && function.int_of(value).is_some_and(|limit| limit <= from),
        _ => step < 0 && function.int_of(value).is_some_and(|limit| limit >= from),
    };
    let bound = match (changes_nothing(a), changes_nothing(b)) {
        (_, true) => a,
        (true, _) => b,
        _ => return false,
    };
    *function.ops[op].to_mut() = bound;
    true
}

fn simplify_for(function: &Function, op: Op) -> Outcome {
    let data = &function.ops[op];
    let [from, to, step] = data.bounds();
    let initial: SmallVec<[Value; 4]> = SmallVec::from_slice(data.initial());
    let Some(step) = function.int_of(step).filter(|&step| step != 0) else {
        return Outcome::Keep;
    };
    if from == to {
        return Outcome::Replace(initial);
    }
    let (Some(first), Some(end)) = (function.int_of(from), function.int_of(to)) else {
        return Outcome::Keep;
    };
    let runs = |counter: i128| {
        if step > 0 {
            counter < end
        } else {
            counter > end
        }
    };
    if !runs(first) {
        return Outcome::Replace(initial);
    }
    if first.checked_add(step).is_some_and(|next| !runs(next)) {
        let mut arguments: SmallVec<[Value; 4]> = smallvec![from];
        arguments.extend(initial);
        return Outcome::Splice(data.regions[0], arguments);
    }
    Outcome::Keep
}

/// A loop that ends after its first iteration.
fn simplify_loop(function: &Function, op: Op) -> Outcome {
    let data = &function.ops[op];
    let body = data.regions[0];
    let terminator = &function.ops[function.terminator(body)];
    let runs_once = match terminator.opcode {
        Opcode::Trap => true,
        _ => function.int_of(terminator.condition()) == Some(0),
    };
    if runs_once {
        return Outcome::Splice(body, SmallVec::from_slice(data.initial()));
    }
    Outcome::Keep
}

/// Carried values that never change are their initial values. So are those that are `undef` at first and the same value from outside ever after: it may as well be that one.
fn remove_unchanging(function: &mut Function, op: Op, substitution: &mut Substitution) -> usize {
    let data = &function.ops[op];
    let body = data.regions[0];
    let Some(next) = yielded(function, body) else {
        return 0;
    };
    let initial = SmallVec::<[Value; 8]>::from_slice(data.initial());
    let carried = SmallVec::<[Value; 8]>::from_slice(function.carried(op));
    let mut replacements: SmallVec<[Value; 8]> = initial.clone();
    let keep: SmallVec<[bool; 8]> = (0..next.len())
        .map(|index| {
            let next = substitution.resolve(next[index]);
            let starts_undefined =
                matches!(function.constant_of(initial[index]), Some(Constant::Undef));
            if starts_undefined && !is_defined_in(function, body, next) {
                replacements[index] = next;
                return false;
            }
            next != carried[index] && next != initial[index]
        })
        .collect();
    let removed = keep.iter().filter(|kept| !**kept).count();
    if removed == 0 {
        return 0;
    }
    let results = data.results.clone();
    for index in (0..keep.len()).filter(|&index| !keep[index]) {
        substitution.replace(carried[index], replacements[index]);
        substitution.replace(results[index], replacements[index]);
    }
    remove_results(function, op, &keep);
    removed
}

/// Whether a value that is visible at the end of a region is defined in it.
fn is_defined_in(function: &Function, region: Region, value: Value) -> bool {
    match function.values[value].def {
        ValueDef::Constant(_) => false,
        ValueDef::Argument { region: holder, .. } => holder == region,
        ValueDef::Result { op, .. } => function.regions[region].ops.contains(&op),
    }
}

/// Results that are the same whichever region runs, or that say which one does.
fn remove_agreeing(function: &mut Function, op: Op, substitution: &mut Substitution) -> usize {
    let data = &function.ops[op];
    let returning: SmallVec<[&[Value]; 4]> = data
        .regions
        .iter()
        .filter_map(|&region| yielded(function, region))
        .collect();
    if returning.len() < 2 {
        return 0;
    }
    let known: SmallVec<[Option<Value>; 4]> = (0..data.results.len())
        .map(|index| {
            let first = returning[0][index];
            // A value that two regions see is defined outside both.
            if returning.iter().all(|values| values[index] == first) {
                return Some(first);
            }
            let is_truth = data.opcode == Opcode::If
                && function.ty(first) == function.ty(data.condition())
                && function.int_of(first) == Some(-1)
                && function.int_of(returning[1][index]) == Some(0);
            is_truth.then(|| data.condition())
        })
        .collect();
    drop(returning);
    let removed = known.iter().flatten().count();
    if removed == 0 {
        return 0;
    }
    let results = data.results.clone();
    for (&result, value) in results.iter().zip(&known) {
        if let &Some(value) = value {
            keep_name(function, result, value);
            substitution.replace(result, value);
        }
    }
    let keep: SmallVec<[bool; 4]> = known.iter().map(Option::is_none).collect();
    remove_results(function, op, &keep);
    removed
}

/// A call through a constant address is a plain call, if the types fit.
fn call_directly(module: &Module, function: &mut Function, op: Op) -> bool {
    let data = &function.ops[op];
    let Some(&Constant::Function(callee)) = function.constant_of(data.target()) else {
        return false;
    };
    let called = &module.functions[callee];
    let arguments = data.arguments();
    let fits = data.results.len() == called.results.len()
        && arguments.len() == called.params.len()
        && data
            .results
            .iter()
            .zip(&called.results)
            .all(|(&result, &ty)| function.ty(result) == ty)
        && arguments
            .iter()
            .zip(&called.params)
            .all(|(&value, param)| function.ty(value) == param.ty);
    if !fits {
        return false;
    }
    let data = &mut function.ops[op];
    data.opcode = Opcode::Call;
    data.operands.remove(0);
    data.payload = Payload::Callee(callee);
    true
}
