//! Fits a graph into a budget of memory: values are computed again where they are needed, instead of being kept until then.
//!
//! ```text
//! %a = exp %x          %a = exp %x
//! %b = … %a            %b = … %a
//!   … most memory        … most memory: %a is not kept
//! %c = fmul %b, %a     %a' = exp %x
//!                      %c = fmul %b, %a'
//! ```
//!
//! Where most memory is needed, the values that only wait there are compared by what it costs to compute them again per byte that this frees. The inputs that a value needs then are kept longer or computed again
//! themselves. Each change is planned and stays only if it brings the plan nearer to the budget, so the plan's own packing decides. What is exchanged with the host, parameters that have changed, results of loops and of Rust
//! functions are not computed again.

mod again;
mod delay;

pub use delay::{delay_values, delay_values_for};

use super::lifetimes::{Lifetimes, find_lifetimes};
use super::share::{compute_in_place, update_in_place};
use super::{MemoryPlan, plan_memory};
use crate::fuse::{Repeats, fuse_for};
use crate::graph::{Graph, Op, Region, Tensor};
use crate::lower::Fusion;
use crate::opcode::Opcode;
use crate::opt::prune;
use crate::payload::Payload;
use again::{Candidate, DEEPEST, candidates};
use ferrozyme_ir::MathCost;
use std::fmt;

/// What it cost to fit a graph into its budget.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Recomputation {
    /// The budget in bytes.
    pub budget: usize,
    /// How many values are computed again.
    pub values: usize,
    /// The arithmetic operations of that, as a part of all that there were before.
    pub share: f64,
}

/// As in `budget 4096: 3 values are computed again, by 1.5 % more arithmetic`.
impl fmt::Display for Recomputation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = 100.0 * self.share;
        write!(
            f,
            "budget {}: {} values are computed again, by {percent:.1} % more arithmetic",
            self.budget, self.values
        )
    }
}

/// A budget that cannot be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverBudget {
    /// The budget in bytes.
    pub budget: usize,
    /// The least that the graph can be fitted into.
    pub least: usize,
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the graph does not fit into {} bytes: the least that it can be planned for is {} bytes",
            self.budget, self.least
        )
    }
}

impl std::error::Error for OverBudget {}

/// The most changes that are tried at one peak, and the most peaks that are looked at.
const TRIED: usize = 12;
const PEAKS: usize = 4;
/// The most changes that are made at once.
const TOGETHER: usize = 16;

/// Changes a graph so that its arena is no larger than a budget in bytes. The passes have run already; after this only fusion and planning may follow. If the budget cannot be met, the graph stays as it is.
pub fn fit_memory(graph: &mut Graph, budget: usize) -> Result<Recomputation, OverBudget> {
    fit_memory_for(graph, budget, Repeats::PROCESSOR)
}

/// As [`fit_memory`], for what computes elements so often.
pub fn fit_memory_for(
    graph: &mut Graph,
    budget: usize,
    repeats: Repeats,
) -> Result<Recomputation, OverBudget> {
    let before = work_of_region(graph, graph.body());
    let first = State::of(graph.clone(), repeats);
    // First no more than is needed. Where that leads nowhere, as much as possible from the start, which is the same for all budgets.
    let mut least = first.arena;
    for target in [budget, 0] {
        let mut state = first.clone();
        let mut aim = target;
        loop {
            if target == 0 {
                least = least.min(state.arena);
            }
            if state.arena <= budget {
                let after = work_of_region(&state.graph, state.graph.body());
                *graph = state.graph;
                return Ok(Recomputation {
                    budget,
                    values: state.values,
                    share: (after - before).max(0.0) / before.max(1.0),
                });
            }
            // What fits side by side may not fit into one arena: the packing leaves gaps.
            aim = aim.min(
                state
                    .most()
                    .saturating_sub(state.arena - budget.min(state.arena)),
            );
            aim = aim.min(target);
            match state.nearer(aim) {
                Some(next) => state = next,
                None => break,
            }
        }
    }
    Err(OverBudget { budget, least })
}

/// A graph with its plan.
#[derive(Clone)]
struct State {
    graph: Graph,
    repeats: Repeats,
    fusion: Fusion,
    arena: usize,
    /// The bytes that are needed at each time.
    live: Vec<usize>,
    /// How many values are computed again.
    values: usize,
}

impl State {
    fn of(graph: Graph, repeats: Repeats) -> State {
        let (fusion, _) = fuse_for(&graph, repeats);
        let MemoryPlan { arena, .. } = plan_memory(&graph, &fusion);
        let mut lifetimes = find_lifetimes(&graph, &fusion);
        update_in_place(&graph, &fusion, &mut lifetimes);
        compute_in_place(&graph, &fusion, &mut lifetimes);
        let live = live(&lifetimes);
        State {
            graph,
            repeats,
            fusion,
            arena,
            live,
            values: 0,
        }
    }

    /// The most bytes that are needed at one time.
    fn most(&self) -> usize {
        self.live.iter().copied().max().unwrap_or(0)
    }

    /// How far all times are above a number of bytes, those first that need most.
    fn excess(&self, aim: usize) -> (usize, f64) {
        let above = self.live.iter().map(|&live| live.saturating_sub(aim));
        let squares = above.map(|above| (above as f64).powi(2));
        (self.most().max(aim), squares.sum())
    }

