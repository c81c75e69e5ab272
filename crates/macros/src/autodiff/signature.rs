//! The derivative's signature, as `std::autodiff` makes it.
//!
//! Each argument of the primal is followed by its shadows, a seed for the result comes last, and the result holds the
//! primal's result and the gradients or tangents that are returned by value.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::visit_mut::{self, VisitMut};
use syn::{FnArg, Generics, Ident, Pat, Result, ReturnType, Signature, Token, Type, parse_quote};

use super::activity::{Activity, Kind, Mode};
use super::arguments::Arguments;
use super::check::{argument_name, argument_type, check, result_type};
use super::function::Function;
use super::place::Place;

/// All properties of a derivative except its body.
pub(crate) struct Derivative {
    pub(crate) mode: Mode,
    /// Whether it is no derivative, but the function itself.
    pub(crate) is_itself: bool,
    pub(crate) width: u32,
    pub(crate) signature: Signature,
    pub(crate) arguments: Vec<Argument>,
    /// Absent if the primal returns `()`.
    pub(crate) outcome: Option<Outcome>,
}

/// An argument of the primal.
pub(crate) struct Argument {
    /// `self`, or the argument's name.
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    pub(crate) kind: Kind,
    /// The arguments of the derivative that are its shadows.
    pub(crate) shadows: Vec<Ident>,
}

/// The primal's result.
pub(crate) struct Outcome {
    pub(crate) ty: Type,
    pub(crate) kind: Kind,
    /// The argument of the derivative that is its seed.
    pub(crate) seed: Option<Ident>,
}

impl Derivative {
    /// Compares the attribute with the function.
    pub(crate) fn new(
        function: &Function,
        place: Place,
        attribute: &Arguments,
    ) -> Result<Derivative> {
        check(&function.signature, attribute)?;
        Ok(Derivative::unchecked(function, place, attribute))
    }

    /// The function itself, as a derivative in forward mode without active arguments. Its arguments have names.
    pub(crate) fn itself(function: &Function, place: Place) -> Derivative {
        let constant = Activity {
            kind: Kind::Const,
            span: Span::call_site(),
        };
        let arguments = Arguments {
            mode: Mode::Forward,
            name: function.signature.ident.clone(),
            width: 1,
            activities: vec![constant; function.signature.inputs.len() + 1],
        };
        Derivative {
            is_itself: true,
            ..Derivative::unchecked(function, place, &arguments)
        }
    }

