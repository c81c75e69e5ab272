//! The attribute's arguments: `NAME[, WIDTH], ACTIVITY, …`.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{Ident, LitInt, LitStr, Path, Result};

use super::activity::{Activity, Kind, Mode};
use super::check::{error, error_on};

/// The parsed attribute, before it is compared with the function.
pub(crate) struct Arguments {
    pub(crate) mode: Mode,
    /// Name of the derivative.
    pub(crate) name: Ident,
    /// The width: number of derivatives.
    pub(crate) width: u32,
    /// One for each argument of the function, and one for its result.
    pub(crate) activities: Vec<Activity>,
}

impl Arguments {
    /// Reads the tokens between the attribute's parentheses.
    pub(crate) fn parse(mode: Mode, tokens: TokenStream) -> Result<Arguments> {
        let mut entries = split_at_commas(tokens).into_iter().peekable();
        let Some(name) = entries.next() else {
            return Err(error(
                Span::call_site(),
                "autodiff requires at least a name and mode",
                format!(
                    "name the derivative, and give each argument and the result an activity: `#[autodiff_{}]`",
                    match mode {
                        Mode::Forward => "forward(df, Dual, Dual)",
                        Mode::Reverse => "reverse(df, Active, Active)",
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
    let tokens: TokenStream = entry.into_iter().collect();
    if let Ok(name) = syn::parse2::<Ident>(tokens.clone()) {
        if Kind::ALL.iter().any(|kind| name == kind.name()) {
            return Err(error(
                name.span(),
                format!("the name of the derivative is missing: `{name}` is an activity"),
                format!("put a name before the activities: `df, {name}, …`"),
            ));
        }
        return Ok(name);
    }
    if let Ok(text) = syn::parse2::<LitStr>(tokens.clone()) {
        let help = match syn::parse_str::<Ident>(&text.value()) {
            Ok(name) => format!("write it without quotes: `{name}`"),
            Err(_) => "write an identifier without quotes, such as `df`".to_owned(),
        };
        let message = "the name of the derivative must be an identifier, not a string";
        return Err(error(text.span(), message, help));
    }
    Err(error_on(
        tokens,
        "the first argument must be the name of the derivative",
        "write an identifier, such as `df`",
    ))
}

fn single_integer(entry: &[TokenTree]) -> Option<LitInt> {
    syn::parse2(entry.iter().cloned().collect()).ok()
}

fn parse_width(literal: &LitInt) -> Result<u32> {
    match literal.base10_parse::<u32>() {
        Ok(0) => Err(error(
            literal.span(),
            "autodiff width must be at least 1, but is 0",
            "the width is the number of derivatives: leave it out for one",
        )),
        Ok(width) => Ok(width),
        Err(_) => Err(error(
            literal.span(),
            format!(
                "autodiff width must fit u32, but is {}",
                literal.base10_digits()
            ),
            "the width is the number of derivatives: a small number, such as 4",
        )),
    }
}

fn parse_activity(entry: Vec<TokenTree>) -> Result<Activity> {
    let tokens: TokenStream = entry.into_iter().collect();
    if let Ok(ident) = syn::parse2::<Ident>(tokens.clone())
        && let Some(kind) = Kind::ALL.into_iter().find(|kind| ident == kind.name())
    {
        return Ok(Activity {
            kind,
            span: ident.span(),
        });
    }
    if let Ok(path) = syn::parse2::<Path>(tokens.clone())
        && path.segments.len() > 1
    {
        let last = &path.segments[path.segments.len() - 1].ident;
        let message = "an activity must be a single word, not a path";
        return Err(error_on(&path, message, format!("write `{last}`")));
    }
    let text = tokens.to_string();
    let known = Kind::ALL
        .map(|kind| format!("`{}`", kind.name()))
        .join(", ");
    let help = match similar_activity(&text) {
        Some(kind) => format!("did you mean `{}`?", kind.name()),
        None if syn::parse2::<LitInt>(tokens.clone()).is_ok() => {
            "a width comes right after the name".to_owned()
        }
        None => format!("the activities are {known}"),
    };
    Err(error_on(
        &tokens,
        format!("did not recognize Activity: `{text}`"),
        help,
    ))
}

/// The activity that was probably meant by a misspelt word: one that differs in case, or in a letter or two.
fn similar_activity(text: &str) -> Option<Kind> {
    let text = text.to_lowercase();
    let distance = |kind: &Kind| edit_distance(&text, &kind.name().to_lowercase());
    let nearest = Kind::ALL.into_iter().min_by_key(distance)?;
    (distance(&nearest) <= 2).then_some(nearest)
}

/// The edit distance of two words: letters to insert, remove or change.
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, &other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}
