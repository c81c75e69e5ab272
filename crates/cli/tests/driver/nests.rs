//! The nests of `tests/nests`: which sums of products become contractions, and that values and gradients are right.

use super::project::{Project, repository};
use ferrozyme_nests::expectations;

#[test]
fn nests_are_raised_as_expected() {
    let package = repository().join("tests/nests");
    let folder = package.join("tests/nests");
    let sources = std::fs::read_dir(folder).expect("the nests");
    let sources: Vec<String> = sources
        .map(|entry| std::fs::read_to_string(entry.expect("a file").path()).expect("a text"))
        .collect();
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let project = Project { folder: package };
    let run = project.ferrozyme(&["explain", "--release", "--test", "nests"]);
    if let Err(wrong) = expectations::compare(&sources, run.expect_success()) {
        panic!("{wrong}");
    }
    let run = project.ferrozyme(&["test", "--release", "--test", "nests"]);
    run.expect_success();
}
