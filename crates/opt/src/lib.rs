//! Passes and analyses over the Loop IR. One pass, one file, one function.

mod behaviour;
mod carried;
mod copy_operations;
mod count_loops;
mod cse;
mod dce;
mod dead_stores;
mod detach;
mod forward_stores;
mod hoist;
mod hoist_checks;
mod induction;
mod infer_effects;
mod infer_facts;
mod inline;
mod keep_order;
mod memory_order;
mod merge_partial_sums;
mod normalise_loops;
mod pipeline;
mod private_memory;
mod promote_stack;
mod regular_growth;
mod reorder_sums;
mod reroll_loops;
mod restore_branches;
mod select_branches;
mod simplify;
mod speculation;
mod substitution;
#[cfg(test)]
mod testing;
mod trip_count;
mod written_first;

pub use behaviour::{Behaviour, Behaviours, behaviour_of};
pub use carried::{
    add_carried, add_yielded, first_carried, first_initial, first_yielded, remove_results, yielded,
};
pub use count_loops::count_loops;
pub use cse::{is_commutative, merge_common_subexpressions};
pub use dce::remove_dead_code;
pub use dead_stores::remove_dead_stores;
pub use detach::with_function;
pub use forward_stores::forward_stores;
pub use hoist::{hoist_invariants, surely_runs};
pub use hoist_checks::hoist_checks;
pub use induction::rewrite_induction;
pub use infer_effects::infer_effects;
pub use infer_facts::infer_facts;
pub use inline::{InlinePolicy, inline_calls};
pub use keep_order::keep_order;
pub use merge_partial_sums::merge_partial_sums;
pub use normalise_loops::normalise_loops;
pub use pipeline::{OptimiseOptions, PASSES, Pass, optimise, optimise_with};
pub use promote_stack::promote_stack;
pub use reorder_sums::reorder_sums;
pub use reroll_loops::reroll_loops;
pub use restore_branches::restore_branches;
pub use select_branches::select_branches;
pub use simplify::simplify;
pub use speculation::{Speculation, speculation};
pub use substitution::Substitution;
pub use trip_count::build_trip_count;

pub mod alias;
mod bounds;
pub mod clobbers;
pub mod facts;
pub mod hull;
pub mod indices;
pub mod interval;
pub mod pointers;
pub mod symbolic;
