//! The derivative's body: every argument, shadow and result goes into a slot, and a request stands for the computation.
//!
//! The primal's shim and the descriptor are constants in the call itself, so that the driver sees them in debug builds, too.
//! The shim is a closure that takes pointers to the slots, reads the arguments, calls the primal and writes the result;
//! as a closure it may use the generic parameters around it, which a nested function could not.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::Type;

use super::activity::{Kind, Mode};
use super::check::is_plain;
use super::function::Function;
use super::place::Place;
use super::signature::{Argument, Derivative, Outcome, primal_path};

/// The derivative as an item.
pub(crate) fn derivative(
    function: &Function,
    place: Place,
    derivative: &Derivative,
) -> TokenStream {
    let documentation = documentation(function, derivative);
    let attributes = kept_attributes(function);
    let track_caller = derivative
        .signature
        .abi
        .is_none()
        .then(|| quote!(#[track_caller]));
    let visibility = &function.visibility;
    let signature = &derivative.signature;
    let body = body(function, place, derivative);
    quote! {
        #[doc = #documentation]
        #(#attributes)*
        #track_caller
        #[allow(clippy::too_many_arguments, clippy::type_complexity, unused_unsafe)]
        #visibility #signature { #body }
    }
}

/// Conditions and lint levels hold for the derivative as well; what else stands on the primal is about its body.
fn kept_attributes(function: &Function) -> impl Iterator<Item = &syn::Attribute> {
    function.attributes.iter().filter(|attribute| {
        ["cfg", "allow", "warn", "deny", "forbid"]
            .iter()
            .any(|name| attribute.path().is_ident(name))
    })
}

fn documentation(function: &Function, derivative: &Derivative) -> String {
    let primal = &function.signature.ident;
    let mode = match derivative.mode {
        Mode::Forward => "forward",
        Mode::Reverse => "reverse",
    };
    format!("The {mode}-mode derivative of `{primal}`, made by Ferrozyme.")
}

fn local(name: &str, index: usize) -> Ident {
    format_ident!("{name}_{index}", span = Span::mixed_site())
}

fn body(function: &Function, place: Place, derivative: &Derivative) -> TokenStream {
    let private = quote!(::ferrozyme::__private);
    let width = derivative.width as usize;
    let mut slots = Vec::new();
    let mut pointers = Vec::new();
    let mut gradients = Vec::new();

    for (index, argument) in derivative.arguments.iter().enumerate() {
        let Argument {
            name,
            ty,
            kind,
            shadows,
        } = argument;
        let slot = local("slot", index);
        slots.push(quote!(let mut #slot = #private::ManuallyDrop::new(#name);));
        pointers.push(quote!(&raw mut #slot as *mut #private::c_void));
        for (lane, shadow) in shadows.iter().enumerate() {
            let slot = local(&format!("shadow_{index}"), lane);
            slots.push(quote!(let mut #slot = #private::ManuallyDrop::new(#shadow);));
            pointers.push(quote!(&raw mut #slot as *mut #private::c_void));
        }
        if *kind == Kind::Active {
            for lane in 0..width {
                let slot = local(&format!("gradient_{index}"), lane);
                slots.push(quote!(let mut #slot = #private::MaybeUninit::<#ty>::zeroed();));
                pointers.push(quote!(&raw mut #slot as *mut #private::c_void));
            }
            let first = local(&format!("gradient_{index}"), 0);
            gradients.push(quote!(#first.assume_init()));
        }
    }

    let result = Ident::new("result", Span::mixed_site());
    let mut tangents = Vec::new();
    if let Some(Outcome { ty, kind, seed }) = &derivative.outcome {
        slots.push(quote!(let mut #result = #private::MaybeUninit::<#ty>::uninit();));
        pointers.push(quote!(&raw mut #result as *mut #private::c_void));
        for lane in 0..width {
            let slot = match (seed, kind) {
                (Some(seed), _) => {
                    let slot = local("seed", lane);
                    slots.push(quote!(let mut #slot = #private::ManuallyDrop::new(unsafe { #private::read(&raw const #seed) });));
                    slot
                }
                (None, Kind::Const) => break,
                (None, _) => {
                    let slot = local("tangent", lane);
                    slots.push(quote!(let mut #slot = #private::MaybeUninit::<#ty>::uninit();));
                    tangents.push(quote!(#slot.assume_init()));
                    slot
                }
            };
            pointers.push(quote!(&raw mut #slot as *mut #private::c_void));
        }
    }

    let shim = shim(&primal_path(function, place), derivative);
    let descriptor = descriptor(function, derivative);
    let checks = checks(function, derivative);
    let value = returned(derivative, &result, &tangents, &gradients);
    quote! {
        const { #private::require_driver() };
        #checks
        #(#slots)*
        unsafe {
            #private::__ferrozyme_request(#shim, #descriptor, #(#pointers),*);
            #value
        }
    }
}

/// Checks the shapes of shadows, before anything is computed.
fn checks(function: &Function, derivative: &Derivative) -> TokenStream {
    let private = quote!(::ferrozyme::__private);
    let primal = format!("::{}", function.signature.ident);
    let mut checks = TokenStream::new();
    let mut rebindings = TokenStream::new();
    for argument in &derivative.arguments {
        let Argument { name, ty, kind, .. } = argument;
        // What is to be compared, how to get at it, and whether vectors in it may grow.
        let (target, borrow, may_grow) = match ty {
            Type::Ptr(_) => continue,
            ty if is_plain(ty) => continue,
            Type::Reference(reference) => {
                (&*reference.elem, quote!(&*), reference.mutability.is_some())
            }
            _ => (ty, quote!(&), true),
        };
        let argument_name = name.to_string();
        for shadow in &argument.shadows {
            let shadow_name = shadow.to_string();
            let names = quote! {
                const {
                    &#private::Names {
                        primal: concat!(module_path!(), #primal),
                        argument: #argument_name,
                        shadow: #shadow_name,
                    }
                }
            };
            let probe = quote!(#private::Probe::<#target>);
            let comparison = quote! {
                const {
                    #private::Comparison::<#target> {
                        same_shape: #probe::SAME_SHAPE,
                        compare: #probe::COMPARE,
                        length: #probe::LENGTH,
                    }
                }
            };
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

/// The primal with a slot for every argument and the result.
fn shim(primal: &TokenStream, derivative: &Derivative) -> TokenStream {
    let private = quote!(::ferrozyme::__private);
    let slots: Vec<Ident> = (0..derivative.arguments.len())
        .map(|index| local("slot", index))
        .collect();
    let types = derivative.arguments.iter().map(|argument| &argument.ty);
    let call = quote!(#primal(#(#private::read::<#types>(#slots)),*));
    let (result, call) = match &derivative.outcome {
        None => (None, call),
        Some(Outcome { ty, .. }) => {
            let result = Ident::new("result", Span::mixed_site());
            (
                Some(result.clone()),
                quote!(#private::write::<#ty>(#result, #call)),
            )
        }
    };
    let parameters: Vec<&Ident> = slots.iter().chain(&result).collect();
    let holes = parameters.iter().map(|_| quote!(_));
    quote! {
        const {
            let shim: fn(#(#holes),*) = |#(#parameters),*| unsafe { #call };
            shim as *const ()
        }
    }
}

fn descriptor(function: &Function, derivative: &Derivative) -> TokenStream {
    let private = quote!(::ferrozyme::__private);
    let mode = derivative.mode.code();
    let width = derivative.width;
    let primal = format!("::{}", function.signature.ident);
    let name = derivative.signature.ident.to_string();
    let arguments = derivative.arguments.iter().map(|argument| {
        let Argument { name, ty, kind, .. } = argument;
        let name = name.to_string();
        let code = kind.code();
        let flags = flags(ty);
        quote!(#private::Slot::argument::<#ty>(#name, #code, #flags, #private::Probe::<#ty>::LAYOUT))
    });
    let result = derivative.outcome.iter().map(|Outcome { ty, kind, .. }| {
        let code = match only_and_both(*kind) {
            // The primal's result has to be dropped if it owns something, so it has to be there.
            Some((only, both)) => quote!(if #private::needs_drop::<#ty>() { #both } else { #only }),
            None => {
                let code = kind.code();
                quote!(#code)
            }
        };
        quote!(#private::Slot::result::<#ty>(#code, #private::Probe::<#ty>::LAYOUT))
    });
    let slots: Vec<TokenStream> = arguments.chain(result).collect();
    let count = slots.len();
    quote! {
        const {
            #[allow(unused_imports)]
            use #private::Unknown as _;
            &#private::Descriptor {
                magic: #private::Descriptor::MAGIC,
                mode: #mode,
                width: #width,
                line: line!(),
                column: column!(),
                file: #private::Text::new(file!()),
                primal: #private::Text::new(concat!(module_path!(), #primal)),
                derivative: #private::Text::new(#name),
                slots: #private::start_of(const { &[#(#slots),*] }),
                slot_count: #count,
            }
        }
    }
}

/// For a result of which only the derivative is wanted: its activity, and the one that keeps the result.
fn only_and_both(kind: Kind) -> Option<(u32, u32)> {
    match kind {
        Kind::ActiveOnly => Some((Kind::ActiveOnly.code(), Kind::Active.code())),
        Kind::DualOnly => Some((Kind::DualOnly.code(), Kind::Dual.code())),
        _ => None,
    }
}

/// What the driver may assume about the memory behind a reference.
fn flags(ty: &Type) -> TokenStream {
    let private = quote!(::ferrozyme::__private);
    match ty {
        Type::Reference(reference) => {
            let target = &reference.elem;
            match reference.mutability {
                Some(_) => quote!(#private::unique_flag(#private::Probe::<#target>::UNPIN)),
                None => quote!(#private::shared_flag(
                    #private::Probe::<#target>::FROZEN
                        || #private::Probe::<#target>::COPY
                        || #private::Probe::<#target>::SLICE_OF_COPY
                )),
            }
        }
        _ => quote!(0),
    }
}

/// What the derivative returns, from slots that the request has filled.
fn returned(
    derivative: &Derivative,
    result: &Ident,
    tangents: &[TokenStream],
    gradients: &[TokenStream],
) -> TokenStream {
    let private = quote!(::ferrozyme::__private);
    let Some(Outcome { ty, kind, .. }) = &derivative.outcome else {
        return match gradients {
            [] => TokenStream::new(),
            [only] => only.clone(),
            _ => quote!((#(#gradients),*)),
        };
    };
    let value = quote!(#result.assume_init());
    let drop_result = only_and_both(*kind)
        .map(|_| quote!(if const { #private::needs_drop::<#ty>() } { #result.assume_init_drop() }));
    let parts: Vec<&TokenStream> = match drop_result {
        Some(_) => tangents.iter().chain(gradients).collect(),
        None => [&value]
            .into_iter()
            .chain(tangents)
            .chain(gradients)
            .collect(),
    };
    let value = match (&parts[..], derivative.mode, derivative.width) {
        ([], ..) => TokenStream::new(),
        ([only], ..) => quote!(#only),
        (parts, Mode::Forward, width) if width > 1 => quote!([#(#parts),*]),
        (parts, ..) => quote!((#(#parts),*)),
    };
    quote!(#drop_result #value)
}
