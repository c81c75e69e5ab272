//! Enzyme's attributes, which clang does not know: they become annotations, which reach the driver.
//!
//! ```text
//! __attribute__((enzyme_inactive))    ==>    __attribute__((annotate("enzyme_inactive")))
//! [[enzyme::inactive]]                ==>    [[clang::annotate("enzyme_inactive")]]
//! ```
//!
//! Macros turn the first spelling into annotations, one macro for each name. A macro cannot rewrite the second spelling, because it does not know its context: a source with such an attribute is preprocessed first, and
//! then the text is changed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The names without `enzyme_`. Those that are names of markers, too, cannot be macros.
const NAMES: &[&str] = &[
    "inactive",
    "inactive_noblock",
    "shouldrecompute",
    "sparse_accumulate",
    "elementwise_read",
    "no_escaping_allocation",
    "notypeanalysis",
];

/// Attributes with an argument, and the prefix of the argument in the annotation: text, and the name of a variable.
const WITH_ARGUMENT: &[(&str, &str)] = &[("function_like", ""), ("shadow", "&")];

/// The macros for attributes in the first spelling.
pub(crate) fn macros() -> Vec<String> {
    let plain = NAMES
        .iter()
        .map(|name| format!("-Denzyme_{name}=annotate(\"enzyme_{name}\")"));
    let with_argument = WITH_ARGUMENT.iter().map(|(name, before)| {
        format!("-Denzyme_{name}(argument)=annotate(\"enzyme_{name}\",{before}argument)")
    });
    plain.chain(with_argument).collect()
}

/// Whether a source, or a file that it includes from these folders, seems to have attributes in the second spelling.
pub(crate) fn are_in(source: &Path, folders: &[PathBuf]) -> bool {
    let mut seen = HashSet::new();
    let mut work = vec![source.to_owned()];
    while let Some(path) = work.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let Ok(text) = std::fs::read(&path) else {
            continue;
        };
        let text = String::from_utf8_lossy(&text);
        if text.contains("[[") && (text.contains("enzyme_") || text.contains("enzyme::")) {
            return true;
        }
        let beside = path.parent().unwrap_or(Path::new("")).to_owned();
        for name in text.lines().filter_map(included) {
            let places = std::iter::once(&beside).chain(folders);
            let found = places.map(|place| place.join(name));
            work.extend(found.into_iter().find(|path| path.is_file()));
        }
    }
    false
}

/// The file that a line includes.
fn included(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start();
    let rest = rest.strip_prefix("include")?.trim_start();
    let close = match rest.chars().next()? {
        '"' => '"',
        '<' => '>',
        _ => return None,
    };
    rest[1..].split(close).next()
}

/// A preprocessed source with annotations in the place of attributes, in both spellings; none if there are none in the second.
pub(crate) fn annotated(text: &str) -> Option<String> {
    let mut scan = Scan {
        text,
        at: 0,
        done: String::with_capacity(text.len()),
        places: Vec::new(),
        found: false,
    };
    scan.run();
    scan.found.then_some(scan.done)
}

/// The open construct at the scan's position, if it concerns attributes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// `[[`
    Brackets,
    /// `__attribute__((`
    Parentheses { depth: usize },
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    done: String,
    places: Vec<Place>,
    found: bool,
}

