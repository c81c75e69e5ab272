//! Calls in the forward sweep: replaced by the callee's forward sweep, by a rule's, or by what a table of derivatives leads to.

use super::{Lists, Reversible, SplitKey, list_of};
use crate::activity::reachable_from;
use crate::deferral::ListKey;
use crate::error::Error;
use crate::request::Activity;
use crate::shadows::{Signature, Sweep, floats_among};
use crate::step::{CallStep, CallTarget, Step};
use ferrozyme_ir::{Alignment, FunctionId, Op, Payload, Type, Value};
use ferrozyme_refusal::Refusal;
use smallvec::SmallVec;

impl Sweep<'_, Reversible<'_>> {
    pub(super) fn visit_call_with_body(&mut self, op: Op, call: Signature) -> Result<(), Error> {
        self.check_parts(op);
        let data = self.function.ops[op].clone();
        // Those that the callee calculates with are numbers.
        let others = data.operands.iter().zip(&call.args);
        let others: Vec<Value> = others
            .filter(|&(_, &activity)| activity != Activity::Const)
            .map(|(&value, _)| value)
            .collect();
        self.refuse_unions(op, &others)?;
        self.refuse_unions(op, &data.results)?;
        for (&value, &union) in data.operands.iter().zip(&call.unions) {
            if union {
                self.refuse_given_behind(op, value)?;
            }
        }
        let args = call.args.clone();
        let results = call.results.clone();
        let overwritten = self.mode.task.overwritten.get(&op);
        let key = SplitKey {
            overwritten: overwritten.map_or_else(|| vec![true; args.len()], Vec::clone),
            call,
            lists: match self.mode.task.lists {
                Lists::Shared => Lists::Shared,
                _ => Lists::Caller,
            },
        };
        let derivative = self
            .mode
            .callees
            .split(key)
            .map_err(|error| error.called_from(&self.function.name, data.location))?;
        let mut operands = self.arguments_with_companions(op, &data.operands, |index, _| {
            args[index] == Activity::Duplicated
        })?;
        let step = CallStep {
            reverse: CallTarget::Direct(derivative.reverse),
            arg_types: self.types_of(&operands),
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
        operands.extend(derivative.lists.iter().map(|key| self.list(key)));
        self.function.ops[op].payload = Payload::Callee(derivative.augmented);
        self.function.ops[op].operands = operands;
        for (&result, &activity) in data.results.iter().zip(&results) {
            if activity == Activity::Duplicated {
                self.add_companion_results(op, result);
            }
        }
        self.add_call_step(op, true, step);
        self.keep(op);
        Ok(())
    }

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

    pub(super) fn visit_call_with_rule(
        &mut self,
        op: Op,
        callee: FunctionId,
        reverse: FunctionId,
    ) -> Result<(), Error> {
        self.check_parts(op);
        let data = self.function.ops[op].clone();
        let mask = self.mask_of(&data.operands) as i64;
        let mut operands =
            self.arguments_with_companions(op, &data.operands, |_, ty| ty == Type::PTR)?;
        let step = CallStep {
            reverse: CallTarget::Direct(reverse),
            args: operands.iter().copied().map(Some).collect(),
            arg_types: self.types_of(&operands),
            seeds: floats_among(&self.function, &data.results),
            tape: None,
            mask: Some(mask),
            gradients: floats_among(&self.function, &data.operands),
        };
        let augment = self.module().rules[&callee].augment;
        if let Some(augment) = augment {
            operands.push(self.function.int(Type::I64, i128::from(mask)));
            self.function.ops[op].payload = Payload::Callee(augment);
            self.function.ops[op].operands = operands;
            self.add_usual_companion_results(op);
        } else if let Some(flags) = self.mode.task.overwritten.get(&op)
            && let Some(index) = flags.iter().position(|&flag| flag)
        {
            return Err(self.error(op, Refusal::OverwrittenForRule { index }));
        } else if data.results.iter().any(|&result| self.has_shadow(result)) {
            return Err(self.error(op, Refusal::RuleWithoutShadow));
        }
        self.add_call_step(op, augment.is_some(), step);
        self.keep(op);
        Ok(())
    }

    pub(super) fn visit_call_of_table(
        &mut self,
        op: Op,
        table: Value,
        mut operands: SmallVec<[Value; 4]>,
    ) -> Result<(), Error> {
        self.check_parts(op);
        let data = self.function.ops[op].clone();
        let align = Alignment::natural(Type::PTR);
        let mut b = self.builder(op);
        let augmented = b.load(Type::PTR, table, align);
        let slot = b.offset_bytes(table, 8);
        let reverse = b.load(Type::PTR, slot, align);
        let step = CallStep {
            reverse: CallTarget::Indirect(reverse),
            args: operands.iter().copied().map(Some).collect(),
            arg_types: self.types_of(&operands),
            seeds: floats_among(&self.function, &data.results),
            tape: None,
            mask: None,
            gradients: floats_among(&self.function, data.arguments()),
        };
        operands.insert(0, augmented);
        operands.push(self.list(&ListKey::Shared));
        operands.extend(list_of(&self.mode.pending, &ListKey::Register));
        self.function.ops[op].operands = operands;
        self.add_usual_companion_results(op);
        self.add_call_step(op, true, step);
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
