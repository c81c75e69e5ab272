//! What the parser says of text that is no module.

use super::*;

/// The verifier refuses these; that they can be written down is how it is tested.
#[test]
fn malformed_functions() {
    check_body(
        r#"
return
%x, %y = call @pair(%a, 1)
if %a { return 2.0 again 1 }
for %n: i64 = %a to %p step 1 { }
yield %a, %b"#,
        expect![[r#"
            return
            %x, %y = call @pair(%a, 1)
            if %a {
              return 2.0
              again 1
            }
            for %n: i64 = %a to %p step 1 {
            }
            yield %a, %b
        "#]],
    );
}

#[test]
fn errors_in_statements() {
    check_body_error(
        r#"%x = fmull f64 %a, %b"#,
        expect!["1:6: unknown operation `fmull`, did you mean `fmul`?"],
    );
    check_body_error(
        r#"%x = frobnicate f64 %a"#,
        expect!["1:6: unknown operation `frobnicate`"],
    );
    check_body_error(
        r#"%x = %y"#,
        expect!["1:6: expected an operation, found `%y`"],
    );
    check_body_error(
        r#"%x fadd f64 %a, %b"#,
        expect!["1:4: expected `=`, found `fadd`"],
    );
    check_body_error(
        r#"12"#,
        expect!["1:1: expected an operation or `}`, found `12`"],
    );
    check_body_error(r#"return %x"#, expect!["1:8: value %x is not defined here"]);
    check_body_error(
        r#"%x = fadd f64 %x, %a"#,
        expect![
            "1:15: value %x is not defined here: the operation that defines it is not complete"
        ],
    );
    check_body_error(
        r#"%x = fadd %a, %b"#,
        expect!["1:11: expected a type, found `%a`"],
    );
    check_body_error(
        r#"%x = fadd i129 %a, %b"#,
        expect!["1:11: integers have 1 to 128 bits"],
    );
    check_body_error(
        r#"%x = fadd f64 %a %b"#,
        expect!["1:18: expected `,`, found `%b`"],
    );
    check_body_error(
        r#"%x = fadd f64 %a, %i"#,
        expect!["1:19: `%i` has type i64, not f64"],
    );
    check_body_error(
        r#"%x = fadd f64 %a, @g"#,
        expect!["1:19: expected a value, or a constant of type f64, found `@g`"],
    );
    check_body_error(
        r#"%x = add i8 1, 256"#,
        expect!["1:16: 256 does not fit in i8"],
    );
    check_body_error(
        r#"%x = add i64 %i, 1.5"#,
        expect!["1:18: `1.5` is not a constant of type i64"],
    );
    check_body_error(
        r#"%x = fadd f32 %s, 1e39"#,
        expect!["1:19: 1e39 does not fit in f32"],
    );
    check_body_error(
        r#"%x = load f64 5"#,
        expect!["1:15: `5` is not an address: write `null`, `@name` or the bits as `0x…`"],
    );
    check_body_error(
        r#"%x = load f64 %p align 3"#,
        expect!["1:24: an alignment is a power of two, and 3 is none"],
    );
    check_body_error(
        r#"%x = load f64 %p align -8"#,
        expect!["1:24: -8 cannot be an alignment"],
    );
    check_body_error(
        r#"%x = icmp lt i64 %i, %j"#,
        expect!["1:11: expected how to compare: `eq`, `ne`, `slt`, `ult`, …, found `lt`"],
    );
    check_body_error(
        r#"%x = fcmp slt f64 %a, %b"#,
        expect!["1:11: expected how to compare: `oeq`, `une`, `olt`, `ult`, …, found `slt`"],
    );
    check_body_error(
        r#"%x = sincos f64 %a"#,
        expect!["1:1: `sincos` has 2 results here, but 1 is named"],
    );
    check_body_error(
        r#"%x, %y = fadd f64 %a, %b"#,
        expect!["1:1: `fadd` has 1 result here, but 2 are named"],
    );
    check_body_error(
        r#"%x = store f64 %a, %p"#,
        expect!["1:1: `store` has no results here, but 1 is named"],
    );
    check_body_error(
        r#"store f64 %a, %p range 0..=1"#,
        expect!["1:18: there is no result whose range this could be"],
    );
    check_body_error(
        r#"%x = fadd <4 x f64> %v, 1.0"#,
        expect!["1:25: expected a value, or a constant of type <4 x f64>, found `1.0`"],
    );
    check_body_error(
        r#"%x = fadd <4 x f64> %v, <1.0, 2.0>"#,
        expect!["1:25: <4 x f64> does not have 2 lanes"],
    );
    check_body_error(
        r#"%x = fadd <0 x f64> %v, %v"#,
        expect!["1:12: a vector has at least one lane"],
    );
    check_body_error(
        r#"%x = fadd <70000 x f64> %v, %v"#,
        expect!["1:12: 70000 cannot be the number of lanes"],
    );
    check_body_error(
        r#"%x = fadd <2 x f64> <1.0, undef>, undef"#,
        expect!["1:27: a lane is a number"],
    );
    check_body_error(
        r#"%x = shuffle <4 x f64> %v, %v []"#,
        expect!["1:31: a shuffle has between 1 and 65535 lanes"],
    );
    check_body_error(
        r#"trap"#,
        expect!["2:1: expected the message of the trap, in quotes, found `}`"],
    );
    check_body_error(
        r#"free %p family rust"#,
        expect!["1:16: expected the name of an allocator, in quotes, found `rust`"],
    );
    check_body_error(
        r#"%x = offset %p, %i * %j"#,
        expect!["1:22: expected the scale of an offset, found `%j`"],
    );
    check_body_error(
        r#"return 1.0, 2.0"#,
        expect!["1:13: expected a value (nothing here gives a constant its type), found `2.0`"],
    );
    check_body_error(
        r#"yield 1.0"#,
        expect!["1:7: expected a value (nothing here gives a constant its type), found `1.0`"],
    );
}

#[test]
fn errors_in_calls() {
    check_body_error(
        r#"call @nobody()"#,
        expect!["1:6: function @nobody is not defined or declared"],
    );
    check_body_error(
        r#"call @g()"#,
        expect!["1:6: @g is a global, not a function"],
    );
    check_body_error(
        r#"call @none(1)"#,
        expect!["1:12: @none takes no arguments"],
    );
    check_body_error(
        r#"call @pair(%a)"#,
        expect!["1:6: @pair takes 2 arguments, but 1 is given"],
    );
    check_body_error(r#"call @pair"#, expect!["2:1: expected `(`, found `}`"]);
    check_body_error(
        r#"%x = call @none()"#,
        expect!["1:1: `call` has no results here, but 1 is named"],
    );
    check_body_error(
        r#"call %p()"#,
        expect!["1:6: expected the function to call, such as `@f`, found `%p`"],
    );
    check_body_error(
        r#"call_indirect %p(%a)"#,
        expect!["1:18: expected a type, found `%a`"],
    );
    check_body_error(
        r#"store ptr @nobody, %p"#,
        expect!["1:11: @nobody is neither a function nor a global of this module"],
    );
}

#[test]
fn errors_in_regions() {
    check_body_error(
        r#"if %c { %x = fadd f64 %a, %b yield } return %x"#,
        expect!["1:45: value %x is not defined here: its region has ended"],
    );
    check_body_error(
        r#"%x = if %c -> (f64) { yield %x } else { yield 0.0 }"#,
        expect![
            "1:29: value %x is not defined here: the operation that defines it is not complete"
        ],
    );
    check_body_error(
        r#"for %n: i64 = 0 to %n step 1 { yield }"#,
        expect![
            "1:20: value %n is not defined here: the operation that defines it is not complete"
        ],
    );
    check_body_error(
        r#"for %n: i64 = 0 to 9 step 1 { yield } return %n"#,
        expect!["1:46: value %n is not defined here: its region has ended"],
    );
    check_body_error(
        r#"for 0 to 9 { yield }"#,
        expect!["1:5: expected the value that the loop defines, such as `%i: i64`, found `0`"],
    );
    check_body_error(
        r#"for %a: i64 = 0 to 9 step 1 { yield }"#,
        expect!["1:5: value %a is defined twice: names are unique within a function"],
    );
    check_body_error(
        r#"if %c { %x = fadd f64 %a, %b yield } else { %x = fadd f64 %a, %b yield }"#,
        expect!["1:45: value %x is defined twice: names are unique within a function"],
    );
    check_body_error(
        r#"%x = loop { again 1 }"#,
        expect!["1:1: `loop` has no results here, but 1 is named"],
    );
    check_body_error(
        r#"switch i64 %i { yield }"#,
        expect!["1:17: expected `case` or `default`, found `yield`"],
    );
    check_body_error(
        r#"switch i64 %i { case 1 { yield } }"#,
        expect!["1:34: expected `case` or `default`, found `}`"],
    );
    check_body_error(
        r#"switch i64 %i { default { yield } case 1 { yield } }"#,
        expect!["1:35: expected `}`, found `case`"],
    );
    check_body_error(
        r#"switch i64 %i { case %i { yield } default { yield } }"#,
        expect!["1:22: expected a value of the case, found `%i`"],
    );
    check_body_error(
        r#"switch i32 %i { default { yield } }"#,
        expect!["1:12: `%i` has type i64, not i32"],
    );
    check_body_error(
        r#"if %c yield"#,
        expect!["1:7: expected `{`, found `yield`"],
    );
    check_body_error(
        r#"else { yield }"#,
        expect!["1:1: unknown operation `else`"],
    );
    check_body_error(
        r#"return %a } }"#,
        expect!["1:13: expected `file`, `global`, `declare`, `func` or `rule`, found `}`"],
    );
    check_body_error(
        r#"if %c {"#,
        expect!["2:2: expected an operation or `}`, found the end of the text"],
    );
}

#[test]
fn errors_in_modules() {
    check_error(
        r#"fun @f() {}"#,
        expect!["1:1: expected `file`, `global`, `declare`, `func` or `rule`, found `fun`"],
    );
    check_error(
        r#"func f() {}"#,
        expect!["1:6: expected the name of the function, such as `@f`, found `f`"],
    );
    check_error(
        r#"func @f(x: f64) { return }"#,
        expect!["1:9: expected a parameter such as `%x: f64`, found `x`"],
    );
    check_error(
        r#"func @f(%x f64) { return }"#,
        expect!["1:12: expected `:`, found `f64`"],
    );
    check_error(
        r#"func @f(%x: f64, %x: f64) { return }"#,
        expect!["1:18: value %x is defined twice: names are unique within a function"],
    );
    check_error(
        r#"func @f()"#,
        expect!["1:10: expected `{`, found the end of the text"],
    );
    check_error(
        r#"func @f() {"#,
        expect!["1:12: expected an operation or `}`, found the end of the text"],
    );
    check_error(
        r#"func @f() -> f64 { return 1.0 }"#,
        expect!["1:14: expected `(`, found `f64`"],
    );
    check_error(
        r#"declare @f(%x: f64)"#,
        expect!["1:12: expected a type, found `%x`"],
    );
    check_error(
        r#"declare @f(f65)"#,
        expect!["1:12: expected a type, found `f65`"],
    );
    check_error(
        r#"declare @f() declare @f()"#,
        expect!["1:22: @f is defined twice"],
    );
    check_error(
        r#"global @f: 1 bytes = zero declare @f()"#,
        expect!["1:35: @f is defined twice"],
    );
    check_error(
        r#"declare @f() memory(write)"#,
        expect!["1:21: expected `none`, `read`, `args` or `any`, found `write`"],
    );
    check_error(
        r#"declare @f(i64 range 5)"#,
        expect!["1:23: expected `..=`, found `)`"],
    );
    check_error(
        r#"declare @f(ptr layout f64)"#,
        expect!["1:23: expected `[`, found `f64`"],
    );
    check_error(
        r#"declare @f(ptr layout [f64, f64])"#,
        expect!["1:27: expected `]`, found `,`"],
    );
    check_error(
        r#"declare @f(ptr layout [0: f64, 8: f64])"#,
        expect!["1:38: expected `,` or `;` and after how many bytes the fields repeat, found `]`"],
    );
    check_error(
        r#"global @g: 8 bytes"#,
        expect![
            "1:19: expected `=` and what the global holds, or `external`, found the end of the text"
        ],
    );
    check_error(
        r#"global @g: -8 bytes = zero"#,
        expect!["1:12: -8 cannot be the size of the global"],
    );
    check_error(
        r#"global @g: 8 = zero"#,
        expect!["1:14: expected `bytes`, found `=`"],
    );
    check_error(
        r#"global @g: 1 bytes = x"0""#,
        expect!["1:22: each byte takes two hexadecimal digits"],
    );
    check_error(
        r#"global @g: 1 bytes = x"0g""#,
        expect!["1:25: expected hexadecimal digits and a closing quote"],
    );
    check_error(
        r#"global @g: 8 bytes = zero { 0: @h }"#,
        expect!["1:32: @h is neither a function nor a global of this module"],
    );
    check_error(
        r#"global @g: 8 bytes = "text""#,
        expect![[r#"1:22: expected bytes (`x"…"`) or `zero`, found a string"#]],
    );
    check_error(
        r#"rule @f forward @g"#,
        expect!["1:6: function @f is not defined or declared"],
    );
    check_error(
        r#"declare @f() rule @f rule @f"#,
        expect!["1:27: @f has two rules"],
    );
    check_error(
        r#"file 1 "a""#,
        expect!["1:6: files are numbered in order, the next is 0"],
    );
    check_error(
        r#"file 0 a"#,
        expect!["1:8: expected the name of the file, in quotes, found `a`"],
    );
    check_error(
        r#"file 0 "a"#,
        expect!["1:8: the string does not end on its line"],
    );
    check_error(
        r#"file 0 "\q""#,
        expect![[r#"1:9: unknown escape: there are \n, \r, \t, \", \\ and \u{…}"#]],
    );
    check_error(
        r#"func @f() { return } ?"#,
        expect!["1:22: unexpected character `?`"],
    );
    check_error(
        r#"func @f() {
  ä
}"#,
        expect!["2:3: unexpected character `ä`"],
    );
    check_error(r#"@"#, expect!["1:1: expected a name after `@`"]);
    check_error(
        r#"declare @f(f64) -"#,
        expect!["1:17: expected a number after `-`"],
    );
    check_error(
        r#"func @f() {
  return

func @g() { return }"#,
        expect!["4:1: unknown operation `func`: is a `}` missing before it?"],
    );
}
