//! Messages in clang's style: `file:line:column: error: text [code]`, the line of the source, and notes.

use crate::Failure;
use ferrozyme_driver::{Diagnostic, Location, Severity};
use std::fmt::Write;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Prints all problems, and returns the failure that follows from them.
pub(crate) fn show(problems: &[Diagnostic]) -> Failure {
    for problem in problems {
        eprint!("{}", text(problem));
    }
    let count = problems.len();
    let plural = if count == 1 { "" } else { "s" };
    eprintln!("{count} error{plural} generated.");
    Failure::Status(1)
}

/// One message.
pub(crate) fn text(diagnostic: &Diagnostic) -> String {
    let mut text = String::new();
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let place = diagnostic.location.as_ref().map(place).unwrap_or_default();
    let message = demangled(&diagnostic.headline());
    let _ = writeln!(text, "{place}{severity}: {message}");
    if let Some(location) = &diagnostic.location {
        write_source(&mut text, location);
    }
    if diagnostic.chain.len() > 1 {
        let names: Vec<&str> = diagnostic
            .chain
            .iter()
            .map(|frame| frame.function.as_str())
            .collect();
        let names = demangled(&names.join(" -> "));
        let _ = writeln!(text, "{place}note: reached through {names}");
    }
    for note in &diagnostic.notes {
        let _ = writeln!(text, "{place}note: {}", demangled(note));
    }
    if let Some(remedy) = &diagnostic.remedy {
        let _ = writeln!(text, "{place}note: help: {}", demangled(remedy));
    }
    text
}

/// A text with names of C++ as they are written, by the tool that comes with the linker; without it they stay as they are.
fn demangled(text: &str) -> String {
    if !text.contains("_Z") {
        return text.to_owned();
    }
    let filter = |tool: &str| -> Option<String> {
        let mut child = Command::new(tool)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut input = child.stdin.take()?;
        // The tool answers while it is being told; it waits where nobody reads the answer.
        let output = std::thread::scope(|scope| {
            scope.spawn(move || input.write_all(text.as_bytes()));
            child.wait_with_output()
        });
        let output = output.ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then_some(text)
    };
    let tools = ["c++filt", "llvm-cxxfilt-22", "llvm-cxxfilt"];
    let found = tools.into_iter().find_map(filter);
    found.unwrap_or_else(|| text.to_owned())
}

fn place(location: &Location) -> String {
    let file = shown_file(&location.file);
    match location.column {
        0 if location.line == 0 => format!("{file}: "),
        0 => format!("{file}:{}: ", location.line),
        column => format!("{file}:{}:{column}: ", location.line),
    }
}

/// A file as the user named it, most likely: debug information makes paths absolute.
fn shown_file(file: &str) -> &str {
    let here = std::env::current_dir().unwrap_or_default();
    let within = std::path::Path::new(file)
        .strip_prefix(&here)
        .ok()
        .and_then(|path| path.to_str());
    within.unwrap_or(file)
}

/// The line, with a mark below the column.
fn write_source(text: &mut String, location: &Location) {
    let Ok(source) = std::fs::read_to_string(&location.file) else {
        return;
    };
    let Some(line) = source.lines().nth((location.line as usize).wrapping_sub(1)) else {
        return;
    };
    let _ = writeln!(text, "{:>5} | {line}", location.line);
    if location.column > 0 {
        let before: String = line
            .chars()
            .take(location.column as usize - 1)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let _ = writeln!(text, "      | {before}^");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_demangled() {
        // More than pipes hold.
        let lines = 100_000;
        let text = demangled(&"call @_Z3addii\n".repeat(lines));
        assert_eq!(text.lines().count(), lines);
    }
}
