//! Differentiation of the Loop IR.

pub mod rules;
