//! `#[inactive]`: a function without a derivative.
//!
//! Its body becomes a closure that a runtime function calls; the driver recognises that function by its name.
//!
//! ```text
//! #[inactive] fn log(x: f64) { println!("{x}"); }  ==>  fn log(x: f64) { __ferrozyme_inactive(move || { println!("{x}"); }) }
//! ```

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, FnArg, ImplItemFn, Result, ReturnType, Signature, Type};

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
            "inactive can not be used for const functions\nhelp: remove `const`",
        ));
    }
    if let Some(word) = sig.asyncness {
        return Err(Error::new(
            word.span,
            "inactive can not be used for async functions\nhelp: mark the functions that it calls",
        ));
    }
    let run = match only_reads(sig) {
        true => quote!(__ferrozyme_inactive_reading),
        false => quote!(__ferrozyme_inactive),
    };
    Ok(quote! {
        #(#attrs)* #vis #defaultness #sig {
            ::ferrozyme::__private::#run(move || #block)
        }
    })
}

/// Whether a function of this signature cannot write to memory of its caller, nor return any: it takes numbers, by value or behind shared references, and returns a
/// number.
fn only_reads(signature: &Signature) -> bool {
    let reads = |input: &FnArg| match input {
        FnArg::Typed(argument) => match &*argument.ty {
            Type::Reference(reference) => {
                reference.mutability.is_none()
                    && match &*reference.elem {
                        Type::Slice(slice) => is_number(&slice.elem),
                        Type::Array(array) => is_number(&array.elem),
                        other => is_number(other),
                    }
            }
            other => is_number(other),
        },
        FnArg::Receiver(_) => false,
    };
    let result = match &signature.output {
        ReturnType::Default => true,
        ReturnType::Type(_, ty) => is_number(ty),
    };
    result && signature.generics.params.is_empty() && signature.inputs.iter().all(reads)
}

fn is_number(ty: &Type) -> bool {
    const NUMBERS: [&str; 16] = [
        "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64",
        "u128", "usize", "bool", "char",
    ];
    match ty {
        Type::Path(path) => NUMBERS.iter().any(|number| path.path.is_ident(number)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::only_reads;
    use syn::{Signature, parse_str};

    #[test]
    fn shared_numbers_are_only_read() {
        for (signature, expected) in [
            ("fn f(x: &[f64], n: usize) -> f64", true),
            ("fn f(x: &[f32; 3])", true),
            ("fn f(x: &mut [f64]) -> f64", false),
            ("fn f(x: &[Cell<f64>]) -> f64", false),
            ("fn f(x: &[f64]) -> Vec<f64>", false),
            ("fn f<T>(x: &T) -> f64", false),
            ("fn f(&self) -> f64", false),
        ] {
            let signature: Signature = parse_str(signature).expect("it is one");
            assert_eq!(only_reads(&signature), expected);
        }
    }
}
