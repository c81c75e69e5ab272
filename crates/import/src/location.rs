//! Source locations from debug information, with the calls that were inlined.

use ferrozyme_ir::{Location, LocationData, Module};
use ferrozyme_llvm::{Context, Metadata, SourcePlace, Value};
use rustc_hash::FxHashMap;

/// Locations that were met already.
#[derive(Default)]
pub(super) struct Locations<'c> {
    known: FxHashMap<Metadata<'c>, Option<Location>>,
    files: FxHashMap<String, u32>,
}

impl<'c> Locations<'c> {
    /// Where an instruction stands in the source.
    pub(super) fn of(
        &mut self,
        context: &'c Context,
        module: &mut Module,
        instruction: Value<'c>,
    ) -> Option<Location> {
        let debug = instruction.debug_location(context)?;
        if let Some(&known) = self.known.get(&debug) {
            return known;
        }
        // The innermost place comes first; each refers to the one that it was inlined to, which has to be there before.
        let mut location = None;
        for place in instruction.source_places(context).iter().rev() {
            if place.line == 0 {
                continue;
            }
            let data = LocationData {
                file: self.file(module, place),
                line: place.line,
                column: place.column,
                inlined_at: location,
            };
            location = Some(module.location(data));
        }
        self.known.insert(debug, location);
        location
    }

    fn file(&mut self, module: &mut Module, place: &SourcePlace) -> u32 {
        let name = place.path();
        if let Some(&file) = self.files.get(&name) {
            return file;
        }
        let file = module.files.len() as u32;
        module.files.push(name.clone());
        self.files.insert(name, file);
        file
    }
}
