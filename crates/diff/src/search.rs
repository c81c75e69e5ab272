//! Searches for operations in a function and its callees.

use ferrozyme_ir::{FunctionId, Module, OpData, Param, Payload, returning_ops};
use rustc_hash::{FxHashMap, FxHashSet};

/// Whether a function has a rule, or something that it calls has: then its derivative runs code of which the facts about the function, that were found from bodies, say nothing.
pub(crate) fn follows_rules(search: &mut Search, module: &Module, function: FunctionId) -> bool {
    let has_rule = |id: &FunctionId| module.rules.contains_key(id);
    !module.rules.is_empty()
        && (has_rule(&function)
            || search.reaches(
                module,
                function,
                |_, op| matches!(&op.payload, Payload::Callee(callee) if has_rule(callee)),
            ))
}

/// Takes back what is said of the pointers that a function is given.
pub(crate) fn forget_accesses(param: &mut Param) {
    param.facts.nocapture = false;
    param.facts.readonly = false;
    param.facts.writeonly = false;
}

/// A search for operations in functions and all that they call, directly or not, which remembers where it found none.
#[derive(Default)]
pub(crate) struct Search {
    known: FxHashMap<FunctionId, bool>,
}

impl Search {
    /// Whether a function, or something that it calls, has an operation that is wanted; always the same for one search.
    pub(crate) fn reaches(
        &mut self,
        module: &Module,
        function: FunctionId,
        wanted: impl Fn(FunctionId, &OpData) -> bool,
    ) -> bool {
        let mut seen = FxHashSet::from_iter([function]);
        let mut pending = vec![function];
        while let Some(id) = pending.pop() {
            match self.known.get(&id) {
                Some(false) => continue,
                Some(true) => {
                    self.known.insert(function, true);
                    return true;
                }
                None => {}
            }
            let code = &module.functions[id];
            for op in returning_ops(code) {
                let data = &code.ops[op];
                if wanted(id, data) {
                    self.known.insert(id, true);
                    self.known.insert(function, true);
                    return true;
                }
                if let Payload::Callee(callee) = data.payload
                    && seen.insert(callee)
                {
                    pending.push(callee);
                }
            }
        }
        self.known.extend(seen.into_iter().map(|id| (id, false)));
        false
    }
}
