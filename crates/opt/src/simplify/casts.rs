//! Rules for casts of casts.

use super::Rewrite;
use ferrozyme_ir::{Function, Op, OpView, Opcode, Payload, Type, Value};
use smallvec::smallvec;

/// The first rule that fits an operation.
pub(super) fn simplify(function: &mut Function, op: Op) -> Option<Rewrite> {
    use Opcode::*;
    let OpView::Cast(outer, middle) = function.view(op) else {
        return None;
    };
    let flags = function.ops[op].flags;
    let to = function.ty(function.result(op));
    if outer == Bitcast && function.ty(middle) == to {
        return Some(Rewrite::To(middle));
    }
    let OpView::Cast(inner, source) = function.definition(middle)? else {
        return None;
    };
    let from = function.ty(source);
    let into = |opcode| {
        Some(Rewrite::Into(
            opcode,
            smallvec![source],
            Payload::None,
            ferrozyme_ir::Flags::NONE,
        ))
    };
    match (outer, inner) {
        (Zext, Zext) | (Sext, Zext) => into(Zext),
        (Sext, Sext) => into(Sext),
        (TruncInt, TruncInt) => into(TruncInt),
        (TruncInt, extension @ (Zext | Sext)) => between(from, to, source, extension),
        (Bitcast, Bitcast) => into(Bitcast),
        // Widening is exact, so coming back to the start, or going on, loses nothing.
        (Fptrunc, Fpext) if from == to => Some(Rewrite::To(source)),
        (Fpext, Fpext) => Some(Rewrite::Into(
            Fpext,
            smallvec![source],
            Payload::None,
            flags,
        )),
        (Ptrtoint, Inttoptr) | (Inttoptr, Ptrtoint) if from == to => Some(Rewrite::To(source)),
        _ => None,
    }
}

/// The low bits of an extended value: the value itself, its low bits, or a shorter extension.
fn between(from: Type, to: Type, source: Value, extension: Opcode) -> Option<Rewrite> {
    let opcode = match from.scalar().bits().cmp(&to.scalar().bits()) {
        std::cmp::Ordering::Equal => return Some(Rewrite::To(source)),
        std::cmp::Ordering::Greater => Opcode::TruncInt,
        std::cmp::Ordering::Less => extension,
    };
    Some(Rewrite::Into(
        opcode,
        smallvec![source],
        Payload::None,
        ferrozyme_ir::Flags::NONE,
    ))
}
