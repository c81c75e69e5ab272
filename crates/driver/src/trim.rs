//! Takes choices out of a root that it cannot mean: methods that change their object, where the object is a constant argument.
//!
//! Tables of methods do not say which trait they are of, so a call of `area(&self, f64)` may seem to mean `step(&mut self, f64)` of another. If it
//! did, derivatives would flow through memory that was declared constant; so where such a choice is called, the program stops and says so.

use crate::dispatch::{Choice, stop_with};
use ferrozyme_diff::objects::{Class, Objects, ObjectsCache, Source};
use ferrozyme_diff::{Activity, Request};

use ferrozyme_ir::{FunctionId, Module, Op, Opcode, Payload, Structure, Value, returning_ops};
use ferrozyme_refusal::Refusal;
use std::collections::HashSet;

/// Stops the program where a choice would change the memory of a constant argument. Whether there were such places.
pub(crate) fn stop_writers(module: &mut Module, request: &Request, choices: &[Choice]) -> bool {
    let root = request.function;
    let mut cache = ObjectsCache::new();
    let objects = Objects::analyse(module, root, &mut cache, None);
    let constant = memory_of(&objects, |index| {
        request.args.get(index as usize) == Some(&Activity::Const)
    });
    let mut found: Vec<(Op, String)> = Vec::new();
    for op in returning_ops(&module.functions[root]) {
        let data = &module.functions[root].ops[op];
        let (Opcode::Call, &Payload::Callee(callee)) = (data.opcode, &data.payload) else {
            continue;
        };
        let name = &module.functions[callee].name;
        let Some(choice) = choices.iter().find(|choice| choice.symbol == *name) else {
            continue;
        };
        let function = &module.functions[root];
        let leads_there = |value: &Value| {
            objects
                .class_of(function, *value)
                .is_some_and(|(class, _)| constant.contains(&class))
        };
        let given: Vec<usize> = (0..data.operands.len())
            .filter(|&index| leads_there(&data.operands[index]))
            .collect();
        if changes(module, &mut cache, callee, &given) {
            found.push((op, choice.function.clone()));
        }
    }
    for (op, function) in &found {
        let function = function.clone();
        let text = Refusal::TargetChangesConstant { function }.stop_text();
        let structure = Structure::of(&module.functions[root]);
        if let Some(region) = structure.region_of(*op) {
            stop_with(module, root, region, Some(*op), &text);
        }
    }
    !found.is_empty()
}

/// Whether a function puts anything into memory that some of its arguments lead to.
fn changes(
    module: &Module,
    cache: &mut ObjectsCache,
    function: FunctionId,
    arguments: &[usize],
) -> bool {
    // What could not be read is refused for that, whatever it writes.
    if module.functions[function].body.is_none() {
        return false;
    }
    let objects = cache.get(module, function);
    memory_of(&objects, |index| arguments.contains(&(index as usize)))
        .into_iter()
        .any(|class| objects.is_written(class))
}

/// The memory that some parameters lead to.
fn memory_of(objects: &Objects, is_wanted: impl Fn(u32) -> bool) -> HashSet<Class> {
    let is_root = |class: &Class| {
        objects
            .sources(*class)
            .any(|source| matches!(source, Source::Param(index) if is_wanted(index)))
    };
    let mut work: Vec<Class> = objects.classes().filter(is_root).collect();
    let mut found = HashSet::new();
    while let Some(class) = work.pop() {
        if found.insert(class) {
            work.extend(objects.pointees(class));
        }
    }
    found
}
