//! Calls that clean up when the callee unwinds.
//!
//! The code of a landing pad is copied into a function, a *cleanup*. In the Loop IR the call is between two other calls, which have no effect themselves:
//!
//! ```text
//! %b = invoke double @other(double %a)                 call @f.cleanup(%p)
//!        to label %done unwind label %cleanup    →     %b = call @other(%a)
//!                                                      call @__ferrozyme_cleanup_end()
//! ```
//!
//! The first names the cleanup to run if anything before the second unwinds. The exporter turns it into landing pads again, also if the callee was replaced by its
//! derivative or inlined in between. To the passes of the Loop IR the first only reads memory.

use super::Importer;
use super::body::{At, Leaves, Names};
use super::error::Result;
use crate::outline::cleanup_of;
use ferrozyme_convention::cleanup::CLEANUP_END;
use ferrozyme_ir::{FunctionFacts, FunctionId, MemoryEffect, Opcode, Type};
use ferrozyme_llvm::{Opcode as Llvm, Value};
use std::collections::HashMap;

impl<'c> Importer<'c, '_> {
    /// Makes the cleanups of all `invoke`s of a function.
    pub(super) fn find_cleanups(&self, names: &mut Names<'c>) {
        let mut known = HashMap::new();
        let ends: Vec<Value<'c>> = names
            .blocks()
            .iter()
            .filter_map(|block| block.terminator())
            .filter(|end| end.is(Llvm::Invoke))
            .collect();
        for invoke in ends {
            let cleanup = cleanup_of(self.context, self.llvm, invoke, &mut known);
            if let Some(cleanup) = cleanup {
                names.cleanups.insert(invoke, cleanup);
            }
        }
    }

    /// A cleanup as the Loop IR knows it: it looks at memory, and may not be left out.
    pub(super) fn cleanup_function(&mut self, function: Value<'c>) -> FunctionId {
        let id = self.function(function);
        let declared = &mut self.module.functions[id];
        declared.facts = marker();
        for param in &mut declared.params {
            if param.ty == Type::PTR {
                param.facts.readonly = true;
                param.facts.nocapture = true;
            }
        }
        id
    }

    /// The function that ends what a cleanup is for.
    fn cleanup_end(&mut self) -> FunctionId {
        let end = self
            .llvm
            .declare(CLEANUP_END, self.context.void().function(&[], false));
        let id = self.function(end);
        self.module.functions[id].facts = marker();
        id
    }
}

/// What is known of the two calls: what reads memory and may not return is neither moved nor left out nor merged with another.
fn marker() -> FunctionFacts {
    FunctionFacts {
        memory: MemoryEffect::Read,
        inactive: true,
        noinline: true,
        ..FunctionFacts::default()
    }
}

impl<'c> At<'_, '_, 'c, '_, '_> {
    /// What an `invoke` gives.
    pub(super) fn invoke(&mut self, invoke: Value<'c>) -> Result<Leaves> {
        let cleanup = self.translator.names.cleanups.get(&invoke);
        let Some((function, taken)) =
            cleanup.map(|cleanup| (cleanup.function, cleanup.arguments.clone()))
        else {
            return self.call(invoke);
        };
        let mut operands = Vec::new();
        for argument in taken {
            operands.extend(self.leaves(argument)?);
        }
        let begin = self.translator.importer.cleanup_function(function);
        let region = self.writer.region;
        let position = self.writer.function.regions[region].ops.len();
        self.builder().call(begin, &operands, &[]);
        let results = self.call(invoke)?;
        let calls = |op: &ferrozyme_ir::Op| {
            let opcode = self.writer.function.ops[*op].opcode;
            matches!(opcode, Opcode::Call | Opcode::CallIndirect)
        };
        if self.writer.function.regions[region].ops[position + 1..]
            .iter()
            .any(calls)
        {
            let end = self.translator.importer.cleanup_end();
            self.builder().call(end, &[], &[]);
        } else {
            // It was no call, but an operation that does not unwind.
            self.writer.function.regions[region].ops.remove(position);
        }
        Ok(results)
    }
}
