//! Runs the tool `graphir` as a user would. Expected output is in `tests/graphir`; `UPDATE_EXPECT=1` rewrites it.

mod tool;

use expect_test::{expect, expect_file};

const MODEL: &str = include_str!("graphir/model.fzg");

/// What the tool prints, or its error.
fn graphir(arguments: &[&str], input: &str) -> Result<String, String> {
    let outcome = tool::run(env!("CARGO_BIN_EXE_graphir"), arguments, input);
    match outcome.success {
        true => Ok(outcome.stdout),
        false => Err(outcome.stderr),
    }
}

#[test]
fn commands_print_what_they_make() {
    let feed = ["--feed", "x = [1.0, 2.0, 3.0, 4.0]"];
    for (name, arguments) in [
        ("print", vec!["print", "-"]),
        ("tree", vec!["tree", "-"]),
        ("differentiate", vec!["differentiate", "-", "%loss"]),
        ("fuse", vec!["fuse", "-"]),
        ("plan", vec!["plan", "-"]),
        ("kernels", vec!["kernels", "-"]),
        ("run", vec!["run", "-", feed[0], feed[1]]),
    ] {
        let text = graphir(&arguments, MODEL).expect("the command succeeds");
        expect_file![format!("graphir/{name}.txt")].assert_eq(&text);
    }
}

#[test]
fn a_plan_keeps_a_budget_or_says_what_the_least_is() {
    let fits = graphir(&["plan", "-", "--budget", "1000"], MODEL).unwrap();
    let first = fits.lines().next().unwrap_or_default();
    assert_eq!(
        first,
        "budget 1000: 0 values are computed again, by 0.0 % more arithmetic"
    );
    let error = graphir(&["plan", "-", "--budget", "10"], MODEL).unwrap_err();
    expect![[r#"
        error: the graph does not fit into 10 bytes: the least that it can be planned for is 96 bytes
    "#]]
    .assert_eq(&error);
}

#[test]
fn commands_can_be_chained() {
    let derivative = graphir(&["differentiate", "-", "%loss"], MODEL).unwrap();
    let feed = "x = [1.0, 2.0, 3.0, 4.0]";
    let plain = graphir(&["run", "-", "--feed", feed], &derivative).unwrap();
    let optimised = graphir(&["run", "--optimise", "-", "--feed", feed], &derivative).unwrap();
    assert!(plain.contains("gradient of @w: "), "{plain}");
    assert_eq!(plain, optimised);
}

#[test]
fn errors_name_the_place_and_the_problem() {
    let error = |arguments: &[&str], input: &str| graphir(arguments, input).unwrap_err();
    let wrong = MODEL.replace("fmul %y, %y", "fmul %y, %x");
    expect_file!["graphir/wrong_shapes.txt"].assert_eq(&error(&["print", "-"], &wrong));
    expect![[r#"
        error: the graph has no tensor %nothing
    "#]]
    .assert_eq(&error(&["differentiate", "-", "%nothing"], MODEL));
    expect![[r#"
        error: the graph has no feed "z"
    "#]]
    .assert_eq(&error(&["run", "-", "--feed", "z = 1.0"], MODEL));
    expect![[r#"
        error: "x" is f64[2, 2] with 4 elements, but 1 were given
    "#]]
    .assert_eq(&error(&["run", "-", "--feed", "x = [1.0]"], MODEL));
    expect![[r#"
        error: `feed`: nothing feeds "x"
    "#]]
    .assert_eq(&error(&["run", "-"], MODEL));
    let missing = error(&["print", "no_such_file.fzg"], "");
    assert!(
        missing.starts_with("error: cannot read no_such_file.fzg"),
        "{missing}"
    );
    let inner = "graph {\n  %n = constant 2 : i32[]\n  for %n (%i: i32[]) {\n    %a = constant 1.0 : f32[]\n  }\n}\n";
    expect![[r#"
        error: %a belongs to a loop or branch: yield it from there
    "#]]
    .assert_eq(&error(&["differentiate", "-", "%a"], inner));
    expect![[r#"
        error: %n is i32[]: only floats have gradients
    "#]]
    .assert_eq(&error(&["differentiate", "-", "%n"], inner));
}

#[test]
fn help_lists_the_commands() {
    let help = graphir(&["--help"], "").unwrap();
    for command in [
        "print",
        "tree",
        "differentiate",
        "fuse",
        "plan",
        "kernels",
        "run",
    ] {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
    }
}
