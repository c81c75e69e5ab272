//! The constants of a request: the primal's shim, and the descriptor.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::Type;

use super::{Lane, local};
use crate::autodiff::activity::Kind;
use crate::autodiff::function::Function;
use crate::autodiff::signature::{Argument, Derivative, Outcome};

/// The primal with a slot for every argument and the result.
pub(super) fn shim(primal: &TokenStream, derivative: &Derivative) -> TokenStream {
    let private = quote!(::ferrozyme::__private);
    let slots: Vec<Ident> = (0..derivative.arguments.len())
        .map(|index| local("slot", index))
        .collect();
    let types = derivative.arguments.iter().map(|argument| &argument.ty);
    let call = quote!(#primal(#(#private::read::<#types>(#slots)),*));
    let (result, call) = match &derivative.outcome {
        None => (None, call),
        Some(Outcome { ty, .. }) => {
            let result = Ident::new("result", Span::mixed_site());
            (
                Some(result.clone()),
                quote!(#private::write::<#ty>(#result, #call)),
            )
        }
    };
    let parameters: Vec<&Ident> = slots.iter().chain(&result).collect();
    let holes = parameters.iter().map(|_| quote!(_));
    quote! {
        const {
            let shim: fn(#(#holes),*) = |#(#parameters),*| unsafe { #call };
            shim as *const ()
        }
    }
}

/// The descriptor of the request, for the driver.
pub(super) fn descriptor(function: &Function, derivative: &Derivative, lane: Lane) -> TokenStream {
    let private = quote!(::ferrozyme::__private);
    let mode = match derivative.is_itself {
        true => quote!(#private::Descriptor::ITSELF),
        false => {
            let code = derivative.mode.code();
            quote!(#code)
        }
    };
    let width = lane.width(derivative);
    let primal = format!("::{}", function.signature.ident);
    let name = derivative.signature.ident.to_string();
    let arguments = derivative.arguments.iter().map(|argument| {
        let Argument { name, ty, kind, .. } = argument;
        let name = name.to_string();
        // The lanes of a flat shadow are split, and then treated like other shadows.
        let code = kind.with_separate_lanes().code();
        let flags = flags(ty);
        quote!(#private::Slot::argument::<#ty>(#name, #code, #flags, #private::Probe::<#ty>::LAYOUT, #private::Probe::<#ty>::SHADOW))
    });
    let result = derivative.outcome.iter().map(|Outcome { ty, kind, .. }| {
        let code = match only_and_both(*kind) {
            // The primal's result must be dropped if it owns something, so it must be computed.
            Some((only, both)) => quote!(if #private::needs_drop::<#ty>() { #both } else { #only }),
            None => {
                let code = kind.code();
                quote!(#code)
            }
        };
        quote!(#private::Slot::result::<#ty>(#code, #private::Probe::<#ty>::LAYOUT))
    });
    let slots: Vec<TokenStream> = arguments.chain(result).collect();
    let count = slots.len();
    quote! {
        const {
            #[allow(unused_imports)]
            use #private::Unknown as _;
            &#private::Descriptor {
                magic: #private::Descriptor::MAGIC,
                mode: #mode,
                width: #width,
                line: line!(),
                column: column!(),
                file: #private::Text::new(file!()),
                primal: #private::Text::new(concat!(module_path!(), #primal)),
                derivative: #private::Text::new(#name),
                slots: #private::start_of(const { &[#(#slots),*] }),
                slot_count: #count,
            }
        }
    }
}

/// For a result of which only the derivative is requested: its activity, and the one that keeps the result.
pub(super) fn only_and_both(kind: Kind) -> Option<(u32, u32)> {
    match kind {
        Kind::ActiveOnly => Some((Kind::ActiveOnly.code(), Kind::Active.code())),
        Kind::DualOnly => Some((Kind::DualOnly.code(), Kind::Dual.code())),
        _ => None,
    }
}

/// Whether a value has no interior mutability, as an expression that the compiler evaluates.
fn is_frozen(target: &Type) -> TokenStream {
    let probe = quote!(::ferrozyme::__private::Probe::<#target>);
    quote!((#probe::FROZEN || #probe::COPY || #probe::SLICE_OF_COPY))
}

/// The same also for everything that the value owns or refers to.
pub(super) fn is_frozen_throughout(target: &Type) -> TokenStream {
    let frozen = is_frozen(target);
    quote!((#frozen && ::ferrozyme::__private::Probe::<#target>::HAS_NO_CELLS))
}

/// Facts about the memory behind a reference, for the driver.
fn flags(ty: &Type) -> TokenStream {
    let private = quote!(::ferrozyme::__private);
    match ty {
        Type::Reference(reference) => {
            let target = &reference.elem;
            match reference.mutability {
                Some(_) => quote!(#private::unique_flag(#private::Probe::<#target>::UNPIN)),
                None => {
                    let frozen = is_frozen(target);
                    quote!(#private::shared_flag(#frozen))
                }
            }
        }
        _ => quote!(0),
    }
}
