//! Rules for casts of casts.

use super::Rewrite;
use ferrozyme_ir::{Form, Function, Op, Opcode, Payload, Type, Value};
use smallvec::smallvec;

/// The first rule that fits an operation.
pub(super) fn simplify(function: &mut Function, op: Op) -> Option<Rewrite> {
    use Opcode::*;
    let data = &function.ops[op];
    if data.opcode.form() != Form::Cast {
        return None;
    }
    let (outer, flags, middle) = (data.opcode, data.flags, data.operands[0]);
    let to = function.ty(function.result(op));
    if outer == Bitcast && function.ty(middle) == to {
        return Some(Rewrite::To(middle));
    }
    let (inner, _) = function.def_op(middle)?;
    let inner = &function.ops[inner];
    if inner.opcode.form() != Form::Cast {
        return None;
    }
    let source = inner.operands[0];
    let from = function.ty(source);
    let into = |opcode| {
        Some(Rewrite::Into(
            opcode,
            smallvec![source],
            Payload::None,
            ferrozyme_ir::Flags::NONE,
        ))
    };
    match (outer, inner.opcode) {
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
