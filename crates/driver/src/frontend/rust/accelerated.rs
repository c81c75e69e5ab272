//! Functions with `#[accelerate]` have a request for themselves in front of their bodies, and ask which of the two they run.
//!
//! ```text
//! %is = call i1 @__ferrozyme_request_accelerated()        %is = load i1, ptr @__ferrozyme_accelerated
//! br i1 %is, label %request, label %body             ⇒    br i1 %is, label %request, label %body
//! ```
//!
//! In the program it is the request. In the working module it is the body: the root of the request calls it, and so do functions that are differentiated.

use ferrozyme_llvm::{Context, Linkage, Module, UnnamedAddress};

/// The foreign function that asks.
const QUESTION: &str = "__ferrozyme_request_accelerated";

/// The constants that answer.
const ANSWER: &str = "__ferrozyme_accelerated";

/// Whether a module has accelerated functions.
pub(super) fn has_accelerated(module: Module<'_>) -> bool {
    module.function(QUESTION).is_some()
}

/// Lets the accelerated functions of a module run their requests.
pub(super) fn take_requests<'c>(context: &'c Context, module: Module<'c>) {
    let Some(foreign) = module.function(QUESTION) else {
        return;
    };
    let ty = foreign.value_type().result();
    let answer = module.add_global(ANSWER, ty);
    answer.set_initialiser(Some(ty.constant(1)));
    answer.set_global_constant(true);
    answer.set_linkage(Linkage::Private);
    answer.set_unnamed_address(UnnamedAddress::Global);
    let builder = context.builder();
    for call in foreign.users() {
        if call.is_instruction() && call.is_call() && call.called() == foreign {
            builder.before(call);
            call.replace_uses_with(builder.load(ty, answer));
            call.erase();
        }
    }
}

/// Lets them run their bodies, in a module that is linked into the working module.
pub(super) fn take_bodies(module: Module<'_>) {
    for global in module.globals().collect::<Vec<_>>() {
        if global.name().starts_with(ANSWER) {
            let ty = global.value_type();
            global.set_initialiser(Some(ty.constant(0)));
        }
    }
}
