//! Runs the tests of a linked program: they pass, or call a derivative that is refused, or something is wrong.

use crate::programs::{Linked, Program};
use crate::say;
use std::path::Path;
use std::process::{Command, Output};

/// How the last words of a program begin that calls a derivative which could not be made, or which finds while it runs that it cannot go on.
const REFUSED: &str = "Ferrozyme: ";

/// How many seconds tests may take.
const LIMIT: &str = "600";

/// What came of tests.
#[derive(Default)]
pub(crate) struct Tally {
    /// How many pass.
    pub(crate) equal: usize,
    /// Which are refused, and why.
    pub(crate) refused: Vec<String>,
    /// The wrong programs, with their messages.
    pub(crate) wrong: Vec<String>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        self.equal += other.equal;
        self.refused.extend(other.refused);
        self.wrong.extend(other.wrong);
    }

    pub(crate) fn show(&self) -> std::io::Result<()> {
        for refused in &self.refused {
            say(refused)?;
        }
        for wrong in &self.wrong {
            say(&format!("WRONG: {wrong}"))?;
        }
        Ok(())
    }
}

/// Links and runs a program under a choice.
pub(crate) fn judge(
    program: &Program,
    perturbation: &str,
    valgrind: bool,
) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let place = format!("{perturbation}: {}", program.name);
    let (executable, _folder) = match program.link(perturbation)? {
        Linked::Program(executable, folder) => (executable, folder),
        Linked::Failed(output) => {
            let said = what_was_said(&output);
            tally.wrong.push(format!("{place} does not link:\n{said}"));
            return Ok(tally);
        }
    };
    let listed = Command::new(&executable)
        .args(["--list", "--format", "terse"])
        .output()?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let tests: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .collect();
    let together = run(&executable, &[], valgrind)?;
    if together.status.success() {
        tally.equal += tests.len();
        return Ok(tally);
    }
    // Each in a process of its own: a derivative that is refused ends it.
    for test in tests {
        let output = run(&executable, &["--exact", test], valgrind)?;
        let said = what_was_said(&output);
        if output.status.success() {
            tally.equal += 1;
        } else if let Some(reason) = said.lines().find(|line| line.starts_with(REFUSED)) {
            tally.refused.push(format!("{place}: {test}: {reason}"));
        } else {
            let status = output.status;
            tally
                .wrong
                .push(format!("{place}: {test}, {status}:\n{said}"));
        }
    }
    Ok(tally)
}

fn run(executable: &Path, arguments: &[&str], valgrind: bool) -> std::io::Result<Output> {
    let mut command = Command::new("timeout");
    command.arg(LIMIT);
    if valgrind {
        command.args([
            "valgrind",
            "--quiet",
            "--error-exitcode=99",
            "--leak-check=no",
        ]);
    }
    command
        .arg(executable)
        .args(arguments)
        .args(["--test-threads", "1", "--nocapture"])
        .output()
}

fn what_was_said(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    said + &String::from_utf8_lossy(&output.stdout)
}
