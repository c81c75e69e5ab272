//! From where to where the values of a function are moved as they are: by branches and loops that hand them on, by selections, and by casts to types of the same bits.
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

/// The moves from words to words. Constants come from nowhere, and are left out.
pub fn word_moves(function: &Function, is_word: impl Fn(Value) -> bool) -> Vec<(Value, Value)> {
    let mut moves = Vec::new();
    for op in returning_ops(function) {
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
            _ => moves.extend(flows(function, op)),
        }
    }
    let counts = |value| is_word(value) && !function.is_constant(value);
    moves.retain(|&(from, to)| counts(from) && counts(to));
    moves
}
