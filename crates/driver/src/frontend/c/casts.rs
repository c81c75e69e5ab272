//! `dynamic_cast`, a library call that returns a pointer to the same object or null.
//!
//! ```text
//! %r = call ptr @__dynamic_cast(ptr %p, …)     ⇒     %r = call ptr @__ferrozyme_dynamic_cast(ptr %p, …)     ; null, or %p itself
//! ```
//!
//! The call of the library does not show that the result points into the same object. If base and derived class start at the same offset, it is the same pointer. If they do not, the derivative stops the program with a message.

use ferrozyme_convention::stop::call_stop;
use ferrozyme_llvm::{Context, IntPredicate, Linkage, Module, Opcode, Place};
use ferrozyme_refusal::Refusal;

/// The library's function.
const DYNAMIC_CAST: &str = "__dynamic_cast";
const OURS: &str = "__ferrozyme_dynamic_cast";

/// Lets casts give the pointer that they were given.
pub(crate) fn follow_casts<'c>(context: &'c Context, module: Module<'c>) {
    let Some(library) = module.function(DYNAMIC_CAST) else {
        return;
    };
    let calls: Vec<_> = library
        .users()
        .into_iter()
        .filter(|user| user.is_instruction() && user.is(Opcode::Call) && user.called() == library)
        .collect();
    let ours = module.add_function(OURS, library.value_type());
    ours.set_linkage(Linkage::Internal);
    ours.add_attribute(Place::Function, context.attribute("alwaysinline", 0));
    let builder = context.builder();
    let [entry, found, same, elsewhere, none] = ["entry", "found", "same", "elsewhere", "none"]
        .map(|name| context.append_block(ours, name));
    let object = ours.parameter(0);
    let null = context.pointer().zero();
    builder.at_end(entry);
    let result = builder.call_function(library, &ours.parameters());
    let is_null = builder.compare_integers(IntPredicate::Eq, result, null);
    builder.branch_if(is_null, none, found);
    builder.at_end(found);
    let is_same = builder.compare_integers(IntPredicate::Eq, result, object);
    builder.branch_if(is_same, same, elsewhere);
    builder.at_end(same);
    builder.return_value(object);
    builder.at_end(elsewhere);
    let text = format!("{}\n", Refusal::CastElsewhere.stop_text());
    call_stop(context, module, &builder, &text);
    builder.unreachable();
    builder.at_end(none);
    builder.return_value(null);
    for call in calls {
        builder.before(call);
        let followed = builder.call_function(ours, &call.arguments());
        followed.set_debug_location(call.debug_location(context));
        call.replace_uses_with(followed);
        call.erase();
    }
}
