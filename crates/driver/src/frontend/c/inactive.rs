//! Globals that programs declare inactive: values loaded from them have no derivative.
//!
//! ```text
//! store double %x, ptr @g               ⇒     %c = call double @__ferrozyme_inactive_f64(double %x)
//! %y = load double, ptr @g                    store double %c, ptr @g
//!                                             %l = load double, ptr @g
//!                                             %y = call double @__ferrozyme_inactive_f64(double %l)
//! ```
//!
//! Marking the memory inactive would not suffice: store-to-load forwarding replaces loads by stored values, and the memory disappears. For accesses through pointers, the activity of the memory decides.

use crate::detach::detached;
use crate::registrations::{Registration, RegistrationKind};
use ferrozyme_llvm::{Context, Module, Opcode, Value};

/// Takes derivatives from what is stored in and read from inactive globals.
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
    let builder = context.builder();
    if access.is(Opcode::Store) {
        builder.before(access);
        if let Some(constant) = detached(context, module, &builder, access.operand(0)) {
            access.set_operand(0, constant);
        }
        return;
    }
    let Some(next) = access.next_instruction() else {
        return;
    };
    builder.before(next);
    if let Some(constant) = detached(context, module, &builder, access) {
        access.replace_uses_with(constant);
        // Its own argument was replaced, too.
        constant.set_operand(0, access);
    }
}
