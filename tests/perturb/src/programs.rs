//! Compiles the Rust programs once, and links them as often as there are choices: derivatives are made at link time, and a choice changes nothing before that.
//!
//! rustc prints its link lines and keeps the files they name. A line is stored beside them, since rustc does not print it again if nothing changed.

use crate::{VARIABLE, cargo};
use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The package of the programs.
const PACKAGE: &str = "ferrozyme-programs";

/// Derivatives that are refused stop the program where they are called, instead of the link.
const LATE: &str = "refuse=late";

/// A file of `tests/programs`, compiled.
pub(crate) struct Program {
    /// The name of the file.
    pub(crate) name: String,
    /// The driver as the linker, and its arguments.
    line: Vec<String>,
}

/// What came of a link.
pub(crate) enum Linked {
    /// The executable, as long as the folder is there.
    Program(PathBuf, TempDir),
    /// The message instead.
    Failed(Output),
}

/// Compiles the programs with these names, or all.
pub(crate) fn compile(
    root: &Path,
    profile: &str,
    tests: &[String],
) -> anyhow::Result<Vec<Program>> {
    let driver = build_driver(root)?;
    let lines = root.join("target/perturb").join(profile);
    fs::create_dir_all(&lines)?;
    let mut names = tests.to_vec();
    if names.is_empty() {
        names = all_tests(root)?;
    }
    let mut programs = Vec::new();
    for name in names {
        let kept = lines.join(&name);
        if let Some(line) = compile_one(root, &driver, profile, &name)? {
            fs::write(&kept, line.join("\n"))?;
        }
        let line = fs::read_to_string(&kept);
        let line = line.with_context(|| format!("no link line of `{name}` is known"))?;
        programs.push(Program {
            name,
            line: line.lines().map(str::to_owned).collect(),
        });
    }
    Ok(programs)
}

/// The tests of the package that are not left out for a feature.
fn all_tests(root: &Path) -> anyhow::Result<Vec<String>> {
    let output = Command::new(cargo())
        .current_dir(root)
        .args(["metadata", "--no-deps", "--format-version=1"])
        .output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages
        .filter(|package| package["name"] == PACKAGE)
        .flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let tests = targets
        .filter(|target| target["kind"][0] == "test" && target.get("required-features").is_none());
    Ok(tests
        .filter_map(|target| target["name"].as_str().map(str::to_owned))
        .collect())
}

/// Compiles and links a program; returns its link line if it was linked.
fn compile_one(
    root: &Path,
    driver: &Path,
    profile: &str,
    name: &str,
) -> anyhow::Result<Option<Vec<String>>> {
    let output = Command::new(driver)
        .current_dir(root)
        .env("CARGO_INCREMENTAL", "0")
        // However the compiler itself is built, the programs are built as users build theirs.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
        .env_remove("CARGO_PROFILE_RELEASE_OPT_LEVEL")
        .env_remove("CARGO_PROFILE_RELEASE_DEBUG")
        .env(VARIABLE, LATE)
        .args(["ferrozyme", "rustc", "-p", PACKAGE, "--test", name])
        .args(["--profile", profile])
        .args(["--", "-Csave-temps", "--print=link-args"])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        bail!("`{name}` cannot be built");
    }
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(said.lines().find_map(|line| read_line(line, driver)))
}

/// Builds `cargo-ferrozyme` and says where it is.
fn build_driver(root: &Path) -> anyhow::Result<PathBuf> {
    let output = Command::new(cargo())
        .current_dir(root)
        .args(["build", "--release", "-p", "ferrozyme-cli"])
        .args(["--bin", "cargo-ferrozyme", "--message-format=json"])
        .stderr(Stdio::inherit())
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let executable = said.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    executable.context("the driver cannot be built")
}

/// The words of a link line, if it is one: variables in front, then all in quotes.
fn read_line(line: &str, driver: &Path) -> Option<Vec<String>> {
    let start = line.find(&format!("\"{}\"", driver.display()))?;
    let words = line[start..]
        .trim()
        .trim_matches('"')
        .split("\" \"")
        .map(|word| word.replace("\\\"", "\"").replace("\\\\", "\\"));
    Some(words.collect())
}

impl Program {
    /// Links the program under a choice; derivatives that are refused then stop it where they are called.
    pub(crate) fn link(&self, perturbation: &str) -> anyhow::Result<Linked> {
        let folder = tempfile::tempdir()?;
        let executable = folder.path().join(&self.name);
        let mut words = self.line.clone();
        let place = words.iter().position(|word| word == "-o");
        let place = place.context("the link line names no output")? + 1;
        words[place] = executable.display().to_string();
        let output = Command::new(&words[0])
            .args(&words[1..])
            .env(VARIABLE, format!("{perturbation},{LATE}"))
            .output()?;
        Ok(match output.status.success() {
            true => Linked::Program(executable, folder),
            false => Linked::Failed(output),
        })
    }
}
