//! Rules for vectors: lanes that are known where they come from.

use super::{Rewrite, matching, number};
use ferrozyme_ir::{Flags, Function, Op, Opcode, Payload};
use smallvec::smallvec;

/// The first rule that fits an operation.
pub(super) fn simplify(function: &mut Function, op: Op) -> Option<Rewrite> {
    let data = &function.ops[op];
    let operands = data.operands.clone();
    match data.opcode {
        Opcode::Extract => {
            let (vector, index) = (operands[0], operands[1]);
            let lane = number(function, index)?;
            if lane < 0 || lane >= i128::from(function.ty(vector).lanes()) {
                return None;
            }
            if let Some((inner, _)) = matching(function, vector, Opcode::Splat) {
                return Some(Rewrite::To(inner[0]));
            }
            let (inner, _) = matching(function, vector, Opcode::Insert)?;
            let inserted = number(function, inner[2])?;
            if inserted == lane {
                return Some(Rewrite::To(inner[1]));
            }
            if inserted < 0 || inserted >= i128::from(function.ty(vector).lanes()) {
                return None;
            }
            Some(Rewrite::Into(
                Opcode::Extract,
                smallvec![inner[0], index],
                Payload::None,
                Flags::NONE,
            ))
        }
        Opcode::Insert => {
            // Putting a lane back where it came from.
            let (inner, _) = matching(function, operands[1], Opcode::Extract)?;
            (inner[0] == operands[0]
                && inner[1] == operands[2]
                && number(function, operands[2]).is_some())
            .then(|| Rewrite::To(operands[0]))
        }
        Opcode::Shuffle => {
            let Payload::Lanes(lanes) = &data.payload else {
                return None;
            };
            let same = lanes
                .iter()
                .enumerate()
                .all(|(at, &lane)| at == usize::from(lane));
            (same && lanes.len() == usize::from(function.ty(operands[0]).lanes()))
                .then(|| Rewrite::To(operands[0]))
        }
        _ => None,
    }
}
