//! Global variables that programs declare inactive: what is read from them is a number like any other.
//!
//! ```text
//! store double %x, ptr @g               ⇒     %c = call double @__ferrozyme_inactive_f64(double %x)
//! %y = load double, ptr @g                    store double %c, ptr @g
//!                                             %l = load double, ptr @g
//!                                             %y = call double @__ferrozyme_inactive_f64(double %l)
//! ```
//!
//! That the memory is inactive alone would not do: optimisers put what was stored in the place of what is read, and the memory is gone. The functions exist from before optimisation until derivatives are made; then each is
//! its argument. Accesses through pointers that went elsewhere are left to what is known of the memory.

use crate::opaque::INACTIVE_NAME;
use crate::registrations::{Registration, RegistrationKind};
use ferrozyme_llvm::signature::loop_type;
use ferrozyme_llvm::{Context, Module, Opcode, Place, Value};

/// Puts a function without derivative around what is stored in and read from inactive globals.
pub(crate) fn detach_inactive_globals<'c>(
    context: &'c Context,
    module: Module<'c>,
    registrations: &[Registration],
) {
    for registration in registrations {
        if registration.kind != RegistrationKind::InactiveGlobal {
            continue;
        }
        let Some(global) = module.global(&registration.primal) else {
            continue;
        };
        for access in accesses(global) {
            detach(context, module, access);
        }
    }
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

/// Loads and stores of a variable and its parts.
fn accesses(global: Value<'_>) -> Vec<Value<'_>> {
    let mut found = Vec::new();
    let mut addresses = vec![global];
    while let Some(address) = addresses.pop() {
        for user in address.users() {
            match user.opcode() {
                Some(Opcode::GetElementPtr | Opcode::BitCast | Opcode::AddrSpaceCast) => {
                    addresses.push(user);
                }
                Some(Opcode::Load) => found.push(user),
                Some(Opcode::Store) if user.operand(1) == address => found.push(user),
                _ => {}
            }
        }
    }
    found
}

fn detach<'c>(context: &'c Context, module: Module<'c>, access: Value<'c>) {
    let is_load = access.is(Opcode::Load);
    let value = match is_load {
        true => access,
        false => access.operand(0),
    };
    let Some(of) = loop_type(value.ty()).filter(|of| of.is_float()) else {
        return;
    };
    let ty = value.ty().function(&[value.ty()], false);
    let function = module.declare(&format!("{INACTIVE_NAME}_{of}"), ty);
    for (fact, number) in [("memory", 0), ("nounwind", 0), ("willreturn", 0)] {
        function.add_attribute(Place::Function, context.attribute(fact, number));
    }
    let builder = context.builder();
    match (is_load, access.next_instruction()) {
        (true, Some(next)) => {
            builder.before(next);
            // It must not be its own argument.
            let call = builder.call_function(function, &[value.ty().undef()]);
            access.replace_uses_with(call);
            call.set_operand(0, access);
        }
        _ => {
            builder.before(access);
            let call = builder.call_function(function, &[value]);
            access.set_operand(0, call);
        }
    }
}
