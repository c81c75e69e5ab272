//! Random functions in Rust and C, whose derivatives are checked through the whole product.
//!
//! [`Language::generate`] makes a program from a seed, [`workshop`] compiles and runs many together, [`verdict`] judges their output, [`mod@shrink`] shrinks a failing program, and
//! [`soak`] does all of that for many seeds; the command `source-soak` is its front end.
//!
//! Each program compares its own gradient with finite differences and with forward mode, and prints it, so that it can be compared between profiles as well. Refusals are
//! counted by code, and are not failures.

pub mod c;
pub mod program;
pub mod rust;
pub mod shrink;
pub mod soak;
pub mod tree;
pub mod verdict;
pub mod workshop;

pub use program::{Language, Program};
