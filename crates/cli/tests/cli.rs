//! Runs the tool `loopir` as a user would: arguments in, text and exit status out.

mod tool;

use expect_test::{Expect, expect};
use std::io::Read;
use std::process::{Command, Stdio};
use tool::Outcome;

const SUM: &str = "\
func @sum(%x: ptr noalias readonly layout [f64], %n: i64) -> (f64) {
  %sum = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
    %p = offset %x, %i * 8
    %a = load f64 %p align 8
    %b = fmul f64 %a, %a
    %next = fadd f64 %acc, %b
    yield %next
  }
  return %sum
}
";

fn loopir(arguments: &[&str], input: &str) -> Outcome {
    tool::run(env!("CARGO_BIN_EXE_loopir"), arguments, input)
}

#[track_caller]
fn succeeds(arguments: &[&str], input: &str, expected: Expect) {
    let outcome = loopir(arguments, input);
    assert!(outcome.success, "{}", outcome.stderr);
    assert_eq!(outcome.stderr, "");
    expected.assert_eq(&outcome.stdout);
}

#[track_caller]
fn fails(arguments: &[&str], input: &str, expected: Expect) {
    let outcome = loopir(arguments, input);
    assert!(!outcome.success, "{}", outcome.stdout);
    assert_eq!(outcome.stdout, "");
    expected.assert_eq(&outcome.stderr);
}

