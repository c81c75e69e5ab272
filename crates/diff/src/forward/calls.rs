//! Calls: of functions with bodies, of functions with a rule that the user gives, and through pointers.
//!
//! An active call becomes a call of the callee's derivative, which takes the companions of arguments after them and gives those of
//! results after all results:
//!
//! ```text
//! %r = call @f(%x, %n)     →     %r, %r' = call @f.fwd(%x, %x', %n)
//! ```
//!
//! The shadow of a function pointer leads to a table that holds the address of the derivative.

use super::companions::Lanes;
use super::sweep::Sweep;
use super::{Key, Session, usual_activity};
use crate::activity::reachable_from;
use crate::constants::may_be_constant_code;
use crate::error::Error;
use crate::given_code::stop_without_table;
use crate::request::Activity;
use crate::shadowing;
use ferrozyme_ir::{
    Alignment, Builder, Constant, Function, FunctionId, Layout, Module, Op, Opcode, Payload,
    Region, Type, Value,
};
use ferrozyme_refusal::Refusal;
use smallvec::SmallVec;

impl Sweep<'_, '_> {
    fn is_active_call(&self, op: Op) -> bool {
        shadowing::is_active_call(
            self.module(),
            &self.module().functions[self.key.function],
            &self.objects,
            &self.activities,
            &self.shadowed,
            op,
        )
    }

    fn activity_of(&self, value: Value) -> Activity {
        // A pointer that leads nowhere is its own shadow, and the callee may choose between it and others.
        let nowhere = || self.objects.class_of(&self.function, value).is_none();
        if self.has_shadow(value) || self.function.ty(value) == Type::PTR && nowhere() {
            Activity::Duplicated
        } else if self.has_companions(value) {
            Activity::Active
        } else {
            Activity::Const
        }
    }

    /// Whether words in memory that a pointer leads to are floats at times, and at others something else.
    fn leads_to_union(&self, value: Value) -> bool {
        let Some((class, _)) = self.objects.class_of(&self.function, value) else {
            return false;
        };
        let reached = reachable_from(&self.objects, class).into_iter();
        reached
            .filter(|&class| self.activities.is_active_class(class))
            .any(|class| self.objects.has_unions(class))
    }

    fn layout_of(&self, value: Value) -> Option<Layout> {
        let (class, offset) = self.objects.class_of(&self.function, value)?;
        self.objects.layout_of(class, offset)
    }

    pub(super) fn visit_call(&mut self, region: Region, op: Op) -> Result<(), Error> {
        let data = self.function.ops[op].clone();
        let Payload::Callee(callee) = data.payload else {
            unreachable!("a verified call has a callee")
        };
        if !self.is_active_call(op) {
            self.keep(region, op);
            return Ok(());
        }
        let rule = self
            .module()
            .rules
            .get(&callee)
            .and_then(|rule| rule.forward);
        if let Some(rule) = rule {
            return self.visit_call_with_rule(region, op, callee, rule);
        }
        let mut args: Vec<Activity> = data.operands.iter().map(|&v| self.activity_of(v)).collect();
        self.check_number_arguments(region, op, callee, &mut args);
        let key = Key {
            function: callee,
            args,
            results: data.results.iter().map(|&v| self.activity_of(v)).collect(),
            layouts: data
                .operands
                .iter()
                .chain(&data.results)
                .map(|&v| self.layout_of(v))
                .collect(),
            constants: data
                .operands
                .iter()
                .map(|&v| self.leads_to_constants(v))
                .collect(),
            unions: data
                .operands
                .iter()
                .map(|&v| self.leads_to_union(v))
                .collect(),
            primal: true,
        };
        if self.module().functions[callee].body.is_none() {
            let refusal = Refusal::NoRule {
                callee: self.module().functions[callee].name.clone(),
                forward: true,
            };
            return Err(self.error(op, refusal));
        }
        let mut operands = SmallVec::new();
        for (&arg, &activity) in data.operands.iter().zip(&key.args) {
            operands.push(arg);
            if activity != Activity::Const {
                let parts = self.objects.parts_of_value(arg);
                let lanes = self.companions_of(region, op, arg, &parts)?;
                operands.extend(match self.function.ty(arg).is_ptr() {
                    true => self.without_marks(region, op, arg, lanes),
                    false => lanes,
                });
            }
        }
        let results = key.results.clone();
        let derivative = self.session.derivative_for_call(key, self.index);
        self.function.ops[op].payload = Payload::Callee(derivative);
        self.function.ops[op].operands = operands;
        for (&result, &activity) in data.results.iter().zip(&results) {
            if activity != Activity::Const {
                self.add_companion_results(op, result);
            }
        }
        self.keep(region, op);
        Ok(())
    }

