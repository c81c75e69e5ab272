//! Calls in the forward sweep: replaced by the callee's forward sweep, by a rule's, or by what a table of derivatives leads to.

use super::{Lists, Reversible, SplitKey, list_of};
use crate::activity::reachable_from;
use crate::deferral::ListKey;
use crate::error::Error;
use crate::request::Activity;
use crate::shadows::{CallMode, Signature, Sweep, floats_among};
use crate::step::{CallStep, CallTarget, Step};
use ferrozyme_ir::{Alignment, FunctionId, Op, Payload, Rule, Type, Value};
use ferrozyme_refusal::Refusal;
use smallvec::SmallVec;

impl CallMode for Reversible<'_> {
    fn rule(rule: &Rule) -> Option<FunctionId> {
        rule.reverse
    }

    fn visit_call_with_rule(
        sweep: &mut Sweep<'_, Self>,
        op: Op,
        callee: FunctionId,
        reverse: FunctionId,
    ) -> Result<(), Error> {
        sweep.check_parts(op);
        let data = sweep.function.ops[op].clone();
        let mask = sweep.mask_of(&data.operands) as i64;
        let mut operands =
            sweep.arguments_with_companions(op, &data.operands, |_, ty| ty == Type::PTR)?;
        let step = CallStep {
            reverse: CallTarget::Direct(reverse),
            args: operands.iter().copied().map(Some).collect(),
            arg_types: sweep.types_of(&operands),
            seeds: floats_among(&sweep.function, &data.results),
            tape: None,
            mask: Some(mask),
            gradients: floats_among(&sweep.function, &data.operands),
        };
        let augment = sweep.module().rules[&callee].augment;
        if let Some(augment) = augment {
            operands.push(sweep.function.int(Type::I64, i128::from(mask)));
            sweep.function.ops[op].payload = Payload::Callee(augment);
            sweep.function.ops[op].operands = operands;
            sweep.add_usual_companion_results(op);
        } else if let Some(flags) = sweep.mode.task.overwritten.get(&op)
            && let Some(index) = flags.iter().position(|&flag| flag)
        {
            return Err(sweep.error(op, Refusal::OverwrittenForRule { index }));
        } else if data.results.iter().any(|&result| sweep.has_shadow(result)) {
            return Err(sweep.error(op, Refusal::RuleWithoutShadow));
        }
        sweep.add_call_step(op, augment.is_some(), step);
        sweep.keep(op);
        Ok(())
    }

    fn visit_call_with_body(
        sweep: &mut Sweep<'_, Self>,
        op: Op,
        call: Signature,
    ) -> Result<(), Error> {
        sweep.check_parts(op);
        let data = sweep.function.ops[op].clone();
        // Those that the callee calculates with are numbers.
        let others = data.operands.iter().zip(&call.args);
        let others: Vec<Value> = others
            .filter(|&(_, &activity)| activity != Activity::Const)
            .map(|(&value, _)| value)
            .collect();
        sweep.refuse_unions(op, &others)?;
        sweep.refuse_unions(op, &data.results)?;
        for (&value, &union) in data.operands.iter().zip(&call.unions) {
            if union {
                sweep.refuse_given_behind(op, value)?;
            }
        }
        let args = call.args.clone();
        let results = call.results.clone();
        let overwritten = sweep.mode.task.overwritten.get(&op);
        let key = SplitKey {
            overwritten: overwritten.map_or_else(|| vec![true; args.len()], Vec::clone),
            call,
            lists: match sweep.mode.task.lists {
                Lists::Shared => Lists::Shared,
                _ => Lists::Caller,
            },
        };
        let derivative = sweep
            .mode
            .callees
            .split(key)
            .map_err(|error| error.called_from(&sweep.function.name, data.location))?;
        let mut operands = sweep.arguments_with_companions(op, &data.operands, |index, _| {
            args[index] == Activity::Duplicated
        })?;
        let step = CallStep {
            reverse: CallTarget::Direct(derivative.reverse),
            arg_types: sweep.types_of(&operands),
            args: operands
                .iter()
                .zip(&derivative.uses)
                .map(|(&arg, &used)| used.then_some(arg))
                .collect(),
            seeds: active_among(&data.results, &results),
            tape: None,
            mask: None,
            gradients: active_among(&data.operands, &args),
        };
        operands.extend(derivative.lists.iter().map(|key| sweep.list(key)));
        sweep.function.ops[op].payload = Payload::Callee(derivative.augmented);
        sweep.function.ops[op].operands = operands;
        for (&result, &activity) in data.results.iter().zip(&results) {
            if activity == Activity::Duplicated {
                sweep.add_companion_results(op, result);
            }
        }
        sweep.add_call_step(op, true, step);
        sweep.keep(op);
        Ok(())
    }

    fn visit_call_of_table(
        sweep: &mut Sweep<'_, Self>,
        op: Op,
        table: Value,
        mut operands: SmallVec<[Value; 4]>,
    ) -> Result<(), Error> {
        sweep.check_parts(op);
        let data = sweep.function.ops[op].clone();
        let align = Alignment::natural(Type::PTR);
        let mut b = sweep.builder(op);
        let augmented = b.load(Type::PTR, table, align);
        let slot = b.offset_bytes(table, 8);
        let reverse = b.load(Type::PTR, slot, align);
        let step = CallStep {
            reverse: CallTarget::Indirect(reverse),
            args: operands.iter().copied().map(Some).collect(),
            arg_types: sweep.types_of(&operands),
            seeds: floats_among(&sweep.function, &data.results),
            tape: None,
            mask: None,
            gradients: floats_among(&sweep.function, data.arguments()),
        };
        operands.insert(0, augmented);
        operands.push(sweep.list(&ListKey::Shared));
        operands.extend(list_of(&sweep.mode.pending, &ListKey::Register));
        sweep.function.ops[op].operands = operands;
        sweep.add_usual_companion_results(op);
        sweep.add_call_step(op, true, step);
        Ok(())
    }
}

