//! Reads text files, and shows errors with source excerpts.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use ferrozyme_ir::parse::{ParseError, parse_module};
use ferrozyme_ir::verify::verify_module;
use ferrozyme_ir::{FunctionId, Module};
use std::io::{IsTerminal, Read, stderr, stdin};
use std::path::Path;

/// The text of a file; of the standard input for `-`.
pub fn read_text(path: &Path) -> Result<String, String> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    text.map_err(|error| format!("error: cannot read {}: {error}", path.display()))
}

/// The module in a file, which must parse but need not verify.
pub fn read_module(path: &Path) -> Result<Module, String> {
    let text = read_text(path)?;
    parse_module(&text).map_err(|error| show_parse_error(path, &text, &error))
}

/// The module in a file, which must parse and verify.
pub fn read_verified_module(path: &Path) -> Result<Module, String> {
    let module = read_module(path)?;
    check_module(&module)?;
    Ok(module)
}

/// All complaints of the verifier, as one error.
pub fn check_module(module: &Module) -> Result<(), String> {
    verify_module(module).map_err(|errors| {
        let errors: Vec<String> = errors
            .iter()
            .map(|error| format!("error: {error}"))
            .collect();
        errors.join("\n\n")
    })
}

/// The function of this name (with or without `@`); without a name, the only one with a body.
pub fn choose_function(module: &Module, name: Option<&str>) -> Result<FunctionId, String> {
    if let Some(name) = name {
        let name = name.strip_prefix('@').unwrap_or(name);
        return ferrozyme_filetest::signature::find_function(module, name)
            .map_err(|error| format!("error: {error}"));
    }
    let mut with_body = module
        .functions
        .iter()
        .filter(|(_, function)| function.body.is_some());
    match (with_body.next(), with_body.next()) {
        (Some((only, _)), None) => Ok(only),
        (None, _) => Err("error: the module has no function with a body".to_owned()),
        (Some(_), Some(_)) => Err(
            "error: the module has several functions; choose one with --function @name".to_owned(),
        ),
    }
}

/// A parse error with its line, in rustc's style.
pub(crate) fn show_parse_error(path: &Path, text: &str, error: &ParseError) -> String {
    let start = byte_of(text, error.line, error.column);
    let end = text[start..]
        .char_indices()
        .find(|(_, c)| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '%' | '@' | '\'')))
        .map_or(text.len(), |(offset, _)| start + offset)
        .max(next_char(text, start));
    let name = if path == Path::new("-") {
        "<stdin>".into()
    } else {
        path.to_string_lossy()
    };
    let report = &[Level::ERROR.primary_title(&*error.message).element(
        Snippet::source(text)
            .path(&*name)
            .annotation(AnnotationKind::Primary.span(start..end)),
    )];
    let coloured = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let renderer = if coloured {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    renderer.render(report).to_string()
}

/// The byte at a line and column, both counted from 1; the end of the text for places behind it.
fn byte_of(text: &str, line: u32, column: u32) -> usize {
    let line_start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1) as usize)
        .map(str::len)
        .sum();
    let rest = &text[line_start..];
    rest.char_indices()
        .nth(column.saturating_sub(1) as usize)
        .map_or(text.len(), |(offset, _)| line_start + offset)
}

fn next_char(text: &str, start: usize) -> usize {
    start + text[start..].chars().next().map_or(0, char::len_utf8)
}
