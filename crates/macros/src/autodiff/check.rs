//! Checks that an attribute fits its function. All errors are reported, not only the first.
//!
//! The first line of an error is what rustc's own macros print for the same mistake; mistakes that these accept silently or crash
//! on have messages of our own. The second line says what to do. After this check a signature can be made.

use std::fmt::Display;

use proc_macro2::Span;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{Error, FnArg, Ident, Pat, PatIdent, Result, ReturnType, Signature, Type, TypeImplTrait};

use super::activity::{Activity, Kind, Mode};
use super::arguments::Arguments;

/// Compares them; all errors are in the one that is returned.
pub(crate) fn check(function: &Signature, attribute: &Arguments) -> Result<()> {
    let mut errors = Vec::new();
    check_head(function, &mut errors);
    let result = result_type(function);
    let expected = function.inputs.len() + usize::from(result.is_some());
    if attribute.activities.len() != expected {
        errors.push(wrong_number(function, attribute, result.as_ref()));
    } else {
        for (input, &activity) in function.inputs.iter().zip(&attribute.activities) {
            errors.extend(check_argument(input, activity, attribute.mode).err());
        }
        if let Some(ty) = &result {
            let activity = attribute.activities[function.inputs.len()];
            errors.extend(check_result(ty, activity, attribute.mode).err());
        }
        if errors.is_empty() {
            check_lanes(function, attribute, &mut errors);
            check_shadow_names(function, attribute, &mut errors);
        }
    }
    let mut errors = errors.into_iter();
    let Some(mut first) = errors.next() else {
        return Ok(());
    };
    errors.for_each(|error| first.combine(error));
    Err(first)
}

/// An error whose second line says what to do.
pub(crate) fn error(span: Span, message: impl Display, help: impl Display) -> Error {
    Error::new(span, format!("{message}\nhelp: {help}"))
}

/// The same about several tokens.
pub(crate) fn error_on(tokens: impl ToTokens, message: impl Display, help: impl Display) -> Error {
    Error::new_spanned(tokens, format!("{message}\nhelp: {help}"))
}

/// The type that a function returns, if it is not `()`.
pub(crate) fn result_type(signature: &Signature) -> Option<Type> {
    match &signature.output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => match &**ty {
            Type::Tuple(tuple) if tuple.elems.is_empty() => None,
            ty => Some(ty.clone()),
        },
    }
}

/// `self`, or the name of an argument that has one.
pub(crate) fn argument_name(input: &FnArg) -> Option<Ident> {
    match input {
        FnArg::Receiver(receiver) => Some(Ident::new("self", receiver.self_token.span)),
        FnArg::Typed(typed) => match &*typed.pat {
            Pat::Ident(PatIdent {
                by_ref: None,
                subpat: None,
                ident,
                ..
            }) => Some(ident.clone()),
            _ => None,
        },
    }
}

/// The type of an argument.
pub(crate) fn argument_type(input: &FnArg) -> &Type {
    match input {
        FnArg::Receiver(receiver) => &receiver.ty,
        FnArg::Typed(typed) => &typed.ty,
    }
}

fn check_head(function: &Signature, errors: &mut Vec<Error>) {
    if let Some(word) = function.asyncness {
        errors.push(error(
            word.span,
            "autodiff can not be used for async functions",
            "differentiate the computation in a function without `async`, and call its derivative here",
        ));
    }
    if let Some(variadic) = &function.variadic {
        errors.push(error_on(
            variadic,
            "autodiff can not be used for variadic functions",
            "name each argument",
        ));
    }
    if let Some(anonymous) = anonymous_result(&function.output) {
        errors.push(error_on(
            anonymous,
            "autodiff can not be used for functions that return `impl Trait`",
            "name the result type: the derivative returns it, too",
        ));
    }
    for input in &function.inputs {
        let FnArg::Typed(typed) = input else { continue };
        if argument_name(input).is_some() {
            continue;
        }
        errors.push(match &*typed.pat {
            Pat::Wild(pattern) => error_on(
                pattern,
                "an argument of a differentiated function must have a name",
                "write a name in place of `_`: the names of its shadows are derived from it",
            ),
            pattern => error_on(
                pattern,
                "an argument of a differentiated function must be a name, not a pattern",
                "give the argument a name, and destructure it in the body with `let`",
            ),
        });
    }
}

/// The `impl Trait` in the result of a function.
pub(crate) fn anonymous_result(output: &ReturnType) -> Option<TypeImplTrait> {
    struct Finder(Option<TypeImplTrait>);
    impl<'ast> Visit<'ast> for Finder {
        fn visit_type_impl_trait(&mut self, ty: &'ast TypeImplTrait) {
            self.0 = Some(ty.clone());
        }
    }
    let mut finder = Finder(None);
    visit::visit_return_type(&mut finder, output);
    finder.0
}

