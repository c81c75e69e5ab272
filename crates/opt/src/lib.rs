//! Passes and analyses over the Loop IR. One pass, one file, one function.

mod alike;
mod behaviour;
mod carried;
mod check_facts;
mod conditions;
mod copy_operations;
mod count_loops;
mod cse;
mod dce;
mod dead_stores;
mod distribution;

mod distribute_tangents;
mod forward_stores;
mod hand_out;
mod hoist;
mod hoist_checks;
mod induction;
mod infer_effects;
mod infer_facts;
mod inline;
mod join_loops;
mod join_words;
mod keep_order;
mod lower_contractions;
mod memory_order;
mod merge_partial_sums;
mod move_words;
mod multiversion;
mod parallelise_loops;
mod pipeline;
mod place_words;
mod private_memory;
mod promote_stack;
mod raise_contractions;
mod ranges;
mod recurrence;
mod reload_carried;
mod reorder_sums;
mod reroll_loops;
mod select_branches;
mod separate_pointers;
mod simplify;
mod simplify_next;
mod speculation;
mod substitution;
mod sums;
#[cfg(test)]
mod testing;
mod unguard_loops;
mod uses;
mod whole_parts;
mod with_function;
mod word_moves;
mod written_first;

pub use behaviour::{Behaviour, Behaviours, Handling, behaviour_of, handling, is_plain_loop};
pub use carried::{
    Carried, add_carried, add_yielded, carried_at, carried_by, first_carried, first_initial,
    first_yielded, flows, remove_results, sources_of_result, yielded,
};
pub use check_facts::check_facts;
pub use conditions::{Comparison, Truth, Truths, comparison, split_conjunction};
pub use copy_operations::copy_operation;
pub use count_loops::count_loops;
pub use cse::{is_commutative, merge_common_subexpressions};
pub use dce::remove_dead_code;
pub use dead_stores::remove_dead_stores;

pub use distribute_tangents::distribute_tangents;
pub use forward_stores::forward_stores;
pub use hand_out::hand_out_values;
pub use hoist::{hoist_invariants, surely_runs};
pub use hoist_checks::hoist_checks;
pub use induction::rewrite_induction;
pub use infer_effects::infer_effects;
pub use infer_facts::infer_facts;
pub use inline::{InlinePolicy, Inlining, inline_calls};
pub use join_loops::join_loops;
pub use join_words::join_words;
pub use keep_order::keep_order;
pub use lower_contractions::{KERNELS, expand_contractions, lower_contractions};
pub use merge_partial_sums::merge_partial_sums;
pub use move_words::move_words;
pub use multiversion::multiversion;
pub use parallelise_loops::{
    Choice, Obstacle as ParallelObstacle, Outcome, ParallelOptions, Strategy, parallelise_loops,
    parallelise_loops_with,
};
pub use pipeline::{OptimiseOptions, PASSES, Pass, REORDERING, optimise, optimise_with};
pub use place_words::place_words;
pub use promote_stack::promote_stack;
pub use raise_contractions::{Obstacle, explain_contractions, raise_contractions};
pub use recurrence::{build_iteration_number, build_trip_count};
pub use reload_carried::reload_carried;
pub use reorder_sums::reorder_sums;
pub use reroll_loops::reroll_loops;
pub use select_branches::select_branches;
pub use separate_pointers::separate_pointers;
pub use simplify::simplify;
pub use speculation::{Speculation, speculation};
pub use substitution::Substitution;
pub use sums::{Addition, carried_sum};
pub use unguard_loops::unguard_loops;
pub use uses::Uses;
pub use with_function::with_function;
pub use word_moves::{reached_by_moves, reversed_moves, word_moves};

pub mod alias;
mod bounds;
pub mod clobbers;
pub mod cost;
pub mod hull;
pub mod indices;
pub mod inequalities;
pub mod interval;
pub mod intervals;
pub mod pointers;
pub mod symbolic;
