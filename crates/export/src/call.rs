//! Calls and traps.

use ferrozyme_ir::{self as ir, Opcode, Payload};

use super::ExportError;
use super::body::Body;
use ferrozyme_convention::signature::{function_type, put_together, take_apart};
use ferrozyme_convention::stop::call_stop;
use ferrozyme_llvm::{Place, Type, Value};

/// Attributes that are part of the calling convention: a call without them passes something else than the function takes.
const OF_CONVENTION: [&str; 6] = ["byval", "sret", "align", "inreg", "zeroext", "signext"];

impl<'c> Body<'_, '_, 'c> {
    /// `call` and `call_indirect`.
    pub(super) fn call(&mut self, data: &ir::OpData) -> Result<(), ExportError> {
        let results = match (&data.payload, data.opcode) {
            (Payload::Callee(callee), Opcode::Call) => {
                if self.note_cleanup(*callee, &data.operands)? {
                    return Ok(());
                }
                let arguments = self.get_all(&data.operands)?;
                self.call_function(*callee, &arguments)?
            }
            (Payload::Results(results), _) => {
                let operands = self.get_all(&data.operands)?;
                let types: Vec<ir::Type> = data
                    .arguments()
                    .iter()
                    .map(|operand| self.type_of(*operand))
                    .collect();
                let of = function_type(self.exporter.context, &types, results);
                let call = self.call_or_invoke(of, operands[0], &operands[1..]);
                let extended = self.exporter.context.attribute("zeroext", 0);
                // The one promise of Rust's calling convention that types alone do not show: a bool has no other bits set.
                for (index, ty) in types.iter().enumerate() {
                    if *ty == ir::Type::I1 {
                        call.add_attribute(Place::Parameter(index as u32), extended);
                    }
                }
                if **results == [ir::Type::I1] {
                    call.add_attribute(Place::Result, extended);
                }
                take_apart(&self.exporter.builder, call)
            }
            _ => return Err(self.problem("a call has no callee (a bug in Ferrozyme)")),
        };
        for (&result, value) in data.results.iter().zip(results) {
            self.set(result, value);
        }
        Ok(())
    }

    /// Calls a function with these leaves as arguments; gives the leaves of its result.
    fn call_function(
        &mut self,
        callee: ir::FunctionId,
        arguments: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, ExportError> {
        let function = self.exporter.function(callee)?;
        let of: Type<'c> = function.value_type();
        let whole = self.whole_arguments(function, arguments)?;
        let call = self.call_or_invoke(of, function, &whole);
        if function.is_function() {
            call.set_call_convention(function.function_convention());
            let parameters = (0..whole.len() as u32).map(Place::Parameter);
            for place in parameters.chain([Place::Result]) {
                pass_in_the_same_way(function, call, place);
            }
        }
        Ok(take_apart(&self.exporter.builder, call))
    }

    /// The arguments of a function from their leaves.
    pub(super) fn whole_arguments(
        &self,
        function: Value<'c>,
        arguments: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, ExportError> {
        let of: Type<'c> = function.value_type();
        let mut leaves = arguments.iter().copied();
        let mut whole = Vec::new();
        for parameter in of.parameters() {
            let argument = put_together(&self.exporter.builder, parameter, &mut leaves);
            let misfit = || {
                let given: Vec<String> = arguments
                    .iter()
                    .map(|argument| argument.ty().to_string())
                    .collect();
                self.problem(format!("{function} has the type `{of}`, but its arguments here are ({}) (a bug in Ferrozyme)", given.join(", ")))
            };
            whole.push(argument.ok_or_else(misfit)?);
        }
        whole.extend(leaves);
        Ok(whole)
    }

    /// `trap`: the end of the block.
    pub(super) fn trap(&mut self, data: &ir::OpData) -> Result<(), ExportError> {
        if let Payload::Callee(callee) = data.payload {
            let arguments = self.get_all(&data.operands)?;
            self.call_function(callee, &arguments)?;
        } else if let Payload::Message(text) = &data.payload
            && text.starts_with(ferrozyme_refusal::STOP)
        {
            let exporter = &self.exporter;
            let text = format!("{text}\n");
            call_stop(exporter.context, exporter.into, &exporter.builder, &text);
        } else {
            let trap = self.intrinsic("llvm.trap", &[])?;
            self.exporter.builder.call_function(trap, &[]);
        }
        self.exporter.builder.unreachable();
        Ok(())
    }
}

/// A call passes arguments and results in the way that the function expects.
fn pass_in_the_same_way<'c>(function: Value<'c>, call: Value<'c>, place: Place) {
    for name in OF_CONVENTION {
        if let Some(attribute) = function.attribute(place, name) {
            call.add_attribute(place, attribute);
        }
    }
}
