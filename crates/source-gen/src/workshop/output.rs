//! Runs a compiled group of programs and parses its output.

use super::{RUN_LIMIT, Workshop, is_late};
use crate::verdict::{Finding, Point};
use anyhow::Context;
use std::collections::HashMap;
use std::path::Path;

/// Runs programs of a group, by their numbers. A program that crashes the process does not stop the others.
pub(super) fn run_group(
    workshop: &Workshop,
    executable: &Path,
    programs: &[usize],
) -> anyhow::Result<HashMap<usize, Finding>> {
    let mut findings = HashMap::new();
    let mut rest = programs.to_vec();
    // Errors of valgrind are attributed by the process in which they occur.
    let at_once = if workshop.valgrind { 1 } else { rest.len() };
    while !rest.is_empty() {
        let now: Vec<usize> = rest.iter().copied().take(at_once).collect();
        let names: Vec<String> = now.iter().map(|number| format!("f{number}")).collect();
        let mut command = match workshop.valgrind {
            true => {
                let mut command = workshop.command(RUN_LIMIT * 6, Path::new("valgrind"));
                command.args(["-q", "--error-exitcode=99"]).arg(executable);
                command
            }
            false => {
                let mut command = workshop.command(RUN_LIMIT, executable);
                // Uninitialised and freed memory is filled with nonzero bytes.
                command.env("MALLOC_PERTURB_", "165");
                command
            }
        };
        let output = command
            .args(&names)
            .output()
            .with_context(|| format!("{} cannot be run", executable.display()))?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut run = read(&printed);
        let ended = printed.ends_with("end\n");
        if !ended {
            let last = run.last.unwrap_or(now[0]);
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            let how = match is_late(&output) {
                true => Finding::Slow("the program does not come to an end".into()),
                // A refusal may also stop the program at run time, with a message.
                false if errors.contains("Ferrozyme: ") => {
                    let message = errors.split("Ferrozyme: ").nth(1).unwrap_or_default();
                    let line = message.lines().next().unwrap_or_default();
                    Finding::Refused(format!("when it runs: {line}"))
                }
                false => Finding::Crashed(format!(
                    "the program ends with {}: {}",
                    output.status,
                    errors.trim()
                )),
            };
            run.findings.insert(last, how);
        } else if output.status.code() == Some(99) {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            run.findings.insert(
                now[0],
                Finding::Ran(vec![Point::Wrong(format!("valgrind: {}", errors.trim()))]),
            );
        }
        rest.retain(|number| !run.findings.contains_key(number));
        let progress = !run.findings.is_empty();
        findings.extend(run.findings);
        if !progress {
            for number in std::mem::take(&mut rest) {
                findings.insert(
                    number,
                    Finding::Crashed("the program prints nothing".into()),
                );
            }
        }
    }
    Ok(findings)
}

/// The parsed output.
struct Printed {
    findings: HashMap<usize, Finding>,
    /// The program that was under way at the end.
    last: Option<usize>,
}

fn read(printed: &str) -> Printed {
    let mut points: HashMap<usize, Vec<Point>> = HashMap::new();
    let mut last = None;
    for line in printed.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let point = match word {
            "start" => {
                let name = rest.split(' ').next().unwrap_or_default();
                last = name
                    .strip_prefix('f')
                    .and_then(|number| number.parse().ok());
                continue;
            }
            "right" => {
                let numbers = rest.split(' ').map(|bits| u64::from_str_radix(bits, 16));
                let numbers: Result<Vec<u64>, _> = numbers.collect();
                match numbers {
                    Ok(numbers) => Point::Right(numbers.into_iter().map(f64::from_bits).collect()),
                    Err(_) => Point::Unclear,
                }
            }
            "edge" => Point::Edge,
            "unclear" => Point::Unclear,
            "wrong" => Point::Wrong(rest.to_owned()),
            _ => continue,
        };
        if let Some(program) = last {
            points.entry(program).or_default().push(point);
        }
    }
    let findings = points
        .into_iter()
        .map(|(program, points)| (program, Finding::Ran(points)))
        .collect();
    Printed { findings, last }
}
