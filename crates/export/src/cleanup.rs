//! Landing pads: code that runs when a call unwinds.
//!
//! In the Loop IR it is two calls around those that may unwind (see `import/cleanup.rs`). Neither is emitted; between them, every call is an `invoke`, whose landing pad
//! runs the open cleanups, the innermost first, and resumes unwinding.

use super::ExportError;
use super::body::Body;
use ferrozyme_convention::cleanup::{CLEANUP_END, is_cleanup};
use ferrozyme_ir as ir;
use ferrozyme_llvm::{Place, Type, Value};

/// A cleanup, with what it takes.
pub(super) struct OpenCleanup<'c> {
    function: Value<'c>,
    arguments: Vec<Value<'c>>,
}

impl<'c> Body<'_, '_, 'c> {
    /// Notes where cleanups begin and end; gives whether that is what a call is for.
    pub(super) fn note_cleanup(
        &mut self,
        callee: ir::FunctionId,
        operands: &[ir::Value],
    ) -> Result<bool, ExportError> {
        if self.exporter.module.functions[callee].name == CLEANUP_END {
            if self.cleanups.len() > self.outer_cleanups {
                self.cleanups.pop();
            }
            return Ok(true);
        }
        if self.exporter.module.functions[callee].body.is_some() {
            return Ok(false);
        }
        let function = self.exporter.function(callee)?;
        if !is_cleanup(function) {
            return Ok(false);
        }
        let arguments = self.get_all(operands)?;
        let arguments = self.whole_arguments(function, &arguments)?;
        self.cleanups.push(OpenCleanup {
            function,
            arguments,
        });
        Ok(true)
    }

    /// A call, with a landing pad if there is something to do when it unwinds.
    pub(super) fn call_or_invoke(
        &mut self,
        of: Type<'c>,
        callee: Value<'c>,
        arguments: &[Value<'c>],
    ) -> Value<'c> {
        let cannot_unwind =
            callee.is_function() && callee.has_attribute(Place::Function, "nounwind");
        if self.cleanups.is_empty() || cannot_unwind {
            return self.exporter.builder.call(of, callee, arguments);
        }
        let (normal, unwind) = (self.new_block("returned"), self.new_block("unwinding"));
        let builder = &self.exporter.builder;
        let invoke = builder.invoke(of, callee, arguments, normal, unwind);
        builder.at_end(unwind);
        let context = self.exporter.context;
        let exception = context.structure(&[context.pointer(), context.integer(32)], false);
        let pad = builder.landing_pad(exception).set_cleanup(true);
        // A handler that ends the program must be found by who throws, or it would not be called where nobody else catches.
        let mut functions = self.cleanups.iter().map(|cleanup| cleanup.function);
        if functions.any(|function| function.has_attribute(Place::Function, "noreturn")) {
            pad.add_clause(context.pointer().zero());
        }
        for cleanup in self.cleanups.iter().rev() {
            if self.function.personality().is_none() {
                self.function
                    .set_personality(cleanup.function.personality());
            }
            builder.call_function(cleanup.function, &cleanup.arguments);
        }
        builder.resume(pad);
        builder.at_end(normal);
        invoke
    }
}
