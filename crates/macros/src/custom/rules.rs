//! The adapters between the functions that users write as rules and the interface that the driver knows.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{Path, Type};

use super::Primal;
use super::argument::{Argument, Form, float_letter};

/// An adapter as an item, the expression for its address, and the letters of results that it writes through pointers.
type Adapter = (TokenStream, TokenStream, String);

fn name(text: &str) -> Ident {
    Ident::new(text, Span::mixed_site())
}

/// The mask with a bit for each of the user's arguments, from one with a bit for each of the primal's parameters.
fn active(primal: &Primal) -> TokenStream {
    let mask = name("mask");
    let mut position = 0;
    let bits = primal
        .arguments
        .iter()
        .enumerate()
        .map(|(index, argument)| {
            let bit = position.min(63);
            position += argument.parameter_count();
            quote!(| ((#mask as u64 >> #bit & 1) << #index))
        });
    let bits: Vec<TokenStream> = bits.collect();
    quote!(::ferrozyme::Active::from_bits(0 #(#bits)*))
}

/// Whether an argument is active, from the user's mask.
fn if_active(index: usize, shadow: TokenStream) -> TokenStream {
    let active = name("active");
    quote!(if #active.argument(#index) { ::core::option::Option::Some(#shadow) } else { ::core::option::Option::None })
}

/// The letters of types in registrations.
fn letters<'a>(types: impl IntoIterator<Item = &'a Type>) -> String {
    types.into_iter().filter_map(float_letter).collect()
}

/// The shadow parameter of an argument in a rule of reverse mode. Shadows of shared references may alias, so they are cells.
fn reverse_shadow(index: usize, argument: &Argument) -> Option<TokenStream> {
    let shadow = argument.shadow();
    let shadow = match &argument.form {
        Form::Float | Form::Discrete => return None,
        Form::Reference { mutable: true, .. } | Form::Slice { mutable: true, .. } => {
            argument.receive_unique(&shadow)
        }
        Form::Reference { .. } | Form::Slice { .. } => argument.receive_cells(&shadow),
    };
    Some(if_active(index, shadow))
}

/// A function that takes the parameters and a mask, calls the rule with the arguments and the mask of active ones, and returns the results.
fn adapter(
    name_text: &str,
    primal: &Primal,
    parameters: &[TokenStream],
    call: &TokenStream,
    results: &[TokenStream],
    letters: String,
) -> Adapter {
    // A name that users' rules cannot have.
    let function = name(&format!("__ferrozyme_{name_text}"));
    let (mask, active_name) = (name("mask"), name("active"));
    let active = active(primal);
    let item = match results {
        [] | [_] => {
            quote! {
                unsafe extern "C-unwind" fn #function(#(#parameters,)* #mask: i64) #(-> #results)* {
                    let #active_name = #active;
                    unsafe { #call }
                }
            }
        }
        _ => {
            let places: Vec<Ident> = (0..results.len())
                .map(|index| name(&format!("result_{index}")))
                .collect();
            let values: Vec<Ident> = (0..results.len())
                .map(|index| name(&format!("value_{index}")))
                .collect();
            quote! {
                unsafe extern "C-unwind" fn #function(
                    #(#parameters,)* #mask: i64, #(#places: *mut #results),*
                ) {
                    let #active_name = #active;
                    unsafe {
                        let (#(#values),*): (#(#results),*) = #call;
                        #(*#places = #values;)*
                    }
                }
            }
        }
    };
    // One result is returned, so that nothing is written.
    let letters = if results.len() > 1 {
        letters
    } else {
        String::new()
    };
    (item, quote!(#function as *const ()), letters)
}

/// Forward mode: each float and each reference is followed by its tangent, and the results are the value and its tangent.
pub(super) fn forward(rule: &Path, primal: &Primal) -> Adapter {
    let mut parameters = Vec::new();
    let mut arguments = Vec::new();
    for (index, argument) in primal.arguments.iter().enumerate() {
        parameters.extend(argument.parameters_with_shadow(true, true));
        arguments.push(argument.receive());
        let shadow = argument.shadow();
        match &argument.form {
            Form::Discrete => {}
            Form::Float => arguments.push(quote!(#shadow)),
            Form::Reference { mutable: true, .. } | Form::Slice { mutable: true, .. } => {
                arguments.push(if_active(index, argument.receive_unique(&shadow)));
            }
            Form::Reference { .. } | Form::Slice { .. } => {
                arguments.push(if_active(index, argument.receive_shared(&shadow)));
            }
        }
    }
    let active = name("active");
    let call = quote!(#rule(#(#arguments,)* #active));
    let types = || primal.result.iter().flat_map(|ty| [ty, ty]);
    let results: Vec<TokenStream> = types().map(ToTokens::to_token_stream).collect();
    adapter(
        "forward",
        primal,
        &parameters,
        &call,
        &results,
        letters(types()),
    )
}

/// The parameters of an adapter for a rule of reverse mode, and the arguments of the rule.
fn reverse_arguments(
    primal: &Primal,
    receive: fn(&Argument) -> TokenStream,
) -> (Vec<TokenStream>, Vec<TokenStream>) {
    let mut parameters = Vec::new();
    let mut arguments = Vec::new();
    for (index, argument) in primal.arguments.iter().enumerate() {
        parameters.extend(argument.parameters_with_shadow(true, false));
        arguments.push(receive(argument));
        arguments.extend(reverse_shadow(index, argument));
    }
    (parameters, arguments)
}

/// Reverse mode, forward sweep: each reference is followed by its shadow, and the results are the value and the saved data.
pub(super) fn augment(rule: &Path, primal: &Primal) -> Adapter {
    let private = quote!(::ferrozyme::__private);
    let (parameters, arguments) = reverse_arguments(primal, Argument::receive);
    let active = name("active");
    let call = quote!(#rule(#(#arguments,)* #active));
    let pointer = quote!(*mut #private::c_void);
    match &primal.result {
        None => {
            let call = quote!(#private::keep(#call));
            adapter(
                "augment",
                primal,
                &parameters,
                &call,
                &[pointer],
                String::new(),
            )
        }
        Some(ty) => {
            let call = quote!({
                let (value, kept): (#ty, _) = #call;
                (value, #private::keep(kept))
            });
            let results = [quote!(#ty), pointer];
            adapter(
                "augment",
                primal,
                &parameters,
                &call,
                &results,
                letters([ty]) + "p",
            )
        }
    }
}

/// Reverse mode, reverse sweep: each reference is followed by its shadow, then come the seed and the saved data, and the results are
/// the gradients of floats.
pub(super) fn reverse(rule: &Path, augment: Option<&Path>, primal: &Primal) -> Adapter {
    let private = quote!(::ferrozyme::__private);
    let (mut parameters, mut arguments) = reverse_arguments(primal, |argument| {
        argument.receive_shared(&argument.value())
    });
    if let Some(ty) = &primal.result {
        let seed = name("seed");
        parameters.push(quote!(#seed: #ty));
        arguments.push(quote!(#seed));
    }
    let agreement =
        augment.map(|augment| agreement(augment, rule, &parameters, &arguments, primal));
    if augment.is_some() {
        let kept = name("kept");
        parameters.push(quote!(#kept: *mut #private::c_void));
        arguments.push(quote!(#private::take(#kept)));
    }
    let active = name("active");
    let call = quote!(#rule(#(#arguments,)* #active));
    let is_float = |argument: &&Argument| matches!(argument.form, Form::Float);
    let floats = || {
        primal
            .arguments
            .iter()
            .filter(is_float)
            .map(|argument| &argument.ty)
    };
    let results: Vec<TokenStream> = floats().map(ToTokens::to_token_stream).collect();
    let (item, address, letters) = adapter(
        "reverse",
        primal,
        &parameters,
        &call,
        &results,
        letters(floats()),
    );
    (quote!(#item #agreement), address, letters)
}

/// A function that is never called: it makes the compiler check that the type that one rule saves is the type that the other takes.
fn agreement(
    augment: &Path,
    reverse: &Path,
    parameters: &[TokenStream],
    reverse_arguments: &[TokenStream],
    primal: &Primal,
) -> TokenStream {
    let (_, augment_arguments) = self::reverse_arguments(primal, Argument::receive);
    let (active_name, mask) = (name("active"), name("mask"));
    let active = active(primal);
    let kept = match primal.result {
        Some(_) => quote!((_, kept)),
        None => quote!(kept),
    };
    quote! {
        #[allow(dead_code, unused_must_use)]
        unsafe fn __ferrozyme_agreement(#(#parameters,)* #mask: i64) {
            let #active_name = #active;
            unsafe {
                let #kept = #augment(#(#augment_arguments,)* #active_name);
                #reverse(#(#reverse_arguments,)* kept, #active_name);
            }
        }
    }
}