impl Sweep<'_, Reversible<'_>> {
    /// Notes how a call is reversed. Its last result may be a tape.
    fn add_call_step(&mut self, op: Op, has_tape: bool, mut step: CallStep) {
        if has_tape {
            let tape = self.function.add_result(op, Type::PTR);
            self.function.set_name(tape, "tape");
            step.tape = Some(tape);
        }
        self.mode.steps.insert(op, Step::Call(step));
    }

    fn types_of(&self, values: &[Value]) -> Vec<Type> {
        values.iter().map(|&v| self.function.ty(v)).collect()
    }

    /// A value that may be a float or something else has a derivative and a shadow, and there is no way to pass both.
    fn refuse_unions(&self, op: Op, values: &[Value]) -> Result<(), Error> {
        if values.iter().any(|&value| self.is_union(value)) {
            return Err(self.error(op, Refusal::UnionByValue));
        }
        Ok(())
    }

    /// What a callee does to memory in which floats and pointers share their place must not be memory from outside.
    fn refuse_given_behind(&self, op: Op, value: Value) -> Result<(), Error> {
        let objects = self.objects;
        let Some((class, _)) = objects.class_of(&self.function, value) else {
            return Ok(());
        };
        let given = reachable_from(objects, class)
            .into_iter()
            .filter(|&class| !objects.is_plain(class))
            .any(|class| self.mode.given.contains(&class) && objects.is_handled(class));
        if given {
            return self.refuse_given_memory(op);
        }
        Ok(())
    }
}

/// Those of some values that are active.
fn active_among(values: &[Value], activities: &[Activity]) -> Vec<Value> {
    let values = values.iter().zip(activities);
    values
        .filter(|&(_, &activity)| activity == Activity::Active)
        .map(|(&value, _)| value)
        .collect()
}
