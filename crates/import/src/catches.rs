//! Handlers of C++ exceptions: in functions that are differentiated, an exception that reaches one ends the program.
//!
//! ```text
//! invoke void @g() to label %next unwind label %pad          invoke void @g() to label %next unwind label %end
//! pad: %e = landingpad { ptr, i32 } catch ptr @type    ⇒     end: %e = landingpad { ptr, i32 } cleanup
//!      … the handler, which goes on after the `try`               says why;  call void @std::terminate()
//! ```
//!
//! A handler cannot be reversed: the forward sweep stopped in the middle of a callee, whose tape is incomplete. So programs are differentiated as if
//! nothing were thrown, and an exception that is caught ends the program with a message. Exceptions that are not caught pass through as before.
//! (The driver has made handlers not return; here they are removed from the control flow, also those that rethrow.)

use ferrozyme_convention::stop::show;
use ferrozyme_llvm::{Block, Context, Module, Opcode, Place, Value};
use ferrozyme_refusal::Refusal;
use std::collections::HashMap;

/// What is shown where a call throws something that would be caught.
fn caught_at<'c>(context: &'c Context, invoke: Value<'c>) -> String {
    let places = invoke.source_places(context);
    let place = places.first().filter(|place| place.line > 0);
    let text = Refusal::CaughtException.stop_text();
    match place {
        Some(place) => format!("{}:{}: {text}\n", place.file, place.line),
        None => format!("{text}\n"),
    }
}

/// Makes landing pads of a function that was moved out of the way, and that end the program, handlers of everything: what would only be cleaned up ends a program
/// without a word where nobody else catches it.
pub(crate) fn catch_where_terminated<'c>(context: &'c Context, function: Value<'c>) {
    if !is_from_cpp(function) {
        return;
    }
    for block in function.blocks() {
        let ends = block
            .terminator()
            .is_some_and(|end| end.is(Opcode::Unreachable));
        let pad = block.first_after_phis();
        if let Some(pad) = pad.filter(|pad| ends && pad.is(Opcode::LandingPad)) {
            pad.add_clause(context.pointer().zero());
        }
    }
}

fn is_from_cpp(function: Value<'_>) -> bool {
    function
        .personality()
        .is_some_and(|personality| personality.name() == "__gxx_personality_v0")
}

/// Replaces the handlers of a function; whether there were any. What only they led to is left without anything that leads there.
pub(crate) fn terminate_at_handlers<'c>(
    context: &'c Context,
    module: Module<'c>,
    function: Value<'c>,
) -> bool {
    if !is_from_cpp(function) {
        return false;
    }
    // One end for each text.
    let mut ends: HashMap<String, Block<'c>> = HashMap::new();
    for block in function.blocks() {
        let Some(invoke) = block.terminator().filter(|end| end.is(Opcode::Invoke)) else {
            continue;
        };
        let pad = invoke.unwind_destination().first_after_phis();
        let Some(pad) = pad.filter(|pad| !pad.clauses().is_empty()) else {
            continue;
        };
        let text = caught_at(context, invoke);
        let end = *ends.entry(text).or_insert_with_key(|text| {
            let end = context.append_block(function, "thrown");
            let builder = context.builder();
            builder.at_end(end);
            builder.landing_pad(pad.ty()).set_cleanup(true);
            show(context, module, &builder, text);
            let terminate = module.declare("_ZSt9terminatev", context.void().function(&[], false));
            let call = builder.call_function(terminate, &[]);
            call.add_attribute(Place::Function, context.attribute("noreturn", 0));
            call.add_attribute(Place::Function, context.attribute("nounwind", 0));
            builder.unreachable();
            end
        });
        invoke.set_successor(1, end);
    }
    !ends.is_empty()
}
