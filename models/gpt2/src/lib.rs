//! GPT-2 in plain, safe Rust loops over slices, and its training, with the gradient made by Ferrozyme.
//!
//! ```text
//!  tokens ─▶ embedding ─▶ ┌ layer norm ─▶ attention ─▶ + ─▶ layer norm ─▶ feed-forward ─▶ + ┐ ─▶ layer norm ─▶ logits ─▶ loss
//!                         └───────────────────── × layers ─────────────────────────────────┘
//! ```
//!
//! [`loss`](model::loss) is the whole model. One attribute on it asks for [`gradient`](model::gradient): nothing else in this crate knows
//! about differentiation. [`backward`] is the same gradient written by hand, to compare with.
//!
//! | what | where |
//! |---|---|
//! | the model | [`config`], [`tensors`], [`layers`], [`model`], [`backward`], [`real`], [`check`] |
//! | its training | [`engine`] (threads), [`adamw`], [`initialise`], [`train`], [`sample`], [`random`] |
//! | text and files | [`encoding`], [`data`], [`files`], [`fetch`], [`log`], [`curve`], [`chart`] |

pub mod adamw;
pub mod backward;
pub mod chart;
pub mod check;
pub mod config;
pub mod curve;
pub mod data;
pub mod encoding;
pub mod engine;
pub mod fetch;
pub mod files;
pub mod initialise;
pub mod layers;
pub mod log;
pub mod model;
pub mod random;
pub mod real;
pub mod sample;
pub mod tensors;
#[cfg(feature = "automatic")]
pub mod train;

pub use config::{Batch, Config};
pub use real::Real;
pub use tensors::{Activations, Parameters};
