//! The attribute and derive macros of Ferrozyme. Use them through the crates `ferrozyme` and `ferrozyme-nn`, which document them.

mod accelerate;
mod autodiff;
mod custom;
mod differentiable;
mod inactive;
mod module;

use autodiff::{Mode, expand};
use proc_macro::TokenStream;

/// See the documentation of `ferrozyme::autodiff_forward`.
#[proc_macro_attribute]
pub fn autodiff_forward(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand(Mode::Forward, attribute.into(), item.into()).into()
}

/// See the documentation of `ferrozyme::autodiff_reverse`.
#[proc_macro_attribute]
pub fn autodiff_reverse(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand(Mode::Reverse, attribute.into(), item.into()).into()
}

/// See the documentation of `ferrozyme::Differentiable`.
#[proc_macro_derive(Differentiable, attributes(differentiable))]
pub fn derive_differentiable(input: TokenStream) -> TokenStream {
    differentiable::expand(input.into()).into()
}

/// See the documentation of `ferrozyme::custom_derivative`.
#[proc_macro_attribute]
pub fn custom_derivative(attribute: TokenStream, item: TokenStream) -> TokenStream {
    custom::expand(attribute.into(), item.into()).into()
}

/// See the documentation of `ferrozyme::accelerate`.
#[proc_macro_attribute]
pub fn accelerate(attribute: TokenStream, item: TokenStream) -> TokenStream {
    accelerate::expand(attribute.into(), item.into()).into()
}

/// See the documentation of `ferrozyme::inactive`.
#[proc_macro_attribute]
pub fn inactive(attribute: TokenStream, item: TokenStream) -> TokenStream {
    inactive::expand(attribute.into(), item.into()).into()
}

/// See the documentation of `ferrozyme_nn::Module`.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: TokenStream) -> TokenStream {
    module::expand(input.into()).into()
}
