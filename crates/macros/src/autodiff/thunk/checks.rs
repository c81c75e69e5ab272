//! Checks of shadows' shapes, before anything is computed.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::Type;

use super::{Lane, local};
use crate::autodiff::activity::Mode;
use crate::autodiff::check::is_plain;
use crate::autodiff::function::Function;
use crate::autodiff::signature::{Argument, Derivative};

/// How values of a type are compared with their shadows.
pub(super) fn comparison(target: &Type) -> TokenStream {
    let private = quote!(::ferrozyme::__private);
    let probe = quote!(#private::Probe::<#target>);
    quote! {
        const {
            #private::Comparison::<#target> {
                same_shape: #probe::SAME_SHAPE,
                compare: #probe::COMPARE,
                length: #probe::LENGTH,
                same_types: #probe::SAME_TYPES,
                variants: match #probe::LAYOUT.is_null() {
                    true => [#probe::VARIANTS, #probe::ELEMENT_VARIANTS],
                    false => [|_| 0; 2],
                },
            }
        }
    }
}

/// The names of a shadow and its argument in messages.
fn names(primal: &str, argument: &str, shadow: &str) -> TokenStream {
    quote! {
        const {
            &::ferrozyme::__private::Names {
                primal: concat!(module_path!(), #primal),
                argument: #argument,
                shadow: #shadow,
            }
        }
    }
}

/// Records about an argument that reverse mode may change, made before the request, and the check after it.
///
/// `value` and `shadow` are the slots, which hold references.
pub(super) fn changes(
    function: &Function,
    argument: &Argument,
    (value, shadow): (&Ident, &Ident),
    number: usize,
) -> Option<(TokenStream, TokenStream)> {
    let Type::Reference(reference) = &argument.ty else {
        return None;
    };
    if reference.mutability.is_none() || is_plain(&argument.ty) {
        return None;
    }
    let private = quote!(::ferrozyme::__private);
    let target = &*reference.elem;
    let name = argument.name.to_string();
    let primal = format!("::{}", function.signature.ident);
    let names = names(&primal, &name, &argument.shadows[number].to_string());
    let noted = local(&format!("{shadow}_before"), number);
    let comparison = comparison(target);
    let note = quote! {
        let #noted = {
            #[allow(unused_imports)]
            use #private::Unknown as _;
            #private::note_changes::<#target>(
                #comparison,
                #private::Probe::<#target>::PLACES,
                &**#value,
                &**#shadow,
            )
        };
    };
    let check = quote! {
        {
            #[allow(unused_imports)]
            use #private::Unknown as _;
            #private::check_changes::<#target>(
                &#noted,
                #comparison,
                #private::Probe::<#target>::PLACES,
                &**#value,
                &**#shadow,
                #names,
            );
        }
    };
    Some((note, check))
}

/// Checks the shadows of a lane, and gives their vectors the capacity of the primal's vectors.
pub(super) fn checks(function: &Function, derivative: &Derivative, lane: Lane) -> TokenStream {
    let private = quote!(::ferrozyme::__private);
    let primal = format!("::{}", function.signature.ident);
    let mut checks = TokenStream::new();
    let mut rebindings = TokenStream::new();
    for argument in &derivative.arguments {
        let Argument { name, ty, kind, .. } = argument;
        // The compared value, the access to it, and whether vectors in it may grow.
        let (target, borrow, may_grow) = match ty {
            Type::Ptr(_) => continue,
            ty if is_plain(ty) => continue,
            Type::Reference(reference) => {
                (&*reference.elem, quote!(&*), reference.mutability.is_some())
            }
            _ => (ty, quote!(&), true),
        };
        let argument_name = name.to_string();
        for shadow in lane.shadows(argument) {
            let shadow_name = shadow.to_string();
            let names = names(&primal, &argument_name, &shadow_name);
            let probe = quote!(#private::Probe::<#target>);
            let comparison = comparison(target);
            if kind.is_flat() {
                let width = derivative.width as usize;
                checks.extend(quote! {
                    #private::check_lanes(#comparison, #borrow #name, #borrow #shadow, #width, #names);
                });
                continue;
            }
            checks.extend(quote! {
                #private::check_shape::<#target>(
                    #comparison,
                    #borrow #name,
                    #borrow #shadow,
                    #names,
                );
            });
            if derivative.mode == Mode::Reverse {
                checks.extend(quote! {
                    #private::check_apart::<#target>(#borrow #name, #borrow #shadow, #names);
                });
            }
            if may_grow {
                let shadow = match ty {
                    Type::Reference(_) => quote!(&mut *#shadow),
                    _ => {
                        rebindings.extend(quote!(let mut #shadow = #shadow;));
                        quote!(&mut #shadow)
                    }
                };
                checks.extend(quote!((#probe::FIT)(#borrow #name, #shadow);));
            }
        }
    }
    if checks.is_empty() {
        return checks;
    }
    quote! {
        #rebindings
        {
            #[allow(unused_imports)]
            use #private::Unknown as _;
            #checks
        }
    }
}
