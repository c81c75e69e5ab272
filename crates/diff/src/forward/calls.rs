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

use super::sweep::Tangents;
use super::{Key, Session, usual_activity};
use crate::error::Error;
use crate::request::Activity;
use crate::shadows::{Lanes, Signature, Sweep};
use ferrozyme_ir::{
    Alignment, Builder, Constant, Function, FunctionId, Module, Op, Opcode, Payload, Region, Type,
    Value,
};
use ferrozyme_refusal::Refusal;
use smallvec::SmallVec;

impl Sweep<'_, Tangents<'_, '_>> {
    pub(super) fn visit_call_with_body(&mut self, op: Op, call: Signature) -> Result<(), Error> {
        let data = self.function.ops[op].clone();
        let has_companions = |index: usize, _| call.args[index] != Activity::Const;
        let operands = self.arguments_with_companions(op, &data.operands, has_companions)?;
        self.function.ops[op].operands = operands;
        for (&result, &activity) in data.results.iter().zip(&call.results) {
            if activity != Activity::Const {
                self.add_companion_results(op, result);
            }
        }
        let key = Key { call, primal: true };
        let derivative = self.mode.session.derivative_for_call(key);
        self.function.ops[op].payload = Payload::Callee(derivative);
        self.keep(op);
        Ok(())
    }

    pub(super) fn visit_call_with_rule(
        &mut self,
        op: Op,
        callee: FunctionId,
        rule: FunctionId,
    ) -> Result<(), Error> {
        let data = self.function.ops[op].clone();
        if self.width() > 1
            && let Err(refusal) = check_repeatable(self.module(), callee)
        {
            return Err(self.error(op, refusal));
        }
        let mut companions: Vec<Option<Lanes>> = Vec::new();
        for &arg in &data.operands {
            companions.push(match Self::has_usual_companions(self.function.ty(arg)) {
                true => Some(self.companions_of(op, arg, &[])?),
                false => None,
            });
        }
        let mask = self.mask_of(&data.operands);
        self.keep(op);
        let (region, width) = (self.region, self.width());
        let function = &mut self.function;
        let results = call_rule(function, region, op, rule, &companions, mask, width);
        for (&result, lanes) in data.results.iter().zip(results) {
            if let Some(lanes) = lanes
                && self.has_companions(result)
            {
                self.set_companions(result, &lanes);
            }
        }
        Ok(())
    }

    pub(super) fn visit_call_of_table(
        &mut self,
        op: Op,
        table: Value,
        mut operands: SmallVec<[Value; 4]>,
    ) {
        let mut b = self.builder(op);
        let derivative = b.load(Type::PTR, table, Alignment::natural(Type::PTR));
        operands.insert(0, derivative);
        self.function.ops[op].operands = operands;
        self.add_usual_companion_results(op);
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
        check_repeatable(module, key.call.function)
            .map_err(|refusal| Error::of(&module.functions[key.call.function].name, refusal))?;
    }
    let mut wrapper = Wrapper::new(session, key, id);
    let mut mask = 0u64;
    for index in 0..key.call.args.len() {
        if key.call.args[index] != Activity::Const {
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
    let op = wrapper.call_primal(key.call.function);
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
    let primal = &session.module.functions[key.call.function];
    let gives_shadow = primal
        .results
        .iter()
        .zip(&key.call.results)
        .any(|(ty, &activity)| activity != Activity::Const && !ty.is_float());
    if gives_shadow {
        let function = primal.name.clone();
        return Err(Error::of(
            &primal.name,
            Refusal::InactiveResult { function },
        ));
    }
    let mut wrapper = Wrapper::new(session, key, id);
    let op = wrapper.call_primal(key.call.function);
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
        for activity in &key.call.args {
            args.extend(values.next());
            companions.push(
                (*activity != Activity::Const)
                    .then(|| values.by_ref().take(session.width()).collect()),
            );
        }
        let results = session.module.functions[key.call.function].results.clone();
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
        for (lanes, &activity) in tangents.iter().zip(&key.call.results) {
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
