//! Calls in the forward sweep: replaced by the callee's forward sweep, by a rule's, or by what a table of derivatives leads to.

use super::{Augmenter, Lists, SplitKey};
use crate::activity::reachable_from;
use crate::deferral::ListKey;
use crate::error::Error;
use crate::given_code::stop_without_table;
use crate::objects::ValueKind;
use crate::request::Activity;
use crate::step::{CallStep, CallTarget, Step};
use crate::unions;
use ferrozyme_ir::{
    Alignment, Constant, Function, FunctionId, Layout, Op, Payload, Region, Type, Value,
};
use ferrozyme_refusal::Refusal;

impl Augmenter<'_> {
    fn activity_of(&self, value: Value) -> Activity {
        let function = &self.augmented.function;
        // A pointer that leads nowhere is its own shadow, and the callee may choose between it and others.
        let nowhere = || {
            function.ty(value) == Type::PTR
                && self.sweep.objects.class_of(function, value).is_none()
        };
        if self.has_shadow(value) || nowhere() {
            Activity::Duplicated
        } else if self.sweep.activities.is_active(value) {
            Activity::Active
        } else {
            Activity::Const
        }
    }

    pub(super) fn visit_call(&mut self, region: Region, op: Op) -> Result<(), Error> {
        if !self.works.contains(op) {
            self.keep(region, op);
            return Ok(());
        }
        let data = self.augmented.function.ops[op].clone();
        let Payload::Callee(callee) = data.payload else {
            unreachable!("a verified call has a callee")
        };
        let numbers = self.check_numbers(region, op, callee)?;
        self.keep(region, op);
        if self
            .callees
            .module()
            .rules
            .get(&callee)
            .is_some_and(|rule| rule.reverse.is_some())
        {
            return self.visit_call_with_rule(op, callee);
        }
        let others = data.operands.iter().zip(&numbers);
        let others: Vec<Value> = others
            .filter(|&(_, &number)| !number)
            .map(|(&value, _)| value)
            .collect();
        self.refuse_unions(op, &others)?;
        self.refuse_unions(op, &data.results)?;
        let unions = self.unions_behind(&data.operands);
        let constants = data.operands.iter();
        let constants = constants
            .map(|&value| self.leads_to_constants(value))
            .collect();
        for (&value, &union) in data.operands.iter().zip(&unions) {
            if union {
                self.refuse_given_behind(op, value)?;
            }
        }
        let args = data.operands.iter().zip(&numbers);
        let args: Vec<Activity> = args
            .map(|(&value, &number)| match number {
                true => Activity::Const,
                false => self.activity_of(value),
            })
            .collect();
        let results: Vec<Activity> = data.results.iter().map(|&v| self.activity_of(v)).collect();
        let overwritten = self
            .sweep
            .overwritten
            .get(&op)
            .cloned()
            .unwrap_or_else(|| vec![true; args.len()]);
        let layouts = data
            .operands
            .iter()
            .chain(&data.results)
            .map(|&v| self.layout_behind(v))
            .collect();
        let lists = match self.sweep.lists {
            Lists::Shared => Lists::Shared,
            _ => Lists::Caller,
        };
        let caller = self.augmented.function.name.clone();
        let place = self.augmented.function.ops[op].location;
        let derivative = self
            .callees
            .split(SplitKey {
                function: callee,
                args: args.clone(),
                results,
                overwritten,
                layouts,
                unions,
                constants,
                lists,
            })
            .map_err(|error| error.called_from(&caller, place))?;
        let mut operands = Vec::new();
        for (&arg, &activity) in data.operands.iter().zip(&args) {
            operands.push(arg);
            if activity == Activity::Duplicated {
                operands.push(self.shadow(op, arg)?);
            }
        }
        let arg_types: Vec<Type> = operands
            .iter()
            .map(|&arg| self.augmented.function.ty(arg))
            .collect();
        let needed = operands
            .iter()
            .zip(&derivative.uses)
            .map(|(&arg, &used)| used.then_some(arg))
            .collect();
        for key in &derivative.lists {
            operands.push(self.list(key));
        }
        let function = self.function();
        function.ops[op].payload = Payload::Callee(derivative.augmented);
        function.ops[op].operands = operands.into();
        for &result in &data.results {
            if self.activity_of(result) == Activity::Duplicated {
                let ty = self.augmented.function.ty(result);
                let shadow = self.function().add_result(op, ty);
                self.set_shadow(result, shadow);
            }
        }
        let tape = self.function().add_result(op, Type::PTR);
        self.function().set_name(tape, "tape");
        let step = CallStep {
            reverse: CallTarget::Direct(derivative.reverse),
            args: needed,
            arg_types,
            seeds: self.active_among(&data.results),
            tape: Some(tape),
            mask: None,
            gradients: self.active_among(&others),
        };
        self.augmented.steps.insert(op, Step::Call(step));
        Ok(())
    }

    /// For each argument of a call: whether memory that it leads to holds floats where at other times it holds something else.
    fn unions_behind(&self, arguments: &[Value]) -> Vec<bool> {
        let mut unions: Vec<bool> = arguments
            .iter()
            .map(|&value| self.leads_to_union(value))
            .collect();
        if unions.contains(&true) {
            // What leads nowhere does not speak against it.
            let function = &self.augmented.function;
            for (union, &value) in unions.iter_mut().zip(arguments) {
                *union |= self.sweep.objects.class_of(function, value).is_none();
            }
        }
        unions
    }

    /// Words that a callee calculates with are numbers, though at other times there are floats in their place. That is checked before the call.
    fn check_numbers(
        &mut self,
        region: Region,
        op: Op,
        callee: FunctionId,
    ) -> Result<Vec<bool>, Error> {
        let arguments = self.augmented.function.ops[op].operands.clone();
        let mut numbers = vec![false; arguments.len()];
        if !arguments.iter().any(|&value| self.is_union(value)) {
            return Ok(numbers);
        }
        let objects = self.callees.own_objects(callee);
        for (index, &argument) in arguments.iter().enumerate() {
            let function = &self.callees.module().functions[callee];
            let param = function.body.and_then(|_| function.arguments().get(index));
            let calculates = param
                .is_some_and(|&param| objects.kind_of_value(function, param) == ValueKind::Integer);
            if calculates && self.is_union(argument) {
                let shape = self.shadow(op, argument)?;
                unions::check_number(&mut self.builder(region, op), argument, shape);
                numbers[index] = true;
            }
        }
        Ok(numbers)
    }

    /// What is known of the memory behind a pointer.
    fn layout_behind(&self, value: Value) -> Option<Layout> {
        let function = &self.augmented.function;
        let (class, offset) = self.sweep.objects.class_of(function, value)?;
        self.sweep.objects.layout_of(class, offset)
    }

    fn active_among(&self, values: &[Value]) -> Vec<Value> {
        values
            .iter()
            .copied()
            .filter(|&value| self.activity_of(value) == Activity::Active)
            .collect()
    }

    /// An argument of a call that leads to memory which may change before the reverse sweep.
    fn overwritten_argument(&self, op: Op) -> Option<usize> {
        let flags = self.sweep.overwritten.get(&op)?;
        flags.iter().position(|&flag| flag)
    }

    /// A value that may be a float or something else has a derivative and a shadow, and there is no way to pass both.
    fn refuse_unions(&mut self, op: Op, values: &[Value]) -> Result<(), Error> {
        if values.iter().any(|&value| self.is_union(value)) {
            return Err(self.error(op, Refusal::UnionByValue));
        }
        Ok(())
    }

    /// What a callee does to memory in which floats and pointers share their place must not be memory from outside.
    fn refuse_given_behind(&mut self, op: Op, value: Value) -> Result<(), Error> {
        let objects = self.sweep.objects;
        let Some((class, _)) = objects.class_of(&self.augmented.function, value) else {
            return Ok(());
        };
        let given = reachable_from(objects, class)
            .into_iter()
            .filter(|&class| !objects.is_plain(class))
            .any(|class| self.given.contains(&class) && objects.is_handled(class));
        if given {
            return self.refuse_given_memory(op);
        }
        Ok(())
    }

    /// Rules and tables of derivatives know floats and pointers by their types only.
    fn refuse_carried_floats(&mut self, op: Op, args: &[Value]) -> Result<(), Error> {
        let carried = args.iter().any(|&arg| {
            self.augmented.function.ty(arg).is_int()
                && (self.sweep.activities.is_active(arg) || self.has_shadow(arg))
        });
        if carried {
            return Err(self.error(op, Refusal::FloatAsInteger));
        }
        Ok(())
    }

    fn visit_call_with_rule(&mut self, op: Op, callee: FunctionId) -> Result<(), Error> {
        let data = self.augmented.function.ops[op].clone();
        self.refuse_carried_floats(op, &data.operands)?;
        self.refuse_constants(op, &data.operands)?;
        let rule = self.callees.module().rules[&callee].clone();
        let mask = data
            .operands
            .iter()
            .enumerate()
            .filter(|&(_, &arg)| self.activity_of(arg) != Activity::Const)
            .fold(0i64, |mask, (index, _)| mask | 1i64 << index.min(63));
        let mut operands = Vec::new();
        for &arg in &data.operands {
            operands.push(arg);
            if self.augmented.function.ty(arg) == Type::PTR {
                operands.push(self.shadow(op, arg)?);
            }
        }
        let args: Vec<Option<Value>> = operands.iter().copied().map(Some).collect();
        let arg_types = operands
            .iter()
            .map(|&arg| self.augmented.function.ty(arg))
            .collect();
        let mut tape = None;
        if let Some(augment) = rule.augment {
            let mask = self.function().int(Type::I64, i128::from(mask));
            operands.push(mask);
            self.function().ops[op].payload = Payload::Callee(augment);
            self.function().ops[op].operands = operands.into();
            for &result in &data.results {
                if self.augmented.function.ty(result) == Type::PTR {
                    let shadow = self.function().add_result(op, Type::PTR);
                    self.set_shadow(result, shadow);
                }
            }
            tape = Some(self.function().add_result(op, Type::PTR));
        } else if let Some(index) = self.overwritten_argument(op) {
            return Err(self.error(op, Refusal::OverwrittenForRule { index }));
        } else if data.results.iter().any(|&result| self.has_shadow(result)) {
            return Err(self.error(op, Refusal::RuleWithoutShadow));
        }
        let function = &self.augmented.function;
        let step = CallStep {
            reverse: CallTarget::Direct(rule.reverse.expect("checked by the caller")),
            args,
            arg_types,
            seeds: floats_among(function, &data.results),
            tape,
            mask: Some(mask),
            gradients: floats_among(function, &data.operands),
        };
        self.augmented.steps.insert(op, Step::Call(step));
        Ok(())
    }

    /// A call through a pointer: the pointer's shadow leads to a table of the derivatives (see `given_code.rs`).
    pub(super) fn visit_indirect_call(&mut self, region: Region, op: Op) -> Result<(), Error> {
        if !self.works.contains(op) {
            self.keep(region, op);
            return Ok(());
        }
        let data = self.augmented.function.ops[op].clone();
        self.refuse_constants(op, &data.operands[1..])?;
        let target = self.augmented.function.constant_of(data.operands[0]);
        let known = matches!(target, Some(Constant::Function(_)));
        let table = match target {
            Some(Constant::Function(function)) => {
                let table = self.callees.shadow_of_function(*function)?;
                self.function().constant(Type::PTR, table)
            }
            _ => {
                self.refuse_constant_code(op, data.operands[0])?;
                self.shadow(op, data.operands[0])?
            }
        };
        let args = &data.operands[1..];
        self.refuse_carried_floats(op, args)?;
        if args.iter().any(|&arg| self.leads_to_union(arg)) {
            return Err(self.error(op, Refusal::UnionToPointer));
        }
        let mut operands = Vec::new();
        for &arg in args {
            operands.push(arg);
            if self.augmented.function.ty(arg) == Type::PTR {
                operands.push(self.shadow(op, arg)?);
            }
        }
        let align = Alignment::natural(Type::PTR);
        let mut b = self.builder(region, op);
        if !known {
            stop_without_table(&mut b, data.operands[0], table);
        }
        let augmented = b.load(Type::PTR, table, align);
        let slot = b.offset_bytes(table, 8);
        let reverse = b.load(Type::PTR, slot, align);
        let arg_types: Vec<Type> = operands
            .iter()
            .map(|&arg| self.augmented.function.ty(arg))
            .collect();
        let needed = operands.iter().copied().map(Some).collect();
        operands.insert(0, augmented);
        operands.push(self.list(&ListKey::Shared));
        operands.extend(self.augmented.register());
        self.function().ops[op].operands = operands.into();
        for &result in &data.results {
            if self.augmented.function.ty(result) == Type::PTR {
                let shadow = self.function().add_result(op, Type::PTR);
                self.set_shadow(result, shadow);
            }
        }
        let tape = self.function().add_result(op, Type::PTR);
        let types: Vec<Type> = self.augmented.function.ops[op]
            .results
            .iter()
            .map(|&result| self.augmented.function.ty(result))
            .collect();
        self.function().ops[op].payload = Payload::Results(types.into());
        self.keep(region, op);
        let function = &self.augmented.function;
        let step = CallStep {
            reverse: CallTarget::Indirect(reverse),
            args: needed,
            arg_types,
            seeds: floats_among(function, &data.results),
            tape: Some(tape),
            mask: None,
            gradients: floats_among(function, args),
        };
        self.augmented.steps.insert(op, Step::Call(step));
        Ok(())
    }
}

/// Those of some values that are floats by their types.
fn floats_among(function: &Function, values: &[Value]) -> Vec<Value> {
    values
        .iter()
        .copied()
        .filter(|&value| function.ty(value).is_float())
        .collect()
}
