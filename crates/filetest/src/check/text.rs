//! Checks of the text form and the verifier.

use super::{Output, Session};
use crate::file::Directive;
use ferrozyme_ir::{parse, print, verify};

/// `print`: the module's text, which must read back to the same text.
///
/// A file that is written as the printer writes need not say everything twice: its output is `as written`.
pub(super) fn print(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    no_arguments(directive)?;
    let source = session.source();
    let text = print::print_module(session.module()?);
    check_round_trip(&text)?;
    Ok(Output::Text(if same_program(source, &text) {
        "as written".to_owned()
    } else {
        text
    }))
}

/// Whether two texts are equal except for empty lines and comments.
pub(crate) fn same_program(a: &str, b: &str) -> bool {
    let lines = |text: &'_ str| -> Vec<String> {
        text.lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty() && !line.trim_start().starts_with(';'))
            .map(str::to_owned)
            .collect()
    };
    lines(a) == lines(b)
}

/// Printed text must parse, and print as itself again.
fn check_round_trip(text: &str) -> Result<(), String> {
    let again = parse::parse_module(text)
        .map_err(|error| format!("what was printed does not parse: {error}\n{text}"))?;
    let second = print::print_module(&again);
    if second == text {
        Ok(())
    } else {
        Err(format!(
            "what was printed reads back as something else:\n{}",
            similar::TextDiff::from_lines(text, &second).unified_diff()
        ))
    }
}

/// `parse-error`: the parser's error.
pub(super) fn parse_error(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    no_arguments(directive)?;
    match parse::parse_module(session.source()) {
        Ok(_) => Err("the text is a module after all".to_owned()),
        Err(error) => Ok(Output::Text(mark_error(session.source(), &error))),
    }
}

/// The line of a text with an error, and the message below it.
pub(crate) fn mark_error(source: &str, error: &parse::ParseError) -> String {
    let line = error.line as usize;
    let text = source.lines().nth(line.saturating_sub(1)).unwrap_or("");
    // The line itself instead of its number: expectations then survive a longer head comment.
    let mut marked: String = text
        .chars()
        .take((error.column as usize).saturating_sub(1))
        .map(|c| if c == '\t' { '\t' } else { ' ' })
        .collect();
    marked.push('^');
    format!("{text}\n{marked} {}", error.message)
}

/// `verify-error`: why the module is not well formed.
pub(super) fn verify_error(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    no_arguments(directive)?;
    let module = parse::parse_module(session.source())
        .map_err(|error| format!("the text is no module: {error}"))?;
    match verify::verify_module(&module) {
        Ok(()) => Err("the module is well formed after all".to_owned()),
        Err(errors) => {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            Ok(Output::Text(errors.join("\n")))
        }
    }
}

fn no_arguments(directive: &Directive) -> Result<(), String> {
    match directive.arguments() {
        "" => Ok(()),
        rest => Err(format!("`{rest}` means nothing here")),
    }
}
