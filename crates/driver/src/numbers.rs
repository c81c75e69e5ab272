//! Numbers in variables of the library that hold nothing else (`HoldsNumbers`) are no addresses.
//!
//! ```text
//! %k = load i64 @KEYS align 8        ⇒     %l = load i64 @KEYS align 8
//! store i64 %n, @KEYS align 8              %k = call @__ferrozyme_inactive_i64(%l)
//!                                          %m = call @__ferrozyme_inactive_i64(%n)
//!                                          store i64 %m, @KEYS align 8
//! ```
//!
//! The keys of hash maps are stored in the maps, and an integer that is stored beside pointers may be one to the points-to analysis: then the variable would point to the maps. It
//! outlives the call, and the program would be refused. Detached values are taken for nothing but what their uses say, and `attach_again` replaces the calls by their arguments.

use crate::opaque::INACTIVE_NAME;
use ferrozyme_ir::{
    Builder, Constant, Cursor, Flags, Function, FunctionId, MemoryEffect, Module, Op, OpData,
    OpView, Opcode, Param, Payload, Structure, Type, Value, all_ops,
};
use ferrozyme_library::{Known, is};

/// Detaches the integers that are loaded from and stored in variables with numbers.
pub(crate) fn detach_known_numbers(module: &mut Module) {
    for id in module.functions.keys().collect::<Vec<_>>() {
        let accesses = accesses(module, &module.functions[id]);
        for (op, ty) in accesses {
            let detached = detached(module, ty);
            detach(&mut module.functions[id], op, ty, detached);
        }
    }
}

/// The accesses of such variables that are seen as such, with the type of the integer.
fn accesses(module: &Module, function: &Function) -> Vec<(Op, Type)> {
    let holds_numbers = |mut address: Value| {
        while let Some(OpView::Offset { base, .. }) = function.definition(address) {
            address = base;
        }
        match function.constant_of(address) {
            Some(Constant::Global(global)) => {
                is(&module.globals[*global].name, &Known::HoldsNumbers)
            }
            _ => false,
        }
    };
    let accessed = |op: Op| {
        let (address, value) = match function.view(op) {
            OpView::Load { address, .. } => (address, function.result(op)),
            OpView::Store { address, value, .. } => (address, value),
            _ => return None,
        };
        let ty = function.ty(value);
        (ty.is_int() && holds_numbers(address)).then_some((op, ty))
    };
    all_ops(function).into_iter().filter_map(accessed).collect()
}

/// The function that detaches values of a type.
fn detached(module: &mut Module, ty: Type) -> FunctionId {
    let name = format!("{INACTIVE_NAME}_{ty}");
    if let Some(known) = module.function_named(&name) {
        return known;
    }
    let mut function = Function::declare(name, vec![Param::from(ty)], vec![ty]);
    function.facts.memory = MemoryEffect::None;
    function.facts.willreturn = true;
    function.facts.inactive = true;
    module.functions.push(function)
}

fn detach(function: &mut Function, op: Op, ty: Type, detached: FunctionId) {
    let region = Structure::of(function).region_of(op);
    let ahead = Cursor::before(function, region.expect("the operation is in the body"), op);
    if function.ops[op].opcode == Opcode::Store {
        let value = function.ops[op].value();
        let mut b = Builder::at(function, ahead);
        let call = b.call(detached, &[value], &[ty]);
        *function.ops[op].value_mut() = function.result(call);
        return;
    }
    // The load is another operation from now on, so that its result is the detached value.
    let load = OpData {
        results: Default::default(),
        ..function.ops[op].clone()
    };
    let load = function.new_op(load, &[ty]);
    let mut ahead = ahead;
    ahead.insert(function, load);
    let loaded = function.result(load);
    let data = &mut function.ops[op];
    data.opcode = Opcode::Call;
    data.operands = [loaded].into_iter().collect();
    data.payload = Payload::Callee(detached);
    data.flags = Flags::NONE;
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrozyme_ir::{parse_module, print_module, verify_module};

    #[test]
    fn keys_of_hash_maps_are_numbers() {
        let mut module = parse_module(
            "global @_R11RandomState3new4KEYS0: 24 bytes align 8 shared thread_local = zero
             global @other: 8 bytes align 8 shared = zero
             func @f(%map: ptr) {
               %place = offset @_R11RandomState3new4KEYS0, 8
               %key = load i64 %place align 8
               store i64 %key, %map align 8
               %next = add i64 %key, 1
               store i64 %next, %place align 8
               store i64 %next, @other align 8
               return
             }",
        )
        .expect("it is a module");
        detach_known_numbers(&mut module);
        verify_module(&module).expect("it is one still");
        let text = print_module(&module).to_string();
        let body: Vec<&str> = text
            .lines()
            .skip_while(|line| !line.contains("%place = "))
            .skip(1)
            .map(str::trim)
            .collect();
        let expected = [
            "%0 = load i64 %place align 8",
            "%key = call @__ferrozyme_inactive_i64(%0)",
            "store i64 %key, %map align 8",
            "%next = add i64 %key, 1",
            "%1 = call @__ferrozyme_inactive_i64(%next)",
            "store i64 %1, %place align 8",
            "store i64 %next, @other align 8",
        ];
        assert_eq!(body[..expected.len()], expected);
    }
}
