//! C++ exceptions that are caught in differentiated code.
//!
//! Code is differentiated as if it threw nothing. If an exception is thrown and would be caught by differentiated code, the derivative ends the program like an uncaught exception:
//! `__cxa_begin_catch`, with which each handler starts, becomes a function that does not return. Exceptions that leave the differentiated code pass through its derivative.

use ferrozyme_convention::stop::show;
use ferrozyme_llvm::{Context, Linkage, Module, Place};
use ferrozyme_refusal::Refusal;

const BEGIN_CATCH: &str = "__cxa_begin_catch";
const CAUGHT: &str = "__ferrozyme_caught";

/// Lets no handler of the module return.
pub(crate) fn end_at_handlers<'c>(context: &'c Context, module: Module<'c>) {
    let Some(begin) = module.function(BEGIN_CATCH) else {
        return;
    };
    let calls: Vec<_> = begin
        .users()
        .into_iter()
        .filter(|user| user.is_instruction() && user.is_call() && user.called() == begin)
        .collect();
    let ty = begin.value_type();
    let caught = module.add_function(CAUGHT, ty);
    caught.set_linkage(Linkage::Internal);
    for fact in ["noreturn", "noinline", "nounwind", "cold"] {
        caught.add_attribute(Place::Function, context.attribute(fact, 0));
    }
    let builder = context.builder();
    builder.at_end(context.append_block(caught, "entry"));
    // It says which exception it was.
    builder.call(ty, begin, &caught.parameters());
    let text = format!("{}\n", Refusal::CaughtException.stop_text());
    show(context, module, &builder, &text);
    let terminate = module.declare("_ZSt9terminatev", context.void().function(&[], false));
    builder.call_function(terminate, &[]);
    builder.unreachable();
    for call in calls {
        builder.before(call);
        let end = builder.call(ty, caught, &call.arguments());
        end.add_attribute(Place::Function, context.attribute("noreturn", 0));
        end.set_debug_location(call.debug_location(context));
        if call.is_used() {
            call.replace_uses_with(end);
        }
        call.erase();
    }
}
