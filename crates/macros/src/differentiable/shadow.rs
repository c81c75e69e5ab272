//! The implementation of `Shadow`.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::visit::{self, Visit};
use syn::{DeriveInput, TypeBareFn, TypePtr, TypeReference};

use super::{Form, with_bounds};

/// Whether a field holds a reference or a raw pointer, so that a shadow would need a borrow.
pub(super) fn borrows(form: &Form) -> bool {
    struct Finder(bool);
    impl<'ast> Visit<'ast> for Finder {
        fn visit_type_reference(&mut self, _: &'ast TypeReference) {
            self.0 = true;
        }

        fn visit_type_ptr(&mut self, _: &'ast TypePtr) {
            self.0 = true;
        }

        // The arguments of a function are not stored.
        fn visit_type_bare_fn(&mut self, _: &'ast TypeBareFn) {}
    }
    let mut finder = Finder(false);
    for part in form.parts.iter().filter(|part| !part.inactive) {
        visit::visit_type(&mut finder, part.ty);
    }
    finder.0
}

pub(super) fn implementation(input: &DeriveInput, forms: &[Form]) -> TokenStream {
    let name = &input.ident;
    let bounded = with_bounds(
        &input.generics,
        |parameter| quote!(::ferrozyme::Shadow<Shadow = #parameter>),
    );
    let (parameters, _, clause) = bounded.split_for_impl();
    let (_, arguments, _) = input.generics.split_for_impl();
    let arms = forms.iter().map(|form| {
        let path = match form.name {
            Some(name) => quote!(Self::#name),
            None => quote!(Self),
        };
        let names: Vec<_> = (0..form.parts.len())
            .map(|index| format_ident!("value_{index}", span = Span::mixed_site()))
            .collect();
        let members: Vec<_> = form.parts.iter().map(|part| &part.member).collect();
        let values = form.parts.iter().zip(&names).map(|(part, name)| {
            let ty = part.ty;
            match part.inactive {
                true => quote!(<#ty as ::core::clone::Clone>::clone(#name)),
                false => quote!(::ferrozyme::__private::shadow_of_field::<#ty>(#name)),
            }
        });
        quote!(#path { #(#members: #names),* } => #path { #(#members: #values),* },)
    });
    // An enum without variants has no values, and a match on a reference must see that.
    let matched = match forms.is_empty() {
        true => quote!(*self),
        false => quote!(self),
    };
    quote! {
        #[automatically_derived]
        impl #parameters ::ferrozyme::Shadow for #name #arguments #clause {
            type Shadow = Self;
            fn shadow(&self) -> Self {
                match #matched { #(#arms)* }
            }
        }
    }
}
