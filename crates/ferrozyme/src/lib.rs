//! Derivatives of Rust functions, made ahead of time, on the stable toolchain.

mod interface;
mod shadow;

// The macros name this crate from outside, and its own examples and tests are inside.
extern crate self as ferrozyme;

pub use ferrozyme_macros::{Differentiable, autodiff_forward, autodiff_reverse};
pub use interface::Differentiable;
pub use shadow::{Shadow, shadow_of};

/// What generated code uses. Changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::interface::*;
    pub use crate::shadow::shadow_of_field;
}
