//! What C says of arrays, for the optimiser to keep: an index into an array is not negative.
//!
//! ```text
//! getelementptr inbounds [4 x double], ptr %a, i64 0, i64 %i     ⇒     getelementptr inbounds nuw [4 x double], ptr %a, i64 0, i64 %i
//! ```
//!
//! An index out of the bounds of an array has no meaning in C, even where the array is a field of a larger struct. LLVM only takes it not to leave the struct: an `int` as the
//! index of an array of doubles could then lead back to the integers that stand before it, and whether they carry derivatives could not be told. Assumes code as clang gives it, not
//! optimised, in which indices into arrays still show as such; indices of pointers, which may be negative, look differently.

use ferrozyme_llvm::{GepFlags, Module, Opcode, TypeKind};

/// Notes it for all indices into arrays.
pub(crate) fn mark_array_indices(module: Module<'_>) {
    for function in module
        .functions()
        .filter(|function| !function.is_declaration())
    {
        for instruction in function.instructions() {
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
