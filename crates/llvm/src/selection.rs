//! What must not reach the code generator, since it would end the process.

use crate::module::Module;
use crate::opcode::Opcode;
use crate::target::DataLayout;
use crate::types::TypeKind;

/// Hides from the code generator for x86 that a vector of 64 bits comes from memory, where several operations read it.
///
/// ```text
/// %index = load <2 x i32>, ptr %p            %loaded = load <2 x i32>, ptr %p
/// %a = icmp eq <2 x i32> %index, …   ─▶      %index = freeze <2 x i32> %loaded
/// %b = icmp eq <2 x i32> %index, …           %a = icmp eq <2 x i32> %index, …
/// ```
///
/// LLVM 22 joins such operations to one of a wide vector whose load repeats the 64 bits, and with AVX-512 there is no instruction for that load (`Cannot select: X86ISD::SUBV_BROADCAST_LOAD`). A `freeze` is no
/// instruction either, and nothing is folded through it.
pub(crate) fn hide_narrow_loads(module: Module<'_>) {
    if !module.triple().starts_with("x86_64") {
        return;
    }
    let layout = DataLayout::of(module);
    let functions = module
        .functions()
        .filter(|function| !function.is_declaration());
    for load in functions.flat_map(|function| function.instructions().collect::<Vec<_>>()) {
        let is_narrow = load.is(Opcode::Load)
            && load.ty().kind() == TypeKind::Vector
            && layout.size(load.ty()) == 8;
        if !is_narrow || load.users().len() < 2 {
            continue;
        }
        let Some(next) = load.next_instruction() else {
            continue;
        };
        let builder = module.owner.builder();
        builder.before(next);
        let frozen = builder.freeze(load.ty().poison());
        // Built of something else first, so that not its own operand is replaced.
        load.replace_uses_with(frozen);
        frozen.set_operand(0, load);
    }
}
