//! Derivatives of Rust functions, made ahead of time, on the stable toolchain.

mod active;
mod functions;
mod interface;
mod shadow;

// The macros name this crate from outside, and its own examples and tests are inside.
extern crate self as ferrozyme;

pub use active::{Active, stop_gradient};
pub use ferrozyme_macros::{
    Differentiable, autodiff_forward, autodiff_reverse, custom_derivative, inactive,
};
pub use functions::{
    Float, Input, Output, grad, grad_into, hessian, hessian_into, hvp, hvp_into, jacobian,
    jacobian_forward, jacobian_forward_into, jacobian_reverse, jacobian_reverse_into, jvp,
    jvp_into, value_and_grad, value_and_grad_into, vjp, vjp_into,
};
pub use interface::Differentiable;
pub use shadow::{Shadow, shadow_of};

/// What generated code uses. Changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::interface::*;
    pub use crate::shadow::shadow_of_field;
}
