//! Rules of the linear operations that move lanes or change types.
//!
//! Forward, such an operation is applied to tangents as it is. Backward, its transpose is applied to adjoints:
//!
//! ```text
//! %a = extract <4 x f64> %v, %i          %v' += insert <4 x f64> splat(0.0), %a', %i
//! ```
//!
//! Tangents and adjoints have the [`derivative_type`] of their values, so types come from them and not from the primal: an
//! `extract` from a vector of `i64` that carry doubles gives back an adjoint of doubles.

use super::{Lookup, Needs, Primal, derivative_type};
use ferrozyme_ir::{Builder, Opcode, Payload, Type, Value};
use ferrozyme_refusal::Refusal;
use smallvec::SmallVec;

/// The tangent of the result; at least one of the operands' tangents is given.
pub(super) fn jvp(
    b: &mut Builder<'_>,
    primal: &Primal,
    lookup: &mut Lookup<'_>,
    tangents: &[Option<Value>],
) -> Option<Value> {
    let scalar = match primal.opcode {
        Opcode::Fpext | Opcode::Fptrunc => primal.result_types[0].scalar(),
        _ => tangents
            .iter()
            .flatten()
            .map(|&tangent| b.ty(tangent).scalar())
            .next()?,
    };
    let result = primal.result_types[0].with_scalar(scalar);
    let tangent = |b: &mut Builder<'_>, operand: usize| match tangents[operand] {
        Some(tangent) => tangent,
        None => b.zero(primal.operand_types[operand].with_scalar(scalar)),
    };
    Some(match primal.opcode {
        Opcode::Fpext | Opcode::Fptrunc => b.cast(primal.opcode, tangents[0]?, result),
        Opcode::Bitcast => reshape(b, tangents[0]?, result),
        Opcode::Splat | Opcode::ReduceFadd => {
            b.value(primal.opcode, &[tangents[0]?], Payload::None, result)
        }
        Opcode::Select => {
            let (x, y) = (tangent(b, 1), tangent(b, 2));
            let condition = lookup(b, primal.operands[0]);
            b.select(condition, x, y)
        }
        Opcode::Extract => {
            let lane = lookup(b, primal.operands[1]);
            b.value(
                Opcode::Extract,
                &[tangents[0]?, lane],
                Payload::None,
                result,
            )
        }
        Opcode::Insert => {
            let (vector, element) = (tangent(b, 0), tangent(b, 1));
            let lane = lookup(b, primal.operands[2]);
            b.value(
                Opcode::Insert,
                &[vector, element, lane],
                Payload::None,
                result,
            )
        }
        Opcode::Shuffle => {
            let (x, y) = (tangent(b, 0), tangent(b, 1));
            b.value(Opcode::Shuffle, &[x, y], primal.payload.clone(), result)
        }
        other => unreachable!("{other} is not in the table as linear"),
    })
}

/// What the adjoint of each active operand grows by.
pub(super) fn vjp(
    b: &mut Builder<'_>,
    primal: &Primal,
    lookup: &mut Lookup<'_>,
    adjoints: &[Option<Value>],
    active: u32,
) -> SmallVec<[Option<Value>; 4]> {
    let mut contributions = SmallVec::from_elem(None, primal.operands.len());
    let Some(adjoint) = adjoints[0] else {
        return contributions;
    };
    let is_active = |operand: usize| active >> operand & 1 == 1;
    let scalar = b.ty(adjoint).scalar();
    let operand_type = |operand: usize| primal.operand_types[operand].with_scalar(scalar);
    match primal.opcode {
        Opcode::Fpext | Opcode::Fptrunc if is_active(0) => {
            let back = match primal.opcode {
                Opcode::Fpext => Opcode::Fptrunc,
                _ => Opcode::Fpext,
            };
            contributions[0] = Some(b.cast(back, adjoint, primal.operand_types[0]));
        }
        Opcode::Bitcast if is_active(0) => {
            contributions[0] = Some(reshape(b, adjoint, operand_type(0)));
        }
        Opcode::Splat if is_active(0) => {
            contributions[0] = Some(b.value(
                Opcode::ReduceFadd,
                &[adjoint],
                Payload::None,
                operand_type(0),
            ));
        }
        Opcode::ReduceFadd if is_active(0) => {
            contributions[0] =
                Some(b.value(Opcode::Splat, &[adjoint], Payload::None, operand_type(0)));
        }
        Opcode::Select if is_active(1) || is_active(2) => {
            let condition = lookup(b, primal.operands[0]);
            let zero = b.zero(operand_type(1));
            if is_active(1) {
                contributions[1] = Some(b.select(condition, adjoint, zero));
            }
            if is_active(2) {
                contributions[2] = Some(b.select(condition, zero, adjoint));
            }
        }
        Opcode::Extract if is_active(0) => {
            let lane = lookup(b, primal.operands[1]);
            let zero = b.zero(operand_type(0));
            let operands = [zero, adjoint, lane];
            contributions[0] =
                Some(b.value(Opcode::Insert, &operands, Payload::None, operand_type(0)));
        }
        Opcode::Insert if is_active(0) || is_active(1) => {
            let lane = lookup(b, primal.operands[2]);
            if is_active(0) {
                let zero = b.zero(operand_type(1));
                let operands = [adjoint, zero, lane];
                contributions[0] =
                    Some(b.value(Opcode::Insert, &operands, Payload::None, operand_type(0)));
            }
            if is_active(1) {
                contributions[1] = Some(b.value(
                    Opcode::Extract,
                    &[adjoint, lane],
                    Payload::None,
                    operand_type(1),
                ));
            }
        }
        Opcode::Shuffle => {
            let lanes = match &primal.payload {
                Payload::Lanes(lanes) => &lanes[..],
                _ => &[],
            };
            let width = primal.operand_types[0].lanes();
            for operand in [0, 1] {
                if is_active(operand) {
                    let first = width * operand as u16;
                    contributions[operand] =
                        unshuffle(b, adjoint, lanes, first, operand_type(operand));
                }
            }
        }
        _ => {}
    }
    contributions
}

