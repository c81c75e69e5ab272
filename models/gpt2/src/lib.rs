//! GPT-2 in plain, safe Rust loops over slices, and its training, with the gradient made by Ferrozyme.
//!
//! ```text
//!  tokens ─▶ embedding ─▶ ┌ layer norm ─▶ attention ─▶ + ─▶ layer norm ─▶ feed-forward ─▶ + ┐ ─▶ layer norm ─▶ logits ─▶ loss
//!                         └───────────────────── × layers ─────────────────────────────────┘
//! ```
//!
//! [`loss`](model::loss) is the whole model. One attribute on it asks for [`gradient`](model::gradient): nothing else in this crate knows
//! about differentiation. [`backward`] is the same gradient written by hand, to compare with.

pub mod backward;
pub mod config;
pub mod initialise;
pub mod layers;
pub mod model;
pub mod random;
pub mod real;
pub mod tensors;

pub use config::{Batch, Config};
pub use real::Real;
pub use tensors::{Activations, Parameters};
