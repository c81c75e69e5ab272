//! `docs/library.md` has all rows of the table. `UPDATE_EXPECT=1` rewrites them.

use expect_test::expect_file;
use ferrozyme_library::{
    AllocationFunction, AllocationRole, Input, Known, Variant, functions, mathematical, variant,
};
use std::fmt::Write as _;
use std::path::Path;

const START: &str = "UPDATE_EXPECT=1 cargo test -p ferrozyme-library -->\n";
/// The derivatives of functions that are neither operations nor have a body.
const RULES: &str = include_str!("../../import/src/library.fz");
const END: &str = "<!-- end of the table -->";

#[test]
fn the_table_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/library.md");
    let text = std::fs::read_to_string(path).expect("the documentation");
    let (before, rest) = text.split_once(START).expect("where the table starts");
    let (_, behind) = rest.split_once(END).expect("where the table ends");
    let page = format!("\n{}", page());
    let page = format!("{before}{START}{page}{END}{behind}");
    expect_file!["../../../docs/library.md"].assert_eq(&page);
}

/// What is said of something that is known, if that is asked for.
type Say = fn(&Known) -> Option<String>;

/// The sections of the page: their titles, and what is said of the functions in them.
const SECTIONS: &[(&str, Say)] = &[
    (
        "Nothing that goes through these functions of C carries a derivative, unless the program has a function of that name",
        |known| plain(known, &Known::Inactive),
    ),
    (
        "These stay outside, whatever is known of their bodies, and nothing that goes through them carries a derivative",
        |known| plain(known, &Known::Outside),
    ),
    ("Parts of those that are looked into", |known| {
        plain(known, &Known::LookedInto)
    }),
    (
        "Inactive in programs of Rust, where the standard library calls them",
        |known| plain(known, &Known::InactiveIn("rustc")),
    ),
    ("Global variables that are inactive", |known| {
        plain(known, &Known::InactiveVariable)
    }),
    (
        "Global variables with numbers from outside, which are inactive, and no addresses",
        |known| plain(known, &Known::HoldsNumbers),
    ),
    (
        "Numbers from outside: what they write is constant",
        |known| match known {
            Known::Input(input) => Some(shown_input(*input)),
            _ => None,
        },
    ),
    ("Numbers become text", |known| {
        plain(known, &Known::WritesText)
    }),
    ("Numbers are read from text", |known| {
        plain(known, &Known::ReadsText)
    }),
    ("Memory", |known| match known {
        Known::Allocator(known) => Some(shown_allocator(known)),
        Known::AllocatesInto(known) => Some(format!(
            "{}, writes the address to its first argument",
            shown_allocator(known)
        )),
        _ => None,
    }),
    (
        "Mathematics beside the [table of mathematical functions](mathematics.md); in single precision with `f` at the end",
        |known| match known {
            Known::Mathematics(variant) => Some(shown_variant(*variant)),
            Known::OfC => {
                Some("as C's functions of the same names, unless derivatives are strict".to_owned())
            }
            Known::ComputedBy(_) => Some("as loops, unless derivatives are strict".to_owned()),
            _ => None,
        },
    ),
    (
        "Differentiated from bodies that come with `ferrozyme-cc`",
        |known| plain(known, &Known::Body),
    ),
    (
        "Formatting: what it shows keeps its derivative, and code of the program that it runs must change no numbers",
        |known| match known {
            Known::Formatting => Some(String::new()),
            Known::Shows(first) => {
                Some(format!("shows its arguments from number {} on", first + 1))
            }
            _ => None,
        },
    ),
    (
        "Inlined always, since they are told the layout of elements",
        |known| plain(known, &Known::TakesLayouts),
    ),
    (
        "They do nothing, or give their first argument, or are an operation on integers",
        |known| match known {
            Known::Note => Some("nothing".to_owned()),
            Known::FirstArgument => Some("its first argument".to_owned()),
            Known::Operation(opcode) => Some(format!("`{opcode}`")),
            _ => None,
        },
    ),
];

fn plain(known: &Known, wanted: &Known) -> Option<String> {
    (known == wanted).then(String::new)
}

/// The table as Markdown: a section for each kind, in it the names of functions of which the same is known.
fn page() -> String {
    let mut page = String::new();
    for (title, say) in SECTIONS {
        let _ = writeln!(page, "**{title}:**\n");
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for (name, said) in functions(say) {
            let name = format!("`{name}`");
            match groups.iter_mut().find(|(known, _)| *known == said) {
                Some((_, names)) => names.push(name),
                None => groups.push((said, vec![name])),
            }
        }
        for (said, names) in groups {
            let said = if said.is_empty() {
                said
            } else {
                format!(": {said}")
            };
            let _ = writeln!(page, "- {}{said}", names.join(", "));
        }
        page.push('\n');
    }
    let names: Vec<String> = with_rules().map(|name| format!("`{name}`")).collect();
    let _ = writeln!(
        page,
        "**Functions with rules (`crates/import/src/library.fz`); in single precision with `f` at the end:**\n\n- {}\n",
        names.join(", ")
    );
    page
}

/// The functions with rules.
fn with_rules() -> impl Iterator<Item = &'static str> {
    let declared = RULES.lines();
    let declared = declared.filter_map(|line| line.strip_prefix("declare @"));
    declared.filter_map(|line| line.split('(').next())
}

/// A function that is an operation of the Loop IR needs no rule.
#[test]
fn each_function_is_described_once() {
    let twice: Vec<&str> = with_rules()
        .filter(|name| mathematical(name).is_some() || variant(name).is_some())
        .collect();
    assert!(twice.is_empty(), "rows of mathematics, too: {twice:?}");
}

fn shown_input(input: Input) -> String {
    match input {
        Input::Bytes(bytes) => format!("bytes, to its argument {}", bytes.to + 1),
        Input::Formatted(format) => format!("numbers, as its argument {} says", format + 1),
        Input::Text => "text".to_owned(),
    }
}

fn shown_allocator(known: &AllocationFunction) -> String {
    let does = match known.role {
        AllocationRole::Allocate { zeroed: false } => "allocates",
        AllocationRole::Allocate { zeroed: true } => "allocates zeros",
        AllocationRole::Reallocate => "resizes",
        AllocationRole::Release => "releases",
    };
    format!("{does}, family `{}`", known.family)
}

fn shown_variant(variant: Variant) -> String {
    match variant {
        Variant::LongExponent => "`ldexp`".to_owned(),
        Variant::ToInteger(opcode) => format!("`{opcode}`, as an integer"),
        Variant::Magnitude => "`hypot` of both parts".to_owned(),
        Variant::Angle => "`atan2` of both parts".to_owned(),
        Variant::RemainderAndQuotient => "`remainder`; the quotient has no derivative".to_owned(),
        Variant::OfOrder(opcode, order) => format!("`{opcode}` of order {order}"),
        Variant::SineAndCosine => "`sin` and `cos`".to_owned(),
        Variant::LogGammaAndSign(_) => "`lgamma`; the sign has no derivative".to_owned(),
    }
}