    fn visit_call_with_rule(
        &mut self,
        region: Region,
        op: Op,
        callee: FunctionId,
        rule: FunctionId,
    ) -> Result<(), Error> {
        let data = self.function.ops[op].clone();
        self.check_no_transport(op, &data.operands, &data.results)?;
        self.refuse_constants(op, &data.operands)?;
        if self.width() > 1
            && let Err(refusal) = check_repeatable(self.module(), callee)
        {
            return Err(self.error(op, refusal));
        }
        let mut mask = 0u64;
        let mut companions: Vec<Option<Lanes>> = Vec::new();
        for (index, &arg) in data.operands.iter().enumerate() {
            let ty = self.function.ty(arg);
            if self.activity_of(arg) != Activity::Const {
                mask |= 1u64.wrapping_shl(index as u32);
            }
            companions.push(if usual_activity(ty) == Activity::Const {
                None
            } else {
                Some(self.companions_of(region, op, arg, &[])?)
            });
        }
        self.keep(region, op);
        let width = self.width();
        let results = call_rule(
            &mut self.function,
            region,
            op,
            rule,
            &companions,
            mask,
            width,
        );
        for (&result, lanes) in data.results.iter().zip(results) {
            if let Some(lanes) = lanes
                && self.has_companions(result)
            {
                self.set_companions(result, &lanes);
            }
        }
        Ok(())
    }

    /// Rules and code behind pointers know tangents of floats and shadows of pointers, but none of integers.
    fn check_no_transport(
        &self,
        op: Op,
        operands: &[Value],
        results: &[Value],
    ) -> Result<(), Error> {
        let transports = |&value: &Value| {
            self.function.ty(value).is_int() && self.activity_of(value) != Activity::Const
        };
        if operands.iter().chain(results).any(transports) {
            return Err(self.error(op, Refusal::FloatAsInteger));
        }
        Ok(())
    }

    /// A call through a pointer, whose shadow leads to a table with the address of the derivative.
    pub(super) fn visit_indirect_call(&mut self, region: Region, op: Op) -> Result<(), Error> {
        if !self.is_active_call(op) {
            self.keep(region, op);
            return Ok(());
        }
        let data = self.function.ops[op].clone();
        let (target, args) = (data.operands[0], &data.operands[1..]);
        self.check_no_transport(op, args, &data.results)?;
        self.refuse_constants(op, args)?;
        if args.iter().any(|&arg| self.leads_to_union(arg)) {
            return Err(self.error(op, Refusal::UnionToPointer));
        }
        let known = matches!(
            self.function.constant_of(target),
            Some(Constant::Function(_))
        );
        if !known && !self.has_shadow(target) {
            return Err(self.error(op, Refusal::NoTable));
        }
        let (objects, activities) = (&self.objects, &self.activities);
        if !known && may_be_constant_code(objects, activities, &self.function, target) {
            return Err(self.error(op, Refusal::ConstantCode));
        }
        let table = self.shadows_to_follow(region, op, target)?[0];
        let mut operands: SmallVec<[Value; 4]> = SmallVec::new();
        for &arg in args {
            operands.push(arg);
            if usual_activity(self.function.ty(arg)) != Activity::Const {
                operands.extend(self.companions_of(region, op, arg, &[])?);
            }
        }
        let mut b = self.builder(region, op);
        if !known {
            stop_without_table(&mut b, target, table);
        }
        let derivative = b.load(Type::PTR, table, Alignment::natural(Type::PTR));
        operands.insert(0, derivative);
        self.function.ops[op].operands = operands;
        for &result in &data.results {
            if usual_activity(self.function.ty(result)) != Activity::Const {
                self.add_companion_results(op, result);
            }
        }
        let types: Vec<Type> = self.function.ops[op]
            .results
            .iter()
            .map(|&result| self.function.ty(result))
            .collect();
        self.function.ops[op].payload = Payload::Results(types.into());
        self.keep(region, op);
        Ok(())
    }
}