fn wrong_number(function: &Signature, attribute: &Arguments, result: Option<&Type>) -> Error {
    let inputs = function.inputs.len();
    let expected = inputs + usize::from(result.is_some());
    let found = attribute.activities.len();
    let names: Vec<String> = function
        .inputs
        .iter()
        .map(|input| argument_name(input).map_or("_".to_owned(), |name| format!("`{name}`")))
        .chain(result.map(|ty| format!("the result `{}`", text_of(ty))))
        .collect();
    let help = match result {
        Some(ty) if found == inputs => {
            format!(
                "the result `{}` needs an activity, too, after those of the arguments",
                text_of(ty)
            )
        }
        None if found == inputs + 1 => {
            "the function returns nothing, so there is no activity for its result".to_owned()
        }
        _ if names.is_empty() => "the function has neither arguments nor a result".to_owned(),
        _ => format!("give one activity for each of: {}", names.join(", ")),
    };
    let surplus = attribute.activities.get(expected);
    let span = surplus.map_or(Span::call_site(), |activity| activity.span);
    error(
        span,
        format!("expected {expected} activities, but found {found}"),
        help,
    )
}

fn check_argument(input: &FnArg, activity: Activity, mode: Mode) -> Result<()> {
    let Activity { kind, span } = activity;
    let name = kind.name();
    if !kind.suits_argument(mode) {
        let help = match (mode, kind) {
            (_, Kind::ActiveOnly) => {
                "ActiveOnly is for results: an argument is `Active`, `Duplicated` or `Const`"
            }
            (Mode::Forward, _) => {
                "in forward mode an argument is `Dual`, `DualOnly`, `Dualv`, `DualvOnly` or `Const`"
            }
            (Mode::Reverse, _) => {
                "in reverse mode an argument is `Active`, `Duplicated`, `DuplicatedOnly` or `Const`"
            }
        };
        return Err(error(
            span,
            format!("{name} can not be used in {} Mode", mode.name()),
            help,
        ));
    }
    let ty = argument_type(input);
    let unsuitable =
        |help: &str| error(span, format!("{name} can not be used for this type"), help);
    match kind {
        Kind::Active => check_active(ty).map_err(unsuitable),
        Kind::Duplicated | Kind::DuplicatedOnly => match ty {
            Type::Reference(_) | Type::Ptr(_) => Ok(()),
            Type::Path(_) if is_scalar(ty) == Some(Scalar::Float) => Err(unsuitable(
                "a float by value is `Active`: its gradient is returned",
            )),
            _ => Err(unsuitable(
                "take the argument by reference: its gradient is accumulated behind a second reference, the shadow",
            )),
        },
        Kind::Dualv | Kind::DualvOnly => match ty {
            Type::Reference(reference) if matches!(&*reference.elem, Type::Slice(_)) => Ok(()),
            _ => Err(unsuitable(
                "it is for slices, whose shadow is one slice of WIDTH times the length; for other types use `Dual`",
            )),
        },
        _ => Ok(()),
    }
}

fn check_result(ty: &Type, activity: Activity, mode: Mode) -> Result<()> {
    let Activity { kind, span } = activity;
    if !kind.suits_result(mode) {
        let help = match mode {
            Mode::Forward => "in forward mode a result is `Dual`, `DualOnly` or `Const`",
            Mode::Reverse => "in reverse mode a result is `Active`, `ActiveOnly` or `Const`",
        };
        let message = format!(
            "invalid return activity {} in {} Mode",
            kind.name(),
            mode.name()
        );
        return Err(error(span, message, help));
    }
    if matches!(kind, Kind::Active | Kind::ActiveOnly) && check_active(ty).is_err() {
        return Err(error(
            span,
            format!("{} can not be used for this type", kind.name()),
            "return a float, or write the result through a `&mut` argument that is `Duplicated`",
        ));
    }
    Ok(())
}