/// What the transposed operation reads: conditions and lane numbers.
pub(super) fn needs(primal: &Primal, active: u32) -> Needs {
    let (reads, differentiable) = match primal.opcode {
        Opcode::Select => (0, 0b110),
        Opcode::Extract => (1, 0b1),
        Opcode::Insert => (2, 0b11),
        _ => return Needs::default(),
    };
    let needed = active & differentiable != 0 && !primal.is_known(reads);
    Needs {
        operands: u32::from(needed) << reads,
        results: 0,
    }
}

/// A bit cast carries derivatives only where it leaves each float whole and of its width.
pub(super) fn refusal(primal: &Primal) -> Option<Refusal> {
    if primal.opcode != Opcode::Bitcast {
        return None;
    }
    let (from, to) = (primal.operand_types[0], primal.result_types[0]);
    let same = match (derivative_type(from), derivative_type(to)) {
        (Some(from), Some(to)) => from.scalar() == to.scalar() && from.lanes() == to.lanes(),
        _ => false,
    };
    if same {
        return None;
    }
    Some(Refusal::BitCast {
        from: from.to_string(),
        to: to.to_string(),
    })
}

/// Between a scalar and a vector of one lane; anything else stays as it is.
fn reshape(b: &mut Builder<'_>, value: Value, ty: Type) -> Value {
    if b.ty(value) == ty {
        value
    } else {
        b.cast(Opcode::Bitcast, value, ty)
    }
}

/// The transpose of a shuffle: lane `k` of the result is the sum of the lanes of `adjoint` for which `lanes` names `first + k`.
///
/// Each round takes one more of the lanes that name the same; mostly there is only one round.
fn unshuffle(
    b: &mut Builder<'_>,
    adjoint: Value,
    lanes: &[u16],
    first: u16,
    ty: Type,
) -> Option<Value> {
    let width = usize::from(ty.lanes());
    let mut users: Vec<Vec<u16>> = vec![Vec::new(); width];
    for (lane, &source) in lanes.iter().enumerate() {
        if let Some(users) = source
            .checked_sub(first)
            .and_then(|k| users.get_mut(usize::from(k)))
        {
            users.push(lane as u16);
        }
    }
    let rounds = users.iter().map(Vec::len).max().unwrap_or(0);
    let zero = b.zero(b.ty(adjoint));
    // Lanes of `zero` are counted after those of the adjoint.
    let nothing = lanes.len() as u16;
    let mut sum = None;
    for round in 0..rounds {
        let back: Box<[u16]> = users
            .iter()
            .map(|users| users.get(round).copied().unwrap_or(nothing))
            .collect();
        let part = b.value(Opcode::Shuffle, &[adjoint, zero], Payload::Lanes(back), ty);
        sum = Some(match sum {
            Some(sum) => b.binary(Opcode::Fadd, sum, part),
            None => part,
        });
    }
    sum
}