/// The derivative of a function with a rule, as a function of its own: it calls the rule.
pub(super) fn wrap_rule(
    session: &Session<'_>,
    key: &Key,
    id: FunctionId,
    rule: FunctionId,
) -> Result<Function, Error> {
    let module = &*session.module;
    let width = session.width();
    if width > 1 {
        check_repeatable(module, key.function)
            .map_err(|refusal| Error::of(&module.functions[key.function].name, refusal))?;
    }
    let mut wrapper = Wrapper::new(session, key, id);
    let mut mask = 0u64;
    for index in 0..key.args.len() {
        if key.args[index] != Activity::Const {
            mask |= 1u64.wrapping_shl(index as u32);
        }
        let ty = wrapper.function.ty(wrapper.args[index]);
        if wrapper.companions[index].is_none() && usual_activity(ty) != Activity::Const {
            // An argument without derivative: the rule does not look, but something must stand there.
            let stand_in = if ty.is_float() {
                wrapper.function.zero(ty)
            } else {
                wrapper.args[index]
            };
            wrapper.companions[index] = Some(SmallVec::from_elem(stand_in, width));
        }
    }
    let region = wrapper.function.body();
    let op = wrapper.call_primal(key.function);
    let tangents = call_rule(
        &mut wrapper.function,
        region,
        op,
        rule,
        &wrapper.companions,
        mask,
        width,
    );
    wrapper.finish(key, op, &tangents)
}

/// The derivative of a function that is declared inactive: it calls the function, and all tangents are zero.
pub(super) fn wrap_inactive(
    session: &Session<'_>,
    key: &Key,
    id: FunctionId,
) -> Result<Function, Error> {
    let primal = &session.module.functions[key.function];
    let gives_shadow = primal
        .results
        .iter()
        .zip(&key.results)
        .any(|(ty, &activity)| activity != Activity::Const && !ty.is_float());
    if gives_shadow {
        let function = primal.name.clone();
        return Err(Error::of(
            &primal.name,
            Refusal::InactiveResult { function },
        ));
    }
    let mut wrapper = Wrapper::new(session, key, id);
    let op = wrapper.call_primal(key.function);
    let width = session.width();
    let zeros: Vec<Option<Lanes>> = primal
        .results
        .iter()
        .map(|ty| {
            ty.is_float()
                .then(|| SmallVec::from_elem(wrapper.function.zero(*ty), width))
        })
        .collect();
    wrapper.finish(key, op, &zeros)
}

/// A derivative that consists of one call.
struct Wrapper {
    function: Function,
    /// The arguments of the primal.
    args: Vec<Value>,
    /// The companions of each.
    companions: Vec<Option<Lanes>>,
    results: Vec<Type>,
}

