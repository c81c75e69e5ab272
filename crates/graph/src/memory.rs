//! Memory: where each tensor is while a graph runs.
//!
//! A buffer lives from the operation that writes it to the last one that reads it, in the order in which operations run; what a loop reads from outside lives until the loop ends. Buffers are placed in one arena by decreasing
//! size, each in the smallest gap that it fits into (best fit). The value of a parameter needs no buffer if it is not updated as long as it is used, nor does the value that it is updated with if that can overwrite it. A kernel's result
//! takes the place of an input that nobody needs afterwards, if each element is read before it is overwritten (`share.rs`).
//!
//! [`delay_values`] changes the order of operations so that less is needed at once, [`fit_memory`] changes a graph so that its plan keeps a budget.
//!
//! [`check_memory`] checks a plan without lifetimes: it follows the run and remembers who wrote each byte.

mod budget;
mod check;
mod lifetimes;
mod share;

pub use budget::{
    OverBudget, Recomputation, delay_values, delay_values_for, fit_memory, fit_memory_for,
};
pub use check::check_memory;

use crate::graph::{Graph, Op, Parameter, Tensor};
use crate::lower::Fusion;
use crate::print::Names;
use cranelift_entity::SecondaryMap;
use lifetimes::{Buffer, find_lifetimes};
use rustc_hash::FxHashMap;
use share::{compute_in_place, update_in_place};
use std::fmt;
use std::fmt::Write;
use std::ops::Range;

/// Alignment of buffers: a line of the cache.
const ALIGNMENT: usize = 64;

/// Where a tensor is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// At an offset in the arena.
    Arena(usize),
    /// In the memory of a parameter.
    Parameter(Parameter),
}

/// Where all tensors are.
#[derive(Clone, Debug, Default)]
pub struct MemoryPlan {
    /// Where each tensor is; none if it is inlined.
    pub places: SecondaryMap<Tensor, Option<Place>>,
    /// Where arguments of a loop are kept that become other arguments of it.
    pub temporaries: SecondaryMap<Tensor, Option<Place>>,
    /// Which bytes of the arena hold nothing that is needed any more after an operation.
    pub dead: SecondaryMap<Op, Vec<Range<usize>>>,
    /// The size of the arena.
    pub arena: usize,
    /// What one buffer per tensor takes, without fusion.
    pub naive: usize,
    /// What one buffer per tensor takes after fusion.
    pub fused: usize,
    /// What that takes if tensors that are parameters are in their memory.
    pub separate: usize,
    /// What that takes if kernels compute in place.
    pub in_place: usize,
}

/// As in `arena: 1024 bytes, 12.5 % of the 8192 that one buffer per tensor takes (fusion leaves 50.0 %, …)`.
impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |bytes: usize| 100.0 * bytes as f64 / self.naive.max(1) as f64;
        write!(
            f,
            "arena: {} bytes, {:.1} % of the {} that one buffer per tensor takes (fusion leaves {:.1} %, memory of parameters {:.1} %, kernels in place {:.1} %, and the rest is packed)",
            self.arena,
            percent(self.arena),
            self.naive,
            percent(self.fused),
            percent(self.separate),
            percent(self.in_place)
        )
    }
}

/// The size of the arena, and where each tensor is.
pub fn print_plan(graph: &Graph, plan: &MemoryPlan) -> String {
    let names = Names::of(graph);
    let mut out = format!("{plan}\n");
    for (tensor, data) in &graph.tensors {
        let place = match plan.places[tensor] {
            Some(Place::Arena(offset)) => format!("{offset}..{}", offset + data.ty.bytes()),
            Some(Place::Parameter(parameter)) => format!("@{}", graph.parameters[parameter].name),
            None => "inlined".to_owned(),
        };
        writeln!(out, "{}: {place}", names.get(tensor)).expect("writing to a string does not fail");
    }
    out
}

/// Places all tensors that are not inlined.
pub fn plan_memory(graph: &Graph, fusion: &Fusion) -> MemoryPlan {
    let mut plan = MemoryPlan::default();
    let total = |buffers: &[Buffer]| buffers.iter().map(|buffer| buffer.size).sum();
    plan.naive = total(&find_lifetimes(graph, &Fusion::default()).buffers);
    let mut lifetimes = find_lifetimes(graph, fusion);
    plan.fused = total(&lifetimes.buffers);
    update_in_place(graph, fusion, &mut lifetimes);
    let in_arena = lifetimes.buffers.iter();
    let in_arena = in_arena.filter(|buffer| buffer.parameter.is_none());
    plan.separate = in_arena.map(|buffer| buffer.size).sum();
    compute_in_place(graph, fusion, &mut lifetimes);
    let mut buffers = lifetimes.buffers;
    buffers.retain(|buffer| match buffer.parameter {
        Some(parameter) => {
            buffer.assign(&mut plan, Place::Parameter(parameter));
            false
        }
        None => true,
    });
    plan.in_place = total(&buffers);
    buffers.sort_by_key(|buffer| (std::cmp::Reverse(buffer.size), buffer.birth));
    let mut placed: Vec<(usize, &Buffer)> = Vec::new();
    let mut op_at: FxHashMap<usize, Op> = FxHashMap::default();
    for (op, &begin) in lifetimes.begins.iter() {
        // An operation with regions goes on after its begin.
        if begin > 0 && graph.ops[op].regions.is_empty() {
            op_at.insert(begin, op);
        }
    }
    for buffer in &buffers {
        let offset = best_fit(&placed, buffer);
        if let Some(&op) = op_at.get(&buffer.death) {
            plan.dead[op].push(offset..offset + buffer.size);
        }
        buffer.assign(&mut plan, Place::Arena(offset));
        plan.arena = plan.arena.max(offset + buffer.size);
        let at = placed.partition_point(|&(other, _)| other <= offset);
        placed.insert(at, (offset, buffer));
    }
    plan
}

/// The offset of the smallest gap between buffers that live at the same time, or behind them all. `placed` is sorted by offset.
fn best_fit(placed: &[(usize, &Buffer)], buffer: &Buffer) -> usize {
    let mut end = 0;
    let mut best: Option<(usize, usize)> = None;
    for &(offset, other) in placed {
        if !other.lives_with(buffer) {
            continue;
        }
        if offset >= end + buffer.size {
            let gap = offset - end;
            if best.is_none_or(|(smallest, _)| gap < smallest) {
                best = Some((gap, end));
            }
        }
        end = end.max((offset + other.size).next_multiple_of(ALIGNMENT));
    }
    best.map_or(end, |(_, offset)| offset)
}
