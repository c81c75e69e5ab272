//! `#[derive(Module)]`: the names of a struct's parameters are those of its fields.
//!
//! ```text
//! struct S {                    impl Module for S {
//!     first: Linear,    ==>         fn visit(&self, visitor) {
//!     #[module(skip)]                   visitor.part("first", &self.first);
//!     rate: f64,                    }
//! }                             }
//! ```

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Data, DeriveInput, Error, Field, GenericParam, Result, parse_quote};

/// The implementation for a type.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    let result = syn::parse2(input).and_then(|input| derive(&input));
    result.unwrap_or_else(Error::into_compile_error)
}

fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(
            &input.ident,
            "Module can only be derived for structs\n\
             help: implement `visit` by hand: name the parts that a value has",
        ));
    };
    let mut parts = Vec::new();
    for (member, field) in data.fields.members().zip(&data.fields) {
        if !is_skipped(field)? {
            let name = member.to_token_stream().to_string();
            let name = name.trim_start_matches("r#");
            parts.push(quote!(visitor.part(#name, &self.#member);));
        }
    }
    let mut generics = input.generics.clone();
    for parameter in &mut generics.params {
        if let GenericParam::Type(parameter) = parameter {
            parameter.bounds.push(parse_quote!(::ferrozyme_nn::Module));
        }
    }
    let name = &input.ident;
    let (implemented, arguments, conditions) = generics.split_for_impl();
    let visitor = match parts.is_empty() {
        true => quote!(_),
        false => quote!(visitor),
    };
    Ok(quote! {
        impl #implemented ::ferrozyme_nn::Module for #name #arguments #conditions {
            fn visit(&self, #visitor: &mut ::ferrozyme_nn::Visitor) {
                #(#parts)*
            }
        }
    })
}

/// Whether a field has `#[module(skip)]`; anything else in such an attribute is an error.
fn is_skipped(field: &Field) -> Result<bool> {
    let mut skipped = false;
    for attribute in &field.attrs {
        if attribute.path().is_ident("module") {
            attribute.parse_nested_meta(|meta| match meta.path.is_ident("skip") {
                true => {
                    skipped = true;
                    Ok(())
                }
                false => Err(meta.error(
                    "unknown option of Module\nhelp: there is `#[module(skip)]`, for fields without parameters",
                )),
            })?;
        }
    }
    Ok(skipped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_after_fields() {
        let expanded = expand(quote! {
            struct Model<L> { r#in: Linear, #[module(skip)] rate: f64, layers: Vec<L> }
        });
        let text = expanded.to_string();
        assert!(
            text.contains("visitor . part (\"in\" , & self . r#in)"),
            "{text}"
        );
        assert!(
            text.contains("visitor . part (\"layers\" , & self . layers)"),
            "{text}"
        );
        assert!(!text.contains("rate"), "{text}");
        assert!(text.contains("L : :: ferrozyme_nn :: Module"), "{text}");
    }

    #[test]
    fn what_cannot_be_derived_says_why() {
        let text = expand(quote!(
            enum Choice {
                A(Linear),
            }
        ))
        .to_string();
        assert!(text.contains("only be derived for structs"), "{text}");
        let text = expand(quote!(
            struct S {
                #[module(skipped)]
                rate: f64,
            }
        ))
        .to_string();
        assert!(text.contains("unknown option of Module"), "{text}");
    }
}
