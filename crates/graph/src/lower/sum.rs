//! Sums with contractions as terms: the kernel writes the other terms to the result, then each contraction adds to it, so that bias and residual cost no kernel and products no buffer.
//!
//! ```text
//! %p = contract %x, %w (ab, bc -> ac)          kernel %s(%b, %r, %x, %w):
//! %q = fadd %p, %b                      ─▶       for each element: s = b + r
//! %s = fadd %q, %r                               s += contract x, w
//! ```

use super::Fusion;
use crate::graph::{Graph, Op, OpData, Tensor};
use crate::opcode::Opcode;
use crate::payload::{Function, Payload};

/// The terms of a sum.
pub(crate) struct Sum {
    /// Those that are computed element by element.
    pub(crate) elements: Vec<Tensor>,
    /// Contractions that are inlined.
    pub(crate) contractions: Vec<Op>,
}

/// Whether an operation adds floats.
pub(crate) fn is_sum(data: &OpData) -> bool {
    data.payload == Payload::Function(Function::Of(ferrozyme_ir::Opcode::Fadd))
}

/// The terms of an operation that is a sum with contractions that are inlined; none if it is not.
pub(crate) fn split_sum(graph: &Graph, fusion: &Fusion, op: Op) -> Option<Sum> {
    if !is_sum(&graph.ops[op]) {
        return None;
    }
    let mut sum = Sum {
        elements: Vec::new(),
        contractions: Vec::new(),
    };
    let mut waiting = vec![op];
    while let Some(op) = waiting.pop() {
        for &operand in &graph.ops[op].operands {
            match graph.def_op(operand).map(|op| (op, &graph.ops[op])) {
                Some((op, data)) if fusion.inlined.contains(operand) && is_sum(data) => {
                    waiting.push(op);
                }
                Some((op, data))
                    if fusion.inlined.contains(operand) && data.opcode == Opcode::Contract =>
                {
                    sum.contractions.push(op);
                }
                _ => sum.elements.push(operand),
            }
        }
    }
    (!sum.contractions.is_empty()).then_some(sum)
}
