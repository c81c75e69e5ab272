//! Turns words that are only loaded and stored again into integers.
//!
//! ```text
//! %p = load ptr %from align 8                %p = load i64 %from align 8
//! store ptr %p, %to align 8           →      store i64 %p, %to align 8
//! ```
//!
//! A move of an `enum` copies a word whose type only its tag tells, and a compiler may choose any type for the copy: a float may be moved as a pointer, and a pointer as a float.
//! The points-to analysis infers what an integer transports, and its derivative moves along; a pointer has no derivative, and a float leads nowhere.
//!
//! Applies only if the result of a load goes directly to stores: there its type is arbitrary. That of a float may be all that is known of the bytes. So it stays a float
//! unless pointers are loaded or stored as well, both in the memory that it comes from and in memory that it goes to.

use ferrozyme_ir::entity::EntitySet;
use ferrozyme_ir::{Function, FunctionId, Module, Op, OpView, Opcode, Type, Value, all_ops};
use rustc_hash::FxHashSet;

/// Turns loads of pointers and floats that are only stored elsewhere into loads of integers; gives their number.
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
    let is_moved = |word: Value| stored.contains(word) && !used.contains(word);
    let (mut pointers, mut floats) = (Vec::new(), Vec::new());
    for &op in &ops {
        if let OpView::Load { address, .. } = function.view(op)
            && let word = function.ops[op].results[0]
            && is_moved(word)
        {
            match function.ty(word) {
                Type::PTR => pointers.push(word),
                Type::F64 => floats.push((word, root_of(function, address))),
                _ => {}
            }
        }
    }
    if !floats.is_empty() {
        let mixed = memory_with_pointers(function, &ops);
        let goes_there = stored_in(function, &ops, &mixed);
        let may_lead =
            |(word, root): &(Value, Value)| mixed.contains(root) && goes_there.contains(word);
        pointers.extend(
            floats
                .iter()
                .filter(|float| may_lead(float))
                .map(|(word, _)| word),
        );
    }
    for &word in &pointers {
        function.values[word].ty = Type::I64;
    }
    pointers.len()
}

/// The roots of addresses at which pointers are loaded or stored.
fn memory_with_pointers(function: &Function, ops: &[Op]) -> FxHashSet<Value> {
    let accessed = ops.iter().filter_map(|&op| match function.view(op) {
        OpView::Load { address, .. } => Some((function.ops[op].results[0], address)),
        OpView::Store { value, address, .. } => Some((value, address)),
        _ => None,
    });
    let pointers = accessed.filter(|&(word, _)| function.ty(word) == Type::PTR);
    pointers
        .map(|(_, address)| root_of(function, address))
        .collect()
}

/// What is stored behind some roots.
fn stored_in(function: &Function, ops: &[Op], roots: &FxHashSet<Value>) -> FxHashSet<Value> {
    let stored = ops.iter().filter_map(|&op| match function.view(op) {
        OpView::Store { value, address, .. } => Some((value, address)),
        _ => None,
    });
    let there = stored.filter(|&(_, address)| roots.contains(&root_of(function, address)));
    there.map(|(value, _)| value).collect()
}

/// The pointer that an address is counted from.
fn root_of(function: &Function, address: Value) -> Value {
    let mut root = address;
    while let Some(OpView::Offset { base, .. }) = function.definition(root) {
        root = base;
    }
    root
}
