//! The implementation of `Differentiable`.
//!
//! A field whose type does not have the trait is allowed: its bytes are unknown, and its layout is inferred. The positions of an enum's fields
//! are unspecified on stable Rust: its bytes are unknown unless no variant has fields.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{DeriveInput, Type};

use super::{Form, Part, sharing, with_bounds};

pub(super) fn implementation(input: &DeriveInput, forms: &[Form]) -> TokenStream {
    let name = &input.ident;
    let bounded = with_bounds(&input.generics, |_| quote!(::ferrozyme::Differentiable));
    let (parameters, _, clause) = bounded.split_for_impl();
    let (_, arguments, _) = input.generics.split_for_impl();
    let import = import();
    let fields = layout_fields(forms);
    let all = || forms.iter().flat_map(|form| &form.parts);
    let frozen = all().map(|part| {
        let probe = probe(part.ty);
        quote!(&& (#probe::FROZEN || #probe::COPY))
    });
    // Every recursive type has a variant that ends the recursion; the query must end there, too.
    let has_variants = forms.len() != 1 && all().next().is_some();
    let asked = all().filter(|_| !has_variants);
    let flat = asked.map(|part| {
        let probe = probe(part.ty);
        quote!(&& #probe::FLAT)
    });
    let shares = sharing::constants(forms);
    let owned = sharing::checks(forms);
    let early = sharing::early_checks(&input.generics, forms);
    let places = places(forms);
    let same_shape = same_shape(forms);
    let compare = compare(forms);
    let fit = fit(forms);
    quote! {
        #early
        #[automatically_derived]
        unsafe impl #parameters ::ferrozyme::Differentiable for #name #arguments #clause {
            const LAYOUT: &'static ::ferrozyme::__private::Layout = {
                #import
                #owned
                &::ferrozyme::__private::Layout::new::<Self>(const { &[#(#fields),*] })
            };
            const FROZEN: bool = {
                #import
                true #(#frozen)*
            };
            const FLAT: bool = {
                #import
                !#has_variants #(#flat)*
            };
            #shares
            #[inline]
            #[allow(unused_variables, unreachable_patterns, clippy::all)]
            fn places(&self, places: &mut ::ferrozyme::__private::Places) {
                #import
                #places
            }
            #[inline]
            #[allow(unused_variables, unreachable_patterns, clippy::all)]
            fn same_shape(&self, shadow: &Self) -> bool {
                #import
                #same_shape
            }
            #[allow(unused_variables, unreachable_patterns, clippy::all)]
            fn compare(&self, shadow: &Self) -> ::core::result::Result<(), ::ferrozyme::__private::Mismatch> {
                #import
                #compare
            }
            #[allow(unused_variables, unreachable_patterns, clippy::all)]
            fn fit(&self, shadow: &mut Self) {
                #import
                #fit
            }
        }
    }
}

/// The imports of probes.
pub(super) fn import() -> TokenStream {
    quote! {
        #[allow(unused_imports)]
        use ::ferrozyme::__private::Unknown as _;
    }
}

pub(super) fn probe(ty: &Type) -> TokenStream {
    quote!(::ferrozyme::__private::Probe::<#ty>)
}

fn layout_fields(forms: &[Form]) -> Vec<TokenStream> {
    if let [Form { name: None, parts }] = forms {
        let field = |part: &Part| {
            let (member, ty) = (&part.member, part.ty);
            let probe = probe(ty);
            quote! {
                ::ferrozyme::__private::Field::of::<#ty>(
                    ::ferrozyme::__private::offset_of!(Self, #member),
                    #probe::LAYOUT,
                )
            }
        };
        return parts.iter().map(field).collect();
    }
    let has_parts = forms.iter().any(|form| !form.parts.is_empty());
    let kind = match has_parts {
        true => quote!(unknown),
        // Without fields an enum is an integer, and with a single variant it has no bytes.
        false if forms.len() > 1 => quote!(integer),
        false => return Vec::new(),
    };
    vec![quote!(::ferrozyme::__private::Field::#kind(0, ::core::mem::size_of::<Self>()))]
}

/// A pattern for each of the two values, and the pairs of names that they bind.
type Pair<'a> = (
    TokenStream,
    TokenStream,
    Vec<(&'a Part<'a>, TokenStream, TokenStream)>,
);

fn pair<'a>(form: &'a Form) -> Pair<'a> {
    let path = match form.name {
        Some(name) => quote!(Self::#name),
        None => quote!(Self),
    };
    let mut values = Vec::new();
    let mut shadows = Vec::new();
    let mut pairs = Vec::new();
    for (index, part) in form.parts.iter().enumerate() {
        let member = &part.member;
        let value = format_ident!("value_{index}", span = Span::mixed_site());
        let shadow = format_ident!("shadow_{index}", span = Span::mixed_site());
        values.push(quote!(#member: #value,));
        shadows.push(quote!(#member: #shadow,));
        pairs.push((part, quote!(#value), quote!(#shadow)));
    }
    (
        quote!(#path { #(#values)* .. }),
        quote!(#path { #(#shadows)* .. }),
        pairs,
    )
}

fn same_shape(forms: &[Form]) -> TokenStream {
    let arms = forms.iter().map(|form| {
        let (value, shadow, pairs) = pair(form);
        let questions = pairs.iter().map(|(part, value, shadow)| {
            let probe = probe(part.ty);
            quote!(&& (#probe::SAME_SHAPE)(#value, #shadow) && (#probe::SAME_TYPES)(#value, #shadow))
        });
        quote!((#value, #shadow) => true #(#questions)*,)
    });
    quote! {
        match (self, shadow) {
            #(#arms)*
            _ => false,
        }
    }
}

fn compare(forms: &[Form]) -> TokenStream {
    let arms = forms.iter().map(|form| {
        let (value, shadow, pairs) = pair(form);
        let checks = pairs.iter().map(|(part, value, shadow)| {
            let probe = probe(part.ty);
            let step = part.step();
            quote! {
                if let ::core::result::Result::Err(mismatch) = (#probe::COMPARE)(#value, #shadow) {
                    return ::core::result::Result::Err(mismatch.inside(#step));
                }
                if !(#probe::SAME_TYPES)(#value, #shadow) {
                    let mismatch = ::ferrozyme::__private::Mismatch::new("a trait object", "one of another type");
                    return ::core::result::Result::Err(mismatch.inside(#step));
                }
            }
        });
        quote! {
            (#value, #shadow) => {
                #(#checks)*
                ::core::result::Result::Ok(())
            }
        }
    });
    let names = forms.iter().map(|form| match form.name {
        Some(name) => {
            let text = format!("variant `{name}`");
            quote!(Self::#name { .. } => #text,)
        }
        None => quote!(_ => "",),
    });
    let names: Vec<TokenStream> = names.collect();
    quote! {
        match (self, shadow) {
            #(#arms)*
            _ => {
                let name = |value: &Self| match value {
                    #(#names)*
                    _ => "",
                };
                ::core::result::Result::Err(::ferrozyme::__private::Mismatch::new(name(self), name(shadow)))
            }
        }
    }
}

fn places(forms: &[Form]) -> TokenStream {
    let arms = forms.iter().map(|form| {
        let (value, _, pairs) = pair(form);
        let steps = pairs.iter().enumerate().map(|(index, (part, value, _))| {
            let probe = probe(part.ty);
            quote!(places.step(#index, |places| (#probe::PLACES)(#value, places));)
        });
        quote!(#value => { #(#steps)* })
    });
    quote! {
        places.inside(Self::LAYOUT, |places| match self {
            #(#arms)*
            _ => {}
        });
    }
}

fn fit(forms: &[Form]) -> TokenStream {
    let has_others = forms.len() > 1 && forms.iter().any(|form| !form.parts.is_empty());
    let arms = forms.iter().map(|form| {
        let (value, fitted, pairs) = pair(form);
        let calls = pairs.iter().map(|(part, value, shadow)| {
            let probe = probe(part.ty);
            quote!((#probe::FIT)(#value, #shadow);)
        });
        let clearing = has_others.then(|| {
            let fields = pairs.iter().map(|(_, _, shadow)| shadow);
            quote! {
                let fields = [#(::ferrozyme::__private::bytes_of(#fields)),*];
                ::ferrozyme::__private::clear_unused(shadow, &fields);
            }
        });
        quote!((#value, #fitted) => { #(#calls)* #clearing })
    });
    quote! {
        match (self, &mut *shadow) {
            #(#arms)*
            _ => {}
        }
    }
}
