//! Differentiation of the Loop IR.

mod activity;
mod at_once;
mod augment;

mod contractions;
mod deferral;
mod differentiate;
mod error;
mod explain;
mod forward;
mod given_code;
mod given_memory;
mod globals;
mod handles;
mod memory;
mod minimum_cut;
pub mod objects;
mod overwritten;
mod plan;
mod request;
mod resolved_calls;
mod reverse;
pub mod rules;
mod search;
mod shadowing;
mod shadows;
mod statics;
mod step;
mod tape;
mod unions;
mod usage;

pub use activity::{Activities, Giver};
pub use differentiate::{Split, differentiate_reverse, differentiate_split};
pub use error::{Caller, Error, Site};
pub use explain::{explain_activity, explain_plan};
pub use forward::differentiate_forward;
pub use given_code::refuse_given_code;
pub use given_memory::{MOVED, declare_moved};
pub use globals::constant_in_shadow;
pub use handles::infer_handles;
pub use request::{Activity, Caching, Choices, Request};
pub use resolved_calls::{can_resolve_calls, makes_indirect_calls};
pub use statics::infer_inactive_globals;
pub use unions::{add_shadow, put_shapes};
