//! Passes over graphs. One pass, one file, one function, which returns how much it changed.
//!
//! *Guarantee* of every pass: the graph verifies, and its runs give what they gave before, except that the sign of a zero and the order of sums may differ, and that
//! a failure (an index out of range) goes with an operation whose result nobody uses. Those of [`ON_DEMAND`] say themselves what they change.

mod cse;
mod fold_constants;
mod lower_precision;
mod prune;
mod rewrite;
mod schedule;
mod simplify;
mod split_sums;

pub use cse::cse;
pub use fold_constants::fold_constants;
pub use lower_precision::{lower_precision, lower_precision_to};
pub use prune::prune;
pub use schedule::schedule;
pub use simplify::simplify;
pub use split_sums::split_sums;

use crate::fuse::Repeats;
use crate::graph::Graph;
use schedule::schedule_for;

/// A pass: returns how many operations it changed or removed.
pub type Pass = fn(&mut Graph) -> usize;

/// All passes by name, in the order in which [`optimise`] runs them. The last one orders what the others leave.
pub const PASSES: &[(&str, Pass)] = &[
    ("fold_constants", fold_constants),
    ("simplify", simplify),
    ("cse", cse),
    ("prune", prune),
    ("schedule", schedule),
];

/// Passes that change results, and run only where they are asked for.
pub const ON_DEMAND: &[(&str, Pass)] = &[("lower_precision", lower_precision)];

/// Passes that [`optimise_for`] runs where they pay.
pub const FOR_DEVICES: &[(&str, Pass)] = &[("split_sums", split_sums)];

/// The pass of this name.
pub fn pass_named(name: &str) -> Option<Pass> {
    let mut passes = PASSES.iter().chain(ON_DEMAND).chain(FOR_DEVICES);
    passes
        .find(|(other, _)| *other == name)
        .map(|&(_, pass)| pass)
}

/// Runs all passes until nothing changes, and orders what is left. Returns how much each changed.
pub fn optimise(graph: &mut Graph) -> Vec<(&'static str, usize)> {
    optimise_for(graph, Repeats::PROCESSOR)
}

/// As [`optimise`], for what computes elements so often.
pub fn optimise_for(graph: &mut Graph, repeats: Repeats) -> Vec<(&'static str, usize)> {
    // Each round makes the graph smaller or moves an operation towards its sources, so this ends; the limit is for what is not worth it.
    const ROUNDS: usize = 10;
    let mut statistics: Vec<(&str, usize)> = PASSES.iter().map(|&(name, _)| (name, 0)).collect();
    for _ in 0..ROUNDS {
        let mut changed = 0;
        let simplifying = &PASSES[..PASSES.len() - 1];
        for (&(_, pass), (_, count)) in simplifying.iter().zip(&mut statistics) {
            let own = pass(graph);
            *count += own;
            changed += own;
        }
        if changed == 0 {
            break;
        }
    }
    if repeats.splits_sums {
        statistics.insert(PASSES.len() - 1, ("split_sums", split_sums(graph)));
    }
    if let Some((_, count)) = statistics.last_mut() {
        *count = schedule_for(graph, repeats);
    }
    statistics
}
