//! `docs/refusals.md` has all refusals, in its table and as sections. `FERROZYME_BLESS=1` rewrites the table.

use ferrozyme_refusal::{C, LOOP_IR, ROWS, RUST, table};
use std::path::Path;

const START: &str = "FERROZYME_BLESS=1 cargo test -p ferrozyme-refusal -->\n";
const END: &str = "<!-- end of the table -->";

#[test]
fn the_table_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/refusals.md");
    let text = std::fs::read_to_string(&path).expect("the documentation");
    let (before, rest) = text.split_once(START).expect("where the table starts");
    let (shown, behind) = rest.split_once(END).expect("where the table ends");
    let wanted = format!("\n{}\n", table());
    if std::env::var_os("FERROZYME_BLESS").is_some() {
        let text = format!("{before}{START}{wanted}{END}{behind}");
        std::fs::write(&path, text).expect("the documentation can be written");
    } else {
        assert_eq!(
            shown, wanted,
            "FERROZYME_BLESS=1 cargo test -p ferrozyme-refusal rewrites the table"
        );
    }
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
