//! Globals that hold handles: addresses that differentiated code never loads from, such as `FILE *`.
//!
//! ```text
//! static FILE *log;          if (!log) log = fopen("log", "w");          fprintf(log, "%g\n", x);
//! ```
//!
//! Such a global is written, and the type of the memory behind it is unknown. But the address is only stored, compared, and passed to inactive functions; and it comes from such a function, or was
//! there before. So the memory behind it needs no shadow.

use crate::activity::reachable_from;
use crate::objects::{Class, Kind, Objects, ObjectsCache, Source};
use ferrozyme_ir::{FunctionId, GlobalId, Module, Op, Opcode, Payload, all_ops};
use rustc_hash::FxHashSet;

/// Declares globals inactive that hold nothing but handles and numbers that are no floats.
pub fn infer_handles(module: &mut Module) {
    let mut candidates: FxHashSet<GlobalId> = module
        .globals
        .iter()
        .filter(|(_, global)| !global.constant && !global.inactive)
        .map(|(id, _)| id)
        .collect();
    let mut cache = ObjectsCache::new();
    let functions: Vec<FunctionId> = module.functions.keys().collect();
    for id in functions {
        if candidates.is_empty() {
            return;
        }
        if module.functions[id].body.is_none() {
            continue;
        }
        let objects = Objects::analyse(module, id, &mut cache, None);
        let handed_out = handed_out(module, &objects);
        for class in objects.classes() {
            if !holds_handles(module, &objects, &handed_out, class) {
                for source in objects.sources(class) {
                    if let Source::Global(global) = source {
                        candidates.remove(&global);
                    }
                }
            }
        }
    }
    for global in candidates {
        module.globals[global].inactive = true;
    }
}

/// The memory that code gets of which nothing is known.
fn handed_out(module: &Module, objects: &Objects) -> FxHashSet<Class> {
    let function = &module.functions[objects.function()];
    let is_known = |payload: &Payload| match payload {
        Payload::Callee(callee) => {
            let callee = &module.functions[*callee];
            callee.body.is_some() || callee.facts.inactive
        }
        _ => false,
    };
    let mut found = FxHashSet::default();
    for op in all_ops(function) {
        let data = &function.ops[op];
        let calls = matches!(data.opcode, Opcode::Call | Opcode::CallIndirect);
        if calls && !is_known(&data.payload) {
            let classes = data.operands.iter();
            found.extend(classes.filter_map(|value| Some(objects.class_of(function, *value)?.0)));
        }
    }
    found
}

/// Whether memory holds only handles and numbers, and nothing else leads to what they stand for.
fn holds_handles(
    module: &Module,
    objects: &Objects,
    handed_out: &FxHashSet<Class>,
    class: Class,
) -> bool {
    let no_float = |kind| matches!(kind, Kind::Integer | Kind::Pointer(_) | Kind::Padding);
    let function = &module.functions[objects.function()];
    let is_inactive = |op: Op| match function.ops[op].payload {
        Payload::Callee(callee) => module.functions[callee].facts.inactive,
        _ => false,
    };
    let comes_from_outside = |source| match source {
        Source::Loaded(_) => true,
        Source::External(op) => is_inactive(op),
        _ => false,
    };
    let is_handle = |further: Class| {
        objects.fields(further).next().is_none()
            && !objects.is_stored_to(further)
            && !handed_out.contains(&further)
            && !objects.is_called(further)
            && objects.sources(further).all(comes_from_outside)
    };
    let is_global = |source| matches!(source, Source::Global(_));
    !handed_out.contains(&class)
        && objects.sources(class).all(is_global)
        && objects.fields(class).all(|field| no_float(field.kind))
        && reachable_from(objects, class)
            .into_iter()
            .all(|further| further == class || is_handle(further))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrozyme_ir::parse_module;

    #[test]
    fn handles_are_what_nobody_looks_into() {
        let mut module = parse_module(
            "global @log: 8 bytes align 8 = zero
             global @work: 8 bytes align 8 = zero
             global @kept: 8 bytes align 8 = zero
             declare @open() -> (ptr) inactive
             declare @write(ptr, f64) inactive
             declare @make() -> (ptr)
             func @f(%x: f64, %p: ptr) -> (f64) {
               %n = call @open()
               store ptr %n, @log align 8
               %l = load ptr @log align 8
               call @write(%l, %x)
               %m = call @make()
               store ptr %m, @work align 8
               store ptr %p, @kept align 8
               return %x
             }",
        )
        .expect("the module is well formed");
        infer_handles(&mut module);
        let inactive = |name: &str| {
            let mut globals = module.globals.values();
            globals.any(|global| global.name == name && global.inactive)
        };
        assert!(inactive("log"));
        assert!(!inactive("work"));
        assert!(!inactive("kept"));
    }
}
