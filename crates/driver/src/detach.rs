//! Detached values, which have no derivative whatever they were computed from: the results of functions without a definition that are recognised by name.
//!
//! ```text
//! %c = call double @__ferrozyme_inactive_f64(double %x)
//! ```
//!
//! Calls of these functions exist from before optimisation until derivatives are made; then each is replaced by its argument.

use crate::opaque::INACTIVE_NAME;
use ferrozyme_convention::signature::loop_type;
use ferrozyme_llvm::{Builder, Context, Module, Opcode, Place, Value};

/// The same float without its derivative. None for other values.
pub(crate) fn detached<'c>(
    context: &'c Context,
    module: Module<'c>,
    builder: &Builder<'c>,
    value: Value<'c>,
) -> Option<Value<'c>> {
    let of = loop_type(value.ty()).filter(|of| of.is_float())?;
    let ty = value.ty().function(&[value.ty()], false);
    let function = module.declare(&format!("{INACTIVE_NAME}_{of}"), ty);
    for (fact, number) in [("memory", 0), ("nounwind", 0), ("willreturn", 0)] {
        function.add_attribute(Place::Function, context.attribute(fact, number));
    }
    Some(builder.call_function(function, &[value]))
}

/// Removes these functions again.
pub(crate) fn attach_again(module: Module<'_>) {
    for function in module.functions().collect::<Vec<_>>() {
        if !function.name().starts_with(INACTIVE_NAME) || !function.is_declaration() {
            continue;
        }
        for call in function.users() {
            if call.is_instruction() && call.is(Opcode::Call) && call.called() == function {
                call.replace_uses_with(call.arguments()[0]);
                call.erase();
            }
        }
    }
}
