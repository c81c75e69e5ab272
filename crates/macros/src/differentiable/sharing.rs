//! Inactive fields must not share memory with their clones.
//!
//! A shadow has a clone of an inactive field. If the clone points to the same memory as the field, derivatives of floats there would be
//! added to the value itself. Whether it may is a property of types: constants of `Differentiable` say so, level by level from the value itself to the memory that it owns, since a
//! type may own values of itself.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{GenericParam, Generics, Lifetime, Type};

use super::inside::{import, probe};
use super::{Form, Part};

/// The number of levels that are checked.
const STEPS: usize = 4;

fn parts<'a>(forms: &'a [Form]) -> impl Iterator<Item = &'a Part<'a>> {
    forms.iter().flat_map(|form| &form.parts)
}

/// The constants that say whether clones of the type share memory with it.
pub(super) fn constants(forms: &[Form]) -> TokenStream {
    let import = import();
    let constants = (0..STEPS).map(|step| {
        let name = format_ident!("SHARES_{step}");
        // The user's promise for an inactive field holds here, too.
        let asked = parts(forms).filter(|part| !part.unshared);
        let fields = asked.map(|part| {
            let (probe, ty) = (probe(part.ty), part.ty);
            quote! {
                || #probe::#name && ::core::mem::size_of::<#ty>() >= ::core::mem::size_of::<usize>()
            }
        });
        quote!(const #name: bool = { #import false #(#fields)* };)
    });
    constants.collect()
}

/// Stops the compilation if an inactive field may share memory with its clones. For use in a constant of the type.
pub(super) fn checks(forms: &[Form]) -> TokenStream {
    checks_of(forms, |ty| ty)
}

/// The same as an item, which `cargo check` evaluates too; nothing for generic types.
pub(super) fn early_checks(generics: &Generics, forms: &[Form]) -> TokenStream {
    let is_lifetime = |parameter: &GenericParam| matches!(parameter, GenericParam::Lifetime(_));
    let checks = checks_of(forms, |mut ty| {
        AnyLifetime.visit_type_mut(&mut ty);
        ty
    });
    if !generics.params.iter().all(is_lifetime) || checks.is_empty() {
        return TokenStream::new();
    }
    let import = import();
    quote! {
        const _: () = {
            #import
            #checks
        };
    }
}

fn checks_of(forms: &[Form], prepare: impl Fn(Type) -> Type) -> TokenStream {
    let asked = parts(forms).filter(|part| part.inactive && !part.unshared);
    let checks = asked.map(|part| {
        let ty = prepare(part.ty.clone());
        let probe = probe(&ty);
        let shares = (0..STEPS).map(|step| format_ident!("SHARES_{step}"));
        quote_spanned! { part.ty.span() =>
            ::ferrozyme::__private::require_owned::<#ty>(false #(|| #probe::#shares)*);
        }
    });
    checks.collect()
}

/// Lifetimes do not matter here.
struct AnyLifetime;

impl VisitMut for AnyLifetime {
    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        *lifetime = Lifetime::new("'static", Span::call_site());
    }
}
