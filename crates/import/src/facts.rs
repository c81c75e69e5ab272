//! LLVM's attributes of functions and parameters as facts of the Loop IR.

use super::Importer;
use ferrozyme_ir::{Alignment, FunctionFacts, MemoryEffect, ParamFacts, Range, Type};
use ferrozyme_llvm::{Attribute, AttributeData, Place, Value};

impl<'c> Importer<'c, '_> {
    /// The ranges that parameters of a function are promised to lie in, by position.
    ///
    /// The C interface does not show `range` attributes, but LLVM's text does: they are put on a declaration, which is printed.
    pub(super) fn param_ranges(&self, function: Value<'c>) -> Vec<Option<Range>> {
        let count = function.parameter_count();
        let hidden: Vec<(u32, Vec<Attribute<'c>>)> = (0..count)
            .map(|index| {
                let mut attributes = function.attributes(Place::Parameter(index));
                attributes.retain(|attribute| matches!(attribute.data(), AttributeData::Other));
                (index, attributes)
            })
            .collect();
        if hidden.iter().all(|(_, attributes)| attributes.is_empty()) {
            return vec![None; count as usize];
        }
        let probe = self
            .llvm
            .add_function("__ferrozyme_probe", function.value_type());
        for (index, attributes) in hidden {
            for attribute in attributes {
                probe.add_attribute(Place::Parameter(index), attribute);
            }
        }
        let text = probe.definition_text();
        probe.erase();
        let params = text.split_once('(').map_or("", |(_, params)| params);
        let mut ranges: Vec<Option<Range>> = split_params(params).map(parse_range).collect();
        ranges.resize(count as usize, None);
        ranges
    }

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
            writes_constants: false,
            noinline: has("noinline"),
            level: None,
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

/// The parameters of a printed declaration, behind its opening bracket.
fn split_params(params: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let mut ended = false;
    params.split(move |c: char| {
        match c {
            '(' | '{' | '[' | '<' => depth += 1,
            ')' if depth == 0 => ended = true,
            ')' | '}' | ']' | '>' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0 && !ended
    })
}

/// The range in `i64 range(i64 0, 10)`, as signed numbers.
fn parse_range(param: &str) -> Option<Range> {
    let (bits, _) = param.trim_start().strip_prefix('i')?.split_once(' ')?;
    let bits: u32 = bits.parse().ok().filter(|bits| (2..=64).contains(bits))?;
    let inside = param.split_once("range(")?.1.split_once(')')?.0;
    let (low, high) = inside.split_once(',')?;
    let low: i128 = low.rsplit(' ').next()?.parse().ok()?;
    let high: i128 = high.trim().parse().ok()?;
    let limit = 1i128 << (bits - 1);
    // The end of a range up to the largest number is written as the smallest.
    let high = if high == -limit { limit } else { high };
    (low < high && low >= -limit && high <= limit).then_some(Range {
        min: low,
        max: high - 1,
    })
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

#[cfg(test)]
mod tests {
    use super::{parse_range, split_params};
    use ferrozyme_ir::Range;

    #[test]
    fn ranges_of_parameters() {
        let text = "ptr noundef, i64 noundef range(i64 0, 1152921504606846976), { i64, ptr }, i8 range(i8 -3, -128), i64)";
        let ranges: Vec<_> = split_params(text).map(parse_range).collect();
        let length = Range {
            min: 0,
            max: 1152921504606846975,
        };
        let small = Range { min: -3, max: 127 };
        assert_eq!(ranges, [None, Some(length), None, Some(small), None]);
    }
}
