//! The parts of a module's text: functions, globals, rules. Parts that nothing needs are dropped as text, because ids change.

/// Whether a part of a text is `@main`, or says something about what another part mentions.
pub(super) fn is_needed(section: &str, all: &[&str], main: &str) -> bool {
    if section.starts_with("file ") {
        return all.iter().any(|other| other.contains(" loc("));
    }
    let (name, rule) = match (symbol(section), section.strip_prefix("rule @")) {
        (Some(name), _) => (name, false),
        (None, Some(rest)) => (rest.split(' ').next().unwrap_or_default(), true),
        (None, None) => return true,
    };
    // A rule is of use only if its function is called.
    name == main
        || all.iter().any(|other| {
            *other != section && mentions(other, name) && !(rule && symbol(other) == Some(name))
        })
}

/// The parts of a module's text, one for each function, global, and so on.
pub(crate) fn sections(text: &str) -> Vec<&str> {
    let mut sections = Vec::new();
    let mut start = 0;
    let mut position = 0;
    for line in text.split_inclusive('\n') {
        let opens = ["func ", "global ", "declare ", "rule ", "file "];
        if opens.iter().any(|word| line.starts_with(word)) && position > start {
            sections.push(text[start..position].trim_end());
            start = position;
        }
        position += line.len();
    }
    sections.push(text[start..].trim_end());
    sections.retain(|section| !section.is_empty());
    sections
}

/// The name that a part defines.
fn symbol(section: &str) -> Option<&str> {
    let rest = (section.strip_prefix("func @"))
        .or_else(|| section.strip_prefix("global @"))
        .or_else(|| section.strip_prefix("declare @"))?;
    rest.split(['(', ':', ' ']).next()
}

fn mentions(section: &str, name: &str) -> bool {
    let sign = format!("@{name}");
    section.match_indices(&sign).any(|(at, _)| {
        let next = section[at + sign.len()..].chars().next();
        !next.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '\''))
    })
}