impl Scan<'_> {
    fn run(&mut self) {
        while let Some(next) = self.text[self.at..].chars().next() {
            let rest = &self.text[self.at..];
            if next == '"' || next == '\'' {
                self.take(literal_length(rest, next));
            } else if next == '#' && (self.at == 0 || self.done.ends_with('\n')) {
                // A line marker.
                self.take(rest.find('\n').unwrap_or(rest.len()));
            } else if next.is_ascii_alphabetic() || next == '_' {
                self.word();
            } else if next.is_ascii_digit() {
                // A number, whose parts may be divided by quotes.
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '\'' || c == '.';
                self.take(rest.find(|c| !is_part(c)).unwrap_or(rest.len()));
            } else if rest.starts_with("[[") && self.places.is_empty() {
                self.places.push(Place::Brackets);
                self.take(2);
            } else if rest.starts_with("]]") && self.places.last() == Some(&Place::Brackets) {
                self.places.pop();
                self.take(2);
            } else {
                self.count(next);
                self.take(next.len_utf8());
            }
        }
    }

    /// Keeps so much of the text as it is.
    fn take(&mut self, length: usize) {
        self.done.push_str(&self.text[self.at..self.at + length]);
        self.at += length;
    }

    /// Follows the parentheses of `__attribute__`.
    fn count(&mut self, next: char) {
        let Some(Place::Parentheses { depth }) = self.places.last_mut() else {
            return;
        };
        match next {
            '(' => *depth += 1,
            ')' if *depth <= 1 => drop(self.places.pop()),
            ')' => *depth -= 1,
            _ => {}
        }
    }

    fn word(&mut self) {
        let rest = &self.text[self.at..];
        let word = word_of(rest);
        if matches!(word, "__attribute__" | "__attribute") && self.places.is_empty() {
            self.places.push(Place::Parentheses { depth: 0 });
            return self.take(word.len());
        }
        let (name, length) = match word.strip_prefix("enzyme_") {
            Some(name) => (name, word.len()),
            None if word == "enzyme" => {
                let behind = rest[word.len()..].trim_start();
                let Some(name) = behind.strip_prefix("::").map(str::trim_start) else {
                    return self.take(word.len());
                };
                (word_of(name), rest.len() - name.len() + word_of(name).len())
            }
            None => return self.take(word.len()),
        };
        let prefix = match self.places.last() {
            Some(Place::Brackets) => "clang::annotate",
            Some(Place::Parentheses { .. }) => "annotate",
            None => return self.take(word.len()),
        };
        if NAMES.contains(&name) {
            self.done.push_str(&format!("{prefix}(\"enzyme_{name}\")"));
            self.at += length;
        } else if let Some((_, before)) = WITH_ARGUMENT.iter().find(|(known, _)| *known == name)
            && let Some(open) = rest[length..].find('(')
            && rest[length..length + open].trim().is_empty()
        {
            let annotation = format!("{prefix}(\"enzyme_{name}\",{before}");
            self.done.push_str(&annotation);
            self.count('(');
            self.at += length + open + 1;
        } else {
            return self.take(word.len());
        }
        self.found |= self.places.last() == Some(&Place::Brackets);
    }
}

fn word_of(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The length of a text or character that starts here.
fn literal_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, next) in text.char_indices().skip(1) {
        match next {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return index,
            _ if next == quote => return index + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_become_annotations() {
        let changed = annotated(
            "# 1 \"it's.c\"\n[[enzyme_inactive, nodiscard]] [[enzyme::function_like(\"log1p\")]] double f(double);\n\
             __attribute__((noinline, enzyme_inactive)) int g(int enzyme_inactive);\n\
             char c = ']', *s = \"[[enzyme_inactive]]\"; int n = 1'000, m = a[b[0]];",
        );
        assert_eq!(
            changed.as_deref(),
            Some(
                "# 1 \"it's.c\"\n[[clang::annotate(\"enzyme_inactive\"), nodiscard]] [[clang::annotate(\"enzyme_function_like\",\"log1p\")]] double f(double);\n\
                 __attribute__((noinline, annotate(\"enzyme_inactive\"))) int g(int enzyme_inactive);\n\
                 char c = ']', *s = \"[[enzyme_inactive]]\"; int n = 1'000, m = a[b[0]];"
            )
        );
    }

    #[test]
    fn what_has_no_such_attributes_stays() {
        assert_eq!(
            annotated("enzyme::tuple<int> t; a[[] { return 0; }()] = 1;"),
            None
        );
        assert_eq!(annotated("[[enzyme::unknown]] void f();"), None);
    }

    #[test]
    fn included_files_are_found() {
        assert_eq!(
            included("  # include <enzyme/enzyme>"),
            Some("enzyme/enzyme")
        );
        assert_eq!(included("#include \"a.h\" // text"), Some("a.h"));
        assert_eq!(included("#define X"), None);
    }
}