    fn unchecked(function: &Function, place: Place, attribute: &Arguments) -> Derivative {
        let Arguments {
            mode,
            ref name,
            width,
            ref activities,
        } = *attribute;
        let mut primal = function.signature.clone();
        name_anonymous_types(&mut primal);

        let mut inputs: Vec<FnArg> = Vec::new();
        let mut arguments = Vec::new();
        for (input, &activity) in primal.inputs.iter().zip(activities) {
            let argument = Argument::new(input, activity.kind, mode, width);
            inputs.push(plain_input(input, &argument.name));
            let shadow_type = argument.shadow_type(mode);
            for shadow in &argument.shadows {
                inputs.push(parse_quote!(#shadow: #shadow_type));
            }
            arguments.push(argument);
        }

        let outcome = match result_type(&primal) {
            None => None,
            Some(ty) => {
                let kind = activities[arguments.len()].kind;
                let seeded = matches!(kind, Kind::Active | Kind::ActiveOnly);
                let seed = seeded.then(|| Ident::new("dret", Span::mixed_site()));
                if let Some(seed) = &seed {
                    inputs.push(parse_quote!(#seed: #ty));
                }
                Some(Outcome { ty, kind, seed })
            }
        };

        let mut derivative = Derivative {
            mode,
            is_itself: false,
            width,
            signature: primal,
            arguments,
            outcome,
        };
        let output = derivative.output_type();
        let signature = &mut derivative.signature;
        signature.ident = name.clone();
        signature.inputs = inputs.into_iter().collect();
        signature.output = match output {
            Some(ty) => parse_quote!(-> #ty),
            None => ReturnType::Default,
        };
        // The body calls a foreign function, which no constant evaluation can do.
        signature.constness = None;
        if derivative
            .arguments
            .iter()
            .any(|argument| matches!(argument.kind, Kind::DuplicatedOnly | Kind::DualOnly))
            && signature.unsafety.is_none()
        {
            signature.unsafety = Some(Token![unsafe](Span::call_site()));
        }
        if place == Place::Trait && derivative.arguments.iter().any(Argument::needs_sized_self) {
            // Without this, a trait whose method is differentiated would no longer be dyn compatible.
            let clause = derivative.signature.generics.make_where_clause();
            clause.predicates.push(parse_quote!(Self: Sized));
        }
        derivative
    }

    /// The types of the gradients that are returned by value.
    pub(crate) fn gradients(&self) -> impl Iterator<Item = &Type> {
        let active = |argument: &&Argument| argument.kind == Kind::Active;
        self.arguments
            .iter()
            .filter(active)
            .map(|argument| &argument.ty)
    }

    /// The result type of the derivative; none means `()`.
    fn output_type(&self) -> Option<Type> {
        match self.mode {
            Mode::Forward => self.forward_output(),
            Mode::Reverse => self.reverse_output(),
        }
    }

    fn forward_output(&self) -> Option<Type> {
        let Outcome { ty, kind, .. } = self.outcome.as_ref()?;
        let width = self.width as usize;
        let count = width + 1;
        Some(match kind {
            Kind::Dual if width == 1 => parse_quote!((#ty, #ty)),
            Kind::Dual => parse_quote!([#ty; #count]),
            Kind::DualOnly if width > 1 => parse_quote!([#ty; #width]),
            _ => ty.clone(),
        })
    }

    fn reverse_output(&self) -> Option<Type> {
        let kept = self
            .outcome
            .as_ref()
            .filter(|outcome| outcome.kind != Kind::ActiveOnly);
        let types: Vec<&Type> = kept
            .map(|outcome| &outcome.ty)
            .into_iter()
            .chain(self.gradients())
            .collect();
        match types[..] {
            [] => None,
            [only] => Some(only.clone()),
            _ => Some(parse_quote!((#(#types),*))),
        }
    }
}

impl Argument {
    fn new(input: &FnArg, kind: Kind, mode: Mode, width: u32) -> Argument {
        let mut name = argument_name(input).expect("the check found names");
        // An argument may have the name of the primal, which the body has to call. With a hygienic name of the macro's own it
        // does not shadow the primal. `self` is not a name but a keyword.
        if name != "self" {
            name.set_span(name.span().resolved_at(Span::mixed_site()));
        }
        let count = match kind {
            Kind::Const | Kind::Active => 0,
            kind if kind.is_flat() => 1,
            _ => width,
        };
        let prefix = mode.shadow_prefix();
        let shadows = (0..count)
            .map(|lane| format_ident!("{prefix}{}_{lane}", name.unraw(), span = name.span()))
            .collect();
        Argument {
            name,
            ty: argument_type(input).clone(),
            kind,
            shadows,
        }
    }

    /// Whether it is `self` by value, or `self` with a shadow.
    fn needs_sized_self(&self) -> bool {
        let by_reference = matches!(self.ty, Type::Reference(_));
        self.name == "self" && (!by_reference || !self.shadows.is_empty())
    }

    fn shadow_type(&self, mode: Mode) -> Type {
        let mut ty = self.ty.clone();
        if mode == Mode::Reverse {
            match &mut ty {
                Type::Reference(reference) => {
                    reference.mutability.get_or_insert_with(Default::default);
                }
                Type::Ptr(pointer) => {
                    pointer.const_token = None;
                    pointer.mutability.get_or_insert_with(Default::default);
                }
                _ => {}
            }
        }
        ty
    }
}

/// The argument without `mut`, which the derivative has no use for.
fn plain_input(input: &FnArg, name: &Ident) -> FnArg {
    let mut input = input.clone();
    match &mut input {
        FnArg::Receiver(receiver) => {
            if receiver.reference.is_none() {
                receiver.mutability = None;
            }
            receiver.attrs.clear();
        }
        FnArg::Typed(typed) => {
            if let Pat::Ident(pattern) = &mut *typed.pat {
                pattern.mutability = None;
                pattern.ident = name.clone();
            }
            typed.attrs.clear();
        }
    }
    input
}

/// `x: impl Trait` becomes `x: T` with a parameter `T: Trait`, so that shadows can have the same type.
pub(crate) fn name_anonymous_types(signature: &mut Signature) {
    struct Namer<'a>(&'a mut Generics, usize);
    impl VisitMut for Namer<'_> {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            visit_mut::visit_type_mut(self, ty);
            if let Type::ImplTrait(anonymous) = ty {
                let name = format_ident!("Impl{}", self.1, span = Span::mixed_site());
                let bounds = &anonymous.bounds;
                self.0.params.push(parse_quote!(#name: #bounds));
                *ty = parse_quote!(#name);
                self.1 += 1;
            }
        }
    }
    let mut namer = Namer(&mut signature.generics, 0);
    for input in &mut signature.inputs {
        namer.visit_fn_arg_mut(input);
    }
}

/// The primal's path, as it is called from the derivative's body.
pub(crate) fn primal_path(function: &Function, place: Place) -> TokenStream {
    let name = &function.signature.ident;
    let parameters = function.signature.generics.params.iter();
    let arguments: Vec<TokenStream> = parameters
        .filter_map(|parameter| match parameter {
            syn::GenericParam::Lifetime(_) => None,
            syn::GenericParam::Type(parameter) => Some(parameter.ident.to_token_stream()),
            syn::GenericParam::Const(parameter) => Some(parameter.ident.to_token_stream()),
        })
        .collect();
    let turbofish = (!arguments.is_empty()).then(|| quote!(::<#(#arguments),*>));
    match place {
        Place::Scope => quote!(#name #turbofish),
        Place::Implementation | Place::Trait => quote!(Self::#name #turbofish),
    }
}
