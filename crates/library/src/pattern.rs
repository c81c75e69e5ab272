//! The patterns by which rows of the table name functions.
//!
//! | pattern | what it matches |
//! |---|---|
//! | `name` | the function of this symbol |
//! | `name*`, `*name*` | functions whose symbols start so, or have this in them |
//! | `a::b`, `<A as b>::c` | the function of Rust of this path |
//! | `a::b::*` | it and everything below it, methods of types there as well |

use crate::paths::demangle;
use std::cell::OnceCell;

/// A symbol, and its path if that is asked for.
pub(crate) struct Name<'a> {
    pub(crate) symbol: &'a str,
    path: OnceCell<String>,
}

impl<'a> Name<'a> {
    pub(crate) fn new(symbol: &'a str) -> Name<'a> {
        Name {
            symbol,
            path: OnceCell::new(),
        }
    }

    /// The path; that of a symbol without one is itself.
    pub(crate) fn path(&self) -> &str {
        self.path.get_or_init(|| demangle(self.symbol))
    }

    pub(crate) fn matches(&self, pattern: &str) -> bool {
        // However a path is mangled, the name of the crate is there.
        let root = pattern.split("::").next().unwrap_or_default();
        match is_path(pattern) {
            true if !root.starts_with('<') && !self.symbol.contains(root) => false,
            true => matches_path(pattern, self.path()),
            false => matches_text(pattern, self.symbol),
        }
    }
}

/// Whether a pattern is one of paths.
pub(crate) fn is_path(pattern: &str) -> bool {
    pattern.contains("::")
}

/// Whether a path fits. `<core::fmt::Formatter>::pad` is below `core::fmt` as well.
pub(crate) fn matches_path(pattern: &str, path: &str) -> bool {
    let subject = match pattern.starts_with('<') {
        true => path,
        false => path.trim_start_matches('<'),
    };
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    match pattern.strip_suffix("::*") {
        Some(above) => subject
            .strip_prefix(above)
            .is_some_and(|rest| !rest.starts_with(is_part)),
        None => matches_text(pattern, subject),
    }
}

/// Whether a text is what a pattern says, in which `*` is any text.
fn matches_text(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(start) else {
        return false;
    };
    rest.is_empty()
        || text
            .char_indices()
            .any(|(at, _)| matches_text(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name) in [
            ("exit", "exit"),
            ("__cxa_*", "__cxa_throw"),
            ("*12___rust_alloc", "_RNvCs_7___rustc12___rust_alloc"),
            ("*mark*", "mark"),
        ] {
            assert!(Name::new(name).matches(pattern), "{pattern} {name}");
        }
        for (pattern, name) in [("exit", "exits"), ("__cxa_*", "a__cxa_throw")] {
            assert!(!Name::new(name).matches(pattern), "{pattern} {name}");
        }
        for (pattern, path) in [
            ("core::fmt::*", "core::fmt::write"),
            ("core::fmt::*", "<core::fmt::Formatter>::pad"),
            (
                "core::option::expect_failed::*",
                "core::option::expect_failed",
            ),
            ("core::num::*::dec2flt*", "core::num::imp::dec2flt::parse"),
            ("<f64 as core::fmt::*", "<f64 as core::fmt::Display>::fmt"),
            (
                "<core::fmt::Formatter>::write_fmt",
                "<core::fmt::Formatter>::write_fmt",
            ),
        ] {
            assert!(matches_path(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("core::fmt::*", "core::fmtx::write"),
            ("core::fmt::*", "user::core::fmt"),
            ("core::fmt::write", "core::fmt::write::{closure}"),
            ("<f64 as core::fmt::*", "<f32 as core::fmt::Display>::fmt"),
        ] {
            assert!(!matches_path(pattern, path), "{pattern} {path}");
        }
    }
}
