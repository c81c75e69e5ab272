//! Passes and analyses over the Loop IR. One pass, one file, one function.

mod behaviour;
mod carried;
mod cse;
mod dce;
mod detach;
mod substitution;

pub use behaviour::{Behaviour, Behaviours, behaviour_of};
pub use carried::{
    add_carried, add_yielded, first_carried, first_initial, first_yielded, remove_results, yielded,
};
pub use cse::{is_commutative, merge_common_subexpressions};
pub use dce::remove_dead_code;
pub use detach::with_function;
pub use substitution::Substitution;
