//! Moves pointers that nobody uses as such as the words that they are.
//!
//! ```text
//! %p = load ptr %from align 8                %p = load i64 %from align 8
//! store ptr %p, %to align 8           →      store i64 %p, %to align 8
//! ```
//!
//! Who moves an `enum` moves a word of which only its tag tells what it is, and a compiler may take any type for it: a float that is moved as a pointer is a float
//! all the same. Of an integer that only moves bytes it is found out what they are, and a derivative goes with them; a pointer has none.
//!
//! Only where a load gives the word directly to stores: there its type is nothing but a choice.

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
