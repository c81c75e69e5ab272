//! What else is attempted before a derivative is refused: `explain` says what helped.

use super::project::Project;

/// Derivatives that the first attempt refuses.
const PROGRAM: &str = "\
use ferrozyme::autodiff_reverse;

#[autodiff_reverse(d_plain, Active, Active)]
fn plain(x: f64) -> f64 {
    x * x
}

trait Term {
    fn value(&self, x: f64) -> f64;
    fn boxed_clone(&self) -> Box<dyn Term>;
}

#[derive(Clone)]
struct Linear(f64);

#[derive(Clone)]
struct Polynomial(Vec<f64>);

impl Term for Linear {
    fn value(&self, x: f64) -> f64 {
        self.0 * x
    }
    fn boxed_clone(&self) -> Box<dyn Term> {
        Box::new(self.clone())
    }
}

impl Term for Polynomial {
    fn value(&self, x: f64) -> f64 {
        self.0.iter().rev().fold(0.0, |sum, c| sum * x + c)
    }
    fn boxed_clone(&self) -> Box<dyn Term> {
        Box::new(self.clone())
    }
}

#[autodiff_reverse(d_cloned, Duplicated, Active)]
fn cloned(w: &[f64]) -> f64 {
    let terms: Vec<Box<dyn Term>> = vec![Box::new(Linear(w[0])), Box::new(Polynomial(vec![w[0], w[1]]))];
    let clones: Vec<Box<dyn Term>> = terms.iter().map(|term| term.boxed_clone()).collect();
    terms.iter().zip(&clones).map(|(term, clone)| term.value(2.0) * clone.value(1.0)).sum()
}

#[derive(Clone, Copy)]
union Word {
    number: f64,
    place: *const f64,
}

#[autodiff_reverse(d_moved, Duplicated, Const, Active)]
fn moved(x: &[f64], n: usize) -> f64 {
    let mut own = [Word { number: x[1] }; 2];
    own[n % 2] = Word { place: &raw const x[0] };
    let words: *const Word = if n > 5 { own.as_ptr() } else { x.as_ptr().cast() };
    unsafe {
        let copy = [*words, *words.add(1)];
        match n > 5 {
            true => *copy[n % 2].place * copy[(n + 1) % 2].number,
            false => copy[0].number * copy[1].number,
        }
    }
}

fn main() {
    let mut dx = [0.0; 2];
    assert_eq!(d_moved(&[3.0, 5.0], &mut dx, 1, 1.0), 15.0);
    assert_eq!(dx, [5.0, 3.0]);
    // 2 a^2 + (a + 2 b) (a + b)
    let mut dw = [0.0; 2];
    assert_eq!(d_cloned(&[3.0, 5.0], &mut dw, 1.0), 122.0);
    assert_eq!(dw, [33.0, 29.0]);
    assert_eq!(d_plain(3.0, 1.0), (9.0, 6.0));
}
";

/// One of two functions has no derivative; the other one is called.
const CHOICES: &str = "\
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

fn main() {
    let functions = [double, bits];
    assert_eq!(d_applied(functions[std::env::args().count() - 1], 3.0, 1.0), (18.0, 12.0));
}
";

/// What `explain` says that each derivative of a program was made with.
fn made_with(name: &str, program: &str, derivative: &str) -> Vec<String> {
    let project = Project::program(name, program);
    project.ferrozyme(&["run"]).expect_success();
    let run = project.ferrozyme(&["explain"]);
    let start = format!("{derivative}`");
    let mut reports = run.expect_success().split("derivative `");
    let report = reports.find(|report| report.starts_with(&start));
    let lines = report.expect("a report").lines();
    let lines = lines.skip_while(|line| *line != "refused otherwise, so made with:");
    let lines = lines.skip(1).take_while(|line| line.starts_with("  "));
    lines.map(|line| line.trim().to_owned()).collect()
}

#[test]
fn explain_says_what_a_derivative_was_made_with() {
    let of = |derivative: &str| made_with("attempts", PROGRAM, derivative);
    assert_eq!(of("d_plain"), [""; 0]);
    assert_eq!(
        of("d_cloned"),
        ["indirect calls resolved where their targets are known"]
    );
    assert_eq!(of("d_moved"), ["shadows that are made for each call"]);
    assert_eq!(
        made_with("choices", CHOICES, "d_applied"),
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
    let errors = Project::program("refused-at-once", main).ferrozyme(&["build"]);
    assert!(errors.expect_failure().contains("error[FZ0309]"));
    // A package of its own, which stays as it was built.
    let project = Project::program("refused-late", main);
    let late = project.ferrozyme_with(&["run"], |command| {
        command.env("FERROZYME_PERTURB", "refuse=late");
    });
    let errors = late.expect_failure();
    assert!(errors.contains("[FZ0309]"), "{errors}");
    assert!(!errors.contains("error[FZ0309]"), "{errors}");
}