impl Wrapper {
    fn new(session: &Session<'_>, key: &Key, id: FunctionId) -> Wrapper {
        let declared = &session.module.functions[id];
        let mut function = Function::define(
            declared.name.clone(),
            declared.params.clone(),
            declared.results.clone(),
        );
        function.facts = declared.facts.clone();
        let mut values = function.arguments().to_vec().into_iter();
        let (mut args, mut companions) = (Vec::new(), Vec::new());
        for activity in &key.args {
            args.extend(values.next());
            companions.push(
                (*activity != Activity::Const)
                    .then(|| values.by_ref().take(session.width()).collect()),
            );
        }
        let results = session.module.functions[key.function].results.clone();
        Wrapper {
            function,
            args,
            companions,
            results,
        }
    }

    fn call_primal(&mut self, primal: FunctionId) -> Op {
        Builder::at_body(&mut self.function).call(primal, &self.args, &self.results)
    }

    /// Returns what the call gave, and its tangents.
    fn finish(mut self, key: &Key, op: Op, tangents: &[Option<Lanes>]) -> Result<Function, Error> {
        let mut returned: Vec<Value> = Vec::new();
        if key.primal {
            returned.extend(&self.function.ops[op].results[..self.results.len()]);
        }
        for (lanes, &activity) in tangents.iter().zip(&key.results) {
            if activity == Activity::Const {
                continue;
            }
            match lanes {
                Some(lanes) => returned.extend(lanes),
                None => {
                    return Err(Error::of(&self.function.name, Refusal::FloatAsInteger));
                }
            }
        }
        Builder::at_body(&mut self.function).ret(&returned);
        Ok(self.function)
    }
}

/// A rule serves one direction, so for several it runs several times; that must do no harm to the primal's memory.
fn check_repeatable(module: &Module, callee: FunctionId) -> Result<(), Refusal> {
    let function = &module.functions[callee];
    let gives_memory = function.results.iter().any(|ty| ty.is_ptr());
    let updates = function.facts.memory.writes()
        && function
            .params
            .iter()
            .any(|param| param.ty.is_ptr() && !param.facts.readonly && !param.facts.writeonly);
    if gives_memory || updates {
        return Err(Refusal::UnrepeatableRule {
            callee: function.name.clone(),
            returns_pointer: gives_memory,
        });
    }
    Ok(())
}

/// Turns a call, the last operation of its region, into one call of the forward rule for each direction. The primal results
/// are those of the first. Gives the tangents of each float or pointer result.
fn call_rule(
    function: &mut Function,
    region: Region,
    op: Op,
    rule: FunctionId,
    companions: &[Option<Lanes>],
    mask: u64,
    width: usize,
) -> Vec<Option<Lanes>> {
    let data = function.ops[op].clone();
    let mask = function.constant(Type::I64, Constant::Bits(u128::from(mask)));
    let result_types: Vec<Type> = data.results.iter().map(|&v| function.ty(v)).collect();
    let with_tangents: Vec<Type> = result_types
        .iter()
        .copied()
        .filter(|&ty| usual_activity(ty) != Activity::Const)
        .collect();
    let mut tangents: Vec<Option<Lanes>> = result_types
        .iter()
        .map(|&ty| (usual_activity(ty) != Activity::Const).then(Lanes::new))
        .collect();
    for lane in 0..width {
        let mut operands: SmallVec<[Value; 4]> = SmallVec::new();
        for (&arg, lanes) in data.operands.iter().zip(companions) {
            operands.push(arg);
            operands.extend(lanes.as_ref().map(|lanes| lanes[lane]));
        }
        operands.push(mask);
        let call = if lane == 0 {
            function.ops[op].payload = Payload::Callee(rule);
            function.ops[op].operands = operands;
            for &ty in &with_tangents {
                function.add_result(op, ty);
            }
            op
        } else {
            let types: Vec<Type> = result_types.iter().chain(&with_tangents).copied().collect();
            let mut b = Builder::new(function, region);
            b.location = data.location;
            b.op(Opcode::Call, &operands, Payload::Callee(rule), &types)
        };
        let given = &function.ops[call].results[result_types.len()..];
        for (lanes, &tangent) in tangents.iter_mut().flatten().zip(given) {
            lanes.push(tangent);
        }
    }
    tangents
}
