//! The functions that kernels call for their place in the index space, and for local memory.
//!
//! Backends define them: `get_group_id(0)` in OpenCL C, a special register in PTX.

use ferrozyme_ir::{Builder, Function, FunctionId, MemoryEffect, Module, Param, Type, Value};

/// `@group() -> i64`: the number of the group.
pub const GROUP: &str = "__ferrozyme_group";
/// `@item() -> i64`: the number of the item in its group.
pub const ITEM: &str = "__ferrozyme_item";
/// `@barrier()`: waits for all items of the group, and makes what they wrote visible to each other.
pub const BARRIER: &str = "__ferrozyme_barrier";
/// `@local(i64 bytes) -> ptr`: the local memory of the group, of this constant size. A kernel asks for it once.
pub const LOCAL: &str = "__ferrozyme_local";

/// These functions in a module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Items {
    group: FunctionId,
    item: FunctionId,
    barrier: FunctionId,
    local: FunctionId,
}

impl Items {
    pub(crate) fn declare(module: &mut Module) -> Items {
        let mut number = |name: &str| {
            let mut function = Function::declare(name, Vec::new(), vec![Type::I64]);
            function.facts.memory = MemoryEffect::None;
            function.facts.willreturn = true;
            module.functions.push(function)
        };
        let (group, item) = (number(GROUP), number(ITEM));
        let barrier = module
            .functions
            .push(Function::declare(BARRIER, Vec::new(), Vec::new()));
        let local = Function::declare(LOCAL, vec![Param::from(Type::I64)], vec![Type::PTR]);
        Items {
            group,
            item,
            barrier,
            local: module.functions.push(local),
        }
    }

    pub(crate) fn group(self, b: &mut Builder<'_>) -> Value {
        let op = b.call(self.group, &[], &[Type::I64]);
        b.function.result(op)
    }

    pub(crate) fn item(self, b: &mut Builder<'_>) -> Value {
        let op = b.call(self.item, &[], &[Type::I64]);
        b.function.result(op)
    }

    pub(crate) fn barrier(self, b: &mut Builder<'_>) {
        b.call(self.barrier, &[], &[]);
    }

    pub(crate) fn local(self, b: &mut Builder<'_>, bytes: usize) -> Value {
        let bytes = b.i64(bytes as i64);
        let op = b.call(self.local, &[bytes], &[Type::PTR]);
        b.function.result(op)
    }
}
