//! Calls of allocation functions, as [`allocation`](crate::allocation) recognises them.

use super::body::{At, Leaves};
use super::error::{Problem, Result};
use super::memory::{alignment, to_word};
use crate::allocation::{AllocationFunction, AllocationRole, recognise};
use crate::value::Value;
use ferrozyme_ir::{self as ir, Alignment, Opcode, Payload, Type};
use smallvec::smallvec;

/// What `malloc` aligns to.
const LARGEST_SCALAR: u64 = 16;

impl<'c> At<'_, '_, 'c, '_, '_> {
    /// What a call gives if it is one of an allocation function.
    pub(super) fn allocation_call(
        &mut self,
        call: Value<'c>,
        function: Value<'c>,
    ) -> Result<Option<Leaves>> {
        let Some(known) = recognise(function).or_else(|| by_name(&function.name())) else {
            return Ok(None);
        };
        let align = self.allocation_alignment(call, &known)?;
        match known.role {
            AllocationRole::Allocate { zeroed } => {
                let size = self.allocation_size(call, &known)?;
                let memory = self.allocate(size, align, zeroed, &known);
                Ok(Some(smallvec![memory]))
            }
            AllocationRole::Release => {
                let pointer = self.allocation_argument(call, known.pointer)?;
                let size = match known.old_size {
                    Some(_) => Some(self.allocation_argument(call, known.old_size)?),
                    None => None,
                };
                self.release(pointer, size, align, &known);
                Ok(Some(Leaves::new()))
            }
            AllocationRole::Reallocate => {
                let Some(_) = known.old_size else {
                    return Err(Problem {
                        reason: "memory is resized whose size is not known".to_owned(),
                        remedy: Some("allocate, copy and free instead of `realloc`"),
                    });
                };
                let pointer = self.allocation_argument(call, known.pointer)?;
                let old = self.allocation_argument(call, known.old_size)?;
                let new = self.allocation_size(call, &known)?;
                let memory = self.allocate(new, align, false, &known);
                let mut builder = self.builder();
                let kept = builder.binary(Opcode::Umin, old, new);
                builder.copy(memory, pointer, kept, align);
                self.release(pointer, Some(old), align, &known);
                Ok(Some(smallvec![memory]))
            }
        }
    }

    fn allocate(
        &mut self,
        size: ir::Value,
        align: Alignment,
        zeroed: bool,
        known: &AllocationFunction,
    ) -> ir::Value {
        let payload = Payload::Alloc {
            align,
            zeroed,
            family: known.family.as_str().into(),
        };
        self.builder()
            .value(Opcode::Alloc, &[size], payload, Type::PTR)
    }

    fn release(
        &mut self,
        pointer: ir::Value,
        size: Option<ir::Value>,
        align: Alignment,
        known: &AllocationFunction,
    ) {
        let mut operands = vec![pointer];
        operands.extend(size);
        let align = if size.is_some() {
            align
        } else {
            Alignment::ONE
        };
        let payload = Payload::Free {
            align,
            family: known.family.as_str().into(),
        };
        self.builder().op(Opcode::Free, &operands, payload, &[]);
    }

    fn allocation_argument(&mut self, call: Value<'c>, position: Option<u32>) -> Result<ir::Value> {
        let arguments = call.arguments();
        let argument = position.and_then(|position| arguments.get(position as usize).copied());
        let argument =
            argument.ok_or_else(|| Problem::new("an allocation function without its arguments"))?;
        let value = self.value(argument)?;
        if self.writer.function.ty(value).is_int() {
            return Ok(to_word(&mut self.builder(), value));
        }
        Ok(value)
    }

    fn allocation_size(
        &mut self,
        call: Value<'c>,
        known: &AllocationFunction,
    ) -> Result<ir::Value> {
        let size = self.allocation_argument(call, known.size)?;
        if known.count.is_none() {
            return Ok(size);
        }
        let count = self.allocation_argument(call, known.count)?;
        Ok(self.builder().binary(Opcode::Mul, size, count))
    }

    fn allocation_alignment(
        &mut self,
        call: Value<'c>,
        known: &AllocationFunction,
    ) -> Result<Alignment> {
        let Some(position) = known.alignment else {
            return Ok(alignment(LARGEST_SCALAR));
        };
        let given = call
            .arguments()
            .get(position as usize)
            .and_then(|given| given.as_unsigned());
        given.and_then(Alignment::new).ok_or_else(|| Problem {
            reason: "memory is allocated with an alignment that is not constant".to_owned(),
            remedy: Some("keep the allocation out of what is differentiated"),
        })
    }
}

/// C's functions, where a declaration does not say what they do.
fn by_name(name: &str) -> Option<AllocationFunction> {
    let (role, size, count) = match name {
        "malloc" => (AllocationRole::Allocate { zeroed: false }, Some(0), None),
        "calloc" => (AllocationRole::Allocate { zeroed: true }, Some(1), Some(0)),
        "realloc" => (AllocationRole::Reallocate, Some(1), None),
        "free" => (AllocationRole::Release, None, None),
        _ => return None,
    };
    let pointer = matches!(name, "free" | "realloc").then_some(0);
    Some(AllocationFunction {
        family: "malloc".to_owned(),
        role,
        size,
        count,
        alignment: None,
        pointer,
        old_size: None,
    })
}
