//! Rules for vectors: lanes whose definition is known.

use super::{Rewrite, matching, number};
use ferrozyme_ir::{Flags, Function, Op, OpView, Opcode, Payload};
use smallvec::smallvec;

/// The first rule that fits an operation.
pub(super) fn simplify(function: &mut Function, op: Op) -> Option<Rewrite> {
    match function.view(op) {
        OpView::Extract {
            vector,
            lane: index,
        } => {
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
        OpView::Insert {
            vector,
            scalar,
            lane,
        } => {
            // Putting a lane back where it came from.
            let (inner, _) = matching(function, scalar, Opcode::Extract)?;
            (inner[0] == vector && inner[1] == lane && number(function, lane).is_some())
                .then(|| Rewrite::To(vector))
        }
        OpView::Shuffle { left, lanes, .. } => {
            let same = lanes
                .iter()
                .enumerate()
                .all(|(at, &lane)| at == usize::from(lane));
            (same && lanes.len() == usize::from(function.ty(left).lanes()))
                .then(|| Rewrite::To(left))
        }
        _ => None,
    }
}
