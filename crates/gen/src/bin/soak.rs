//! Runs random programs against the laws of the compiler, as many as asked for.
//!
//! ```text
//! cargo run --release -p ferrozyme-gen --bin soak -- --count 1000000 --seed 1
//! cargo run --release -p ferrozyme-gen --bin soak -- --replay 4711
//! cargo run --release -p ferrozyme-gen --bin soak -- --replay failures/reverse-4711.fz
//! ```
//!
//! Failing programs are made small and written to a directory. The exit code says whether there were any.

use anyhow::{Context, bail};
use clap::Parser;
use ferrozyme_gen::laws::{Law, Subject, Tally, check, remember_panics};
use ferrozyme_gen::soak::{Plan, describe, read_subject, soak};
use ferrozyme_gen::{Profile, generate};
use ferrozyme_ir::print_module;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Random programs against the laws of the compiler.
#[derive(Parser)]
struct Arguments {
    /// How many programs to run.
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// The seed of the first; the others follow it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many threads to use [default: as many as there are processors].
    #[arg(long)]
    threads: Option<usize>,
    /// Which laws to check, separated by commas [default: all].
    #[arg(long, value_delimiter = ',', value_parser = parse_law)]
    laws: Vec<Law>,
    /// What kind of programs to make [default: a mixture].
    #[arg(long, value_parser = parse_profile)]
    profile: Option<&'static Profile>,
    /// After how many seconds to stop.
    #[arg(long)]
    time_limit: Option<u64>,
    /// After how many failures to stop.
    #[arg(long, default_value_t = 20)]
    failures: usize,
    /// How many candidates to try to make a failing program small; 0 to leave it as it is.
    #[arg(long, default_value_t = 4000)]
    shrinking: usize,
    /// Where failing programs go.
    #[arg(long, default_value = "soak-failures")]
    output: PathBuf,
    /// Checks the program of one seed, or of a file.
    #[arg(long, value_name = "SEED|FILE")]
    replay: Option<String>,
    /// Prints the program of a seed.
    #[arg(long, value_name = "SEED")]
    show: Option<u64>,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let plan = Plan {
        first: arguments.seed,
        count: arguments.count,
        profile: arguments.profile,
        laws: if arguments.laws.is_empty() {
            Law::ALL.to_vec()
        } else {
            arguments.laws.clone()
        },
        time_limit: arguments.time_limit.map(Duration::from_secs),
        failure_limit: arguments.failures,
        shrinking: arguments.shrinking,
    };
    remember_panics();
    if let Some(seed) = arguments.show {
        let program = generate(seed, plan.profile_of(seed));
        print!("{}", print_module(&program.module));
        return Ok(ExitCode::SUCCESS);
    }
    match &arguments.replay {
        Some(what) => replay(&plan, what),
        None => run(&plan, &arguments),
    }
}

fn run(plan: &Plan, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(threads) = arguments.threads {
        pool = pool.num_threads(threads);
    }
    let pool = pool.build().context("threads could not be started")?;
    let bar = ProgressBar::new(plan.count).with_style(ProgressStyle::with_template(
        "{elapsed_precise} {wide_bar} {human_pos}/{human_len} {per_sec} {msg}",
    )?);
    let failed = AtomicU64::new(0);
    let progress = |failure: bool| {
        bar.inc(1);
        if failure {
            let failures = failed.fetch_add(1, Ordering::Relaxed) + 1;
            bar.set_message(format!("{failures} failures"));
        }
    };
    let summary = pool.install(|| soak(plan, &progress));
    bar.finish_and_clear();
    print!("{summary}");
    if summary.failures.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::create_dir_all(&arguments.output)
        .with_context(|| format!("{} could not be made", arguments.output.display()))?;
    for failure in &summary.failures {
        let name = format!("{}-{}.fz", failure.violation.law, failure.seed);
        let path = arguments.output.join(name);
        std::fs::write(&path, &failure.text)
            .with_context(|| format!("{} could not be written", path.display()))?;
        println!("{}", path.display());
    }
    Ok(ExitCode::FAILURE)
}

/// Checks one program and prints it, made small, if it fails.
fn replay(plan: &Plan, what: &str) -> anyhow::Result<ExitCode> {
    let (subject, profile) = match what.parse::<u64>() {
        Ok(seed) => {
            let profile = plan.profile_of(seed);
            let program = generate(seed, profile);
            let subject = Subject {
                module: program.module,
                main: program.main,
                seed,
            };
            (subject, profile)
        }
        Err(_) => {
            let text =
                std::fs::read_to_string(what).with_context(|| format!("{what} cannot be read"))?;
            match read_subject(&text) {
                Ok(subject) => (subject, plan.profile_of(0)),
                Err(message) => bail!("{what}: {message}"),
            }
        }
    };
    match check(&subject, &plan.laws, &mut Tally::default()) {
        Ok(()) => {
            println!("all laws hold");
            Ok(ExitCode::SUCCESS)
        }
        Err(violation) => {
            println!("{}", describe(plan, profile, &subject, violation).text);
            Ok(ExitCode::FAILURE)
        }
    }
}

fn parse_law(name: &str) -> Result<Law, String> {
    Law::named(name).ok_or_else(|| {
        let names: Vec<&str> = Law::ALL.iter().map(|law| law.name()).collect();
        format!("there is no such law; there are {}", names.join(", "))
    })
}

fn parse_profile(name: &str) -> Result<&'static Profile, String> {
    Profile::named(name).ok_or_else(|| {
        let names: Vec<&str> = Profile::ALL.iter().map(|profile| profile.name).collect();
        format!("there is no such profile; there are {}", names.join(", "))
    })
}
