//! Globals that the code at hand never writes hold constants, as far as its derivatives are concerned.
//!
//! Tables and configurations are such globals: the program fills them before, and the differentiated functions only read them. Nobody
//! can look at the shadow of a global, so there is no reason to have one unless something with a derivative may be stored there.

use crate::activity::reachable_from;
use crate::objects::{Objects, ObjectsCache, Source};
use ferrozyme_ir::{FunctionId, GlobalId, Module};
use rustc_hash::FxHashSet;

/// Declares globals inactive that no function of the module writes, nor what pointers in them lead to.
pub fn infer_inactive_globals(module: &mut Module) {
    let candidates: Vec<GlobalId> = module
        .globals
        .iter()
        .filter(|(_, global)| !global.constant && !global.inactive)
        .map(|(id, _)| id)
        .collect();
    if candidates.is_empty() {
        return;
    }
    let mut written: FxHashSet<GlobalId> = FxHashSet::default();
    let mut cache = ObjectsCache::new();
    let functions: Vec<FunctionId> = module.functions.keys().collect();
    for id in functions {
        if module.functions[id].body.is_none() {
            continue;
        }
        let objects = Objects::analyse(module, id, &mut cache, None);
        for class in objects.classes() {
            let globals: Vec<GlobalId> = objects
                .sources(class)
                .filter_map(|source| match source {
                    Source::Global(global) => Some(global),
                    _ => None,
                })
                .collect();
            let writes = || {
                let reached = reachable_from(&objects, class);
                reached.iter().any(|&class| objects.is_written_here(class))
            };
            if globals.iter().any(|global| !written.contains(global)) && writes() {
                written.extend(globals);
            }
        }
    }
    for global in candidates {
        if !written.contains(&global) {
            module.globals[global].inactive = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrozyme_ir::parse_module;

    #[test]
    fn what_is_only_read_is_inactive() {
        let mut module = parse_module(
            "global @read: 8 bytes align 8 external
             global @table: 16 bytes align 8 external
             global @behind: 8 bytes align 8 external
             global @written: 8 bytes align 8 external
             global @passed: 8 bytes align 8 external
             func @f(%x: f64) -> (f64) {
               %a = load f64 @read align 8
               %t = load ptr @table align 8
               %b = load f64 %t align 8
               call @look(@table)
               %p = load ptr @behind align 8
               store f64 %x, %p align 8
               store f64 %x, @written align 8
               call @fill(@passed)
               return %a
             }
             declare @look(ptr readonly nocapture) memory(args) inactive
             func @fill(%p: ptr) noinline {
               store f64 1.0, %p align 8
               return
             }",
        )
        .expect("the text is right");
        infer_inactive_globals(&mut module);
        let inactive: Vec<&str> = module
            .globals
            .values()
            .filter(|global| global.inactive)
            .map(|global| global.name.as_str())
            .collect();
        assert_eq!(inactive, ["read", "table"]);
    }
}
