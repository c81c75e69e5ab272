//! Which kernels there are: what each computes and reads.
//!
//! Without fusion, each operation that computes a tensor is a kernel. A tensor that is *inlined* has no buffer: its elements are computed by the kernels that use them. Operations that are *joined* have one kernel,
//! which runs where the last of them stands.

use super::access::{Coordinate, accesses};
use super::kernel::reads_before_writing;
use crate::graph::{Graph, Op, Tensor};
use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

/// Which tensors have no buffer, and which operations have one kernel.
#[derive(Clone, Debug, Default)]
pub struct Fusion {
    /// The tensors that are inlined: their elements are computed where they are used, or added to what uses them.
    pub inlined: EntitySet<Tensor>,
    /// For the last of several joined operations, all of them.
    joints: FxHashMap<Op, Joint>,
    /// Operations that are joined with a later one.
    early: EntitySet<Op>,
}

/// Operations with one kernel.
#[derive(Clone, Debug)]
pub struct Joint {
    /// In their order.
    pub members: Vec<Op>,
    /// How many axes, the first ones of all results, the loops around all of them count along.
    pub outer: usize,
}

impl Fusion {
    /// Has operations share a kernel.
    pub(crate) fn join(&mut self, joint: Joint) {
        let (&last, early) = joint.members.split_last().expect("a joint has members");
        for &op in early {
            self.early.insert(op);
        }
        self.joints.insert(last, joint);
    }

    /// The operations whose results are computed where an operation stands. None if its result is inlined, or computed with that of a later one.
    pub fn members<'f>(&'f self, graph: &Graph, op: &'f Op) -> &'f [Op] {
        if self.early.contains(*op) {
            return &[];
        }
        if let Some(joint) = self.joints.get(op) {
            return &joint.members;
        }
        match graph.ops[*op].results[..] {
            [result] if self.inlined.contains(result) => &[],
            _ => std::slice::from_ref(op),
        }
    }

    /// The joint that ends with an operation.
    pub(crate) fn joint(&self, op: Op) -> Option<&Joint> {
        self.joints.get(&op)
    }

    /// The tensors with buffers that are read where an operation stands, by itself, through inlined ones, or by those that are joined with it, in the order in which they are met.
    pub fn inputs(&self, graph: &Graph, op: Op) -> Vec<Tensor> {
        let members = self.members(graph, &op);
        let own: Vec<Tensor> = match members.len() {
            0 | 1 => Vec::new(),
            _ => members.iter().map(|&op| graph.ops[op].results[0]).collect(),
        };
        let mut seen = own.clone();
        let mut inputs = Vec::new();
        for &member in members {
            self.collect(graph, member, &mut seen, &mut inputs);
        }
        inputs
    }

    fn collect(&self, graph: &Graph, op: Op, seen: &mut Vec<Tensor>, inputs: &mut Vec<Tensor>) {
        for &operand in &graph.ops[op].operands {
            if seen.contains(&operand) {
                continue;
            }
            seen.push(operand);
            match graph.def_op(operand) {
                Some(inner) if self.inlined.contains(operand) => {
                    self.collect(graph, inner, seen, inputs);
                }
                _ => inputs.push(operand),
            }
        }
    }

    /// Whether the result of a kernel may be where one of its inputs is that nobody needs afterwards.
    ///
    /// Each element must be read before it is overwritten. That is so if an element of the result depends on that at the same position only, and no other part of the kernel reads the input later.
    pub fn may_share(&self, graph: &Graph, op: Op, input: Tensor, result: Tensor) -> bool {
        let (from, to) = (graph.ty(input), graph.ty(result));
        if from.shape != to.shape || from.element.bytes() != to.element.bytes() {
            return false;
        }
        let members = self.members(graph, &op);
        if !members
            .iter()
            .all(|&member| reads_before_writing(graph, self, member))
        {
            return false;
        }
        let outer = self.joint(op).map_or(to.shape.len(), |joint| joint.outer);
        let writer = members
            .iter()
            .position(|&member| graph.ops[member].results[0] == result);
        let Some(writer) = writer else {
            return false;
        };
        members.iter().enumerate().all(|(position, &member)| {
            let own = Coordinate::of(&graph.ty(graph.ops[member].results[0]).shape);
            let in_rows = outer < to.shape.len();
            accesses(graph, self, member)
                .iter()
                .filter(|(tensor, _)| *tensor == input)
                .all(|(_, at)| match at {
                    // Later parts of the same row would read what was overwritten; earlier ones may read all of it.
                    Some(_) if in_rows && position > writer => false,
                    Some(at) if in_rows && position < writer => {
                        at.len() >= outer && at[..outer] == own[..outer]
                    }
                    Some(at) => *at == own,
                    None => false,
                })
        })
    }
}