    fn is_nearer(&self, than: &State, aim: usize) -> bool {
        let (own, other) = (self.excess(aim), than.excess(aim));
        match own.0.cmp(&other.0) {
            std::cmp::Ordering::Equal => {
                own.1 < other.1 * (1.0 - 1e-9) || (own.1 <= other.1 && self.arena < than.arena)
            }
            order => order.is_lt(),
        }
    }

    /// The times that need most, one for each peak.
    fn peaks(&self, aim: usize) -> Vec<usize> {
        let mut times: Vec<usize> = (0..self.live.len())
            .filter(|&time| {
                let here = self.live[time];
                let before = time.checked_sub(1).map_or(0, |time| self.live[time]);
                let after = self.live.get(time + 1).copied().unwrap_or(0);
                here > aim && here > before && here >= after
            })
            .collect();
        times.sort_by_key(|&time| (std::cmp::Reverse(self.live[time]), time));
        times.truncate(PEAKS);
        times
    }

    /// A state that needs less, if one is found.
    fn nearer(&self, aim: usize) -> Option<State> {
        let raw = self.raw();
        for peak in self.peaks(aim) {
            let all = candidates(&self.graph, &self.fusion, &raw, peak, DEEPEST);
            let missing = self.live[peak] - aim;
            let together = independent(&all, missing);
            if together.len() > 1
                && let Some(next) = self.with(&together)
                && next.is_nearer(self, aim)
            {
                return Some(next);
            }
            for candidate in all.iter().take(TRIED) {
                let next = self.with(&[candidate]);
                if let Some(next) = next.filter(|next| next.is_nearer(self, aim)) {
                    return Some(next);
                }
            }
        }
        None
    }

    /// With these values computed again.
    fn with(&self, chosen: &[&Candidate]) -> Option<State> {
        let mut graph = self.graph.clone();
        let mut values = self.values;
        for candidate in chosen {
            values += again::compute_again(&mut graph, &self.fusion, candidate);
        }
        prune(&mut graph);
        Some(State {
            values,
            ..State::of(graph, self.repeats)
        })
    }

    /// The lifetimes of tensors before kernels compute in place, so that each has its own.
    fn raw(&self) -> Lifetimes {
        let mut lifetimes = find_lifetimes(&self.graph, &self.fusion);
        update_in_place(&self.graph, &self.fusion, &mut lifetimes);
        lifetimes
    }
}

/// The first candidates of which none is computed from another one, until they free so many bytes.
fn independent(all: &[Candidate], missing: usize) -> Vec<&Candidate> {
    let mut chosen: Vec<&Candidate> = Vec::new();
    let mut freed = 0;
    for candidate in all {
        if freed >= missing || chosen.len() == TOGETHER {
            break;
        }
        if !chosen
            .iter()
            .any(|other| other.touches(candidate) || candidate.touches(other))
        {
            freed += candidate.bytes;
            chosen.push(candidate);
        }
    }
    chosen
}

/// The bytes that are needed at each time.
fn live(lifetimes: &Lifetimes) -> Vec<usize> {
    let mut changes = vec![0i64; lifetimes.end + 2];
    for buffer in &lifetimes.buffers {
        if buffer.parameter.is_none() {
            changes[buffer.birth] += buffer.size as i64;
            changes[buffer.death + 1] -= buffer.size as i64;
        }
    }
    let mut sum = 0;
    let running = changes.iter().map(|change| {
        sum += change;
        sum.max(0) as usize
    });
    running.collect()
}

/// The arithmetic operations of a region, those of loops as often as they run, if that is known.
fn work_of_region(graph: &Graph, region: Region) -> f64 {
    let ops = graph.regions[region].ops.iter();
    ops.map(|&op| {
        let data = &graph.ops[op];
        let inner: f64 = data
            .regions
            .iter()
            .map(|&inner| work_of_region(graph, inner))
            .sum();
        let times = match data.opcode {
            Opcode::For => graph.splat_of(data.operands[0]).unwrap_or(1.0).max(0.0),
            _ => 1.0,
        };
        work(graph, op) + inner * times
    })
    .sum()
}

/// The arithmetic operations of one operation, about.
fn work(graph: &Graph, op: Op) -> f64 {
    let data = &graph.ops[op];
    let &[result] = &data.results[..] else {
        return 0.0;
    };
    let count = |tensor: Tensor| graph.ty(tensor).shape.count() as f64;
    match (data.opcode, &data.payload) {
        (Opcode::Contract, Payload::Contract(indices)) => {
            // Each index once: those of the left operand, and those that it does not have.
            let right = &graph.ty(data.operands[1]).shape;
            let new = indices.right.iter().zip(right.iter());
            let new = new.filter(|(index, _)| !indices.left.contains(index));
            2.0 * count(data.operands[0]) * new.map(|(_, &size)| size as f64).product::<f64>()
        }
        (Opcode::Reduce, _) => count(data.operands[0]),
        (Opcode::ScatterAdd, _) => count(data.operands[2]) + count(result),
        (Opcode::Elementwise, Payload::Function(function)) => {
            let slow = match function.opcode().math().map(|row| row.cost) {
                Some(MathCost::Slow | MathCost::Call) => 10.0,
                _ => 1.0,
            };
            slow * count(result)
        }
        (Opcode::Random, _) => 10.0 * count(result),
        _ if data.opcode.row().evaluate.is_some() => 0.5 * count(result),
        _ => 0.0,
    }
}
