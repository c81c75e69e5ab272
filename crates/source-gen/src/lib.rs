//! Random functions in Rust and C, whose derivatives are checked through the whole product.
//!
//! [`Language::generate`] makes a program from a seed, [`workshop`] compiles and runs many at once, [`verdict`] judges what they printed, [`mod@shrink`] makes a failing one small, and
//! [`soak`] does all of that for as many seeds as one likes; the command `source-soak` is its front.
//!
//! Each program compares its own gradient with finite differences and with forward mode, and prints it, so that it can be compared between profiles as well. What the compiler refuses is
//! counted by the kind of refusal, and is no failure.

pub mod c;
pub mod program;
pub mod rust;
pub mod shrink;
pub mod soak;
pub mod tree;
pub mod verdict;
pub mod workshop;

pub use program::{Language, Program};
