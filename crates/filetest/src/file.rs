//! The parts of a test file besides IR: directives, their details, and expectations.
//!
//! ```text
//! ; Adding zero changes nothing, so the sum goes away.     <- the head comment: what this page of the manual shows
//! ; test: pass simplify                                    <- a directive: one check
//!
//! func @f(%x: i64) -> (i64) {                              <- the IR
//!   %y = add i64 %x, 0
//!   return %y
//! }
//!
//! ; expect: pass simplify                                  <- an expectation: names its directive, runs to the next
//! ; func @f(%x: i64) -> (i64) {                               line that is not a comment
//! ;   return %x
//! ; }
//! ```
//!
//! All of this is comment to the parser of the IR, so a test file is IR that every other tool takes as it is.
//! Only comments that start in the first column count here.

use std::fmt::Write;

/// A parsed test file.
#[derive(Debug)]
pub struct TestFile<'t> {
    /// The text up to the first expectation, for the parser of the IR.
    pub source: &'t str,
    /// The checks, in the order of the file.
    pub directives: Vec<Directive<'t>>,
}

/// A line that asks for something.
#[derive(Debug)]
pub struct Directive<'t> {
    /// Whether the result is compared, or only kept for the directives below.
    pub role: Role,
    /// The directive, without `; test:`.
    pub text: &'t str,
    /// Which line of the file, from 1 on.
    pub line: usize,
    /// The lines that belong to it: `; run:`, `; args:` and so on.
    pub details: Vec<Detail<'t>>,
    /// Its expectation, if there is one.
    pub expectation: Option<String>,
}

/// The kind of a directive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// `; test:` makes a check.
    Test,
    /// `; derive:` makes a derivative that later directives use, and checks nothing.
    Derive,
    /// `; optimise:` optimises functions for later directives, and checks nothing.
    Optimise,
}

/// A line that belongs to a directive.
#[derive(Clone, Copy, Debug)]
pub struct Detail<'t> {
    /// The word before the colon.
    pub keyword: &'t str,
    /// The text after it.
    pub text: &'t str,
    /// Which line of the file, from 1 on.
    pub line: usize,
}

/// The words that detail lines begin with, each with the directives that it belongs to.
const DETAILS: &[(&str, &[&str])] = &[
    ("run", &["run"]),
    ("feed", &["run", "gradcheck"]),
    ("args", &["gradcheck"]),
    ("seed", &["gradcheck"]),
    ("gradient", &["gradcheck"]),
];

/// Takes a file apart, or says in which line it is not well formed.
pub fn read(text: &str) -> Result<TestFile<'_>, String> {
    let mut directives: Vec<Directive> = Vec::new();
    let mut expectations: Vec<(usize, &str, String)> = Vec::new();
    let mut source_end = None;
    let mut in_expectation = false;
    let mut start = 0;
    for (index, raw) in text.split_inclusive('\n').enumerate() {
        let line = index + 1;
        let content = raw.trim_end_matches(['\n', '\r']);
        let comment = content.strip_prefix(';');
        if index == 0 && comment.is_none_or(|comment| comment.trim().is_empty()) {
            return Err("line 1: a test file begins with a comment that says what it shows".into());
        }
        if let Some(wanted) = comment.and_then(|comment| after_keyword(comment, "expect")) {
            source_end.get_or_insert(start);
            expectations.push((line, wanted, String::new()));
            in_expectation = true;
        } else if in_expectation && let Some(comment) = comment {
            let (_, _, expected) = expectations
                .last_mut()
                .expect("an expectation has been opened");
            expected.push_str(comment.strip_prefix(' ').unwrap_or(comment));
            expected.push('\n');
        } else {
            in_expectation = false;
            if source_end.is_some() && !content.trim().is_empty() {
                return Err(format!(
                    "line {line}: nothing but expectations may follow the first `; expect:`"
                ));
            }
            if let Some(comment) = comment {
                read_comment(comment, line, &mut directives)?;
            }
        }
        start += raw.len();
    }
    if directives.is_empty() {
        return Err("the file has no `; test:` line, so it would check nothing".into());
    }
    for (line, wanted, expected) in expectations {
        let directive = directives
            .iter_mut()
            .find(|directive| directive.text == wanted && directive.role == Role::Test)
            .ok_or_else(|| {
                format!("line {line}: no `; test: {wanted}` stands above this expectation")
            })?;
        if directive.expectation.replace(expected).is_some() {
            return Err(format!(
                "line {line}: a second expectation for `; test: {wanted}`"
            ));
        }
    }
    Ok(TestFile {
        source: &text[..source_end.unwrap_or(text.len())],
        directives,
    })
}

