//! Runs the programs of `tests/programs` and `tests/c` under choices that must not change a derivative: `cargo run --release -p ferrozyme-perturb`.
//!
//! A test passes as it does without the choice, or the derivative that it calls is refused. The Rust programs are compiled once and linked once for each choice
//! (`programs.rs`); a derivative that is refused stops the program where it is called, which leaves the other tests of the program alone (`verdict.rs`). With `--valgrind` they
//! run under it. The C programs are those of `cargo test -p ferrozyme-cc`, which knows the same choices and, by `--sanitize`, clang's sanitizers.

mod programs;
mod verdict;

use clap::Parser;
use programs::Program;
use std::collections::{BTreeSet, VecDeque};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use verdict::Tally;

/// The variable from which the driver reads the choices.
const VARIABLE: &str = "FERROZYME_PERTURB";

/// All choices, alone and together.
const ALL: &[&str] = &[
    "inline=none",
    "inline=library",
    "inline=all",
    "inline=half:1",
    "inline=half:2",
    "prepare=O0",
    "prepare=O1",
    "prepare=O3",
    "prepare=Os",
    "plan=save",
    "plan=recompute",
    "at-once=off",
    "mode=split",
    "calls=resolve",
    "outline=off",
    "order=reverse",
    "level=baseline",
    "level=v3",
    "inline=none,prepare=O1,plan=save,at-once=off",
    "inline=half:3,plan=recompute,mode=split",
];

/// A few programs and choices that together take little time.
const SAMPLE: &[(&str, &[&str], usize)] = &[
    ("inline=library", &["not_inlined", "structs"], 18),
    ("inline=none,plan=recompute", &["structs"], 6),
    ("inline=half:1", &["statics"], 2),
    ("level=baseline", &["structs"], 6),
    ("level=v3", &["structs"], 6),
    (
        "mode=split,plan=save,at-once=off",
        &["not_inlined", "structs"],
        18,
    ),
];

/// Runs the programs under choices that must not change a derivative
#[derive(Parser)]
struct Arguments {
    /// The choices, for instance `inline=none,plan=save` [default: all, one after the other]
    #[arg(long)]
    perturb: Vec<String>,
    /// The files of tests/programs [default: all]
    #[arg(long)]
    test: Vec<String>,
    /// Only a few Rust programs under a few choices
    #[arg(long)]
    sample: bool,
    /// The Rust programs in this profile, `dev` (unoptimised) or `release`
    #[arg(long, default_value = "release")]
    profile: String,
    /// Runs the Rust programs under valgrind
    #[arg(long)]
    valgrind: bool,
    /// Runs the C programs too, as built with these sanitizers of clang's (`address`, `memory`, `undefined`), or under `valgrind`
    #[arg(long)]
    sanitize: Vec<String>,
    /// Leaves the Rust programs out
    #[arg(long)]
    only_c: bool,
    /// Leaves the C programs out
    #[arg(long)]
    only_rust: bool,
}

/// A program under a choice.
struct Job<'a> {
    perturbation: &'a str,
    program: &'a Program,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let all: Vec<String> = match arguments.perturb.is_empty() {
        true => ALL.iter().map(|&choice| choice.to_owned()).collect(),
        false => arguments.perturb.clone(),
    };
    let mut good = true;
    if arguments.sample {
        let tests: BTreeSet<&str> = SAMPLE
            .iter()
            .flat_map(|(_, tests, _)| tests.iter().copied())
            .collect();
        let tests: Vec<String> = tests.into_iter().map(str::to_owned).collect();
        let programs = programs::compile(&root, &arguments.profile, &tests)?;
        for (perturbation, tests, accepted) in SAMPLE {
            let chosen = programs
                .iter()
                .filter(|program| tests.contains(&program.name.as_str()));
            let tally = run_rust(&arguments, perturbation, chosen)?;
            if tally.equal < *accepted {
                say(&format!("{perturbation}: {accepted} tests passed before"))?;
            }
            good &= tally.wrong.is_empty() && tally.equal >= *accepted;
        }
        return Ok(exit_code(good));
    }
    if !arguments.only_c {
        let programs = programs::compile(&root, &arguments.profile, &arguments.test)?;
        for perturbation in &all {
            let tally = run_rust(&arguments, perturbation, programs.iter())?;
            good &= tally.wrong.is_empty();
        }
    }
    if !arguments.only_rust {
        for perturbation in &all {
            good &= run_c(&root, perturbation, None)?;
        }
        for sanitizer in &arguments.sanitize {
            good &= run_c(&root, "", Some(sanitizer))?;
        }
    }
    Ok(exit_code(good))
}

fn exit_code(good: bool) -> ExitCode {
    match good {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Links and runs Rust programs under a choice, on all cores.
fn run_rust<'a>(
    arguments: &Arguments,
    perturbation: &str,
    programs: impl Iterator<Item = &'a Program>,
) -> anyhow::Result<Tally> {
    let jobs: VecDeque<Job<'_>> = programs
        .map(|program| Job {
            perturbation,
            program,
        })
        .collect();
    let jobs = Mutex::new(jobs);
    let total = Mutex::new(Tally::default());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let workers: Vec<_> = (0..cores)
            .map(|_| {
                scope.spawn(|| -> anyhow::Result<()> {
                    loop {
                        let job = jobs
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .pop_front();
                        let Some(Job {
                            perturbation,
                            program,
                        }) = job
                        else {
                            return Ok(());
                        };
                        let tally = verdict::judge(program, perturbation, arguments.valgrind)?;
                        tally.show()?;
                        total
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .add(tally);
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().expect("what a worker panics of is shown")?;
        }
        Ok(())
    })?;
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    say(&format!(
        "{} {perturbation}: {} tests pass, {} refused, {} wrong",
        arguments.profile,
        total.equal,
        total.refused.len(),
        total.wrong.len()
    ))?;
    Ok(total)
}

/// Runs the C programs under a choice or with a sanitizer. Whether nothing was wrong.
fn run_c(root: &Path, perturbation: &str, sanitizer: Option<&str>) -> anyhow::Result<bool> {
    let mut command = Command::new(cargo());
    command.current_dir(root).env(VARIABLE, perturbation).args([
        "test",
        "--release",
        "-p",
        "ferrozyme-cc",
        "--test",
        "programs",
        "--",
        "--quiet",
    ]);
    if let Some(sanitizer) = sanitizer {
        command.env("FERROZYME_SANITIZE", sanitizer);
    }
    let status = command.status()?;
    let what = sanitizer.unwrap_or(perturbation);
    let end = match status.success() {
        true => "nothing wrong",
        false => "WRONG",
    };
    say(&format!("C programs, {what}: {end}"))?;
    Ok(status.success())
}

/// The cargo that runs us.
fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

fn say(text: &str) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{text}")
}
