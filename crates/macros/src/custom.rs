//! `#[custom_derivative(…)]`: a derivative rule for a function.
//!
//! The function's body moves into a function with an interface that the driver knows, which is never inlined; each rule gets an
//! adapter with such an interface; a constant names them all.
//!
//! ```text
//! #[custom_derivative(reverse = rule)]    fn f(x: f64) -> f64 {
//! fn f(x: f64) -> f64 { … }                   #[inline(never)] extern "C-unwind" fn primal(x: f64) -> f64 { … }
//!                                         ==> extern "C-unwind" fn reverse(x: f64, seed: f64, mask: u64) -> f64 { rule(x, seed, Active(mask)) }
//!                                             #[used] static __FERROZYME_RULE: Registration = { primal, null, null, reverse };
//!                                             primal(x)
//!                                         }
//! ```

mod argument;
mod rules;

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, GenericParam, Ident, ItemFn, Path, Result, ReturnType, Token, Type};

use argument::Argument;

/// The function with its registration.
pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let result: Result<TokenStream> = syn::parse2(attribute).and_then(|rules: Rules| {
        let primal = Primal::parse(item.clone())?;
        Ok(register(&rules, &primal))
    });
    result.unwrap_or_else(|error| {
        let error = error.into_compile_error();
        quote!(#item #error)
    })
}

/// The functions that the attribute names.
#[derive(Default)]
struct Rules {
    forward: Option<Path>,
    augment: Option<Path>,
    reverse: Option<Path>,
}

impl Parse for Rules {
    fn parse(input: ParseStream) -> Result<Rules> {
        let span = input.span();
        let mut rules = Rules::default();
        let entries = Punctuated::<Entry, Token![,]>::parse_terminated(input)?;
        for Entry { name, path } in entries {
            let place = match name.to_string().as_str() {
                "forward" => &mut rules.forward,
                "augment" => &mut rules.augment,
                "reverse" => &mut rules.reverse,
                _ => {
                    return Err(Error::new(
                        name.span(),
                        format!(
                            "unknown rule `{name}`\nhelp: the rules are `forward`, `reverse` and `augment`"
                        ),
                    ));
                }
            };
            if place.replace(path).is_some() {
                return Err(Error::new(
                    name.span(),
                    format!("the rule `{name}` is given twice\nhelp: remove one"),
                ));
            }
        }
        if rules.forward.is_none() && rules.reverse.is_none() {
            return Err(Error::new(
                span,
                "custom_derivative needs a rule\nhelp: name the function that is the rule: `#[custom_derivative(reverse = f_reverse)]`, or `forward = …`, or both",
            ));
        }
        if let (Some(augment), None) = (&rules.augment, &rules.reverse) {
            return Err(Error::new_spanned(
                augment,
                "`augment` needs `reverse`\nhelp: it saves what the reverse sweep needs: name the rule of that as well, with `reverse = …`",
            ));
        }
        Ok(rules)
    }
}

struct Entry {
    name: Ident,
    path: Path,
}

impl Parse for Entry {
    fn parse(input: ParseStream) -> Result<Entry> {
        let name = input.parse()?;
        input.parse::<Token![=]>()?;
        let path = input.parse()?;
        Ok(Entry { name, path })
    }
}

/// The function that the derivative is of.
struct Primal {
    item: ItemFn,
    arguments: Vec<Argument>,
    /// A float, or nothing.
    result: Option<Type>,
}

impl Primal {
    fn parse(item: TokenStream) -> Result<Primal> {
        let item: ItemFn = syn::parse2(item.clone()).map_err(|_| {
            Error::new_spanned(
                item,
                "custom_derivative must be applied to a free function\nhelp: move the body of a method to a free function, and call it from there",
            )
        })?;
        let signature = &item.sig;
        if let Some(parameter) = signature
            .generics
            .params
            .iter()
            .find(|parameter| !matches!(parameter, GenericParam::Lifetime(_)))
        {
            return Err(Error::new_spanned(
                parameter,
                "custom_derivative can not be used for generic functions\nhelp: write a function for each type that it is used with",
            ));
        }
        if let Some(word) = signature.constness {
            return Err(Error::new(
                word.span,
                "custom_derivative can not be used for const functions\nhelp: remove `const`",
            ));
        }
        if let Some(word) = signature.asyncness {
            return Err(Error::new(
                word.span,
                "custom_derivative can not be used for async functions\nhelp: put it on a function without `async` that this one calls",
            ));
        }
        let arguments = signature
            .inputs
            .iter()
            .map(Argument::new)
            .collect::<Result<_>>()?;
        let result = match &signature.output {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => match &**ty {
                Type::Tuple(tuple) if tuple.elems.is_empty() => None,
                ty if argument::float_letter(ty).is_some() => Some(ty.clone()),
                ty => {
                    return Err(Error::new_spanned(
                        ty,
                        "custom_derivative is for functions that return a float or nothing\nhelp: write other results through a `&mut` argument",
                    ));
                }
            },
        };
        Ok(Primal {
            item,
            arguments,
            result,
        })
    }
}

