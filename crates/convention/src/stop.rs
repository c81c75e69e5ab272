//! Stops a program with a message on the standard error, for refusals that are known only at run time.

use ferrozyme_llvm::{Builder, Context, Linkage, Module, Place, Value};

/// The function that shows a text and stops.
pub const STOP: &str = "__ferrozyme_no_derivative";

/// Calls the function that shows a text and stops. What comes behind it is not reached.
pub fn call_stop<'c>(
    context: &'c Context,
    module: Module<'c>,
    builder: &Builder<'c>,
    text: &str,
) -> Value<'c> {
    let (message, length) = add_text(context, module, text);
    builder.call_function(stop_function(context, module), &[message, length])
}

/// Shows a text.
pub fn show<'c>(context: &'c Context, module: Module<'c>, builder: &Builder<'c>, text: &str) {
    let (message, length) = add_text(context, module, text);
    let errors = context.integer(32).constant(2);
    builder.call_function(write_function(context, module), &[errors, message, length]);
}

fn write_function<'c>(context: &'c Context, module: Module<'c>) -> Value<'c> {
    let (pointer, int, word) = (context.pointer(), context.integer(32), context.integer(64));
    module.declare("write", word.function(&[int, pointer, word], false))
}

/// The address and the length of a text.
fn add_text<'c>(context: &'c Context, module: Module<'c>, text: &str) -> (Value<'c>, Value<'c>) {
    let bytes = context.bytes(text.as_bytes());
    let message = module.add_global("__ferrozyme_text", bytes.ty());
    message.set_initialiser(Some(bytes));
    message.set_global_constant(true);
    message.set_linkage(Linkage::Private);
    (message, context.integer(64).constant(text.len() as i128))
}

fn stop_function<'c>(context: &'c Context, module: Module<'c>) -> Value<'c> {
    if let Some(known) = module.function(STOP) {
        return known;
    }
    let (pointer, int, word) = (context.pointer(), context.integer(32), context.integer(64));
    let write = write_function(context, module);
    let abort = module.declare("abort", context.void().function(&[], false));
    let ty = context.void().function(&[pointer, word], false);
    let function = module.add_function(STOP, ty);
    // Known to others as far as LLVM's optimiser can tell, or it would lose its parameters.
    function.set_linkage(Linkage::External);
    for fact in ["noreturn", "noinline", "cold"] {
        function.add_attribute(Place::Function, context.attribute(fact, 0));
    }
    let builder = context.builder();
    builder.at_end(context.append_block(function, "entry"));
    let [text, length] = function.parameters()[..] else {
        unreachable!("it was made with two parameters")
    };
    builder.call_function(write, &[int.constant(2), text, length]);
    builder.call_function(abort, &[]);
    builder.unreachable();
    function
}
