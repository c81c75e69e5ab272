//! What the tests of contractions share: values and gradients of a nest are compared ([`nest`]), and what became of its sums of products ([`expectations`]).

pub mod expectations;
pub mod nest;
