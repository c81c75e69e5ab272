//! The parallel programs of `tests/threads`: which loops of their gradients run on several threads and how, and that derivatives are right on any number of threads.

use super::project::{Project, manifest, repository};
use std::collections::BTreeMap;

#[test]
fn parallel_iterators_run_on_several_threads() {
    let folder = repository().join("tests/threads");
    let source = std::fs::read_to_string(folder.join("programs.rs")).expect("the programs");
    let expected = expectations(&source);
    let project = Project { folder };
    let run = project.ferrozyme(&["explain", "--release", "--bin", "check"]);
    let found = choices(run.expect_success());
    for (name, expected) in &expected {
        let found = found.get(name).map_or("nothing", String::as_str);
        assert_eq!(found, expected, "the loops of the gradient of `{name}`");
    }
    for profile in ["dev", "release"] {
        let run = project.ferrozyme_with(&["run", "--profile", profile, "--bin", "check"], |run| {
            if let Some(runs) = std::env::var_os("FERROZYME_RUNS") {
                run.env("FERROZYME_RUNS", runs);
            }
        });
        assert_eq!(run.expect_success(), "all are right\n");
    }
}

/// What hands over jobs in other ways: the expression that does, and how it is refused.
const JOBS: [(&str, &str); 3] = [
    (
        "{ let (a, b) = rayon::join(|| x[0] * x[0], || x[1].sin()); a * b }",
        STARTS,
    ),
    (
        "{ let mut y = 0.0; rayon::scope(|scope| scope.spawn(|_| y = x[0] * x[1])); y }",
        STARTS,
    ),
    (
        "{ let mut y = 0.0; rayon::in_place_scope(|scope| scope.spawn(|_| y = x[0] * x[1])); y }",
        CATCHES,
    ),
];

const STARTS: &str = "error[FZ0501]: cannot differentiate code that starts a thread";
const CATCHES: &str = "error[FZ0508]: cannot differentiate code that catches panics";

#[test]
fn other_jobs_of_rayon_are_refused_by_name() {
    for (job, message) in JOBS {
        let project = program("jobs", job);
        for profile in ["dev", "release"] {
            let run = project.ferrozyme(&["build", "--profile", profile]);
            let errors = run.expect_failure();
            for part in [message, "--> src/main.rs:5:"] {
                assert!(errors.contains(part), "{profile}: {job}: {part}\n{errors}");
            }
        }
    }
}

/// What an iterator is split for in spite of all is known when the program is compiled, or when it runs.
#[test]
fn iterators_that_must_be_split_are_refused_by_name() {
    let project = program(
        "splits",
        "x.par_iter().with_max_len(1).map(|x| x * x).sum()",
    );
    for profile in ["dev", "release"] {
        let run = project.ferrozyme(&["run", "--profile", profile]);
        let errors = run.expect_failure();
        assert!(errors.contains("FZ0501"), "{profile}: {errors}");
    }
}

/// A program that differentiates an expression.
fn program(name: &str, expression: &str) -> Project {
    let main = format!(
        "#[allow(unused_imports)]\nuse rayon::prelude::*;\n\nfn f(x: &[f64]) -> f64 {{\n    {expression}\n}}\n\n\
         fn main() {{\n    println!(\"{{:?}}\", ferrozyme::grad(f, &[1.5, 2.5]));\n}}\n"
    );
    let manifest = manifest(name, "rayon = \"1\"\n[workspace]\n");
    Project::new(name, &[("Cargo.toml", &manifest), ("src/main.rs", &main)])
}

/// What the comments above functions say: `// threads: several, copies; one`.
fn expectations(source: &str) -> BTreeMap<String, String> {
    let mut expected = BTreeMap::new();
    let mut said = None;
    for line in source.lines() {
        if let Some(text) = line.strip_prefix("// threads: ") {
            said = Some(text.to_owned());
        } else if let Some(rest) = line.strip_prefix("pub fn ") {
            let name = rest.split('(').next().unwrap_or(rest).to_owned();
            let said = said.take();
            expected.insert(
                name,
                said.expect("the comment `// threads:` above each function"),
            );
        }
    }
    expected
}

/// What `explain` says of the loops of each gradient, in short.
fn choices(output: &str) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut name = None;
    for line in output.lines() {
        if line.starts_with("derivative ") {
            let function = line
                .contains("(reverse)")
                .then(|| line.split("check::programs::").nth(1));
            name = function
                .flatten()
                .and_then(|rest| rest.split('`').next())
                .map(str::to_owned);
        }
        let short = match line.trim_start() {
            text if text.starts_with("one thread: ") => "one",
            text if !text.starts_with("several threads") => continue,
            text if text.contains("every second block first") => "several, neighbours",
            text if text.contains("a copy for each block") && text.contains("atomic") => {
                "several, copies and atomic"
            }
            text if text.contains("a copy for each block") => "several, copies",
            text if text.contains("atomic additions") => "several, atomic",
            _ => "several",
        };
        if let Some(name) = &name {
            let choices = found.entry(name.clone()).or_default();
            if !choices.is_empty() {
                choices.push_str("; ");
            }
            choices.push_str(short);
        }
    }
    found
}
