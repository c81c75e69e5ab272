//! What else is attempted before a derivative is refused: `explain` says what helped.

use super::project::Project;

/// Derivatives that the first attempt refuses.
const PROGRAM: &str = "\
use ferrozyme::autodiff_reverse;

fn double(x: f64) -> f64 {
    2.0 * x
}

fn bits(x: f64) -> f64 {
    f64::from_bits(x.to_bits() ^ (x.to_bits() >> 7)) * x
}

#[autodiff_reverse(d_applied, Const, Active, Active)]
fn applied(f: fn(f64) -> f64, x: f64) -> f64 {
    f(x) * x
}

#[autodiff_reverse(d_plain, Active, Active)]
fn plain(x: f64) -> f64 {
    x * x
}

fn main() {
    let functions = [double, bits];
    assert_eq!(d_applied(functions[std::env::args().count() - 1], 3.0, 1.0), (18.0, 12.0));
    assert_eq!(d_plain(3.0, 1.0), (9.0, 6.0));
}
";

#[test]
fn explain_says_what_a_derivative_was_made_with() {
    let project = Project::program("attempts", PROGRAM);
    project.ferrozyme(&["run"]).expect_success();
    let run = project.ferrozyme(&["explain"]);
    let reports: Vec<&str> = run.expect_success().split("derivative `").collect();
    let made_with = |derivative: &str| {
        let start = format!("{derivative}`");
        let report = reports.iter().find(|report| report.starts_with(&start));
        let report = report.unwrap_or_else(|| panic!("no report on {derivative}"));
        let lines = report.lines();
        let lines = lines.skip_while(|line| *line != "refused otherwise, so made with:");
        let lines = lines.skip(1).take_while(|line| line.starts_with("  "));
        lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(made_with("d_plain"), [""; 0]);
    assert_eq!(
        made_with("d_applied"),
        [
            "functions behind pointers that stop the program",
            "calls through pointers as choices between functions of the program",
        ]
    );
}

#[test]
fn a_perturbation_refuses_when_the_program_runs() {
    let main = "\
use ferrozyme::autodiff_reverse;

#[autodiff_reverse(df, Active, Active)]
fn f(x: f64) -> f64 {
    f64::from_bits(x.to_bits() ^ (x.to_bits() >> 7)) * x
}

fn main() {
    println!(\"{:?}\", df(2.0, 1.0));
}
";
    let project = Project::program("refused-late", main);
    let errors = project.ferrozyme(&["build"]);
    assert!(errors.expect_failure().contains("error[FZ0309]"));
    let late = project.ferrozyme_with(&["run"], |command| {
        command.env("FERROZYME_PERTURB", "refuse=late");
    });
    let errors = late.expect_failure();
    assert!(errors.contains("[FZ0309]"), "{errors}");
    assert!(!errors.contains("error[FZ0309]"), "{errors}");
}
