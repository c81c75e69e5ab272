//! Machine code of a lowered graph, as an object.

use crate::entry::add_entry;
use ferrozyme_backend::Error;
use ferrozyme_export::{ExportOptions, export};
use ferrozyme_graph::lower::Lowered;
use ferrozyme_ir::{FunctionId, Module, Opcode, Scalar, all_ops, verify_module};
use ferrozyme_llvm::compile::{OptimisationLevel, compile};
use ferrozyme_llvm::{CodegenLevel, Context, Linkage, TargetDescription};
use ferrozyme_opt::lower_contractions;

/// A lowered graph that is ready to be compiled, with the function that runs it.
pub(crate) struct Linkable {
    module: Module,
    run: FunctionId,
}

impl Linkable {
    /// Connects a lowered graph with the process that it will run in. The function that runs it has this name.
    pub(crate) fn new(lowered: Lowered, name: &str) -> Result<Linkable, Error> {
        let mut module = lowered.module;
        define_contractions(&mut module);
        let run = add_entry(&mut module, lowered.main, name);
        verify_module(&module).map_err(|errors| Error::Compile(errors[0].to_string()))?;
        Ok(Linkable { module, run })
    }

    /// Gives the function that runs it another name.
    pub(crate) fn rename(&mut self, name: &str) {
        self.module.functions[self.run].name = name.to_owned();
    }

    /// An object for a processor of a target (`""`: the host), which defines the function that runs it and nothing else that others see. LLVM must be there: the object depends on no context.
    pub(crate) fn compile(&self, processor: &str, triple: &str) -> Result<Vec<u8>, Error> {
        let problem = |error: &dyn std::fmt::Display| Error::Compile(error.to_string());
        let context = Context::new().map_err(|error| problem(&error))?;
        let into = context.create_module("graph");
        let exported = export(&self.module, &[self.run], into, &ExportOptions::default())
            .map_err(|error| problem(&error))?;
        // Objects of several graphs, and for several processors, are in one program.
        for function in into
            .functions()
            .filter(|function| !function.is_declaration())
        {
            function.set_linkage(Linkage::Internal);
        }
        for function in exported {
            function.set_linkage(Linkage::External);
        }
        let target = TargetDescription {
            triple: triple.to_owned(),
            cpu: processor.to_owned(),
            level: CodegenLevel::Aggressive,
            ..TargetDescription::default()
        };
        compile(into, OptimisationLevel::O3, &target).map_err(|error| problem(&error))
    }
}

/// Contractions become calls of kernels, which are added.
fn define_contractions(module: &mut Module) {
    let functions: Vec<FunctionId> = module.functions.keys().collect();
    for id in functions {
        let function = &module.functions[id];
        if function.body.is_none() {
            continue;
        }
        let contracted = |scalar: Scalar| {
            all_ops(function).into_iter().any(|op| {
                let contraction = function.ops[op].contraction();
                function.ops[op].opcode == Opcode::Contract
                    && contraction.is_some_and(|c| function.ty(c.factor).scalar() == scalar)
            })
        };
        let needed = [Scalar::F32, Scalar::F64].map(|scalar| contracted(scalar).then_some(scalar));
        for scalar in needed.into_iter().flatten() {
            ferrozyme_kernels::contraction(module, scalar);
        }
        lower_contractions(module, id);
    }
}
