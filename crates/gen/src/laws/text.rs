//! Laws of the text form: a program verifies, and is the same after printing and parsing.

use super::{Kind, Law, Subject, Violation};
use ferrozyme_ir::{parse_module, print_module, verify_module};

/// The program verifies.
pub fn verifies(subject: &Subject) -> Result<(), Violation> {
    verify_module(&subject.module)
        .map_err(|error| Violation::invalid(Law::Verify, "the program", &error))
}

/// A printed and parsed program verifies and prints the same.
///
/// Equal texts mean equal programs: names, flags, facts, constants and the order of operations are all in the text.
pub fn round_trip(subject: &Subject) -> Result<(), Violation> {
    let text = print_module(&subject.module);
    let parsed = parse_module(&text).map_err(|error| {
        let detail = format!("what was printed does not parse: {error}");
        Violation::new(Law::Text, Kind::Text, detail)
    })?;
    verify_module(&parsed)
        .map_err(|error| Violation::invalid(Law::Text, "what was printed", &error))?;
    let again = print_module(&parsed);
    let Some((before, after)) = text
        .lines()
        .zip(again.lines())
        .find(|(before, after)| before != after)
    else {
        if text.lines().count() != again.lines().count() {
            let detail = "what was parsed has another number of lines";
            return Err(Violation::new(Law::Text, Kind::Text, detail));
        }
        return Ok(());
    };
    let detail = format!("a line changes:\n  {before}\n  {after}");
    Err(Violation::new(Law::Text, Kind::Text, detail))
}
