//! Trains tensor graphs: a loop with progress, log, curve and checkpoints, and files of parameters.
//!
//! ```
//! use ferrozyme_cpu::compile;
//! use ferrozyme_graph::Graph;
//! use ferrozyme_nn::{Adam, Layer, Linear, Module, loss::mean_squared_error};
//! use ferrozyme_train::{Trainer, load, save, training_loop};
//!
//! let mut g = Graph::new();
//! let net = Linear::new(&mut g, "net", 1, 1);
//! let adam = Adam::new(&mut g, 0.05, &net.parameters());
//! let steps = training_loop(&mut g, |g, _step| {
//!     let x = g.feed("x", [4, 1]);
//!     let target = g.feed("target", [4, 1]);
//!     let y = net.forward(g, x);
//!     let loss = mean_squared_error(g, y, target);
//!     let gradients = g.backward(loss);
//!     adam.step(g, &gradients);
//!     loss
//! });
//!
//! let folder = std::env::temp_dir().join("ferrozyme-train-example");
//! # let _ = std::fs::remove_dir_all(&folder);
//! let mut trainer = Trainer::new(compile(&g)?, steps).in_folder(&folder)?;
//! trainer.feeder("x", |step| (0..4).map(|row| (step % 8) as f32 + row as f32).collect())?;
//! trainer.feeder("target", |step| (0..4).map(|row| 2.0 * ((step % 8) as f32 + row as f32)).collect())?;
//! let loss = trainer.train(200)?;
//! assert!(loss < 5.0);
//! save(&folder.join("net.safetensors"), &net, trainer.program())?;
//! load(&folder.join("net.safetensors"), &net, trainer.program_mut())?;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Assumes* that a feeder gives the same for the same step. *Guarantees* that a run which is killed at any moment goes on from its last checkpoint with the same losses, bit for bit, as one that was not, and that a run which ends with an error has saved all steps before it.

mod checkpoint;
mod curve;
mod file;
mod log;
mod steps;
mod trainer;
mod weights;

pub use file::{FileError, Problem};
pub use steps::{TrainingLoop, training_loop};
pub use trainer::{Error, Trainer};
pub use weights::{load, save};

/// The guide's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tensor-graphs.md")]
struct Guide;
