//! For which levels of the processor derivatives are compiled besides the one of the program.

use crate::options::Options;
use ferrozyme_ir::{FunctionId, Module, ProcessorLevel};
use ferrozyme_llvm as llvm;
use ferrozyme_llvm::{Place, Value};
use ferrozyme_opt::multiversion;

/// The levels that derivatives have versions for. Between the baseline and x86-64-v2 there is too little for a version of its own.
const LEVELS: [ProcessorLevel; 2] = [ProcessorLevel::V3, ProcessorLevel::V4];

/// What every x86-64 has, as LLVM names it.
const BASELINE: [&str; 8] = [
    "+64bit", "+cmov", "+cx8", "+fxsr", "+mmx", "+sse", "+sse2", "+x87",
];

/// Makes versions of derivatives for higher levels of the processor, unless the user has chosen a processor or wants the same bits everywhere. `like` is a function of the program, `wrappers` are those
/// that the program calls.
pub(crate) fn add_versions(
    loops: &mut Module,
    wrappers: &[FunctionId],
    module: llvm::Module<'_>,
    like: Option<Value<'_>>,
    options: &Options,
) {
    let chosen = like.is_some_and(names_processor);
    if options.multiversion && !options.strict && !chosen {
        let is_elsewhere = |name: &str| module.symbol(name).is_some();
        multiversion(loops, wrappers, &LEVELS, &is_elsewhere);
    }
}

/// Whether a function is compiled for more than any x86-64, or for less.
fn names_processor(function: Value<'_>) -> bool {
    let text = |key: &str| function.text_attribute(Place::Function, key);
    let processor = text("target-cpu").unwrap_or_default();
    let features = text("target-features").unwrap_or_default();
    let mut features = features.split(',').filter(|feature| !feature.is_empty());
    !["", "generic", "x86-64"].contains(&processor.as_str())
        || features.any(|feature| !BASELINE.contains(&feature))
}
