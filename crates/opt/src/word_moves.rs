//! From where to where the values of a function are moved as they are: by branches and loops that hand them on, by selections, by casts to types of the same bits, and into and out of the
//! lanes of vectors.
//!
//! ```text
//! %word = if %c -> (ptr) {                    %x → %bits → %taken → %word
//!   %bits = bitcast f64 %x to i64             %made → %word
//!   %taken = inttoptr i64 %bits to ptr
//!   yield %taken
//! } else {
//!   %made = alloc 8 align 8
//!   yield %made
//! }
//! ```

use crate::carried::flows;
use ferrozyme_ir::{Function, OpView, Opcode, Value, returning_ops};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::hash::Hash;

/// The moves from words to words. Constants come from nowhere, and are left out.
pub fn word_moves(function: &Function, is_word: impl Fn(Value) -> bool) -> Vec<(Value, Value)> {
    let mut moves = Vec::new();
    for op in returning_ops(function) {
        let data = &function.ops[op];
        match function.view(op) {
            OpView::Cast(Opcode::Bitcast | Opcode::Ptrtoint | Opcode::Inttoptr, from) => {
                moves.push((from, function.result(op)));
            }
            OpView::Select {
                then, otherwise, ..
            } => {
                let result = function.result(op);
                moves.extend([(then, result), (otherwise, result)]);
            }
            _ => match lanes_from(data.opcode) {
                0 => moves.extend(flows(function, op)),
                count => {
                    let from = data.operands[..count].iter();
                    moves.extend(from.map(|&from| (from, data.results[0])));
                }
            },
        }
    }
    let counts = |value| is_word(value) && !function.is_constant(value);
    moves.retain(|&(from, to)| counts(from) && counts(to));
    moves
}

/// How many of the operands of an operation on vectors have lanes, or are one, that the result may have.
fn lanes_from(opcode: Opcode) -> usize {
    match opcode {
        Opcode::Splat | Opcode::Extract => 1,
        Opcode::Insert | Opcode::Shuffle => 2,
        _ => 0,
    }
}

/// Some values, or what stands for them, and all that they may be moved to.
pub fn reached_by_moves<V: Copy + Eq + Hash>(
    moves: &[(V, V)],
    from: impl IntoIterator<Item = V>,
) -> FxHashSet<V> {
    let mut targets: FxHashMap<V, SmallVec<[V; 2]>> = FxHashMap::default();
    for &(from, to) in moves {
        targets.entry(from).or_default().push(to);
    }
    let mut reached = FxHashSet::default();
    let mut open: Vec<V> = from.into_iter().collect();
    while let Some(value) = open.pop() {
        if reached.insert(value) {
            open.extend(targets.get(&value).into_iter().flatten());
        }
    }
    reached
}

/// The same moves from where they end to where they begin.
pub fn reversed_moves<V: Copy>(moves: &[(V, V)]) -> Vec<(V, V)> {
    moves.iter().map(|&(from, to)| (to, from)).collect()
}
