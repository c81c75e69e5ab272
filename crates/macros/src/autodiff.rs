//! `#[autodiff_forward]` and `#[autodiff_reverse]`: from attribute and function to the derivative beside it.
//!
//! The function stays as it is. After it comes the derivative, whose signature is that of Rust's own `std::autodiff`
//! ([`signature`]) and whose body is a request to the driver ([`thunk`]).
//!
//! ```text
//! #[autodiff_reverse(df, Duplicated, Active)]      fn f(x: &[f64]) -> f64 { … }
//! fn f(x: &[f64]) -> f64 { … }                ==>  fn df(x: &[f64], dx_0: &mut [f64], dret: f64) -> f64 { request }
//! ```

mod activity;
mod arguments;
mod check;
mod function;
mod place;
mod signature;
#[cfg(test)]
mod signature_tests;
mod thunk;

use proc_macro2::TokenStream;
use quote::quote;

pub(crate) use activity::Mode;
use arguments::Arguments;
pub(crate) use check::{anonymous_result, error, error_on};
pub(crate) use function::Function;
use place::Place;
use signature::{Derivative, name_anonymous_types};
use syn::{FnArg, Signature};

/// The function and its derivative; if the derivative cannot be made, an error in its place.
pub(crate) fn expand(mode: Mode, attribute: TokenStream, item: TokenStream) -> TokenStream {
    let derivative = derive(mode, attribute, item.clone());
    let derivative = derivative.unwrap_or_else(|error| error.into_compile_error());
    quote!(#item #derivative)
}

fn derive(mode: Mode, attribute: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let function: Function = syn::parse2(item)?;
    let arguments = Arguments::parse(mode, attribute)?;
    let place = Place::of(&function);
    let derivative = Derivative::new(&function, place, &arguments)?;
    Ok(thunk::derivative(&function, place, &derivative))
}

/// A request for a function itself, without a derivative, as the value that it returns; and the function's signature, with the names of arguments that the request uses.
pub(crate) fn request_itself(function: &mut Function) -> (Signature, TokenStream) {
    name_anonymous_types(&mut function.signature);
    let place = Place::of(function);
    let itself = Derivative::itself(function, place);
    let request = thunk::request_itself(function, place, &itself);
    let mut signature = itself.signature;
    // The body may change a `self` that it owns.
    for (input, own) in signature.inputs.iter_mut().zip(&function.signature.inputs) {
        if let FnArg::Receiver(_) = own {
            *input = own.clone();
        }
    }
    (signature, request)
}
