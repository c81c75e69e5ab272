//! Takes a function out of its module, so that a pass can change it while it reads the others.

use ferrozyme_ir::{Function, FunctionId, Module};

/// Runs `work` on a function and the module around it.
///
/// Meanwhile the module holds a declaration in the function's place: same name, parameters, results and facts, so that
/// questions about recursive calls find their answer.
pub fn with_function<R>(
    module: &mut Module,
    id: FunctionId,
    work: impl FnOnce(&mut Module, &mut Function) -> R,
) -> R {
    let original = &module.functions[id];
    let mut stand_in = Function::declare(
        original.name.clone(),
        original.params.clone(),
        original.results.clone(),
    );
    stand_in.facts = original.facts.clone();
    let mut function = std::mem::replace(&mut module.functions[id], stand_in);
    let result = work(module, &mut function);
    module.functions[id] = function;
    result
}
