//! Calls of allocation functions, as [`allocation`](ferrozyme_convention::allocation) recognises them.

use super::body::{At, Leaves};
use super::error::{Result, unknown};
use super::memory::{alignment, to_word};
use ferrozyme_convention::allocation::recognise;
use ferrozyme_ir::{self as ir, Alignment, Builder, Opcode, Payload, Type};
use ferrozyme_library::{AllocationFunction, AllocationRole, Known, find};
use ferrozyme_llvm::Value;
use ferrozyme_refusal::Refusal;

/// What `malloc` aligns to.
const LARGEST_SCALAR: u64 = 16;

impl<'c> At<'_, '_, 'c, '_, '_> {
    /// What a call gives if it is one of an allocation function.
    pub(super) fn allocation_call(
        &mut self,
        call: Value<'c>,
        function: Value<'c>,
    ) -> Result<Option<Leaves>> {
        let allocates_into = |known: &'static Known| match known {
            Known::AllocatesInto(known) => Some(known.clone()),
            _ => None,
        };
        if let Some(known) = find(&function.name(), allocates_into) {
            return self.memory_into(call, known).map(Some);
        }
        let Some(known) = recognise(function) else {
            return Ok(None);
        };
        let memory = self.allocate_or_release(call, known)?;
        Ok(Some(memory.into_iter().collect()))
    }

    fn allocate_or_release(
        &mut self,
        call: Value<'c>,
        known: AllocationFunction,
    ) -> Result<Option<ir::Value>> {
        let request = self.read_request(call, known)?;
        let given = match request.known.alignment {
            None => Some(alignment(LARGEST_SCALAR)),
            Some(position) => call
                .arguments()
                .get(position as usize)
                .and_then(|given| given.as_unsigned())
                .and_then(Alignment::new),
        };
        Ok(match given {
            Some(align) => request.build(&mut self.builder(), align),
            None => {
                let align = self.allocation_argument(call, request.known.alignment)?;
                build_for_any_alignment(&mut self.builder(), &request, align)
            }
        })
    }

    /// `posix_memalign`: writes the address to where its first argument says, and gives 0. Where there is no memory left, the program stops as it does for all allocations.
    fn memory_into(&mut self, call: Value<'c>, known: AllocationFunction) -> Result<Leaves> {
        let place = self.allocation_argument(call, Some(0))?;
        let memory = self.allocate_or_release(call, known)?;
        let memory = memory.ok_or_else(|| unknown("memory without a size"))?;
        let mut builder = self.builder();
        builder.store(memory, place, Alignment::natural(Type::PTR));
        let success = builder.zero(Type::I32);
        Ok([success].into_iter().collect())
    }

    fn read_request(&mut self, call: Value<'c>, known: AllocationFunction) -> Result<Request> {
        let releases = !matches!(known.role, AllocationRole::Allocate { .. });
        if known.role == AllocationRole::Reallocate && known.old_size.is_none() {
            return Err(Refusal::UnknownSize);
        }
        Ok(Request {
            pointer: match releases {
                true => Some(self.allocation_argument(call, known.pointer)?),
                false => None,
            },
            old_size: match known.old_size {
                Some(_) if releases => Some(self.allocation_argument(call, known.old_size)?),
                _ => None,
            },
            size: match known.role {
                AllocationRole::Release => None,
                _ => Some(self.allocation_size(call, &known)?),
            },
            known,
        })
    }

    fn allocation_argument(&mut self, call: Value<'c>, position: Option<u32>) -> Result<ir::Value> {
        let arguments = call.arguments();
        let argument = position.and_then(|position| arguments.get(position as usize).copied());
        let argument =
            argument.ok_or_else(|| unknown("an allocation function without its arguments"))?;
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
}

/// What an allocation function is asked for.
struct Request {
    known: AllocationFunction,
    /// The memory that is released or resized.
    pointer: Option<ir::Value>,
    /// The size of that memory.
    old_size: Option<ir::Value>,
    /// The size of the new memory.
    size: Option<ir::Value>,
}

impl Request {
    /// The operations, for memory of this alignment; gives the new memory if there is any.
    fn build(&self, builder: &mut Builder<'_>, align: Alignment) -> Option<ir::Value> {
        let zeroed = matches!(self.known.role, AllocationRole::Allocate { zeroed: true });
        let family: Box<str> = self.known.family.as_ref().into();
        let memory = self.size.map(|size| {
            let payload = Payload::Alloc {
                align,
                zeroed,
                family: family.clone(),
            };
            builder.value(Opcode::Alloc, &[size], payload, Type::PTR)
        });
        if let (Some(memory), Some(pointer), Some(old), Some(new)) =
            (memory, self.pointer, self.old_size, self.size)
        {
            let kept = builder.binary(Opcode::Umin, old, new);
            builder.copy(memory, pointer, kept, align);
        }
        if let Some(pointer) = self.pointer {
            let operands: Vec<ir::Value> = [Some(pointer), self.old_size]
                .into_iter()
                .flatten()
                .collect();
            let align = match (self.old_size, self.known.alignment) {
                (None, None) => Alignment::ONE,
                _ => align,
            };
            let payload = Payload::Free { align, family };
            builder.op(Opcode::Free, &operands, payload, &[]);
        }
        memory
    }
}

/// The Loop IR knows alignments as constants: where a program does not (it drops a `Box<dyn Trait>`, whose layout stands in the vtable), there is a case for each.
fn build_for_any_alignment(
    builder: &mut Builder<'_>,
    request: &Request,
    align: ir::Value,
) -> Option<ir::Value> {
    let results: &[Type] = match request.size {
        Some(_) => &[Type::PTR],
        None => &[],
    };
    let alignments: Vec<u64> = (0..=LARGEST_ALIGNMENT_BITS).map(|bits| 1 << bits).collect();
    let cases: Box<[Box<[i128]>]> = alignments
        .iter()
        .map(|&align| [i128::from(align)].into())
        .collect();
    let op = builder.op(Opcode::Switch, &[align], Payload::Cases(cases), results);
    for align in alignments {
        let region = builder.function.new_region(&[]);
        builder.function.ops[op].regions.push(region);
        builder.inside(region, |builder| {
            let memory = request.build(builder, alignment(align));
            builder.yields(memory.as_slice());
        });
    }
    let other = builder.function.new_region(&[]);
    builder.function.ops[op].regions.push(other);
    builder.inside(other, |builder| {
        builder.trap("memory of an unusual alignment");
    });
    builder.function.ops[op].results.first().copied()
}

/// Memory is aligned to pages at most.
const LARGEST_ALIGNMENT_BITS: u32 = 12;
