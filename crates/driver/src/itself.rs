//! Functions that are asked for themselves, without a derivative: copies of the root and of what it calls.
//!
//! Names resolve in LLVM's module first when the Loop IR is exported, and there stand the functions as they were imported. The copies have names of their own, so they are compiled as the
//! Loop IR has them: with contractions, and with versions for levels of the processor.

use ferrozyme_ir::{FunctionId, Module, Payload, all_ops};
use std::collections::HashMap;

/// What the names of copies end in.
const SUFFIX: &str = ".accelerated";

/// Copies a root and what it calls that has a body, except for functions that `stays` names. `copies` holds those that were made for other roots.
pub(crate) fn copy_itself(
    module: &mut Module,
    root: FunctionId,
    copies: &mut HashMap<FunctionId, FunctionId>,
    stays: impl Fn(&str) -> bool,
) -> FunctionId {
    let mut work = vec![root];
    let mut made = Vec::new();
    while let Some(id) = work.pop() {
        let function = &module.functions[id];
        if copies.contains_key(&id) || function.body.is_none() || stays(&function.name) {
            continue;
        }
        let mut copy = function.clone();
        copy.name.push_str(SUFFIX);
        work.extend(copy.ops.values().filter_map(|data| match data.payload {
            Payload::Callee(callee) => Some(callee),
            _ => None,
        }));
        let copy = module.functions.push(copy);
        // Who differentiates the copy follows the rules of the original.
        if let Some(rule) = module.rules.get(&id).cloned() {
            module.rules.insert(copy, rule);
        }
        copies.insert(id, copy);
        made.push(copy);
    }
    for id in made {
        let function = &mut module.functions[id];
        for op in all_ops(function) {
            if let Payload::Callee(callee) = &mut function.ops[op].payload {
                *callee = copies.get(callee).copied().unwrap_or(*callee);
            }
        }
    }
    copies[&root]
}
