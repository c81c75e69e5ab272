//! C programs: units of several programs each, compiled by `ferrozyme-cc`, each with a harness of its own.

use super::messages::{blame, blame_alone};
use super::output::run_group;
use super::{COMPILATION_LIMIT, Workshop, is_late};
use crate::c::HARNESS;
use crate::program::Program;
use crate::verdict::Finding;
use anyhow::Context;
use rayon::prelude::*;
use std::collections::HashMap;
use std::fmt::Write;

/// How many programs are in one unit.
const GROUP: usize = 10;

pub(super) fn run(
    workshop: &Workshop,
    programs: &[Program],
    profile: &str,
) -> anyhow::Result<Vec<Finding>> {
    std::fs::write(workshop.folder.join("harness.h"), HARNESS)?;
    for (number, program) in programs.iter().enumerate() {
        let path = workshop.folder.join(format!("f{number}.c"));
        std::fs::write(path, program.tree.print())?;
    }
    let numbers: Vec<usize> = (0..programs.len()).collect();
    let groups: Vec<&[usize]> = numbers.chunks(GROUP).collect();
    let found: Vec<HashMap<usize, Finding>> = groups
        .par_iter()
        .map(|group| run_unit(workshop, programs, group, profile))
        .collect::<anyhow::Result<_>>()?;
    let mut findings: HashMap<usize, Finding> = found.into_iter().flatten().collect();
    Ok(numbers
        .iter()
        .map(|number| {
            let missing = || Finding::Crashed("nothing is known of the program".into());
            findings.remove(number).unwrap_or_else(missing)
        })
        .collect())
}

/// Compiles and runs the programs of a unit; without those that are refused, once these are known.
fn run_unit(
    workshop: &Workshop,
    programs: &[Program],
    group: &[usize],
    profile: &str,
) -> anyhow::Result<HashMap<usize, Finding>> {
    if group.is_empty() {
        return Ok(HashMap::new());
    }
    let name = format!("unit{}_{}", group[0], group.len());
    let executable = workshop.folder.join(&name);
    let source = workshop.folder.join(format!("{name}.c"));
    std::fs::write(&source, unit(programs, group))?;
    let output = workshop
        .command(COMPILATION_LIMIT, &workshop.driver)
        .args([profile, "-g1", "-w", "-o"])
        .arg(&executable)
        .arg(&source)
        .arg("-lm")
        .output()
        .context("the driver cannot be started")?;
    let mut findings = HashMap::new();
    if output.status.success() {
        findings = run_group(workshop, &executable, group)?;
        std::fs::remove_file(&executable)?;
        std::fs::remove_file(&source)?;
        return Ok(findings);
    }
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    let blamed = blame(&messages);
    let (bad, good): (Vec<usize>, Vec<usize>) =
        group.iter().partition(|number| blamed.contains_key(number));
    for number in &bad {
        findings.insert(*number, blamed[number].clone());
    }
    if !bad.is_empty() {
        findings.extend(run_unit(workshop, programs, &good, profile)?);
    } else if group.len() > 1 {
        // Nobody is named: the half with the culprit will fail again.
        let (one, other) = good.split_at(good.len() / 2);
        findings.extend(run_unit(workshop, programs, one, profile)?);
        findings.extend(run_unit(workshop, programs, other, profile)?);
    } else {
        let finding = match is_late(&output) {
            true => Finding::Slow("the compiler does not come to an end".into()),
            false => blame_alone(&messages),
        };
        findings.insert(group[0], finding);
    }
    Ok(findings)
}

fn unit(programs: &[Program], group: &[usize]) -> String {
    let mut text = "#include \"harness.h\"\n".to_owned();
    for number in group {
        // Names of programs are made different by their number.
        let _ = writeln!(
            text,
            "#define P(name) f{number}_##name\n#include \"f{number}.c\"\n#undef P"
        );
    }
    text.push_str("static const struct example examples[] = {\n");
    for number in group {
        let Program { inputs, seed, .. } = programs[*number];
        let _ = writeln!(
            text,
            "{{\"f{number}\", {inputs}, {seed}ull, f{number}_value, f{number}_gradient, f{number}_tangent}},"
        );
    }
    text.push_str(
        "{0}};\nint main(int count, char **names) { return run(examples, count, names); }\n",
    );
    text
}