/// The file with these expectations in place of its own: for each directive in order, the text or none.
pub fn rewrite(file: &TestFile<'_>, outputs: &[Option<String>]) -> String {
    let mut text = file.source.trim_end().to_owned();
    text.push('\n');
    for (directive, output) in file.directives.iter().zip(outputs) {
        let Some(output) = output else { continue };
        let _ = write!(text, "\n; expect: {}\n", directive.text);
        for line in output.lines() {
            text.push_str(if line.is_empty() { ";" } else { "; " });
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// Classifies a comment: a directive, a detail of one, or prose.
fn read_comment<'t>(
    comment: &'t str,
    line: usize,
    directives: &mut Vec<Directive<'t>>,
) -> Result<(), String> {
    let role = if let Some(text) = after_keyword(comment, "test") {
        Some((Role::Test, text))
    } else {
        let derive = after_keyword(comment, "derive").map(|text| (Role::Derive, text));
        derive.or_else(|| after_keyword(comment, "optimise").map(|text| (Role::Optimise, text)))
    };
    if let Some((role, text)) = role {
        if directives
            .iter()
            .any(|other| other.role == role && other.text == text)
        {
            return Err(format!("line {line}: the same directive stands twice"));
        }
        directives.push(Directive {
            role,
            text,
            line,
            details: Vec::new(),
            expectation: None,
        });
        return Ok(());
    }
    // Before the first directive everything is prose.
    if directives.is_empty() {
        return Ok(());
    }
    let Some((keyword, text)) = comment.trim_start().split_once(':') else {
        return Ok(());
    };
    if keyword.is_empty() || !keyword.chars().all(|c| c.is_ascii_lowercase()) {
        return Ok(());
    }
    let Some((_, owners)) = DETAILS.iter().find(|(name, _)| *name == keyword) else {
        // A misspelt `; runs:` must not pass for prose, or the file would check less than it seems to.
        let known: Vec<&str> = DETAILS.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "line {line}: `; {keyword}:` is none of test, derive, optimise, expect, {}",
            known.join(", ")
        ));
    };
    let owner = directives
        .iter_mut()
        .rev()
        .find(|directive| owners.contains(&directive.kind()))
        .ok_or_else(|| {
            format!(
                "line {line}: `; {keyword}:` needs `; test: {}` above it",
                owners.join("` or `; test: ")
            )
        })?;
    owner.details.push(Detail {
        keyword,
        text: text.trim(),
        line,
    });
    Ok(())
}

impl<'t> Directive<'t> {
    /// The first word: what kind of check it is.
    pub fn kind(&self) -> &'t str {
        self.text.split_whitespace().next().unwrap_or("")
    }

    /// The text after the first word.
    pub fn arguments(&self) -> &'t str {
        self.text[self.kind().len()..].trim()
    }
}

/// What follows `keyword:` if the comment begins with that.
fn after_keyword<'t>(comment: &'t str, keyword: &str) -> Option<&'t str> {
    comment
        .trim_start()
        .strip_prefix(keyword)?
        .strip_prefix(':')
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
; Shows something.
; test: print
; test: run
; run: @f(1) == 1

func @f() { }
; run: @f(2) == 2

; expect: print
; func @f() {
;
; }
";

    #[test]
    fn takes_a_file_apart() {
        let file = read(FILE).unwrap();
        assert!(file.source.ends_with("== 2\n\n"));
        assert_eq!(file.directives.len(), 2);
        assert_eq!(
            file.directives[0].expectation.as_deref(),
            Some("func @f() {\n\n}\n")
        );
        let runs: Vec<&str> = file.directives[1]
            .details
            .iter()
            .map(|detail| detail.text)
            .collect();
        assert_eq!(runs, ["@f(1) == 1", "@f(2) == 2"]);
    }

    #[test]
    fn rewriting_with_the_same_expectations_changes_nothing() {
        let file = read(FILE).unwrap();
        let outputs: Vec<Option<String>> = file
            .directives
            .iter()
            .map(|directive| directive.expectation.clone())
            .collect();
        assert_eq!(rewrite(&file, &outputs), FILE);
    }

    fn refusal(text: &str) -> String {
        read(text).unwrap_err()
    }

    #[test]
    fn refuses_files_that_would_check_less_than_they_seem_to() {
        assert!(refusal("func @f() {}\n").contains("begins with a comment"));
        assert!(refusal("; Nothing.\n").contains("no `; test:` line"));
        assert!(refusal("; A.\n; test: run\n; runs: @f()\n").contains("`; runs:` is none of"));
        assert!(refusal("; A.\n; test: print\n; run: @f()\n").contains("needs `; test: run`"));
        assert!(refusal("; A.\n; test: print\n; test: print\n").contains("twice"));
        assert!(refusal("; A.\n; test: print\n; expect: run\n; x\n").contains("no `; test: run`"));
        assert!(
            refusal("; A.\n; test: print\n; expect: print\n; x\nfunc @f() {}\n")
                .contains("nothing but expectations")
        );
    }
}
