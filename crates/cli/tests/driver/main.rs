//! `cargo ferrozyme` as users call it: on packages in temporary folders, with the real cargo, rustc and linker.
//!
//! All packages share one target directory, so that what they depend on is compiled once. Tests of one target directory wait for
//! each other in cargo's lock; what takes time is the compiler, not the tests.

#![cfg(target_os = "linux")]

mod accelerate;
mod attempts;
mod config;
mod explain;
mod install;
mod kinds;
mod messages;
mod nests;
mod ordinary;
mod project;
mod threads;
mod unoptimised;
mod workspace;
