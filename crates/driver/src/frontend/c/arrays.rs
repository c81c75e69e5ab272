//! C's rules about arrays, made explicit before optimisation: an array index is not negative, the distance of two elements is a multiple of their size, and allocated memory has the largest alignment.
//!
//! ```text
//! getelementptr inbounds [4 x double], ptr %a, i64 0, i64 %i     ⇒     getelementptr inbounds nuw [4 x double], ptr %a, i64 0, i64 %i
//! %n = sdiv exact i64 %bytes, 8                                  ⇒     %all = and i64 %bytes, -8
//!                                                                      %n = sdiv exact i64 %all, 8
//! ```
//!
//! In C an index out of the bounds of an array is undefined, even if the array is a field of a larger struct. LLVM only assumes that it stays inside the struct: an `int` as the
//! index of an array of doubles could then reach the integers before it, and the types of the accessed bytes would be unknown. Assumes clang's unoptimised
//! code, in which array indices are visible; indices of pointers, which may be negative, have another form.
//!
//! LLVM would fold a conversion of bytes to a number of elements and back, and then any byte could be the start of an element.

use ferrozyme_library::{Known, functions};
use ferrozyme_llvm::{Context, GepFlags, Module, Opcode, Place, TypeKind, Value};

/// The alignment of memory from C's and C++'s allocators on the machines that code is made for.
const ALLOCATED_ALIGNMENT: u64 = 16;

/// Notes it for all indices into arrays, all distances, and all allocators.
pub(crate) fn mark_arrays<'c>(context: &'c Context, module: Module<'c>) {
    let allocators = functions(|known| match known {
        Known::Allocator(known) if known.gives_memory() && known.alignment.is_none() => Some(()),
        _ => None,
    });
    for (name, ()) in allocators {
        if let Some(allocator) = module.function(name)
            && allocator.is_declaration()
            && allocator.value_type().result().is_pointer()
        {
            // Programs that round addresses up to that get what they had.
            let aligned = context.attribute("align", ALLOCATED_ALIGNMENT);
            allocator.add_attribute(Place::Result, aligned);
        }
    }
    for function in module
        .functions()
        .filter(|function| !function.is_declaration())
    {
        for instruction in function.instructions().collect::<Vec<_>>() {
            mark_distance(context, instruction);
            if !instruction.is(Opcode::GetElementPtr)
                || instruction.gep_source_type().kind() != TypeKind::Array
            {
                continue;
            }
            let operands = instruction.operands();
            let flags = instruction.gep_flags();
            let [_, first, index] = operands[..] else {
                continue;
            };
            if first.as_unsigned() == Some(0)
                && !index.is_constant()
                && flags.contains(GepFlags::INBOUNDS)
            {
                instruction.set_gep_flags(flags.with(GepFlags::NUW));
            }
        }
    }
}

/// Keeps that the distance between two pointers is a multiple of the size of what they point to, as far as that is a power of two.
fn mark_distance<'c>(context: &'c Context, instruction: Value<'c>) {
    if !instruction.is(Opcode::SDiv) || !instruction.is_exact() {
        return;
    }
    let (distance, size) = (instruction.operand(0), instruction.operand(1));
    let is_address = |value: Value<'c>| value.is_instruction() && value.is(Opcode::PtrToInt);
    let between_pointers = distance.is_instruction()
        && distance.is(Opcode::Sub)
        && is_address(distance.operand(0))
        && is_address(distance.operand(1));
    let Some(size) = size
        .as_signed()
        .filter(|size| *size > 1 && between_pointers)
    else {
        return;
    };
    let mask = distance.ty().constant(-(1 << size.trailing_zeros()));
    let builder = context.builder();
    builder.before(instruction);
    let whole = builder.binary(Opcode::And, distance, mask);
    instruction.set_operand(0, whole);
}
