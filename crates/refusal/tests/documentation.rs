//! `docs/refusals.md` has all refusals, in its table and as sections. `UPDATE_EXPECT=1` rewrites the table.

use expect_test::expect_file;
use ferrozyme_refusal::{C, LOOP_IR, ROWS, RUST, table};
use std::path::Path;

const START: &str = "UPDATE_EXPECT=1 cargo test -p ferrozyme-refusal -->\n";
const END: &str = "<!-- end of the table -->";

#[test]
fn the_table_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/refusals.md");
    let text = std::fs::read_to_string(path).expect("the documentation");
    let (before, rest) = text.split_once(START).expect("where the table starts");
    let (_, behind) = rest.split_once(END).expect("where the table ends");
    let page = format!("\n{}\n", table());
    let page = format!("{before}{START}{page}{END}{behind}");
    expect_file!["../../../docs/refusals.md"].assert_eq(&page);
}

#[test]
fn each_refusal_has_a_section() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/refusals.md");
    let text = std::fs::read_to_string(path).expect("the documentation");
    let sections: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .collect();
    let codes: Vec<String> = ROWS.iter().map(|row| row.code.to_string()).collect();
    assert_eq!(sections, codes);
}

#[test]
fn codes_are_in_order() {
    assert!(ROWS.windows(2).all(|pair| pair[0].code < pair[1].code));
}

/// Each language says what is its own in its own quotes.
#[test]
fn languages_quote_as_their_compilers_do() {
    for (terms, quote) in [(&LOOP_IR, '`'), (&RUST, '`'), (&C, '\'')] {
        for term in [terms.constant, terms.duplicated] {
            assert!(term.starts_with(quote), "{term}");
        }
    }
}

/// Each code stands in a test, or its section has an example in Rust or C, which the drivers' tests compile.
#[test]
fn each_refusal_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut tests = String::new();
    for folder in ["filetests", "tests/c", "tests/programs/tests"] {
        read_files(&root.join(folder), &mut tests);
    }
    for package in std::fs::read_dir(root.join("crates")).expect("the packages") {
        let tests_of_package = package.expect("a package").path().join("tests");
        if tests_of_package.is_dir() && !tests_of_package.ends_with("refusal/tests") {
            read_files(&tests_of_package, &mut tests);
        }
    }
    let text = std::fs::read_to_string(root.join("docs/refusals.md")).expect("the documentation");
    for section in text.split("\n### ").skip(1) {
        // Examples in Loop IR are only read.
        if section.contains("\n```rust") || section.contains("\n```c\n") {
            tests.push_str(section.lines().next().unwrap_or_default());
            tests.push('\n');
        }
    }
    let codes = ROWS.iter().map(|row| row.code.to_string());
    let missing: Vec<String> = codes.filter(|code| !tests.contains(code)).collect();
    assert!(missing.is_empty(), "codes without a test: {missing:?}");
}

/// Adds what the text files of a folder hold.
fn read_files(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("its files can be listed").path();
        if path.is_dir() {
            read_files(&path, text);
        } else if let Ok(contents) = std::fs::read_to_string(&path) {
            text.push_str(&contents);
        }
    }
}
