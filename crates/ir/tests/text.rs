//! The text form: what each construct looks like, that it reads back, and what the parser says about mistakes.

use expect_test::{Expect, expect};
use ferrozyme_ir::{parse_module, print_module};

/// Parses a text, expects how it prints, and that this reads back to the same.
#[track_caller]
fn check(text: &str, expected: Expect) {
    let module = parse_module(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let printed = print_module(&module);
    expected.assert_eq(&printed);
    let again = parse_module(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(print_module(&again), printed);
}

#[test]
fn the_example() {
    check(
        r#"
    file 0 "src/dot.rs"
    global @table: 16 bytes align 8 const = x"0000000000000840" { 8: @dot }      ; 8 bytes given, rest zero, address of @dot at offset 8
    declare @ext(f64, ptr readonly) -> (f64) memory(read) willreturn
    rule @ext forward @ext_fwd augment @ext_aug reverse @ext_rev
    declare @ext_fwd()
    declare @ext_aug()
    declare @ext_rev()
    func @dot(%x: ptr noalias readonly layout [f64], %n: i64 range 0..=100) -> (f64) noinline {
      %sum = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
        %px = offset inbounds %x, %i * 8
        %a = load f64 %px align 8 loc(0:12:5)
        %next = fadd fast f64 %acc, %a
        yield %next
      }
      %c = fcmp ogt f64 %sum, 1.0
      %r = if %c -> (f64) { yield 1.0 } else { %h = fmul f64 %sum, 0.5  yield %h }
      return %r
    }
"#,
        expect![[r#"
            file 0 "src/dot.rs"

            global @table: 16 bytes align 8 const = x"0000000000000840" { 8: @dot }

            declare @ext(f64, ptr readonly) -> (f64) memory(read) willreturn
            declare @ext_fwd()
            declare @ext_aug()
            declare @ext_rev()

            func @dot(%x: ptr noalias readonly layout [f64], %n: i64 range 0..=100) -> (f64) noinline {
              %sum = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
                %px = offset inbounds %x, %i * 8
                %a = load f64 %px align 8 loc(0:12:5)
                %next = fadd fast f64 %acc, %a
                yield %next
              }
              %c = fcmp ogt f64 %sum, 1.0
              %r = if %c -> (f64) {
                yield 1.0
              } else {
                %h = fmul f64 %sum, 0.5
                yield %h
              }
              return %r
            }

            rule @ext forward @ext_fwd augment @ext_aug reverse @ext_rev
        "#]],
    );
}