fn register(given: &Rules, primal: &Primal) -> TokenStream {
    let private = quote!(::ferrozyme::__private);
    let ItemFn {
        attrs,
        vis,
        sig,
        block,
        ..
    } = &primal.item;
    let null = || (TokenStream::new(), quote!(#private::null()), String::new());
    let (forward_item, forward, forward_results) = given
        .forward
        .as_ref()
        .map_or_else(null, |path| rules::forward(path, primal));
    let (augment_item, augment, augment_results) = given
        .augment
        .as_ref()
        .map_or_else(null, |path| rules::augment(path, primal));
    let (reverse_item, reverse, reverse_results) =
        given.reverse.as_ref().map_or_else(null, |path| {
            rules::reverse(path, given.augment.as_ref(), primal)
        });

    let parameters = primal.arguments.iter().flat_map(Argument::parameters);
    let passed = primal.arguments.iter().flat_map(Argument::pass);
    let received = primal.arguments.iter().map(Argument::receive);
    let inputs = &sig.inputs;
    let lifetimes = &sig.generics;
    let clause = &sig.generics.where_clause;
    let output = &sig.output;
    let unsafety = &sig.unsafety;
    let call = quote!(__ferrozyme_body(#(#received),*));
    let otherwise = otherwise(primal);
    // LLVM clones large functions for calls with constants, and the driver would not recognise the clones. So the body of
    // a large function is kept out of the function that the driver recognises.
    let inline = match count_tokens(block.to_token_stream()) > LARGE {
        true => quote!(#[inline(never)]),
        false => quote!(#[inline(always)]),
    };
    quote! {
        #(#attrs)*
        #vis #sig {
            #inline
            #unsafety fn __ferrozyme_body #lifetimes (#inputs) #output #clause #block

            #[inline(never)]
            unsafe extern "C-unwind" fn __ferrozyme_primal(#(#parameters),*) #output {
                unsafe {
                    if #private::NEVER {
                        #otherwise
                    }
                    #call
                }
            }
            #forward_item
            #augment_item
            #reverse_item

            #[used]
            static __FERROZYME_RULE: #private::Registration = #private::Registration {
                magic: #private::Registration::MAGIC,
                primal: __ferrozyme_primal as *const (),
                forward: #forward,
                augment: #augment,
                reverse: #reverse,
                forward_results: #private::Text::new(#forward_results),
                augment_results: #private::Text::new(#augment_results),
                reverse_results: #private::Text::new(#reverse_results),
            };
            unsafe { __ferrozyme_primal(#(#passed),*) }
        }
    }
}

/// A branch that is never taken: it does something else with all floats of the function. Because of it LLVM cannot
/// infer the function's result, nor that an argument is unused, for which it would then pass anything.
fn otherwise(primal: &Primal) -> TokenStream {
    let is_float = |argument: &&Argument| matches!(argument.form, argument::Form::Float);
    let floats = primal
        .arguments
        .iter()
        .filter(is_float)
        .map(Argument::value);
    match &primal.result {
        Some(ty) => quote!(return 1.0 #(+ #floats as #ty)*;),
        None => quote!(::ferrozyme::__private::never_returns(&[#(#floats as f64),*]);),
    }
}

/// The number of tokens from which a function counts as large.
const LARGE: usize = 100;

fn count_tokens(tokens: TokenStream) -> usize {
    let count = |token| match token {
        TokenTree::Group(group) => count_tokens(group.stream()),
        _ => 1,
    };
    tokens.into_iter().map(count).sum()
}
