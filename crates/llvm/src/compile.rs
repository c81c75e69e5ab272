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

/// Optimises a module for a target.
pub fn optimise(
    module: Module<'_>,
    level: OptimisationLevel,
    machine: &TargetMachine,
) -> Result<(), LlvmError> {
    let vectorise = matches!(level, OptimisationLevel::O2 | OptimisationLevel::O3);
    let options = PassOptions {
        vectorise_loops: vectorise,
        vectorise_straight_code: vectorise,
        interleave: vectorise,
        unroll: vectorise || level == OptimisationLevel::O1,
        ..PassOptions::default()
    };
    module.run_passes(level.pipeline(), Some(machine), options)
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
    optimise(module, level, &machine)?;
    machine.emit_object(module)
}
