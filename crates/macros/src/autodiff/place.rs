//! The context of a function: is it called `f` or `Self::f`?
//!
//! An attribute macro sees only the function. A receiver, or the word `Self` in the signature, shows that it
//! belongs to a type or trait. Without them, the text of the source file before the attribute decides. If
//! that is not available (code from other macros, examples in documentation), the words of the body decide.

use std::fs;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::ToTokens;

use super::function::Function;

/// The context of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// A module or another function.
    Scope,
    /// An implementation.
    Implementation,
    /// The declaration of a trait.
    Trait,
}

impl Place {
    /// Determines the context from all that is visible.
    pub(crate) fn of(function: &Function) -> Place {
        let Some(body) = &function.body else {
            return Place::Trait;
        };
        let associated = function.signature.receiver().is_some()
            || mentions_self(function.signature.to_token_stream());
        match surroundings_of_attribute() {
            Some(Place::Scope) if associated => Place::Implementation,
            Some(place) => place,
            None if associated || mentions_self(body.clone()) => Place::Implementation,
            None => Place::Scope,
        }
    }
}

/// Whether the tokens mention `Self`, except inside implementations and traits of their own.
fn mentions_self(tokens: TokenStream) -> bool {
    let mut own = false;
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(word) => {
            own |= word == "impl" || word == "trait";
            word == "Self"
        }
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && own => {
            own = false;
            false
        }
        TokenTree::Group(group) => mentions_self(group.stream()),
        TokenTree::Punct(punct) => {
            own &= punct.as_char() != ';';
            false
        }
        TokenTree::Literal(_) => false,
    })
}

/// The context according to the source file, if it can be read and contains the attribute.
fn surroundings_of_attribute() -> Option<Place> {
    if !proc_macro::is_available() {
        return None;
    }
    let attribute = Span::call_site().unwrap();
    let source = fs::read_to_string(attribute.local_file()?).ok()?;
    let line = attribute.line().checked_sub(1)?;
    let column = attribute.column().checked_sub(1)?;
    let start = match line {
        0 => 0,
        _ => source.match_indices('\n').nth(line - 1)?.0 + 1,
    };
    let offset = source[start..].char_indices().nth(column)?.0;
    if !source[start + offset..].starts_with('#') {
        return None;
    }
    surroundings(&source[..start + offset])
}

/// The context at the end of a text that starts a source file; none if that is inside a macro.
fn surroundings(text: &str) -> Option<Place> {
    let mut levels = vec![Level::default()];
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = trivia_length(rest);
        if length > 0 {
            rest = &rest[length..];
            continue;
        }
        let word = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        if word > 0 {
            levels.last_mut()?.word(&rest[..word]);
            rest = &rest[word..];
            continue;
        }
        match first {
            '{' | '(' | '[' => levels.push(Level {
                opened_by: first,
                ..Level::default()
            }),
            '}' | ')' | ']' => {
                levels.pop();
                let level = levels.last_mut()?;
                level.last = first;
                // A block ends an item or statement, unless it is an expression inside the item's head.
                let next = rest[1..].trim_start().chars().next();
                if first == '}' && !next.is_some_and(|next| ">,)]:=+".contains(next)) {
                    *level = level.next();
                }
            }
            ';' => {
                let level = levels.last_mut()?;
                *level = level.next();
            }
            _ if !first.is_whitespace() => levels.last_mut()?.last = first,
            _ => {}
        }
        rest = &rest[first.len_utf8()..];
    }
    // The heads of levels that enclose the end are still there, each in the level outside its brace.
    let (innermost, outer) = levels.split_last()?;
    let head = match outer.last() {
        Some(head) if innermost.opened_by == '{' => head,
        Some(_) => return None,
        None => return Some(Place::Scope),
    };
    match head.keyword {
        Keyword::Implementation => Some(Place::Implementation),
        Keyword::Trait => Some(Place::Trait),
        Keyword::Scope => Some(Place::Scope),
        // The tokens of a macro may go anywhere.
        _ if outer.iter().any(Level::is_macro) => None,
        _ => Some(Place::Scope),
    }
}

