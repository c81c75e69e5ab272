//! Functions for a level of the processor above that of the program, and the function that says which level there is.

use ferrozyme_ir::{self as ir, ProcessorLevel};

use super::{ExportError, Exporter};
use ferrozyme_llvm::{Linkage, Module, Place, Value};

/// The instructions that a level adds to the one before, as LLVM names them.
fn added_features(level: ProcessorLevel) -> &'static str {
    match level {
        ProcessorLevel::V2 => "+cx16,+popcnt,+sahf,+sse3,+ssse3,+sse4.1,+sse4.2",
        ProcessorLevel::V3 => "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave",
        ProcessorLevel::V4 => "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl",
    }
}

impl<'c> Exporter<'_, 'c> {
    /// Has a function compiled for a level, or for what it is compiled for anyway if that is more.
    pub(super) fn set_level(&self, value: Value<'c>, level: ProcessorLevel) {
        let text = |key: &str| value.text_attribute(Place::Function, key);
        let set = |key: &str, text: &str| {
            value.add_attribute(Place::Function, self.context.text_attribute(key, text));
        };
        let named = text("target-cpu").unwrap_or_default();
        let below = ProcessorLevel::ALL.into_iter().filter(|one| *one < level);
        let lower: Vec<String> = below.map(processor_name).collect();
        if ["", "generic", "x86-64"].contains(&named.as_str()) || lower.contains(&named) {
            set("target-cpu", &processor_name(level));
        } else {
            // Another processor may have more than the level, and is tuned for.
            let levels = ProcessorLevel::ALL.into_iter();
            let own = levels.filter(|one| *one <= level).map(added_features);
            // The last word on a feature counts: what the user turned off stays off.
            let features: Vec<String> = own
                .map(str::to_owned)
                .chain(text("target-features"))
                .collect();
            set("target-features", &features.join(","));
        }
        if level == ProcessorLevel::V4 {
            // LLVM's own choice of 32 bytes is for processors whose clock falls with wider vectors.
            set("prefer-vector-width", "512");
        }
    }

    /// Defines the function that says which level the processor has.
    pub(super) fn define_processor_level(&mut self) -> Result<Value<'c>, ExportError> {
        let source = self.parse_given(ir::PROCESSOR_LEVEL, include_str!("processor.ll"))?;
        let limit = source.global("__ferrozyme_highest_level");
        if let (Some(limit), Some(highest)) = (limit, self.options.highest_level) {
            let highest = self.context.integer(32).constant(i128::from(highest));
            limit.set_initialiser(Some(highest));
        }
        self.link_given(ir::PROCESSOR_LEVEL, source)
    }

    /// A module that is given as text and has a function of this name.
    pub(super) fn parse_given(&self, name: &str, text: &str) -> Result<Module<'c>, ExportError> {
        let source = self.context.parse_text(name, text);
        let source = source.map_err(|error| bug_in(name, &error))?;
        source.set_triple(&self.into.triple());
        source.set_data_layout(&self.into.data_layout());
        Ok(source)
    }

    /// Links such a module, and gives the function, which nobody else sees.
    pub(super) fn link_given(
        &mut self,
        name: &str,
        source: Module<'c>,
    ) -> Result<Value<'c>, ExportError> {
        for function in source.functions().filter(|one| !one.is_declaration()) {
            self.adopt(function);
        }
        let linked = self.into.link(source);
        linked.map_err(|error| bug_in(name, &error))?;
        let linked = self.into.function(name);
        let made = linked.ok_or_else(|| bug_in(name, &"it is missing after it was linked"))?;
        Ok(made.set_linkage(Linkage::Internal))
    }
}

fn bug_in(function: &str, error: &dyn std::fmt::Display) -> ExportError {
    ExportError {
        function: function.to_owned(),
        place: None,
        problem: format!("{error} (a bug in Ferrozyme)"),
    }
}

/// The name of a level's processor in LLVM.
fn processor_name(level: ProcessorLevel) -> String {
    format!("x86-64-{level}")
}

/// Whether a function is compiled for a processor with vectors of 32 bytes or more. One that is named and not known here has them.
pub(super) fn has_wide_vectors(function: Value<'_>) -> bool {
    let text = |key: &str| {
        let text = function.text_attribute(Place::Function, key);
        text.unwrap_or_default()
    };
    let narrow = ["", "generic", "x86-64", "x86-64-v2"];
    !narrow.contains(&text("target-cpu").as_str()) || text("target-features").contains("+avx2")
}
