//! Checks of derivatives: their text, or why there is none.

use super::{Output, Session};
use crate::derivative::{Mode, derive as derive_in, differentiate, print_functions};
use crate::file::Directive;
use crate::signature::parse_signature;

/// `forward @f (dup) -> (active) width 2`: the text of all functions that forward mode adds.
pub(super) fn forward(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    derivative(session, Mode::Forward, directive.arguments())
}

/// `reverse @f (dup) -> (active)`: the text of all functions that combined reverse mode adds.
pub(super) fn reverse(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    derivative(session, Mode::Reverse, directive.arguments())
}

/// `split @f (dup) -> (active)`: the text of all functions that split reverse mode adds.
pub(super) fn split(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    derivative(session, Mode::Split, directive.arguments())
}

/// `; derive: reverse @f (dup) -> (active) as @df`: makes a derivative for later directives and checks nothing.
pub(super) fn derive(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    let (mode, rest) = split_mode(directive.text)?;
    if parse_signature(rest)?.names.is_empty() {
        return Err("`; derive:` needs `as @name`, or nothing can use it".to_owned());
    }
    derivative(session, mode, rest)?;
    Ok(Output::Passed)
}

/// `diff-error reverse @f (dup) -> (active)`: the refusal.
pub(super) fn diff_error(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    let (mode, rest) = split_mode(directive.arguments())?;
    let mut module = session.module()?.clone();
    let request = parse_signature(rest)?.request(&module)?;
    match differentiate(&mut module, mode, &request) {
        Ok(derivative) => Err(format!(
            "there is a derivative after all:\n{}",
            print_functions(&module, &derivative.added)
        )),
        Err(error) => Ok(Output::Text(error)),
    }
}

fn derivative(session: &mut Session, mode: Mode, text: &str) -> Result<Output, String> {
    let signature = parse_signature(text)?;
    let module = session.module()?;
    let mut with_derivative = module.clone();
    let derivative = derive_in(&mut with_derivative, mode, &signature)?;
    let text = print_functions(&with_derivative, &derivative.added);
    // A derivative with a name is kept for the directives below; others are dropped.
    if !signature.names.is_empty() {
        *module = with_derivative;
    }
    Ok(Output::Text(text))
}

fn split_mode(text: &str) -> Result<(Mode, &str), String> {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let mode = Mode::from_name(word)
        .ok_or_else(|| format!("expected `forward`, `reverse` or `split`, but found `{word}`"))?;
    Ok((mode, rest.trim()))
}
