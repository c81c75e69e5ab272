//! The arguments of a function with a custom derivative: how each is passed to the functions that the driver knows.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Error, FnArg, Ident, Pat, Result, Type};

/// An argument.
pub(super) struct Argument {
    pub(super) name: Ident,
    pub(super) ty: Type,
    pub(super) form: Form,
}

/// The kind of an argument, which determines its derivative.
pub(super) enum Form {
    /// A float by value.
    Float,
    /// An integer, a truth value or a character: it has no derivative.
    Discrete,
    /// A reference to a value of this type.
    Reference { target: Type, mutable: bool },
    /// A reference to a slice of elements of this type.
    Slice { element: Type, mutable: bool },
}

/// The letter of a float's type.
pub(super) fn float_letter(ty: &Type) -> Option<char> {
    match name_of(ty)?.as_str() {
        "f32" => Some('s'),
        "f64" => Some('d'),
        _ => None,
    }
}

fn name_of(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        Type::Paren(inner) => name_of(&inner.elem),
        Type::Group(inner) => name_of(&inner.elem),
        _ => None,
    }
}

impl Argument {
    pub(super) fn new(input: &FnArg) -> Result<Argument> {
        let FnArg::Typed(typed) = input else {
            return Err(Error::new_spanned(
                input,
                "custom_derivative can not be used for methods\nhelp: move the body to a free function, and call it from the method",
            ));
        };
        let Pat::Ident(pattern) = &*typed.pat else {
            return Err(Error::new_spanned(
                &typed.pat,
                "an argument of a function with a custom derivative must be a name, not a pattern\nhelp: give the argument a name, and destructure it in the body with `let`",
            ));
        };
        let ty = (*typed.ty).clone();
        let form = match &ty {
            Type::Reference(reference) => {
                let mutable = reference.mutability.is_some();
                match &*reference.elem {
                    Type::Slice(slice) => Form::Slice {
                        element: (*slice.elem).clone(),
                        mutable,
                    },
                    Type::TraitObject(_) => return Err(unsuitable(&ty)),
                    target if name_of(target).is_some_and(|name| name == "str") => {
                        return Err(unsuitable(&ty));
                    }
                    target => Form::Reference {
                        target: target.clone(),
                        mutable,
                    },
                }
            }
            ty => match (float_letter(ty), name_of(ty).as_deref()) {
                (Some(_), _) => Form::Float,
                (
                    None,
                    Some(
                        "bool" | "char" | "i8" | "i16" | "i32" | "i64" | "isize" | "u8" | "u16"
                        | "u32" | "u64" | "usize",
                    ),
                ) => Form::Discrete,
                _ => return Err(unsuitable(ty)),
            },
        };
        Ok(Argument {
            name: pattern.ident.clone(),
            ty,
            form,
        })
    }

    fn local(&self, prefix: &str) -> Ident {
        format_ident!(
            "{prefix}_{}",
            syn::ext::IdentExt::unraw(&self.name),
            span = Span::mixed_site()
        )
    }

    /// The parameter that holds its value or its address.
    pub(super) fn value(&self) -> Ident {
        self.local("value")
    }

    fn length(&self) -> Ident {
        self.local("length")
    }

    /// The name of its tangent or shadow.
    pub(super) fn shadow(&self) -> Ident {
        self.local("shadow")
    }

    /// The corresponding parameters of the primal.
    pub(super) fn parameters(&self) -> Vec<TokenStream> {
        self.parameters_with_shadow(false, false)
    }

    /// The corresponding parameters of a rule: a pointer, and if requested a float, is followed by its shadow.
    pub(super) fn parameters_with_shadow(&self, pointers: bool, floats: bool) -> Vec<TokenStream> {
        let (value, shadow, length) = (self.value(), self.shadow(), self.length());
        let ty = &self.ty;
        let mut parameters = Vec::new();
        match &self.form {
            Form::Float => {
                parameters.push(quote!(#value: #ty));
                if floats {
                    parameters.push(quote!(#shadow: #ty));
                }
            }
            Form::Discrete => parameters.push(quote!(#value: #ty)),
            Form::Reference { target, .. }
            | Form::Slice {
                element: target, ..
            } => {
                parameters.push(quote!(#value: *mut #target));
                if pointers {
                    parameters.push(quote!(#shadow: *mut #target));
                }
            }
        }
        if let Form::Slice { .. } = self.form {
            parameters.push(quote!(#length: usize));
        }
        parameters
    }

    /// The number of corresponding parameters of the primal.
    pub(super) fn parameter_count(&self) -> usize {
        1 + usize::from(matches!(self.form, Form::Slice { .. }))
    }

    /// The user's argument as the primal's parameters.
    pub(super) fn pass(&self) -> Vec<TokenStream> {
        let name = &self.name;
        match &self.form {
            Form::Float | Form::Discrete => vec![quote!(#name)],
            Form::Reference {
                target,
                mutable: true,
            } => vec![quote!(#name as *mut #target)],
            Form::Reference {
                target,
                mutable: false,
            } => vec![quote!(#name as *const #target as *mut #target)],
            Form::Slice { mutable: true, .. } => {
                vec![quote!(#name.as_mut_ptr()), quote!(#name.len())]
            }
            Form::Slice {
                element,
                mutable: false,
            } => {
                vec![quote!(#name.as_ptr() as *mut #element), quote!(#name.len())]
            }
        }
    }

    /// The user's argument from the primal's parameters.
    pub(super) fn receive(&self) -> TokenStream {
        match &self.form {
            Form::Reference { mutable: true, .. } | Form::Slice { mutable: true, .. } => {
                self.receive_unique(&self.value())
            }
            _ => self.receive_shared(&self.value()),
        }
    }

    /// The argument, or a tangent of it, for reading.
    pub(super) fn receive_shared(&self, from: &Ident) -> TokenStream {
        let length = self.length();
        match &self.form {
            Form::Float | Form::Discrete => quote!(#from),
            Form::Reference { .. } => quote!(&*#from),
            Form::Slice { .. } => quote!(::ferrozyme::__private::slice(#from, #length)),
        }
    }

    /// The argument, or a shadow of it, for writing.
    pub(super) fn receive_unique(&self, from: &Ident) -> TokenStream {
        let length = self.length();
        match &self.form {
            Form::Float | Form::Discrete => quote!(#from),
            Form::Reference { .. } => quote!(&mut *#from),
            Form::Slice { .. } => quote!(::ferrozyme::__private::slice_mut(#from, #length)),
        }
    }

    /// A shadow of it that may be aliased by other arguments.
    pub(super) fn receive_cells(&self, from: &Ident) -> TokenStream {
        let length = self.length();
        match &self.form {
            Form::Float | Form::Discrete => quote!(#from),
            Form::Reference { .. } => quote!(::ferrozyme::__private::cell(#from)),
            Form::Slice { .. } => quote!(::ferrozyme::__private::cells(#from, #length)),
        }
    }
}

fn unsuitable(ty: &Type) -> Error {
    Error::new_spanned(
        ty,
        "custom_derivative is for functions of floats, integers, and references to sized types and slices\nhelp: take other arguments by reference",
    )
}
