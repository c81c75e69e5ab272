//! ADBench's four objectives in plain Rust, with derivatives by Ferrozyme and by hand.
//!
//! | objective | derivative | how |
//! |---|---|---|
//! | [`gmm`]: a mixture of Gaussians | gradient | reverse mode |
//! | [`ba`]: bundle adjustment | sparse Jacobian | [`ferrozyme::SparseMatrix::push_blocks`]: reverse mode for each observation |
//! | [`lstm`]: a recurrent network | gradient | reverse mode |
//! | [`hand`]: tracking of a hand | dense Jacobian | forward mode, all columns at once |
//!
//! The objectives are written as users write such code: slices and small structs, nothing done for the sake of the differentiator.

#![allow(
    missing_docs,
    reason = "fields are called as in the definition of the benchmark"
)]

pub mod ba;
pub mod check;
pub mod gmm;
pub mod hand;
pub mod instances;
pub mod lstm;
pub mod report;
pub mod text;
pub mod timing;
