//! The text form: what each construct looks like, that it reads back, and what the parser says about mistakes.

mod errors;

use expect_test::{Expect, expect};
use ferrozyme_ir::{
    Builder, Function, Module, Names, Opcode, Type, all_ops, parse_module, print_function,
    print_module, print_op, print_value,
};

/// Parses a text, expects how it prints, and that this reads back to the same.
#[track_caller]
fn check(text: &str, expected: Expect) {
    let module = parse_module(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let printed = print_module(&module);
    expected.assert_eq(&printed);
    let again = parse_module(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(print_module(&again), printed);
}

/// Checks the statements of a function that has a parameter of each common type.
#[track_caller]
fn check_body(statements: &str, expected: Expect) {
    let text = with_parameters(statements);
    let module = parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let printed = print_module(&module);
    let body: String = printed
        .lines()
        .skip_while(|line| !line.starts_with("func @test"))
        .skip(1)
        .take_while(|line| *line != "}")
        .map(|line| format!("{}\n", &line[2..]))
        .collect();
    expected.assert_eq(&body);
    let again = parse_module(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(print_module(&again), printed);
}

fn with_parameters(statements: &str) -> String {
    format!(
        "file 0 \"f\"
global @g: 8 bytes align 8 = zero
declare @pair(f64, i64) -> (f64, i64)
declare @none()
func @test(%a: f64, %b: f64, %s: f32, %i: i64, %j: i64, %k: i32, %c: i1, %p: ptr, %q: ptr, %v: <4 x f64>, %w: <4 x i1>) -> (f64) {{
{statements}
}}"
    )
}

/// Expects what the parser says about a text.
#[track_caller]
fn check_error(text: &str, expected: Expect) {
    match parse_module(text) {
        Ok(module) => panic!("this parses:\n{}", print_module(&module)),
        Err(error) => expected.assert_eq(&error.to_string()),
    }
}

/// Expects what the parser says about the statements of a function; line 1 is the first statement's.
#[track_caller]
fn check_body_error(statements: &str, expected: Expect) {
    match parse_module(&with_parameters(statements)) {
        Ok(module) => panic!("this parses:\n{}", print_module(&module)),
        Err(mut error) => {
            error.line -= 5;
            expected.assert_eq(&error.to_string());
        }
    }
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

#[test]
fn integers_and_comparisons() {
    check_body(
        r#"
%x = add nsw nuw i64 %i, %j
%y = sdiv exact i64 %x, -3
%z = ctpop i64 %y
%d = icmp slt i64 %z, 0x10
%e = icmp eq ptr %p, null
%f = and i1 %d, true
return %a"#,
        expect![[r#"
            %x = add nsw nuw i64 %i, %j
            %y = sdiv exact i64 %x, -3
            %z = ctpop i64 %y
            %d = icmp slt i64 %z, 16
            %e = icmp eq ptr %p, null
            %f = and i1 %d, 1
            return %a
        "#]],
    );
}

#[test]
fn floats() {
    check_body(
        r#"
%x = fadd fast f64 %a, 1
%y = fma nnan contract f64 %x, %b, -0.5
%z = powi f64 %y, 3
%m, %n = frexp f64 %z range _, -1100..=1100
%t, %u = sincos f64 %m
%l = ilogb f64 %u
%d = fcmp nnan olt f64 %t, inf
return %t"#,
        expect![[r#"
            %x = fadd fast f64 %a, 1.0
            %y = fma nnan contract f64 %x, %b, -0.5
            %z = powi f64 %y, 3
            %m, %n = frexp f64 %z range _, -1100..=1100
            %t, %u = sincos f64 %m
            %l = ilogb f64 %u
            %d = fcmp nnan olt f64 %t, inf
            return %t
        "#]],
    );
}

#[test]
fn casts() {
    check_body(
        r#"
%x = sitofp i64 %i to f64
%y = fptrunc f64 %x to f32
%z = bitcast <4 x f64> %v to <4 x i64>
%n = trunc_int i64 %i to i1
return %x"#,
        expect![[r#"
            %x = sitofp i64 %i to f64
            %y = fptrunc f64 %x to f32
            %z = bitcast <4 x f64> %v to <4 x i64>
            %n = trunc_int i64 %i to i1
            return %x
        "#]],
    );
}

#[test]
fn choice_and_vectors() {
    check_body(
        r#"
%x = select f64 %c, %a, 0.0
%y = select <4 x f64> %c, %v, splat(1.0)
%z = select <4 x f64> %w, %y, <1.0, 2.0, 3.0, 4.0>
%t = select <4 x f64> splat(undef), %z, undef
%o = select <4 x f64> undef, %z, undef
%m = select <4 x f64> <1, 0, 1, 0>, %z, <5.0, 5.0, 5.0, 5.0>
%u = splat <4 x f64> %a
%d = extract <4 x f64> %u, 3
%e = insert <4 x f64> %u, %d, %i
%f = shuffle <4 x f64> %u, %e [0, 5]
%h = reduce_fadd <2 x f64> %f
return %h"#,
        expect![[r#"
            %x = select f64 %c, %a, 0.0
            %y = select <4 x f64> %c, %v, splat(1.0)
            %z = select <4 x f64> %w, %y, <1.0, 2.0, 3.0, 4.0>
            %t = select <4 x f64> splat(undef), %z, undef
            %o = select <4 x f64> undef, %z, undef
            %m = select <4 x f64> <1, 0, 1, 0>, %z, splat(5.0)
            %u = splat <4 x f64> %a
            %d = extract <4 x f64> %u, 3
            %e = insert <4 x f64> %u, %d, %i
            %f = shuffle <4 x f64> %u, %e [0, 5]
            %h = reduce_fadd <2 x f64> %f
            return %h
        "#]],
    );
}

#[test]
fn memory() {
    check_body(
        r#"
%x = load f64 %p align 8
%y = load i64 %q range 0..=10
%z = load <4 x f64> %q align 32
store f64 %x, %q align 4
store ptr @g, %q
%o = offset inbounds %p, %i * 8
%o1 = offset %p, -8
%s1 = stack 16 align 8
%h = alloc %i align 8 zeroed family "rust"
%h1 = alloc 8
copy %p, %q, %i align 8
move %p, %q, 8
fill %p, 0, %i align 16
%old = atomic_add f64 %p, %x align 8
atomic_add f64 %p, %x
free %h family "rust"
free %h, %i align 16 family "rust"
free %h, 8
free null
return %x"#,
        expect![[r#"
            %x = load f64 %p align 8
            %y = load i64 %q align 8 range 0..=10
            %z = load <4 x f64> %q align 32
            store f64 %x, %q align 4
            store ptr @g, %q align 8
            %o = offset inbounds %p, %i * 8
            %o1 = offset %p, -8
            %s1 = stack 16 align 8
            %h = alloc %i align 8 zeroed family "rust"
            %h1 = alloc 8 align 16
            copy %p, %q, %i align 8
            move %p, %q, 8 align 1
            fill %p, 0, %i align 16
            %old = atomic_add f64 %p, %x align 8
            %0 = atomic_add f64 %p, %x align 8
            free %h family "rust"
            free %h, %i align 16 family "rust"
            free %h, 8
            free null
            return %x
        "#]],
    );
}

#[test]
fn calls() {
    check_body(
        r#"
%x, %y = call @pair(%a, 1)
call @pair(1, 2)
call @none()
%z = call_indirect %p(f64 %a, ptr @none, i32 7) -> (f64)
call_indirect @none()
return %x"#,
        expect![[r#"
            %x, %y = call @pair(%a, 1)
            %0, %1 = call @pair(1.0, 2)
            call @none()
            %z = call_indirect %p(f64 %a, ptr @none, i32 7) -> (f64)
            call_indirect @none()
            return %x
        "#]],
    );
}

#[test]
fn branches() {
    check_body(
        r#"
if %c { store f64 %a, %p  yield }
if %c { yield } else { trap "no \"luck\"" }
if %c { trap @pair(1.5, %i) } else { trap @none() loc(0:1:2) }
if %c { yield } else { yield loc(0:1:1) }
%x, %y = if %c -> (f64, i64) range _, 1..=2 loc(0:3:4) { yield %a, 1 } else { yield 2.5, 2 }
%r = switch i64 %i -> (f64) { case 0 { yield %x } case 1, -2 { yield 1.0 } case { yield 2.0 } default { yield 3.0 } }
switch i64 %i { default { yield } }
return %r"#,
        expect![[r#"
            if %c {
              store f64 %a, %p align 8
              yield
            }
            if %c {
              yield
            } else {
              trap "no \"luck\""
            }
            if %c {
              trap @pair(1.5, %i)
            } else {
              trap @none() loc(0:1:2)
            }
            if %c {
              yield
            } else {
              yield loc(0:1:1)
            }
            %x, %y = if %c -> (f64, i64) range _, 1..=2 loc(0:3:4) {
              yield %a, 1
            } else {
              yield 2.5, 2
            }
            %r = switch i64 %i -> (f64) {
              case 0 {
                yield %x
              }
              case 1, -2 {
                yield 1.0
              }
              case {
                yield 2.0
              }
              default {
                yield 3.0
              }
            }
            switch i64 %i {
              default {
                yield
              }
            }
            return %r
        "#]],
    );
}

#[test]
fn loops() {
    check_body(
        r#"
for %n: i64 = 0 to %i step 1 { yield }
%x, %y = for %m: i64 range 0..=9 = %i to 0 step -1 with (%t: f64 = 0.0, %u: i64 range 0..=3 = %j) {
  %t1 = fadd f64 %t, %a
  yield %t1, 1
}
%z = loop with (%e: f64 = %x) {
  %e1 = fmul f64 %e, 0.5
  %more = fcmp ogt f64 %e1, 1.0
  again %more, %e1
}
loop { again 0 }
return %z"#,
        expect![[r#"
            for %n: i64 = 0 to %i step 1 {
              yield
            }
            %x, %y = for %m: i64 range 0..=9 = %i to 0 step -1 with (%t: f64 = 0.0, %u: i64 range 0..=3 = %j) {
              %t1 = fadd f64 %t, %a
              yield %t1, 1
            }
            %z = loop with (%e: f64 = %x) {
              %e1 = fmul f64 %e, 0.5
              %more = fcmp ogt f64 %e1, 1.0
              again %more, %e1
            }
            loop {
              again 0
            }
            return %z
        "#]],
    );
}

#[test]
fn flags_on_anything() {
    check_body(
        r#"
%x = loop fast with (%e: f64 = %a) { again nnan 1, 1.0 }
if nsw %c { yield }
return fast %x"#,
        expect![[r#"
            %x = loop fast with (%e: f64 = %a) {
              again nnan 1, 1.0
            }
            if nsw %c {
              yield
            }
            return fast %x
        "#]],
    );
}

#[test]
fn places() {
    check_body(
        r#"
%x = fadd f64 %a, %b loc(0:12:5)
%y = fadd f64 %a, %x loc(1:2:0 from 0:30:1 from 0:40:2)
return %y loc(0:12:5)"#,
        expect![[r#"
            %x = fadd f64 %a, %b loc(0:12:5)
            %y = fadd f64 %a, %x loc(1:2:0 from 0:30:1 from 0:40:2)
            return %y loc(0:12:5)
        "#]],
    );
}

#[test]
fn float_constants() {
    check(
        r#"
func @f() -> (f64, f64, f64, f64, f64, f64, f64, f32, f32, f16, bf16) {
  return 1.5, -0.0, 1e300, 0.1, nan, -inf, 0xfff8000000000001, 0.1, 16777216, 65504, 3e38
}"#,
        expect![[r#"
            func @f() -> (f64, f64, f64, f64, f64, f64, f64, f32, f32, f16, bf16) {
              return 1.5, -0.0, 1e300, 0.1, nan, -inf, 0xfff8000000000001, 0.1, 16777216.0, 65500.0, 3e38
            }
        "#]],
    );
}

#[test]
fn integer_constants() {
    check(
        r#"
func @f() -> (i1, i1, i8, i8, i3, i128, i128, ptr, ptr, ptr, <2 x ptr>, i64) {
  return 1, false, 255, -128, 7, -170141183460469231731687303715884105728, 0xffffffffffffffffffffffffffffffff, null, 0x10, @f, splat(@f), undef
}"#,
        expect![[r#"
            func @f() -> (i1, i1, i8, i8, i3, i128, i128, ptr, ptr, ptr, <2 x ptr>, i64) {
              return 1, 0, -1, -128, -1, -170141183460469231731687303715884105728, -1, null, 0x10, @f, splat(@f), undef
            }
        "#]],
    );
}

#[test]
fn globals() {
    check(
        r#"
global @a: 16 bytes align 8 external
global @b: 4 bytes const inactive = x"0A0b"
global @c: 24 bytes align 16 layout [0: ptr [f64], 8: i32; 24] = zero { 0: @a, 8: @f, 16: @c }
global @"odd name\n": 1 bytes = x"00"
declare @f()"#,
        expect![[r#"
            global @a: 16 bytes align 8 external
            global @b: 4 bytes align 1 const inactive = x"0a0b"
            global @c: 24 bytes align 16 layout [0: ptr [f64], 8: i32; 24] = zero { 0: @a, 8: @f, 16: @c }
            global @"odd name\n": 1 bytes align 1 = x"00"

            declare @f()
        "#]],
    );
}

#[test]
fn facts() {
    check(
        r#"
declare @f(ptr noalias readonly nocapture align 16 layout [f64], ptr writeonly, i64 range -5..=5) memory(none) noreturn
declare @g(ptr layout [ptr [0: f32, 4: i32; 16]] noalias, ptr layout [; 8]) -> (i1, <2 x f16>) memory(read) willreturn inactive noinline
func @h(%n: i64 range 0..=9 within 1..=8) memory(any) {
  return
}"#,
        expect![[r#"
            declare @f(ptr noalias readonly nocapture align 16 layout [f64], ptr writeonly, i64 range -5..=5) memory(none) noreturn
            declare @g(ptr noalias layout [ptr [0: f32, 4: i32; 16]], ptr layout [; 8]) -> (i1, <2 x f16>) memory(read) willreturn inactive noinline

            func @h(%n: i64 range 0..=9 within 1..=8) {
              return
            }
        "#]],
    );
}

#[test]
fn layouts_may_hold_comments() {
    check(
        r#"
declare @f(ptr layout [ ; an array; of structures
  0: f64,   ; the number
  8: ptr    ; its name
     [i8]
  ; 16] noalias) ; done"#,
        expect![[r#"
            declare @f(ptr noalias layout [0: f64, 8: ptr [i8]; 16])
        "#]],
    );
}

#[test]
fn calls_may_come_before_what_they_call() {
    check(
        r#"
func @even(%n: i64) -> (i1) {
  %m = sub i64 %n, 1
  %r = call @odd(%m)
  return %r
}
func @odd(%n: i64) -> (i1) {
  %m = sub i64 %n, 1
  %r = call @even(%m)
  return %r
}"#,
        expect![[r#"
            func @even(%n: i64) -> (i1) {
              %m = sub i64 %n, 1
              %r = call @odd(%m)
              return %r
            }

            func @odd(%n: i64) -> (i1) {
              %m = sub i64 %n, 1
              %r = call @even(%m)
              return %r
            }
        "#]],
    );
}

#[test]
fn names_of_values() {
    check(
        r#"
func @f(%x': f64, %0: f64, %"a b": f64, %_: f64, %1.5: f64, %"": f64, %007: f64) -> (f64) {
  %7 = fadd f64 %0, %"a b"
  %12 = fadd f64 %7, %007
  return %12
}"#,
        expect![[r#"
            func @f(%x': f64, %0: f64, %"a b": f64, %_: f64, %1.5: f64, %"": f64, %1: f64) -> (f64) {
              %2 = fadd f64 %0, %"a b"
              %3 = fadd f64 %2, %1
              return %3
            }
        "#]],
    );
}

#[test]
fn nothing() {
    check(
        r#"
; only a comment"#,
        expect![[""]],
    );
}

#[test]
fn equal_names_are_told_apart() {
    let mut module = Module::new();
    let mut function = Function::define("f", vec![Type::F64.into(); 2], vec![Type::F64]);
    let (x, y) = (function.arguments()[0], function.arguments()[1]);
    function.set_name(x, "x");
    function.set_name(y, "3");
    let mut b = Builder::at_body(&mut function);
    let mut last = x;
    for name in ["x", "x", "x_1", "x", "", "17", "x_2"] {
        last = b.binary(Opcode::Fadd, last, y);
        b.function.set_name(last, name);
    }
    b.ret(&[last]);
    let id = module.functions.push(function);
    expect![[r#"
        func @f(%x: f64, %0: f64) -> (f64) {
          %x_1 = fadd f64 %x, %0
          %x_2 = fadd f64 %x_1, %0
          %x_1_1 = fadd f64 %x_2, %0
          %x_3 = fadd f64 %x_1_1, %0
          %"" = fadd f64 %x_3, %0
          %1 = fadd f64 %"", %0
          %x_2_1 = fadd f64 %1, %0
          return %x_2_1
        }
    "#]]
    .assert_eq(&print_function(&module, id));
    check(
        &print_module(&module),
        expect![[r#"
        func @f(%x: f64, %0: f64) -> (f64) {
          %x_1 = fadd f64 %x, %0
          %x_2 = fadd f64 %x_1, %0
          %x_1_1 = fadd f64 %x_2, %0
          %x_3 = fadd f64 %x_1_1, %0
          %"" = fadd f64 %x_3, %0
          %1 = fadd f64 %"", %0
          %x_2_1 = fadd f64 %1, %0
          return %x_2_1
        }
    "#]],
    );
}

#[test]
fn operations_print_on_one_line() {
    let module = parse_module(
        "func @f(%c: i1, %n: i64) -> (f64) {
           %r = if %c -> (f64) loc(0:1:2) { yield 1.0 } else { yield 2.0 }
           for %i: i64 = 0 to %n step 1 { store f64 %r, null  yield }
           switch i64 %n { case 1 { yield } default { yield } }
           return %r
         }",
    )
    .unwrap();
    let function = module.functions.values().next().unwrap();
    let lines: String = all_ops(function)
        .into_iter()
        .map(|op| print_op(&module, function, op) + "\n")
        .collect();
    expect![[r#"
        %r = if %c -> (f64) loc(0:1:2) { … }
        yield 1.0
        yield 2.0
        for %i: i64 = 0 to %n step 1 { … }
        store f64 %r, null align 8
        yield
        switch i64 %n { … }
        yield
        yield
        return %r
    "#]]
    .assert_eq(&lines);

    let names = Names::of(function);
    assert_eq!(names.get(function.arguments()[1]), Some("%n"));
    let operands: Vec<String> = all_ops(function)
        .into_iter()
        .filter(|&op| function.ops[op].opcode == Opcode::Store)
        .flat_map(|op| function.ops[op].operands.clone())
        .map(|operand| print_value(&module, function, &names, operand))
        .collect();
    assert_eq!(operands, ["%r", "null"]);
}
