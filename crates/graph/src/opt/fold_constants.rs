//! Computes what depends on constants only.
//!
//! ```text
//! %a = constant 2.0 : f32[2, 3]
//! %b = constant 3.0 : f32[2, 3]     ─▶    %c = constant 6.0 : f32[2, 3]
//! %c = fmul %a, %b : f32[2, 3]
//! ```
//!
//! Tensors of one number are folded whatever their size, others up to a limit. An operation that fails stays.

use super::rewrite::rewrite;
use crate::graph::{Graph, OpData, Tensor};
use crate::interpret::Array;
use crate::opcode::{Effect, Opcode};
use crate::payload::{Literal, Payload};
use crate::types::TensorType;

/// The most elements of a result, or of an operand of it, that are not all the same.
const LARGEST: usize = 4096;

/// See the file's head.
pub fn fold_constants(graph: &mut Graph) -> usize {
    rewrite(graph, &mut |graph, op| {
        let data = graph.ops[op].clone();
        let is_pure = matches!(data.opcode.row().effect, Effect::Pure | Effect::Partial);
        if !is_pure || data.operands.is_empty() {
            return None;
        }
        let ty = graph.ty(data.results[0]).clone();
        let literal = fold_uniform(graph, &data, &ty).or_else(|| fold(graph, &data, &ty))?;
        Some(vec![graph.constant(ty, literal)])
    })
}

/// All elements of the result are one number if those of each operand are.
fn fold_uniform(graph: &Graph, data: &OpData, ty: &TensorType) -> Option<Literal> {
    let values: Vec<f64> = data
        .operands
        .iter()
        .map(|&operand| graph.splat_of(operand))
        .collect::<Option<_>>()?;
    match data.opcode {
        Opcode::Reshape | Opcode::Permute | Opcode::Broadcast | Opcode::Slice | Opcode::Detach => {
            Some(Literal::Splat(values[0]))
        }
        Opcode::Elementwise | Opcode::Cast => {
            let scalar = |(&operand, &value): (&Tensor, &f64)| {
                Array::splat(graph.ty(operand).element, value)
            };
            let operands: Vec<Array> = data.operands.iter().zip(&values).map(scalar).collect();
            let operands: Vec<&Array> = operands.iter().collect();
            let evaluate = data.opcode.row().evaluate?;
            let elements = evaluate(data, &operands, &TensorType::scalar(ty.element)).ok()?;
            Some(Literal::Splat(elements[0]))
        }
        _ => None,
    }
}

fn fold(graph: &Graph, data: &OpData, ty: &TensorType) -> Option<Literal> {
    let small = |ty: &TensorType| ty.shape.count() <= LARGEST;
    if !small(ty) || matches!(data.payload, Payload::Random(..)) {
        return None;
    }
    let operand = |&operand: &Tensor| {
        let literal = graph.constant_of(operand)?;
        let ty = graph.ty(operand);
        small(ty).then(|| Array::from_literal(ty, literal))
    };
    let operands: Vec<Array> = data.operands.iter().map(operand).collect::<Option<_>>()?;
    let operands: Vec<&Array> = operands.iter().collect();
    let elements = (data.opcode.row().evaluate?)(data, &operands, ty).ok()?;
    let same = elements
        .iter()
        .all(|value| value.to_bits() == elements[0].to_bits());
    Some(match same {
        true => Literal::Splat(elements[0]),
        false => Literal::from(elements),
    })
}
