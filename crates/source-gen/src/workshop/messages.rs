//! Reads from the messages of a compiler which programs it refuses, and why.

use crate::verdict::Finding;
use std::collections::HashMap;

/// The messages about each program, by its number. Each program has files of its own: `f12.rs`, `f12.c`.
pub(super) fn blame(messages: &str) -> HashMap<usize, Finding> {
    let mut findings: HashMap<usize, Finding> = HashMap::new();
    for message in split(messages) {
        let Some(program) = program_of(message) else {
            continue;
        };
        findings.entry(program).or_insert_with(|| classify(message));
    }
    findings
}

/// The messages about a program that was compiled alone.
pub(super) fn blame_alone(messages: &str) -> Finding {
    let finding = split(messages).first().and_then(|message| {
        let finding = classify(message);
        // That the program does not compile is known to be the compiler's doing: nobody is named.
        matches!(finding, Finding::Refused(_)).then_some(finding)
    });
    finding.unwrap_or_else(|| Finding::Crashed(messages.to_owned()))
}

fn classify(message: &str) -> Finding {
    let kind = kind_of(message);
    let bug = message.contains("bug in Ferrozyme") || message.contains("panicked at");
    // An error without one of our codes comes from the language's own compiler.
    let refusal = message.contains("[FZ");
    match (bug, refusal) {
        (true, _) => Finding::Crashed(kind),
        (false, true) => Finding::Refused(kind),
        (false, false) => Finding::Invalid(message.to_owned()),
    }
}

/// The messages of errors, each with its notes.
fn split(messages: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = Vec::new();
    let mut position = 0;
    for line in messages.split_inclusive('\n') {
        let plain = line.trim_start();
        // rustc starts lines so, clang puts the place first.
        if line.starts_with("error") || (line == plain && line.contains(": error: ")) {
            starts.push(position);
        }
        position += line.len();
    }
    starts.push(messages.len());
    starts
        .windows(2)
        .map(|pair| &messages[pair[0]..pair[1]])
        .collect()
}

/// The number of the program that a message is about: the place of its request, or else the first of its files that is named.
fn program_of(message: &str) -> Option<usize> {
    let requested = message
        .find("requested at ")
        .and_then(|position| file_number(&message[position..]));
    requested.or_else(|| file_number(message))
}

fn file_number(text: &str) -> Option<usize> {
    for (position, _) in text.match_indices('f') {
        let before = text[..position].chars().next_back();
        if before.is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
            continue;
        }
        let rest = &text[position + 1..];
        let digits = rest.len()
            - rest
                .trim_start_matches(|letter: char| letter.is_ascii_digit())
                .len();
        let after = &rest[digits..];
        if digits > 0 && (after.starts_with(".rs:") || after.starts_with(".c:")) {
            return rest[..digits].parse().ok();
        }
    }
    None
}

/// The first line without the names in it, so that refusals of one kind can be counted.
fn kind_of(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let line = line.split_once("error: ").map_or(line, |(_, text)| text);
    let mut kind = String::new();
    for (index, part) in line.split(['`', '\'']).enumerate() {
        kind.push_str(if index % 2 == 0 { part } else { "…" });
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_from_mistakes() {
        let text = "\
   Compiling group v0.1.0
error[FZ0401]: active values go through `x`
 --> src/bin/g0/f1.rs:6:35
  |
  = note: needed for the derivative `d_root` of `g0::f2::root`, requested at src/bin/g0/f2.rs:4

error[E0308]: mismatched types
 --> src/bin/g0/f13.rs:6:35

unit0.c: error: nothing
./f7.c:3:5: error: cannot differentiate inline assembly [FZ0504]
error: could not compile `t1` (bin \"t1\") due to 2 previous errors
";
        let findings = blame(text);
        assert_eq!(findings.len(), 3);
        assert!(
            matches!(&findings[&2], Finding::Refused(kind) if kind == "error[FZ0401]: active values go through …")
        );
        assert!(matches!(findings[&13], Finding::Invalid(_)));
        assert!(matches!(findings[&7], Finding::Refused(_)));
    }
}
