//! Every error that the macros report, with its text, its help and its place: `tests/ui/*.rs` and the `.stderr` beside each.
//! `TRYBUILD=overwrite` rewrites the expectations.

#[test]
fn errors_are_as_expected() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
