//! The slots, the call, and the results from the slots.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::Type;

use super::checks::{changes, comparison};
use super::descriptor::{descriptor, only_and_both, shim};
use super::{Lane, local};
use crate::autodiff::activity::{Kind, Mode};
use crate::autodiff::check::is_plain;
use crate::autodiff::function::Function;
use crate::autodiff::place::Place;
use crate::autodiff::signature::{Argument, Derivative, Outcome, primal_path};

/// Stores everything in slots, requests the derivative, and returns its results.
pub(super) fn request(
    function: &Function,
    place: Place,
    derivative: &Derivative,
    lane: Lane,
) -> TokenStream {
    let private = quote!(::ferrozyme::__private);
    let width = lane.width(derivative) as usize;
    let mut slots = Vec::new();
    let mut pointers = Vec::new();
    let mut gradients = Vec::new();
    let mut checks = TokenStream::new();

    for (index, argument) in derivative.arguments.iter().enumerate() {
        let Argument { ty, kind, .. } = argument;
        let slot = local("slot", index);
        let value = lane.value(argument, derivative);
        let shadows = match kind.is_flat() {
            true => {
                let (prepare, lanes) = flat_lanes(argument, index, width);
                slots.push(prepare);
                lanes
            }
            false => lane
                .shadows(argument)
                .iter()
                .map(ToTokens::to_token_stream)
                .collect(),
        };
        slots.push(quote!(let mut #slot = #private::ManuallyDrop::new(#value);));
        pointers.push(quote!(&raw mut #slot as *mut #private::c_void));
        for (number, shadow) in shadows.into_iter().enumerate() {
            let slot = local(&format!("shadow_{index}"), number);
            slots.push(quote!(let mut #slot = #private::ManuallyDrop::new(#shadow);));
            pointers.push(quote!(&raw mut #slot as *mut #private::c_void));
            let at = local("slot", index);
            if derivative.mode == Mode::Reverse
                && !kind.is_flat()
                && let Some((note, check)) = changes(function, argument, (&at, &slot), number)
            {
                slots.push(note);
                checks.extend(check);
            }
        }
        if *kind == Kind::Active {
            let slot = local("gradient", index);
            let argument = local("slot", index);
            slots.push(quote! {
                let mut #slot = {
                    #[allow(unused_imports)]
                    use #private::Unknown as _;
                    #private::start_gradient::<#ty>(
                        #private::Probe::<#ty>::SHADOW,
                        #private::Probe::<#ty>::FIT,
                        &#argument,
                    )
                };
            });
            pointers.push(quote!(&raw mut #slot as *mut #private::c_void));
            gradients.push(quote!(#slot.assume_init()));
        }
    }

    let result = Ident::new("result", Span::mixed_site());
    let mut tangents = Vec::new();
    if let Some(Outcome { ty, kind, seed }) = &derivative.outcome {
        slots.push(quote!(let mut #result = #private::MaybeUninit::<#ty>::uninit();));
        pointers.push(quote!(&raw mut #result as *mut #private::c_void));
        for number in 0..width {
            let slot = match (seed, kind) {
                (Some(seed), _) => {
                    let slot = local("seed", number);
                    slots.push(quote! {
                        let mut #slot = #private::ManuallyDrop::new(unsafe { #private::read(&raw const #seed) });
                    });
                    if !is_plain(ty) && *kind == Kind::Active {
                        checks.extend(check_seed(function, ty, &result, seed));
                    }
                    slot
                }
                (None, Kind::Const) => break,
                (None, _) => {
                    let slot = local("tangent", number);
                    slots.push(quote!(let mut #slot = #private::MaybeUninit::<#ty>::uninit();));
                    tangents.push(quote!(#slot.assume_init()));
                    slot
                }
            };
            pointers.push(quote!(&raw mut #slot as *mut #private::c_void));
        }
    }

    let shim = shim(&primal_path(function, place), derivative);
    let descriptor = descriptor(function, derivative, lane);
    let value = returned(derivative, &result, &tangents, &gradients);
    quote! {
        #(#slots)*
        unsafe {
            #private::__ferrozyme_request(#shim, #descriptor, #(#pointers),*);
            #checks
            #value
        }
    }
}

/// The seed of an enum must have the variant of the result.
fn check_seed(function: &Function, ty: &Type, result: &Ident, seed: &Ident) -> TokenStream {
    let private = quote!(::ferrozyme::__private);
    let comparison = comparison(ty);
    let primal = format!("::{}", function.signature.ident);
    quote! {
        {
            #[allow(unused_imports)]
            use #private::Unknown as _;
            #private::check_seed::<#ty>(
                #comparison,
                #result.assume_init_ref(),
                &#seed,
                concat!(module_path!(), #primal),
            );
        }
    }
}

/// The lanes of the single shadow of a slice, and the statements that must precede them.
fn flat_lanes(argument: &Argument, index: usize, width: usize) -> (TokenStream, Vec<TokenStream>) {
    let private = quote!(::ferrozyme::__private);
    let Argument {
        name, ty, shadows, ..
    } = argument;
    let shadow = &shadows[0];
    let length = local("length", index);
    let is_mutable = matches!(ty, Type::Reference(reference) if reference.mutability.is_some());
    let rebinding = is_mutable.then(|| quote!(let mut #shadow = #shadow;));
    let lanes = (0..width).map(|number| match is_mutable {
        true => quote!(unsafe { #private::lane_mut(&mut #shadow, #length, #number) }),
        false => quote!(#private::lane(&#shadow, #length, #number)),
    });
    (
        quote!(#rebinding let #length = #name.len();),
        lanes.collect(),
    )
}

/// The derivative's results, from slots that the request has filled.
fn returned(
    derivative: &Derivative,
    result: &Ident,
    tangents: &[TokenStream],
    gradients: &[TokenStream],
) -> TokenStream {
    let private = quote!(::ferrozyme::__private);
    let Some(Outcome { ty, kind, .. }) = &derivative.outcome else {
        return match gradients {
            [] => TokenStream::new(),
            [only] => only.clone(),
            _ => quote!((#(#gradients),*)),
        };
    };
    let value = quote!(#result.assume_init());
    let drop_result = only_and_both(*kind)
        .map(|_| quote!(if const { #private::needs_drop::<#ty>() } { #result.assume_init_drop() }));
    let parts: Vec<&TokenStream> = match drop_result {
        Some(_) => tangents.iter().chain(gradients).collect(),
        None => [&value]
            .into_iter()
            .chain(tangents)
            .chain(gradients)
            .collect(),
    };
    let value = match (&parts[..], derivative.mode, derivative.width) {
        ([], ..) => TokenStream::new(),
        ([only], ..) => quote!(#only),
        (parts, Mode::Forward, width) if width > 1 => quote!([#(#parts),*]),
        (parts, ..) => quote!((#(#parts),*)),
    };
    quote!(#drop_result #value)
}
