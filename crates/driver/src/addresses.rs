//! Gives functions of C's mathematical library a body if their address is taken, so that indirect calls of them have a derivative:
//!
//! ```text
//! double (*table[])(double) = {sin, exp};
//! ```

use ferrozyme_library::mathematical;
use ferrozyme_llvm::{Context, Linkage, Module, Place, Value};

/// Puts a function around each in its place; direct calls are inlined again.
pub(crate) fn wrap_library_addresses<'c>(context: &'c Context, module: Module<'c>) {
    for function in module.functions().collect::<Vec<_>>() {
        let ty = function.value_type();
        if !function.is_declaration()
            || ty.is_variadic()
            || mathematical(&function.name()).is_none()
        {
            continue;
        }
        if !function
            .users()
            .into_iter()
            .any(|user| takes_address(user, function))
        {
            continue;
        }
        let around = module.add_function(&format!("{}.addressed", function.name()), ty);
        around.set_linkage(Linkage::Internal);
        around.add_attribute(Place::Function, context.attribute("alwaysinline", 0));
        function.replace_uses_with(around);
        let builder = context.builder();
        builder.at_end(context.append_block(around, "entry"));
        let result = builder.call(ty, function, &around.parameters());
        match ty.result().is_void() {
            true => builder.return_nothing(),
            false => builder.return_value(result),
        };
    }
}

/// Whether more is done with a function than calling it.
fn takes_address<'c>(user: Value<'c>, function: Value<'c>) -> bool {
    !user.is_instruction()
        || !user.is_call()
        || user.called() != function
        || user.arguments().contains(&function)
}
