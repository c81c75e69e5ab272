//! The examples of `docs/refusals.md`, which the tests of the drivers compile as well.

use std::path::Path;

/// The code blocks of a language, with the codes under which they stand.
pub(crate) fn examples(language: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/refusals.md");
    let text = std::fs::read_to_string(path).expect("the documentation");
    let mut found = Vec::new();
    for section in text.split("\n### ").skip(1) {
        let (code, rest) = section.split_once('\n').expect("a heading");
        let mut blocks = rest.split("```");
        while let (Some(_), Some(block)) = (blocks.next(), blocks.next()) {
            if let Some((of, example)) = block.split_once('\n')
                && of == language
            {
                found.push((code.to_owned(), example.to_owned()));
            }
        }
    }
    found
}
