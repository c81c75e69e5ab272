//! Shows diagnostics as rustc shows its own: for people, and as the JSON in which rustc hands them to cargo.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use ferrozyme_driver::{Diagnostic, Frame, Location, Severity, shorten};
use serde_json::{Value, json};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The diagnostic as text, with its source line if that can be read.
pub fn render(diagnostic: &Diagnostic, coloured: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut title = level.primary_title(diagnostic.message.as_str());
    if let Some(code) = &diagnostic.code {
        title = title.id(code.as_str());
    }
    let mut group = Group::with_title(title);
    let source = diagnostic.location.as_ref().map(Source::find);
    if let Some(source) = &source {
        group = match &source.text {
            Some((text, span)) => {
                let mark = AnnotationKind::Primary
                    .span(span.clone())
                    .label(diagnostic.construct.as_deref());
                let snippet = Snippet::source(text).path(source.shown.as_str());
                group.element(snippet.annotation(mark))
            }
            None => group.element(source.origin()),
        };
    }
    // Without the source line there is nothing to put it under.
    let mut notes = notes(diagnostic);
    if source.as_ref().is_none_or(|source| source.text.is_none())
        && let Some(construct) = &diagnostic.construct
    {
        notes.insert(0, construct.clone());
    }
    for note in &notes {
        group = group.element(Level::NOTE.message(note.as_str()));
    }
    if let Some(remedy) = &diagnostic.remedy {
        group = group.element(Level::HELP.message(remedy.as_str()));
    }
    let renderer = if coloured {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    renderer.render(&[group])
}

/// The diagnostic in one line, for `--message-format=short`.
pub fn render_short(diagnostic: &Diagnostic) -> String {
    let level = level_name(diagnostic.severity);
    let place = diagnostic.location.as_ref().map(describe_location);
    let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
    let code = diagnostic.code.as_ref().map(|code| format!("[{code}]"));
    let code = code.unwrap_or_default();
    format!("{place}{level}{code}: {}\n", diagnostic.message)
}

fn level_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// The diagnostic as rustc's JSON, with what cargo shows to people.
pub fn to_json(diagnostic: &Diagnostic, rendered: &str) -> Value {
    let level = level_name(diagnostic.severity);
    let child = |level: &str, message: &str| {
        json!({
            "message": message, "code": null, "level": level, "spans": [], "children": [], "rendered": null,
        })
    };
    let notes = notes(diagnostic);
    let children = notes.iter().map(|note| child("note", note));
    let help = diagnostic
        .remedy
        .as_ref()
        .map(|remedy| child("help", remedy));
    json!({
        "$message_type": "diagnostic",
        "message": diagnostic.message,
        "code": diagnostic.code.as_ref().map(|code| json!({"code": code, "explanation": null})),
        "level": level,
        "spans": diagnostic.location.as_ref().map(|location| span_to_json(location, diagnostic)).into_iter().collect::<Vec<_>>(),
        "children": children.chain(help).collect::<Vec<_>>(),
        "rendered": rendered,
    })
}

fn span_to_json(location: &Location, diagnostic: &Diagnostic) -> Value {
    let source = Source::find(location);
    let (bytes, width, text) = match &source.text {
        Some((text, span)) => {
            let line = text.lines().nth(location.line.saturating_sub(1) as usize);
            let width = text[span.clone()].chars().count() as u32;
            (span.clone(), width, line.unwrap_or_default())
        }
        None => (0..0, 1, ""),
    };
    let column = location.column.max(1);
    json!({
        "file_name": source.shown,
        "byte_start": bytes.start,
        "byte_end": bytes.end,
        "line_start": location.line,
        "line_end": location.line,
        "column_start": column,
        "column_end": column + width,
        "is_primary": true,
        "text": [{"text": text, "highlight_start": column, "highlight_end": column + width}],
        "label": diagnostic.construct,
        "suggested_replacement": null,
        "suggestion_applicability": null,
        "expansion": null,
    })
}

/// The location, and the notes.
fn notes(diagnostic: &Diagnostic) -> Vec<String> {
    let mut notes = Vec::new();
    for (number, frame) in diagnostic.chain.iter().enumerate() {
        let word = if number == 0 {
            "reached from"
        } else {
            "through"
        };
        notes.push(format!("{word} {}", describe_frame(frame)));
    }
    notes.extend(diagnostic.notes.iter().cloned());
    notes
}

fn describe_frame(frame: &Frame) -> String {
    match &frame.location {
        Some(location) => format!("`{}` ({})", frame.function, describe_location(location)),
        None => format!("`{}`", frame.function),
    }
}

/// A location as `file:line:column`, the file relative to where we are if it is below.
pub fn describe_location(location: &Location) -> String {
    let mut text = format!("{}:{}", shorten(Path::new(&location.file)), location.line);
    if location.column > 0 {
        text.push_str(&format!(":{}", location.column));
    }
    text
}

/// A place in the source, and the source if it can be read.
struct Source<'a> {
    location: &'a Location,
    shown: String,
    text: Option<(String, Range<usize>)>,
}

