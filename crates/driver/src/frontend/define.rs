//! What front ends have in common in the functions that they define: roots in LLVM's module, and what requests call in the Loop IR.

use ferrozyme_diff::constant_in_shadow;
use ferrozyme_ir::{
    Alignment, Builder, Function, FunctionId, Global, GlobalId, Module, Scalar, Type,
};
use ferrozyme_llvm::{Context, Place, Value};

/// What is inlined into a function that is made here must be allowed there: the same processor and features, and unwinding.
pub(crate) fn adopt_target<'c>(context: &'c Context, made: Value<'c>, inlined: Value<'c>) {
    made.adopt_processor(context, inlined);
    made.add_attribute(Place::Function, context.attribute("uwtable", 2));
}

/// Sets shadows of statics to what they are at the start of a derivative: floats are zero, pointers null, and what is a copy of a constant is that again.
pub(crate) fn reset_shadows(build: &mut Builder<'_>, module: &Module, shadows: &[GlobalId]) {
    for &shadow in shadows {
        let Global { size, align, .. } = module.globals[shadow];
        let to = build.global_address(shadow);
        let Some(constant) = constant_in_shadow(module, shadow) else {
            let bytes = build.i64(size as i64);
            let zero = build.function.int(Type::scalar_of(Scalar::Int(8)), 0);
            build.fill(to, zero, bytes, align);
            continue;
        };
        let from = build.global_address(constant);
        let mut copy = |start: u64, end: u64| {
            if start < end {
                let (at, bytes) = (build.i64(start as i64), build.i64((end - start) as i64));
                let (to, from) = (build.offset(to, at, 1), build.offset(from, at, 1));
                build.copy(to, from, bytes, Alignment::ONE);
            }
        };
        let mut done = 0;
        for &(at, _) in &module.globals[shadow].relocations {
            copy(done, at);
            done = at + Scalar::Ptr.bytes();
        }
        copy(done, size);
    }
}

/// Puts the function in the place of its declaration if there is one.
pub(crate) fn define(module: &mut Module, function: Function) -> FunctionId {
    match module.function_named(&function.name) {
        Some(id) => {
            module.functions[id] = function;
            id
        }
        None => module.functions.push(function),
    }
}
