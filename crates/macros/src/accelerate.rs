//! `#[accelerate]`: a function without a derivative goes through the pipeline of derivatives.
//!
//! The function stays what it is, with a request for itself in front of its body. In the program the request is taken. Where the driver compiles the function, and in
//! functions that are differentiated, the body is: so derivatives see through the attribute, and recursion ends.
//!
//! ```text
//! #[accelerate]                            fn f(x: &[f32], y: &mut [f32]) {
//! fn f(x: &[f32], y: &mut [f32]) {              if accelerated() { return request }
//!     body                            ==>       let (x, y) = (x, y);
//! }                                             body
//!                                          }
//! ```

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{FnArg, Pat, Result, ReturnType, Signature, Type};

use crate::autodiff::{Function, anonymous_result, error, error_on, request_itself};

/// The function with the request in front of its body.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let accelerated = accelerate(attribute, item.clone());
    accelerated.unwrap_or_else(|error| {
        let error = error.into_compile_error();
        quote!(#item #error)
    })
}

fn accelerate(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !attribute.is_empty() {
        return Err(error_on(
            attribute,
            "accelerate takes no arguments",
            "write `#[accelerate]`",
        ));
    }
    let mut function: Function = syn::parse2(item).map_err(|problem| {
        error(
            problem.span(),
            "accelerate must be applied to a function",
            "put the attribute on a function or method",
        )
    })?;
    check(&function)?;
    let patterns = name_arguments(&mut function.signature);
    let (signature, request) = request_itself(&mut function);
    let Function {
        attributes,
        visibility,
        body,
        ..
    } = &function;
    let names = signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(argument) => Some(&argument.pat),
        FnArg::Receiver(_) => None,
    });
    let private = quote!(::ferrozyme::__private);
    Ok(quote! {
        #(#attributes)*
        #visibility #signature {
            #private::require_driver::<()>();
            #[allow(clippy::all, unused_unsafe)]
            if unsafe { #private::__ferrozyme_request_accelerated() } {
                return { #request };
            }
            #(let #patterns = #names;)*
            #body
        }
    })
}

fn check(function: &Function) -> Result<()> {
    let Signature {
        constness,
        asyncness,
        output,
        variadic,
        ..
    } = &function.signature;
    if let Some(word) = constness {
        return Err(error(
            word.span,
            "accelerate can not be used for const functions",
            "remove `const`: the function is compiled when the program is linked",
        ));
    }
    if let Some(word) = asyncness {
        return Err(error(
            word.span,
            "accelerate can not be used for async functions",
            "put the computation in a function without `async`, and call it here",
        ));
    }
    if let Some(variadic) = variadic {
        return Err(error_on(
            variadic,
            "accelerate can not be used for variadic functions",
            "name each argument",
        ));
    }
    if let ReturnType::Type(_, ty) = output
        && let Type::Never(never) = &**ty
    {
        return Err(error_on(
            never,
            "accelerate can not be used for functions that do not return",
            "remove the attribute",
        ));
    }
    if let Some(anonymous) = anonymous_result(output) {
        return Err(error_on(
            anonymous,
            "accelerate can not be used for functions that return `impl Trait`",
            "name the result type",
        ));
    }
    if function.body.is_none() {
        return Err(error(
            function.signature.ident.span(),
            "accelerate must be applied to a function with a body",
            "put the attribute on the implementations of the method",
        ));
    }
    let is_tracked = |attribute: &&syn::Attribute| attribute.path().is_ident("track_caller");
    match function.attributes.iter().find(is_tracked) {
        Some(attribute) => Err(error_on(
            attribute,
            "accelerate can not be used with `#[track_caller]`",
            "remove one of them: the function is called from code that Ferrozyme makes",
        )),
        None => Ok(()),
    }
}

/// Gives each argument a plain name, and returns the patterns that they had.
fn name_arguments(signature: &mut Signature) -> Vec<Pat> {
    let arguments = signature.inputs.iter_mut().enumerate();
    let patterns = arguments.filter_map(|(index, input)| match input {
        FnArg::Typed(argument) => {
            let name = match &*argument.pat {
                Pat::Ident(pattern) if pattern.subpat.is_none() => pattern.ident.clone(),
                _ => format_ident!("argument_{index}", span = Span::mixed_site()),
            };
            let named = Pat::Ident(syn::PatIdent {
                attrs: Vec::new(),
                by_ref: None,
                mutability: None,
                ident: name,
                subpat: None,
            });
            Some(std::mem::replace(&mut *argument.pat, named))
        }
        FnArg::Receiver(_) => None,
    });
    patterns.collect()
}
