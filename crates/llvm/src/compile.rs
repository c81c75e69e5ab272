//! Optimises a module and makes an object of it.

use crate::module::{LlvmError, Module};
use crate::passes::PassOptions;
use crate::target::{CodegenLevel, TargetDescription, TargetMachine};

/// How much to optimise: the levels of `-C opt-level`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "rustc's own names")]
pub enum OptimisationLevel {
    O0,
    O1,
    O2,
    #[default]
    O3,
    Os,
    Oz,
}

impl OptimisationLevel {
    /// The level of `-C opt-level=…`.
    pub fn of_text(text: &str) -> Option<OptimisationLevel> {
        Some(match text {
            "0" => OptimisationLevel::O0,
            "1" => OptimisationLevel::O1,
            "2" => OptimisationLevel::O2,
            "3" => OptimisationLevel::O3,
            "s" => OptimisationLevel::Os,
            "z" => OptimisationLevel::Oz,
            _ => return None,
        })
    }

    /// LLVM's pipeline for it.
    pub fn pipeline(self) -> &'static str {
        match self {
            OptimisationLevel::O0 => "default<O0>",
            OptimisationLevel::O1 => "default<O1>",
            OptimisationLevel::O2 => "default<O2>",
            OptimisationLevel::O3 => "default<O3>",
            OptimisationLevel::Os => "default<Os>",
            OptimisationLevel::Oz => "default<Oz>",
        }
    }

    /// How much the code generator does for it.
    pub fn codegen_level(self) -> CodegenLevel {
        match self {
            OptimisationLevel::O0 => CodegenLevel::None,
            OptimisationLevel::O1 => CodegenLevel::Less,
            OptimisationLevel::O3 => CodegenLevel::Aggressive,
            OptimisationLevel::O2 | OptimisationLevel::Os | OptimisationLevel::Oz => {
                CodegenLevel::Default
            }
        }
    }
}

/// Optimises a module for a target. The result takes its place.
pub fn optimise<'c>(
    module: Module<'c>,
    level: OptimisationLevel,
    machine: &TargetMachine,
) -> Result<Module<'c>, LlvmError> {
    let vectorise = matches!(level, OptimisationLevel::O2 | OptimisationLevel::O3);
    let options = PassOptions {
        vectorise_loops: vectorise,
        vectorise_straight_code: vectorise,
        interleave: vectorise,
        unroll: vectorise || level == OptimisationLevel::O1,
        ..PassOptions::default()
    };
    optimise_checked(module, level.pipeline(), machine, options)
}

/// Runs a pipeline, and runs it again on what there was before without the vectoriser of straight code if what comes out is malformed: LLVM 22's builds vectors of values that are not computed yet where they
/// are used. The result takes the module's place.
pub fn optimise_checked<'c>(
    module: Module<'c>,
    pipeline: &str,
    machine: &TargetMachine,
    options: PassOptions,
) -> Result<Module<'c>, LlvmError> {
    if !options.vectorise_straight_code {
        module.run_passes(pipeline, Some(machine), options)?;
        return module.verify().map(|()| module);
    }
    let before = module.duplicate();
    module.run_passes(pipeline, Some(machine), options)?;
    if module.verify().is_ok() {
        before.dispose();
        return Ok(module);
    }
    module.dispose();
    let options = PassOptions {
        vectorise_straight_code: false,
        ..options
    };
    optimise_checked(before, pipeline, machine, options)
}

/// Optimises a module and compiles it to an object. The description's own level of code generation gives way to the one that the level asks for.
pub fn compile(
    module: Module<'_>,
    level: OptimisationLevel,
    target: &TargetDescription,
) -> Result<Vec<u8>, LlvmError> {
    let description = TargetDescription {
        level: level.codegen_level(),
        ..target.clone()
    };
    let machine = TargetMachine::new(&description)?;
    if module.triple().is_empty() {
        module.set_triple(machine.triple());
        module.set_data_layout(&machine.data_layout());
    }
    let module = optimise(module, level, &machine)?;
    machine.emit_object(module)
}
