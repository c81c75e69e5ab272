//! Computes values later that only wait where most memory is needed.
//!
//! ```text
//! %g = contract %dy, %x        256 MB, for the last operation
//!   … most memory                …                             %dy and %x wait instead, 52 MB
//! %all = fadd %g, %h           %g = contract %dy, %x
//!                              %all = fadd %g, %h
//! ```
//!
//! That is a change for a budget ([`fit_memory`](super::fit_memory)) that costs nothing: all who read the value come later, so it is computed once, and what it is computed from is kept instead. A typical value is the
//! gradient of a table of embeddings that gives the logits as well: its first part is known before the rest of the backward pass, and its last part at the end.

use super::State;
use super::again::candidates;
use crate::fuse::Repeats;
use crate::graph::Graph;

/// A change that lowers the peak by less than this part is not worth the time to plan it.
const WORTH: f64 = 0.01;
/// The most changes that are tried at one peak.
const TRIED: usize = 4;

/// The most values that are delayed: each one takes plans of the whole graph.
const MOST: usize = 16;

/// Has values computed as late as their readers allow where that lowers the peak. The passes have run already; after this only a budget, fusion and planning may follow. Returns how many values are delayed.
pub fn delay_values(graph: &mut Graph) -> usize {
    delay_values_for(graph, Repeats::PROCESSOR)
}

/// As [`delay_values`], for what computes elements so often.
pub fn delay_values_for(graph: &mut Graph, repeats: Repeats) -> usize {
    let mut state = State::of(graph.clone(), repeats);
    let mut delayed = 0;
    while delayed < MOST
        && let Some(next) = state.with_a_delay()
    {
        state = next;
        delayed += 1;
    }
    if delayed > 0 {
        *graph = state.graph;
    }
    delayed
}

impl State {
    /// A state whose peak is lower because one value is computed later.
    fn with_a_delay(&self) -> Option<State> {
        let least = ((self.most() as f64 * WORTH) as usize).max(1);
        let &peak = self.peaks(0).first()?;
        // What is computed at the peak waits right behind it.
        let (raw, times) = (self.raw(), [peak, peak + 1]);
        let waiting = times.map(|time| candidates(&self.graph, &self.fusion, &raw, time, 0));
        let mut all = waiting.concat();
        all.retain(|candidate| candidate.is_only_later && candidate.bytes >= least);
        all.sort_by_key(|candidate| std::cmp::Reverse(candidate.bytes));
        all.iter().take(TRIED).find_map(|candidate| {
            let next = self.with(&[candidate])?;
            let is_lower = next.most() + least <= self.most() && next.arena < self.arena;
            is_lower.then_some(next)
        })
    }
}
