//! Runs random Rust or C functions through the whole product, as many as requested.
//!
//! ```text
//! cargo run --release -p ferrozyme-source-gen --bin source-soak -- --language rust --count 1000 --seed 1
//! cargo run --release -p ferrozyme-source-gen --bin source-soak -- --language c --show 4711
//! ```
//!
//! Failing functions are made small and written to a directory. The exit code says whether there were any.

use anyhow::Context;
use clap::{Parser, ValueEnum};
use ferrozyme_source_gen::Language;
use ferrozyme_source_gen::soak::{Failed, Plan, Summary, soak};
use ferrozyme_source_gen::workshop::Workshop;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::process::ExitCode;

/// Random functions in Rust or C, compiled by the product, whose derivatives are compared with finite differences, between modes, and between profiles.
#[derive(Parser)]
struct Arguments {
    /// The language of the functions.
    #[arg(long, value_enum)]
    language: Choice,
    /// How many functions to run.
    #[arg(long, default_value_t = 200)]
    count: u64,
    /// The seed of the first program; the others follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many functions are compiled at a time.
    #[arg(long, default_value_t = 100)]
    batch: usize,
    /// In which profiles, separated by commas [default: debug,release or -O0,-O2].
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true)]
    profiles: Vec<String>,
    /// Runs the functions under valgrind.
    #[arg(long)]
    valgrind: bool,
    /// After how many failures to stop.
    #[arg(long, default_value_t = 20)]
    failures: usize,
    /// How many builds to spend on making one failing function small; 0 to leave it as it is.
    #[arg(long, default_value_t = 60)]
    shrinking: usize,
    /// Where failing functions go.
    #[arg(long, default_value = "source-soak-failures")]
    output: PathBuf,
    /// Where functions are compiled [default: a temporary folder].
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Prints the function of a seed.
    #[arg(long, value_name = "SEED")]
    show: Option<u64>,
}

/// The language, as it is written on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum Choice {
    Rust,
    C,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let language = match arguments.language {
        Choice::Rust => Language::Rust,
        Choice::C => Language::C,
    };
    if let Some(seed) = arguments.show {
        print!("{}", language.generate(seed).tree.print());
        return Ok(ExitCode::SUCCESS);
    }
    let defaults = Workshop::profiles(language).iter().map(ToString::to_string);
    let plan = Plan {
        language,
        first: arguments.seed,
        count: arguments.count,
        batch: arguments.batch,
        profiles: match arguments.profiles.is_empty() {
            true => defaults.collect(),
            false => arguments.profiles.clone(),
        },
        shrinking: arguments.shrinking,
        failure_limit: arguments.failures,
    };
    let temporary = tempfile::tempdir().context("a temporary folder cannot be made")?;
    let folder = arguments
        .folder
        .clone()
        .unwrap_or_else(|| temporary.path().to_owned());
    // Cargo puts the drivers beside this program.
    let this = std::env::current_exe().context("this program cannot be found")?;
    let drivers = this.parent().context("this program is in no folder")?;
    let workshop = Workshop::new(language, &folder, drivers, arguments.valgrind)?;
    let bar = ProgressBar::new(plan.count).with_style(ProgressStyle::with_template(
        "{elapsed_precise} {wide_bar} {human_pos}/{human_len} {msg}",
    )?);
    bar.enable_steady_tick(std::time::Duration::from_secs(1));
    let mut progress = |count: u64, summary: &Summary| {
        bar.inc(count);
        let refused: u64 = summary.refused.values().sum();
        let state = format!(
            "{} right, {refused} refused, {} failed",
            summary.right,
            summary.failed.len()
        );
        // The log shows the progress, also if the run is stopped.
        if bar.is_hidden() {
            println!("{} of {}: {state}", bar.position(), plan.count);
        }
        bar.set_message(state);
    };
    let mut failed = |failed: &Failed| write(failed, language, &arguments.output);
    let summary = soak(&plan, &workshop, &mut progress, &mut failed)?;
    bar.finish_and_clear();
    print!("{summary}");
    if summary.failed.is_empty() && summary.invalid.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("failing functions are in {}", arguments.output.display());
    Ok(ExitCode::FAILURE)
}

/// Writes a failing function to the directory of failures.
fn write(failed: &Failed, language: Language, output: &PathBuf) -> anyhow::Result<()> {
    std::fs::create_dir_all(output)
        .with_context(|| format!("{} cannot be made", output.display()))?;
    let name = format!(
        "{}-{}.{}",
        failed.failure,
        failed.seed,
        language.extension()
    );
    let details = failed.details.replace('\n', "\n// ");
    let text = format!("// {details}\n{}", failed.text);
    let path = output.join(name);
    std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
}
