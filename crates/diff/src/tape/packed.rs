//! The tape as one value, which the forward sweep of split mode returns and the reverse sweep takes.

use crate::tape::Tape;
use ferrozyme_ir::{Alignment, Builder, Function, Type, Value};
use rustc_hash::FxHashMap;

/// Stores the values that the reverse sweep reads, and gives where; null if there are none.
pub(crate) fn pack_tape(target: &mut Function, tape: &Tape) -> Value {
    let body = target.body();
    let mut b = Builder::new(target, body);
    if tape.kept.is_empty() {
        return b.zero(Type::PTR);
    }
    let (offsets, bytes) = tape_layout(b.function, tape);
    let size = b.i64(bytes as i64);
    let align = Alignment::new(16).expect("a power of two");
    let memory = b.alloc(size, align, false);
    b.function.set_name(memory, "tape");
    for (&value, offset) in tape.kept.iter().zip(offsets) {
        let slot = b.offset_bytes(memory, offset as i64);
        b.store(value, slot, Alignment::natural(b.ty(value)));
    }
    memory
}

/// Reads them back, and releases the memory.
pub(crate) fn unpack_tape(
    target: &mut Function,
    source: &Function,
    tape: &Tape,
    memory: Value,
    known: &mut FxHashMap<Value, Value>,
) {
    if tape.kept.is_empty() {
        return;
    }
    let (offsets, _) = tape_layout(source, tape);
    let mut b = Builder::at_body(target);
    for (&value, offset) in tape.kept.iter().zip(offsets) {
        let ty = source.ty(value);
        let slot = b.offset_bytes(memory, offset as i64);
        let read = b.load(ty, slot, Alignment::natural(ty));
        if let Some(name) = &source.values[value].name {
            b.function.set_name(read, name.clone());
        }
        known.insert(value, read);
    }
    b.free(memory);
}

/// Where each kept value stands in the tape, and how many bytes it has.
pub(crate) fn tape_layout(function: &Function, tape: &Tape) -> (Vec<u64>, u64) {
    let mut end = 0u64;
    let offsets = tape
        .kept
        .iter()
        .map(|&value| {
            let ty = function.ty(value);
            let offset = end.next_multiple_of(ty.scalar().bytes());
            end = offset + ty.bytes();
            offset
        })
        .collect();
    (offsets, end)
}
