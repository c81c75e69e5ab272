//! Aligns the words in a function's stack memory to eight bytes.
//!
//! Code that moves a structure as its first byte and the rest keeps the rest in memory of arbitrary alignment, and its words straddle the aligned words of that memory. The memory is enlarged and shifted, so that copied words have
//! the same alignment as in their source:
//!
//! ```text
//! %rest = stack 55 align 1                            %all = stack 56 align 8
//! %from = offset %p, 9                                %rest = offset %all, 1
//! copy %rest, %from, 55 align 1                 →     %from = offset %p, 9
//!                                                     copy %rest, %from, 55 align 1
//! ```
//!
//! The position does not matter to a program. It matters to its derivative, which distinguishes floats, pointers and integers in union words word by word.

use crate::with_function::with_function;
use ferrozyme_ir::{
    Alignment, Builder, Cursor, Function, FunctionId, Module, Op, OpView, Opcode, Payload,
    Structure, Type, Value, all_ops,
};
use rustc_hash::FxHashMap;

const WORD: i64 = 8;

/// Aligns the words in stack memory; returns how many `stack`s were changed.
pub fn place_words(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |_, function| {
        let mut places: FxHashMap<Op, i64> = FxHashMap::default();
        for op in all_ops(function) {
            let data = &function.ops[op];
            if !matches!(data.opcode, Opcode::Copy | Opcode::Move) {
                continue;
            }
            let (to, from) = (data.destination(), data.source());
            for (one, other) in [(to, from), (from, to)] {
                let (here, at) = root_of(function, one);
                let (there, beside) = root_of(function, other);
                if let Some(stack) = movable(function, here)
                    && there.is_none_or(|there| movable(function, Some(there)).is_none())
                {
                    places
                        .entry(stack)
                        .or_insert((beside - at).rem_euclid(WORD));
                }
            }
        }
        let mut moved: Vec<(Op, i64)> = places.into_iter().filter(|&(_, by)| by != 0).collect();
        moved.sort_unstable();
        for &(stack, by) in &moved {
            move_stack(function, stack, by);
        }
        moved.len()
    })
}

/// The allocation that a pointer points into, and its constant offset there.
fn root_of(function: &Function, pointer: Value) -> (Option<Op>, i64) {
    let (mut pointer, mut at) = (pointer, 0i64);
    while let Some((op, _)) = function.def_op(pointer) {
        let OpView::Offset { base, index, scale } = function.view(op) else {
            return (Some(op), at);
        };
        let index = function.int_of(index).unwrap_or(0);
        at = at.wrapping_add((index as i64).wrapping_mul(scale));
        pointer = base;
    }
    (None, at)
}

/// Memory of constant size with an alignment below eight.
fn movable(function: &Function, op: Option<Op>) -> Option<Op> {
    let data = &function.ops[op?];
    let Payload::Align(align) = data.payload else {
        return None;
    };
    let is_constant = function.int_of(*data.operands.first()?).is_some();
    (data.opcode == Opcode::Stack && align == Alignment::ONE && is_constant).then_some(op?)
}

fn move_stack(function: &mut Function, stack: Op, by: i64) {
    let structure = Structure::of(function);
    let Some(region) = structure.region_of(stack) else {
        return;
    };
    let size = function.int_of(function.ops[stack].size());
    let size = size.expect("it is constant") as i64;
    let whole = (size + by + WORD - 1) / WORD * WORD;
    let old = function.result(stack);
    let whole = function.int(Type::I64, i128::from(whole));
    *function.ops[stack].size_mut() = whole;
    function.ops[stack].payload = Payload::Align(Alignment::natural(Type::F64));
    let after = Cursor::after(function, region, stack);
    let mut builder = Builder::at(function, after);
    builder.location = builder.function.ops[stack].location;
    let new = builder.offset_bytes(old, by);
    let replaced = FxHashMap::from_iter([(old, new)]);
    function.replace_operands(&replaced);
    let (op, _) = function.def_op(new).expect("just made");
    *function.ops[op].base_mut() = old;
}
