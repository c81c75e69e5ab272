//! Calls: direct, indirect, and of functions that do not return.

use super::body::{At, Leaves};
use super::constant::unknown_type;
use super::error::Result;
use super::memory::alignment;
use ferrozyme_convention::signature::leaves;
use ferrozyme_ir::{self as ir, Opcode, Payload, Type};
use ferrozyme_library::{Known, is};
use ferrozyme_llvm::{AttributeData, Place, Value, ValueKind};
use ferrozyme_refusal::Refusal;

impl<'c> At<'_, '_, 'c, '_, '_> {
    /// What a call gives.
    pub(super) fn call(&mut self, call: Value<'c>) -> Result<Leaves> {
        if let Some(intrinsic) = call.called_intrinsic() {
            return self.intrinsic(call, &intrinsic);
        }
        let Some(function) = called_function(call) else {
            return self.indirect_call(call);
        };
        let name = function.name();
        if is(&name, &Known::Note) {
            return Ok(Leaves::new());
        }
        if call.call_has_attribute(Place::Function, "returns_twice") {
            return Err(Refusal::ReturnsTwice { callee: name });
        }
        if let Some(values) = self.library_call(call, &name)? {
            return Ok(values);
        }
        if let Some(values) = self.memory_call(call, &name)? {
            return Ok(values);
        }
        if let Some(values) = self.allocation_call(call, function)? {
            return Ok(values);
        }
        let callee = self.callee(function)?;
        let operands = self.arguments(call)?;
        let results = self.translator.importer.module.functions[callee]
            .results
            .clone();
        let op = self.builder().call(callee, &operands, &results);
        Ok(self.writer.function.ops[op]
            .results
            .iter()
            .copied()
            .collect())
    }

    /// Ends the region with a call that does not come back.
    pub(super) fn trap_by(&mut self, call: Value<'c>) -> Result<()> {
        if let Some(intrinsic) = call.called_intrinsic() {
            let what = match super::intrinsic::base_name(&intrinsic) {
                "trap" | "ubsantrap" | "debugtrap" => "abort",
                _ => {
                    self.intrinsic(call, &intrinsic)?;
                    "unreachable"
                }
            };
            self.builder().trap(what);
            return Ok(());
        }
        let Some(function) = called_function(call) else {
            self.indirect_call(call)?;
            self.builder().trap("unreachable");
            return Ok(());
        };
        let callee = self.callee(function)?;
        let operands = self.arguments(call)?;
        self.builder().trap_call(callee, &operands);
        Ok(())
    }

    /// The function of the Loop IR for one that is called.
    fn callee(&mut self, function: Value<'c>) -> Result<ir::FunctionId> {
        let importer = &mut *self.translator.importer;
        let callee = importer.function(function);
        // One whose types cannot be said is declared without any, and cannot be called.
        if let Some(problem) = importer.opaque.get(&callee)
            && importer.module.functions[callee].params.is_empty()
            && function.parameter_count() > 0
        {
            return Err(problem.refusal.clone());
        }
        Ok(callee)
    }

    fn indirect_call(&mut self, call: Value<'c>) -> Result<Leaves> {
        if call.called().is_inline_assembly() {
            return Err(Refusal::Assembly);
        }
        let of = call.called_type();
        if of.is_variadic() {
            return Err(Refusal::Variadic);
        }
        let results = leaves(of.result()).ok_or_else(|| unknown_type(of.result()))?;
        let mut operands = vec![self.value(call.called())?];
        operands.extend(self.arguments(call)?);
        let payload = Payload::Results(results.clone().into_boxed_slice());
        let op = self
            .builder()
            .op(Opcode::CallIndirect, &operands, payload, &results);
        Ok(self.writer.function.ops[op]
            .results
            .iter()
            .copied()
            .collect())
    }

    /// The arguments of a call, leaf by leaf. What is passed by value in memory is copied, since the callee may change it.
    fn arguments(&mut self, call: Value<'c>) -> Result<Vec<ir::Value>> {
        let mut operands = Vec::new();
        for (index, argument) in call.arguments().into_iter().enumerate() {
            let values = self.leaves(argument)?;
            let place = Place::Parameter(index as u32);
            if let (Some(of), [address]) = (by_value_type(call, place), &values[..]) {
                let size = self.translator.importer.layout.size(of);
                let natural = u64::from(self.translator.importer.layout.alignment(of));
                let align = call.attribute_value(place, "align").unwrap_or(natural);
                let mut builder = self.builder();
                let bytes = builder.i64(size as i64);
                let copy = builder.stack(bytes, alignment(align));
                builder.copy(copy, *address, bytes, alignment(align));
                operands.push(copy);
            } else {
                operands.extend(values);
            }
        }
        Ok(operands)
    }

    /// `memcpy` and its kind as functions: they give the address that they wrote to.
    fn memory_call(&mut self, call: Value<'c>, name: &str) -> Result<Option<Leaves>> {
        let opcode = match name {
            "memcpy" => Opcode::Copy,
            "memmove" => Opcode::Move,
            "memset" => Opcode::Fill,
            _ => return Ok(None),
        };
        let arguments = call.arguments();
        let [to, from, bytes] = arguments[..] else {
            return Ok(None);
        };
        let (to, mut from) = (self.value(to)?, self.value(from)?);
        let bytes = self.value(bytes)?;
        let mut builder = self.builder();
        if opcode == Opcode::Fill {
            from = builder.cast(Opcode::TruncInt, from, Type::I8);
        }
        builder.op(
            opcode,
            &[to, from, bytes],
            Payload::Align(alignment(1)),
            &[],
        );
        let mut results = Leaves::new();
        if !call.ty().is_void() {
            results.push(to);
        }
        Ok(Some(results))
    }
}

/// The function that is called, also through an alias.
pub(super) fn called_function(call: Value<'_>) -> Option<Value<'_>> {
    if let Some(function) = call.called_function() {
        return Some(function);
    }
    let mut callee = call.called();
    while callee.kind() == ValueKind::Alias {
        callee = callee.aliasee()?;
    }
    (callee.is_function() && callee.value_type() == call.called_type()).then_some(callee)
}

/// The type that is passed by value in memory, if an argument is.
fn by_value_type<'c>(call: Value<'c>, place: Place) -> Option<ferrozyme_llvm::Type<'c>> {
    let function = called_function(call);
    let own = call.attribute(place, "byval");
    let attribute =
        own.or_else(|| function.and_then(|function| function.attribute(place, "byval")))?;
    match attribute.data() {
        AttributeData::Type(_, of) => Some(of),
        _ => None,
    }
}
