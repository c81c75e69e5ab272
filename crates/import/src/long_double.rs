//! Outlines computations in `long double`, as in C++'s random numbers, into functions:
//!
//! ```text
//! %a = call x86_fp80 @logl(x86_fp80 2³²)                 define internal i64 @f.moved_long_double() { %a = …; %b = …; %k = …; ret i64 %k }
//! %b = fdiv x86_fp80 %a, …                         ⇒
//! %k = fptoui x86_fp80 %b to i64                         %k = call i64 @f.moved_long_double()
//! ```
//!
//! Computations from constants and integers have no derivative. Computations from other floats are refused if these are active. Values of type `long double` that are in memory, or carried by a loop, are not
//! outlined, and cannot be imported.

use super::Importer;
use ferrozyme_ir::{Form, MathFunction};
use ferrozyme_llvm::{Opcode, Type, TypeKind, Value};
use std::collections::HashMap;

/// How many operations move together at most.
const LIMIT: usize = 64;

impl<'c> Importer<'c, '_> {
    /// Moves calculations whose result is not a `long double`.
    pub(super) fn move_out_long_doubles(&mut self, function: Value<'c>) {
        let ends: Vec<Value<'c>> = function
            .instructions()
            .filter(|&instruction| ends_calculation(instruction))
            .collect();
        for end in ends {
            let mut steps = Vec::new();
            if collect(end, &mut steps) {
                self.move_calculation(function, end, &steps);
            }
        }
    }

    fn move_calculation(&mut self, function: Value<'c>, end: Value<'c>, steps: &[Value<'c>]) {
        let is_given = |operand: &Value<'c>| {
            !operand.is_constant() && !operand.is_global() && !steps.contains(operand)
        };
        let mut taken: Vec<Value<'c>> = Vec::new();
        for operand in steps.iter().flat_map(|step| step.operands()) {
            if is_given(&operand) && !taken.contains(&operand) {
                taken.push(operand);
            }
        }
        let types: Vec<Type<'c>> = taken.iter().map(|value| value.ty()).collect();
        let ty = end.ty().function(&types, false);
        let inactive = !types.iter().any(|ty| ty.is_float());
        let moved = self.add_calculation(function, ty, inactive);
        let builder = self.context.builder();
        builder.at_end(self.context.append_block(moved, "entry"));
        let mut copies: HashMap<Value<'c>, Value<'c>> =
            taken.iter().copied().zip(moved.parameters()).collect();
        for step in steps {
            let copy = builder.insert(step.duplicate_instruction());
            copy.set_debug_location(None);
            for (index, operand) in (0..).zip(step.operands()) {
                if let Some(other) = copies.get(&operand) {
                    copy.set_operand(index, *other);
                }
            }
            copies.insert(*step, copy);
        }
        builder.return_value(copies[&end]);
        builder.before(end);
        let call = builder.call_function(moved, &taken);
        call.set_debug_location(end.debug_location(self.context));
        end.replace_uses_with(call);
        for step in steps.iter().rev().filter(|step| !step.is_used()) {
            step.erase();
        }
    }
}

fn is_long_double(of: Type<'_>) -> bool {
    of.kind() == TypeKind::LongDouble
}

/// Whether an instruction makes something else of a `long double`.
fn ends_calculation(instruction: Value<'_>) -> bool {
    let converts = matches!(
        instruction.opcode(),
        Some(Opcode::FPToSI | Opcode::FPToUI | Opcode::FPTrunc | Opcode::FCmp)
    );
    converts && !is_long_double(instruction.ty()) && is_long_double(instruction.operand(0).ty())
}

/// Collects an instruction and what it is computed from, in order. False if that is not all from constants, integers and smaller floats.
fn collect<'c>(instruction: Value<'c>, steps: &mut Vec<Value<'c>>) -> bool {
    if steps.contains(&instruction) {
        return true;
    }
    if steps.len() >= LIMIT {
        return false;
    }
    let understood = match instruction.opcode() {
        Some(Opcode::Call) => instruction.called_function().is_some_and(|function| {
            let name = function.name();
            let known = name.strip_suffix('l').and_then(MathFunction::named_in_c);
            function.is_declaration()
                && known.is_some_and(|known| {
                    known.opcode.form() != Form::FloatSplit
                        && known.opcode.form() != Form::FloatPair
                })
                || name.starts_with("llvm.") && name.ends_with(".f80")
        }),
        Some(opcode) => {
            matches!(
                opcode,
                Opcode::FAdd
                    | Opcode::FSub
                    | Opcode::FMul
                    | Opcode::FDiv
                    | Opcode::FRem
                    | Opcode::FNeg
                    | Opcode::SIToFP
                    | Opcode::UIToFP
                    | Opcode::FPExt
            ) || ends_calculation(instruction)
        }
        None => false,
    };
    let all = understood
        && instruction.operands().into_iter().all(|operand| {
            operand.is_constant()
                || operand.is_global()
                || operand.ty().integer_width().is_some()
                || matches!(operand.ty().kind(), TypeKind::Float | TypeKind::Double)
                || is_long_double(operand.ty())
                    && operand.is_instruction()
                    && collect(operand, steps)
        });
    if all {
        steps.push(instruction);
    }
    all
}
