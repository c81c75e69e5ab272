//! Joins kernels that read the same tensors, or of which one reads what the other computes, so that these are read once, or while they are in the nearest cache.
//!
//! ```text
//! %m = reduce max %x [1] : f32[4]
//! %p = exp … %x, %m : f32[4, 9]                 one kernel: for each of the 4 rows
//! %s = reduce sum %p [1] : f32[4]        ─▶       m = its maximum;  p[…] = …;  s = their sum;  y[…] = p[…] / s
//! %y = fdiv %p, … %s : f32[4, 9]
//! ```
//!
//! The kernels have axes in common, the first ones of all results, which the outer loops count along. An element may depend on what the joint computes for the same outer index only. The joint runs where its last member stands; nobody else
//! may use its results before, and no state changes between.

use crate::graph::{Graph, Op, Region, Tensor};
use crate::lower::access::{Coordinate, accesses};
use crate::lower::kernel::is_elementary;
use crate::lower::{Fusion, Joint};
use crate::opcode::Opcode;

/// The most kernels that are joined.
const MEMBERS: usize = 8;
/// The most tensors that a joint reads and writes.
const TENSORS: usize = 20;
/// How many joints grow side by side.
const OPEN: usize = 4;

/// See the file's head.
pub(super) fn join_kernels(graph: &Graph, fusion: &mut Fusion) {
    let mut joints: Vec<Joint> = Vec::new();
    region(graph, fusion, graph.body(), &mut joints);
    for joint in joints {
        fusion.join(joint);
    }
}

/// A joint that grows.
struct Growing {
    joint: Joint,
    inputs: Vec<Tensor>,
    results: Vec<Tensor>,
}

fn region(graph: &Graph, fusion: &Fusion, region_of: Region, joints: &mut Vec<Joint>) {
    let mut open: Vec<Growing> = Vec::new();
    for &op in &graph.regions[region_of].ops {
        let data = &graph.ops[op];
        for &inner in &data.regions {
            region(graph, fusion, inner, joints);
        }
        if fusion.members(graph, &op).is_empty() || data.opcode == Opcode::Parameter {
            continue;
        }
        if data.opcode.row().evaluate.is_none() {
            open.drain(..).for_each(|growing| growing.close(joints));
            continue;
        }
        let inputs = fusion.inputs(graph, op);
        let is_candidate = is_elementary(graph, fusion, op) && !inputs.is_empty();
        let mut latest = (0..open.len()).rev().filter(|_| is_candidate);
        let joined = latest
            .find_map(|at| Some((at, outer_with(graph, fusion, &open[at], op, &inputs)?)))
            .map(|(at, outer)| (open.remove(at), outer));
        // What it reads of other joints must be there, so these grow no more.
        let (read, rest): (Vec<Growing>, Vec<Growing>) =
            open.into_iter().partition(|growing: &Growing| {
                inputs.iter().any(|input| growing.results.contains(input))
            });
        open = rest;
        for growing in read {
            growing.close(joints);
        }
        let result = data.results[0];
        match joined {
            Some((mut growing, outer)) => {
                growing.joint.members.push(op);
                growing.joint.outer = outer;
                growing.inputs.extend(inputs);
                growing.results.push(result);
                open.push(growing);
            }
            None if is_candidate => {
                if open.len() == OPEN {
                    open.remove(0).close(joints);
                }
                open.push(Growing {
                    joint: Joint {
                        members: vec![op],
                        outer: graph.ty(result).shape.len(),
                    },
                    inputs,
                    results: vec![result],
                });
            }
            None => {}
        }
    }
    open.into_iter().for_each(|growing| growing.close(joints));
}

impl Growing {
    fn close(self, joints: &mut Vec<Joint>) {
        if self.joint.members.len() > 1 {
            joints.push(self.joint);
        }
    }
}

/// How many axes the loops around a joint with one more kernel count along; none if it cannot be joined, or if that is worth nothing.
fn outer_with(
    graph: &Graph,
    fusion: &Fusion,
    growing: &Growing,
    op: Op,
    inputs: &[Tensor],
) -> Option<usize> {
    let Joint { members, outer } = &growing.joint;
    if members.len() == MEMBERS
        || growing.inputs.len() + growing.results.len() + inputs.len() >= TENSORS
    {
        return None;
    }
    let shape = &graph.ty(graph.ops[op].results[0]).shape;
    let first = &graph.ty(growing.results[0]).shape;
    let common = shape.iter().zip(&first[..*outer]);
    let common = common.take_while(|(a, b)| a == b).count();
    let rows: usize = shape[..common].iter().product();
    if rows <= 1 {
        return None;
    }
    let is_shared = |input: &&Tensor| {
        let known = growing.inputs.contains(input) || growing.results.contains(input);
        known && graph.ty(**input).shape.count() >= rows
    };
    inputs.iter().find(is_shared)?;
    let mut all = members.clone();
    all.push(op);
    let depends = |(position, &later): (usize, &Op)| {
        let own = Coordinate::of(&graph.ty(graph.ops[later].results[0]).shape);
        accesses(graph, fusion, later)
            .into_iter()
            .all(|(tensor, at)| {
                let earlier = all[..position]
                    .iter()
                    .any(|&other| graph.ops[other].results[0] == tensor);
                let own_row =
                    at.is_some_and(|at| at.len() >= common && at[..common] == own[..common]);
                !earlier || own_row
            })
    };
    all.iter().enumerate().all(depends).then_some(common)
}