#[test]
fn print_writes_as_the_compiler_does() {
    succeeds(
        &["print", "-"],
        "func @f(%x:f64)->(f64){%y=fadd f64 %x,1.0 return %y}",
        expect![[r#"
            func @f(%x: f64) -> (f64) {
              %y = fadd f64 %x, 1.0
              return %y
            }
        "#]],
    );
}

#[test]
fn parse_errors_point_at_the_place() {
    fails(
        &["print", "-"],
        "func @f(%x: f63) {\n  return\n}\n",
        expect![[r#"
            error: expected a type, found `f63`
             --> <stdin>:1:13
              |
            1 | func @f(%x: f63) {
              |             ^^^
        "#]],
    );
}

#[test]
fn parse_errors_at_the_end_of_the_text_have_a_place_too() {
    let outcome = loopir(&["print", "-"], "func @f() {\n  return");
    assert!(!outcome.success);
    assert!(outcome.stderr.contains("<stdin>:2:9"), "{}", outcome.stderr);
    let outcome = loopir(&["print", "-"], "func @ü(");
    assert!(!outcome.success);
    assert!(outcome.stderr.starts_with("error: "), "{}", outcome.stderr);
}

#[test]
fn verify_is_silent_or_lists_what_is_wrong() {
    succeeds(&["verify", "-"], SUM, expect![""]);
    fails(
        &["verify", "-"],
        "func @f(%x: f64) -> (f64) { return }\nfunc @g(%n: i64) { if %n { yield } return }\n",
        expect![[r#"
            error: @f: 0 values are handed on where there should be 1
              in: return

            error: @g: operand 0 has type i64, not i1
              in: if %n { … }
        "#]],
    );
}

#[test]
fn run_prints_results_and_memory() {
    succeeds(
        &["run", "-", "@sum", "[1.0, 2.0, 3.0]", "3"],
        SUM,
        expect![[r#"
            (14.0)
            argument 0: [1.0, 2.0, 3.0]
        "#]],
    );
}

#[test]
fn run_takes_negative_numbers() {
    succeeds(
        &["run", "-", "@f", "-3", "-2.5"],
        "func @f(%n: i32, %x: f64) -> (f64, i32) { return %x, %n }",
        expect![[r#"
            (-2.5, -3)
        "#]],
    );
}

#[test]
fn run_reports_faults_with_their_place() {
    fails(
        &["run", "-", "@sum", "[1.0, 2.0]", "3"],
        SUM,
        expect![[r#"
            error: out of bounds: 8 bytes at offset 16 of memory of 16 bytes
              in @sum: %a = load f64 %p align 8
        "#]],
    );
}

#[test]
fn run_refuses_arguments_that_do_not_fit() {
    fails(
        &["run", "-", "@sum", "[1.0]"],
        SUM,
        expect![[r#"
            error: 1 arguments for 2 parameters
        "#]],
    );
    fails(
        &["run", "-", "@sum", "[1.0]", "one"],
        SUM,
        expect![[r#"
            error: `one`: expected a value such as `1.5`, `3`, `null`, `@f` or `[1.0, 2.0]`, but here stands `one`
        "#]],
    );
    fails(
        &["run", "-", "@sum", "[1.0]", "1.5"],
        SUM,
        expect![[r#"
            error: argument 1: 1.5 is no value of type i64
        "#]],
    );
}

#[test]
fn unknown_functions_and_files_are_named() {
    fails(
        &["run", "-", "@product"],
        SUM,
        expect![[r#"
            error: there is no function @product; the module has @sum
        "#]],
    );
    let outcome = loopir(&["print", "no/such/file.fz"], "");
    assert!(!outcome.success);
    assert!(
        outcome
            .stderr
            .starts_with("error: cannot read no/such/file.fz: ")
    );
}

#[test]
fn optimise_runs_the_passes_that_are_named() {
    let program = "func @f(%x: f64) -> (f64) {
  %a = fmul f64 %x, %x
  %b = fmul f64 %x, %x
  %c = fadd f64 %a, %b
  return %c
}
";
    succeeds(
        &["optimise", "-", "--pass", "cse", "--pass", "dce"],
        program,
        expect![[r#"
            func @f(%x: f64) -> (f64) {
              %a = fmul f64 %x, %x
              %c = fadd f64 %a, %a
              return %c
            }
        "#]],
    );
    succeeds(
        &[
            "optimise", "-", "--pass", "simplify", "--pass", "cse", "--trace",
        ],
        program,
        expect![[r#"
            ; after cse, which made 1 changes
            func @f(%x: f64) -> (f64) {
              %a = fmul f64 %x, %x
              %c = fadd f64 %a, %a
              return %c
            }

        "#]],
    );
    let outcome = loopir(&["optimise", "-", "--pass", "magic"], program);
    assert!(!outcome.success);
    assert!(outcome.stderr.contains("simplify"), "{}", outcome.stderr);
}

#[test]
fn analyses_print_what_they_find() {
    succeeds(
        &["analyse", "indices", "-"],
        SUM,
        expect![[r#"
        for %i = 0 to %n step 1: %n iterations, at least 0
    "#]],
    );
    succeeds(
        &["analyse", "alias", "-"],
        SUM,
        expect![[r#"
        1. reads 8 bytes at %x + 8*%i: %a = load f64 %p align 8
    "#]],
    );
    succeeds(
        &["analyse", "clobbers", "-"],
        SUM,
        expect![[r#"
        %a = load f64 %p align 8
          stays in memory
    "#]],
    );
    succeeds(
        &["analyse", "objects", "-"],
        SUM,
        expect![[r#"
        objects of @sum
        class0: parameter %x, every 8 bytes
          0: f64
          %x: class0 at 0
          %p: class0 at 0 + 8k
    "#]],
    );
    let outcome = loopir(&["analyse", "activity", "-"], SUM);
    assert!(outcome.success, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("%next"), "{}", outcome.stdout);
}

#[test]
fn the_derivative_of_a_module_can_be_run() {
    let derivative = loopir(
        &["differentiate", "-", "--whole", "--name", "@gradient"],
        SUM,
    );
    assert!(derivative.success, "{}", derivative.stderr);
    succeeds(
        &[
            "run",
            "-",
            "@gradient",
            "[1.0, 2.0]",
            "[0.0, 0.0]",
            "2",
            "1.0",
        ],
        &derivative.stdout,
        expect![[r#"
            ()
            argument 0: [1.0, 2.0]
            argument 1: [2.0, 4.0]
        "#]],
    );
    let forward = loopir(
        &[
            "differentiate",
            "-",
            "--mode",
            "forward",
            "--width",
            "2",
            "--whole",
            "--name",
            "@tangent",
        ],
        SUM,
    );
    assert!(forward.success, "{}", forward.stderr);
    succeeds(
        &[
            "run",
            "-",
            "@tangent",
            "[1.0, 2.0]",
            "[1.0, 0.0]",
            "[0.0, 1.0]",
            "2",
        ],
        &forward.stdout,
        expect![[r#"
            (2.0, 4.0)
            argument 0: [1.0, 2.0]
            argument 1: [1.0, 0.0]
            argument 2: [0.0, 1.0]
        "#]],
    );
}

#[test]
fn only_the_derivative_is_printed_unless_asked_otherwise() {
    let split = loopir(&["differentiate", "-", "--mode", "split", "--raw"], SUM);
    assert!(split.success, "{}", split.stderr);
    assert_eq!(split.stdout.matches("func @").count(), 2);
    assert!(!split.stdout.contains("func @sum("));
}

#[test]
fn what_cannot_be_differentiated_is_explained() {
    let program =
        "declare @ext(f64) -> (f64)\nfunc @f(%x: f64) -> (f64) { %y = call @ext(%x) return %y }\n";
    let outcome = loopir(&["differentiate", "-"], program);
    assert!(!outcome.success);
    assert!(outcome.stderr.contains("@ext"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("help: "), "{}", outcome.stderr);
    fails(
        &["differentiate", "-", "--args", "maybe"],
        SUM,
        expect![[r#"
            error: --args `maybe`: expected `const`, `active` or `dup`, but here stands `maybe`
        "#]],
    );
    fails(
        &["differentiate", "-", "--args", "dup"],
        SUM,
        expect![[r#"
            error: expected 2 argument activities, but found 1 [FZ0101]
              in @sum
              help: give each argument and each result an activity that fits its type
        "#]],
    );
    fails(
        &["differentiate", "-"],
        "func @f() { return }\nfunc @g() { return }\n",
        expect![[r#"
            error: the module has several functions; choose one with --function @name
        "#]],
    );
}

#[test]
fn explain_says_what_is_saved() {
    let outcome = loopir(&["explain", "-"], SUM);
    assert!(outcome.success, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("@sum"), "{}", outcome.stdout);
}

#[test]
fn gradcheck_compares_and_prints_the_gradient() {
    succeeds(
        &["gradcheck", "-", "--at", "([0.5, 1.5], 2)"],
        SUM,
        expect![[r#"
            at ([0.5, 1.5], 2): the derivatives agree
              the gradient of the results is
              memory 0 at byte 0: 1.0
              memory 0 at byte 8: 3.0
        "#]],
    );
    // At the tip of the absolute value there is no derivative, and finite differences say so.
    let outcome = loopir(
        &["gradcheck", "-", "--at", "(0.0)"],
        "func @f(%x: f64) -> (f64) { %y = fabs f64 %x return %y }\n",
    );
    assert!(!outcome.success, "{}", outcome.stdout);
    assert!(
        outcome.stderr.contains("differs from finite differences"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn results_survive_optimisation() {
    succeeds(
        &["run", "--optimise", "-", "@sum", "[1.0, 2.0, 3.0]", "3"],
        SUM,
        expect![[r#"
            (14.0)
            argument 0: [1.0, 2.0, 3.0]
        "#]],
    );
}

#[test]
fn every_command_has_help() {
    for command in COMMANDS {
        let outcome = loopir(&[command, "--help"], "");
        assert!(outcome.success, "{command}: {}", outcome.stderr);
        assert!(outcome.stdout.contains("Usage: loopir"), "{command}");
    }
}

/// All subcommands.
const COMMANDS: &[&str] = &[
    "print",
    "verify",
    "run",
    "optimise",
    "analyse",
    "differentiate",
    "explain",
    "gradcheck",
];

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    // Far more text than a pipe holds, so that the tool is still writing when the pipe breaks.
    let mut program = String::from("func @f(%x: f64) -> (f64) {\n");
    for index in 0..20_000 {
        program.push_str(&format!("  %v{index} = fadd f64 %x, {index}.0\n"));
    }
    program.push_str("  return %x\n}\n");
    let path = std::env::temp_dir().join(format!("loopir-{}.fz", std::process::id()));
    std::fs::write(&path, program).expect("the temporary folder can be written");
    let mut child = Command::new(env!("CARGO_BIN_EXE_loopir"))
        .arg("print")
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the tool starts");
    let mut first = [0; 10];
    let mut stdout = child.stdout.take().expect("the output is piped");
    stdout.read_exact(&mut first).expect("it writes something");
    drop(stdout);
    let output = child.wait_with_output().expect("the tool ends");
    let _ = std::fs::remove_file(&path);
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
