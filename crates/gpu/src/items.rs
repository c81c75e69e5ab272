//! The functions that kernels call for their place in the index space, and for local memory.
//!
//! Backends define them: `get_group_id(0)` in OpenCL C, a special register in PTX.

use ferrozyme_ir::{
    Builder, Function, FunctionId, MemoryEffect, Module, Opcode, Param, Type, Value,
};

/// `@group() -> i64`: the number of the group.
pub const GROUP: &str = "__ferrozyme_group";
/// `@item() -> i64`: the number of the item in its group.
pub const ITEM: &str = "__ferrozyme_item";
/// `@barrier()`: waits for all items of the group, and makes what they wrote visible to each other.
pub const BARRIER: &str = "__ferrozyme_barrier";
/// `@local(i64 bytes) -> ptr`: the local memory of the group, of this constant size. A kernel asks for it once.
pub const LOCAL: &str = "__ferrozyme_local";

/// `@exchange(f32 x, i64 distance) -> f32`: the `x` of the item whose number differs in one bit, that of the distance, which is less than [`EXCHANGING`]. All items of the group call it. Only for devices that say that they have it.
pub const EXCHANGE_F32: &str = "__ferrozyme_exchange_f32";
/// As [`EXCHANGE_F32`].
pub const EXCHANGE_I32: &str = "__ferrozyme_exchange_i32";
/// How many items, neighbours, exchange numbers without memory.
pub(crate) const EXCHANGING: u32 = 32;

/// These functions in a module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Items {
    group: FunctionId,
    item: FunctionId,
    barrier: FunctionId,
    local: FunctionId,
    exchange_f32: FunctionId,
    exchange_i32: FunctionId,
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
        let mut exchange = |name: &str, ty: Type| {
            let params = [ty, Type::I64].map(Param::from);
            let function = Function::declare(name, params.into(), vec![ty]);
            module.functions.push(function)
        };
        let exchange_f32 = exchange(EXCHANGE_F32, Type::F32);
        let exchange_i32 = exchange(EXCHANGE_I32, Type::I32);
        Items {
            group,
            item,
            barrier,
            local: module.functions.push(local),
            exchange_f32,
            exchange_i32,
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

    /// The number of the item, of which a group has so many. The compiler of the device may not know that, nor which loops run once therefore.
    pub(crate) fn item_below(self, b: &mut Builder<'_>, count: u64) -> Value {
        let item = self.item(b);
        match count.is_power_of_two() {
            true => {
                let most = b.i64(count as i64 - 1);
                b.binary(Opcode::And, item, most)
            }
            false => item,
        }
    }

    pub(crate) fn barrier(self, b: &mut Builder<'_>) {
        b.call(self.barrier, &[], &[]);
    }

    /// What another item has, if there is a function for numbers of this type.
    pub(crate) fn exchange(self, b: &mut Builder<'_>, own: Value, distance: u32) -> Option<Value> {
        let ty = b.ty(own);
        let function = match ty {
            Type::F32 => self.exchange_f32,
            Type::I32 => self.exchange_i32,
            _ => return None,
        };
        let distance = b.i64(i64::from(distance));
        let op = b.call(function, &[own, distance], &[ty]);
        Some(b.function.result(op))
    }

    pub(crate) fn local(self, b: &mut Builder<'_>, bytes: usize) -> Value {
        let bytes = b.i64(bytes as i64);
        let op = b.call(self.local, &[bytes], &[Type::PTR]);
        b.function.result(op)
    }
}