impl<'a> Source<'a> {
    fn find(location: &'a Location) -> Source<'a> {
        let path = PathBuf::from(&location.file);
        let text = std::fs::read_to_string(&path).ok().and_then(|text| {
            let span = span_at(&text, location.line, location.column)?;
            Some((text, span))
        });
        Source {
            location,
            shown: shorten(&path),
            text,
        }
    }

    fn origin(&self) -> Origin<'_> {
        let origin = Origin::path(self.shown.as_str()).line(self.location.line as usize);
        if self.location.column > 0 {
            origin.char_column(self.location.column as usize)
        } else {
            origin
        }
    }
}

/// The byte range of a token at a location: a word, or a single character, or without a column the contents of the line.
fn span_at(text: &str, line: u32, column: u32) -> Option<Range<usize>> {
    let number = usize::try_from(line.checked_sub(1)?).ok()?;
    let line_text = text.split_inclusive('\n').nth(number)?;
    let line_start: usize = text.split_inclusive('\n').take(number).map(str::len).sum();
    let trimmed = line_text.trim_end();
    let indent = trimmed.len() - trimmed.trim_start().len();
    let Some(column) = column.checked_sub(1) else {
        return Some(line_start + indent..line_start + trimmed.len().max(indent));
    };
    let offset = trimmed
        .char_indices()
        .nth(column as usize)
        .map_or(trimmed.len(), |(offset, _)| offset);
    let rest = &trimmed[offset..];
    let word = rest
        .char_indices()
        .find(|(_, character)| !(character.is_alphanumeric() || *character == '_'))
        .map_or(rest.len(), |(end, _)| end);
    let length = match word {
        0 => rest.chars().next().map_or(0, char::len_utf8),
        word => word,
    };
    let start = line_start + offset;
    Some(start..start + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn example(file: &Path) -> Diagnostic {
        Diagnostic {
            location: Some(Location {
                file: file.display().to_string(),
                line: 2,
                column: 13,
            }),
            construct: Some("reads a file".to_owned()),
            chain: vec![
                Frame {
                    function: "app::loss".to_owned(),
                    location: Some(Location {
                        file: "src/main.rs".to_owned(),
                        line: 9,
                        column: 0,
                    }),
                },
                Frame {
                    function: "app::inner".to_owned(),
                    location: None,
                },
            ],
            notes: vec!["more to know".to_owned()],
            remedy: Some("mark it as inactive".to_owned()),
            code: Some("FZ0401".to_owned()),
            ..Diagnostic::error("cannot differentiate this call")
        }
    }

    #[test]
    fn shows_the_source_line() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("a.rs");
        std::fs::write(&file, "fn f() {\n    let x = read_it(y);\n}\n").expect("writable");
        let text = render(&example(&file), false);
        let text = text.replace(&folder.path().display().to_string(), "FOLDER");
        expect![[r#"
            error[FZ0401]: cannot differentiate this call
             --> FOLDER/a.rs:2:13
              |
            2 |     let x = read_it(y);
              |             ^^^^^^^ reads a file
              |
              = note: reached from `app::loss` (src/main.rs:9)
              = note: through `app::inner`
              = note: more to know
              = help: mark it as inactive"#]]
        .assert_eq(&text);
        assert!(
            render_short(&example(&file))
                .ends_with("a.rs:2:13: error[FZ0401]: cannot differentiate this call\n")
        );
        let value = to_json(&example(&file), "shown");
        assert_eq!(value["rendered"], "shown");
        assert_eq!(value["code"]["code"], "FZ0401");
        assert_eq!(value["spans"][0]["column_end"], 20);
        assert_eq!(value["spans"][0]["byte_start"], 21);
        assert_eq!(value["children"].as_array().map(Vec::len), Some(4));
    }

    #[test]
    fn shows_the_place_without_the_source() {
        let text = render(&example(Path::new("/nowhere/a.rs")), false);
        expect![[r#"
            error[FZ0401]: cannot differentiate this call
            --> /nowhere/a.rs:2:13
             = note: reads a file
             = note: reached from `app::loss` (src/main.rs:9)
             = note: through `app::inner`
             = note: more to know
             = help: mark it as inactive"#]]
        .assert_eq(&text);
    }

    #[test]
    fn places_behind_the_end_do_no_harm() {
        assert_eq!(span_at("a\n", 7, 1), None);
        assert_eq!(span_at("a\n", 0, 1), None);
        assert_eq!(span_at("a\n", 1, 9), Some(1..1));
        assert_eq!(span_at("  ab  \n", 1, 0), Some(2..4));
    }
}
