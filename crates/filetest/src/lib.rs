//! Runs text files as tests.
//!
//! A test file is IR with comments that name checks and their expected results ([`file`](mod@file)). Each
//! `; test:` line makes one check; the table of checks is [`check::CHECKS`]. With the environment variable
//! `FERROZYME_BLESS=1` the runner writes the actual results into the file instead of comparing.
//!
//! Files about tensor graphs have checks of their own ([`graph`](mod@graph)).
//!
//! This library reads and writes no files: it takes text and returns text. The test binary beside it walks the
//! folder `filetests`; the command-line tool shares the syntax of signatures ([`signature`]) and values
//! ([`value`]), the placement of arguments ([`arguments`]), and the gradient check ([`gradcheck`]).

pub mod analysis;
pub mod arguments;
pub mod check;
pub mod derivative;
pub mod file;
pub mod gradcheck;
pub mod graph;
pub mod scan;
pub mod signature;
pub mod value;

use check::{Output, Session};
use file::{Directive, Role, TestFile};
use similar::TextDiff;
use std::fmt::Write;

/// What came of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All is as expected.
    Passed,
    /// The file with the actual results as expectations; only if requested.
    Rewritten(String),
}

/// Runs all checks of a file; the error says all that is wrong, with a diff for each expectation that is not met.
///
/// With `bless` expectations are not compared but rewritten.
pub fn run(text: &str, bless: bool) -> Result<Outcome, String> {
    let file = file::read(text)?;
    let mut session = Session::new(file.source);
    run_checks(text, &file, bless, |directive| {
        check::perform(&mut session, directive)
    })
}

/// Runs all checks of a file by a function that performs one.
fn run_checks(
    text: &str,
    file: &TestFile<'_>,
    bless: bool,
    mut perform: impl FnMut(&Directive<'_>) -> Result<Output, String>,
) -> Result<Outcome, String> {
    let mut outputs: Vec<Option<String>> = Vec::new();
    let mut failures = String::new();
    for directive in &file.directives {
        let output = perform(directive);
        let complaint = match (&output, &directive.expectation) {
            (Err(error), _) => Some(error.clone()),
            (Ok(Output::Passed), Some(_)) => {
                Some("this check has no output, so nothing can be expected of it".to_owned())
            }
            (Ok(Output::Passed), None) => None,
            (Ok(Output::Text(_)), _) if bless => None,
            (Ok(Output::Text(text)), None) => Some(format!(
                "nothing is expected of it; run with FERROZYME_BLESS=1 to expect this:\n{text}"
            )),
            (Ok(Output::Text(text)), Some(expected)) => compare(expected, text),
        };
        if let Some(complaint) = complaint {
            let word = match directive.role {
                Role::Test => "test",
                Role::Derive => "derive",
                Role::Optimise => "optimise",
            };
            let _ = writeln!(
                failures,
                "line {}: `; {word}: {}`\n{}\n",
                directive.line,
                directive.text,
                complaint.trim_end()
            );
        }
        outputs.push(match output {
            Ok(Output::Text(text)) => Some(text),
            _ => None,
        });
    }
    if !failures.is_empty() {
        return Err(failures);
    }
    if bless {
        let rewritten = file::rewrite(file, &outputs);
        if rewritten != text {
            return Ok(Outcome::Rewritten(rewritten));
        }
    }
    Ok(Outcome::Passed)
}

/// The difference as a unified diff; none if there is none.
fn compare(expected: &str, actual: &str) -> Option<String> {
    // Ends of lines and of the text are not what these tests are about.
    let tidy = |text: &str| {
        let mut tidy = String::new();
        for line in text.trim_end().lines() {
            tidy.push_str(line.trim_end());
            tidy.push('\n');
        }
        tidy
    };
    let (expected, actual) = (tidy(expected), tidy(actual));
    (expected != actual).then(|| {
        TextDiff::from_lines(&expected, &actual)
            .unified_diff()
            .header("expected", "actual")
            .to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
; Two lines that the printer writes as one.
; test: print

func @f() { return }
";

    #[test]
    fn a_check_without_expectation_fails_and_shows_what_to_expect() {
        let error = run(FILE, false).unwrap_err();
        assert!(error.contains("FERROZYME_BLESS=1"), "{error}");
        assert!(error.contains("func @f() {\n  return\n}"), "{error}");
    }

    #[test]
    fn blessing_writes_the_expectation_and_then_nothing() {
        let Ok(Outcome::Rewritten(text)) = run(FILE, true) else {
            panic!("nothing was written");
        };
        assert_eq!(
            text,
            format!("{FILE}\n; expect: print\n; func @f() {{\n;   return\n; }}\n")
        );
        assert_eq!(run(&text, false), Ok(Outcome::Passed));
        assert_eq!(run(&text, true), Ok(Outcome::Passed));
        let wrong = text.replace(";   return", ";   trap");
        let error = run(&wrong, false).unwrap_err();
        assert!(error.contains("-  trap\n+  return"), "{error}");
    }

    #[test]
    fn unknown_checks_are_answered_with_the_known_ones() {
        let error = run("; A.\n; test: prnt\n", false).unwrap_err();
        assert!(error.contains("`prnt` is no check"), "{error}");
        for check in check::CHECKS {
            assert!(error.contains(check.usage), "{error}");
        }
    }

    #[test]
    fn a_run_that_is_wrong_says_what_came_out() {
        let file =
            "; A.\n; test: run\n; run: @f(2.0) == 5.0\nfunc @f(%x: f64) -> (f64) { return %x }\n";
        let error = run(file, false).unwrap_err();
        assert!(error.contains("the results are (2.0)"), "{error}");
        let error = run(file, true).unwrap_err();
        assert!(error.contains("the results are (2.0)"), "{error}");
    }

    #[test]
    fn nothing_can_be_expected_of_a_check_that_compares_by_itself() {
        let file =
            "; A.\n; test: run\n; run: @f() == ()\nfunc @f() { return }\n\n; expect: run\n; x\n";
        let error = run(file, false).unwrap_err();
        assert!(error.contains("no output"), "{error}");
    }
}
