//! Handlers of C++ exceptions: in functions that are differentiated, an exception that reaches one ends the program.
//!
//! ```text
//! invoke void @g() to label %next unwind label %pad          invoke void @g() to label %next unwind label %end
//! pad: %e = landingpad { ptr, i32 } catch ptr @type    ⇒     end: %e = landingpad { ptr, i32 } cleanup
//!      … the handler, which goes on after the `try`               says why;  call void @std::terminate()
//! ```
//!
//! What a handler does has no place in the reverse sweep: the forward sweep stopped in the middle of a callee, whose tape is not complete. So programs are differentiated as if
//! nothing were thrown, and whoever throws all the same learns of it. Exceptions that pass through without being caught do as before.
//! (The driver makes sure before that no handler comes back; here they leave the control flow, also those that throw on what they caught.)

use crate::attribute::Place;
use crate::context::Context;
use crate::module::Module;
use crate::opcode::Opcode;
use crate::stop::{CAUGHT, show};
use crate::value::Value;

/// Replaces the handlers of a function; whether there were any. What only they led to is left without anything that leads there.
pub(crate) fn terminate_at_handlers<'c>(
    context: &'c Context,
    module: Module<'c>,
    function: Value<'c>,
) -> bool {
    let from_cpp = function
        .personality()
        .is_some_and(|personality| personality.name() == "__gxx_personality_v0");
    if !from_cpp {
        return false;
    }
    let mut end = None;
    for block in function.blocks() {
        let Some(invoke) = block.terminator().filter(|end| end.is(Opcode::Invoke)) else {
            continue;
        };
        let pad = invoke.unwind_destination().first_after_phis();
        let Some(pad) = pad.filter(|pad| !pad.clauses().is_empty()) else {
            continue;
        };
        let end = *end.get_or_insert_with(|| {
            let end = context.append_block(function, "thrown");
            let builder = context.builder();
            builder.at_end(end);
            builder.landing_pad(pad.ty()).set_cleanup(true);
            show(context, module, &builder, CAUGHT);
            let terminate = module.declare("_ZSt9terminatev", context.void().function(&[], false));
            let call = builder.call_function(terminate, &[]);
            call.add_attribute(Place::Function, context.attribute("noreturn", 0));
            call.add_attribute(Place::Function, context.attribute("nounwind", 0));
            builder.unreachable();
            end
        });
        invoke.set_successor(1, end);
    }
    end.is_some()
}
