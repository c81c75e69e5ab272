//! Differentiation of the Loop IR.
