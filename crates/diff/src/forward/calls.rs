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
use super::{Key, usual_activity};
use crate::error::Error;
use crate::request::Activity;
use crate::shadows::{CallMode, Lanes, Signature, Sweep};
use ferrozyme_ir::{
    Alignment, Builder, Constant, Function, FunctionId, Module, Op, Opcode, Payload, Region, Rule,
    Type, Value,
};
use ferrozyme_refusal::Refusal;
use smallvec::SmallVec;

impl CallMode for Tangents<'_, '_> {
    fn rule(rule: &Rule) -> Option<FunctionId> {
        rule.forward
    }

    fn visit_call_with_rule(
        sweep: &mut Sweep<'_, Self>,
        op: Op,
        callee: FunctionId,
        rule: FunctionId,
    ) -> Result<(), Error> {
        let data = sweep.function.ops[op].clone();
        if sweep.width() > 1
            && let Err(refusal) = check_repeatable(sweep.module(), callee)
        {
            return Err(sweep.error(op, refusal));
        }
        let mut companions: Vec<Option<Lanes>> = Vec::new();
        for &arg in &data.operands {
            companions.push(
                match Sweep::<Self>::has_usual_companions(sweep.function.ty(arg)) {
                    true => Some(sweep.companions_of(op, arg, &[])?),
                    false => None,
                },
            );
        }
        let mask = sweep.mask_of(&data.operands);
        sweep.keep(op);
        let (region, width) = (sweep.region, sweep.width());
        let function = &mut sweep.function;
        let results = call_rule(function, region, op, rule, &companions, mask, width);
        for (&result, lanes) in data.results.iter().zip(results) {
            if let Some(lanes) = lanes
                && sweep.has_companions(result)
            {
                sweep.set_companions(result, &lanes);
            }
        }
        Ok(())
    }

    fn visit_call_with_body(
        sweep: &mut Sweep<'_, Self>,
        op: Op,
        call: Signature,
    ) -> Result<(), Error> {
        let data = sweep.function.ops[op].clone();
        let has_companions = |index: usize, _| call.args[index] != Activity::Const;
        let operands = sweep.arguments_with_companions(op, &data.operands, has_companions)?;
        sweep.function.ops[op].operands = operands;
        for (&result, &activity) in data.results.iter().zip(&call.results) {
            if activity != Activity::Const {
                sweep.add_companion_results(op, result);
            }
        }
        let key = Key { call, primal: true };
        let derivative = sweep.mode.session.derivative_for_call(key);
        sweep.function.ops[op].payload = Payload::Callee(derivative);
        sweep.keep(op);
        Ok(())
    }

    fn visit_call_of_table(
        sweep: &mut Sweep<'_, Self>,
        op: Op,
        table: Value,
        mut operands: SmallVec<[Value; 4]>,
    ) -> Result<(), Error> {
        let mut b = sweep.builder(op);
        let derivative = b.load(Type::PTR, table, Alignment::natural(Type::PTR));
        operands.insert(0, derivative);
        sweep.function.ops[op].operands = operands;
        sweep.add_usual_companion_results(op);
        Ok(())
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
