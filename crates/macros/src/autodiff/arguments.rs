//! The attribute's arguments: `NAME[, WIDTH], ACTIVITY, …`.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{Error, Ident, LitInt, LitStr, Result};

use super::activity::{Activity, Kind, Mode};

/// What the attribute says, before it is compared with the function.
pub(crate) struct Arguments {
    pub(crate) mode: Mode,
    /// Name of the derivative.
    pub(crate) name: Ident,
    /// How many derivatives at once.
    pub(crate) width: u32,
    /// One for each argument of the function, and one for its result.
    pub(crate) activities: Vec<Activity>,
}

impl Arguments {
    /// Reads the tokens between the attribute's parentheses.
    pub(crate) fn parse(mode: Mode, tokens: TokenStream) -> Result<Arguments> {
        let mut entries = split_at_commas(tokens).into_iter().peekable();
        let Some(name) = entries.next() else {
            return Err(Error::new(
                Span::call_site(),
                format!(
                    "autodiff requires at least a name and mode\n\
                     help: name the derivative and give each argument and the result an activity: `#[autodiff_{}(df, {})]`",
                    mode.name().to_lowercase(),
                    match mode {
                        Mode::Forward => "Dual, Dual",
                        Mode::Reverse => "Active, Active",
                    }
                ),
            ));
        };
        let name = parse_name(name)?;
        let width = match entries.peek().and_then(|entry| single_integer(entry)) {
            Some(literal) => {
                entries.next();
                parse_width(&literal)?
            }
            None => 1,
        };
        let activities = entries.map(parse_activity).collect::<Result<_>>()?;
        Ok(Arguments {
            mode,
            name,
            width,
            activities,
        })
    }
}

/// The tokens between commas; a comma at the end adds nothing.
fn split_at_commas(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let mut entries = vec![Vec::new()];
    for token in tokens {
        match &token {
            TokenTree::Punct(punct) if punct.as_char() == ',' => entries.push(Vec::new()),
            _ => entries.last_mut().expect("there is a first").push(token),
        }
    }
    if entries.last().is_some_and(Vec::is_empty) {
        entries.pop();
    }
    entries
}

fn parse_name(entry: Vec<TokenTree>) -> Result<Ident> {
    if let Ok(name) = syn::parse2::<Ident>(entry.iter().cloned().collect()) {
        return Ok(name);
    }
    let tokens: TokenStream = entry.into_iter().collect();
    if let Ok(text) = syn::parse2::<LitStr>(tokens.clone()) {
        let help = match syn::parse_str::<Ident>(&text.value()) {
            Ok(name) => format!("write it without quotes: `{name}`"),
            Err(_) => "write an identifier without quotes, such as `df`".to_owned(),
        };
        return Err(Error::new(
            text.span(),
            format!("the name of the derivative must be an identifier, not a string\nhelp: {help}"),
        ));
    }
    Err(Error::new_spanned(
        tokens,
        "the first argument must be the name of the derivative\nhelp: write an identifier, such as `df`",
    ))
}

fn single_integer(entry: &[TokenTree]) -> Option<LitInt> {
    syn::parse2(entry.iter().cloned().collect()).ok()
}

fn parse_width(literal: &LitInt) -> Result<u32> {
    match literal.base10_parse::<u32>() {
        Ok(0) => Err(Error::new(
            literal.span(),
            "autodiff width must be at least 1, but is 0\nhelp: leave it out for one derivative at a time",
        )),
        Ok(width) => Ok(width),
        Err(_) => Err(Error::new(
            literal.span(),
            format!(
                "autodiff width must fit u32, but is {}\nhelp: the width is how many derivatives are computed at once: a small number such as 4",
                literal.base10_digits()
            ),
        )),
    }
}

fn parse_activity(entry: Vec<TokenTree>) -> Result<Activity> {
    let tokens: TokenStream = entry.into_iter().collect();
    let known = Kind::ALL
        .map(|kind| format!("`{}`", kind.name()))
        .join(", ");
    if let Ok(ident) = syn::parse2::<Ident>(tokens.clone()) {
        let kind = Kind::ALL.into_iter().find(|kind| ident == kind.name());
        return match kind {
            Some(kind) => Ok(Activity {
                kind,
                span: ident.span(),
            }),
            None => Err(Error::new(
                ident.span(),
                format!("did not recognize Activity: `{ident}`\nhelp: the activities are {known}"),
            )),
        };
    }
    if let Ok(path) = syn::parse2::<syn::Path>(tokens.clone()) {
        let last = path
            .segments
            .last()
            .map(|segment| segment.ident.to_string());
        return Err(Error::new_spanned(
            path,
            format!(
                "an activity must be a single word, not a path\nhelp: write `{}`",
                last.unwrap_or_default()
            ),
        ));
    }
    Err(Error::new_spanned(
        &tokens,
        format!("did not recognize Activity: `{tokens}`\nhelp: the activities are {known}"),
    ))
}
