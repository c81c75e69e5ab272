//! The harness of the program tests: the properties that every derivative must have.
//!
//! Each test hands over a primal, its reverse-mode and forward-mode derivatives, and a closed form where there is one. The harness checks
//! - that the closed form agrees with finite differences (otherwise the *test* is at fault, and the message says so),
//! - that the derivative returns the primal's value,
//! - that the gradient agrees with finite differences and with the closed form,
//! - that it is scaled by the seed and *added* to the old contents of the shadow,
//! - that the seed of an output in memory is consumed, and the output is that of the primal,
//! - that forward mode agrees with finite differences along a direction, and
//! - the dot-product identity ⟨J v, u⟩ = ⟨v, Jᵀ u⟩ between the two modes.
//!
//! Failures name the program, the check, the entry and both numbers.

mod compare;
mod difference;
mod field;
mod scalar;
mod stop;
mod vector;

pub use compare::{assert_all_close, assert_close, random_vector, within};
pub use difference::{directional_derivative, gradient_by_differences};
pub use field::Field;
pub use scalar::Scalar;
pub use stop::assert_stops;
pub use vector::Mapping;

/// How far a derivative may be from finite differences of fourth order, relative to its size.
pub const DIFFERENCES: f64 = 1e-7;

/// How far a derivative may be from a closed form or from the other mode, relative to its size.
pub const EXACT: f64 = 1e-10;

/// How far a derivative of a program in `f32` may be from a closed form that is evaluated in `f64`.
pub const SINGLE: f64 = 2e-4;
