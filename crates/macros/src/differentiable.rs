//! `#[derive(Differentiable)]`: the layout and the shadow of a struct or enum.
//!
//! ```text
//! struct S {          unsafe impl Differentiable for S { LAYOUT: f64 at offset_of a, Vec<f64> at offset_of b; … }
//!     a: f64,    ==>  impl Shadow for S {
//!     b: Vec<f64>         fn shadow(&self) -> S { S { a: shadow of self.a, b: shadow of self.b } }
//! }                   }
//! ```

mod inside;
mod shadow;
mod sharing;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{
    Attribute, Data, DeriveInput, Error, Fields, GenericParam, Generics, Ident, Member, Result,
    Type, parse_quote,
};

/// The implementations for a type.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    let result = syn::parse2(input).and_then(|input| derive(&input));
    result.unwrap_or_else(Error::into_compile_error)
}

fn derive(input: &DeriveInput) -> Result<TokenStream> {
    check(input)?;
    let variants = variants(input)?;
    let mut items = inside::implementation(input, &variants);
    let [no_shadow] = options(&input.attrs, ["no_shadow"])?;
    if !no_shadow && !variants.iter().any(shadow::borrows) {
        items.extend(shadow::implementation(input, &variants));
    }
    Ok(items)
}

fn check(input: &DeriveInput) -> Result<()> {
    if let Data::Union(data) = &input.data {
        return Err(Error::new(
            data.union_token.span,
            "Differentiable can not be derived for unions\n\
             help: use an enum: which field of a union is in use is not known",
        ));
    }
    for attribute in input
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("repr"))
    {
        if attribute.to_token_stream().to_string().contains("packed") {
            return Err(Error::new_spanned(
                attribute,
                "Differentiable can not be derived for packed structs\n\
                 help: take `packed` away: there can be no references to unaligned fields",
            ));
        }
    }
    Ok(())
}

/// A variant of an enum, or the one form of a struct.
struct Form<'a> {
    /// Absent for a struct.
    name: Option<&'a Ident>,
    parts: Vec<Part<'a>>,
}

/// A field.
struct Part<'a> {
    member: Member,
    ty: &'a Type,
    /// The user declares that it has no derivative.
    inactive: bool,
    /// The user promises that its clones do not share its memory.
    unshared: bool,
}

impl Part<'_> {
    /// The path to it, as in messages.
    fn step(&self) -> String {
        match &self.member {
            Member::Named(name) => format!(".{name}"),
            Member::Unnamed(index) => format!(".{}", index.index),
        }
    }
}

fn variants(input: &DeriveInput) -> Result<Vec<Form<'_>>> {
    match &input.data {
        Data::Struct(data) => Ok(vec![Form {
            name: None,
            parts: parts(&data.fields)?,
        }]),
        Data::Enum(data) => {
            let forms = data.variants.iter().map(|variant| {
                Ok(Form {
                    name: Some(&variant.ident),
                    parts: parts(&variant.fields)?,
                })
            });
            forms.collect()
        }
        Data::Union(_) => Ok(Vec::new()),
    }
}

fn parts(fields: &Fields) -> Result<Vec<Part<'_>>> {
    let parts = fields.members().zip(fields).map(|(member, field)| {
        let [inactive, unshared] = options(&field.attrs, ["inactive", "unshared"])?;
        if unshared && !inactive {
            return Err(Error::new_spanned(
                field,
                "`unshared` is for fields that are `inactive`\nhelp: write `#[differentiable(inactive, unshared)]`",
            ));
        }
        Ok(Part {
            member,
            ty: &field.ty,
            inactive,
            unshared,
        })
    });
    parts.collect()
}

/// The names in `#[differentiable(…)]`; anything else in such an attribute is an error.
fn options<const N: usize>(attributes: &[Attribute], names: [&str; N]) -> Result<[bool; N]> {
    let mut found = [false; N];
    for attribute in attributes {
        if attribute.path().is_ident("differentiable") {
            attribute.parse_nested_meta(|meta| {
                let Some(index) = names.iter().position(|name| meta.path.is_ident(name)) else {
                    return Err(meta.error(format!(
                        "unknown option of Differentiable\nhelp: there is `#[differentiable({})]` here",
                        names[0]
                    )));
                };
                found[index] = true;
                Ok(())
            })?;
        }
    }
    Ok(found)
}

/// The generics with one more bound on every type parameter.
fn with_bounds(generics: &Generics, bound: impl Fn(&Ident) -> TokenStream) -> Generics {
    let mut generics = generics.clone();
    for parameter in &mut generics.params {
        if let GenericParam::Type(parameter) = parameter {
            let bound = bound(&parameter.ident);
            parameter.bounds.push(parse_quote!(#bound));
        }
    }
    generics
}
