//! `#[inactive]`: a function through which no derivatives go.
//!
//! Its body becomes a closure that a function of the runtime calls, which the driver knows by its name.
//!
//! ```text
//! #[inactive] fn log(x: f64) { println!("{x}"); }  ==>  fn log(x: f64) { __ferrozyme_inactive(move || { println!("{x}"); }) }
//! ```

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, ImplItemFn, Result};

/// The function with its body in the closure.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let result = mark(attribute, item);
    result.unwrap_or_else(Error::into_compile_error)
}

fn mark(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !attribute.is_empty() {
        return Err(Error::new_spanned(
            attribute,
            "inactive takes no arguments\nhelp: write `#[inactive]`",
        ));
    }
    let function: ImplItemFn = syn::parse2(item.clone()).map_err(|_| {
        let message = "inactive must be applied to a function with a body\nhelp: put the attribute on a function or method";
        Error::new_spanned(&item, message)
    })?;
    let ImplItemFn {
        attrs,
        vis,
        defaultness,
        sig,
        block,
    } = &function;
    if let Some(word) = sig.constness {
        return Err(Error::new(
            word.span,
            "inactive can not be used for const functions\nhelp: take `const` away",
        ));
    }
    if let Some(word) = sig.asyncness {
        return Err(Error::new(
            word.span,
            "inactive can not be used for async functions\nhelp: mark the functions that it calls",
        ));
    }
    Ok(quote! {
        #(#attrs)* #vis #defaultness #sig {
            ::ferrozyme::__private::__ferrozyme_inactive(move || #block)
        }
    })
}
