//! What the link line and the user say about how derivatives are to be made.

use crate::perturbation::Perturbation;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How the derivatives are to be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Options {
    /// rustc's sysroot, whose `lib` holds libLLVM.
    pub sysroot: PathBuf,
    /// The optimisation level of the profile (`-plugin-opt=O…`).
    pub level: Level,
    /// The CPU that rustc was given (`-plugin-opt=mcpu=…`).
    pub cpu: Option<String>,
    /// Whether the code must run at any address: `-pie` and `-shared` links.
    pub relocation: Relocation,
    /// Whether sums are added up in the order of the program, so that derivatives have the same bits on every machine.
    pub strict: bool,
    /// Whether there are versions of derivatives for higher levels of the processor, where the program is compiled for any x86-64.
    pub multiversion: bool,
    /// The texts that the report shall hold beside timings.
    pub explain: Option<Explain>,
    /// What is done in another way than usual, without changing derivatives.
    pub perturbation: Perturbation,
}

/// An optimisation level. `s` and `z` arrive as O2; the functions carry `optsize` and `minsize` themselves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Level {
    /// Unoptimised: the profile `dev`. Derivatives are optimised nevertheless.
    O0,
    /// Little.
    O1,
    /// Most.
    O2,
    /// All: the profile `release`.
    O3,
}

/// Where the finished code may be loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Relocation {
    /// At its fixed address.
    Static,
    /// Anywhere.
    PositionIndependent,
}

/// What the user wants to be told of a derivative.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Explain {
    /// Only derivatives whose primal's or own path ends with this; all without it.
    pub function: Option<String>,
    /// The stages whose text is wanted. Without any: the summary (activity, layouts, what is saved and why).
    pub stages: Vec<Stage>,
}

/// A stage on the way from bitcode to machine code, whose text can be shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Stage {
    /// The primal as it came from LLVM.
    Import,
    /// The primal after the Loop IR's passes.
    Optimised,
    /// What is active.
    Activity,
    /// What is saved, recomputed and reloaded.
    Plan,
    /// The derivative in the Loop IR.
    Derivative,
    /// The derivative in LLVM IR, optimised.
    Llvm,
    /// The derivative's machine code as text.
    Assembly,
}

impl Stage {
    /// All stages, in the order of the pipeline.
    pub const ALL: [Stage; 7] = [
        Stage::Import,
        Stage::Optimised,
        Stage::Activity,
        Stage::Plan,
        Stage::Derivative,
        Stage::Llvm,
        Stage::Assembly,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Import => "import",
            Stage::Optimised => "optimised",
            Stage::Activity => "activity",
            Stage::Plan => "plan",
            Stage::Derivative => "derivative",
            Stage::Llvm => "llvm",
            Stage::Assembly => "assembly",
        }
    }
}
