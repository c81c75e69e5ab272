//! Turns pointers that are only loaded and stored again into integers.
//!
//! ```text
//! %p = load ptr %from align 8                %p = load i64 %from align 8
//! store ptr %p, %to align 8           →      store i64 %p, %to align 8
//! ```
//!
//! A move of an `enum` copies a word whose type only its tag tells, and a compiler may choose any type for the copy: a float may be moved as a pointer.
//! The points-to analysis infers what an integer transports, and its derivative moves along; a pointer has no derivative.
//!
//! Applies only if the result of a load goes directly to stores: there its type is arbitrary.

use ferrozyme_ir::entity::EntitySet;
use ferrozyme_ir::{FunctionId, Module, Opcode, Type, Value, all_ops};

/// Turns loads of pointers that are only stored elsewhere into loads of integers; gives their number.
pub fn move_words(module: &mut Module, id: FunctionId) -> usize {
    let function = &mut module.functions[id];
    let ops = all_ops(function);
    let (mut stored, mut used) = (EntitySet::new(), EntitySet::new());
    for &op in &ops {
        let data = &function.ops[op];
        for (index, &operand) in data.operands.iter().enumerate() {
            match data.opcode == Opcode::Store && index == 0 {
                true => stored.insert(operand),
                false => used.insert(operand),
            };
        }
    }
    let is_moved = |word: &Value| {
        function.ty(*word) == Type::PTR && stored.contains(*word) && !used.contains(*word)
    };
    let loads = ops
        .iter()
        .filter(|&&op| function.ops[op].opcode == Opcode::Load);
    let moved: Vec<Value> = loads
        .map(|&op| function.ops[op].results[0])
        .filter(is_moved)
        .collect();
    for &word in &moved {
        function.values[word].ty = Type::I64;
    }
    moved.len()
}
