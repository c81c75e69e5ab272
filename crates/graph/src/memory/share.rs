//! Tensors that share a buffer although both are needed by one operation.
//!
//! An update is in place if the value is computed where the parameter is:
//!
//! ```text
//! %w = parameter @w                             %w: @w
//! %v = fsub %w, %change                  ─▶     %v: @w      the kernel overwrites element by element what it reads
//! update @w %v                                  nothing is copied
//! ```
//!
//! Other results of kernels take the place of an input of the same size that nobody needs afterwards.

use super::lifetimes::{Lifetimes, Update};
use crate::graph::{Graph, Tensor};
use crate::lower::Fusion;

/// Has values that parameters are updated with computed in the memory of these parameters, where that overwrites nothing that is needed.
pub(super) fn update_in_place(graph: &Graph, fusion: &Fusion, lifetimes: &mut Lifetimes) {
    for update in lifetimes.updates.clone() {
        if let Some(buffer) = overwriting(graph, fusion, lifetimes, update) {
            lifetimes.buffers[buffer].parameter = Some(update.parameter);
        }
    }
}

/// The buffer of the value of an update that can be the parameter's memory.
fn overwriting(
    graph: &Graph,
    fusion: &Fusion,
    lifetimes: &Lifetimes,
    update: Update,
) -> Option<usize> {
    let op = graph.def_op(update.value)?;
    let index = lifetimes.buffer_of[update.value]?;
    let value = &lifetimes.buffers[index];
    let is_kernel = graph.ops[op].opcode.row().evaluate.is_some();
    if !is_kernel
        || graph.ops[op].region != update.region
        || value.parameter.is_some()
        || value.birth >= update.at
    {
        return None;
    }
    // Nothing else updates the parameter from when the value is computed to its last use.
    let disturbs = |other: &Update| {
        other.parameter == update.parameter
            && other.at != update.at
            && other.at >= value.birth
            && other.at < value.death
    };
    if lifetimes.updates.iter().any(disturbs) {
        return None;
    }
    let &(kernel, _) = lifetimes
        .kernels
        .iter()
        .rfind(|&&(kernel, at)| at == value.birth && !fusion.members(graph, &kernel).is_empty())?;
    let is_unharmed = |other: &super::lifetimes::Buffer| {
        other.birth > update.at
            || other.death < value.birth
            || (other.birth < value.birth
                && other.death == value.birth
                && other
                    .tensors
                    .iter()
                    .all(|&tensor| fusion.may_share(graph, kernel, tensor, update.value)))
    };
    let mut occupants = lifetimes
        .buffers
        .iter()
        .filter(|other| other.parameter == Some(update.parameter));
    occupants.all(is_unharmed).then_some(index)
}

/// Has results of kernels take the places of inputs that nobody needs afterwards. Buffers that have become parts of others have no tensors any more.
pub(super) fn compute_in_place(graph: &Graph, fusion: &Fusion, lifetimes: &mut Lifetimes) {
    for (op, now) in lifetimes.kernels.clone() {
        let mut taken: Vec<usize> = Vec::new();
        for &member in fusion.members(graph, &op) {
            let result = graph.ops[member].results[0];
            let Some(index) = lifetimes.buffer_of[result] else {
                continue;
            };
            if lifetimes.buffers[index].parameter.is_some() {
                continue;
            }
            let dies_here = |input: &Tensor| {
                let buffer = lifetimes.buffer_of[*input]?;
                let old = &lifetimes.buffers[buffer];
                let is_free = old.parameter.is_none()
                    && old.birth < now
                    && old.death == now
                    && old.size == lifetimes.buffers[index].size
                    && !taken.contains(&buffer);
                (is_free && fusion.may_share(graph, op, *input, result)).then_some(buffer)
            };
            let Some(old) = fusion.inputs(graph, op).iter().find_map(dies_here) else {
                continue;
            };
            let new = &mut lifetimes.buffers[index];
            let (tensors, death) = (std::mem::take(&mut new.tensors), new.death);
            for &tensor in &tensors {
                lifetimes.buffer_of[tensor] = Some(old);
            }
            lifetimes.buffers[old].tensors.extend(tensors);
            lifetimes.buffers[old].death = death;
            taken.push(old);
        }
    }
    // Later results may have joined a buffer that itself had joined another.
    lifetimes
        .buffers
        .retain(|buffer| !buffer.tensors.is_empty());
}
