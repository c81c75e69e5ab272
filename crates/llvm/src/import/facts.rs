//! What attributes of functions and parameters say, in terms of the Loop IR.

use super::Importer;
use crate::attribute::Place;
use crate::value::Value;
use ferrozyme_ir::{Alignment, FunctionFacts, MemoryEffect, ParamFacts, Type};

impl<'c> Importer<'c, '_> {
    /// What is known of a function from its attributes.
    pub(super) fn function_facts(&self, function: Value<'c>) -> FunctionFacts {
        let has = |name: &str| function.has_attribute(Place::Function, name);
        let memory = function.attribute_value(Place::Function, "memory");
        FunctionFacts {
            memory: self
                .opaque_memory(function)
                .unwrap_or_else(|| memory.map_or(MemoryEffect::Any, memory_effect)),
            noreturn: has("noreturn"),
            willreturn: has("willreturn") && has("nounwind"),
            inactive: false,
            noinline: has("noinline"),
        }
    }

    /// What is known of a parameter of a function from its attributes.
    pub(super) fn param_facts(&self, function: Value<'c>, index: u32, ty: Type) -> ParamFacts {
        if ty != Type::PTR {
            return ParamFacts::default();
        }
        let place = Place::Parameter(index);
        let has = |name: &str| function.has_attribute(place, name);
        // Each bit of `captures` says one thing that may become of the pointer; none is set for `captures(none)`.
        let captures = function.attribute_value(place, "captures");
        let untouched = has("readnone");
        ParamFacts {
            noalias: has("noalias"),
            readonly: has("readonly") || untouched,
            writeonly: has("writeonly") || untouched,
            nocapture: captures == Some(0) || has("nocapture"),
            align: function
                .attribute_value(place, "align")
                .and_then(Alignment::new)
                .unwrap_or_default(),
            ..ParamFacts::default()
        }
    }
}

/// What LLVM's mask says: two bits (1 reads, 2 writes) for memory behind arguments, for memory that nobody else reaches, then for
/// all other kinds.
fn memory_effect(mask: u64) -> MemoryEffect {
    const WRITES: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    let elsewhere = mask >> 4;
    if mask == 0 {
        MemoryEffect::None
    } else if mask & WRITES == 0 {
        MemoryEffect::Read
    } else if elsewhere == 0 {
        MemoryEffect::Args
    } else {
        MemoryEffect::Any
    }
}
