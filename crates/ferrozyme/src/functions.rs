//! The function interface: derivatives of closures, without attributes.
//!
//! It is built on a few derivatives of functions over slices (`requests.rs`). Arrays and single floats are slices of known length.

mod gradient;
mod input;
mod jacobian;
mod product;
mod requests;
mod second;
mod sparse;

pub use gradient::{grad, grad_into, value_and_grad, value_and_grad_into};
pub use input::{Float, Input, Output};
pub use jacobian::{
    jacobian, jacobian_forward, jacobian_forward_into, jacobian_reverse, jacobian_reverse_into,
};
pub use product::{jvp, jvp_into, vjp, vjp_into};
pub use second::{hessian, hessian_into, hvp, hvp_into};
pub use sparse::{Pattern, SparseMatrix, sparse_jacobian, sparse_jacobian_of_blocks};

/// Panics at the caller's location if a buffer does not have the required length.
#[track_caller]
fn check_length(what: &str, found: usize, expected: usize, of: &str) {
    assert!(
        found == expected,
        "`{what}` has length {found}, but {of} needs length {expected}"
    );
}