/// The length of a comment, string, character or lifetime that the text starts with, else 0.
fn trivia_length(text: &str) -> usize {
    let after = |pattern: &str, from: usize| {
        text[from..]
            .find(pattern)
            .map_or(text.len(), |at| from + at + pattern.len())
    };
    if text.starts_with("//") {
        return after("\n", 0);
    }
    if text.starts_with("/*") {
        return block_comment_length(text);
    }
    let raw = text.trim_start_matches(['b', 'c']);
    let prefix = text.len() - raw.len();
    if prefix <= 1
        && let Some(quoted) = raw.strip_prefix('r')
    {
        let hashes = quoted.len() - quoted.trim_start_matches('#').len();
        if quoted[hashes..].starts_with('"') {
            return after(
                &format!("\"{}", "#".repeat(hashes)),
                prefix + 1 + hashes + 1,
            );
        }
    }
    if prefix <= 1 && raw.starts_with('"') {
        return prefix + escaped_length(raw, '"');
    }
    if let Some(quoted) = text.strip_prefix('\'') {
        let mut characters = quoted.chars();
        let first = characters.next();
        let is_character = first == Some('\\') || characters.next() == Some('\'');
        return if is_character {
            escaped_length(text, '\'')
        } else {
            1
        };
    }
    0
}

/// The length of a quoted text with escapes.
fn escaped_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if character == quote && !escaped {
            return at + 1;
        }
        escaped = character == '\\' && !escaped;
    }
    text.len()
}

/// Block comments nest.
fn block_comment_length(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The tokens since the last item or statement ended, at one depth of brackets.
#[derive(Clone, Copy, Default)]
struct Level {
    /// The bracket that opened it, or the null character at the file's level.
    opened_by: char,
    /// The first keyword, which tells the kind of item.
    keyword: Keyword,
    /// The last character that is not part of a word.
    last: char,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Keyword {
    /// None so far.
    #[default]
    None,
    Implementation,
    Trait,
    Scope,
    MacroRules,
    Other,
}

impl Level {
    fn next(&self) -> Level {
        Level {
            opened_by: self.opened_by,
            ..Level::default()
        }
    }

    fn word(&mut self, word: &str) {
        if self.keyword == Keyword::None {
            self.keyword = match word {
                "pub" | "unsafe" | "default" | "const" | "auto" => Keyword::None,
                "impl" => Keyword::Implementation,
                "trait" => Keyword::Trait,
                "fn" | "mod" => Keyword::Scope,
                "macro_rules" => Keyword::MacroRules,
                _ => Keyword::Other,
            };
        }
        self.last = '_';
    }

    fn is_macro(&self) -> bool {
        self.keyword == Keyword::MacroRules || self.last == '!'
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<Place>) {
        assert_eq!(surroundings(text), expected, "{text}");
    }

    #[test]
    fn finds_what_surrounds_an_attribute() {
        let scope = Some(Place::Scope);
        let implementation = Some(Place::Implementation);
        check("", scope);
        check("use a::{b, c};\nfn g() { loop {} }\n", scope);
        check("mod inner { ", scope);
        check("fn f<T>() -> impl Fn() { ", scope);
        check("impl S { fn g(&self) { ", scope);
        check("impl S { fn g(&self) {} ", implementation);
        check(
            "#[allow(dead_code)]\nunsafe impl<'a, const N: usize> T for S<'a, {N}> { ",
            implementation,
        );
        check("impl T for [f64; 3] { ", implementation);
        check(
            "impl<T> T for S<{ 1 }, T> where [(); { 2 }]: Sized { const C: char = '{'; ",
            implementation,
        );
        check(
            "pub(crate) trait T: U { fn f(&self) {} ",
            Some(Place::Trait),
        );
        check("impl S {}\n", scope);
        check("/* impl { /* { */ */ // impl {\n", scope);
        check(
            "const A: &str = \"impl {\\\" {\"; const B: &str = r#\"{\"{\"#; const C: u8 = b'{'; const D: char = '\\''; ",
            scope,
        );
        check("impl S<'static> { ", implementation);
        check("fn f() { match x { 1 => { ", scope);
    }

    #[test]
    fn finds_what_surrounds_an_attribute_inside_of_macros() {
        let implementation = Some(Place::Implementation);
        check(
            "macro_rules! make { ($t:ty) => { impl $t { ",
            implementation,
        );
        check("make! { impl S { ", implementation);
        check("make! { fn f() { ", Some(Place::Scope));
    }

    #[test]
    fn does_not_guess_inside_of_macros() {
        check("macro_rules! make { ($t:ty) => { ", None);
        check("make! { ", None);
        check("make! { struct S; ", None);
    }

    #[test]
    fn words_of_nested_implementations_do_not_count() {
        let mentions = |text: &str| mentions_self(text.parse().expect("tokens"));
        assert!(mentions("{ let s = Self::new(); }"));
        assert!(mentions("(x: Vec<Self>)"));
        assert!(!mentions("{ struct S; impl S { fn new() -> Self { S } } }"));
        assert!(mentions("{ impl S { fn new() -> Self { S } } Self::g() }"));
    }
}