/// Gradients that are returned by value must consist of floats, judged by the name of the type.
fn check_active(ty: &Type) -> std::result::Result<(), &'static str> {
    match ty {
        Type::Reference(_) | Type::Ptr(_) => Err(
            "a reference is `Duplicated`: its gradient is accumulated behind a second reference, the shadow",
        ),
        Type::Slice(_) | Type::BareFn(_) | Type::TraitObject(_) | Type::Never(_) => Err(
            "only floats, and arrays, tuples and structs of floats, have a gradient that can be returned",
        ),
        Type::Paren(inner) => check_active(&inner.elem),
        Type::Group(inner) => check_active(&inner.elem),
        Type::Array(array) => check_active(&array.elem),
        _ => match is_scalar(ty) {
            Some(Scalar::Discrete) => {
                Err("only floats have derivatives: mark the argument `Const`")
            }
            Some(Scalar::Owner) => Err(
                "a value that owns memory can not be returned as a gradient: take it by reference and mark it `Duplicated`",
            ),
            _ => Ok(()),
        },
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scalar {
    Float,
    Discrete,
    Owner,
}

/// Whether it is a float or an integer, which has no shape.
pub(crate) fn is_plain(ty: &Type) -> bool {
    matches!(is_scalar(ty), Some(Scalar::Float | Scalar::Discrete))
}

/// The kind of a type, if its name is well known.
fn is_scalar(ty: &Type) -> Option<Scalar> {
    let Type::Path(path) = ty else { return None };
    let name = path.path.segments.last()?.ident.to_string();
    match name.as_str() {
        "f16" | "f32" | "f64" | "f128" => Some(Scalar::Float),
        "bool" | "char" | "str" | "i8" | "i16" | "i32" | "i64" | "i128" | "isize" | "u8"
        | "u16" | "u32" | "u64" | "u128" | "usize" => Some(Scalar::Discrete),
        "Vec" | "Box" | "Rc" | "Arc" | "String" => Some(Scalar::Owner),
        _ => None,
    }
}

/// With a width, an active argument has one gradient for each lane, but only one is returned. That is right
/// only if all lanes have the same seed, which is the result's; seeds behind mutable references differ.
fn check_lanes(function: &Signature, attribute: &Arguments, errors: &mut Vec<Error>) {
    if attribute.mode == Mode::Forward || attribute.width == 1 {
        return;
    }
    let arguments = || function.inputs.iter().zip(&attribute.activities);
    for (_, activity) in arguments().filter(|(input, _)| {
        matches!(argument_type(input), Type::Ptr(pointer) if pointer.mutability.is_some())
    }) {
        errors.push(error(
            activity.span,
            format!("`*mut` can not be used with width {} in Reverse Mode", attribute.width),
            "gradients are computed one after the other, and the size of the memory to restore in between is not known: use `&mut`",
        ));
    }
    let seeded = arguments().find(|(input, activity)| {
        activity.kind != Kind::Const
            && match argument_type(input) {
                Type::Reference(reference) => reference.mutability.is_some(),
                Type::Ptr(pointer) => pointer.mutability.is_some(),
                _ => false,
            }
    });
    let Some(seeded) = seeded.and_then(|(input, _)| argument_name(input)) else {
        return;
    };
    let width = attribute.width;
    for (_, activity) in arguments().filter(|(_, activity)| activity.kind == Kind::Active) {
        errors.push(error(
            activity.span,
            format!("Active can not be used with width {width} beside the mutable argument `{seeded}`"),
            format!("the {width} shadows of `{seeded}` give {width} gradients, and one is returned: take the argument by reference and mark it `Duplicated`"),
        ));
    }
}

/// The names of shadows are made from those of arguments, and must not be taken.
fn check_shadow_names(function: &Signature, attribute: &Arguments, errors: &mut Vec<Error>) {
    let names: Vec<Ident> = function.inputs.iter().filter_map(argument_name).collect();
    let prefix = attribute.mode.shadow_prefix();
    for taken in &names {
        let text = taken.unraw().to_string();
        let owner = names.iter().find(|owner| {
            let rest = text.strip_prefix(&format!("{prefix}{}_", owner.unraw()));
            rest.is_some_and(|rest| rest.parse::<u32>().is_ok_and(|lane| lane < attribute.width))
        });
        let is_seed = text == "dret" && attribute.mode == Mode::Reverse;
        if owner.is_none() && !is_seed {
            continue;
        }
        let what = owner.map_or("seed".to_owned(), |owner| format!("shadow of `{owner}`"));
        errors.push(error(
            taken.span(),
            format!("the name `{text}` is needed for the {what}"),
            "give this argument another name",
        ));
    }
}

/// A type as people write it.
fn text_of(ty: &Type) -> String {
    let text = ty.to_token_stream().to_string();
    ["& ", " <", "< ", " >", " ,", " ;", "[ ", " ]"]
        .iter()
        .fold(text, |text, spaced| {
            let tight = match *spaced {
                "& " | "< " | "[ " => spaced.trim_end(),
                _ => spaced.trim_start(),
            };
            text.replace(spaced, tight)
        })
}
