//! Rust programs: one package whose binaries are groups of programs, built by `cargo ferrozyme`.

use super::messages::{blame, blame_alone};
use super::output::run_group;
use super::{COMPILATION_LIMIT, Workshop, is_late};
use crate::program::Program;
use crate::rust::HARNESS;
use crate::verdict::Finding;
use anyhow::Context;
use rayon::prelude::*;
use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

/// How many programs are in one binary.
const GROUP: usize = 8;

pub(super) fn run(
    workshop: &Workshop,
    programs: &[Program],
    profile: &str,
) -> anyhow::Result<Vec<Finding>> {
    let mut findings: HashMap<usize, Finding> = HashMap::new();
    let numbers: Vec<usize> = (0..programs.len()).collect();
    let mut groups: Vec<Vec<usize>> = numbers.chunks(GROUP).map(<[usize]>::to_vec).collect();
    let mut built: Vec<Vec<usize>> = Vec::new();
    let mut round = 0;
    while !groups.is_empty() {
        write_package(workshop, programs, &groups, round)?;
        let mut command = workshop.command(COMPILATION_LIMIT, &workshop.driver);
        command.args(["ferrozyme", "build", "--bins", "--keep-going", "--quiet"]);
        if profile == "release" {
            command.arg("--release");
        }
        command.env("CARGO_TARGET_DIR", workshop.folder.join("target"));
        let output = command.output().context("the driver cannot be started")?;
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        let blamed = blame(&messages);
        let late = is_late(&output);
        let mut next = Vec::new();
        for (index, group) in groups.into_iter().enumerate() {
            let executable = executable(workshop, profile, round, index);
            if executable.exists() {
                findings.extend(run_group(workshop, &executable, &group)?);
                built.push(group);
                continue;
            }
            let (bad, good): (Vec<usize>, Vec<usize>) =
                group.iter().partition(|number| blamed.contains_key(number));
            for number in &bad {
                findings.insert(*number, blamed[number].clone());
            }
            if !bad.is_empty() {
                next.push(good);
            } else if group.len() > 1 {
                // Nobody is named: the half with the culprit will fail again.
                let (one, other) = good.split_at(good.len() / 2);
                next.extend([one.to_vec(), other.to_vec()]);
            } else {
                let finding = match late {
                    true => Finding::Slow("the compiler does not come to an end".into()),
                    false => blame_alone(&messages),
                };
                findings.insert(group[0], finding);
            }
        }
        groups = next.into_iter().filter(|group| !group.is_empty()).collect();
        round += 1;
    }
    clean(workshop, profile);
    Ok((0..programs.len())
        .map(|number| {
            let missing = || Finding::Crashed("nothing is known of the program".into());
            findings.remove(&number).unwrap_or_else(missing)
        })
        .collect())
}

fn executable(
    workshop: &Workshop,
    profile: &str,
    round: usize,
    index: usize,
) -> std::path::PathBuf {
    workshop
        .folder
        .join("target")
        .join(profile)
        .join(format!("g{round}_{index}"))
}

/// Removes the build output of the groups, so that the disk does not fill up and old binaries are not run as new ones.
fn clean(workshop: &Workshop, profile: &str) {
    let folder = workshop.folder.join("target").join(profile);
    for place in [
        folder.clone(),
        folder.join("deps"),
        folder.join(".fingerprint"),
        folder.join("incremental"),
    ] {
        let Ok(entries) = std::fs::read_dir(place) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_group = name.starts_with('g')
                && name[1..].starts_with(|letter: char| letter.is_ascii_digit());
            if is_group || name.starts_with("groups-") {
                let path = entry.path();
                // Files that are gone need not be removed.
                let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
            }
        }
    }
}

fn write_package(
    workshop: &Workshop,
    programs: &[Program],
    groups: &[Vec<usize>],
    round: usize,
) -> anyhow::Result<()> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = format!(
        "[package]\nname = \"groups\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\nferrozyme = {{ path = \"{}\" }}\n\
         [profile.dev]\ndebug = \"line-tables-only\"\nincremental = false\n",
        repository.join("crates/ferrozyme").display()
    );
    let folder = &workshop.folder;
    std::fs::write(folder.join("Cargo.toml"), manifest)?;
    let lock = folder.join("Cargo.lock");
    if !lock.exists() {
        // The versions that this repository uses are on this machine already.
        std::fs::copy(repository.join("Cargo.lock"), lock)?;
    }
    let sources = folder.join("src");
    if sources.exists() {
        std::fs::remove_dir_all(&sources)?;
    }
    groups.par_iter().enumerate().try_for_each(|(index, group)| {
        let folder = sources.join(format!("bin/g{round}_{index}"));
        std::fs::create_dir_all(&folder)?;
        let mut main = format!("#![allow(warnings)]\n{HARNESS}\nfn cases() -> Vec<Case> {{\nvec![\n")
            .replace("//!", "//");
        let mut modules = String::new();
        for number in group {
            let program = &programs[*number];
            let _ = writeln!(modules, "mod f{number};");
            let _ = writeln!(
                main,
                "Case {{ name: \"f{number}\", inputs: {}, seed: {}, value: f{number}::value, gradient: f{number}::gradient, tangent: f{number}::tangent }},",
                program.inputs, program.seed
            );
            std::fs::write(folder.join(format!("f{number}.rs")), program.tree.print())?;
        }
        let _ = write!(main, "]\n}}\n{modules}");
        std::fs::write(folder.join("main.rs"), main)
    })?;
    Ok(())
}
