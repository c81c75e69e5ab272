//! GPT-2 as a tensor graph: the model of the crate `gpt2`, from the same files, with the same losses.
//!
//! ```text
//!   Config, Batch ──▶ Model: the loss as a tensor ──▶ backward, AdamW ──▶ one program per step ──▶ State, the same as gpt2's
//! ```
//!
//! | what | where |
//! |---|---|
//! | the parameters, as tensors of the graph and as places in gpt2's one vector; the model | [`model`] |
//! | its functions, made of operations of the graph | [`functions`] |
//! | the optimiser | [`adamw`] |
//! | training and sampling with compiled graphs | [`training`], [`sampler`] |

pub mod adamw;
pub mod functions;
pub mod model;
pub mod sampler;
pub mod training;
