//! The derivative's body: every argument, shadow and result goes into a slot, and a request replaces the computation.
//!
//! The primal's shim and the descriptor are constants in the call itself, so that the driver sees them in debug builds, too.
//! The shim is a closure that takes pointers to the slots, reads the arguments, calls the primal and writes the result;
//! as a closure it may use the generic parameters around it, which a nested function could not.
//!
//! Forward mode computes all lanes of a width in one request. Reverse mode computes one gradient after the other; memory that the primal
//! changes is restored in between.

mod checks;
mod descriptor;
mod request;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::Type;

use super::activity::Mode;
use super::function::Function;
use super::place::Place;
use super::signature::{Argument, Derivative};
use checks::checks;
use descriptor::is_frozen_throughout;
use request::request;

/// The derivative as an item.
pub(crate) fn derivative(
    function: &Function,
    place: Place,
    derivative: &Derivative,
) -> TokenStream {
    let documentation = documentation(function, derivative);
    let attributes = kept_attributes(function);
    let track_caller = derivative
        .signature
        .abi
        .is_none()
        .then(|| quote!(#[track_caller]));
    let visibility = &function.visibility;
    let signature = &derivative.signature;
    let body = body(function, place, derivative);
    quote! {
        #[doc = #documentation]
        #(#attributes)*
        #track_caller
        #[allow(clippy::all, unused_unsafe)]
        #visibility #signature { #body }
    }
}

/// Conditional compilation and lint levels apply to the derivative as well; other attributes of the primal are about its body.
fn kept_attributes(function: &Function) -> impl Iterator<Item = &syn::Attribute> {
    function.attributes.iter().filter(|attribute| {
        ["cfg", "allow", "warn", "deny", "forbid"]
            .iter()
            .any(|name| attribute.path().is_ident(name))
    })
}

fn documentation(function: &Function, derivative: &Derivative) -> String {
    let primal = &function.signature.ident;
    let mode = match derivative.mode {
        Mode::Forward => "forward",
        Mode::Reverse => "reverse",
    };
    format!("The {mode}-mode derivative of `{primal}`, made by Ferrozyme.")
}

/// A request for the function itself.
pub(crate) fn request_itself(
    function: &Function,
    place: Place,
    itself: &Derivative,
) -> TokenStream {
    request(function, place, itself, Lane::All)
}

fn local(name: &str, index: usize) -> Ident {
    format_ident!("{name}_{index}", span = Span::mixed_site())
}

fn body(function: &Function, place: Place, derivative: &Derivative) -> TokenStream {
    let private = quote!(::ferrozyme::__private);
    let checks = checks(function, derivative, Lane::All);
    let computation = match derivative.mode {
        Mode::Reverse if derivative.width > 1 => lanes(function, place, derivative),
        _ => request(function, place, derivative, Lane::All),
    };
    quote! {
        #private::require_driver::<()>();
        #checks
        #computation
    }
}

/// Which of the lanes a request is for.
#[derive(Clone, Copy)]
enum Lane {
    /// All lanes.
    All,
    /// This one.
    One(usize),
}

impl Lane {
    /// How many lanes the request has.
    fn width(self, derivative: &Derivative) -> u32 {
        match self {
            Lane::All => derivative.width,
            Lane::One(_) => 1,
        }
    }

    /// The shadows that belong to it.
    fn shadows(self, argument: &Argument) -> &[Ident] {
        match self {
            Lane::All => &argument.shadows,
            Lane::One(lane) => argument.shadows.get(lane..=lane).unwrap_or_default(),
        }
    }

    /// The argument's value, which the lanes after this one need as well.
    fn value(self, argument: &Argument, derivative: &Derivative) -> TokenStream {
        let name = &argument.name;
        let is_last = match self {
            Lane::All => true,
            Lane::One(lane) => lane + 1 == derivative.width as usize,
        };
        match &argument.ty {
            _ if is_last => name.to_token_stream(),
            Type::Reference(reference) if reference.mutability.is_some() => quote!(&mut *#name),
            Type::Reference(_) | Type::Ptr(_) => name.to_token_stream(),
            ty => quote!(<#ty as ::core::clone::Clone>::clone(&#name)),
        }
    }
}

/// One request after the other; the last one provides the result. Before each but the first, memory that the primal may have changed is restored.
fn lanes(function: &Function, place: Place, derivative: &Derivative) -> TokenStream {
    let private = quote!(::ferrozyme::__private);
    let changed: Vec<&Ident> = derivative
        .arguments
        .iter()
        .filter(|argument| matches!(&argument.ty, Type::Reference(reference) if reference.mutability.is_some()))
        .map(|argument| &argument.name)
        .collect();
    let saved: Vec<Ident> = (0..changed.len())
        .map(|index| local("saved", index))
        .collect();
    let shared = derivative
        .arguments
        .iter()
        .filter_map(|argument| match &argument.ty {
            Type::Reference(reference) if reference.mutability.is_none() => {
                Some(is_frozen_throughout(&reference.elem))
            }
            _ => None,
        });
    let mut computation = quote! {
        const {
            #[allow(unused_imports)]
            use #private::Unknown as _;
            #(#private::require_frozen(#shared);)*
        }
        #(let #saved = #private::Restore::save(&*#changed);)*
    };
    for lane in 0..derivative.width as usize {
        if lane > 0 {
            let checks = checks(function, derivative, Lane::One(lane));
            computation.extend(quote! {
                #(#private::Restore::restore(&mut *#changed, &#saved);)*
                #checks
            });
        }
        let request = request(function, place, derivative, Lane::One(lane));
        let is_last = lane + 1 == derivative.width as usize;
        computation.extend(match is_last {
            true => request,
            false => quote!({ let _ = { #request }; }),
        });
    }
    computation
}
